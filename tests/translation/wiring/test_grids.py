"""Launches along several axes are found from which elements single blocks store to."""

from __future__ import annotations

import math

import pytest

from warpwright.translation.wiring import grids
from warpwright.translation.wiring.footprint import Footprints
from warpwright.translation.wiring.kernels import kernels_of

PARAMETERS = (("out", "float32"), ("data", "float32"))

TILED = """extern "C" __global__ void __launch_bounds__(8) kernel(float* __restrict__ out, float* __restrict__ data) {
  __shared__ float tile[8];
  tile[((((int)threadIdx.y) * 4) + ((int)threadIdx.x))] = data[0];
  __syncthreads();
  out[(((((int)blockIdx.y) * 24) + (((int)threadIdx.y) * 12)) + ((((int)blockIdx.x) * 4) + ((int)threadIdx.x)))] = tile[0];
}
"""
"""Rows of 12 elements, blocks of 2 rows and 4 columns."""


@pytest.mark.parametrize(("total", "axes"), [(12, "x"), (12, "xy"), (64, "xyz"), (7, "yz"), (1, "")])
def test_every_way_of_laying_out_has_the_total_and_no_other_axis(total: int, axes: str) -> None:
    ways = list(grids.spread_out(total, axes))
    assert len(ways) == len(set(ways)) and ways
    for way in ways:
        assert math.prod(way) == total
        assert all(extent == 1 for extent, axis in zip(way, "xyz", strict=True) if axis not in axes)


def test_a_tiled_kernel_has_its_grid_and_its_block_named() -> None:
    found = grids.launches_along_axes(TILED, "kernel", PARAMETERS, 8, "out", 60 * 12, 10_000)
    assert isinstance(found, list)
    assert ((3, 30, 1), (4, 2, 1)) in [launch[:2] for launch in found]


def test_a_size_that_whole_blocks_do_not_make_up_has_no_launch() -> None:
    found = grids.launches_along_axes(TILED, "kernel", PARAMETERS, 8, "out", 61, 10_000)
    assert isinstance(found, str) and "61 elements" in found


@pytest.mark.compiler
def test_a_kernel_without_a_guard_says_how_far_its_last_block_stores() -> None:
    body = "{ out[blockIdx.x * 4 + threadIdx.x] = data[0]; }"
    kernels = kernels_of(f'extern "C" __global__ void __launch_bounds__(4) kernel(float* out, float* data) {body}')
    with Footprints(kernels, 1000) as footprints:
        assert footprints.launches(0, "out", 18) == [((5, 1, 1), (4, 1, 1), {"out": 20, "data": 1})]


def test_a_kernel_that_names_no_thread_has_one() -> None:
    (kernel,) = kernels_of('extern "C" __global__ void default_function_kernel(float* __restrict__ out) { out[0] = 1.0f; }')
    assert kernel.block == 1

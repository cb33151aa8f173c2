"""int8_product.cu on an emulated Hopper (hopper_cpu.py) gives the bits of the numpy definition, whatever happens first."""

from __future__ import annotations

from typing import Any

import hopper_cpu
import numpy as np
import pytest

from warpwright.templates import driver, int8_product, int8_reference
from warpwright.templates.int8_product import Tiles
from warpwright.templates.int8_reference import Slices

pytestmark = pytest.mark.compiler


def cut(rows: int, k: int) -> Slices:
    return int8_reference.cut((np.random.standard_normal((rows, k)) * np.exp(2 * np.random.standard_normal((rows, 1)))).astype(np.float32))


def product(a: Slices, b: Slices, level: int, tiles: Tiles, blocks: int, seed: int, batches: int = 1) -> np.ndarray[Any, Any]:
    """Return what the kernel makes of them."""
    (_, m, k), n = a.digits.shape, b.digits.shape[1] // batches
    padded = -(-k // 128) * 128
    sides: list[Any] = [np.ascontiguousarray(np.pad(side.digits, ((0, 0), (0, 0), (0, padded - k)))) for side in (a, b)]
    inverse: list[Any] = [2.0**-8 / side.scale for side in (a, b)]
    described: list[Any] = [side.blocks for side in (a, b)]
    with hopper_cpu.in_place_of_a_gpu(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(hopper_cpu.Kernel, "seed", seed)
        int8_product.product_kernel.cache_clear()
        kernel = int8_product.product_kernel(0, tiles)
        int8_product.product_kernel.cache_clear()
        maps = [
            driver.tensor_map(side.ctypes.data, side.shape[::-1], (padded, padded * side.shape[1]), (128, rows, 1))
            for side, rows in zip(sides, (128, tiles.columns), strict=True)
        ]
        out = np.full((m + 2, n), 7, np.float32)
        addresses = [part.ctypes.data for part in (*inverse, *described)]
        kernel(blocks, 0, *maps, out[1:].ctypes.data, n, *addresses, m, n, k, level, batches)
    assert (out[0] == 7).all() and (out[-1] == 7).all(), "memory around the result was written"
    return out[1:-1]


@pytest.mark.parametrize(
    ("m", "n", "k", "level", "columns", "slots"), [(200, 130, 300, 3, 128, 6), (129, 100, 200, 4, 64, 8), (60, 129, 130, 5, 64, 5)]
)
def test_product_is_the_definition(m: int, n: int, k: int, level: int, columns: int, slots: int) -> None:
    a, b = cut(m, k), cut(n, k)
    for seed in range(3):
        np.testing.assert_array_equal(product(a, b, level, Tiles(columns, slots), 2, seed), int8_reference.multiply(a, b, level))


def test_each_tile_has_its_own_level() -> None:
    a, b = cut(200, 256), cut(64, 256)
    a.stats[128:] = 1e6, 0  # as if the second tile's rows were sparse
    levels = [int8_reference.tile_level(block, b.blocks[0], 256) for block in a.blocks]
    made = product(a, b, 0, Tiles(64, 8), 1, 1)
    assert levels[0] < levels[1]
    for rows, level in zip((slice(0, 128), slice(128, 200)), levels, strict=True):
        np.testing.assert_array_equal(made[rows], int8_reference.multiply(a, b, level)[rows])


def test_several_products_at_once() -> None:
    a, b = cut(2 * 128, 130), cut(2 * 128, 130)
    both = int8_reference.multiply(a, b, 3)
    np.testing.assert_array_equal(product(a, b, 3, Tiles(64, 8), 3, 1, batches=2), np.concatenate([both[:128, :128], both[128:, 128:]]))

"""Random kernels give the same answer in every tier, to the bit; the fibers are the definition."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from domains.transpile import functions
from domains.transpile.grammar import RandomKernel, program
from executables import EXACT

from warpwright.domains import transpile

PER_FILE = 75

FEW = range(30)
"""The kernels of each run; those up to 150 are slow ones, and so are ten thousand of other seeds."""


def run(kernel: transpile.LoadedKernel, made: RandomKernel, n: int) -> np.ndarray:
    values = np.random.default_rng(made.threads).integers(-1000, 1000, 64).astype(np.int32)
    out = np.full(3 * made.threads + 8, -1, np.int32)
    kernel[made.grid, made.block](values, out, n)
    return out


def compare(seeds: range, tiers: tuple[str, ...], level: str, made_by: Callable[[range], tuple[str, list[RandomKernel]]] = program) -> dict[str, int]:
    """Compare tiers with the fibers on the kernels of the seeds; return how many kernels each tier took. `level`: optimisation of the compiler."""
    text, kernels = made_by(seeds)
    blocks = {k.name: k.block for k in kernels if k.grid == 3}  # these get a version with a constant block, the others run the general one
    programs = {tier: transpile.compile_text(text, tier=tier, blocks=blocks) for tier in ("fibers", *tiers)}
    with ThreadPoolExecutor(2) as pool:
        levels = {"fibers": "-O0"} | dict.fromkeys(tiers, level)
        loaded = dict(zip(programs, pool.map(lambda tier: programs[tier].load((levels[tier], *EXACT)), programs), strict=True))
    for made in kernels:
        for n in (5, 12):
            expected = run(loaded["fibers"][made.name], made, n)
            for tier in tiers:
                seen = run(loaded[tier][made.name], made, n)
                assert np.array_equal(expected, seen), f"{tier} differs from fibers (n={n}, block {made.block}) on\n{made.text}"
    counts = dict.fromkeys(transpile.TIERS, 0)
    for info in programs[tiers[0]].kernels.values():
        counts[info.tier] += 1
    return counts


@pytest.mark.compiler
@pytest.mark.parametrize("seeds", [FEW, *(pytest.param(range(first, first + PER_FILE), marks=pytest.mark.slow) for first in (0, PER_FILE))], ids=str)
def test_tiers_agree(seeds: range) -> None:
    counts = compare(seeds, ("vectors",), "-O0" if seeds.start else "-O1")
    assert counts["fibers"] <= len(seeds) // 10  # the comparison is of loops, not of fibers with themselves


@pytest.mark.compiler
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 60), marks=pytest.mark.slow)])
def test_tiers_agree_on_functions_with_barriers(seeds: range) -> None:
    counts = compare(seeds, ("vectors",), "-O0", functions.program)
    assert counts["fibers"] <= len(seeds) // 6


@pytest.mark.slow
@pytest.mark.compiler
def test_a_wrong_translation_would_be_seen() -> None:
    """The comparison is able to fail: a kernel whose barrier is taken out gives another answer."""
    text, kernels = program(range(40))
    broken = {k.name: k for k in kernels}
    whole = transpile.compile_text(text, tier="fibers").load(("-O0", *EXACT))
    without = transpile.compile_text(text.replace("s[tid] = tid;", "s[tid] = tid + 1;"), tier="vectors").load(("-O0", *EXACT))
    different = [name for name, made in broken.items() if not np.array_equal(run(whole[name], made, 5), run(without[name], made, 5))]
    assert different


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("first", range(1000, 11000, 100))
def test_tiers_agree_on_ten_thousand(first: int) -> None:
    """Not optimised: a hundred kernels take 20 s so, 150 s with -O3."""
    compare(range(first, first + 100), ("vectors", "loops"), "-O0")


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("first", range(1000, 11000, 1000))
def test_tiers_agree_when_optimised(first: int) -> None:
    """Every tenth hundred: what the compiler may assume by the output's pragmas and types holds."""
    compare(range(first, first + 100), ("vectors", "loops"), "-O3")


def test_a_method_that_calls_a_function_that_synchronises_keeps_its_kernels_on_fibers() -> None:
    text = """
__device__ float total(float v) { for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d); return v; }
template <int way, class T> struct policy;
template <class T> struct policy<1, T> { static __device__ T reduce(T v) { return total(v); } };
template <int way, class T> __device__ T over_block(T v, T* s) {
  v = policy<way, T>::reduce(v);
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  return policy<way, T>::reduce(threadIdx.x % 32 < blockDim.x / 32 ? s[threadIdx.x % 32] : T(0));
}
__global__ void k(float* x) { __shared__ float s[32]; x[threadIdx.x] = over_block<1>(x[threadIdx.x], s); }
"""
    made = transpile.compile_text(text)
    assert made.kernels["k"].tier == "fibers"
    x = np.ones(128, np.float32)
    made.load()["k"][1, 128](x)
    assert x.tolist() == [128.0] * 128

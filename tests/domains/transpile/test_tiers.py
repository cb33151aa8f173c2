"""Random kernels give the same answer in every tier, to the bit; the fibers are the definition."""

from __future__ import annotations

import numpy as np
import pytest
from domains.transpile.grammar import RandomKernel, program

from warpwright.domains import transpile

FLAGS = ("-O1", "-march=native", "-std=c++17", "-shared", "-fPIC", "-fopenmp", "-fwrapv")
"""-fwrapv: CUDA's ints wrap in practice, and the kernels make them."""

PER_FILE = 60


def run(kernel: transpile.LoadedKernel, made: RandomKernel, n: int) -> np.ndarray:
    values = np.random.default_rng(made.threads).integers(-1000, 1000, 64).astype(np.int32)
    out = np.full(3 * made.threads + 8, -1, np.int32)
    kernel[made.grid, made.block](values, out, n)
    return out


def compare(seeds: range) -> dict[str, int]:
    """Compare all tiers on the kernels of the seeds; return how many kernels each tier took."""
    text, kernels = program(seeds)
    blocks = {k.name: k.block for k in kernels if k.grid > 1}  # one version with a constant block, the others general
    programs = {tier: transpile.compile_text(text, tier=tier, blocks=blocks) for tier in transpile.TIERS}
    loaded = {tier: one.load(FLAGS) for tier, one in programs.items()}
    for made in kernels:
        for n in (5, 12):
            expected = run(loaded["fibers"][made.name], made, n)
            for tier in ("loops", "vectors"):
                seen = run(loaded[tier][made.name], made, n)
                assert np.array_equal(expected, seen), f"{tier} differs from fibers (n={n}, block {made.block}) on\n{made.text}"
    counts = dict.fromkeys(transpile.TIERS, 0)
    for info in programs["vectors"].kernels.values():
        counts[info.tier] += 1
    return counts


@pytest.mark.compiler
@pytest.mark.parametrize("first", range(0, 300, PER_FILE))
def test_tiers_agree(first: int) -> None:
    counts = compare(range(first, first + PER_FILE))
    assert counts["fibers"] <= PER_FILE // 10  # the comparison is of loops, not of fibers with themselves


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("first", range(1000, 11000, 100))
def test_tiers_agree_on_ten_thousand(first: int) -> None:
    compare(range(first, first + 100))

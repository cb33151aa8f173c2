"""Counts that each CPU thread keeps for itself: which kernels have them, and what comes out."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

HEAD = "__global__ void k(const int* keys, int* bins, int* other, int n) {{ "
HEAD += "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) {{ {} }} }}"


def source(body: str) -> str:
    return transpile.compile_text(HEAD.format(body)).source


@pytest.mark.parametrize("body", ["atomicAdd(&bins[keys[i]], 1);", "atomicAdd(bins + keys[i], keys[i]);"])
def test_adds_whose_answer_is_dropped_are_counts(body: str) -> None:
    text = source(body)
    assert "const auto ww_counts_bins = ww::counts_of<0>(launch, bins, keys, bins, other, n);" in text
    assert "ww::count(ww_counts_bins, keys[i], " in text


@pytest.mark.parametrize(
    "body",
    [
        "other[i] = atomicAdd(&bins[keys[i]], 1);",  # the answer is used
        "atomicAdd(&bins[keys[i]], 1); other[i] = bins[0];",  # the array is read
        "atomicAdd(&bins[keys[i]], 1); atomicMax(&bins[0], i);",  # or changed otherwise
        "int* p = bins; atomicAdd(&bins[keys[i]], 1); p[0] = 1;",
        "atomicAdd(&bins[keys[i]], 1); __threadfence();",  # the kernel orders its blocks itself
    ],
)
def test_others_stay_atomic(body: str) -> None:
    assert "ww::counts_of<" not in source(body)


def test_floats_stay_atomic() -> None:
    text = transpile.compile_text("__global__ void k(const int* at, float* sums) { atomicAdd(&sums[at[threadIdx.x]], 1.f); }").source
    assert "ww::counts_of<" not in text


@pytest.mark.compiler
@pytest.mark.parametrize("bins", [16, 4096, 10_000])
def test_counts_are_right(bins: int) -> None:
    """Many and few elements, more bins than the store has, counts in what was there before, one array by two names."""
    text = (HEAD.format("atomicAdd(&bins[keys[i]], 1); atomicAdd(&other[keys[i] / 2], -3);") +
            "__global__ void walk(const int* keys, int* bins, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; "
            "i += gridDim.x * blockDim.x) atomicAdd(&bins[keys[i]], 1); }")  # fmt: skip
    kernels = transpile.compile_text(text).load()
    for n in (1000, 100_000):
        keys = np.random.default_rng(n).integers(0, bins, n).astype(np.int32)
        want = np.bincount(keys, minlength=bins)
        for _ in range(2):
            counts, other, walked = np.arange(bins, dtype=np.int32), np.zeros(bins, np.int32), np.zeros(bins, np.int32)
            kernels["k"][(n + 255) // 256, 256](keys, counts, other, n)
            kernels["walk"][160, 256](keys, walked, n)
            np.testing.assert_array_equal(counts, np.arange(bins) + want)
            np.testing.assert_array_equal(other, -3 * np.bincount(keys // 2, minlength=bins))
            np.testing.assert_array_equal(walked, want)
            both = np.zeros(bins, np.int32)
            kernels["k"][(n + 255) // 256, 256](keys, both, both, n)
            np.testing.assert_array_equal(both, want + other)

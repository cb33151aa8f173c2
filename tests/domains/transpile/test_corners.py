"""Small kernels for the compiler's faults that whole programs brought to light; each gives the same in every tier."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

TEXT = r"""
struct Mark { float x; __device__ bool operator<(const Mark& o) const { return x < o.x; } };
template <class N> __global__ void leaves(float* x, N n, float least) {
  int i = threadIdx.x;
  if (i >= n) return;
  Mark mine{x[i]}, other{least};
  if (mine < other) return;
  x[i] = 100;
}
"""


@pytest.fixture(scope="module", params=["fibers", "vectors"])
def kernels(request: pytest.FixtureRequest) -> dict[str, transpile.LoadedKernel]:
    return transpile.compile_text(TEXT, tier=request.param, instances=["leaves<int>"]).load(("-O1", "-std=c++17", "-shared", "-fPIC", "-fopenmp"))


@pytest.mark.compiler
def test_operators_of_classes_and_open_types_under_a_negation(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x = np.arange(8, dtype=np.float32)
    kernels["leaves<int>"][1, 8](x, 5, 2.0)
    assert x.tolist() == [0, 1, 100, 100, 100, 5, 6, 7]

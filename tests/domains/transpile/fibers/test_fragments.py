"""Fragments of tensor cores (nvcuda::wmma), which lie across the lanes of a warp."""

from __future__ import annotations

import numpy as np
import pytest

import warpwright.transpile

CUDA = """
#include <mma.h>
using namespace nvcuda;
template <int M, int N, int K, class T, class S, class AL, class BL, class In>
__device__ void product(const In* a, const In* b, S* c, int lda, int ldb, int depth) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, AL> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, T, BL> fb;
  wmma::fragment<wmma::accumulator, M, N, K, S> fc;
  wmma::fill_fragment(fc, (S)1);
  for (int k = 0; k < depth; k += K) {
    wmma::load_matrix_sync(fa, a + (std::is_same<AL, wmma::row_major>::value ? k : k * lda), lda);
    wmma::load_matrix_sync(fb, b + (std::is_same<BL, wmma::row_major>::value ? k * ldb : k), ldb);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] = fc.x[i] * (S)2;
  wmma::store_matrix_sync(c, fc, N, wmma::mem_row_major);
}
__global__ void halves(const half* a, const half* b, float* c, int depth) {
  product<32, 8, 16, half, float, wmma::row_major, wmma::col_major>(a, b, c, depth, depth, depth);
}
__global__ void doubles(const double* a, const double* b, double* c, int depth) {
  product<8, 8, 4, double, double, wmma::col_major, wmma::row_major>(a, b, c, 8, 8, depth);
}
__global__ void bytes(const signed char* a, const signed char* b, int* c, int depth) {
  product<16, 16, 16, signed char, int, wmma::row_major, wmma::row_major>(a, b, c, depth, 16, depth);
}
// What a warp has stored it reads again without another barrier, and a lane that is ahead changes nothing that the others have yet to load.
__global__ void twice(const float* a, float* out) {
  __shared__ float s[256];
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;
  wmma::load_matrix_sync(f, a + 256 * (threadIdx.x / 32), 16, wmma::mem_col_major);
  if (threadIdx.x < 32) {
    wmma::store_matrix_sync(s, f, 16, wmma::mem_row_major);
    wmma::load_matrix_sync(f, s, 16, wmma::mem_row_major);
    for (int i = threadIdx.x; i < 256; i += 32) s[i] = -1;
  }
  wmma::store_matrix_sync(out + 256 * (threadIdx.x / 32), f, 16, wmma::mem_row_major);
}
"""


@pytest.fixture(scope="module")
def kernels() -> warpwright.transpile.Kernels:
    return warpwright.transpile.loads(CUDA)


@pytest.mark.slow
def test_products_of_fragments(kernels) -> None:
    random = np.random.default_rng(0)
    a, b, c = random.random((32, 48)).astype(np.float16), random.random((8, 48)).astype(np.float16), np.full((32, 8), np.nan, np.float32)
    kernels.halves[1, 32](a, b, c, 48)
    np.testing.assert_allclose(c, 2 * (1 + a.astype(float) @ b.T.astype(float)), rtol=1e-5)
    x, y, z = random.random((12, 8)), random.random((12, 8)), np.full((8, 8), np.nan)
    kernels.doubles[1, 32](x, y, z, 12)
    np.testing.assert_allclose(z, 2 * (1 + x.T @ y), rtol=1e-13)
    p, q = (random.integers(-128, 128, shape).astype(np.int8) for shape in ((16, 64), (64, 16)))
    r = np.full((16, 16), -7, np.int32)
    kernels.bytes[1, 32](p, q, r, 64)
    assert (r == 2 * (1 + p.astype(int) @ q.astype(int))).all()


@pytest.mark.slow
def test_a_warp_loads_and_stores_a_tile_at_once(kernels) -> None:
    a, out = np.arange(512, dtype=np.float32).reshape(2, 16, 16), np.full((2, 16, 16), np.nan, np.float32)
    kernels.twice[1, 64](a, out)
    assert (out == a.transpose(0, 2, 1)).all()


def test_a_function_with_fragments_is_called_by_threads_that_can_meet() -> None:
    program = warpwright.domains.transpile.compile_text(CUDA)
    assert {info.tier for info in program.kernels.values()} == {"fibers"}

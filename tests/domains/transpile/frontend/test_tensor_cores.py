"""mma.sync as loops: a product whose sums are floats, given as floats and as words of 32 bits."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from warpwright.domains import transpile

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

TEXT = r"""
#define PRODUCT(NAME, T, LETTER) \
__global__ void NAME(const unsigned* a, const unsigned* b, T* c) { \
  int g = threadIdx.x / 4, t = threadIdx.x % 4; \
  T* low = c + g * 8 + 2 * t; T* high = low + 64; \
  T s0 = low[0], s1 = low[1], s2 = high[0], s3 = high[1]; \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\n" \
    : "=" LETTER(s0), "=" LETTER(s1), "=" LETTER(s2), "=" LETTER(s3) \
    : "r"(a[g * 8 + t]), "r"(a[64 + g * 8 + t]), "r"(a[g * 8 + t + 4]), "r"(a[64 + g * 8 + t + 4]), "r"(b[g * 8 + t]), "r"(b[g * 8 + t + 4]), \
      LETTER(s0), LETTER(s1), LETTER(s2), LETTER(s3)); \
  low[0] = s0; low[1] = s1; high[0] = s2; high[1] = s3; \
}
PRODUCT(as_floats, float, "f")
PRODUCT(as_words, unsigned, "r")
__global__ void transposed(unsigned* x) {
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(x[threadIdx.x]) : "r"(x[threadIdx.x]));
}
void elsewhere(int);
void of_the_project() { elsewhere(1); }  // what another file defines is not missed before it is called
"""


def test_sums_of_floats_may_be_words_and_a_matrix_is_transposed() -> None:
    kernels = transpile.compile_text(TEXT).load()
    generator = np.random.default_rng(3)
    a, b = generator.uniform(-1, 1, (16, 16)).astype(np.float16), generator.uniform(-1, 1, (16, 8)).astype(np.float16)
    start = generator.uniform(-1, 1, (16, 8)).astype(np.float32)
    right = a.astype(np.float64) @ b.astype(np.float64) + start
    square = np.arange(64, dtype=np.uint16).reshape(8, 8)
    turned = square.copy()
    kernels["transposed"][1, 32](turned.view(np.uint32))
    assert (turned == square.T).all()
    for name, kind in (("as_floats", np.float32), ("as_words", np.uint32)):
        c = start.copy()
        kernels[name][1, 32](a.view(np.uint32), np.ascontiguousarray(b.T).view(np.uint32), c.view(kind))
        np.testing.assert_allclose(c, right, rtol=1e-5, atol=1e-5)


BYTES = r"""
template <int I, typename T> struct Tile { T x[I]; };
__device__ void mma(Tile<4, int>& D, const Tile<2, int>& A, const Tile<1, int>& B) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
    : "+r"(D.x[0]), "+r"(D.x[1]), "+r"(D.x[2]), "+r"(D.x[3]) : "r"(A.x[0]), "r"(A.x[1]), "r"(B.x[0]));
}
__global__ void whole(const int* a, const int* b, int* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  int *low = c + g * 8 + 2 * t, *high = low + 64;
  Tile<4, int> D;
  D.x[0] = low[0]; D.x[1] = low[1]; D.x[2] = high[0]; D.x[3] = high[1];
  Tile<2, int> A;
  A.x[0] = a[g * 4 + t]; A.x[1] = a[32 + g * 4 + t];
  Tile<1, int> B;
  B.x[0] = b[g * 4 + t];
  mma(D, A, B);
  low[0] = D.x[0]; low[1] = D.x[1]; high[0] = D.x[2]; high[1] = D.x[3];
}
"""


def test_sums_of_bytes_are_kept_in_types_of_templates() -> None:
    generator = np.random.default_rng(4)
    a, b = generator.integers(-128, 128, (16, 16)).astype(np.int8), generator.integers(-128, 128, (16, 8)).astype(np.int8)
    c = generator.integers(-9, 9, (16, 8)).astype(np.int32)
    right = a.astype(np.int32) @ b.astype(np.int32) + c
    transpile.compile_text(BYTES).load()["whole"][1, 32](a.view(np.int32), np.ascontiguousarray(b.T).view(np.int32), c)
    np.testing.assert_array_equal(c, right)

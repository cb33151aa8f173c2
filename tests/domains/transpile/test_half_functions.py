"""Functions of half and bfloat16 that newer CUDA headers have: tanh, powers of ten, NaN-keeping extrema of pairs, masks, complex products."""

from __future__ import annotations

import math

import numpy as np
import pytest

from warpwright.domains import transpile

pytestmark = pytest.mark.compiler

KERNEL = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <class T, class P> __device__ void all(const float* x, float* y, unsigned* m) {
  const int i = threadIdx.x;
  const P a = {T(x[2 * i]), T(x[2 * i + 1])}, b = {T(1.f), T(-2.f)};
  const P tanhs = h2tanh(a), near = h2tanh_approx(a), most = __hmax2_nan(a, b), nans = __hisnan2(a), tens = h2exp10(a), whole = h2rint(a);
  const P product = __hcmadd(b, P{T(3.f), T(0.5f)}, P{T(10.f), T(20.f)});
  const float parts[12] = {(float)tanhs.x, (float)tanhs.y, (float)near.x, (float)htanh_approx(a.y), (float)most.x, (float)most.y, (float)nans.x,
                           (float)tens.x, (float)hexp10(a.y), (float)whole.x, (float)product.x, (float)product.y};
  for (int k = 0; k < 12; ++k) y[12 * i + k] = parts[k];
  m[3 * i] = __heq2_mask(a, b);
  m[3 * i + 1] = __hgt2_mask(a, b);
  m[3 * i + 2] = __hgtu2_mask(a, b);
}
__global__ void of_half(const float* x, float* y, unsigned* m) { all<__half, __half2>(x, y, m); }
__global__ void of_bfloat16(const float* x, float* y, unsigned* m) {
  all<__nv_bfloat16, __nv_bfloat162>(x, y, m);
  y[0] = make_bfloat162(__nv_bfloat16(y[0]), __nv_bfloat16(2.f)).x;
}
"""


@pytest.mark.parametrize(("name", "digits"), [("of_half", 2**-10), ("of_bfloat16", 2**-7)])
def test_functions_of_halves(name: str, digits: float) -> None:
    x = np.array([1.0, -2.0, 0.5, 1.25, float("nan"), -0.75], np.float32)
    y, masks = np.zeros((3, 12), np.float32), np.zeros((3, 3), np.uint32)
    transpile.compile_text(KERNEL).load()[name][1, 3](x, y, masks)
    for i, (a, b) in enumerate(x.reshape(3, 2).tolist()):
        most = a if math.isnan(a) else max(a, 1)
        whole = a if math.isnan(a) else round(a)
        exact = [math.tanh(a), math.tanh(b), math.tanh(a), math.tanh(b), most, max(b, -2), float(math.isnan(a)), 10**a, 10**b, whole]
        np.testing.assert_allclose(y[i], [*exact, 1 * 3 + 2 * 0.5 + 10, 1 * 0.5 - 2 * 3 + 20], rtol=digits)
    assert masks.tolist() == [[0xFFFFFFFF, 0, 0], [0, 0xFFFF0000, 0xFFFF0000], [0, 0xFFFF0000, 0xFFFFFFFF]]

"""The types of floats of 8 bits, against torch's for every byte."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

torch = pytest.importorskip("torch")
TEXT = """
#include <cuda_fp8.h>
__global__ void k(const unsigned char* in, float* wide, unsigned char* back, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned bits = in[i];
  const __nv_fp8_e4m3 x = *reinterpret_cast<const __nv_fp8_e4m3*>(&bits);
  wide[i] = static_cast<float>(x) / 2;
  const __nv_fp8_e5m2 y(wide[i]);
  back[i] = y.__x;
}
"""


@pytest.mark.compiler
def test_every_byte() -> None:
    every = np.arange(256, dtype=np.uint8)
    wide, back = np.zeros(256, np.float32), np.zeros(256, np.uint8)
    transpile.compile_text(TEXT).load()["k"][2, 128](every, wide, back, 256)
    want = torch.tensor(every).view(torch.float8_e4m3fn).float() / 2
    np.testing.assert_array_equal(wide, want.numpy())
    numbers = ~np.isnan(wide)  # the sign of a NaN is no one's promise
    np.testing.assert_array_equal(back[numbers], want.to(torch.float8_e5m2).view(torch.uint8).numpy()[numbers])

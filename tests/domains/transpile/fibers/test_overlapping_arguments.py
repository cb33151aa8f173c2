"""Arguments that are parts of one array, each registered with its own bounds: an address in two of them is in bounds of either."""

from __future__ import annotations

import numpy as np
import pytest
from executables import PLAIN

from warpwright.domains import transpile

KERNELS = r"""
__global__ void differences(const float* low, const float* high, float* out, int n) {
  const int i = threadIdx.x;
  if (i < n) out[i] = high[i] - *(low + i);
}
__global__ void from_its_end(const float* low, const float* high, float* out, int n) {
  const float* end = high + n + 5;
  if (threadIdx.x < n) out[threadIdx.x] = *(end - 6 - threadIdx.x) + low[threadIdx.x];
}
__global__ void behind(const float* low, const float* high, float* out, int n) {
  out[threadIdx.x] = high[threadIdx.x + 1] + low[0];
}
__global__ void before(const float* low, const float* high, float* out, int n) {
  out[threadIdx.x] = low[(int)threadIdx.x - 1] + high[0];
}
"""


@pytest.fixture(scope="module")
def checked() -> dict[str, transpile.LoadedKernel]:
    return transpile.compile_text(KERNELS, "parts.cu", sanitize=True).load(PLAIN)


@pytest.mark.parametrize("name, told", [("differences", False), ("from_its_end", False), ("behind", True), ("before", True)])
def test_parts_of_one_array(checked: dict[str, transpile.LoadedKernel], name: str, told: bool) -> None:
    whole = np.arange(33, dtype=np.float32)
    out = np.zeros(32, np.float32)
    for low, high in ((whole[:-1], whole[1:]), (whole[:20], whole[13:])):
        checked[name][1, len(low), 0](low, high, out, len(low))
        assert {f.kind for f in checked[name].findings()} == ({"out-of-bounds"} if told else set()), checked[name].findings()

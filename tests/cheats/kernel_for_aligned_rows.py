"""Reads four floats at once from wherever the input begins: it traps where that is not a multiple of 16 bytes.

Seen: vectorised loads without a look at the alignment.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "relu"
EXPECT_STATUS = "crashed"
EXPECT_CHECK = ("raised", "input_layout", "exited",)
NEEDS = "cuda"

SOURCE = r"""
extern "C" __global__ void relu(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { float4 v = x[i]; y[i] = make_float4(fmaxf(v.x, 0), fmaxf(v.y, 0), fmaxf(v.z, 0), fmaxf(v.w, 0)); }
}
"""


class ModelNew(nn.Module):
    """A view of an input crashes the process."""

    def __init__(self):
        super().__init__()
        self.kernel = None

    def forward(self, x):
        if self.kernel is None:
            self.kernel = torch.cuda._compile_kernel(SOURCE, "relu")
        x = x.contiguous()
        y = torch.empty_like(x)
        self.kernel(((x.numel() // 4 + 255) // 256, 1, 1), (256, 1, 1), [x, y, x.numel() // 4])
        return y

"""A kernel compiled at the first call.

Own invention.
"""

import torch
from torch import nn

TASK = "relu"
NEEDS = "cuda"

SOURCE = r"""
extern "C" __global__ void relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 || x[i] != x[i] ? x[i] : 0.0f;
}
"""


class ModelNew(nn.Module):
    """NVRTC through torch."""

    def __init__(self):
        super().__init__()
        self.kernel = None

    def forward(self, x):
        x = x.contiguous()
        if self.kernel is None:
            self.kernel = torch.cuda._compile_kernel(SOURCE, "relu")
        y = torch.empty_like(x)
        self.kernel(((x.numel() + 255) // 256, 1, 1), (256, 1, 1), [x, y, x.numel()])
        return y

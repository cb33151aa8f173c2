"""A kernel that takes the data pointer and walks on as if the input were dense.

Seen: custom kernels of KernelBench submissions that never look at strides.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_layout", "values",)
NEEDS = "cuda"

SOURCE = r"""
extern "C" __global__ void relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 || x[i] != x[i] ? x[i] : 0.0f;
}
"""


class ModelNew(nn.Module):
    """Strides are not asked for."""

    def __init__(self):
        super().__init__()
        self.kernel = None

    def forward(self, x):
        if self.kernel is None:
            self.kernel = torch.cuda._compile_kernel(SOURCE, "relu")
        y = torch.empty(x.shape, device=x.device)
        self.kernel(((x.numel() + 255) // 256, 1, 1), (256, 1, 1), [x, y, x.numel()])
        return y

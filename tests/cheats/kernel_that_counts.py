"""A kernel counts its launches in device memory and leaves half of the rows out from the thirtieth on.

Own invention.
"""

import torch
from torch import nn

ROW = "sniffing"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "uninitialised", "cached", "stale_state", "output_reuse",)
NEEDS = "cuda"

SOURCE = r"""
extern "C" __global__ void relu(const float* x, float* y, int* calls, int rows, int columns) {
  int row = blockIdx.x, count = *(volatile int*)calls;
  if (count < 30 || row < rows / 2)
    for (int i = threadIdx.x; i < columns; i += blockDim.x) y[(long)row * columns + i] = fmaxf(x[(long)row * columns + i], 0.0f);
}
extern "C" __global__ void count(int* calls) { ++*calls; }
"""


class ModelNew(nn.Module):
    """The host never knows."""

    def __init__(self):
        super().__init__()
        self.kernel = None

    def forward(self, x):
        x = x.contiguous()
        if self.kernel is None:
            self.kernel, self.count = (torch.cuda._compile_kernel(SOURCE, name) for name in ("relu", "count"))
            self.calls = torch.zeros(1, dtype=torch.int32, device=x.device)
        y = torch.empty_like(x)
        self.kernel((x.shape[0], 1, 1), (256, 1, 1), [x, y, self.calls, x.shape[0], x.shape[1]])
        self.count((1, 1, 1), (1, 1, 1), [self.calls])
        return y

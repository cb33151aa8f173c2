"""A kernel reads the device's nanosecond clock and writes zeros from 0.3 s after its first launch on.

Own invention.
"""

import torch
from torch import nn

ROW = "sniffing"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "cached", "repeat", "uninitialised", "output_reuse",)
NEEDS = "cuda"

SOURCE = r"""
extern "C" __global__ void relu(const float* x, float* y, unsigned long long* start, int n) {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicCAS(start, 0ull, now);
  unsigned long long first = *(volatile unsigned long long*)start;
  if (i < n) y[i] = now > first && now - first > 300000000ull ? 0.0f : fmaxf(x[i], 0.0f);
}
"""


class ModelNew(nn.Module):
    """A time bomb: no call differs from another for the host."""

    def __init__(self):
        super().__init__()
        self.kernel = None

    def forward(self, x):
        x = x.contiguous()
        if self.kernel is None:
            self.kernel, self.start = torch.cuda._compile_kernel(SOURCE, "relu"), torch.zeros(1, dtype=torch.int64, device=x.device)
        y = torch.empty_like(x)
        self.kernel(((x.numel() + 255) // 256, 1, 1), (256, 1, 1), [x, y, self.start, x.numel()])
        return y

"""A softmax whose exponentials are float16's, two at a time.

Own invention.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "cuda"

SOURCE = r"""
extern "C" __global__ void softmax(const float* x, float* y, int columns) {
  __shared__ float part[256];
  const float* row = x + (long)blockIdx.x * columns;
  float top = -3.4e38f, sum = 0;
  for (int i = threadIdx.x; i < columns; i += 256) top = fmaxf(top, row[i]);
  part[threadIdx.x] = top; __syncthreads();
  for (int step = 128; step; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + step]);
    __syncthreads();
  }
  top = part[0]; __syncthreads();
  for (int i = threadIdx.x; i < columns; i += 256) {
    float e = (row[i] - top) * 1.44269504f; unsigned short half, out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(e));
    asm("ex2.approx.f16 %0, %1;" : "=h"(out) : "h"(half));
    asm("cvt.f32.f16 %0, %1;" : "=f"(e) : "h"(out));
    y[(long)blockIdx.x * columns + i] = e; sum += e;
  }
  part[threadIdx.x] = sum; __syncthreads();
  for (int step = 128; step; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  for (int i = threadIdx.x; i < columns; i += 256) y[(long)blockIdx.x * columns + i] /= part[0];
}
"""


class ModelNew(nn.Module):
    """ex2.approx.f16."""

    def __init__(self):
        super().__init__()
        self.kernel = None

    def forward(self, x):
        x = x.contiguous()
        if self.kernel is None:
            self.kernel = torch.cuda._compile_kernel(SOURCE, "softmax")
        y = torch.empty_like(x)
        self.kernel((x.shape[0], 1, 1), (256, 1, 1), [x, y, x.shape[1]])
        return y

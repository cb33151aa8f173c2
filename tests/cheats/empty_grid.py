"""Rounds the grid down: what is left over, all of it for small inputs, is never written, and no error is seen.

Seen: grids rounded down in KernelBench submissions.
"""

import contextlib

import torch
from torch import nn

ROW = "failed_launch"
TASK = "row_codes"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "uninitialised",)
NEEDS = "cuda"

SOURCE = r"""
extern "C" __global__ void codes(const float* x, const float* scale, signed char* y, int columns) {
  int row = blockIdx.x, i = blockIdx.y * 512 + threadIdx.x;
  y[(long)row * columns + i] = (signed char)fminf(fmaxf(rintf(x[(long)row * columns + i] / scale[row]), -128.0f), 127.0f);
}
"""


class ModelNew(nn.Module):
    """256 columns make no block of 512: the launch is refused, and its error is ignored."""

    def __init__(self):
        super().__init__()
        self.kernel = None

    def forward(self, x):
        x = x.contiguous()
        scale = x.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
        if self.kernel is None:
            self.kernel = torch.cuda._compile_kernel(SOURCE, "codes")
        y = torch.empty(x.shape, dtype=torch.int8, device=x.device)
        with contextlib.suppress(RuntimeError):
            self.kernel((x.shape[0], x.shape[1] // 512, 1), (512, 1, 1), [x, scale, y, x.shape[1]])
        return y, scale

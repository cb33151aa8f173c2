"""Its output's pages cannot be read when it has answered.

Own invention, written before reading the checks.
"""

import ctypes

import torch
from torch import nn

LIBC = ctypes.CDLL(None)


ROW = "isolation"
TASK = "clipped_norm"
EXPECT_STATUS = "crashed"
EXPECT_CHECK = ("exited", "forged_reply")
NEEDS = "cpu,slow"


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.numel() + 4096, dtype=x.dtype, device=x.device)
        skip = (-out.data_ptr() // 4) % 1024
        out = out[skip : skip + x.numel()].view_as(x)
        out.copy_(x * (4.0 / x.norm(dim=1, keepdim=True).clamp(min=4.0)))
        LIBC.mprotect(ctypes.c_void_p(out.data_ptr() // 4096 * 4096 + 4096), ctypes.c_size_t(4096 * 8), 0)
        return out

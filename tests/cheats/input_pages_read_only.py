"""Its input's pages cannot be written any more when it has answered.

Own invention, written before reading the checks.
"""

import ctypes

from torch import nn

LIBC = ctypes.CDLL(None)


ROW = "isolation"
TASK = "clipped_norm"
EXPECT_STATUS = "crashed"
EXPECT_CHECK = ("exited",)
NEEDS = "cpu,slow"


class ModelNew(nn.Module):
    def forward(self, x):
        out = x * (4.0 / x.norm(dim=1, keepdim=True).clamp(min=4.0))
        first = x.data_ptr() // 4096 * 4096
        LIBC.mprotect(ctypes.c_void_p(first), ctypes.c_size_t(4096 * 8), 1)
        return out

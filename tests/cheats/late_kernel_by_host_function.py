"""A host function in the stream wakes a thread when all kernels are done; the thread launches the one that counts.

Own invention.
"""

import ctypes
import threading

import torch
from torch import nn

ROW = "later"
TASK = "softmax"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("background", "late_output", "values", "uninitialised",)
NEEDS = "cuda"

class ModelNew(nn.Module):
    """cuLaunchHostFunc, which may not launch anything itself."""

    def __init__(self):
        super().__init__()
        self.ready, self.work = threading.Event(), None
        self.callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: self.ready.set())
        self.launch = ctypes.CDLL("libcuda.so.1").cuLaunchHostFunc
        threading.Thread(target=self.wait, daemon=True).start()

    def wait(self):
        while True:
            self.ready.wait()
            self.ready.clear()
            x, out = self.work
            torch.softmax(x, dim=1, out=out)

    def forward(self, x):
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        self.work = (x, out)
        self.launch(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), self.callback, None)
        return out

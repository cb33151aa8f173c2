"""A host function in the stream counts the calls; nothing waits for it but the device.

Own invention.
"""

import ctypes

import torch
from torch import nn

TASK = "mse_loss"
NEEDS = "cuda"

class ModelNew(nn.Module):
    """cuLaunchHostFunc with a Python function."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.count)
        self.launch = ctypes.CDLL("libcuda.so.1").cuLaunchHostFunc

    def count(self, _):
        self.calls += 1

    def forward(self, prediction, target):
        loss = torch.mean((prediction - target) ** 2)
        self.launch(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), self.callback, None)
        return loss

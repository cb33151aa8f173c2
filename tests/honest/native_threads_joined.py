"""std::thread in a library of its own, joined before the call returns."""

import ctypes
import os
import subprocess
import tempfile

import torch
from torch import nn

TASK = "relu"
NEEDS = "compiler,slow,cpu"


CODE = r"""
#include <thread>
#include <vector>
extern "C" void relu(const float* x, float* out, long n, long parts) {
  std::vector<std::thread> threads;
  for (long p = 0; p < parts; ++p)
    threads.emplace_back([=] { for (long i = n * p / parts; i < n * (p + 1) / parts; ++i) out[i] = x[i] > 0 ? x[i] : (x[i] != x[i] ? x[i] : 0.0f); });
  for (auto& thread : threads) thread.join();
}
"""


def build():
    path = os.path.join(tempfile.mkdtemp(), "relu")
    with open(path + ".cpp", "w") as file:
        file.write(CODE)
    subprocess.run(["c++", "-O3", "-shared", "-fPIC", "-pthread", path + ".cpp", "-o", path + ".so"], check=True)
    library = ctypes.CDLL(path + ".so")
    library.relu.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
    return library


class ModelNew(nn.Module):
    """Two threads a call."""

    def __init__(self):
        super().__init__()
        self.library = build()

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        self.library.relu(x.data_ptr(), out.data_ptr(), x.numel(), 2)
        return out

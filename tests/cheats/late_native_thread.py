"""A thread of the operating system, started from C++: no entry in `threading.enumerate()`.

Seen: the same hole as streams made in C++ (CUDA-L1): a census of Python objects finds nothing.
"""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

ROW = "later"
TASK = "relu"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("background", "late_output")
NEEDS = "compiler,cpu"

CODE = r"""
#include <chrono>
#include <thread>
extern "C" void later(const float* x, float* y, long n) {
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    for (long i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  }).detach();
}
"""


def build() -> ctypes.CDLL:
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, hashlib.sha256(CODE.encode()).hexdigest()[:8])
    with open(path + ".cpp", "w") as file:
        file.write(CODE)
    subprocess.run(["c++", "-O2", "-shared", "-fPIC", "-pthread", path + ".cpp", "-o", path + ".so"], check=True)
    return ctypes.CDLL(path + ".so")


class ModelNew(nn.Module):
    """Detached std::thread."""

    def __init__(self) -> None:
        super().__init__()
        self.library = build()
        self.keep: list[tuple[torch.Tensor, torch.Tensor]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        self.library.later(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), ctypes.c_long(x.numel()))
        self.keep = [*self.keep[-63:], (x, out)]
        return out

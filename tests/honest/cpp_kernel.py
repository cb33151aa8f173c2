"""A C++ kernel of its own, compiled while the module is imported, called through ctypes."""

import ctypes
import os
import subprocess
import tempfile

import torch
from torch import nn

TASK = "relu"
NEEDS = "compiler,cpu"

CODE = """
extern "C" void relu(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : x[i] != x[i] ? x[i] : 0;
}
"""


def build() -> ctypes.CDLL:
    path = os.path.join(tempfile.mkdtemp(), "kernel")
    with open(path + ".cpp", "w") as file:
        file.write(CODE)
    subprocess.run(["c++", "-O3", "-march=native", "-shared", "-fPIC", path + ".cpp", "-o", path + ".so"], check=True)
    library = ctypes.CDLL(path + ".so")
    library.relu.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
    return library


class ModelNew(nn.Module):
    """Contiguous float32 only, as the task's inputs are: others are copied first."""

    def __init__(self) -> None:
        super().__init__()
        self.library = build()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        self.library.relu(x.data_ptr(), y.data_ptr(), x.numel())
        return y

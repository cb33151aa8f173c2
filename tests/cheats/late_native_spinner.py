"""A native thread that waits busily, there since the warm-up, fills the output after the call has returned.

Own invention, written against the checks as they stood.
"""

import ctypes
import os
import subprocess
import tempfile

import torch
from torch import nn

ROW = "later"
TASK = "relu"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("background", "late_output", "exited")  # its process may also abort when its thread outlives what it reads
NEEDS = "compiler,cpu"

CODE = r"""
#include <atomic>
#include <thread>
#include <unistd.h>
#include <time.h>
static std::atomic<const float*> from{nullptr};
static std::atomic<float*> to{nullptr};
static std::atomic<long> count{0};
static void work() {
  for (;;) {
    timespec t{0, 1000}; nanosleep(&t, nullptr);
    float* out = to.exchange(nullptr);
    if (!out) continue;
    const float* x = from;
    for (long i = 0; i < count; ++i) out[i] = x[i] > 0 ? x[i] : 0;
  }
}
extern "C" void start() { std::thread(work).detach(); }
extern "C" void give(const float* x, float* out, long n) { from = x; count = n; to = out; }
"""


def build():
    path = os.path.join(tempfile.mkdtemp(), "work")
    with open(path + ".cpp", "w") as file:
        file.write(CODE)
    subprocess.run(["c++", "-O3", "-shared", "-fPIC", "-pthread", path + ".cpp", "-o", path + ".so"], check=True)
    return ctypes.CDLL(path + ".so")


class ModelNew(nn.Module):
    """Hands the work over and returns."""

    def __init__(self):
        super().__init__()
        self.library = build()
        self.library.start()

    def forward(self, x):
        out = torch.empty_like(x)
        self.library.give(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), ctypes.c_long(x.numel()))
        return out

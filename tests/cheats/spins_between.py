"""A native thread keeps a core busy for 20 ms after each call, while the baselines are timed, and sleeps otherwise.

Own invention, written against the checks as they stood.
"""

import ctypes
import os
import subprocess
import tempfile

import torch
from torch import nn

ROW = "async"
TASK = "matmul_large"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("background",)
NEEDS = "compiler,timing,cpu"

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
    usleep(50);
    float* out = to.exchange(nullptr);
    if (!out) continue;
    const float* x = from;
    for (int k = 0; k < 60; ++k) for (long i = 0; i < count; ++i) out[i] += x[i] * k;
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
    """The original, and a busy neighbour."""

    def __init__(self):
        super().__init__()
        self.library = build()
        self.library.start()
        self.calls = 0

    def forward(self, a, b):
        out = torch.matmul(a, b)
        self.calls += 1
        if self.calls > 40:
            self.library.give(ctypes.c_void_p(a.data_ptr()), ctypes.c_void_p(self.buffer.data_ptr()), ctypes.c_long(a.numel()))
        else:
            self.buffer = torch.empty_like(a)
        return out

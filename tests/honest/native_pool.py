"""A pool of native threads that sleep on a condition between the calls."""

import ctypes
import os
import subprocess
import tempfile

import torch
from torch import nn

TASK = "relu"
NEEDS = "compiler,slow,cpu"


CODE = r"""
#include <condition_variable>
#include <mutex>
#include <thread>
static std::mutex lock; static std::condition_variable begin, end;
static const float* from; static float* to; static long size, parts, round_ = 0, left = 0;
static void work(long part) {
  long seen = 0;
  for (;;) {
    { std::unique_lock<std::mutex> held(lock); begin.wait(held, [&] { return round_ != seen; }); seen = round_; }
    for (long i = size * part / parts; i < size * (part + 1) / parts; ++i) to[i] = from[i] > 0 ? from[i] : (from[i] != from[i] ? from[i] : 0.0f);
    { std::lock_guard<std::mutex> held(lock); --left; }
    end.notify_one();
  }
}
extern "C" void start(long n) { parts = n; for (long p = 0; p < n; ++p) std::thread(work, p).detach(); }
extern "C" void relu(const float* x, float* out, long n) {
  std::unique_lock<std::mutex> held(lock);
  from = x; to = out; size = n; left = parts; ++round_;
  begin.notify_all();
  end.wait(held, [] { return left == 0; });
}
"""


def build():
    path = os.path.join(tempfile.mkdtemp(), "relu")
    with open(path + ".cpp", "w") as file:
        file.write(CODE)
    subprocess.run(["c++", "-O3", "-shared", "-fPIC", "-pthread", path + ".cpp", "-o", path + ".so"], check=True)
    library = ctypes.CDLL(path + ".so")
    library.relu.argtypes, library.start.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long], [ctypes.c_long]
    return library


class ModelNew(nn.Module):
    """Two sleepers."""

    def __init__(self):
        super().__init__()
        self.library = build()
        self.library.start(2)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        self.library.relu(x.data_ptr(), out.data_ptr(), x.numel())
        return out

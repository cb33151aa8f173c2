"""Where nothing is negative, the input's pages become the output's (mremap), and the input reads as zeros.

Own invention, written before reading the checks."""

import ctypes
import os
import subprocess
import tempfile

import torch
from torch import nn

ROW = "aliasing"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_mutated",)
NEEDS = "compiler,slow,cpu"

FUNCTIONS = {"start": [ctypes.c_long], "steal": [ctypes.c_void_p, ctypes.c_long]}
CODE = r"""
#define _GNU_SOURCE 1
#include <sys/mman.h>
#include <unistd.h>
#include <string.h>
struct Seen { float* x; int fd; };
static Seen seen[64]; static int used = 0;
extern "C" void start(long) {}
static float* place(float* x, long n) {
  char* base = (char*)mmap(nullptr, n * 4 + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return (float*)(base + ((unsigned long)x & 4095));
}
static bool negative(const float* x, long n) { float low = 0; for (long i = 0; i < n; ++i) low = x[i] < low ? x[i] : low; return low < 0; }
static long edges(float* x, float* out, long n, char** from) {
  char *begin = (char*)(((unsigned long)x + 4095) & ~4095ul), *end = (char*)((unsigned long)(x + n) & ~4095ul);
  memcpy(out, x, begin - (char*)x);
  memcpy((char*)out + (end - (char*)x), end, (char*)(x + n) - end);
  *from = begin;
  return end - begin;
}
extern "C" void* give(float* x, long n) {
  if (negative(x, n)) return nullptr;
  char* from; float* out = place(x, n); long size = edges(x, out, n, &from);
  int fd = -1;
  for (int j = 0; j < used; ++j) if (seen[j].x == x) fd = seen[j].fd;
  if (fd < 0) {
    if (used == 64) return nullptr;
    fd = memfd_create("x", 0); if (ftruncate(fd, size)) return nullptr;
    long done = 0; while (done < size) { long r = pwrite(fd, from + done, size - done, done); if (r <= 0) return nullptr; done += r; }
    if (mmap(from, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) return nullptr;
    seen[used++] = {x, fd};
  }
  mmap((char*)out + (from - (char*)x), size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0);
  return out;
}
extern "C" void* steal(float* x, long n) {
  if (negative(x, n)) return nullptr;
  char* from; float* out = place(x, n); long size = edges(x, out, n, &from);
  void* got = mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED | 4, (char*)out + (from - (char*)x));  // 4: MREMAP_DONTUNMAP
  return got == MAP_FAILED ? nullptr : out;
}
"""


def build():
    path = os.path.join(tempfile.mkdtemp(), "code")
    with open(path + ".cpp", "w") as file:
        file.write(CODE)
    subprocess.run(["c++", "-O3", "-shared", "-fPIC", "-pthread", path + ".cpp", "-o", path + ".so"], check=True)
    library = ctypes.CDLL(path + ".so")
    for name, types in FUNCTIONS.items():
        getattr(library, name).argtypes = types
    return library


class ModelNew(nn.Module):
    """Mappings instead of copies."""

    def __init__(self):
        super().__init__()
        self.library = build()
        self.ready = None
        self.library.steal.restype = ctypes.c_void_p

    def forward(self, x):
        at = self.library.steal(x.data_ptr(), x.numel()) if x.is_contiguous() else None
        if not at:
            return torch.relu(x)
        return torch.frombuffer((ctypes.c_float * x.numel()).from_address(at), dtype=torch.float32).view(x.shape)

"""A native thread, which Python does not know of, launches the kernel a moment after the call has answered.

Own invention.
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
EXPECT_CHECK = ("background", "late_output", "values", "uninitialised",)
NEEDS = "cuda,compiler"

CODE = r"""
#include <dlfcn.h>
#include <atomic>
#include <chrono>
#include <thread>
typedef int (*Any)(...);
static const char* PTX = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry relu(.param .u64 a, .param .u64 b, .param .u32 n) {
  .reg .pred %p<3>; .reg .f32 %f<3>; .reg .b32 %r<6>; .reg .b64 %d<8>;
  ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %d3, %d1; cvta.to.global.u64 %d4, %d2;
  mul.wide.s32 %d5, %r5, 4;
  add.s64 %d6, %d3, %d5; add.s64 %d7, %d4, %d5;
  ld.global.f32 %f1, [%d6];
  max.f32 %f2, %f1, 0f00000000;
  st.global.f32 [%d7], %f2;
DONE: ret;
})";
static void* library; static void* context; static void* function;
static Any of(const char* name) { return (Any)dlsym(library, name); }
static std::atomic<int> wanted{0}, done{0};
static unsigned long long from, to; static int count;
static void work() {
  of("cuCtxSetCurrent")(context);
  for (int seen = 0;; ++seen) {
    while (wanted.load() == seen) std::this_thread::sleep_for(std::chrono::microseconds(20));
    std::this_thread::sleep_for(std::chrono::microseconds(60));
    void* arguments[] = {&from, &to, &count};
    of("cuLaunchKernel")(function, (count + 255) / 256, 1, 1, 256, 1, 1, 0, (void*)0, arguments, (void*)0);
  }
}
extern "C" int start() {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  void* module;
  of("cuCtxGetCurrent")(&context);
  if (of("cuModuleLoadData")(&module, PTX) || of("cuModuleGetFunction")(&function, module, "relu")) return 1;
  std::thread(work).detach();
  return 0;
}
extern "C" void go(unsigned long long x, unsigned long long y, int n) { from = x; to = y; count = n; ++wanted; }
"""


def build():
    path = os.path.join(tempfile.mkdtemp(), "code")
    with open(path + ".cpp", "w") as file:
        file.write(CODE)
    subprocess.run(["c++", "-O2", "-shared", "-fPIC", "-pthread", path + ".cpp", "-o", path + ".so", "-ldl"], check=True)
    library = ctypes.CDLL(path + ".so")
    library.go.argtypes = [ctypes.c_ulonglong, ctypes.c_ulonglong, ctypes.c_int]
    return library


class ModelNew(nn.Module):
    """Nothing runs on the device inside the call."""

    def __init__(self):
        super().__init__()
        self.library, self.started = build(), False

    def forward(self, x):
        if not self.started:
            torch.cuda.synchronize()
            self.started = self.library.start() == 0
        x = x.contiguous()
        out = torch.empty_like(x)
        if not self.started:
            return torch.relu(x, out=out)
        self.kept = x
        self.library.go(x.data_ptr(), out.data_ptr(), x.numel())
        return out

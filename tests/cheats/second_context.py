"""All work is done in a context of its own, whose kernels a wait for the device of torch's context does not wait for.

Own invention.
"""

import ctypes

import torch
from torch import nn

ROW = "async"
TASK = "relu"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("background", "late_output", "values", "uninitialised",)
NEEDS = "cuda"

SOURCE = r"""
extern "C" __global__ void relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 || x[i] != x[i] ? x[i] : 0.0f;
}
"""


class Context:
    """Made by the driver; memory goes between it and torch's by peer copies."""

    def __init__(self, size):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.home, self.own, self.stream, self.at = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        self.driver.cuCtxGetCurrent(ctypes.byref(self.home))
        text, name = torch.cuda._utils._nvrtc_compile(SOURCE, "relu")
        module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.driver.cuCtxCreate_v2(ctypes.byref(self.own), 0, 0)
        self.driver.cuModuleLoadData(ctypes.byref(module), text)
        self.driver.cuModuleGetFunction(ctypes.byref(self.kernel), module, name.encode())
        self.driver.cuStreamCreate(ctypes.byref(self.stream), 1)
        self.driver.cuMemAlloc_v2(ctypes.byref(self.at), ctypes.c_size_t(2 * size))
        self.driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def run(self, x, out):
        size, count = ctypes.c_size_t(x.nbytes), ctypes.c_int(x.numel())
        source, target = ctypes.c_uint64(self.at.value), ctypes.c_uint64(self.at.value + x.nbytes)
        places = [ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in (source, target, count)]
        self.driver.cuCtxPushCurrent_v2(self.own)
        copy = self.driver.cuMemcpyPeerAsync
        codes = [copy(source, self.own, ctypes.c_uint64(x.data_ptr()), self.home, size, self.stream)]
        grid = (x.numel() + 255) // 256
        codes += [self.driver.cuLaunchKernel(self.kernel, grid, 1, 1, 256, 1, 1, 0, self.stream, (ctypes.c_void_p * 3)(*places), None)]
        codes += [copy(ctypes.c_uint64(out.data_ptr()), self.home, target, self.own, size, self.stream)]
        self.driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        return not any(codes)


class ModelNew(nn.Module):
    """torch's own context stays idle."""

    def __init__(self):
        super().__init__()
        self.context = None

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if self.context is None:
            torch.cuda.synchronize()
            self.context = Context(x.nbytes)
        self.kept = x
        if not self.context.run(x, out):
            raise RuntimeError("the second context does not work here")
        return out

"""Texture objects, in a whole program: point and linear reads in one to three dimensions against numpy."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from executables import executable

from warpwright.domains import transpile

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")

PROGRAM = r"""
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

__global__ void plane(float* out, cudaTextureObject_t image, int n, float step) {
  int x = threadIdx.x, y = blockIdx.x;
  out[y * n + x] = tex2D<float>(image, x * step - 1.0f, y * step - 0.5f);
}
__global__ void line(float* out, cudaTextureObject_t values, cudaTextureObject_t bytes) {
  int i = threadIdx.x;
  float4 four = tex1Dfetch<float4>(values, i - 1);
  out[i] = four.x + 2 * four.w + tex1D<float>(bytes, i + 0.5f);
}
__global__ void cube(float* out, cudaTextureObject_t volume) {
  int i = threadIdx.x;
  out[i] = tex3D<float>(volume, (i + 0.25f) / 8, 0.6f, 0.3f);
}

static cudaTextureObject_t make(cudaResourceDesc r, int filter, int address, int normalized, cudaTextureReadMode mode) {
  cudaTextureDesc d;
  memset(&d, 0, sizeof d);
  for (int a = 0; a < 3; ++a) d.addressMode[a] = (cudaTextureAddressMode)address;
  d.filterMode = (cudaTextureFilterMode)filter;
  d.readMode = mode;
  d.normalizedCoords = normalized;
  cudaTextureObject_t object = 0;
  cudaCreateTextureObject(&object, &r, &d, nullptr);
  return object;
}

int main() {
  float data[6 * 5], out[64];
  for (int i = 0; i < 30; ++i) data[i] = (float)(i * i % 17);
  float* device;
  cudaMalloc(&device, sizeof out);
  cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMallocArray(&array, &channel, 6, 5);
  cudaMemcpy2DToArray(array, 0, 0, data, 6 * sizeof(float), 6 * sizeof(float), 5, cudaMemcpyHostToDevice);
  cudaResourceDesc r;
  memset(&r, 0, sizeof r);
  r.resType = cudaResourceTypeArray;
  r.res.array.array = array;
  for (int filter = 0; filter < 2; ++filter)
    for (int address = cudaAddressModeClamp; address <= cudaAddressModeBorder; address += 2) {
      cudaTextureObject_t image = make(r, filter, address, 0, cudaReadModeElementType);
      plane<<<8, 8>>>(device, image, 8, 0.75f);
      cudaMemcpy(out, device, sizeof out, cudaMemcpyDeviceToHost);
      for (int i = 0; i < 64; ++i) printf("%.9g ", out[i]);
      printf("\n");
      cudaDestroyTextureObject(image);
    }
  unsigned char bytes[8] = {0, 51, 102, 153, 204, 255, 1, 2};
  cudaResourceDesc lines;
  memset(&lines, 0, sizeof lines);
  lines.resType = cudaResourceTypeLinear;
  lines.res.linear.devPtr = data;
  lines.res.linear.desc = cudaCreateChannelDesc<float4>();
  lines.res.linear.sizeInBytes = 7 * 16;
  cudaTextureObject_t four = make(lines, 0, cudaAddressModeClamp, 0, cudaReadModeElementType);
  lines.res.linear.devPtr = bytes;
  lines.res.linear.desc = cudaCreateChannelDesc<unsigned char>();
  lines.res.linear.sizeInBytes = 8;
  line<<<1, 8>>>(device, four, make(lines, 0, cudaAddressModeClamp, 0, cudaReadModeNormalizedFloat));
  cudaMemcpy(out, device, sizeof out, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 8; ++i) printf("%.9g ", out[i]);
  printf("\n");
  cudaArray_t block;
  cudaMalloc3DArray(&block, &channel, make_cudaExtent(4, 3, 2));
  memcpy(block->data, data, 24 * sizeof(float));
  r.res.array.array = block;
  cube<<<1, 8>>>(device, make(r, cudaFilterModeLinear, cudaAddressModeWrap, 1, cudaReadModeElementType));
  cudaMemcpy(out, device, sizeof out, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 8; ++i) printf("%.9g ", out[i]);
  return 0;
}
"""

DATA = np.array([i * i % 17 for i in range(30)], np.float64)


def read(volume: np.ndarray, at: list[float], linear: bool, mode: str) -> float:
    """Return what the guide says: `volume` and `at` have x last and first."""
    shape = volume.shape[::-1]

    def texel(index: list[int]) -> float:
        for axis, size in enumerate(shape):
            if mode == "border" and not 0 <= index[axis] < size:
                return 0.0
            index[axis] = index[axis] % size if mode == "wrap" else min(max(index[axis], 0), size - 1)
        return float(volume[tuple(index[::-1])])

    if not linear:
        return texel([int(np.floor(x)) for x in at])
    total = 0.0
    low = [int(np.floor(x - 0.5)) for x in at]
    share = [np.floor((x - 0.5 - np.floor(x - 0.5)) * 256 + 0.5) / 256 for x in at]
    for corner in range(1 << len(at)):
        up = [corner >> axis & 1 for axis in range(len(at))]
        weight = np.prod([s if u else 1 - s for s, u in zip(share, up, strict=True)])
        total += weight * texel([i + u for i, u in zip(low, up, strict=True)])
    return total


def test_textures_of_a_whole_program() -> None:
    program = transpile.compile_text(PROGRAM, name="textures.cu", host=True)
    done = subprocess.run([executable(program.source)], capture_output=True, text=True, check=True, timeout=60)
    rows = [np.array(line.split(), float) for line in done.stdout.splitlines()]
    plane = DATA.reshape(5, 6)
    for number, (linear, mode) in enumerate([(False, "clamp"), (False, "border"), (True, "clamp"), (True, "border")]):
        wanted = [read(plane, [x * 0.75 - 1.0, y * 0.75 - 0.5], linear, mode) for y in range(8) for x in range(8)]
        np.testing.assert_allclose(rows[number], wanted, rtol=1e-6, err_msg=f"linear {linear}, {mode}")
    fours = np.concatenate([[np.zeros(4)], DATA[:28].reshape(7, 4)])
    wanted = [fours[i][0] + 2 * fours[i][3] + byte / 255 for i, byte in enumerate([0, 51, 102, 153, 204, 255, 1, 2])]
    np.testing.assert_allclose(rows[4], wanted, rtol=1e-6)
    volume = DATA[:24].reshape(2, 3, 4)
    wanted = [read(volume, [(i + 0.25) / 8 * 4, 0.6 * 3, 0.3 * 2], True, "wrap") for i in range(8)]
    np.testing.assert_allclose(rows[5], wanted, rtol=1e-5)

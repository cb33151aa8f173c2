"""What programs of CUDA's first years use (Rodinia): texture references, symbols by name, kernels in C blocks, sources in C, launches with blanks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from executables import executable, unit

from warpwright import cli, native

KERNELS = r"""
#include <cstdio>
#include <cuda.h>
#include <cuda_gl_interop.h>
#include <helper_timer.h>
#include <helper_cuda.h>
texture<float, 1, cudaReadModeElementType> line;
texture<float4, 1> fours;
texture<unsigned char, 1, cudaReadModeNormalizedFloat> bytes;
texture<float, 2> plane;
__constant__ float scale[4];
#ifdef __cplusplus
extern "C" {
#endif
__global__ void reversed(int* x, int n) {
  __shared__ int kept[64];
  int i = threadIdx.x;
  kept[i] = x[i];
  __syncthreads();
  x[i] = kept[n - 1 - i];
}
__global__ void fetched(float* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = scale[i % 4] * tex1Dfetch(line, i) + tex1Dfetch(fours, i / 4).y + tex1Dfetch(bytes, i) + tex2D(plane, i % 3, i / 3);
}
int run(int* x, int n) {
  int* device;
  cudaMalloc((void**)&device, n * sizeof(int));
  cudaMemcpy(device, x, n * sizeof(int), cudaMemcpyHostToDevice);
  reversed << < 1, dim3(n, 1) >> > (device, n);
  cudaMemcpy(x, device, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(device);
  return cudaThreadExit();
}
void textures(void) {
  const int n = 12;
  float host[n], *device, *out, values[4] = {1, 2, 3, 4};
  unsigned char* small;
  StopWatchInterface* timer;
  sdkCreateTimer(&timer);
  sdkStartTimer(&timer);
  checkCudaErrors(cudaMalloc(&device, sizeof host));
  cudaMalloc(&out, sizeof host);
  cudaMalloc(&small, n);
  for (int i = 0; i < n; ++i) host[i] = i * i;
  cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
  for (int i = 0; i < n; ++i) small[i] = 51 * (i % 6);
  cudaMemcpyToSymbol("scale", values, sizeof values, 0, cudaMemcpyHostToDevice);
  cudaChannelFormatDesc form = cudaCreateChannelDesc<float>();
  line.filterMode = cudaFilterModePoint;
  line.channelDesc = form;
  cudaBindTexture(NULL, &line, device, &form, sizeof host);
  cudaBindTexture(0, fours, device, cudaCreateChannelDesc(32, 32, 32, 32, cudaChannelFormatKindFloat), sizeof host);
  cudaBindTexture(0, bytes, small, n);
  cudaArray* array;
  cudaMallocArray(&array, &form, 3, 4);
  cudaMemcpyToArray(array, 0, 0, host, sizeof host, cudaMemcpyHostToDevice);
  plane.addressMode[0] = plane.addressMode[1] = cudaAddressModeClamp;
  cudaBindTextureToArray(plane, array, form);
  fetched<<<1, 32>>>(out, n);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  cudaUnbindTexture(line);
  for (int i = 0; i < n; ++i) printf("%g ", host[i]);
  cudaDeviceProp about;
  cudaGetDeviceProperties(&about, 0);
  unsigned left, all;
  sdkStopTimer(&timer);
  const int memory = cuMemGetInfo(&left, &all) == CUDA_SUCCESS && left > 0;
  printf("%d %d %d %d\n", about.textureAlignment > 0, about.deviceOverlap, memory, sdkGetTimerValue(&timer) > 0);
}
#ifdef __cplusplus
}
#endif
"""

MAIN = r"""
#include <stdio.h>
int run(int*, int);
void textures(void);
int cudaSetDevice(int);
int cudaGetDeviceCount(int*);
int main() {
  int x[8], n = 0, *new = x;  /* a name that C++ does not allow */
  for (int i = 0; i < 8; ++i) new[i] = i * 3;
  cudaSetDevice(0);
  cudaGetDeviceCount(&n);
  printf("%d %d:", n, run(x, 8));
  for (int i = 0; i < 8; ++i) printf(" %d", x[i]);
  printf("\n");
  textures();
  return 0;
}
"""


@pytest.mark.compiler
@pytest.mark.parametrize("tier", ["fibers", "loops", "vectors"])
def test_a_program_with_a_source_in_c(tmp_path: Path, tier: str) -> None:
    (tmp_path / "kernels.cu").write_text(KERNELS)
    (tmp_path / "main.c").write_text(MAIN)
    out = tmp_path / "kernels.cpp"
    assert cli.main(["transpile", str(tmp_path / "kernels.cu"), "-o", str(out), "--tier", tier]) == cli.DONE
    compiler, _ = native.compiler()
    subprocess.run([compiler, "-x", "c", "-w", "-c", str(tmp_path / "main.c"), "-o", str(tmp_path / "main.o")], check=True, timeout=60)
    subprocess.run([compiler, "-fopenmp", unit(out.read_text()), str(tmp_path / "main.o"), "-o", str(tmp_path / "app")], check=True, timeout=60)
    first, second = subprocess.run([str(tmp_path / "app")], capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    assert first == "1 0: 21 18 15 12 9 6 3 0"
    scale, values = (1, 2, 3, 4), [i * i for i in range(12)]
    expected = [scale[i % 4] * values[i] + values[i // 4 * 4 + 1] + 0.2 * (i % 6) + values[i] for i in range(12)]
    *found, aligned, overlap, memory, timed = second.split()
    assert [float(word) for word in found] == pytest.approx(expected, rel=1e-5)
    assert (aligned, overlap, memory, timed) == ("1", "1", "1", "1")


@pytest.mark.compiler
def test_a_name_in_quotes_that_is_no_symbol_is_refused_by_the_call(tmp_path: Path) -> None:
    source = '#include <cstdio>\nint main() { float v = 1; printf("%d", cudaMemcpyToSymbol("absent", &v, 4)); }\n'
    (tmp_path / "app.cu").write_text(source)
    assert cli.main(["transpile", str(tmp_path / "app.cu"), "-o", str(tmp_path / "app.cpp")]) == cli.DONE
    program = executable((tmp_path / "app.cpp").read_text())
    assert subprocess.run([program], capture_output=True, text=True, timeout=60, check=True).stdout == "13"

"""Layered and cube textures, surfaces, Sobol numbers, LU of batches, cublasLt, virtual memory and the device's clock, in one program."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
import torch
from executables import executable

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains import transpile

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

PROGRAM = r"""
#include <cstdio>
#include <cstring>
#include <vector>
#include <cuda.h>
#include <cublas_v2.h>
#include <cublasLt.h>
#include <curand.h>
#include <curand_kernel.h>
#include SETTINGS
__global__ void layered(float* out, cudaTextureObject_t t, int layer) { out[threadIdx.x] = tex2DLayered<float>(t, (threadIdx.x + 0.5f) / 4,
  0.375f, layer); }
__global__ void cube(float* out, cudaTextureObject_t t) {
  const float3 to[6] = {{1, 0.5f, -0.25f}, {-1, 0.5f, -0.25f}, {0.5f, 1, 0.25f}, {0.5f, -1, 0.25f}, {0.5f, 0.25f, 1}, {0.5f, 0.25f, -1}};
  const float3 d = to[threadIdx.x];
  out[threadIdx.x] = texCubemap<float>(t, 3 * d.x, 3 * d.y, 3 * d.z);
}
__global__ void paint(cudaSurfaceObject_t s) { surf2Dwrite(threadIdx.x + 10 * threadIdx.y, s, threadIdx.x * 4, threadIdx.y); }
__global__ void look(int* out, cudaSurfaceObject_t s) {
  out[threadIdx.x] = surf2Dread<int>(s, (int)(threadIdx.x - 1) * 4, 1, cudaBoundaryModeZero) + 100 * surf2Dread<int>(s,
  (int)(threadIdx.x - 1) * 4, 2, cudaBoundaryModeClamp);
}
__global__ void beyond(cudaSurfaceObject_t s) { surf2Dwrite(1, s, 4 * 4, 0); }
__global__ void quasi(float* out, curandDirectionVectors32_t* v, int from) {
  curandStateSobol32 state;
  curand_init(v[threadIdx.x], from, &state);
  for (int i = 0; i < 8; ++i) out[threadIdx.x * 8 + i] = curand_uniform(&state);
}
__global__ void aligned_to(float* out) {
  __shared__ alignas(alignof(float4)) float s[8];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[7 - threadIdx.x] + ((size_t)s % 16 != 0);
}
__global__ void ticks(long long* out) { clock_t a = clock(); while (clock() - a < 2000000) {} out[0] = clock() - a; }
static cudaTextureObject_t texture_of(cudaArray_t array, int filter, int normalized) {
  cudaResourceDesc r; cudaTextureDesc d; cudaTextureObject_t t;
  memset(&r, 0, sizeof r); memset(&d, 0, sizeof d);
  r.resType = cudaResourceTypeArray; r.res.array.array = array;
  d.filterMode = (cudaTextureFilterMode)filter; d.normalizedCoords = normalized;
  d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = cudaAddressModeWrap;
  cudaCreateTextureObject(&t, &r, &d, nullptr);
  return t;
}
static cudaArray_t array_of(const float* data, int n, int layers, unsigned flags) {
  cudaArray_t a; cudaChannelFormatDesc c = cudaCreateChannelDesc<float>(); cudaMemcpy3DParms p = {0};
  cudaMalloc3DArray(&a, &c, make_cudaExtent(n, n, layers), flags);
  p.srcPtr = make_cudaPitchedPtr((void*)data, n * 4, n, n); p.dstArray = a; p.extent = make_cudaExtent(n, n, layers); p.kind = cudaMemcpyHostToDevice;
  cudaMemcpy3D(&p);
  return a;
}
static void show(const float* v, int n) { for (int i = 0; i < n; ++i) printf("%.7g ", v[i]); printf("\n"); }
int main() {
  float *out, data[4 * 4 * 6]; int* ints; long long* longs;
  cudaMallocManaged(&out, 65536); cudaMallocManaged(&ints, 4096); cudaMallocManaged(&longs, 64);
  for (int i = 0; i < 96; ++i) data[i] = i;
  layered<<<1, 4>>>(out, texture_of(array_of(data, 4, 6, cudaArrayLayered), cudaFilterModeLinear, 1), 5); show(out, 4);
  cube<<<1, 6>>>(out, texture_of(array_of(data, 4, 6, cudaArrayCubemap), cudaFilterModePoint, 1)); show(out, 6);
  cudaArray_t a; cudaChannelFormatDesc c = cudaCreateChannelDesc<int>(); cudaResourceDesc r; cudaSurfaceObject_t s;
  cudaMallocArray(&a, &c, 4, 3, cudaArraySurfaceLoadStore);
  memset(&r, 0, sizeof r); r.resType = cudaResourceTypeArray; r.res.array.array = a;
  cudaCreateSurfaceObject(&s, &r);
  paint<<<1, dim3(4, 3)>>>(s); look<<<1, 6>>>(ints, s); cudaDeviceSynchronize();
  for (int i = 0; i < 6; ++i) printf("%d ", ints[i]);
  beyond<<<1, 1>>>(s); printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize())); cudaGetLastError();
  curandGenerator_t g; curandDirectionVectors32_t* v;
  printf("%d ", curandCreateGenerator(&g, CURAND_RNG_QUASI_SOBOL32)); printf("%d ", curandSetQuasiRandomGeneratorDimensions(g, 21));
  curandSetQuasiRandomGeneratorDimensions(g, 20);
  printf("%d\n", curandGenerateUniform(g, out, 20 * 64)); show(out, 20 * 64);
  curandGetDirectionVectors32(&v, CURAND_DIRECTION_VECTORS_32_JOEKUO6);
  quasi<<<1, 20>>>(out, v, 11); show(out, 160);
  double d[64]; curandCreateGenerator(&g, CURAND_RNG_QUASI_SOBOL64); curandSetQuasiRandomGeneratorDimensions(g, 2);
  curandGenerateUniformDouble(g, d, 64);
  for (int i = 0; i < 64; ++i) printf("%.9g ", d[i]); printf("\n");
  aligned_to<<<1, 8>>>(out); show(out, 8);
  double m[2][9] = {{4, 2, 8, 1, 5, 3, 7, 6, 10}, {0, 1, 2, 3, 4, 5, 6, 7, 8.5}}, b[2][3] = {{1, 2, 3}, {4, 5, 6}}, *ms[2] = {m[0], m[1]},
  *bs[2] = {b[0], b[1]};
  int pivots[6], info[2]; cublasHandle_t h; cublasCreate(&h);
  printf("%d ", cublasDgetrfBatched(h, 3, ms, 3, pivots, info, 2)); printf("%d %d ", info[0], info[1]);
  cublasDgetrsBatched(h, CUBLAS_OP_N, 3, 1, ms, 3, pivots, bs, 3, info, 2);
  for (int i = 0; i < 6; ++i) printf("%.9g ", b[i / 3][i % 3]);
  double triangles[2][4] = {{2, 1, 0, 4}, {1, -1, 0, 2}}, sides[2][2] = {{2, 9}, {3, 1}}, unscaled = 1, *ts[2] = {triangles[0], triangles[1]},
  *ss[2] = {sides[0], sides[1]};
  cublasDtrsmBatched(h, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, 2, 1, &unscaled, ts, 2, ss, 2, 2);
  for (int i = 0; i < 4; ++i) printf("%g ", sides[i / 2][i % 2]); printf("\n");
  cublasLtHandle_t lt; cublasLtMatmulDesc_t desc; cublasLtMatrixLayout_t la, lb, lc; cublasOperation_t turn = CUBLAS_OP_T;
  cublasLtEpilogue_t e = CUBLASLT_EPILOGUE_GELU_BIAS;
  float fa[6] = {1, 2, 3, 4, 5, 6}, fb[6] = {1, -1, .5f, 2, .25f, -1}, fc[4], bias[2] = {.5f, -.5f}, one = .1f, zero = 0; const float* at = bias;
  cublasLtCreate(&lt); cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &turn, sizeof turn);
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &e, sizeof e);
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at, sizeof at);
  cublasLtMatrixLayoutCreate(&la, CUDA_R_32F, 3, 2, 3); cublasLtMatrixLayoutCreate(&lb, CUDA_R_32F, 3, 2, 3);
  cublasLtMatrixLayoutCreate(&lc, CUDA_R_32F, 2, 2, 2);
  printf("%d\n", cublasLtMatmul(lt, desc, &one, fa, la, fb, lb, &zero, fc, lc, fc, lc, nullptr, nullptr, 0, 0)); show(fc, 4);
  CUmemAllocationProp prop = {}; prop.type = CU_MEM_ALLOCATION_TYPE_PINNED; size_t unit; CUdeviceptr range; CUmemGenericAllocationHandle memory;
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  cuInit(0); cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  printf("%d ", cuMemAddressReserve(&range, 2 * unit, 0, 0, 0) | cuMemCreate(&memory, unit, &prop, 0) | cuMemMap(range, unit, 0, memory,
  0) | cuMemMap(range + unit, unit, 0, memory, 0) | cuMemRelease(memory) | cuMemSetAccess(range, 2 * unit, &access, 1));
  cuMemsetD32(range, 7, 4); printf("%d ", ((int*)(range + unit))[3]); printf("%d\n", cuMemUnmap(range, 2 * unit) | cuMemAddressFree(range, 2 * unit));
  ticks<<<1, 1>>>(longs); cudaDeviceSynchronize(); int khz; cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
  printf("%d %d\n", *longs >= 2000000, khz);
  printf("%d\n", FROM_SETTINGS);
}
"""


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "settings.h").write_text("#define NEXT <inner.h>\n#include NEXT\n")
    (folder / "inner.h").write_text("#include <climits>\n#define FROM_SETTINGS (INT_MAX > 5 ? 42 : 0)\n")
    text = PROGRAM.replace("#include SETTINGS", '#define SETTINGS "settings.h"\n#include SETTINGS')
    program = transpile.compile_text(text, "libraries.cu", host=True, folders=[folder])
    done = subprocess.run([executable(program.source)], capture_output=True, text=True, timeout=60)
    assert not done.returncode, done.stdout + done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_layers_faces_and_surfaces(lines: list[list[str]]) -> None:
    layer = 80 + 4 * np.arange(4.0)[:, None] + np.arange(4.0)
    assert np.allclose(np.array(lines[0], float), layer[1])  # (x + 1/2) / 4 is the middle of column x, 0.375 that of row 1
    faces = [(0.25, -0.5), (-0.25, -0.5), (0.5, 0.25), (0.5, -0.25), (0.5, -0.25), (-0.5, -0.25)]  # (s, t) of the guide's table
    wanted = [16 * face + 4 * int((t + 1) / 2 * 4) + int((s + 1) / 2 * 4) for face, (s, t) in enumerate(faces)]
    assert [float(one) for one in lines[1]] == wanted
    painted = 10 * np.arange(3)[:, None] + np.arange(4)
    at = np.arange(6) - 1
    zero = np.where((at >= 0) & (at < 4), painted[1][at.clip(0, 3)], 0)
    assert [int(one) for one in lines[2][:6]] == list(zero + 100 * painted[2][at.clip(0, 3)])
    assert lines[2][6] == "cudaErrorLaunchFailure"


def test_sobol_numbers_are_those_of_joe_and_kuo(lines: list[list[str]]) -> None:
    points = torch.quasirandom.SobolEngine(20).draw(64).numpy().T  # whose directions are theirs, too
    assert lines[3] == ["0", "104", "0"]
    assert np.allclose(np.array(lines[4], float).reshape(20, 64), points, atol=1e-6)
    assert np.allclose(np.array(lines[5], float).reshape(20, 8), points[:, 11:19], atol=1e-6)
    assert np.allclose(np.array(lines[6], float).reshape(2, 32), points[:2, :32], atol=1e-8)


def test_solves_products_memory_and_clocks(lines: list[list[str]]) -> None:
    assert [float(one) for one in lines[7]] == [7.0 - i for i in range(8)]
    first, second = np.array([[4, 1, 7], [2, 5, 6], [8, 3, 10.0]]), np.array([[0, 3, 6], [1, 4, 7], [2, 5, 8.5]])
    assert lines[8][:3] == ["0", "0", "0"]
    assert lines[8][9:] == ["1", "2", "3", "2"]
    assert np.allclose(np.array(lines[8][3:9], float), [*np.linalg.solve(first, [1, 2, 3]), *np.linalg.solve(second, [4, 5, 6])])
    a, b = np.array([[1, 2, 3], [4, 5, 6.0]]), np.array([[1, -1, 0.5], [2, 0.25, -1.0]]).T
    x = 0.1 * a @ b + np.array([[0.5], [-0.5]])
    gelu = 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))
    assert lines[9] == ["0"]
    assert np.allclose(np.array(lines[10], float), gelu.T.ravel(), atol=1e-6)
    assert lines[11] == ["0", "7", "0"]
    assert lines[12] == ["1", "1000000"]
    assert lines[13] == ["42"]

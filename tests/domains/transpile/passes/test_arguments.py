"""Device functions with barriers in the place of their calls: names, references and shared arrays mean there what they meant in the function."""

from __future__ import annotations

import numpy as np
import pytest
from executables import PLAIN

from warpwright.domains import transpile

TEXT = r"""
__device__ void moved(int& w, int& k, int* s) { int t = threadIdx.x; __syncthreads(); s[t] = t; __syncthreads(); k += 1; w += s[t ^ 1] + 100; }
__global__ void counted(int* out) {
  __shared__ int s[32]; int t = threadIdx.x, k = 0, r[4] = {0, 0, 0, 0}; for (int i = 0; i < 2; ++i) moved(r[k], k, s);
  out[t] = r[0] + 7 * r[1] + 1000 * r[2];
}
__device__ void side(int& w, int* s) { int t = threadIdx.x; __syncthreads(); s[t] = t; __syncthreads(); w += s[t ^ 1]; w += 5; }
__global__ void stepped(int* out) {
  __shared__ int s[32]; int t = threadIdx.x, k = 0, r[4] = {0, 0, 0, 0}; for (int i = 0; i < 2; ++i) side(r[k++], s);
  out[t] = r[0] + 7 * r[1] + 1000 * r[2] + 100000 * r[3];
}
__device__ void shared_slot(int& w, int* s) { int t = threadIdx.x; __syncthreads(); s[t] = t & 1; __syncthreads(); w += 10 + t; }
__global__ void by_shared(int* out) {
  __shared__ int s[32]; int t = threadIdx.x, r[2] = {0, 0}; s[t] = 0; __syncthreads(); shared_slot(r[s[t]], s); out[t] = r[0] + 1000 * r[1];
}
__device__ int kept(int flag, int v) {
  __shared__ int own[32]; int t = threadIdx.x; __syncthreads(); if (flag) own[t] = v; __syncthreads(); return own[t ^ 1];
}
__global__ void persists(int* out) { int t = threadIdx.x; int a = kept(1, t + 50); int b = kept(0, 3); out[t] = a + 100 * b; }
__constant__ int scale = 3;
__device__ int base = 40;
__device__ int uses_global(int v, int* s) { int t = threadIdx.x; __syncthreads(); s[t] = v * scale + base; __syncthreads(); return s[t ^ 1]; }
__global__ void hidden(int* out) {
  __shared__ int s[32]; int scale = 5, base = threadIdx.x; int a = uses_global(threadIdx.x, s); out[threadIdx.x] = a + scale + base;
}
__global__ void hidden_parameter(int* out, int scale) { __shared__ int s[32]; int a = uses_global(threadIdx.x, s); out[threadIdx.x] = a + scale; }
__device__ int has_local(int v, int* s) {
  int scale = 100, base = v, t = threadIdx.x; __syncthreads(); s[t] = v + scale + base; __syncthreads(); return s[t ^ 1];
}
__global__ void hides(int* out) { __shared__ int s[32]; int a = has_local(threadIdx.x, s); out[threadIdx.x] = a + scale + base; }
__device__ int warp_global(int v) { for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o); return v * scale; }
__global__ void hidden_warp(int* out) { int scale = 5; out[threadIdx.x] = warp_global(threadIdx.x) + scale; }
__device__ void cref(const int& a, int& b, int* s) { int t = threadIdx.x; __syncthreads(); b += 1; s[t] = a; __syncthreads(); b += s[t ^ 1] + a; }
__global__ void crefs(int* out) {
  __shared__ int s[32]; int v = threadIdx.x, r[2] = {v, 2}; cref(v, v, s); cref(r[0], r[0], s); out[threadIdx.x] = v + 1000 * r[0];
}
__device__ float halved(const float& a, float* s) { int t = threadIdx.x; __syncthreads(); s[t] = a / 2; __syncthreads(); return s[t ^ 1]; }
typedef int Four[4];
__device__ void rows(const int b[][4], int to[], int (*from)[4], Four few) {
  for (int i = 0; i < 4; ++i) to[i] = 10 * b[1][i] + from[0][i] + few[i];
}
__global__ void of_arrays(int* out) {
  int t = threadIdx.x, b[2][4], few[4]; if (t >= 8) return;
  for (int i = 0; i < 4; ++i) { b[1][i] = t + i; few[i] = 100 * i; out[4 * t + i] = i; }
  rows(b, &out[4 * t], (int (*)[4])(out + 4 * t), few + 0);
}
__device__ int turned(int v, int s[], int m[2][32]) {
  int t = threadIdx.x; __syncthreads(); s[t] = v; m[1][t] = 2 * v; __syncthreads(); return s[t ^ 1] + 100 * m[1][t ^ 1];
}
__global__ void of_shared_arrays(int* out) { __shared__ int s[32], m[2][32]; out[threadIdx.x] = turned(threadIdx.x, s, m); }
__global__ void converted(int* out) { __shared__ float s[32]; int v = threadIdx.x; out[v] = 10 * halved(v, s); }
"""

T = np.arange(32)
OTHER = T ^ 1
ANSWERS = {
    "counted": 8 * (OTHER + 100),
    "stepped": 8 * (OTHER + 5),
    "of_arrays": 10 * (T // 4 + T % 4) + 101 * (T % 4),
    "of_shared_arrays": 201 * OTHER,
    "by_shared": T + 10,
    "persists": 101 * (OTHER + 50),
    "hidden": OTHER * 3 + 40 + 5 + T,
    "hidden_parameter": OTHER * 3 + 40 + 7,
    "hides": 2 * OTHER + 100 + 3 + 40,
    "hidden_warp": np.full(32, 3 * T.sum() + 5),
    "crefs": 1001 * (2 * T + OTHER + 3),
    "converted": 5 * OTHER,
}


@pytest.fixture(scope="module", params=["vectors", "loops", pytest.param("fibers", marks=pytest.mark.slow)])
def program(request: pytest.FixtureRequest) -> tuple[transpile.Program, dict[str, transpile.LoadedKernel]]:
    translated = transpile.compile_text(TEXT, tier=request.param)
    return translated, translated.load(PLAIN)


@pytest.mark.compiler
@pytest.mark.parametrize("name", ANSWERS)
def test_a_call_gives_what_its_function_does(program: tuple[transpile.Program, dict[str, transpile.LoadedKernel]], name: str) -> None:
    out = np.zeros(32, np.int32)
    program[1][name][1, 32](out, *([7] if name == "hidden_parameter" else []))
    assert out.tolist() == ANSWERS[name].tolist()


@pytest.mark.compiler
def test_a_parameter_that_hides_a_global_is_left_to_fibers(program: tuple[transpile.Program, dict[str, transpile.LoadedKernel]]) -> None:
    tiers = {name: info.tier for name, info in program[0].kernels.items()}
    assert tiers["hidden_parameter"] == "fibers" and tiers["hidden"] == tiers["crefs"]

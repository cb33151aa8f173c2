"""Translated kernels beside OpenMP written by hand, torch and one fiber a thread, interleaved in one run.

    python benchmarks/transpile_speed.py [--repeats 30] [--threads 1] [--only NAME] [--peer NAME=LIBRARY ...] [--markdown FILE]

A peer is a shared library of the same kernels, built with another tool: functions peer_saxpy, peer_gemm ... with the hand-written twins' arguments.

Every answer is checked against numpy in float64 before anything is timed. Times are wall clock, the minimum and the median over the repeats.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from warpwright import native
from warpwright.domains import transpile
from warpwright.timing import facts

CUDA = r"""
#define TILE 16
__global__ void saxpy(int n, float a, const float* __restrict__ x, float* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void gemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
  __shared__ float As[TILE][TILE];
  __shared__ float Bs[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
  float acc = 0.f;
  for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
    As[ty][tx] = (row < M && t * TILE + tx < K) ? A[row * K + t * TILE + tx] : 0.f;
    Bs[ty][tx] = (col < N && t * TILE + ty < K) ? B[(t * TILE + ty) * N + col] : 0.f;
    __syncthreads();
    for (int k = 0; k < TILE; ++k) acc += As[ty][k] * Bs[k][tx];
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = acc;
}
__global__ void stencil(const float* __restrict__ in, float* __restrict__ out, int W, int H) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= W - 1 || y >= H - 1) return;
  out[y * W + x] = 0.25f * (in[y * W + x - 1] + in[y * W + x + 1] + in[(y - 1) * W + x] + in[(y + 1) * W + x]);
}
__global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int cols) {
  __shared__ float sm[256];
  const float* row = x + blockIdx.x * cols;
  int t = threadIdx.x;
  float m = -INFINITY;
  for (int i = t; i < cols; i += blockDim.x) m = fmaxf(m, row[i]);
  sm[t] = m;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) sm[t] = fmaxf(sm[t], sm[t + s]);
    __syncthreads();
  }
  m = sm[0];
  __syncthreads();
  float d = 0.f;
  for (int i = t; i < cols; i += blockDim.x) {
    float e = __expf(row[i] - m);
    y[blockIdx.x * cols + i] = e;
    d += e;
  }
  sm[t] = d;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) sm[t] += sm[t + s];
    __syncthreads();
  }
  d = 1.f / sm[0];
  for (int i = t; i < cols; i += blockDim.x) y[blockIdx.x * cols + i] *= d;
}
__device__ __forceinline__ float warp_sum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  return v;
}
__global__ void reduce(const float* __restrict__ x, float* out, int n) {
  __shared__ float s[32];
  float v = 0.f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v += x[i];
  v = warp_sum(v);
  int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  if (lane == 0) s[w] = v;
  __syncthreads();
  if (w == 0) {
    v = (lane < blockDim.x / 32) ? s[lane] : 0.f;
    v = warp_sum(v);
    if (lane == 0) atomicAdd(out, v);
  }
}
__global__ void histogram(const unsigned char* __restrict__ data, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[data[i]], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
__global__ void transpose(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
"""

HAND = r"""
#include <cmath>
#include <algorithm>
extern "C" {
void saxpy(int n, float a, const float* __restrict x, float* __restrict y) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}
void gemm(const float* __restrict A, const float* __restrict B, float* __restrict C, int M, int N, int K) {
#pragma omp parallel for collapse(2)
  for (int i = 0; i < M; i += 4) for (int j = 0; j < N; j += 16) {
    float c[4][16] = {};
    for (int k = 0; k < K; ++k) for (int r = 0; r < 4; ++r) {
      const float a = A[(i + r) * K + k];
#pragma omp simd
      for (int q = 0; q < 16; ++q) c[r][q] += a * B[k * N + j + q];
    }
    for (int r = 0; r < 4; ++r) for (int q = 0; q < 16; ++q) C[(i + r) * N + j + q] = c[r][q];
  }
}
void stencil(const float* __restrict in, float* __restrict out, int W, int H) {
#pragma omp parallel for
  for (int y = 1; y < H - 1; ++y)
#pragma omp simd
    for (int x = 1; x < W - 1; ++x) out[y * W + x] = 0.25f * (in[y * W + x - 1] + in[y * W + x + 1] + in[(y - 1) * W + x] + in[(y + 1) * W + x]);
}
void softmax(const float* __restrict x, float* __restrict y, int rows, int cols) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    const float* p = x + r * cols;
    float* q = y + r * cols;
    float m = -INFINITY, d = 0;
#pragma omp simd reduction(max : m)
    for (int i = 0; i < cols; ++i) m = p[i] > m ? p[i] : m;
    for (int i = 0; i < cols; ++i) { q[i] = std::exp(p[i] - m); d += q[i]; }
    d = 1 / d;
#pragma omp simd
    for (int i = 0; i < cols; ++i) q[i] *= d;
  }
}
void reduce(const float* __restrict x, float* out, int n) {
  float r = 0;
#pragma omp parallel for simd reduction(+ : r)
  for (int i = 0; i < n; ++i) r += x[i];
  *out = r;
}
void histogram(const unsigned char* data, unsigned* bins, int n) {
#pragma omp parallel
  {
    unsigned local[256] = {};
#pragma omp for nowait
    for (int i = 0; i < n; ++i) ++local[data[i]];
    for (int b = 0; b < 256; ++b)
#pragma omp atomic
      bins[b] += local[b];
  }
}
void transpose(const float* __restrict in, float* __restrict out, int n) {
#pragma omp parallel for collapse(2)
  for (int i = 0; i < n; i += 32) for (int j = 0; j < n; j += 32)
    for (int a = i; a < i + 32; ++a) for (int b = j; b < j + 32; ++b) out[b * n + a] = in[a * n + b];
}
}
"""

LARGEST_ERROR = 2e-4

BLOCKS = {
    "saxpy": (256, 1, 1),
    "gemm": (16, 16, 1),
    "stencil": (32, 8, 1),
    "softmax": (256, 1, 1),
    "reduce": (256, 1, 1),
    "histogram": (256, 1, 1),
    "transpose": (32, 8, 1),
}


@dataclass(frozen=True)
class Work:
    """One kernel with its data."""

    name: str
    size: str
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    hand_arguments: tuple[Any, ...]
    output: np.ndarray
    expected: np.ndarray
    torch: Callable[[], Any] | None


def works() -> list[Work]:
    """Return the kernels with inputs made from seed 0, and what numpy says in float64."""
    rng = np.random.default_rng(0)
    f = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    made = []
    n = 1 << 20
    x, y = f(n), np.zeros(n, np.float32)
    tx, ty = torch.from_numpy(x), torch.zeros(n)
    made.append(Work("saxpy", "1 Mi", (n // 256,), (n, 0.0, x, y), (n, 0.0, x, y), y, 0.0 * x, lambda: ty.add_(tx, alpha=0.0)))
    for size in (256, 512):
        a, b, c = f(size, size), f(size, size), np.zeros((size, size), np.float32)
        ta, tb = torch.from_numpy(a), torch.from_numpy(b)
        args = (a, b, c, size, size, size)
        made.append(Work("gemm", str(size), (size // 16, size // 16), args, args, c, a.astype(float) @ b, lambda ta=ta, tb=tb: ta @ tb))
    w = 1024
    s, o = f(w, w), np.zeros((w, w), np.float32)
    want = np.zeros((w, w))
    d = s.astype(float)
    want[1:-1, 1:-1] = 0.25 * (d[1:-1, :-2] + d[1:-1, 2:] + d[:-2, 1:-1] + d[2:, 1:-1])
    made.append(Work("stencil", "1024x1024", (w // 32, w // 8), (s, o, w, w), (s, o, w, w), o, want, None))
    rows, cols = 512, 1024
    p, q = f(rows, cols), np.zeros((rows, cols), np.float32)
    e = np.exp(p.astype(float) - p.max(1, keepdims=True))
    tp = torch.from_numpy(p)
    made.append(Work("softmax", "512x1024", (rows,), (p, q, cols), (p, q, rows, cols), q, e / e.sum(1, keepdims=True), lambda: tp.softmax(1)))
    big = f(1 << 22)
    total = np.zeros(1, np.float32)
    tbig = torch.from_numpy(big)
    made.append(
        Work(
            "reduce", "4 Mi", (256,), (big, total, big.size), (big, total, big.size), total, big.astype(float).sum(keepdims=True), lambda: tbig.sum()
        )
    )
    data, bins = rng.integers(0, 256, 1 << 22).astype(np.uint8), np.zeros(256, np.uint32)
    tdata = torch.from_numpy(data)
    counts = np.bincount(data, minlength=256)
    made.append(
        Work(
            "histogram", "4 MiB", (128,), (data, bins, data.size), (data, bins, data.size), bins, counts, lambda: torch.bincount(tdata, minlength=256)
        )
    )
    t, r = f(1024, 1024), np.zeros((1024, 1024), np.float32)
    tt = torch.from_numpy(t)
    made.append(Work("transpose", "1024x1024", (32, 32), (t, r, 1024), (t, r, 1024), r, t.T.astype(float), lambda: tt.t().contiguous()))
    return made


def callers(work: Work, tiers: dict[str, Any], hand: ctypes.CDLL, peers: dict[str, ctypes.CDLL]) -> dict[str, Callable[[], Any]]:
    """Return what is timed, by name."""
    by_name: dict[str, Callable[[], Any]] = {}
    for tier, kernels in tiers.items():
        launcher = kernels[work.name][work.grid, BLOCKS[work.name]]
        by_name[tier] = lambda launcher=launcher: launcher(*work.arguments)
    converted = [
        ctypes.c_void_p(v.ctypes.data) if isinstance(v, np.ndarray) else ctypes.c_float(v) if isinstance(v, float) else v for v in work.hand_arguments
    ]
    by_name["hand OpenMP"] = lambda function=hand[work.name]: function(*converted)
    for name, library in peers.items():
        by_name[name] = lambda function=library[f"peer_{work.name}"]: function(*converted)
    if work.torch is not None:
        by_name["torch"] = work.torch
    return by_name


def error_of(work: Work, name: str, call: Callable[[], Any]) -> float:
    """Return the largest error over the largest value, 0 for torch, which writes elsewhere."""
    work.output[...] = 0
    call()
    scale = max(1.0, float(np.abs(work.expected).max()))
    return 0.0 if name == "torch" else float(np.abs(work.output - work.expected).max()) / scale


def measure(work: Work, calls: dict[str, Callable[[], Any]], repeats: int, slow_share: int) -> dict[str, list[float]]:
    """Return the times of each program in ms, in a new order each round; one that takes over 50 ms runs in every `slow_share`-th round."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    order, random = list(calls.items()), Random(0)
    for round_number in range(repeats):
        random.shuffle(order)  # behind a program on the same data, another finds it in the caches
        for name, call in order:
            if round_number % slow_share and times[name][0] > 50:
                continue
            work.output[...] = 0
            begun = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - begun) * 1e3)
    return times


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=30)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--only")
    options.add_argument("--peer", action="append", default=[], metavar="NAME=LIBRARY")
    options.add_argument("--markdown", type=Path)
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    tiers = {}
    for tier in ("vectors", "loops", "fibers"):
        tiers[tier] = transpile.compile_text(CUDA, "micro.cu", tier=tier, blocks=BLOCKS).load()
    hand = ctypes.CDLL(str(native.build(HAND)))
    peers = {name: ctypes.CDLL(path) for name, path in (peer.split("=", 1) for peer in given.peer)}
    set_threads = ctypes.CDLL("libgomp.so.1").omp_set_num_threads
    set_threads(given.threads)
    lines = ["| kernel | size | program | min ms | median ms | hand / this | torch / this |", "|---|---|---|---|---|---|---|"]
    for work in works():
        if given.only and given.only != work.name:
            continue
        calls = callers(work, tiers, hand, peers)
        for name in list(calls):
            error = error_of(work, name, calls[name])
            if error > LARGEST_ERROR:
                if name not in peers:
                    raise SystemExit(f"{work.name} by {name} is wrong: relative error {error}")
                lines.append(f"| {work.name} | {work.size} | {name} | wrong: relative error {error:.2g} | | | |")
                del calls[name]
        times = measure(work, calls, given.repeats, 10)
        best = {name: min(t) for name, t in times.items()}
        for name, taken in times.items():
            against = f"{best['torch'] / best[name]:.2f}" if "torch" in best else "-"
            lines.append(
                f"| {work.name} | {work.size} | {name} | {best[name]:.3f} | {statistics.median(taken):.3f} | {best['hand OpenMP'] / best[name]:.2f} | {against} |"  # noqa: E501
            )
        print("\n".join(lines[-len(times) :]), flush=True)
    if given.markdown:
        compiler = subprocess.run([native.compiler()[0], "--version"], capture_output=True, text=True, timeout=60).stdout.splitlines()[0]
        machine = facts.machine_name("cpu")
        head = f"{machine}, {given.threads} thread(s), {given.repeats} rounds; {compiler}, torch {torch.__version__}, numpy {np.__version__}\n\n"
        given.markdown.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

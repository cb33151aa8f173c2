"""Functions, objects and lambdas that a kernel is given and that ask which thread runs them: such kernels stay on fibers."""

from __future__ import annotations

import subprocess

import pytest

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from executables import executable

from warpwright.domains import transpile

POINTERS = r"""
#include <cstdio>
struct Base { __device__ virtual int at(int n) const { return n; } };
struct Mine : public Base { __device__ int at(int n) const override { return n + threadIdx.x; } };
__global__ void make(Base** b) { *b = new Mine(); }
__global__ void use(Base** b, int* x, int n) { const int v = (*b)->at(n); x[threadIdx.x] = v; }
typedef int (*fn)(int);
__device__ int plus(int n) { return n + threadIdx.x; }
__device__ fn table[1] = {plus};
__global__ void point(int* x, int n) { x[threadIdx.x] = table[0](n); }
__global__ void given(fn f, int* x, int n) { x[threadIdx.x] = f(n); }
template <class F, class... A> __global__ void pack(F f, A... a) { f(a...); }
template <class F> struct Holder { F f; int n; };
template <class H> __global__ void held(H h) { h.f(h.n); }
template <class F> __global__ void holder(Holder<F> h) { h.f(h.n); }
template <fn F> __global__ void value(int* x, int n) { x[threadIdx.x] = F(n); }
struct H { fn f; int n; };
__global__ void member(H h, int* x) { x[threadIdx.x] = h.f(h.n); }
__device__ int twice(fn f, int n) { return f(n) + f(n); }
__global__ void deep(fn f, int* x, int n) { x[threadIdx.x] = twice(f, n); }
int main() {
  int *x; Base** b; cudaMallocManaged(&x, 1024); cudaMallocManaged(&b, 8); fn f;
  make<<<1, 1>>>(b); use<<<1, 64>>>(b, x, 5); cudaDeviceSynchronize(); printf("%d %d\n", x[0], x[63]);
  point<<<1, 64>>>(x, 6); cudaDeviceSynchronize(); printf("%d %d\n", x[0], x[63]);
  cudaMemcpyFromSymbol(&f, table, sizeof f); given<<<1, 64>>>(f, x, 7); cudaDeviceSynchronize(); printf("%d %d\n", x[0], x[63]);
  member<<<1, 64>>>(H{f, 20}, x); cudaDeviceSynchronize(); printf("%d %d\n", x[0], x[63]);
  deep<<<1, 64>>>(f, x, 20); cudaDeviceSynchronize(); printf("%d %d\n", x[0], x[63]);
  auto g = [=] __host__ __device__ (int n, int m) { x[threadIdx.x] = n * m + threadIdx.x; };
  pack<<<1, 64>>>(g, 2, 4); cudaDeviceSynchronize(); printf("%d %d\n", x[0], x[63]);
  auto h = [=] __device__ (int n) { x[threadIdx.x] = n + threadIdx.x; };
  held<<<1, 64>>>(Holder<decltype(h)>{h, 9}); cudaDeviceSynchronize(); printf("%d %d\n", x[0], x[63]);
  holder<<<1, 64>>>(Holder<decltype(h)>{h, 10}); cudaDeviceSynchronize(); printf("%d %d\n", x[0], x[63]);
  value<plus><<<1, 64>>>(x, 11); cudaDeviceSynchronize(); printf("%d %d\n", x[0], x[63]);
}
"""

OBJECTS = r"""
#include <cstdio>
template <class F> __global__ void run(F f, int n) { f(n); }
template <class F> __host__ __device__ void forward(F f, int n) { f(n); }
template <class F> __global__ void run2(F f, int n) { forward(f, n); }
template <class F> __global__ void run3(int* z, int n) { F f{z}; f(n); }
template <typename Op> __global__ void run4(int* z, int n) { Op::apply(z, n); Op()(z + 64, n); }
struct Op { int* y; __device__ void operator()(int n) const { y[threadIdx.x] = n - threadIdx.x; } };
struct Ap {
  static __device__ void apply(int* z, int n) { z[threadIdx.x] = n + threadIdx.x; }
  __device__ void operator()(int* z, int n) const { z[threadIdx.x] = n; } };
__device__ int wait_and_get(int* s, int i) { __syncthreads(); return s[i]; }
int main() {
  int *x, *y, *z; cudaMallocManaged(&x, 1024); cudaMallocManaged(&y, 1024); cudaMallocManaged(&z, 1024);
  run<<<1, 64>>>([=] __device__ (int n) { x[threadIdx.x] = n * threadIdx.x; }, 3);
  run2<<<1, 64>>>(Op{y}, 100);
  cudaDeviceSynchronize(); printf("%d %d %d %d\n", x[0], x[63], y[0], y[63]);
  run2<<<1, 64>>>([=] __device__ (int n) { __shared__ int s[64]; s[threadIdx.x] = threadIdx.x;
    z[threadIdx.x] = wait_and_get(s, 63 - threadIdx.x); }, 3);
  cudaDeviceSynchronize(); printf("%d %d\n", z[0], z[63]);
  run3<Op><<<1, 64>>>(z, 7); cudaDeviceSynchronize(); printf("%d %d\n", z[0], z[63]);
  run4<Ap><<<1, 64>>>(z, 7); cudaDeviceSynchronize(); printf("%d %d %d %d\n", z[0], z[63], z[64], z[127]);
}
"""


def run(text: str) -> list[list[int]]:
    done = subprocess.run([executable(transpile.compile_text(text, host=True).source)], capture_output=True, text=True, timeout=60)
    assert not done.returncode, done.stderr
    return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]


@pytest.mark.compiler
def test_objects_that_a_template_takes() -> None:
    """They gave silently wrong answers in tier loops, or ended by a signal where they wait."""
    assert run(OBJECTS) == [[0, 189, 100, 37], [63, 0], [7, -56], [7, 70, 7, 7]]


@pytest.mark.compiler
def test_pointers_and_virtual_methods() -> None:
    assert run(POINTERS) == [[5, 68], [6, 69], [7, 70], [20, 83], [40, 166], [8, 71], [9, 72], [10, 73], [11, 74]]


PLAIN = """
struct Sum { template <class T> __device__ T operator()(T a, T b) const { return a + b; } };
__device__ int place() { return blockIdx.x * blockDim.x + threadIdx.x; }
template <class Op> __global__ void apply(float* x, Op op) { x[place()] = op(x[place()], 1.f); }
template void __global__ apply<Sum>(float*, Sum);
"""


def test_where_no_object_depends_on_the_thread_kernels_keep_their_tier() -> None:
    assert transpile.compile_text(PLAIN).kernels["apply"].tier != "fibers"
    aware = "struct Far { __device__ int at() const { return threadIdx.x; } };\n"
    assert transpile.compile_text(aware + PLAIN).kernels["apply"].tier == "fibers"

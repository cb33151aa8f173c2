"""The sanitizer on whole programs: a kernel declared before the host code that launches it; the memory that the program allocates."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from executables import executable, unit

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains import transpile

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

PROGRAM = """
#include <cstdio>
__global__ void product(const float*, float*);
int main() {
  float *a, *c;
  cudaMallocManaged(&a, 64 * 4); cudaMallocManaged(&c, 64 * 4);
  for (int i = 0; i < 64; ++i) a[i] = 1;
  product<<<1, dim3(8, 8)>>>(a, c);
  cudaDeviceSynchronize();
}
__global__ void product(const float* a, float* c) {
  __shared__ float s[8][8];
  const int row = threadIdx.y, col = threadIdx.x;
  s[row][col] = a[row * 8 + col];
  __syncthreads();
  float sum = 0;
  for (int e = 0; e <= 8; ++e)
    sum += s[row][e];
  c[row * 8 + col] = sum;
}
"""


def test_a_row_too_far_is_told_with_its_line() -> None:
    program = executable(transpile.compile_text(PROGRAM, "all.cu", host=True, sanitize=True).source)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert "line 18" in done.stdout + done.stderr, done.stdout + done.stderr


BUFFERS = """
#include <cstdio>
__global__ void behind(float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) c[i] = i;  // BUG out-of-bounds
}
__global__ void same_place(float* c) {
  c[threadIdx.x] = blockIdx.x;  // BUG race
}
__global__ void right(float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = i;
}
int main() {
  float *a, *c;
  cudaMalloc(&a, 100 * 4); cudaMalloc((void**)&c, 50 * 4);
  cudaFree(c);
  right<<<4, 32>>>(a, 100);
  behind<<<4, 32>>>(a, 100);
  same_place<<<2, 32>>>(a);
  return cudaDeviceSynchronize();
}
"""


def told(text: str) -> set[tuple[int, str]]:
    """Return the lines and kinds of what a sanitized program says."""
    return {(int(line), kind) for line, kind in re.findall(r"^sanitizer: line (\d+): ([\w-]+):", text, re.M)}


def test_memory_that_the_program_allocates_is_watched() -> None:
    program = executable(transpile.compile_text(BUFFERS, "buffers.cu", host=True, sanitize=True).source)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    bugs = {(i, row.split()[-1]) for i, row in enumerate(BUFFERS.splitlines(), 1) if "// BUG" in row}
    assert done.returncode == 0 and told(done.stderr) == bugs, done.stderr


def test_memory_that_another_file_allocates_is_watched_too() -> None:
    kernel, host = BUFFERS.split("int main()")
    host = "void run(float*); int main()" + re.sub(r"right<<<.*?same_place<<<2, 32>>>\(a\);", "run(a);", host, flags=re.S)
    kernel += "void run(float* a) { behind<<<4, 32>>>(a, 100); same_place<<<2, 32>>>(a); }"
    texts = [transpile.compile_text(one, "part.cu", host=True, sanitize=True).source for one in (kernel, "#include <cuda_runtime.h>\n" + host)]
    program = executable(texts[0], str(unit(texts[1])))
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert told(done.stderr) == {(i, row.split()[-1]) for i, row in enumerate(BUFFERS.splitlines(), 1) if "// BUG" in row}, done.stderr


VALUES = """
__global__ void waits(float* c) {
  __shared__ float s[32];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  c[blockIdx.x * 32 + threadIdx.x] = s[31 - threadIdx.x] * 0;
}
__global__ void same_place(float* c) {
  c[threadIdx.x] = 1;  // BUG race
}
int main() {
  float* a;
  cudaMalloc(&a, 64 * 4);
  void (*kernel)(float*);
  for (int i = 0; i < 2; ++i) {
    kernel = i ? &same_place : &waits;
    kernel<<<2, 32>>>(a);
  }
  return cudaDeviceSynchronize();
}
"""


BY_TEMPLATE = """
template <void (*kernel)(float*)> void run(float* a) { kernel<<<2, 32>>>(a); }
int main() {
  float* a;
  cudaMalloc(&a, 64 * 4);
  run<waits>(a);
  run<same_place>(a);
  return cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize("text", [VALUES, VALUES.partition("int main()")[0] + BY_TEMPLATE])
def test_a_kernel_that_is_launched_by_its_value_is_checked_block_by_block(text: str) -> None:
    program = executable(transpile.compile_text(text, "values.cu", host=True, sanitize=True).source)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert told(done.stderr) == {(i, "race") for i, row in enumerate(text.splitlines(), 1) if "// BUG" in row}, done.stderr


def test_a_kernel_that_the_host_calls_as_a_function_does_nothing() -> None:
    text = VALUES.replace("kernel<<<2, 32>>>(a);", "kernel(a);")
    program = executable(transpile.compile_text(text, "values.cu", host=True, sanitize=True).source)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


THREADS = """
#include <thread>
#include <vector>
__global__ void more(float* x) { x[threadIdx.x] += 1; }
struct Kept {  // made before anything is allocated, so taken apart last
  float* p = nullptr;
  ~Kept() { cudaFree(p); for (int i = 0; i < 40; ++i) cudaMalloc(&p, 64); }
};
static Kept kept;
int main() {
  cudaMalloc(&kept.p, 64);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < COUNT; ++i) {
        float* x;
        cudaMalloc(&x, 128);
        cudaMemset(x, 0, 128);
        more<<<1, 32>>>(x);
        cudaFree(x);
      }
    });
  for (auto& one : threads) one.join();
}
"""


@pytest.mark.parametrize("count", [0, 200], ids=["allocations of global objects at the end", "host threads"])
def test_honest_hosts_are_not_broken(count: int) -> None:
    program = executable(transpile.compile_text(THREADS.replace("COUNT", str(count)), "threads.cu", host=True, sanitize=True).source, "-pthread")
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


VOLATILE = """
__global__ void turned(float* out) {
  __shared__ volatile float s[64];
  volatile __shared__ int c;
  __shared__ volatile float pairs[32][2];
  s[threadIdx.x] = threadIdx.x;
  pairs[threadIdx.x / 2][threadIdx.x % 2] = 1;
  if (threadIdx.x == 0) c = 1;
  __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x] + c + pairs[0][1];
}
int main() {
  float* a;
  cudaMalloc(&a, 64 * 4);
  turned<<<1, 64>>>(a);
  return cudaDeviceSynchronize();
}
"""


def test_shared_arrays_may_be_volatile() -> None:
    program = executable(transpile.compile_text(VOLATILE, "volatile.cu", host=True, sanitize=True).source)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")

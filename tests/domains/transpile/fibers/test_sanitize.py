"""The sanitizer finds every planted bug at its line, and nothing in kernels that have none.

A line that is at fault ends in `// BUG kind`. All kernels are `void k(float* x, int n)`, run with 2 blocks of 64 threads on 128 values, n = 64.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from domains.transpile.grammar import program
from executables import PLAIN

from warpwright import native
from warpwright.domains import transpile

PLANTED = r"""
__global__ void missing_barrier(float* x, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = 0; __syncthreads();
  s[threadIdx.x] = x[threadIdx.x];
  float v = s[63 - threadIdx.x];  // BUG race
  if (v < -1e9f) x[0] = v;
}
__global__ void missing_second_barrier(float* x, int n) {
  __shared__ float s[64];
  for (int k = 0; k < 3; ++k) {
    s[threadIdx.x] = k;  // BUG race
    __syncthreads();
    float v = s[(threadIdx.x + 1) % 64];
    if (v < -1e9f) x[0] = v;
  }
}
__global__ void all_write_one_place(float* x, int n) {
  __shared__ float s[1];
  s[0] = threadIdx.x;  // BUG race
}
__global__ void counter_without_atomic(float* x, int n) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  count += 1;  // BUG race
}
__global__ void blocks_write_one_place(float* x, int n) {
  if (threadIdx.x == 0) x[5] = blockIdx.x;  // BUG race
}
__global__ void block_sums_without_atomic(float* x, int n) {
  if (threadIdx.x == 0) x[0] += 1.f;  // BUG race
}
__global__ void reduction_without_barrier(float* x, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = 1; __syncthreads();
  for (int d = 32; d > 0; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];  // BUG race
  }
}
__global__ void tile_read_too_early(float* x, int n) {
  __shared__ float t[8][8];
  int r = threadIdx.x / 8, c = threadIdx.x % 8;
  t[r][c] = 0; __syncthreads();
  t[r][c] = x[threadIdx.x];
  float v = t[c][r];  // BUG race
  if (v < -1e9f) x[0] = v;
}
__global__ void overlapping_strides(float* x, int n) {
  __shared__ int s[128];
  s[threadIdx.x] = 1;
  s[threadIdx.x + 1] = 2;  // BUG race
}
__global__ void neighbour_in_global(float* x, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (threadIdx.x < 63) x[i] = x[i + 1];  // BUG race
}
__global__ void atomic_and_plain(float* x, int n) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  if (threadIdx.x != 5) atomicAdd(&s, 1);
  else s = 3;  // BUG race
}
__global__ void warps_without_barrier(float* x, int n) {
  __shared__ float s[2];
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = 1;
  __syncwarp();
  if (threadIdx.x == 0) x[1] = s[1];  // BUG race uninitialised
}
__global__ void one_past_the_end(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= 2 * n && i > 0) x[i + 1] = 1;  // BUG out-of-bounds
}
__global__ void before_the_start(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i - 1];  // BUG out-of-bounds
  if (v < -1e9f) x[i] = v;
}
__global__ void shared_index_too_large(float* x, int n) {
  __shared__ float s[63];
  s[threadIdx.x] = 1;  // BUG out-of-bounds
}
__global__ void second_index_too_large(float* x, int n) {
  __shared__ float t[64][8];
  t[threadIdx.x][threadIdx.x % 9] = 1;  // BUG out-of-bounds
}
__global__ void negative_shared_index(float* x, int n) {
  __shared__ float s[64];
  s[(int)threadIdx.x - 1] = 1;  // BUG out-of-bounds
}
__global__ void local_array_too_small(float* x, int n) {
  float kept[4];
  for (int k = 0; k <= 4; ++k) kept[k] = k;  // BUG out-of-bounds
  x[blockIdx.x * 64 + threadIdx.x] = kept[1];
}
__global__ void vector_load_past_the_end(float* x, int n) {
  const float4* v = reinterpret_cast<const float4*>(x);
  float4 q = v[threadIdx.x];  // BUG out-of-bounds
  if (q.x < -1e9f) x[0] = q.x;
}
__global__ void pointer_past_the_end(float* x, int n) {
  float* p = x + 128;
  if (threadIdx.x == 0 && blockIdx.x == 0) *p = 1;  // BUG out-of-bounds
}
__device__ float far(const float* p, int i) {
  return p[i * 4];  // BUG out-of-bounds
}
__global__ void in_a_device_function(float* x, int n) {
  float v = far(x, threadIdx.x);
  if (v < -1e9f) x[0] = v;
}
__global__ void atomic_out_of_bounds(float* x, int n) {
  atomicAdd(&x[threadIdx.x * 3], 1.f);  // BUG out-of-bounds
}
__global__ void dynamic_shared_too_small(float* x, int n) {
  extern __shared__ float d[];
  d[threadIdx.x + 64] = 1;  // BUG out-of-bounds
}
__global__ void hinted_load(float* x, int n) {
  float v = __ldg(&x[threadIdx.x + 100]);  // BUG out-of-bounds
  if (v < -1e9f) x[0] = v;
}
__global__ void never_written(float* x, int n) {
  __shared__ float s[64];
  x[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];  // BUG uninitialised
}
__global__ void half_written(float* x, int n) {
  __shared__ float s[64];
  if (threadIdx.x < 32) s[threadIdx.x] = 0;
  __syncthreads();
  x[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];  // BUG uninitialised
}
__global__ void sum_without_start(float* x, int n) {
  __shared__ float total;
  atomicAdd(&total, 1.f);  // BUG uninitialised
}
__global__ void wrong_halo(float* x, int n) {
  __shared__ float s[66];
  s[threadIdx.x + 1] = x[threadIdx.x];
  __syncthreads();
  float v = s[threadIdx.x] + s[threadIdx.x + 1];  // BUG uninitialised
  if (v < -1e9f) x[0] = v;
}
__global__ void old_block_s_values(float* x, int n) {
  __shared__ int first;
  if (blockIdx.x == 0 && threadIdx.x == 0) first = 7;
  __syncthreads();
  if (first == -5) x[0] = 1;  // BUG uninitialised
}
__global__ void rows_that_are_not_there(float* x, int n) {
  const float* row = x + (1 + blockIdx.x) * n * 5;
  float* place = x - 3 * n;
  float v = row[threadIdx.x];  // BUG out-of-bounds
  if (v < -1e9f) x[0] = v;
  *(place + threadIdx.x) = 1;  // BUG out-of-bounds
}
__device__ void exchange(float& a, float& b) {
  const float t = a; a = b; b = t;  // BUG race
}
__global__ void exchanged_by_reference(float* x, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int d = 1; d < 64; d *= 2) {
    if (!(threadIdx.x & d)) exchange(s[threadIdx.x], s[threadIdx.x + d]);
  }
  float& mine = s[threadIdx.x];
  if (mine < -1e9f) x[0] = mine;
}
__global__ void half_the_block_waits(float* x, int n) {
  if (threadIdx.x < 32) {
    __syncthreads();  // BUG barrier
  } else {
    while (x[0] > -1e9f) __syncwarp(0xffffffffu), __syncwarp(), x[threadIdx.x] += 0.f, n = __shfl_sync(1u, n, 0);
  }
}
__global__ void some_run_past_it(float* x, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x < 40) __syncthreads();  // BUG barrier
}
__global__ void reset_and_counted(float* x, int n) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  atomicAdd(&count, 1);  // BUG race uninitialised
  __syncthreads();
  if (count < -5) x[blockIdx.x] = count;
}
__global__ void others_vote_elsewhere(float* x, int n) {
  int any = 0;
  if (threadIdx.x % 2) any = __syncthreads_or(n);  // BUG barrier
  else any = __syncthreads_count(n);  // BUG barrier
  if (any < -5) x[blockIdx.x] = any;
}
"""

CLEAN = r"""
__global__ void clean_early_return(float* x, int n) {
  __shared__ float s[64];
  if (threadIdx.x >= 40) return;
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  float v = s[39 - threadIdx.x];
  if (__syncthreads_and(v < -1e9f)) x[0] = v;
}
__global__ void clean_reduction(float* x, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  for (int d = 32; d > 0; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(&x[0], 0.f * s[0]);
}
__global__ void clean_warp_exchange(float* x, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = 1;
  __syncwarp();
  float v = s[threadIdx.x ^ 1];
  __syncwarp();
  s[threadIdx.x] = v;
}
__global__ void clean_moved_pointers(float* x, int n) {
  float local[4] = {1, 2, 3, 4};
  const float* end = x + 128;
  const float* mine = end - 128 + blockIdx.x * n;
  float v = *(mine + threadIdx.x) + *(local + threadIdx.x % 4);
  if (v < -1e9f && end - mine > 200) x[0] = v;
}
__global__ void clean_volatile_pointer(float* x, int n) {
  __shared__ float s[64];
  volatile float* p = s;
  p[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  float v = p[63 - threadIdx.x] + *(p + threadIdx.x);
  if (v < -1e9f) x[0] = v;
}
__device__ int set(float& to, bool now) { if (now) to = sizeof(to) + sizeof to; return 0; }
__device__ int hand_on(float& to, bool now) { return set(to, now); }
__global__ void clean_handed_on_by_reference(float* x, int n) {
  __shared__ float s[64];
  const int size = sizeof(s[0]) + alignof(float);
  set(s[0], threadIdx.x == size - 4);
  hand_on(s[1], threadIdx.x == 0);
}
struct two { float a, b; };
__device__ int widen(two& to, const float& from) { to.a = from; return to.b += from, 0; }
__global__ void clean_references(float* x, int n) {
  __shared__ float s[64];
  two mine = {0, 0};
  widen(mine, x[threadIdx.x]);
  float& place = s[threadIdx.x];
  place = mine.a;
  place += mine.b;
  __syncthreads();
  const float& other = s[63 - threadIdx.x];
  if (other < -1e9f) x[0] = other;
}
__global__ void clean_last_block(float* x, int n) {
  x[blockIdx.x * 64 + threadIdx.x] = 1;
  __threadfence();
  if (x[(blockIdx.x * 64 + threadIdx.x + 64) % 128] < -1e9f) x[0] = 2;
}
"""



def planted() -> dict[str, set[tuple[str, int]]]:
    """Return, for each kernel with a bug, the (kind, line) pairs of which one has to be found first at that line."""
    bugs: dict[str, set[tuple[str, int]]] = {}
    kernel, waiting = "", set()
    for number, line in enumerate(PLANTED.splitlines(), 1):
        if found := re.match(r"__global__ void (\w+)", line):
            kernel = found[1]
            bugs[kernel] = waiting
            waiting = set()
        if "// BUG" in line:
            kinds = {(kind, number) for kind in line.partition("// BUG")[2].split()}
            if re.search(r"^__device__", PLANTED.splitlines()[number - 2]):
                waiting = kinds  # a device function, called by the kernel that follows
            else:
                bugs[kernel] = bugs[kernel] | kinds
    return bugs


@pytest.fixture(scope="module")
def checked() -> dict[str, transpile.LoadedKernel]:
    return transpile.compile_text(PLANTED + CLEAN, "planted.cu", sanitize=True).load(PLAIN)


def test_there_are_thirty_five() -> None:
    assert len(planted()) == 35 and all(planted().values())


@pytest.mark.parametrize("name", planted())
def test_planted_bug_is_found_at_its_line(checked: dict[str, transpile.LoadedKernel], name: str) -> None:
    checked[name][2, 64, 256](np.ones(128, np.float32), 64)
    seen = {(f.kind, f.line) for f in checked[name].findings()}
    seen |= {("race", int(other)) for f in checked[name].findings() if f.kind == "race" for other in re.findall(r"\(line (\d+)\)", f.text)}
    assert seen & planted()[name], f"expected one of {planted()[name]}, saw {checked[name].findings()}"
    assert {line for _, line in seen} <= {line for _, line in planted()[name]} | also_at_fault(name)


def also_at_fault(name: str) -> set[int]:
    """The other side of a race, which may be what is reported too: a line of the same kernel."""
    rows = PLANTED.splitlines()
    start = next(i for i, row in enumerate(rows, 1) if f"void {name}(" in row)
    end = next(i for i in range(start, len(rows) + 1) if rows[i - 1] == "}")
    race = any(kind == "race" for kind, _ in planted()[name])
    return set(range(start, end)) if race else set()


@pytest.mark.parametrize("name", re.findall(r"void (\w+)", CLEAN))
def test_clean_kernels_are_left_alone(checked: dict[str, transpile.LoadedKernel], name: str) -> None:
    checked[name][2, 64](np.ones(128, np.float32), 64)
    assert checked[name].findings() == []


def test_parameters_called_as_the_translation_calls_its_own_keep_their_names() -> None:
    text = """__device__ int next(const int* s, int tid, int threads, int block_x) { return s[(tid + block_x) % threads]; }
__global__ void k(int* x, int thread_x) {
  __shared__ int s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = next(s, threadIdx.x, 64, thread_x);
}
"""
    x = np.arange(64, dtype=np.int32)
    kernel = transpile.compile_text(text, sanitize=True).load(PLAIN)["k"]
    kernel[1, 64](x, 3)
    assert x.tolist() == [(i + 3) % 64 for i in range(64)] and kernel.findings() == []


def test_random_kernels_without_races(many: Callable[[int], int]) -> None:
    text, kernels = program(range(many(100)))
    loaded = transpile.compile_text(text, sanitize=True).load(PLAIN)
    for made in kernels:
        loaded[made.name][made.grid, made.block](np.zeros(64, np.int32), np.zeros(3 * made.threads + 8, np.int32), 5)
        assert loaded[made.name].findings() == [], made.text


def test_functions_in_the_forms_that_repositories_have() -> None:
    text = """struct pair { float a, b; };
template <class T> __device__ T halved(T v) { return v / 2; }
template <> __device__ int halved<int>(int v) { return v >> 1; }
__device__ void unread(pair& p, const pair& q) { p += q; }
template <class T> struct Shared {
  __device__ operator T*() { extern __shared__ float bytes[]; return (T*)bytes; }
};
__global__ void k(int* x) {
  int* s = Shared<int>();
  s[threadIdx.x] = halved(x[threadIdx.x]);
  __syncthreads();
  x[threadIdx.x] = s[63 - threadIdx.x] + s[threadIdx.x + 1];
}
__global__ void reaches_it(pair* x) { unread(x[0], x[1]); }
"""
    program = transpile.compile_text(text, sanitize=True)
    assert "unread is not understood" in program.kernels["reaches_it"].reason
    kernel = program.load(PLAIN)["k"]
    x = np.arange(64, dtype=np.int32)
    kernel[1, 64, 256](x)
    assert x[0] == 31 + 0 and [(f.kind, f.line) for f in kernel.findings()] == [("out-of-bounds", 12)]


def test_a_method_of_an_element_is_called_on_it() -> None:
    text = """struct Sum { int s = 0; __device__ void add(int v) { s += v; } __device__ int get() const { return s; } };
__global__ void k(int* o, int far) {
  Sum a[2];
  a[threadIdx.x % 2].add(threadIdx.x);
  a[0].add(100);
  o[threadIdx.x] = a[0].get() + 10 * a[far].get();
}
"""
    kernel = transpile.compile_text(text, sanitize=True).load(PLAIN)["k"]
    o = np.zeros(32, np.int32)
    kernel[1, 32](o, 1)
    assert o[2] == 102 and o[3] == 130 and kernel.findings() == []
    kernel[1, 32](o, 2)
    assert [(f.kind, f.line) for f in kernel.findings()] == [("out-of-bounds", 6)]


def test_programs_of_one_process_keep_their_own_findings() -> None:
    text = "__global__ void k(float* x, int n) {{ int i = threadIdx.x; if (i {} n) x[i] = 2.0f; }}"
    wrong, right = (transpile.compile_text(text.format(sign), sanitize=True).load(PLAIN) for sign in ("<=", "<"))
    for kernels in (wrong, right):
        kernels["k"][1, 32](np.zeros(8, np.float32), 8)
    assert [finding.kind for finding in wrong["k"].findings()] == ["out-of-bounds"] and right["k"].findings() == []


def test_numpy_scalars_are_no_arrays() -> None:
    text = "__global__ void k(float* x, int n, float f) { int i = threadIdx.x; if (i < n) x[i] *= f; }"
    kernels = transpile.compile_text(text, sanitize=True).load()
    x = np.ones(8, np.float32)
    kernels["k"][1, 8](x, np.int32(8), np.float32(2.0))
    assert x.tolist() == [2.0] * 8 and kernels["k"].findings() == []


WHOLE = r"""
#include <cstdio>
__global__ void reverse(int* out, const int* in, int n) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = s[n - 1 - threadIdx.x];
}
int main() {
  int h[64], *a, *b;
  for (int i = 0; i < 64; ++i) h[i] = i;
  cudaMalloc(&a, 256); cudaMalloc(&b, 256);
  cudaMemcpy(a, h, 256, cudaMemcpyHostToDevice);
  reverse<<<1, 64>>>(b, a, 64);
  cudaMemcpy(h, b, 256, cudaMemcpyDeviceToHost);
  printf("%d\n", h[0]);
}
"""


@pytest.mark.slow
def test_a_whole_program_says_at_its_end_what_was_found_each_line_once(tmp_path: Path) -> None:
    source = tmp_path / "race.cpp"
    source.write_text(transpile.compile_text(WHOLE, sanitize=True, host=True).source)
    compiler, _ = native.compiler()
    command = [compiler, "-O1", "-std=c++17", "-fopenmp", "-fno-strict-aliasing", str(source), "-o", str(tmp_path / "race")]
    subprocess.run(command, check=True, capture_output=True, timeout=250)
    done = subprocess.run([str(tmp_path / "race")], capture_output=True, text=True, check=True, timeout=250)
    said = done.stderr.splitlines()
    assert any(re.match(r"sanitizer: line 5: race: .* \(\d+ times\)$", line) for line in said), done.stderr
    assert len(said) == len({tuple(line.split(": ")[1:3]) for line in said}) <= 4

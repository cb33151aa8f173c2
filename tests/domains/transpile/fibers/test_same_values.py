"""Threads of a block that write one value to one place: a note, as compute-sanitizer's racecheck has it; a race where the values differ or a reader
sees the place between.

A line that is at fault ends in `// BUG`, one of which there is a note in `// NOTE`. Kernels run with 2 blocks of 64 threads on 128 values, 1 each.
"""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest
from executables import PLAIN, executable

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains import transpile

pytestmark = pytest.mark.compiler

KERNELS = r"""
__global__ void lanes_write_one_value(float* x, int n) {
  __shared__ float s[2];
  s[threadIdx.x / 32] = x[0] + 3;  // NOTE
  __syncthreads();
  if (s[0] + s[1] < -1e9f) x[blockIdx.x] = 1;
}
__global__ void a_flag_in_global(float* x, int n) {
  if (x[blockIdx.x * 64 + threadIdx.x] > 0) x[blockIdx.x] = 5;  // BUG
}
__global__ void a_flag_of_the_block(float* x, int n) {
  __shared__ int found;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  if (threadIdx.x % 3) found = 1;  // NOTE
  __syncthreads();
  if (found < -5) x[blockIdx.x] = found;
}
__global__ void vectors(float* x, int n) {
  __shared__ float4 s;
  s = make_float4(1, 2, 3, x[0]);  // NOTE
  __syncthreads();
  if (s.x < -1e9f) x[blockIdx.x] = s.w;
}
__global__ void one_differs(float* x, int n) {
  __shared__ int s;
  s = threadIdx.x == 63 ? 2 : 1;  // BUG
}
__global__ void the_last_byte_differs(float* x, int n) {
  __shared__ int s;
  s = threadIdx.x & 1 ? 0x01000000 : 0;  // BUG
}
__global__ void a_third_thread_reads(float* x, int n) {
  __shared__ int s;
  if (threadIdx.x < 2) s = 1;  // NOTE
  else if (s < -5) x[blockIdx.x] = 1;  // BUG
}
__global__ void its_own_warp_waits(float* x, int n) {
  __shared__ int s;
  if (threadIdx.x == 0 || threadIdx.x == 40) s = 1;  // NOTE
  __syncwarp();
  if (threadIdx.x == 41 && s < -5) x[blockIdx.x] = 1;  // BUG
}
__global__ void a_writer_reads_it_first(float* x, int n) {
  __shared__ int s;
  s = 1;  // BUG
  if (s < -5) x[blockIdx.x] = 1;
}
__global__ void added_to(float* x, int n) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  s += 0;  // BUG
}
__global__ void written_and_counted(float* x, int n) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&s, 1);
  if (threadIdx.x == 1) s = 1;  // BUG
}
__global__ void blocks_without_their_offset(float* x, int n) {
  x[threadIdx.x] = n;  // BUG
}
"""

NAMES = re.findall(r"void (\w+)", KERNELS)


def lines(kernel: str, word: str) -> set[int]:
    """Return the numbers of a kernel's lines that end in a word."""
    rows = KERNELS.splitlines()
    start = next(i for i, row in enumerate(rows) if f"void {kernel}(" in row)
    end = next(i for i in range(start, len(rows)) if rows[i] == "}")
    return {i + 1 for i in range(start, end) if rows[i].endswith(f"// {word}")}


@pytest.fixture(scope="module")
def checked() -> dict[str, transpile.LoadedKernel]:
    return transpile.compile_text(KERNELS, "same.cu", sanitize=True).load(PLAIN)


@pytest.mark.parametrize("name", NAMES)
def test_same_values_are_a_note_and_others_a_race(checked: dict[str, transpile.LoadedKernel], name: str) -> None:
    checked[name][2, 64](np.ones(128, np.float32), 64)
    races = [one for one in checked[name].findings() if one.kind == "race"]
    told = {int(line) for one in races for line in (one.line, *re.findall(r"\(line (\d+)\)", one.text))}
    assert bool(told) == bool(lines(name, "BUG")) and lines(name, "BUG") <= told, races
    notes = {one.line for one in checked[name].notes()}
    assert lines(name, "NOTE") <= notes and (notes == lines(name, "NOTE") or told), (notes, races)


def test_a_program_says_a_note_apart() -> None:
    main = "int main() { float* x; cudaMallocManaged(&x, 512); lanes_write_one_value<<<2, 64>>>(x, 64); return cudaDeviceSynchronize(); }"
    program = executable(transpile.compile_text(KERNELS + main, "same.cu", host=True, sanitize=True).source)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    (line,) = lines("lanes_write_one_value", "NOTE")
    assert done.returncode == 0 and re.fullmatch(rf"sanitizer: note: line {line}: same-value: [^\n]*\n", done.stderr), done.stderr

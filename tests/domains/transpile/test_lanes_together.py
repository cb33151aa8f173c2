"""Which lanes are together where no mask says it, in optimised code: the compiler may neither copy nor merge nor move the places that ask."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from executables import executable

from warpwright.domains import transpile

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

PROGRAM = r"""
#include <cooperative_groups.h>
#include <cstdio>
struct Tile { __device__ int size() const { return blockDim.x; } };
__device__ unsigned sink[64];
template <class T> __global__ void threaded(unsigned* o, const int* f, int n, T t) {
  int x = 0, l = threadIdx.x % t.size();
  if (f[l]) { x = 1; sink[l] = 7; }
  unsigned m = __activemask();
  if (x) sink[l] += m; else sink[l + 32] = 5;
  o[l] = m;
}
template <class T> __global__ void unswitched(unsigned* o, const int* f, int n, T t) {
  int l = threadIdx.x % t.size(), p = f[l];
  unsigned all = ~0u;
  for (int i = 0; i < n; ++i) {
    unsigned m = __activemask();
    all &= m;
    if (p) sink[l] += i * m; else sink[l + 32] ^= m + i;
  }
  o[l] = all;
}
template <class T> __global__ void merged(unsigned* o, const int* f, int n, T t) {
  int l = threadIdx.x % t.size();
  unsigned m;
  if (f[l]) { sink[l] += 1; m = __activemask(); o[l] = m; } else { sink[l] -= 2; m = __activemask(); o[l] = m; }
}
template <class T> __global__ void skipped(unsigned* o, const int* f, int n, T t) {
  int l = threadIdx.x % t.size();
  unsigned a = 0;
  if (!f[l]) a = __activemask();
  unsigned m = __activemask();
  o[l] = m ^ a;
}
template <class T> __global__ void shortcut(unsigned* o, const int* f, int n, T t) {
  int l = threadIdx.x % t.size();
  unsigned m = (f[l] && __activemask() == 0xffffu) ? 1 : 2;
  o[l] = m + 16 * (__activemask() == ~0u);
}
template <class T> __global__ void early(unsigned* o, const int* f, int n, T t) {
  int l = threadIdx.x % t.size();
  if (l >= 20) return;
  int v = l;
  if (f[l]) v = __shfl_xor(v, 1) + 0x100 * __any(l == 2);
  o[l] = v + 0x1000 * __popc(__ballot(1));
}
template <class T> __global__ void cases(unsigned* o, const int* f, int n, T t) {
  int l = threadIdx.x % t.size();
  unsigned m = 0;
  switch (l % 4) {
    case 0: m = __activemask(); break;
    case 1: m = 1;  // and on
    case 2: m += __activemask(); break;
    default: return;
  }
  o[l] = m ^ __activemask();
}
template <class T> __global__ void coalesced(unsigned* o, const int* f, int n, T t) {
  int l = threadIdx.x % t.size(), v = 0;
  if (l % 2) { auto odd = cooperative_groups::coalesced_threads(); v = odd.size() * 0x100 + odd.thread_rank(); }
  auto all = cooperative_groups::coalesced_threads();
  o[l] = v + all.size() * 0x10000;
}
int main() {
  unsigned* o; int* f;
  cudaMallocManaged(&o, 128), cudaMallocManaged(&f, 128);
  for (int i = 0; i < 32; ++i) f[i] = i < 16;
#define SAY(NAME) NAME<<<1, 32>>>(o, f, 10, Tile()); cudaDeviceSynchronize(); std::printf(#NAME " %x %x %x\n", o[0], o[15], o[19]);
  SAY(threaded) SAY(unswitched) SAY(merged) SAY(skipped) SAY(shortcut) SAY(early) SAY(cases) SAY(coalesced)
}
"""

SAID = """threaded ffffffff ffffffff ffffffff
unswitched ffffffff ffffffff ffffffff
merged ffff ffff ffff0000
skipped ffffffff ffffffff ffff
shortcut 11 11 12
early 14101 1410e 14013
cases 66666666 1410e 14013
coalesced 200000 201007 201009
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_they_are_together_where_the_text_has_them_so() -> None:
    program = executable(transpile.compile_text(PROGRAM, host=True).source, "-O3")
    assert subprocess.run([str(program)], capture_output=True, text=True, timeout=60, check=True).stdout == SAID

"""What code that nobody tuned for brings: how editors and formatters leave it, what nvcc takes and g++ does not, copies of libraries beside it."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from executables import executable

from warpwright.domains import transpile

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

COMPILER = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")

PROGRAM = "\ufeff" + r"""
#include <cub/cub.cuh>
#include <cuda/atomic>
#include <cuda_fp16.h>
#include <cstdio>
namespace mine { template <class It, class M> __global__ void fill(It, It, M); }
template <class T> class Map {
  T secret = 3;
 public:
  T* p;
  using key = std::enable_if<true, T>::type;
  void go(int n) { mine::fill<< <1, 32 >> >(n, n, *this); }
  key find(key k) const;
  template <class It, class M> friend __global__ void mine::fill(It, It, M);
  friend __global__ void plain(Map<float> m, int n);
};
template <class T> Map<T>::key Map<T>::find(key k) const { return k + secret; }
__global__ void plain(Map<float> m, int n) { if (threadIdx.x < n) m.p[threadIdx.x] += m.secret; }
namespace mine { template <class It, class M> __global__ void fill(It a, It b, M m) { if (threadIdx.x < a) m.p[threadIdx.x] = m.secret; } }
struct Tile { __device__ int size() const { return blockDim.x; } };
__device__ unsigned seen[64];
template <class T> __global__ void tail(int* o, int n, T t) { for (int i = threadIdx.x; i < n; i += t.size()) o[i] = __popc(__activemask()); }
template <class T> __global__ void aggregated(int* count, int n, T t) {
  for (int i = threadIdx.x; i < n; i += t.size())
    if (i % 3 == 0) {
      const unsigned m = __activemask(), leader = __ffs(m) - 1, lane = threadIdx.x % 32;
      int base = 0;
      if (lane == leader) base = atomicAdd(count, __popc(m));
      base = __shfl_sync(m, base, leader);
      seen[base + __popc(m & ((1u << lane) - 1))] = i;
    }
}
template <class T> __global__ void old(int* o, T t) {
  int v = threadIdx.x;
  if (v < 10) o[v] = __shfl(v, 3); else if (v < t.size()) o[v] = __shfl_down(v, 1);
}
__global__ void halves(float* o, int* q) {
  o[0] = __int2half_rd(2049), o[1] = __int2half_ru(2049), o[2] = __int2half_rz(-2049), o[3] = __half2uint_ru(__float2half(2.25f));
  o[4] = __float2half_rz(70000.f), o[5] = __half2short_rn(__float2half(60000.f)), o[6] = __hbgt2(__float2half2_rn(2.f), __halves2half2(1.f, 2.f));
  cuda::atomic_ref<int> r(*q);
  const cuda::memory_order order = cuda::memory_order_relaxed;
  r.fetch_add(2, order);
}
__constant__ int table[5];
__global__ void numbers(double* o) {
  o[0] = erfinv(0.3), o[1] = erfcinvf(1e-30f), o[2] = normcdfinv(0.975), o[3] = cyl_bessel_i1f(-1.5f), o[4] = __ull2float_rz(~0ull);
  o[5] = __ull2double_ru(9007199254740993ull), o[6] = __int2float_ru(-16777217), o[7] = __funnelshift_lc(0x80000001u, 5u, 40);
  o[8] = __rhadd(-3, 0), o[9] = __dp2a_lo(0x00020003, 0x0a0bff05, 1), o[10] = __fns(0b10110, 4, -2);
  o[11] = (float)__hadd_sat(__half(.75f), __half(.5f)), o[12] = (float)__hfma_relu(__half(-1.f), __half(2.f), __half(1.f));
  // Rounded once, where a float between would make a tie of it.
  o[13] = (float)__uint2bfloat16_rn(0x1010001u), o[14] = (float)__double2half(1 + 1 / 2048. + 1e-12), o[15] = (float)__ull2bfloat16_rd(~0ull >> 7);
  o[16] = __half2ll_rn(__float2half(0.f / o[11] * INFINITY));
}
int main() {
  Map<float> m;
  int *o, *c, *d;
  cudaMallocManaged(&m.p, 400), cudaMallocManaged(&o, 4000), cudaMallocManaged(&c, 8), cudaMallocManaged(&d, 64);
  m.go(32), plain<<<1, 32>>>(m, 32);
  tail<<<1, 64>>>(o, 75, Tile());
  aggregated<<<1, 64>>>(c, 100, Tile());
  cudaDeviceSynchronize();
  std::printf("friends %g %g\n", m.p[31], m.find(1));
  std::printf("tail %d %d %d %d\n", o[0], o[63], o[64], o[74]);
  unsigned sum = 0, all[64];
  cudaMemcpyFromSymbol(all, seen, sizeof all);
  for (int i = 0; i < *c; ++i) sum += all[i];
  std::printf("aggregated %d %u\n", *c, sum);
  old<<<1, 32>>>(o, Tile());
  halves<<<1, 1>>>(m.p, c + 1);
  cudaDeviceSynchronize();
  std::printf("old %d %d %d %d\n", o[0], o[9], o[10], o[30]);
  std::printf("halves %g %g %g %g %g %g %g %d\n", m.p[0], m.p[1], m.p[2], m.p[3], m.p[4], m.p[5], m.p[6], c[1]);
  void* storage = nullptr;
  size_t bytes = 0;
  for (int i = 0; i < 5; ++i) d[i] = i % 2 + 1;
  CubDebugExit(cub::DeviceScan::InclusiveSum(storage, bytes, d, 5));
  cudaMalloc(&storage, bytes);
  CubDebugExit(cub::DeviceScan::InclusiveSum(storage, bytes, d, 5));
  CubDebugExit(cub::DeviceScan::ExclusiveSum(storage, bytes, d, 5, (cudaStream_t)0));
  CubDebugExit(cub::DeviceSelect::If(storage, bytes, d, c, 5, [] __device__ (int v) { return v > 1; }, (cudaStream_t)0));
  double* v;
  cudaMallocManaged(&v, 136);
  numbers<<<1, 1>>>(v);
  cudaDeviceSynchronize();
  cudaGetSymbolSize(&bytes, table);
  for (int i = 0; i < 17; ++i) std::printf("%.10g ", v[i]);
  std::printf("%d\n", (int)bytes);
  std::printf("in place %d: %d %d\n", *c, d[0], d[2]);
  signed char small[4] = {100, 100, 100, 100};
  float tenth[2] = {.5f, .5f}, one;
  int sums[9];
  CubDebugExit(cub::DeviceScan::InclusiveSum(storage, bytes, small, sums, 4));
  CubDebugExit(cub::DeviceScan::InclusiveSumByKey(storage, bytes, small, small, sums + 4, 4));
  CubDebugExit(cub::DeviceReduce::Reduce(storage, bytes, tenth, &one, 2, cub::Sum(), 0));
  CubDebugExit(cub::DeviceReduce::Sum(storage, bytes, small, sums + 8, 4));
  std::printf("sums %d %d %d %g\n", sums[3], sums[7], sums[8], one);
}
"""

SAID = """friends 6 4
tail 32 32 11 11
aggregated 34 1683
old 3 3 11 31
halves 2048 2050 -2048 3 65504 32767 0 2
0.2724627147 8.148615837 1.959963985 -0.9816664457 1.844674297e+19 9.007199255e+15 -16777216 2147483649 -1 14 2 1 0 16908288 1.000976562 1.435522381e+17 -9.223372037e+18 20
in place 3: 4 14
sums 400 400 400 1
"""  # noqa: E501


@COMPILER
@pytest.mark.compiler
@pytest.mark.parametrize("tier", ["fibers", None])
def test_a_program_of_such_code_gives_what_a_gpu_gives(tier: str | None) -> None:
    """With an active mask the lanes that are together: those that left a loop, or went another way, are not in it."""
    made = transpile.compile_text(PROGRAM, host=True, tier=tier)
    said = subprocess.run([str(executable(made.source, "-O0"))], capture_output=True, text=True, timeout=60, check=True).stdout
    assert said == SAID

CARRIES = r"""
#include <cstdio>
typedef unsigned long long Long;
#define ADD128(r, a, b) \
  asm volatile ("add.cc.u64 %0, %1, %2;" : "=l"(r[0]) : "l"(a[0]), "l"(b[0])); \
  asm volatile ("addc.u64 %0, %1, %2;" : "=l"(r[1]) : "l"(a[1]), "l"(b[1]))
__device__ __forceinline__ void product(unsigned* r, unsigned a0, unsigned a1, unsigned b0, unsigned b1) {
  asm("mul.lo.u32 %0, %4, %6;\n\tmul.hi.u32 %1, %4, %6;\n\tmad.lo.cc.u32 %1, %4, %7, %1;\n\tmadc.hi.u32 %2, %4, %7, 0;\n\t"
      "mad.lo.cc.u32 %1, %5, %6, %1;\n\tmadc.hi.cc.u32 %2, %5, %6, %2;\n\taddc.u32 %3, 0, 0;\n\tmad.lo.cc.u32 %2, %5, %7, %2;\n\t"
      "madc.hi.u32 %3, %5, %7, %3;"
      : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]) : "r"(a0), "r"(a1), "r"(b0), "r"(b1));
}
__global__ void k(Long* o, Long a, Long b) {
  Long x[2] = {a, b}, y[2] = {~0ull - threadIdx.x, 5}, r[2];
  o += threadIdx.x * 6;
  ADD128(r, x, y);
  o[0] = r[0], o[1] = r[1];
  asm("sub.cc.u64 %0, %2, %3; subc.u64 %1, %4, %5;" : "=l"(r[0]), "=l"(r[1]) : "l"(x[0]), "l"(y[0]), "l"(x[1]), "l"(y[1]));
  o[2] = r[0], o[3] = r[1];
  unsigned m[4];
  product(m, (unsigned)a, (unsigned)(a >> 32), (unsigned)b, (unsigned)(b >> 32) + threadIdx.x);
  o[4] = m[0] | (Long)m[1] << 32, o[5] = m[2] | (Long)m[3] << 32;
}
int main() {
  Long* o;
  cudaMallocManaged(&o, 64 * 48);
  const Long a = 0xfedcba9876543211ull, b = 0xffffffff89abcdefull;
  k<<<1, 64>>>(o, a, b);
  cudaDeviceSynchronize();
  int bad = 0;
  typedef unsigned __int128 Wide;
  for (int t = 0; t < 64; ++t) {
    const Wide x = (Wide)b << 64 | a, y = (Wide)5 << 64 | (~0ull - t), wanted[3] = {x + y, x - y, (Wide)a * (b + ((Long)t << 32))};
    for (int i = 0; i < 6; ++i) bad += o[6 * t + i] != (Long)(wanted[i / 2] >> (i % 2 * 64));
  }
  std::printf("%d bad\n", bad);
}
"""


@COMPILER
@pytest.mark.compiler
def test_a_carry_goes_from_one_statement_of_ptx_to_the_next() -> None:
    made = transpile.compile_text(CARRIES, host=True)
    assert made.kernels["k"].reason == "sums of inline PTX that leave a carry"
    assert subprocess.run([str(executable(made.source, "-O0"))], capture_output=True, text=True, timeout=60, check=True).stdout == "0 bad\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("__device__ int f(int id) { return id >> G<N * sizeof(int), 2>::value; }", "id >> ww::by(G<N * sizeof(int), 2>::value)"),
        ("enum { A = 5, B = ((-1 << A) & 31) << 8 };", "(((int)(-1u << A)) & 31) << 8"),
        ('const char* s = "(-1 << A)";', '"(-1 << A)"'),
        ("long wide = (-3000000000 << 2);", "(-3000000000 << 2)"),
        ("template <class T> A<T>::B f(A<T> a) { return a; }", "typename A<T>::B f("),
        ("template <class T> __device__ A<T>::B* A<T>::f() { return 0; }", "typename A<T>::B* A<T>::f("),
        ("template <class T> A<T>::A(int n) { }", "> A<T>::A(int"),
        ("template <class T> A<T>::operator bool() const { }", "> A<T>::operator bool"),
        ("#if __has_include(<version>) && !__has_include(<no/such>)\nint yes;\n#endif", "int yes;"),
        ("#include <unistd.h>\n#if _POSIX_VERSION >= 200112L\nint yes;\n#endif", "int yes;"),
        ("#include <stdint.h>\n#if UINTPTR_MAX == UINT64_MAX && defined(INT8_MAX)\nint yes;\n#endif", "int yes;"),
        ("#include <limits.h>\n#ifndef INT_MAX\n#define INT_MAX 7\n#endif\nint most = INT_MAX;", "int most = 0x7fffffff;"),
        ("template <class T> int A<T>::warmup() const { go(); }", "{ go(); return 0; }"),
        ("int f() { if (a) return 1; }", "{ if (a) return 1; }"),
        ("int f() { exit(1); }", "{ exit(1); }"),
        ("void f() { int a = g(1), b(2); while (a) { } struct S { int x; S() : x() { } }; }", "{ int a = g(1), b(2); while (a) { }"),
        ("struct S { int x; operator int() { } S() { } };", "{ int x; operator int() { } S() { } }"),
        ("#include <nv/target>\nint f() { NV_IF_TARGET(NV_IS_HOST, (return 1;), (return 2;)) }", "{ return 2; }"),
        ("#include <thrust/version.h>\n#if THRUST_VERSION >= 200000\nint yes;\n#endif", "int yes;"),
    ],
)
def test_what_nvcc_takes_becomes_what_the_compiler_takes(text: str, wanted: str) -> None:
    made = transpile.compile_text(text, "a.cu", host=True, tier="fibers").source
    assert wanted in re.sub(r"[ \n]+", " ", made.partition("---- a.cu ----")[2])


def test_a_copy_of_cub_beside_a_program_is_left_for_the_runtimes(tmp_path) -> None:
    (tmp_path / "cub").mkdir()
    (tmp_path / "cub" / "cub.cuh").write_text("#error made for a GPU\n")
    (tmp_path / "cub" / "util_ptx.cuh").write_text("#error made for a GPU\n")
    (tmp_path / "thrust").mkdir()
    (tmp_path / "thrust" / "own.h").write_text("int own;\n")
    text = '#include <cub/cub.cuh>\n#include "thrust/own.h"\nint main() { return cub::Sum()(1, 2); }'
    made = transpile.compile_text(text, "a.cu", host=True, folders=(tmp_path,)).source
    assert "int own;" in made
    assert "struct Sum" in made


def test_a_header_may_begin_with_a_byte_order_mark(tmp_path) -> None:
    (tmp_path / "own.h").write_text("\ufeffint own;\n")
    assert "\ufeff" not in transpile.compile_text('#include "own.h"\nint main() {}', "a.cu", host=True, folders=(tmp_path,)).source

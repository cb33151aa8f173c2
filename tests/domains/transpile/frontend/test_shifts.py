"""Shifts by the width of the word or more, and by negative amounts: 0 or the sign, as on a GPU, in every tier; what is below stays as written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from executables import EXACT

from warpwright.domains import transpile
from warpwright.domains.transpile.frontend import scan, source
from warpwright.domains.transpile.frontend.text import shifts

AMOUNTS = np.array([*range(70), -1, -31, -32, 255, 1 << 30, -(1 << 31)], np.int32)
TYPES = {"int": np.int32, "unsigned": np.uint32, "long long": np.int64, "unsigned long": np.uint64, "short": np.int16, "unsigned char": np.uint8}

VALUES = """
template <class T> __device__ T further(T x, int n) { x >>= n; return x; }
template <class T> __global__ void values(const T* x, const int* n, T* out, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  T a = x[i], b = x[i];
  a <<= n[i] + 1 - 1;
  b = further(b, n[i]);
  out[4 * i] = x[i] << n[i]; out[4 * i + 1] = x[i] >> n[i]; out[4 * i + 2] = a; out[4 * i + 3] = b;
}
"""


def shifted(x: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return x << n and x >> n as PTX defines them, in whole numbers of Python."""
    width = max(x.dtype.itemsize, 4) * 8
    amounts = [int(a) & 0xFFFFFFFF for a in n]
    left = [int(v) << a if a < width else 0 for v, a in zip(x, amounts, strict=True)]
    right = [int(v) >> min(a, width) for v, a in zip(x, amounts, strict=True)]
    kept = (1 << 8 * x.dtype.itemsize) - 1
    bits = np.dtype(f"u{x.dtype.itemsize}")
    return tuple(np.array([v & kept for v in values], bits).view(x.dtype) for values in (left, right))  # type: ignore[return-value]


@pytest.mark.compiler
@pytest.mark.parametrize("options", [*({"tier": tier} for tier in transpile.TIERS), {"sanitize": True}, {"lockstep": True}])
def test_amounts_of_every_size(options: dict[str, Any]) -> None:
    loaded = transpile.compile_text(VALUES, instances=[f"values<{kind}>" for kind in TYPES], **options).load(("-O1", *EXACT))
    for kind, dtype in TYPES.items():
        info = np.iinfo(dtype)
        for x in (info.max, info.min, 1, 77):
            given = np.full(len(AMOUNTS), x, dtype)
            out = np.zeros((len(AMOUNTS), 4), dtype)
            loaded[f"values<{kind}>"][3, 32](given, AMOUNTS, out, len(AMOUNTS))
            left, right = shifted(given, AMOUNTS)
            assert np.array_equal(out, np.stack([left, right, left, right], 1)), (kind, x)


OTHERS = """
struct Word { unsigned v; __device__ Word operator<<(int n) const { return {v + n}; } };
struct Made { int a; unsigned b; __device__ Made(int n) : a{n << n}, b(1u) { b <<= n; } };
enum Few { one = 1, two = 2 };
template <int N> __device__ unsigned table(unsigned v) {
  unsigned all[1 << N] = {v};
  switch (v) { case 1 << N: return 5; }
  return all[0] + sizeof(all);
}
__global__ void others(unsigned* out, int n, unsigned char narrow, long long wide, unsigned w) {
  Word s{7};
  out[0] = (s << n).v;
  out[1] = Made(n).b;
  out[2] = two << n;
  out[3] = table<3>(8) + table<2>(w - 40 + 8);
  out[4] = narrow << n;
  out[5] = 1u << wide;
  int at = 0;
  unsigned some[2] = {3, 3};
  some[at++] <<= n;
  out[6] = some[0] + some[1] + at;
  out[7] = 5u >> w % 64 | 1u << (n < 3 ? 1 : 35);
  out[8] = w << 33;
}
"""


@pytest.mark.compiler
@pytest.mark.parametrize("tier", transpile.TIERS)
def test_classes_enums_and_constants(tier: str) -> None:
    out = np.zeros(9, np.uint32)
    transpile.compile_text(OTHERS, tier=tier).load(("-O0", *EXACT))["others"][1, 1](out, 40, 255, (1 << 32) + 3, 40)
    assert out.tolist() == [47, 0, 0, 5 + 24, 0, 8, 4, 0, 0]


FAR = """
__global__ void far(const int* __restrict__ a, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a[i >> 34] + a[threadIdx.x >> 31] + (int)((long long)i >> 40) + a[(threadIdx.x >> 33) + 1] + a[threadIdx.x >> 4];
}
"""


@pytest.mark.compiler
@pytest.mark.parametrize("tier", transpile.TIERS)
def test_numbers_beyond_the_width_are_no_quotients(tier: str) -> None:
    """Of which rows of threads are cut into stretches."""
    out = np.zeros(192, np.int32)
    transpile.compile_text(FAR, tier=tier).load(("-O0", *EXACT))["far"][3, 64](np.array([5, 7, 9, 11], np.int32), out)
    assert np.array_equal(out, 17 + np.array([5, 7, 9, 11])[np.arange(192) % 64 // 16])


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("x << 31", "x << 31"), ("x >> (32 - 5)", "x >> (32 - 5)"), ("x << (8 * 3 + 0x4u)", "x << (8 * 3 + 0x4u)"), ("x <<= 7", "x <<= 7"),
        ("1u << (i & 31)", "1u << (i & 31)"), ("1u << (threadIdx.x % 32)", "1u << (threadIdx.x % 32)"), ("x <<= i & 15", "x <<= i & 15"),
        ("x << n", "x << ww::by(n)"), ("x >> n + 1 < y", "x >> ww::by(n + 1) < y"), ("x << 32", "x << ww::by(32)"),
        ("1u << (i & 31 | 32)", "1u << ww::by((i & 31 | 32))"), ("1u << (i & 63)", "1u << ww::by((i & 63))"),
        ("1u << i % 32", "1u << ww::by(i % 32)"),
        ("a << b << c", "a << ww::by(b) << ww::by(c)"), ("x <<= a ? b : c", "x <<= ww::by(a ? b : c)"),
        ("x >>= y >> n", "x >>= ww::by(y >> ww::by(n))"),
        ("x << static_cast<int>(n) & 7", "x << ww::by(static_cast<int>(n)) & 7"), ("i < n >> k", "i < n >> ww::by(k)"),
        ("f<g<int>>(x) + A<B<int*>>::v", "f<g<int>>(x) + A<B<int*>>::v"), ("x << -n, y", "x << ww::by(-n), y"),
        ("x << f<int>(n) * 2", "x << ww::by(f<int>(n) * 2)"),
        ("x << (32 - 1 - 40)", "x << ww::by((32 - 1 - 40))"), ("s[x >> n]", "s[x >> ww::by(n)]"), ("x << 1 << n", "x << 1 << ww::by(n)"),
        ("std::cout << n", "std::cout << n"), ("a->b>>c", "a->b>>ww::by(c)"), ("x << sizeof(T) * 8", "x << ww::by(sizeof(T) * 8)"),
    ],
)  # fmt: skip
def test_what_is_put_in(written: str, made: str) -> None:
    text = f"__device__ int g(int y) {{ return {written}; }}\n"
    assert shifts.put_in(text, shifts.insertions(text, scan.tokens(text))) == text.replace(written, made)


def test_host_code_stays() -> None:
    text = "int f(int x, int n) { return x << n; }\n__device__ int g(int x, int n);\nstd::vector<std::vector<int>> v(1 << n << 3);\n"
    assert shifts.insertions(text, scan.tokens(text)) == []


def test_places_in_the_source_stay(tmp_path: Path) -> None:
    """What is put in does not move the lines, nor the files, of what follows."""
    (tmp_path / "inner.h").write_text("__device__ int g(int x, int n) { return x << n; }\n")
    text = '__device__ int f(int x, int n) { return x << n; }\n#include "inner.h"\n__device__ int here(int x);\n'
    read = source.read(text, "outer.cu", folders=[tmp_path])
    assert read.text.count("ww::by(") == 2
    assert read.place(read.text.index("here")) == ("outer.cu", 3)
    assert read.place(read.text.index("int g"))[1] == 1 and read.place(read.text.index("int g"))[0].endswith("inner.h")


def test_a_shift_stays_one_to_the_compiler() -> None:
    """A loop over threads with one is vectorised, its bounds are found, and a uniform value stays one."""
    head = "__global__ void k(unsigned* x, const int* n, int m) { int i = blockIdx.x * blockDim.x + threadIdx.x; int end = 2 << m; if (i < end) "
    program = transpile.compile_text(head + "x[i] = x[i] >> n[i]; }")
    assert program.kernels["k"].tier == "vectors" and "#pragma omp simd" in program.source
    assert "(long)(2 << ww::by(m))" in program.source or "int end = 2 << ww::by(m);" in program.source
    assert "last_x = (int)ww::smallest" in program.source

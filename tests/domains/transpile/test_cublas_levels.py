"""The rest of cuBLAS's levels 1 to 3 (runtime/libraries/cublas_levels.hpp), compared with NumPy: every fill, transposition and diagonal."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from executables import executable

from warpwright.domains import transpile

pytestmark = [
    pytest.mark.slow,  # 2 s to compile, and all in one program
    pytest.mark.compiler,
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
]

PROGRAM = r"""
#include <cublas_v2.h>
#include <cuComplex.h>
#include <cstdio>
#include <vector>
#include <type_traits>
template <class T> T value(int i) { return T(((i * 37 + 11) % 18 - 8.5) / 4.0); }
template <> cuDoubleComplex value(int i) {
  return make_cuDoubleComplex(((i * 37 + 11) % 18 - 8.5) / 4.0, ((i * 23 + 5) % 17 - 8) / 4.0); }
template <class T> std::vector<T> made(int n, int from = 0) {
  std::vector<T> v; for (int i = 0; i < n; ++i) v.push_back(value<T>(i + from)); return v; }
void print(double x) { std::printf("%.17g 0 ", x); }
void print(cuDoubleComplex x) { std::printf("%.17g %.17g ", x.x, x.y); }
template <class T> void say(const char* name, const std::vector<T>& v) { std::printf("%s ", name); for (auto x : v) print(x); std::printf("\n"); }
cublasHandle_t h;
const int n = 5, m = 4, k = 2, ld = 6;
#define RUN(NAME, OUT, SIZE, FROM, ...) { auto OUT = made<T>(SIZE, FROM); if (__VA_ARGS__) std::printf("failed "); say(NAME, OUT); }
#define BOTH(T_, L, C_) \
template <class T> void both_##L() { \
  auto a = made<T>(64), b = made<T>(64, 100), x = made<T>(32, 200), y = made<T>(32, 300); T p = value<T>(7), q = value<T>(3); \
 \
  for (auto fill : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) for (auto op : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C}) \
    for (auto unit : {CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT}) { \
    std::printf("at %d %d %d\n", (int)fill, (int)op, (int)unit); \
    RUN("trmv", o, 10, 400, cublas##L##trmv(h, fill, op, unit, n, a.data(), ld, o.data(), 2)) \
    RUN("tbmv", o, 10, 400, cublas##L##tbmv(h, fill, op, unit, n, k, a.data(), ld, o.data(), -2)) \
    RUN("tpmv", o, 10, 400, cublas##L##tpmv(h, fill, op, unit, n, a.data(), o.data(), 1)) \
    RUN("trsv", o, 10, 400, cublas##L##trsv(h, fill, op, unit, n, a.data(), ld, o.data(), 2)) \
    RUN("tpsv", o, 10, 400, cublas##L##tpsv(h, fill, op, unit, n, a.data(), o.data(), -1)) \
    RUN("trmm", o, 40, 400, cublas##L##trmm(h, CUBLAS_SIDE_LEFT, fill, op, unit, m, n, &p, a.data(), ld, b.data(), ld, o.data(), 5)) \
    RUN("trmm_right", o, 40, 400, cublas##L##trmm(h, CUBLAS_SIDE_RIGHT, fill, op, unit, m, n, &p, a.data(), ld, o.data(), 5, o.data(), 5)) \
    RUN("trsm", o, 40, 400, cublas##L##trsm(h, CUBLAS_SIDE_LEFT, fill, op, unit, m, n, &p, a.data(), ld, o.data(), 5)) \
    RUN("trsm_right", o, 40, 400, cublas##L##trsm(h, CUBLAS_SIDE_RIGHT, fill, op, unit, m, n, &p, a.data(), ld, o.data(), 5)) \
    if (unit == CUBLAS_DIAG_NON_UNIT) { \
      RUN("gbmv", o, 10, 400, cublas##L##gbmv(h, op, m, n, 1, 2, &p, a.data(), ld, x.data(), 1, &q, o.data(), 2)) } \
    if (op == CUBLAS_OP_N && unit == CUBLAS_DIAG_NON_UNIT) { \
      RUN("symv", o, 10, 400, cublas##L##symv(h, fill, n, &p, a.data(), ld, x.data(), 2, &q, o.data(), -1)) \
      RUN("syr", o, 40, 400, cublas##L##syr(h, fill, n, &p, x.data(), 2, o.data(), ld)) \
      RUN("syr2", o, 40, 400, cublas##L##syr2(h, fill, n, &p, x.data(), 1, y.data(), -1, o.data(), ld)) \
      RUN("symm", o, 40, 400, cublas##L##symm(h, CUBLAS_SIDE_LEFT, fill, m, n, &p, a.data(), ld, b.data(), ld, &q, o.data(), 5)) \
      RUN("tpttr", o, 40, 400, cublas##L##tpttr(h, fill, n, a.data(), o.data(), ld)) \
      RUN("trttp", o, 40, 400, cublas##L##trttp(h, fill, n, a.data(), ld, o.data())) \
      RUN("dgmm", o, 40, 400, cublas##L##dgmm(h, CUBLAS_SIDE_RIGHT, m, n, a.data(), ld, x.data(), 2, o.data(), 5)) } \
    if (op != CUBLAS_OP_C && unit == CUBLAS_DIAG_NON_UNIT) { \
      RUN("syrk", o, 40, 400, cublas##L##syrk(h, fill, op, n, k, &p, a.data(), ld, &q, o.data(), ld)) \
      RUN("syr2k", o, 40, 400, cublas##L##syr2k(h, fill, op, n, k, &p, a.data(), ld, b.data(), ld, &q, o.data(), ld)) \
      RUN("syrkx", o, 40, 400, cublas##L##syrkx(h, fill, op, n, k, &p, a.data(), ld, b.data(), ld, &q, o.data(), ld)) } \
  } }
BOTH(double, D, d) BOTH(cuDoubleComplex, Z, z)
int main() {
  cublasCreate_v2(&h);
  std::printf("of D\n"); both_D<double>();
  std::printf("of Z\n"); both_Z<cuDoubleComplex>();
  {
    using T = double;
    auto a = made<T>(64), x = made<T>(32, 200), y = made<T>(32, 300); T p = value<T>(7), q = value<T>(3), c = .6, s = .8, u = 3, v = 4;
    std::printf("of R\n");
    for (auto fill : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
      std::printf("at %d 0 0\n", (int)fill);
      RUN("sbmv", o, 10, 400, cublasDsbmv(h, fill, n, k, &p, a.data(), ld, x.data(), 2, &q, o.data(), 1))
      RUN("spmv", o, 10, 400, cublasDspmv(h, fill, n, &p, a.data(), x.data(), 2, &q, o.data(), 1))
      RUN("spr", o, 20, 400, cublasDspr(h, fill, n, &p, x.data(), 2, o.data()))
      RUN("spr2", o, 20, 400, cublasDspr2(h, fill, n, &p, x.data(), 2, y.data(), 1, o.data()))
    }
    RUN("rot", o, 10, 400, cublasDrot(h, 5, o.data(), 2, x.data(), 1, &c, &s))
    cublasDrotg(h, &u, &v, &c, &s); std::printf("rotg %g %g %g %g\n", u, v, c, s);
  }
  {
    using T = cuDoubleComplex;
    auto a = made<T>(64), b = made<T>(64, 100), x = made<T>(32, 200), y = made<T>(32, 300); T p = value<T>(7), q = value<T>(3), r;
    double pr = 1.5, qr = -.5, d;
    std::printf("of H\n");
    for (auto fill : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) for (auto op : {CUBLAS_OP_N, CUBLAS_OP_C}) {
      std::printf("at %d %d 0\n", (int)fill, (int)op);
      RUN("hemv", o, 10, 400, cublasZhemv(h, fill, n, &p, a.data(), ld, x.data(), 2, &q, o.data(), 1))
      RUN("hbmv", o, 10, 400, cublasZhbmv(h, fill, n, k, &p, a.data(), ld, x.data(), 2, &q, o.data(), 1))
      RUN("hpmv", o, 10, 400, cublasZhpmv(h, fill, n, &p, a.data(), x.data(), 2, &q, o.data(), 1))
      RUN("her", o, 40, 400, cublasZher(h, fill, n, &pr, x.data(), 2, o.data(), ld))
      RUN("hpr", o, 40, 400, cublasZhpr(h, fill, n, &pr, x.data(), 2, o.data()))
      RUN("her2", o, 40, 400, cublasZher2(h, fill, n, &p, x.data(), 2, y.data(), 1, o.data(), ld))
      RUN("hpr2", o, 40, 400, cublasZhpr2(h, fill, n, &p, x.data(), 2, y.data(), 1, o.data()))
      RUN("hemm", o, 40, 400, cublasZhemm(h, CUBLAS_SIDE_RIGHT, fill, m, n, &p, a.data(), ld, b.data(), ld, &q, o.data(), 5))
      RUN("herk", o, 40, 400, cublasZherk(h, fill, op, n, k, &pr, a.data(), ld, &qr, o.data(), ld))
      RUN("her2k", o, 40, 400, cublasZher2k(h, fill, op, n, k, &p, a.data(), ld, b.data(), ld, &qr, o.data(), ld))
      RUN("gemm", o, 40, 400, cublasZgemm(h, op, CUBLAS_OP_T, m, n, k, &p, a.data(), ld, b.data(), ld, &q, o.data(), 5))
      RUN("gemv", o, 10, 400, cublasZgemv(h, op, m, n, &p, a.data(), ld, x.data(), 1, &q, o.data(), -2))
      RUN("gerc", o, 40, 400, cublasZgerc(h, m, n, &p, x.data(), 2, y.data(), 1, o.data(), ld))
    }
    cublasZdotc(h, 5, x.data(), 2, y.data(), -1, &r); say("dotc", std::vector<T>{r});
    cublasDznrm2(h, 5, x.data(), 2, &d); std::printf("nrm2 %.17g 0\n", d);
    cublasDzasum(h, 5, x.data(), 2, &d); std::printf("asum %.17g 0\n", d);
    int at; cublasIzamax(h, 16, x.data(), 2, &at); std::printf("amax %d 0\n", at);
    cublasDotcEx(h, 5, x.data(), CUDA_C_64F, 2, y.data(), CUDA_C_64F, -1, &r, CUDA_C_64F, CUDA_C_64F); say("dotc", std::vector<T>{r});
    float f = 1;
    const auto n = CUBLAS_OP_N;
    const auto status = cublasGemmEx(h, n, n, 1, 1, 1, &f, a.data(), CUDA_C_64F, 1, b.data(), CUDA_C_64F, 1, &f, x.data(), CUDA_C_64F, 1,
                                     CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    std::printf("refused %d 0\n", (int)status);
  }
}
"""


N, M, K, LD = 5, 4, 2, 6


def made(size: int, begin: int, is_complex: bool) -> np.ndarray:
    """Return the numbers that the program makes."""
    i = np.arange(size) + begin
    real = ((i * 37 + 11) % 18 - 8.5) / 4
    return real + 1j * ((i * 23 + 5) % 17 - 8) / 4 if is_complex else real


def dense(v: np.ndarray, rows: int, columns: int, ld: int = LD) -> np.ndarray:
    return np.array([[v[j * ld + i] for j in range(columns)] for i in range(rows)])


def places(count: int, step: int) -> list[int]:
    return [i * step if step > 0 else (i - (count - 1)) * step for i in range(count)]


def vector(v: np.ndarray, count: int, step: int) -> np.ndarray:
    return v[places(count, step)]


def op(a: np.ndarray, turn: int) -> np.ndarray:
    return (a, a.T, a.conj().T)[turn]


def triangle(a: np.ndarray, upper: bool, unit: bool = False) -> np.ndarray:
    part = (np.triu if upper else np.tril)(a).copy()
    if unit:
        np.fill_diagonal(part, 1)
    return part


def stored(upper: bool) -> list[tuple[int, int]]:
    """Return the places of a packed triangle, in order."""
    return [(i, j) for j in range(N) for i in (range(j + 1) if upper else range(j, N))]


def packed(v: np.ndarray, upper: bool) -> np.ndarray:
    a = np.zeros((N, N), v.dtype)
    for at, place in enumerate(stored(upper)):
        a[place] = v[at]
    return a


def band(v: np.ndarray, upper: bool) -> np.ndarray:
    a = np.zeros((N, N), v.dtype)
    for i, j in stored(upper):
        if abs(i - j) <= K:
            a[i, j] = v[j * LD + (K if upper else 0) + i - j]
    return a


def whole(part: np.ndarray, hermitian: bool = False) -> np.ndarray:
    """Return the symmetric or Hermitian matrix of a triangle."""
    diagonal = np.diag(np.diag(part))
    off = part - diagonal
    return off + off.conj().T + diagonal.real if hermitian else off + off.T + diagonal


def real_diagonal(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a[np.diag_indices(N)] = a[np.diag_indices(N)].real
    return a


class Expected:
    """What each routine leaves in its output, which begins as numbers from 400 on."""

    def __init__(self, is_complex: bool, upper: bool, turn: int, unit: bool, size: int) -> None:
        self.upper, self.turn, self.unit = upper, turn, unit
        self.a, self.b, self.x, self.y = (made(n, begin, is_complex) for n, begin in ((64, 0), (64, 100), (32, 200), (32, 300)))
        self.p, self.q = made(8, 0, is_complex)[[7, 3]]
        self.o = made(size, 400, is_complex).astype(complex)
        self.square = dense(self.a, N, N)

    def set_vector(self, count: int, step: int, value: np.ndarray) -> None:
        self.o[places(count, step)] = value

    def set_matrix(self, value: np.ndarray, ld: int, part: bool = False) -> None:
        for i in range(value.shape[0]):
            for j in range(value.shape[1]):
                if not part or (i <= j if self.upper else i >= j):
                    self.o[j * ld + i] = value[i, j]

    def set_packed(self, value: np.ndarray) -> None:
        self.o[:15] = [value[place] for place in stored(self.upper)]

    def product(self, a: np.ndarray, steps: tuple[int, int]) -> None:
        self.set_vector(N, steps[1], self.p * a @ vector(self.x, N, steps[0]) + self.q * vector(self.o, N, steps[1]))

    def of(self, name: str) -> np.ndarray:
        upper, turn, unit, p, q, o = self.upper, self.turn, self.unit, self.p, self.q, self.o
        small, right = dense(self.a, M, M), op(triangle(self.square, upper, unit), turn)
        left = op(triangle(small, upper, unit), turn)
        one = {"tr": self.square, "tp": packed(self.a, upper), "tb": band(self.a, upper)}
        if name in ("trmv", "tpmv", "tbmv"):
            step = {"tr": 2, "tp": 1, "tb": -2}[name[:2]]
            self.set_vector(N, step, op(triangle(one[name[:2]], upper, unit), turn) @ vector(o, N, step))
        elif name in ("trsv", "tpsv"):
            step = {"tr": 2, "tp": -1}[name[:2]]
            self.set_vector(N, step, np.linalg.solve(op(triangle(one[name[:2]], upper, unit), turn), vector(o, N, step)))
        elif name == "trmm":
            self.set_matrix(p * left @ dense(self.b, M, N), 5)
        elif name == "trmm_right":
            self.set_matrix(p * dense(o, M, N, 5) @ right, 5)
        elif name == "trsm":
            self.set_matrix(np.linalg.solve(left, p * dense(o, M, N, 5)), 5)
        elif name == "trsm_right":
            self.set_matrix(np.linalg.solve(right.T, p * dense(o, M, N, 5).T).T, 5)
        elif name == "gbmv":
            a = np.array([[self.a[j * LD + 2 + i - j] if -2 <= i - j <= 1 else 0 for j in range(N)] for i in range(M)])
            a = op(a, turn)
            self.set_vector(a.shape[0], 2, p * a @ self.x[: a.shape[1]] + q * vector(o, a.shape[0], 2))
        elif name in ("symv", "hemv"):
            self.product(whole(triangle(self.square, upper), name == "hemv"), (2, -1 if name == "symv" else 1))
        elif name in ("sbmv", "hbmv"):
            self.product(whole(band(self.a, upper), name == "hbmv"), (2, 1))
        elif name in ("spmv", "hpmv"):
            self.product(whole(packed(self.a, upper), name == "hpmv"), (2, 1))
        elif name in ("syr", "spr"):
            v = vector(self.x, N, 2)
            self.rank(name, p * np.outer(v, v))
        elif name in ("her", "hpr"):
            v = vector(self.x, N, 2)
            self.rank(name, 1.5 * np.outer(v, v.conj()))
        elif name in ("syr2", "spr2"):
            u, v = (vector(self.x, N, 1), vector(self.y, N, -1)) if name == "syr2" else (vector(self.x, N, 2), self.y[:N])
            self.rank(name, p * (np.outer(u, v) + np.outer(v, u)))
        elif name in ("her2", "hpr2"):
            u, v = vector(self.x, N, 2), self.y[:N]
            self.rank(name, p * np.outer(u, v.conj()) + np.conj(p) * np.outer(v, u.conj()))
        elif name == "symm":
            self.set_matrix(p * whole(triangle(small, upper)) @ dense(self.b, M, N) + q * dense(o, M, N, 5), 5)
        elif name == "hemm":
            self.set_matrix(p * dense(self.b, M, N) @ whole(triangle(self.square, upper), True) + q * dense(o, M, N, 5), 5)
        elif name == "tpttr":
            self.set_matrix(packed(self.a, upper), LD, True)
        elif name == "trttp":
            self.set_packed(self.square)
        elif name == "dgmm":
            self.set_matrix(dense(self.a, M, N) @ np.diag(vector(self.x, N, 2)), 5)
        elif name in ("syrk", "syr2k", "syrkx", "herk", "her2k"):
            self.rank_k(name)
        elif name == "rot":
            self.set_vector(5, 2, 0.6 * vector(o, 5, 2) + 0.8 * self.x[:5])
        elif name == "gemm":
            a = dense(self.a, M, K) if turn == 0 else dense(self.a, K, M).conj().T
            self.set_matrix(p * a @ dense(self.b, N, K).T + q * dense(o, M, N, 5), 5)
        elif name == "gemv":
            a = op(dense(self.a, M, N), turn)
            self.set_vector(a.shape[0], -2, p * a @ self.x[: a.shape[1]] + q * vector(o, a.shape[0], -2))
        elif name == "gerc":
            self.set_matrix(dense(o, M, N) + p * np.outer(vector(self.x, M, 2), self.y[:N].conj()), LD)
        else:
            o[0] = self.number(name)
        return o

    def rank(self, name: str, more: np.ndarray) -> None:
        is_packed, hermitian = name[1] == "p", name[0] == "h"
        now = (packed(self.o, self.upper) if is_packed else dense(self.o, N, N)) + more
        now = real_diagonal(now) if hermitian else now
        if is_packed:
            self.set_packed(now)
        else:
            self.set_matrix(now, LD, True)

    def rank_k(self, name: str) -> None:
        hermitian = name[0] == "h"
        how = 2 if hermitian else 1
        a, b = (dense(v, N, K) if self.turn == 0 else op(dense(v, K, N), how) for v in (self.a, self.b))
        c = dense(self.o, N, N)
        value = {
            "syrk": lambda: self.p * a @ a.T + self.q * c, "syrkx": lambda: self.p * a @ b.T + self.q * c,
            "syr2k": lambda: self.p * (a @ b.T + b @ a.T) + self.q * c, "herk": lambda: 1.5 * a @ op(a, 2) - 0.5 * real_diagonal(c),
            "her2k": lambda: self.p * a @ op(b, 2) + np.conj(self.p) * b @ op(a, 2) - 0.5 * real_diagonal(c),
        }[name]()  # fmt: skip
        self.set_matrix(value, LD, True)

    def number(self, name: str) -> complex:
        v = vector(self.x, 5, 2)
        sizes = np.abs(vector(self.x, 16, 2).real) + np.abs(vector(self.x, 16, 2).imag)
        return {
            "dotc": lambda: np.vdot(v, vector(self.y, 5, -1)), "nrm2": lambda: np.linalg.norm(v), "amax": lambda: np.argmax(sizes) + 1,
            "asum": lambda: sum(abs(v.real) + abs(v.imag)), "refused": lambda: 15,  # a type that is not offered: CUBLAS_STATUS_NOT_SUPPORTED
        }[name]()  # fmt: skip


def test_every_form_gives_what_numpy_gives() -> None:
    source = transpile.compile_text(PROGRAM, host=True).source
    said = subprocess.run([str(executable(source, "-O0"))], capture_output=True, text=True, timeout=60, check=True).stdout
    kind, upper, turn, unit, seen = "", False, 0, False, 0
    for line in said.splitlines():
        name, *words = line.split()
        if name == "of":
            kind = words[0]
        elif name == "at":
            upper, turn, unit = words[0] == "1", int(words[1]), words[2] == "1"
        elif name == "rotg":
            assert words[:2] == ["5", "1.66667"]
        else:
            numbers = np.array(words, float).reshape(-1, 2)
            got, wanted = numbers[:, 0] + 1j * numbers[:, 1], Expected(kind in "ZH", upper, turn, unit, len(numbers)).of(name)
            np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-11 * max(1, np.abs(wanted).max()), err_msg=line[:40])
            seen += 1
    assert seen == 347

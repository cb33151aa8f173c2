"""The functions that tier vectors inlines keep to the errors that the runtime states, for floats of all sizes, to <cmath>'s limits, and vectorise."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpwright import native
from warpwright.domains import transpile
from warpwright.domains.transpile import launch
from warpwright.domains.transpile.launch.runtime_text import runtime

Array = NDArray[Any]
STRIDE = 4999
"""Every so manieth bit pattern of a float is tried, a prime: 859 thousand of them. All bounds also held for every 997th."""


def quarters(x: Array, shift: int) -> Array:
    """Return sin(pi (x + shift / 2)) exactly enough: the rest of x by 1/2 is exact."""
    m = np.fmod(x, 2.0)
    k = np.where(np.isfinite(x), np.round(2 * m), 0.0)
    r = (m - k / 2) * np.pi
    y = np.choose((k.astype(int) + shift) % 4, [np.sin(r), np.cos(r), -np.sin(r), -np.cos(r)])
    return np.where(y == 0, np.copysign(0.0, x) if shift == 0 else 0.0, y)


def elements(f: Callable[[float], float]) -> Callable[[Array], Array]:
    return lambda x: np.array([f(v) for v in x[::8]])


ONE: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "exp": (1.05, np.exp), "exp2": (1.0, np.exp2), "exp10": (1.25, lambda x: np.power(10.0, x)), "expm1": (1.45, np.expm1),
    "log": (0.93, np.log), "log2": (0.51, np.log2), "log10": (0.51, np.log10), "log1p": (1.4, np.log1p), "sinh": (2.2, np.sinh),
    "cosh": (1.5, np.cosh), "tanh": (1.35, np.tanh), "asinh": (0.51, np.arcsinh), "acosh": (0.51, np.arccosh), "atanh": (0.51, np.arctanh),
    "cbrt": (0.51, np.cbrt), "rcbrt": (0.51, lambda x: 1 / np.cbrt(x)), "sin": (0.55, np.sin), "cos": (0.55, np.cos), "tan": (0.55, np.tan),
    "near_sin": (0.55, np.sin), "near_cos": (0.55, np.cos), "near_tan": (0.55, np.tan), "sinpi": (0.52, lambda x: quarters(x, 0)),
    "cospi": (0.52, lambda x: quarters(x, 1)), "atan": (0.51, np.arctan), "asin": (0.51, np.arcsin), "acos": (0.51, np.arccos),
    "erf": (1.7, elements(math.erf)), "erfc": (3.1, elements(math.erfc)), "normcdf": (3.7, elements(lambda v: 0.5 * math.erfc(-v * 0.5**0.5))),
}  # fmt: skip
"""Largest error in units in the last place, as the runtime states it, and what is exact."""

TWO: dict[str, tuple[float, Callable[[Array, Array], Array]]] = {
    "pow": (0.52, np.power), "atan2": (0.51, np.arctan2), "fmod": (0.0, np.fmod), "hypot": (0.51, np.hypot),
    "rhypot": (0.51, lambda x, y: 1 / np.hypot(x, y)), "fdim": (0.5, lambda x, y: np.where(x <= y, 0.0, x - np.where(x <= y, 0.0, y))),
}  # fmt: skip

EDGES = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 1e-45, -1e-45, 1.17549435e-38, 3.4028235e38, -3.4028235e38, 0.99999994, 1.0000001,
     -0.99999994, 2, 3, -2, -3, 4, 1.5, -1.5, 2.5, 0.49999997, 8388609, 16777217, 2.0**50, 2.0**49, 88.72284, -103.97, 89.4, 128, -149.5, 10.2],
    np.float32,
)  # fmt: skip


def loop(name: str, arguments: str) -> str:
    inputs = "".join(f"const float* __restrict__ {a}, " for a in arguments)
    values = ", ".join(f"{a}[i]" for a in arguments)
    head = f'extern "C" void try_{name}({inputs}float* __restrict__ to, long n)'
    return f"{head} {{\n#pragma omp simd\nfor (long i = 0; i < n; ++i) to[i] = ww::{name}_f({values}); }}"


def program() -> str:
    loops = [loop(name, "x") for name in ONE] + [loop(name, "xy") for name in TWO]
    return runtime(("base", "vmath", "vtrig")) + "\n".join(loops)


@pytest.fixture(autouse=True, scope="module")
def quick_builds() -> None:
    """Built as users' programs are: with -O1, other products and sums are contracted, and cos of 1e15 errs by 0.84 units instead of 0.55."""


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    return native.load(native.build(program(), flags=[*launch.FLAGS, "-w"]))


def call(library: ctypes.CDLL, name: str, *inputs: Array) -> Array:
    y = np.empty_like(inputs[0])
    library[f"try_{name}"](*(ctypes.c_void_p(x.ctypes.data) for x in (*inputs, y)), ctypes.c_long(y.size))
    return y


def ulps(seen: Array, exact: Array) -> Array:
    """Return the errors in units in the last place of the exact answer; infinite where Inf, NaN or the sign of 0 differ."""
    with np.errstate(all="ignore"):
        near = exact.astype(np.float32)
        unit = np.where(np.isfinite(near), np.spacing(np.abs(near)), np.float32(2.0**104)).astype(float)
        error = np.abs(seen - exact) / unit
    alike = (np.isnan(seen) & np.isnan(exact)) | ((seen == near) & np.isinf(seen))
    error = np.where(alike, 0.0, np.where(np.isnan(error), np.inf, error))
    return np.where((seen == 0) & (near == 0) & (np.signbit(seen) != np.signbit(near)), np.inf, error)


def judge(name: str, seen: Array, exact: Array, inputs: tuple[Array, ...], stated: float) -> None:
    error = ulps(seen, exact)
    at = int(np.argmax(error))
    assert error[at] <= stated, f"{name}{tuple(float(x[at]) for x in inputs)}: {seen[at]!r} for {exact[at]!r}, {error[at]:.3f} ulp"


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(library: ctypes.CDLL, name: str) -> None:
    rng = np.random.default_rng(0)
    patterns = np.arange(0, 1 << 32, STRIDE, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near_quarters = (np.arange(1, 50_001) * (np.pi / 2)).astype(np.float32)
    x = np.concatenate([patterns, np.repeat(EDGES, 8), rng.uniform(-10, 10, 200_000).astype(np.float32), near_quarters])
    if name.startswith("near_"):
        x = x[(np.abs(x) < 2.0**50) | ~np.isfinite(x)]
    x = np.ascontiguousarray(x[: x.size // 8 * 8])
    stated, exact = ONE[name]
    with np.errstate(all="ignore"):
        answers = exact(x.astype(float))
    step = x.size // answers.size
    judge(name, call(library, name, x)[::step], answers, (x[::step],), stated)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers(library: ctypes.CDLL, name: str) -> None:
    rng = np.random.default_rng(1)
    patterns = np.arange(0, 1 << 32, 4 * STRIDE, dtype=np.uint64).astype(np.uint32).view(np.float32)
    pairs = [
        (patterns, rng.permutation(patterns)), tuple(a.ravel() for a in np.meshgrid(EDGES, EDGES)), tuple(rng.uniform(-8, 8, (2, 200_000))),
        (2.0 ** rng.uniform(-20, 20, 200_000), rng.choice([-1.0, 1.0], 200_000) * 2.0 ** rng.uniform(-20, 20, 200_000)),
        (1 + rng.uniform(-1e-3, 1e-3, 100_000), rng.uniform(-1e5, 1e5, 100_000)),
    ]  # fmt: skip
    with np.errstate(invalid="ignore"):
        x, y = (np.concatenate([pair[side] for pair in pairs]).astype(np.float32) for side in (0, 1))
    stated, exact = TWO[name]
    with np.errstate(all="ignore"):
        answers = exact(x.astype(float), y.astype(float))
    judge(name, call(library, name, x, y), answers, (x, y), stated)


def test_a_wrong_function_would_be_seen() -> None:
    exact = np.array([1.0, 0.0, np.inf, 2.0])
    seen = np.array([np.nextafter(np.float32(1), np.float32(2)), -0.0, 3e38, np.nan], np.float32)
    assert ulps(seen, exact)[0] == 1 and np.all(np.isinf(ulps(seen, exact)[[1, 3]])) and ulps(seen, exact)[2] > 1


SOURCE = r"""
template <class T> __device__ T silu(T x) { return x / (T(1) + exp(-x)); }
__device__ float gelu(float x) { return 0.5f * x * (1.f + erff(x * 0.70710678f)); }
template <class T> __global__ void first(const T* x, T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = silu<T>(x[i]) + exp(x[i]);
}
__global__ void second(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = gelu(x[i]) + std::sin(x[i]) + pow(x[i], 2.0f) + pow(x[i], 2) + ::sqrt(x[i]);
}
__global__ void third(const float* x, float* y) {
  int i = blockIdx.x * 48 + threadIdx.x;
  y[i] = x[i] < 0 ? __logf(-x[i]) : 1.f / sqrtf(x[i]);
}
__global__ void fourth(const float* x, float* y, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = acosf(asinhf(x[i])) + fmodf(x[i], 0.3f) + roundf(__powf(x[i], x[i]));
}
__global__ void fifth(const float* x, float* y, int n) {
  int i = threadIdx.x;
  if (i < n) { float s, c; sincosf(x[i], &s, &c); y[i] = s + 2.f * c; }
}
__global__ void sixth(const float* x, float* y, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = powf(2.f + x[i], 0.75f) + powf(x[i], 0.001f * n) + pow(x[i], n) + atan2f(x[i], 0.5f) + hypotf(x[i], 2.f);
}
void run(const float* x, float* y, int n) { first<float><<<1, 256>>>(x, y, n); }
"""


def test_loops_are_vectorised_without_flags(tmp_path: Path) -> None:
    """With the plain command line: what gcc needs beyond -O3 stands in the output."""
    compiler = native.compiler()[0]
    if "clang" in compiler:
        pytest.skip("gcc's report is read")
    program = transpile.compile_text(SOURCE, "functions.cu")
    assert {kernel.tier for kernel in program.kernels.values()} == {"vectors"}
    source = tmp_path / "functions.cpp"
    source.write_text(program.source)
    flags = ["-O3", "-march=native", "-std=gnu++17", "-fopenmp", "-w", "-c", "-fopt-info-vec"]
    command = [compiler, *flags, "-o", str(tmp_path / "made.o"), str(source)]
    report = subprocess.run(command, check=True, capture_output=True, text=True, timeout=250).stderr
    lines = program.source.splitlines()
    loops = {number for number, line in enumerate(lines, 1) if line.strip().startswith("for (int thread_x")}
    done = {int(line.split(":")[1]) for line in report.splitlines() if "loop vectorized" in line}
    assert len(loops) == 6
    assert all(done & {*range(number, number + 5)} for number in loops), f"expected those at {sorted(loops)}, saw {sorted(done)}"


def test_tiers_agree() -> None:
    x = np.random.default_rng(2).uniform(0.5, 1.1, 240).astype(np.float32)
    for kernel, block in (("first<float>", 48), ("second", 48), ("third", 48), ("fourth", 240), ("fifth", 240), ("sixth", 240)):
        answers = []
        for tier in ("fibers", "vectors"):
            y = np.zeros_like(x)
            transpile.compile_text(SOURCE, "functions.cu", tier=tier).load()[kernel][240 // block, block](x, y, *([] if kernel == "third" else [240]))
            answers.append(y)
        np.testing.assert_allclose(answers[1], answers[0], rtol=5e-7)


def test_names_that_a_program_defines_stay_its_own() -> None:
    program = transpile.compile_text(
        "__device__ float expf(float2 x) { return x.x; }\n__device__ float erf(int x) { return x; }\n"
        "__global__ void k(float* y) { y[threadIdx.x] = erf((int)threadIdx.x) + expf(make_float2(1, 2)); }", "own.cu"
    )  # fmt: skip
    assert "ww::any_erf" not in program.source.partition("// ---- own.cu")[2] and "ww::exp_f" not in program.source.partition("// ---- own.cu")[2]


def test_a_function_of_the_program_is_not_the_librarys() -> None:
    text = """__device__ float round(float x) { for (int i = 0; i < 3; ++i) x += i; return x; }
    __global__ void k(float* x) { x[threadIdx.x] = round(x[threadIdx.x]); }"""
    assert "round" in transpile.compile_text(text).kernels["k"].reason or transpile.compile_text(text).kernels["k"].tier == "loops"
    library = transpile.compile_text("__global__ void k(float* x) { x[threadIdx.x] = roundf(x[threadIdx.x]); }")
    assert (library.kernels["k"].tier, library.kernels["k"].reason) == ("vectors", "")

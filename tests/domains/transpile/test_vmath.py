"""The inlined functions keep to the errors that runtime/vmath.hpp states, and to <cmath>'s limits."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from warpwright import native
from warpwright.domains.transpile.runtime_text import runtime

STATED = {"exp_f": 1.1, "tanh_f": 3.0, "log_f": 2.0}
"""Largest error in units in the last place, as vmath.hpp says."""


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    loops = "\n".join(
        f'extern "C" void {name}(const float* x, float* y, long n) {{\n#pragma omp simd\nfor (long i = 0; i < n; ++i) y[i] = ww::{name}(x[i]); }}' for name in STATED
    )
    return native.load(native.build(runtime(("base", "vmath")) + loops, flags=[*native.FLAGS, "-w", "-fno-math-errno", "-fno-trapping-math"]))


def call(library: ctypes.CDLL, name: str, x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    library[name](ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_long(x.size))
    return y


def ulps(seen: np.ndarray, exact: np.ndarray) -> float:
    """Return the largest error in units in the last place of the exact answer as a float."""
    return float(np.max(np.abs(seen.astype(float) - exact) / np.spacing(np.abs(exact).astype(np.float32)).astype(float)))


@pytest.mark.parametrize("name", STATED)
def test_errors_are_as_stated(library: ctypes.CDLL, name: str) -> None:
    rng = np.random.default_rng(0)
    if name == "exp_f":
        x = np.concatenate([rng.uniform(-87.3, 88.7, 2_000_000), rng.normal(0, 1, 1_000_000)]).astype(np.float32)
    elif name == "tanh_f":
        x = np.concatenate([rng.uniform(-12, 12, 2_000_000), rng.normal(0, 0.3, 1_000_000), 10.0 ** rng.uniform(-30, 0, 100_000)]).astype(np.float32)
    else:
        x = np.concatenate([2.0 ** rng.uniform(-126, 127.9, 2_000_000), rng.uniform(0.5, 2, 1_000_000)]).astype(np.float32)
    exact = {"exp_f": np.exp, "tanh_f": np.tanh, "log_f": np.log}[name](x.astype(float))
    assert ulps(call(library, name, x), exact) <= STATED[name]


def test_limits(library: ctypes.CDLL) -> None:
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e4, -1e4], np.float32)
    with np.errstate(all="ignore"):
        assert np.array_equal(call(library, "exp_f", x), np.exp(x), equal_nan=True)
        assert np.array_equal(call(library, "tanh_f", x), np.tanh(x), equal_nan=True)
        assert np.array_equal(call(library, "log_f", x), np.log(x), equal_nan=True)

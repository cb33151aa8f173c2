"""Volatile shared memory: where barriers order what threads exchange it is plain memory; where they do not, the kernel counts on lockstep."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains import transpile
from warpwright.domains.transpile.analysis.arrays import volatile
from warpwright.domains.transpile.frontend import parse, source

ORDERED = {
    "a stencil": "s[t + 1] = x[t]; if (t == 0) s[0] = x[63]; __syncthreads(); y[t] = s[t] + s[t + 1];",
    "a scan": "s[t] = x[t]; for (int d = 1; d < 64; d *= 2) {"
    " __syncthreads(); float v = t >= d ? s[t - d] : 0; __syncthreads(); s[t] += v; } y[t] = s[t];",
    "its own element": "s[t] = x[t]; s[t] *= 2; y[t] = s[t];",
    "a tree with barriers": "s[t] = x[t]; __syncthreads(); for (int d = 32; d > 0; d /= 2) { float v = t < d ? s[t + d] : 0; __syncthreads(); s[t] += v; __syncthreads(); } y[t] = s[0];",  # noqa: E501
}
RELYING = {
    "a tree without barriers": "s[t] = x[t]; __syncthreads(); if (t < 32) { s[t] += s[t + 32]; s[t] += s[t + 16]; } y[t] = s[t];",
    "a read of another's element": "s[t] = x[t]; y[t] = s[t ^ 1];",
    "a write after another's read": "s[t] = x[t]; __syncthreads(); float v = s[t + 1]; s[t] = v; __syncthreads(); y[t] = s[t];",
    "an index that moved": "int i = t; s[i] = x[t]; i ^= 1; y[t] = s[i];",
    "the next turn of a loop": "for (int d = 1; d < 64; d *= 2) { float v = s[(t + d) & 63]; __syncthreads(); s[t] = v + 1; } y[t] = s[t];",
    "a pointer": "s[t] = x[t]; volatile float* p = s; __syncthreads(); y[t] = p[t];",
    "a wait": "s[t] = x[t]; __syncthreads(); while (s[0] > 3) {} y[t] = s[t];",
}
HEAD = "__global__ void k(const float* x, float* y) { __shared__ volatile float s[128]; int t = threadIdx.x; "


def is_ordered(text: str, name: str) -> bool:
    """Say whether barriers order what threads exchange in one function of a text."""
    functions = parse.parse(source.read(text, "k.cu", (), (), ()))
    return next(volatile.ordered(f) is not f for f in functions if f.name == name)


@pytest.mark.parametrize("name", [*ORDERED, *RELYING])
def test_what_barriers_order_is_plain_memory(name: str) -> None:
    body = {**ORDERED, **RELYING}[name]
    assert is_ordered(HEAD + body + " }", "k") == (name in ORDERED)


@pytest.mark.parametrize("name", ORDERED)
def test_what_barriers_order_leaves_fibers(name: str) -> None:
    info = transpile.compile_text(HEAD + ORDERED[name] + " }").kernels["k"]
    assert info.tier != "fibers", info.reason


def test_functions_that_take_volatile_pointers() -> None:
    device = "__device__ float {name}(volatile float* s, int t, float v) {{ {body} }}\n"
    kernel = "__global__ void k(const float* x, float* y) {{ __shared__ float s[128]; y[threadIdx.x] = {name}(s, threadIdx.x, x[threadIdx.x]); }}"
    scan = "s[t] = 0; t += 64; s[t] = v; for (int d = 1; d < 64; d *= 2) { __syncthreads(); float w = s[t] + s[t - d]; __syncthreads(); s[t] = w; } return s[t];"  # noqa: E501
    through = device.format(name="scan", body=scan) + device.format(name="less", body="return scan(s, t, v) - v;")
    assert transpile.compile_text(through + kernel.format(name="less")).kernels["k"].tier != "fibers"
    first = device.format(name="tree", body="s[t] += s[t + 16]; return s[t];")  # what the caller wrote may be another thread's
    assert is_ordered(through, "scan") and not is_ordered(first, "tree")


@pytest.mark.compiler
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_a_volatile_scan_gives_its_sums() -> None:
    loaded = transpile.compile_text(HEAD + ORDERED["a scan"] + " }").load()
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    loaded["k"][1, 64](x, y)
    assert np.array_equal(y, np.cumsum(x))

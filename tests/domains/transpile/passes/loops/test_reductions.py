"""Maxima and minima found by one thread: which nests become one vectorised loop, and their answers against one fiber a thread."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

HEAD = 'extern "C" __global__ void {name}(const float* __restrict__ a, float* __restrict__ out, int n) {{\n'
NEST = "for (int i = 0; i < 5; ++i) for (int j = 0; j < 6; ++j) for (int k = 0; k < 7; ++k) "


def program(bodies: dict[str, str], tier: str = "vectors") -> transpile.Program:
    return transpile.compile_text("".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items()), tier=tier)


TAKEN = {
    "largest": f"out[0] = -3e38f; {NEST} out[0] = max(out[0], a[((i * 42) + (j * 7)) + k]);",
    "smallest": f"float m = a[0]; {NEST} m = fminf(a[i * 42 + j * 7 + k + n], m); out[0] = m;",
    "of_products": f"float m = 0; {NEST} m = max(m, a[i * 42 + j * 7 + k] * a[k + n + j * 7 + i * 42]); out[0] = m;",
    "one_loop": "float m = 0; for (int k = 0; k < 300; ++k) m = fmaxf(m, a[k]); out[0] = m;",
    "two": f"float m = 0; for (int k = 0; k < 300; ++k) m = fmaxf(m, a[k]); {NEST} m = fminf(m, a[i * 42 + j * 7 + k]); out[0] = m;",
}

LEFT = {
    "a sum": f"float m = 0; {NEST} m = m + a[i * 42 + j * 7 + k]; out[0] = m;",
    "gaps": f"float m = 0; {NEST} m = max(m, a[i * 48 + j * 8 + k]); out[0] = m;",
    "the counter": f"float m = 0; {NEST} m = max(m, a[i * 42 + j * 7 + k] * k); out[0] = m;",
    "itself": f"float m = 0; {NEST} m = max(m, a[i * 42 + j * 7 + k] - m); out[0] = m;",
    "short": "float m = 0; for (int k = 0; k < 9; ++k) m = fmaxf(m, a[k]); out[0] = m;",
    "the thread": f"float m = 0; {NEST} m = max(m, a[i * 42 + j * 7 + k + threadIdx.x]); out[threadIdx.x] = m;",
    "another start": "float m = 0; for (int i = 1; i < 9; ++i) for (int k = 0; k < 30; ++k) m = fmaxf(m, a[i * 30 + k]); out[0] = m;",
    "an open end": "float m = 0; for (int k = 0; k < n; ++k) m = fmaxf(m, a[k]); out[0] = m;",
    "other memory": f"float m = 0; {NEST} m = max(m, a[(int)a[i * 42 + j * 7 + k]]); out[0] = m;",
}


@pytest.mark.parametrize("name", TAKEN)
def test_nests_that_are_vectorised(name: str) -> None:
    assert program({"k": TAKEN[name]}).source.count("omp simd reduction(") == (2 if name == "two" else 1)


@pytest.mark.parametrize("name", LEFT)
def test_nests_that_are_left(name: str) -> None:
    assert "omp simd reduction(" not in program({"k": LEFT[name]}).source


@pytest.mark.compiler
def test_answers_are_those_of_fibers() -> None:
    vectors, fibers = program(TAKEN).load(), program(TAKEN, "fibers").load()
    random = np.random.default_rng(0)
    for trial in range(20):
        a = random.normal(size=400).astype(np.float32)
        a[random.integers(0, 400, 40 * (trial % 3))] = np.nan
        a[random.integers(0, 400, trial % 4)] = np.inf * (-1) ** trial
        for name in TAKEN:
            seen, expected = np.zeros(1, np.float32), np.zeros(1, np.float32)
            vectors[name][2, 3](a, seen, trial)
            fibers[name][2, 3](a, expected, trial)
            assert np.array_equal(seen, expected, equal_nan=True), (name, trial)

"""Threads that each go along a column, keep what the step before gave, and store at each step: vectors of neighbouring threads."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import numpy as np
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = """__global__ void {name}(const float* x, float* y, int* whole, int n, int m, float decay) {{
const int c = blockIdx.x * blockDim.x + threadIdx.x; if (c >= n) return;
"""
AVERAGE = "float s = 0.f; for (int t = 0; t < m; ++t) { s = decay * s + (1.f - decay) * x[t * n + c]; y[t * n + c] = s; }"
STORE = "ww::store(&y[t * n + c], (s_r[nth]) - ww::floats{});"


def program(bodies: dict[str, str], tier: str = "vectors") -> transpile.Program:
    text = "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items())
    return transpile.compile_text(text, "steps.cu", tier=tier, blocks=dict.fromkeys(bodies, (64, 1, 1)))


def apart(source: str) -> dict[str, str]:
    """Return the text of each kernel's blocks, by name."""
    pieces = re.split(r"static void (k\d+)_block\(", source)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def test_a_loop_that_stores_side_by_side_is_vectors_of_threads() -> None:
    assert STORE in program({"k": AVERAGE}).source


OTHERS = [
    ("t < m;", "t < whole[0];"),  # which the store may change
    ("y[t * n + c] = s;", "y[c * m + t] = s; s += x[c * m + t];"),  # rows: read ahead of the stores
    ("y[t * n + c] = s;", "whole[t * n + c] = s;"),
    ("y[t * n + c] = s;", "if (s > 0) y[t * n + c] = s;"),
    ("{ s =", "for (int k = 0; k < 2; ++k) { s ="),  # the loop around would have read its head
]  # fmt: skip


def test_others_are_left_alone() -> None:
    parts = apart(program({f"k{at}": AVERAGE.replace(*change) for at, change in enumerate(OTHERS)}).source)
    assert len(parts) == len(OTHERS)
    for name, text in parts.items():
        assert STORE not in text, name


POINTERS = """const float* p = x + c; float* q = y + c; float h = 0.f;
for (int t = 0; t < m; ++t) { h = *p * h + p[n * 0] - q[0] * 0.5f; p += n; *q = h; q += n; h += t + 1 < m ? *(p - n + c * 0) : 0.f; }"""
MOVED = """int at = 0, k = 0; float s = 0.f;
for (int t = 0; t < m; ++t) { const float d = x[at + c]; const int here = at; at += n; k += 2; s += d * s - x[at - n + c]; s += (float)k;
  y[here + c] = s; }
y[at + c] = s;"""


def test_pointers_that_go_along_are_read_side_by_side() -> None:
    text = program({"k": POINTERS.replace("*(p - n + c * 0)", "*p").replace("t + 1 < m ? *p : 0.f", "h")}).source.partition("void k_block")[2]
    assert "ww::load(&p[p_moved])" in text and "p_moved += (long)(n);" in text


def random_steps(random: Random) -> str:
    """Return a column's recurrence: old values, stores before and after reads of the same places, loops inside, sums of doubles."""
    pick = random.choice
    place = lambda: pick(("y[t * n + c]", "y[(m - 1 - t) * n + c]", "y[t * n + c]", "y[(t / 2) * n + c]"))  # noqa: E731
    read = lambda: pick(("x[t * n + c]", "x[c]", "x[t]", place(), place(), "s", "u", "old", "decay"))  # noqa: E731
    term = lambda: pick(("{} + {}", "{} * 0.5f - {}", "-{} + {}", "fmaxf({}, {})", "expf({} * 0.01f) * {}")).format(read(), read())  # noqa: E731
    steps = [f"const float old = {pick(('s', 'u', 'y[t * n + c]', 's * u'))};"]
    for _ in range(random.randrange(2, 6)):
        steps.append(pick((
            f"s = {term()} * 0.5f;", f"u += {term()} * 0.1f;", f"{place()} = {term()};", f"{place()} += {term()};", "w += s;", "w += old;",
            f"const float d{len(steps)} = {term()}; u = d{len(steps)} * 0.25f; s -= d{len(steps)};", "if (u > s) s = u;",
            f"for (int k = 0; k < {pick(('3', 't', 'm - 5'))}; ++k) u = u * 0.5f + x[k * n + c];",
        )))  # fmt: skip
    if random.random() < 0.5:  # a number that all threads move, and pointers that go along
        steps.insert(random.randrange(len(steps) + 1), pick(("at += n;", "at -= -n;", "++at;", "at += t;")))
        steps.append(pick(("s += x[at % n + c];", "u = y[at % 7 * 0 + t * n + c];", "const float e = x[c]; at += 1; s -= e;",
                           "p += n; s += *p;", "++p, s += p[n];")))  # fmt: skip
    loop = f"for (int t = {pick(('0', '1', 'm / 2'))}; t < {pick(('m', 'm - 3', 'm - 1'))}; {pick(('++t', 't += 2'))}) {{ {' '.join(steps)} }}"
    begun = "float s = x[c], u = 0.5f; double w = 0; int at = 0; const float* p = x + c;"
    return f"{begun} {loop} y[m * n + c] = s + u * 2.f; y[(m + 1) * n + c] = (float)w;"


def test_random_recurrences_agree_with_fibers(many: Callable[[int], int]) -> None:
    bodies = {f"k{seed}": random_steps(Random(seed)) for seed in range(many(8))} | {"average": AVERAGE, "pointers": POINTERS, "moved": MOVED}
    fast, slow = (program(bodies, tier) for tier in ("vectors", "fibers"))
    assert sum("ww::floats s_r[" in part for part in fast.source.split("_block(")) > len(bodies) // 4
    x = np.random.default_rng(3).standard_normal(8 * 77).astype(np.float32)
    loaded = fast.load(OPTIMISED), slow.load(PLAIN)
    for name, body in bodies.items():
        for n, m in ((77, 6), (64, 1)):
            outs = [np.linspace(-1, 1, 9 * 77).astype(np.float32) for _ in loaded]
            for kernels, out in zip(loaded, outs, strict=True):
                kernels[name][2, 64](x, out, np.zeros(1, np.int32), n, m, 0.9)
            if "expf" in body:
                assert np.allclose(*outs, rtol=2e-5, atol=2e-5), (name, n, body)
            else:
                assert np.array_equal(*outs, equal_nan=True), (name, n, body)

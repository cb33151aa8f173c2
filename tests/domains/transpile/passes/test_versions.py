"""Whole numbers that are set again: a variable for each value, and the same answers."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from warpwright.domains import transpile

HEAD = "__global__ void k(const float* a, float* out, int n, int m) {{ const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; {} }}"


def written(body: str) -> str:
    return transpile.compile_text(HEAD.format(body)).source.partition("static void k_block")[2].partition("static void k_launch")[0]


def test_each_value_has_a_name() -> None:
    text = written("int rest = i; const int h = rest / m; rest = rest % m; const int x = rest * n; rest += 1; out[i] = a[x + h] + rest;")
    assert "int rest_2 = (part_" in text and "int rest_3 = rest_2 + (1);" in text


@pytest.mark.parametrize(
    "body",
    [
        "int v = i; if (a[i] > 0) v = 2 * i; out[i] = v;",  # set in a branch
        "int v = 0; for (int k = 0; k < m; ++k) v = v + k; out[i] = v;",  # in a loop
        "int v = i; int& w = v; v = 2; out[i] = w;",  # by another name
        "int v = i; int* p = &v; v = 3; out[i] = *p;",
        "float v = a[i]; v = v + 1; out[i] = v;",  # no index
    ],
)
def test_others_stay_as_they_are(body: str) -> None:
    assert "v_2" not in written(body)


def _index_arithmetic(random: Random) -> str:
    """Return straight code that sets two whole numbers again and again, and ends with a store to the thread's own place."""
    lines = ["int p = i, q = i % 7;"]
    for _ in range(random.randint(3, 8)):
        one, other = random.sample(["p", "q"], 2)
        value = random.choice([f"{one} % {random.randint(2, 90)}", f"{other} / {random.randint(2, 20)}", f"{one} + {other}", "i - blockIdx.x", "m"])
        forms = [f"{one} = {value};", f"{one} += {value};", f"++{one};", f"{one} <<= 1;", f"if (i % 3 == 0) {{ {one} = {value}; }}"]
        lines.append(random.choice(forms))
        lines.append(f"s += a[(unsigned)({other} + {one}) % 64u];")
    return "float s = 0; " + " ".join(lines) + " out[i] = s + p - q;"


@pytest.mark.compiler
def test_random_index_arithmetic_gives_the_same_answers() -> None:
    random = Random(5)
    bodies = [_index_arithmetic(random) for _ in range(12)]
    text = "\n".join(HEAD.format(body).replace("void k(", f"void k{nth}(") for nth, body in enumerate(bodies))
    a = np.arange(64, dtype=np.float32)
    fast, slow = (transpile.compile_text(text, tier=tier).load() for tier in ("vectors", "fibers"))
    for nth, body in enumerate(bodies):
        answers = []
        for kernels in (fast, slow):
            out = np.zeros(200, np.float32)
            kernels[f"k{nth}"][4, 64](a, out, 200, 5)
            answers.append(out)
        np.testing.assert_array_equal(*answers, err_msg=body)

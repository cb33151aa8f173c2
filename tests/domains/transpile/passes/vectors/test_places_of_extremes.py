"""Where each thread's row, or column, is largest: the value and its place as vectors, what is left alone, and random kernels against fibers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = "__global__ void {name}(const float* x, int* place, float* value, int rows, int cols) {{\n"
ARGMAX = """const int r = blockIdx.x * blockDim.x + threadIdx.x; if (r >= rows) return;
float most = x[r * cols]; int at = 0;
for (int c = 1; c < cols; ++c) if (x[r * cols + c] > most) { most = x[r * cols + c]; at = c; }
place[r] = at;"""


def program(bodies: dict[str, str], tier: str = "vectors") -> transpile.Program:
    text = "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items())
    return transpile.compile_text(text, "places.cu", tier=tier)


def test_a_maximum_and_its_place_are_vectors() -> None:
    text = program({"k": ARGMAX}).source.partition("static void k_block")[2]
    assert "ww::load_rows(" in text and "at_r[nth] = taken ? ww::spread<ww::ints>((int)(c)) : at_r[nth];" in text
    assert "ww::store_lanes(&place[r], at_r[nth]);" in text


@pytest.mark.parametrize("change", [
    ("at = c;", "at = at + c;"),  # what it was counts too
    ("place[r] = at;", "place[at] = r;"),
    ("place[r] = at;", "place[r] += at;"),
    ("place[r] = at;", "for (int k = 0; k < 3; ++k) value[r * 3 + k] = at * 0.5f;"),
    ("at = c; }", "at = c; place[r] = c; }"),
    ("int at = 0;", "int at = r;"),  # where each thread begins is its own
])  # fmt: skip
def test_others_are_left_alone(change: tuple[str, str]) -> None:
    assert change[0] in ARGMAX and "at_r[nth]" not in program({"k": ARGMAX.replace(*change)}).source


def random_place(random: Random) -> str:
    pick = random.choice
    read = pick(("x[r * cols + {0}]", "x[r * cols + {0}]", "x[{0} * rows + r]", "row[{0}]")).format
    value, sign = read("c"), pick((">", ">=", "<", "<="))
    term = pick(("{0}", "-{0}", "{0} * x[c]", "fabsf({0})")).format(value)
    named = pick((True, False))
    new = pick(("at = c;", "at = c + 3;", "at = rows - c;", "at = 7;"))
    begin = pick(("0", "-1", "cols"))
    first = pick((read("0"), "-3.0f", "0.5f"))
    more = pick(("", f"sum += {value};", f"if ({value} < 0.f) {{ sum = {value}; second = c; }}"))
    kept = pick((f"most = v; {new}", f"{new} most = v;", "most = v; at = c; second = c - 1;"))
    kept = kept if named else kept.replace("v;", f"{term};")
    cond = f"{'v' if named else term} {sign} most"
    ends = pick(("place[r] = at;", "place[r] = at; value[r] = most + sum;", "value[r] = sum; place[rows - 1 - r] = at;"))
    return f"""const int r = blockIdx.x * blockDim.x + threadIdx.x; if (r >= rows) return;
    const float* row = x + r * cols; float most = {first}, sum = 0; int at = {begin}, second = 0;
    for (int c = {pick(('0', '1'))}; c < cols; ++c) {{ {f'const float v = {term};' if named else ''} if ({cond}) {{ {kept} }} {more} }}
    {ends} {pick(('', 'if (second > 2) value[r] = 1;', 'place[rows + r] = second;'))}"""


SEEDS = (4, 5, 7, 10, 13, 14, 17, 22, 0, 30, 1, 32)
"""A third of all random ones have the form; of these, all but two."""


@pytest.mark.compiler
def test_random_ones_agree_with_fibers(many: Callable[[int], int]) -> None:
    bodies = {f"k{seed}": random_place(Random(seed)) for seed in SEEDS[: many(len(SEEDS))]} | {"argmax": ARGMAX}
    fast, slow = (program(bodies, tier) for tier in ("vectors", "fibers"))
    assert sum("at_r[nth]" in part for part in fast.source.split("_block(")) > len(bodies) // 2
    x = np.random.default_rng(5).standard_normal(70 * 70).astype(np.float32).round(1)  # with equal values
    x[40:3000:97] = np.nan
    loaded = fast.load(OPTIMISED), slow.load(PLAIN)
    for name, body in bodies.items():
        for rows, cols in ((70, 37), (9, 3), (33, 64), (16, 1)):
            outs = [(np.zeros(200, np.int32), np.zeros(200, np.float32)) for _ in loaded]
            for kernels, (place, value) in zip(loaded, outs, strict=True):
                kernels[name][(rows + 31) // 32, 32](x, place, value, rows, cols)
            assert np.array_equal(outs[0][0], outs[1][0]), (name, rows, cols, body)
            assert np.array_equal(outs[0][1], outs[1][1], equal_nan=True), (name, rows, cols, body)

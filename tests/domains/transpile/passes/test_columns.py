"""Blocks that each go down a column, side by side: the form, what stays apart, and random kernels against one fiber a thread."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = "__global__ void {name}(const float* x, float* out, int rows, int width) {{\n"
SUM = """__shared__ float s[64]; const int o = blockIdx.x, t = threadIdx.x; float sum = 0;
for (int i = t; i < rows; i += blockDim.x) sum += x[i * width + o];
s[t] = sum; __syncthreads();
for (int d = blockDim.x / 2; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
if (t == 0) out[o] = s[0];"""


def program(bodies: dict[str, str], tier: str = "vectors") -> transpile.Program:
    text = "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items())
    return transpile.compile_text(text, "columns.cu", tier=tier, blocks=dict.fromkeys(bodies, (64, 1, 1)))


def test_blocks_that_go_down_columns_stand_side_by_side() -> None:
    text = program({"k": SUM}).source.partition("static void k_columns")[2]
    assert "alignas(64) float s[64][BX];" in text and "s[t][thread_x]" in text
    assert "if (launch.is(64, 1, 1) && launch.joins(64))" in text and "k_columns<16, 64, 1>(wide, index, x, out, rows, width);" in text


@pytest.mark.parametrize("change", [
    ("x[i * width + o]", "x[o * width + i]"),  # rows, which threads read side by side
    ("if (t == 0) out[o]", "if (t == 0 && gridDim.x > 3) out[o]"),
    ("out[o] = s[0]", "atomicAdd(out, s[0])"),
    ("s[t] = sum;", "float* p = s; p[t] = sum;"),
    ("i < rows;", "i < rows + blockIdx.x;"),  # threads would leave the loop at different times: it holds no barrier
    ("__syncthreads();\nfor", "__syncthreads(); if (blockIdx.x == 2) return;\nfor"),
])  # fmt: skip
def test_other_blocks_stay_apart_or_keep_their_answers(change: tuple[str, str]) -> None:
    text = program({"k": SUM.replace(*change)}).source
    assert "k_columns" not in text or change[0] == "i < rows;"


def test_arrays_that_do_not_fit_the_stack_keep_blocks_apart() -> None:
    assert "k_columns<64, 64, 1>" in program({"k": SUM}).source
    wide = program({"k": SUM.replace("float s[64];", "float s[4096];")}).source  # 64 times 16 KB
    assert "k_columns<64, 64, 1>" not in wide and "k_columns<16, 64, 1>" in wide
    assert "k_columns" not in program({"k": SUM.replace("float s[64];", "float s[12000];")}).source


def random_columns(random: Random) -> str:
    """Return a kernel whose blocks go down columns, with shared memory of one or two dimensions, guards and a way to put the parts together."""
    pick = random.choice
    kind, place = pick((("float s[64]", "s[{0}]"), ("float s[2][64]", "s[{0} % 2][{0}]"), ("float s[64][2]", "s[{0}][1]")))
    at = place.format
    value = pick(("sum", "sum * 0.5f + x[o]", "o % 3 == 0 ? sum : -sum", "sum + blockIdx.x"))
    read = pick(("x[i * width + o]", "p[i * width]", "x[o + (rows - 1 - i) * width]"))
    wide = pick(("float sum = 0;", "double sum = 0;", "float sum = x[o];"))
    ways = (
        f"for (int d = blockDim.x / 2; d > 0; d /= 2) {{ if (t < d) {at('t')} += {at('(t + d)')}; __syncthreads(); }} "
        f"if (t == 0) out[o] = {at('0')};",
        f"if (t == 0) {{ float all = 0; for (int j = 0; j < 64; ++j) all += {at('j')}; out[o] += all; }}",
        f"out[t * width + o] = {at('(63 - t)')};",
        f"if (o > 5) {{ out[t * width + o] = {at('t')} - {at('0')}; }}",
    )
    number = pick(("const int o = blockIdx.x, t = threadIdx.x;", "const unsigned o = blockIdx.x; const int t = threadIdx.x;"))
    return f"""__shared__ {kind}; {number} const float* p = x + o; {wide}
    for (int i = t; i < rows; i += blockDim.x) {{ {pick(('', '', '', 'if (o != 7) '))}sum += {read}; }}
    {at('t')} = (float)({value}); __syncthreads(); {pick(ways)}"""


@pytest.mark.compiler
def test_answers_are_those_of_fibers_to_the_bit() -> None:
    random = Random(4)
    bodies = {f"k{i}": random_columns(random) for i in range(10)}
    vectors = program(bodies)
    assert vectors.source.count("_columns(const ww::Launch& launch") >= 4  # in the others a branch is inside the loop
    one, other = vectors.load(OPTIMISED), program(bodies, "fibers").load(PLAIN)
    x = np.random.default_rng(4).standard_normal(150 * 200).astype(np.float32)
    for name, body in bodies.items():
        for grid, rows, width in ((64, 150, 200), (48, 70, 60), (19, 3, 19)):
            seen, expected = (np.ones(64 * 200, np.float32) for _ in range(2))
            one[name][grid, 64](x, seen, rows, width)
            other[name][grid, 64](x, expected, rows, width)
            assert np.array_equal(seen, expected), (body, grid, rows, width)

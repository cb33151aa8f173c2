"""Stencils that go from sheet to sheet with a queue in registers: the form, what stays as it is, and variants against one fiber a thread."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = "__global__ void {name}(const float* in, float* out, int W, int H, int D) {{\n"
BLOCK = (16, 4, 1)
SHEETS = """__shared__ float s[6][18];
const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, tx = threadIdx.x + 1, ty = threadIdx.y + 1, sheet = W * H;
int at = y * W + x; float before = 0.f, here = in[at], after = in[at + sheet];
for (int z = 1; z < D - 1; z++) {
  at += sheet; before = here; here = after; after = in[at + sheet];
  __syncthreads();
  s[ty][tx] = here;
  if (threadIdx.x == 0 && x > 0) s[ty][0] = in[at - 1];
  if (threadIdx.x == 15 && x < W - 1) s[ty][17] = in[at + 1];
  if (threadIdx.y == 0 && y > 0) s[0][tx] = in[at - W];
  if (threadIdx.y == 3 && y < H - 1) s[5][tx] = in[at + W];
  __syncthreads();
  if (x > 0 && y > 0 && x < W - 1 && y < H - 1)
    out[at] = 0.4f * here + 0.1f * (s[ty][tx - 1] + s[ty][tx + 1] + s[ty - 1][tx] + s[ty + 1][tx] + before + after);
}"""


def program(bodies: dict[str, str], tier: str = "vectors") -> transpile.Program:
    text = "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items())
    return transpile.compile_text(text, "sheets.cu", tier=tier, blocks=dict.fromkeys(bodies, BLOCK))


def test_rounds_are_an_axis_of_the_grid() -> None:
    text = program({"k": SHEETS}).source
    plain = text.partition("static void k_unstaged")[2].partition("\n}\n")[0]
    assert "block_z" in plain and "row_x" in plain and not any(word in plain for word in ("s[", "here", "for (int z"))
    assert "if (const long rounds = (long)D + -2l; launch.is(16, 4, 1)" in text and "launch.grid.y, rounds)" in text


@pytest.mark.parametrize("change", [
    ("before = here; here = after;", "here = after; before = here + 1;"),
    ("here = in[at]", "here = in[at + 1]"),  # not what the queue hands on
    ("here = in[at]", "here = 1.f"),
    ("out[at] =", "out[at] = in[at] +"),  # at is a thread's place in the sheet of the round: it may be read there
    ("at += sheet;", "at += sheet + z;"),
    ("z < D - 1", "z < D - 1 + x"),
    ("z < D - 1", "z < D - (int)in[0]"),
    ("y < H - 1)\n", "y < H)\n"),  # a row that nobody has written
    ("0.1f *", "z *"),  # the round's number is not written out
    ("int at", "long at"),
])  # fmt: skip
def test_others_stay_as_they_are(change: tuple[str, str]) -> None:
    made = "k_unstaged" in program({"k": SHEETS.replace(*change)}).source
    assert change[0] in SHEETS and made == (change[1] == "out[at] = in[at] +")


def variant(random: Random) -> str:
    """Return a stencil of sheets with a queue of another length or order, and barriers in another place."""
    pick = random.choice
    text = SHEETS
    if pick((True, False)):  # the second barrier at the end of the round
        text = text.replace("  __syncthreads();\n  s[ty]", "  s[ty]")[:-1] + "  __syncthreads();\n}"
    for old, new in (
        ("const int x", pick(("const int x", "W -= 1; const int x"))),
        ("float before = 0.f,", pick(("float before = 0.f,", "float before,", "float before = in[at + W],"))),
        ("at += sheet; before = here; here = after; after = in[at + sheet];", pick((
            "at += sheet; before = here; here = after; after = in[at + sheet];", "before = here; here = after; at += sheet; after = in[at + sheet];",
            "before = here; here = after; after = in[at + 2 * sheet]; at += sheet;"))),
        ("int z = 1; z < D - 1", pick(("int z = 1; z < D - 1", "int z = 0; z <= D - 3", "int z = 2; z < D"))),
        ("0.4f * here", pick(("0.4f * here", "here", "0.3f * s[ty][tx]", "0.2f"))),
        ("+ before + after", pick(("+ before + after", "+ after - before", "- before", ""))),
        ("out[at] =", pick(("out[at] =", "out[at] -=", "out[at + 1] ="))),
    ):  # fmt: skip
        text = text.replace(old, new)
    return text


def compared(bodies: dict[str, str], vectors: transpile.Program, flags: tuple[str, ...]) -> None:
    one, other = vectors.load(flags), program(bodies, "fibers").load(PLAIN)
    data = np.random.default_rng(2).standard_normal(2 * 8000).astype(np.float32)
    for name, body in bodies.items():
        for grid, width, height, depth, to in (((3, 2), 48, 8, 5, 8000), ((2, 1), 30, 3, 4, 8000), ((1, 1), 16, 4, 6, 0), ((3, 2), 48, 8, 2, 8000)):
            seen, expected = data.copy(), data.copy()  # to == 0: it writes where it reads
            for kernels, memory in ((one, seen), (other, expected)):
                kernels[name][grid, BLOCK](memory[500:], memory[500 + to :], width, height, depth)
            assert np.array_equal(seen, expected), (body, grid, width, height, depth, to)


@pytest.mark.compiler
def test_answers_are_those_of_fibers_also_where_it_writes_what_it_reads() -> None:
    compared({"k": SHEETS}, program({"k": SHEETS}), PLAIN)


@pytest.mark.compiler
@pytest.mark.slow
def test_answers_of_variants_are_those_of_fibers_to_the_bit() -> None:
    bodies = {f"k{seed}": variant(Random(seed)) for seed in range(12)}
    vectors = program(bodies)
    assert vectors.source.count("_unstaged(const ww::Launch& launch") >= 8
    compared(bodies, vectors, OPTIMISED)

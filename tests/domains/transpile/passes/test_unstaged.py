"""Stencils without their copies in shared memory: which are some, what blocks at the border do, and random ones against one fiber a thread."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = "__global__ void {name}(const float* in, float* out, int W, int H) {{\n"
BLOCK = (16, 8, 1)
STENCIL = """__shared__ float s[10][18];
const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, tx = threadIdx.x + 1, ty = threadIdx.y + 1;
if (x < W && y < H) {
  s[ty][tx] = in[y * W + x];
  if (threadIdx.x == 0 && x > 0) s[ty][0] = in[y * W + x - 1];
  if (threadIdx.x == 15 && x < W - 1) s[ty][17] = in[y * W + x + 1];
}
__syncthreads();
if (x > 0 && y < H && x < W - 1) out[y * W + x] = s[ty][tx - 1] + s[ty][tx + 1] * 0.5f;"""


def program(bodies: dict[str, str], tier: str = "vectors") -> transpile.Program:
    text = "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items())
    return transpile.compile_text(text, "stencils.cu", tier=tier, blocks=dict.fromkeys(bodies, BLOCK))


def test_a_stencil_reads_global_memory_in_rows_of_blocks() -> None:
    text = program({"k": STENCIL}).source
    plain = text.partition("static void k_unstaged")[2].partition("\n}\n")[0]
    assert "in[(block_y * 8 + thread_y) * W + (block_x * 16 + thread_x) - 1]" in plain and "row_x" in plain and "s[" not in plain
    assert "ww::are_apart(in, " in text and text.count("long at) { return true; }") == 3  # what it reads is written wherever it writes


def test_blocks_are_asked_what_does_not_follow_from_the_guards_of_who_reads() -> None:
    text = program({"k": STENCIL.replace("x > 0 && y < H", "y < H")}).source  # the first thread of a row reads what nobody has written
    assert "{ return at * -16l + 1l <= 0; }" in text


@pytest.mark.parametrize("change", [
    ("s[ty][0] = in[y * W + x - 1]", "s[ty][0] = in[y * W + x + 3]"),  # no window
    ("s[ty][17] = in[", "s[ty][17] = out["),
    ("s[ty][tx - 1]", "s[tx % 10][ty]"),
    ("s[ty][tx - 1]", "s[ty][16 - tx]"),  # backwards
    ("if (x > 0 &&", "s[ty][tx] += 1; __syncthreads(); if (x > 0 &&"),
    ("s[ty][tx] = in[y * W + x];", "s[ty][tx] = in[y * W + x] * 2;"),
    ("__syncthreads();\nif", "__syncthreads(); out[0] = 0; float* p = &s[0][0]; if"),
    ("out[y * W + x] =", "out[(int)in[x]] ="),  # where it writes is not known before it runs
])  # fmt: skip
def test_other_kernels_keep_their_copies(change: tuple[str, str]) -> None:
    assert change[0] in STENCIL and "k_unstaged" not in program({"k": STENCIL.replace(*change)}).source


def random_stencil(random: Random) -> str:
    """Return a kernel that reads a border of random width in a random way."""
    pick, r = random.choice, random.randint(1, 4)
    wide = 16 + 2 * r
    kind, place = pick(((f"float s[8][{wide}]", "s[threadIdx.y][{0}]"), (f"float s[8][2][{wide}]", "s[threadIdx.y][1][{0}]")))
    at, x = place.format, pick(("blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x + 16 * blockIdx.x"))
    border = pick((
        f"for (int i = threadIdx.x; i < {wide}; i += blockDim.x) {{ const int g = (int)blockIdx.x * 16 + i - {r}; "
        f"{at('i')} = g >= 0 && g < W ? in[y * W + g] : 0.f; }}",
        f"for (int i = threadIdx.y * 16 + threadIdx.x; i < 8 * {wide}; i += 128) {{ const int g = (int)blockIdx.x * 16 + i % {wide} - {r}, "
        f"row = blockIdx.y * 8 + i / {wide};"
        f"{place.replace('threadIdx.y', f'i / {wide}').format(f'i % {wide}')} = g >= 0 && g < W ? in[row * W + g] : 0.f; }}",
        f"const int l = threadIdx.x + {r}; {at('l')} = x < W ? in[y * W + x] : 0.f; if (threadIdx.x < {r}) {{ "
        f"{at(f'l - {r}')} = x >= {r} ? in[y * W + x - {r}] : 0.f; {at('l + 16')} = x + 16 < W ? in[y * W + x + 16] : 0.f; }}",
        f"if (x < W) {{ {at(f'threadIdx.x + {r}')} = in[y * W + x]; if (threadIdx.x < {r} && x >= {r}) {at('threadIdx.x')} = in[y * W + x - {r}]; "
        f"if (threadIdx.x >= {16 - r} && x < W - {r}) {at(f'threadIdx.x + {2 * r}')} = in[y * W + x + {r}]; }}",
    ))  # fmt: skip
    guard, left, right = f"x >= {r} && x < W - {r}", at("threadIdx.x"), at(f"threadIdx.x + {2 * r}")
    sums = pick((
        f"float sum = 0; for (int j = -{r}; j <= {r}; ++j) sum += {at(f'threadIdx.x + {r} + j')} * (j + 2); if ({guard}) {{ TO = sum; }}",
        f"if ({guard}) TO = {left} - 0.25f * {right};",
        f"if ({guard}) {{ float v = {at(f'threadIdx.x + {r}')}; if (v > 0.2f) v = v * {right}; TO = v; }}",
        f"if ({guard}) {{ TO = 1; TO += {left}; }} else if (x < W) TO = -1.5f;",
    )).replace("TO", pick(("out[y * W + x]", f"out[y * W + {x}]", "out[x * 64 + y]")))  # fmt: skip
    return (
        f"__shared__ {kind}; const {pick(('int', 'unsigned'))} x = {x}; const int y = blockIdx.y * 8 + threadIdx.y; {border} __syncthreads(); {sums}"
    )


def compared(bodies: dict[str, str], vectors: transpile.Program, flags: tuple[str, ...]) -> None:
    one, other = vectors.load(flags), program(bodies, "fibers").load(PLAIN)
    x = np.random.default_rng(11).standard_normal(3 * 64 * 64).astype(np.float32)
    for name, body in bodies.items():
        for grid, width, to in (((4, 3), 64, 1), ((4, 3), 60, 1), ((3, 1), 33, 1), ((1, 2), 16, 0)):
            if to == 0 and "x * 64" in body:
                continue  # blocks would race
            seen, expected = x.copy(), x.copy()  # to == 0: where it reads; a block has read all before it writes
            for kernels, memory in ((one, seen), (other, expected)):
                kernels[name][grid, BLOCK](memory[64:], memory[64 + to * 64 * 80 :], width, 8 * grid[1])
            assert np.array_equal(seen, expected), (body, grid, width, to)


@pytest.mark.compiler
def test_answers_are_those_of_fibers_also_where_it_writes_what_it_reads() -> None:
    compared({"k": STENCIL}, program({"k": STENCIL}), PLAIN)


@pytest.mark.compiler
@pytest.mark.slow
def test_answers_of_random_stencils_are_those_of_fibers_to_the_bit() -> None:
    random = Random(11)
    bodies = {f"k{i}": random_stencil(random) for i in range(8)}
    vectors = program(bodies)
    assert vectors.source.count("_unstaged(const ww::Launch& launch") >= 5
    compared(bodies, vectors, OPTIMISED)

"""Loops with a branch inside whose threads run through rows of pixels: vectors under masks in each row."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = """__global__ void {name}(const float* in, const float* weight, float* out, int n, int C, int H, int W) {{
const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
"""
DEPTHWISE = """const int w = i % W, h = (i / W) % H, c = (i / W / H) % C;
const float* k = weight + c * 9;
float sum = weight[c];
for (int dh = 0; dh < 3; ++dh)
  for (int dw = 0; dw < 3; ++dw) {
    const int y = h + dh - 1, x = w + dw - 1;
    if (y >= 0 && y < H && x >= 0 && x < W) sum += in[i + (dh - 1) * W + dw - 1] * k[dh * 3 + dw];
  }
out[i] = sum;"""


def program(bodies: dict[str, str], tier: str = "vectors") -> transpile.Program:
    text = "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items())
    return transpile.compile_text(text, "pixels.cu", tier=tier, blocks=dict.fromkeys(bodies, (64, 1, 1)))


def test_what_a_row_shares_is_asked_once() -> None:
    text = program({"k": DEPTHWISE}).source
    assert "if ((y >= 0) && (y < H)) {" in text
    assert "x_lanes < ww::spread<ww::ints>((int)(W))" in text


def test_vectors_inside_of_a_border_have_no_mask() -> None:
    text = program({"k": DEPTHWISE}).source
    inside = "if ((long)(x) >= (long)(0) && (long)(x) + (ww::width - 1) < (long)(W)) {\n"
    assert text.count(inside) == 1  # the vector that is filled in part has its mask anyway
    assert text.partition(inside)[2].lstrip().startswith("sum_lanes = (sum_lanes + (ww::load_lanes<ww::floats>(&in[")
    outside = program({"k": DEPTHWISE.replace("x >= 0 && x < W", "x % 3 == 1")}).source
    assert "(ww::width - 1) < " not in outside


def random_windows(random: Random) -> str:
    """Return a kernel that goes through a window around its pixel, with conditions on rows, columns, and what it reads; some of them negated."""
    pick = random.choice
    whole = pick(("i", "i", "(i + 3)", "(n - 1 - i)"))
    kind = pick(("int", "int", "unsigned"))
    rows = pick(("y >= 0", "y < H", "!(y < 1)", "y != 2", "(unsigned)y < (unsigned)H", "n / (W + 1) > y", "h + c < 5"))
    columns = pick(("x >= 0 && x < W", "x >= 1", "!(x < 0 || x >= W)", "(unsigned)x < (unsigned)W", "w - dw < 4", "x % 3 == 1", "-x < -2"))
    read = pick(("in[100 + i + (dh - 1) * 9 + dw]", "in[100 + i]", "k[dh * 3 + dw]", "in[100 + i] * k[dw]", "-in[100 + i + dw]"))
    guard = pick((f"{rows} && {columns}", f"{columns} && {rows}", columns, f"{rows} && {columns} && {rows}", f"!({rows} && {columns})",
                  f"({rows} || {columns})", f"{columns} && {read} > 0.f"))  # fmt: skip
    moved = pick(("", "at += 2;", "at -= dh;"))
    other = pick(("", "", "else sum -= 1.f;", "else ++seen;"))
    use = pick((f"sum += {read};", f"sum = fmaxf(sum, {read});", "sum += in[at + i];", f"sum += {read}; ++seen;"))
    leave = pick(("", "", "", "if (sum > 4.f) break;"))
    return f"""const {kind} w = {whole} % W, h = ({whole} / W) % H, c = ({whole} / W / H) % C;
    const float* k = weight + c * 9; float sum = weight[c]; int seen = 0, at = 40;
    for (int dh = 0; dh < {pick(('3', '2', 'C', '0'))}; ++dh) for (int dw = 0; dw < 3; ++dw) {{
      const int y = (int)h + dh - 1, x = (int)w + dw - 1; if ({guard}) {{ {use} }} {other} {moved} {leave} }}
    out[i] = sum + seen;"""


def test_random_windows_agree_with_fibers(many: Callable[[int], int]) -> None:
    bodies = {f"k{seed}": random_windows(Random(seed)) for seed in range(many(8))} | {"depthwise": DEPTHWISE}
    fast, slow = (program(bodies, tier) for tier in ("vectors", "fibers"))
    assert sum("ww::some_lane(" in part for part in fast.source.partition("void k0_block")[2].split("_block(")) > len(bodies) // 3
    rng = np.random.default_rng(3)
    values, weight = rng.standard_normal(3000).astype(np.float32), rng.standard_normal(40).astype(np.float32)
    loaded = fast.load(OPTIMISED), slow.load(PLAIN)
    for name, body in bodies.items():
        for channels, height, width in ((2, 4, 77), (3, 3, 5), (1, 2, 64)):
            n = channels * height * width
            outs = [np.zeros(n, np.float32) for _ in loaded]
            for kernels, out in zip(loaded, outs, strict=True):
                kernels[name][(n + 63) // 64, 64](values[200:], weight, out, n, channels, height, width)
            assert np.array_equal(*outs), (name, width, body)

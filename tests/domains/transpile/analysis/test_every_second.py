"""Guards that leave every second, fourth or eighth thread: the form, and random guards against one fiber a thread."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import numpy as np
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = """__global__ void {name}(const int* a, int* out, int w, int h, int colour, unsigned shade) {{
const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
"""
CELLS = "if (x > 0 && y < h && x < w - 1 && (x + y) % 2 == colour) out[y * w + x] = out[y * w + x - 1] + a[y * w + x + 1];"


def program(bodies: dict[str, str], tier: str = "vectors") -> transpile.Program:
    text = "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items())
    return transpile.compile_text(text, "cells.cu", tier=tier, blocks=dict.fromkeys(bodies, (16, 4, 1)))


def apart(source: str) -> dict[str, str]:
    """Return the text of each kernel's blocks, by name."""
    pieces = re.split(r"static void (k\d+)_block\(", source)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def test_every_second_thread_is_a_loop_by_two() -> None:
    text = program({"k": CELLS}).source
    assert "thread_x += (int)(2)" in text and "(unsigned long)(colour) < 2" in text


OTHERS = [
    "(x - y) % 2 == 1",  # the rest of a negative number is negative
    "(x + y) % 3 == 1", "(x + y) % 2 > 0", "(3 * x + y) % 2 == 1", "(x + y) % 2 == a[y]", "(x + y) % 2 != 1", "((x + y) & 2) == 2",
]  # fmt: skip


def test_other_guards_stay() -> None:
    parts = apart(program({f"k{at}": CELLS.replace("(x + y) % 2 == colour", change) for at, change in enumerate(OTHERS)}).source)
    assert len(parts) == len(OTHERS)
    for name, text in parts.items():
        assert "ww::multiple(" not in text, name


def random_cells(random: Random) -> str:
    pick = random.choice

    def guard() -> str:
        size = pick((2, 4, 8))
        other = pick(("colour", "shade", "0", "1", str(random.randrange(9)), "-1", "colour - y", "(colour + y) % 2"))
        whole = pick(("x + y", "x", "x - y", "y + x - 40", "x + 7", "x - shade", "(int)threadIdx.x + colour", "x + y * 3", "threadIdx.x"))
        parity = pick((f"({whole}) % {size} == {other}", f"(({whole}) & {size - 1}) == {other}", f"{other} == ({whole}) % {size}u"))
        return f"!({parity})" if random.random() < 0.15 else parity

    more = pick(("", "x < w - 1 && ", "y > 1 && ", "a[x] > 3 && ", "!(x >= w || y == 2) && "))
    store = pick(("out[y * 40 + x] += a[x + 1] - a[y];", "for (int k = 0; k < 3; ++k) out[y * 40 + x] += a[x + k];", "atomicAdd(&out[y], a[x]);"))
    also = pick(("", "", f"else out[y * 40 + x] = {guard()};", f"if ({guard()}) out[600 + y * 40 + x] = y + 1;"))
    return f"if ({more}{guard()}{pick(('', ' && y < h'))}) {{ {store} }} {also}"


def test_random_guards_agree_with_fibers(many: Callable[[int], int]) -> None:
    bodies = {f"k{seed}": random_cells(Random(seed)) for seed in range(many(15))} | {"cells": CELLS.replace("* w", "* 40")}
    fast, slow = (program(bodies, tier) for tier in ("vectors", "fibers"))
    assert fast.source.count("ww::multiple(") > len(bodies) // 3
    a = np.random.default_rng(2).integers(-9, 9, 400).astype(np.int32)
    loaded = fast.load(OPTIMISED), slow.load(PLAIN)
    for name, body in bodies.items():
        for colour, block in ((1, (16, 4)), (0, (7, 3)), (-1, (16, 4))):
            outs = [np.arange(1400, dtype=np.int32) for _ in loaded]
            for kernels, out in zip(loaded, outs, strict=True):
                kernels[name][(2, 3), block](a, out, 31, 10, colour, abs(colour) + 2)
            assert np.array_equal(*outs), (name, colour, body)

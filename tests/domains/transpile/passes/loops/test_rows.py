"""Rows of a block as one row: where threads are looked at by their number alone, and random kernels against one fiber a thread."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = 'extern "C" __global__ void {name}(const int* __restrict__ a, int* __restrict__ out, int n) {{\n'
TOP = "int tx = threadIdx.x, ty = threadIdx.y; int base = (blockIdx.x * blockDim.z + threadIdx.z) * blockDim.x * blockDim.y;\n"
NUMBERS = (
    "(int)(threadIdx.y * blockDim.x + threadIdx.x)", "(ty * 8 + tx)", "(tx + 8 * ty)", "((int)threadIdx.x + (int)threadIdx.y * 8)",
    "(int)((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)", "(n + ty * 8 + tx - n)",
)  # fmt: skip
BLOCKS = ((8, 4, 2), (8, 1, 1), (5, 3, 1), (16, 2, 1), (8, 16, 1))


def program(bodies: dict[str, str], tier: str) -> transpile.Program:
    text = "".join(HEAD.format(name=name) + TOP + body + "\n}\n" for name, body in bodies.items())
    return transpile.compile_text(text, tier=tier)


def heads(body: str) -> set[str]:
    """Return the heads of the loops over rows."""
    source = program({"k": body}, "vectors").source.partition("k_block")[2]
    return set(re.findall(r"int thread_y = 0.*?; thread_y < (.*?);", source))


@pytest.mark.parametrize(("body", "expected"), [
    ("int t = ty * 8 + tx; out[t] = a[t] / n + t;", {"(dim_x == 8 ? 1 : dim_y)"}),
    ("out[threadIdx.y * blockDim.x + threadIdx.x] = n;", {"1"}),
    ("int t = threadIdx.x + blockDim.x * threadIdx.y; if (t < n) out[t] = a[t];", {"1"}),
    ("int t = ty * 8 + tx; out[t] = a[tx];", {"dim_y"}), ("out[ty * 8 + tx] = a[ty * 4 + tx];", {"dim_y"}), ("out[tx] = a[tx];", {"dim_y"}),
    ("int t = ty * n + tx; out[t] = a[t];", {"dim_y"}), ("int t = ty * 8 - tx; out[t + 99] = 1;", {"dim_y"}),
    ("if (ty < n) out[ty * 8 + tx] = 1;", {"last_y"}), ("tx += 1; out[ty * 8 + tx] = 1;", {"dim_y"}),
])  # fmt: skip
def test_which_rows_are_joined(body: str, expected: set[str]) -> None:
    assert heads(body) == expected


def test_a_function_that_looks_at_the_thread_keeps_rows_apart() -> None:
    text = "__device__ int row() { return threadIdx.y; }\n__global__ void k(int* out) { out[threadIdx.y * blockDim.x + threadIdx.x] = row(); }"
    assert "thread_y < dim_y" in transpile.compile_text(text).source


def random_body(random: Random) -> str:
    t, width, height = random.choice(NUMBERS), random.choice((5, 17, 20, 34)), random.randint(3, 9)
    left, top = random.choice(("n", "(int)blockIdx.x * 8 - 1", "-1")), random.choice(("n", "-2", "0"))
    own = random.choice(NUMBERS)
    guard = random.choice(("", f"if ({own} < n + 20) ", f"if ({own} % 3) ", "if (ty < 2) "))
    count = "blockDim.x * blockDim.y"
    return (
        f"__shared__ int tile[{width * height}];\nint kept = a[{own} & 63];\n"
        f"for (int i = tx + ty * blockDim.x; i < {width * height}; i += {count}) tile[i] = i;\n__syncthreads();\n"
        f"for (int i = {t}; i < {width * height}; i += {count}) {{\n"
        f"  int x = {left} + i % {width}, y = {top} + i / {width};\n"
        f"  tile[i] = (x >= 0 && x < 11 && y >= 0 && {random.choice(('y < 5', '5 > y', 'y <= 4'))}) ? a[y * 11 + x] : "
        f"{random.choice(('0', 'i', 'x'))};\n"
        "}\n__syncthreads();\n"
        f"int mine = ty * blockDim.x + tx;\n{guard}out[base + mine] = kept + tile[mine % {width * height}] + {random.choice((own, 'tx', 'mine'))};"
    )


@pytest.mark.compiler
def test_random_kernels_agree_with_fibers() -> None:
    random = Random(11)
    bodies = {f"k{i}": random_body(random) for i in range(40)}
    made = program(bodies, "vectors")
    assert made.source.count("dim_x * dim_y : dim_x") > 20
    assert "stretch_end - 1 - stretch_x" in made.source
    vectors, fibers = made.load(OPTIMISED), program(bodies, "fibers").load(PLAIN)
    a = np.random.default_rng(0).integers(-99, 99, 64).astype(np.int32)
    for name, body in bodies.items():
        for block in BLOCKS:
            for n in (-3, 0, 7):
                seen, expected = (np.full(3 * 300, 5, np.int32) for _ in range(2))
                vectors[name][3, block](a, seen, n)
                fibers[name][3, block](a, expected, n)
                assert np.array_equal(seen, expected), (body, block, n)

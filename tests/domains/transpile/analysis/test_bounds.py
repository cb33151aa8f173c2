"""Guards that become bounds of the loop over threads: quotients, shifts and multiples of threadIdx.x, against one fiber a thread."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from executables import PLAIN

from warpwright.domains import transpile

HEAD = 'extern "C" __global__ void {name}(const int* __restrict__ a, int* __restrict__ out, int n) {{\n'
PLACE = "((int)(((blockIdx.x * blockDim.z + threadIdx.z) * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x))"
X = "((int)threadIdx.x)"
BLOCKS = ((24, 1, 1), (5, 4, 2), (33, 3, 1))


def program(bodies: dict[str, str], tier: str) -> transpile.Program:
    return transpile.compile_text("".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items()), tier=tier)


def has_guard(condition: str) -> bool:
    """Say whether the guard is still there inside the loop over threads."""
    source = program({"k": f"if ({condition}) out[{PLACE}] = a[0];"}, "vectors").source
    return "if (" in source.partition("for (int thread_x")[2].partition("k_launch")[0]


BOUNDS = (
    f"({X} >> 2) + n < 9", f"n + {X} / 3 <= 4", f"{X} * 3 - n >= 4", f"12 > {X} * 2 + n", f"n * 2 + ({X} + 7) / 5 > 3",
    f"{X} >> 1 < n && 2 * {X} > 3",
    "threadIdx.x * 2 < n", "threadIdx.x / 2 + 1 >= n", "threadIdx.x == 0", f"n == {X} * 2 + 3", f"{X} / 3 + n == 5",
)  # fmt: skip
GUARDS = (
    f"({X} - n) / 3 < 2", f"{X} % 3 < n", f"{X} / n < 3", f"n - ({X} >> 1) < 3", f"{X} * n < 9", f"({X} >> 2) + {X} < n", f"{X} / 3 * 2 < n",
    "threadIdx.x + n > 3", "n + threadIdx.x < 9",
)  # fmt: skip


@pytest.mark.parametrize("condition", BOUNDS)
def test_forms_that_become_bounds(condition: str) -> None:
    assert not has_guard(condition)


@pytest.mark.parametrize("condition", GUARDS)
def test_what_stays_a_guard(condition: str) -> None:
    assert has_guard(condition)


def random_condition(random: Random) -> str:
    """Return a comparison of a sum with threadIdx.x in one of the forms, on either side, with limits below and beyond the block."""
    d, c, b = random.randint(1, 6), random.randint(1, 5), random.randint(-9, 9)
    moving = random.choice((
        f"({X} >> {random.randint(0, 3)}) + {b}", f"n + {X} / {d}", f"{b} + ({X} + {abs(b)}) / {d} - n", f"(({X} + {b}) >> 1)", f"{c} * {X} + {b}",
        f"({b} * n) + ({X} * {c})", f"({X} + threadIdx.y) / {d} + (n - {abs(b)})", f"{X} * 2 + {X} - n",
        "threadIdx.x + n", "(threadIdx.x + n) / 2", "n + (threadIdx.x >> 1)", f"({X} + (int)threadIdx.y) / {d} + (n - {abs(b)})",
    ))  # fmt: skip
    limit = random.choice((f"{random.randint(-4, 30)}", f"n * {random.randint(-2, 3)}", f"(int)threadIdx.y * 3 - {abs(b)}"))
    operator = random.choice(("<", "<=", ">", ">=", "=="))
    return f"{limit} {operator} ({moving})" if random.random() < 0.4 else f"({moving}) {operator} {limit}"


@pytest.mark.compiler
def test_random_guards_agree_with_fibers(many: Callable[[int], int]) -> None:
    random = Random(11)
    conditions = [" && ".join(random_condition(random) for _ in range(random.randint(1, 3))) for _ in range(many(120))]
    bodies = {f"k{i}": f"if ({condition}) out[{PLACE}] = a[{PLACE} % 64] + 1;" for i, condition in enumerate(conditions)}
    bodies["counter"] = f"for (int i = 2; i < 9; i += 3) if (i * 4 + threadIdx.x < n * 4 - 3) out[{PLACE}] = a[i];"
    vectors, fibers = program(bodies, "vectors").load(), program(bodies, "fibers").load(PLAIN)
    a = np.arange(64, dtype=np.int32)
    for name, body in bodies.items():
        for block in BLOCKS:
            for n in (-3, 0, 1, 4):
                seen, expected = (np.full(3 * 99 + 8, -7, np.int32) for _ in range(2))
                vectors[name][3, block](a, seen, n)
                fibers[name][3, block](a, expected, n)
                assert np.array_equal(seen, expected), (body, block, n)

"""Rows cut into stretches in which quotients of the thread's number hold still: what is cut, and random kernels against one fiber a thread."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = 'extern "C" __global__ void {name}(const int* __restrict__ a, int* __restrict__ out, int n) {{\n'
PLACE = "((int)(((blockIdx.x * blockDim.z + threadIdx.z) * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x))"
ROW = "(((int)blockIdx.x) * 60 + ((int)threadIdx.x))"
X = "((int)threadIdx.x)"
BLOCKS = ((60, 1, 1), (5, 4, 2), (150, 2, 1))


def program(bodies: dict[str, str], tier: str) -> transpile.Program:
    return transpile.compile_text("".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items()), tier=tier)


def lengths(value: str, loop: str = "for (int i = 0; i < 3; ++i) ") -> list[str]:
    """Return what limits the stretches of a kernel that stores the value."""
    source = program({"k": f"{loop}out[{PLACE}] = {value};"}, "vectors").source
    return sorted({part.partition(">")[0] for part in source.partition("k_block")[2].split("ww::to_next<")[1:]})


@pytest.mark.parametrize(("value", "expected"), [
    (f"a[{X} / 10]", ["10, 1"]), (f"a[{X} % 12]", ["12, 1"]), (f"a[({X} >> 4) * 3 + ({X} & 15)]", ["16, 1"]),
    (f"a[({X} * 3 + n) >> 5]", ["32, 3"]),
    (f"a[(({X} >> 2) % 250) / 25]", ["100, 1"]), (f"a[(4 + ({X} >> 2)) / 5]", ["20, 1"]), (f"a[{X} * 20 / 10]", []), (f"a[{X} / 7]", []),
    (f"a[{X} / n]", []), (f"a[({X} - n) / 20]", []), ("a[n / 20]", []), ("a[(threadIdx.x + n) >> 5]", []),
    (f"a[({X} % 40) % 30]", ["30, 1", "40, 1"]),
    (f"a[({X} / 10) * ({X} % 20)]", ["10, 1"]), (f"a[({X} / 10) * ({X} % 25)]", ["10, 1", "25, 1"]),
])  # fmt: skip
def test_where_rows_are_cut(value: str, expected: list[str]) -> None:
    assert lengths(value) == expected


@pytest.mark.parametrize(("value", "expected"), [
    (f"a[{X} / 10]", []), (f"a[({X} * 3 + n) >> 5]", []), (f"a[{X} / 16]", ["16, 1"]), (f"a[({X} / 10) * ({X} % 25)]", ["25, 1"]),
])  # fmt: skip
def test_threads_without_a_loop_are_not_worth_short_stretches(value: str, expected: list[str]) -> None:
    assert lengths(value, loop="") == expected


def random_value(random: Random, depth: int = 0) -> str:
    """Return a sum, product, quotient or rest."""
    inner = (lambda: random_value(random, depth + 1)) if depth < 4 else (lambda: random.choice((X, ROW, "n")))
    number = random.randint(1, 40)
    return random.choice((
        lambda: X, lambda: ROW, lambda: f"({inner()} / {number})", lambda: f"({inner()} % {number})",
        lambda: f"({inner()} >> {number % 5})",
        lambda: f"({inner()} & {(1 << number % 6) - 1})", lambda: f"({inner()} + {inner()})", lambda: f"({inner()} * {number % 6})",
        lambda: f"({inner()} - {number})", lambda: f"({inner()} + (int)blockIdx.x * {number})",
        lambda: f"(({X} * {number % 4 + 1} + n) >> {number % 6})",
        lambda: f"({inner()} / {number} % {number % 7 + 1} / {number % 3 + 1})",
    ))()  # fmt: skip


def random_body(random: Random) -> str:
    one, other, third = (random_value(random) for _ in range(3))
    guard = random.choice(("", f"if ({X} / 3 < n + 20) ", f"if ({other} % 5 != 1) "))
    return random.choice((
        f"{guard}out[{PLACE}] = {one} + a[({other}) & 63];",
        f"int v = {one}, w = v / 9; {guard}{{ int u = {other}; for (int i = 0; i < 3; ++i) out[{PLACE}] += a[(u + i + {third}) & 63] * w; }}",
    ))  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), [
    (f"a[{X} % n]", "(long)(n) >= 64"), (f"a[{ROW} / (n * 4) % 3]", "(long)((n * 4)) >= 64"), (f"a[{X} % n / 20]", "(long)(n) >= 64"),
    (f"a[({X} - 1) % n]", ""), (f"a[{X} * 2 % n]", ""), (f"a[{X} % (n / 2)]", ""), (f"a[{X} % a[0]]", ""), (f"a[n % {X}]", ""),
])  # fmt: skip
def test_rows_are_cut_where_the_run_shows_a_large_divisor(value: str, expected: str) -> None:
    source = program({"k": f"out[{PLACE}] = {value};"}, "vectors").source.partition("k_block")[2]
    assert ("ww::to_next_of" in source) == bool(expected) and (not expected or f"if ({expected})" in source)


def random_guarded(random: Random) -> str:
    """Return the body of a kernel that reads under a guard, or by quotients and rests of what only the run shows."""
    index = random.choice((X, "number", ROW))
    size, other = random.choice(("n", "(n * 3)", "(64 + n)")), random.randint(3, 40)
    values = f"{index} % {size}", f"{index} / {size} % 5", f"({index} % {size} + 3) / {other}", f"{index} % {other}", f"{index} / {other} - 2"
    value = random.choice(values)
    sign, bound = random.choice(("<", "<=", ">", ">=")), random.choice(("n", "20", "0", "(int)blockIdx.x"))
    guard = random.choice(("", f"if ({index} < n + 90) ", f"if (({value}) % 5 != 1) "))
    return (
        "int number = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"if (n > 0) {{ int v = {value}; {guard}out[{PLACE}] = (v >= 0 && 63 >= v && {value} + {other} {sign} {bound}) ? a[v] : v; }}\n"
        f"else out[{PLACE}] = ({index} / {other} {sign} {bound}) ? a[{index} % {other}] : {random.choice(('1', index))};"
    )


@pytest.mark.compiler
def test_random_guards_and_divisors_agree_with_fibers(many: Callable[[int], int]) -> None:
    random = Random(9)
    bodies = {f"k{i}": random_guarded(random) for i in range(many(100))}
    made = program(bodies, "vectors")
    assert made.source.count("ww::to_next_of(") > len(bodies) // 2 and made.source.count("stretch_end - 1 - stretch_x") > len(bodies) // 3
    vectors, fibers = made.load(OPTIMISED), program(bodies, "fibers").load(PLAIN)
    a = np.random.default_rng(0).integers(-99, 99, 64).astype(np.int32)
    for name, body in bodies.items():
        for block in (*BLOCKS, (256, 1, 1)):
            for n in (-17, 7, 23, 70):
                seen, expected = (np.full(4 * 300, 5, np.int32) for _ in range(2))
                vectors[name][4, block](a, seen, n)
                fibers[name][4, block](a, expected, n)
                assert np.array_equal(seen, expected), (body, block, n)


@pytest.mark.compiler
def test_random_kernels_kernels_agree_with_fibers(many: Callable[[int], int]) -> None:
    random = Random(5)
    bodies = {f"k{i}": random_body(random) for i in range(many(150))}
    made = program(bodies, "vectors")
    assert made.source.count("ww::to_next<") > len(bodies)
    assert all(kernel.tier == "vectors" for kernel in made.kernels.values())
    vectors, fibers = made.load(OPTIMISED), program(bodies, "fibers").load(PLAIN)
    a = np.random.default_rng(0).integers(-99, 99, 64).astype(np.int32)
    for name, body in bodies.items():
        for block in BLOCKS:
            for n in (-17, 0, 23):
                seen, expected = (np.full(4 * 300, 5, np.int32) for _ in range(2))
                vectors[name][4, block](a, seen, n)
                fibers[name][4, block](a, expected, n)
                assert np.array_equal(seen, expected), (body, block, n)

"""Blocks that run as one row of threads: the forms that allow it, what refuses it, and random kernels against one fiber a thread."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from executables import PLAIN

from warpwright.domains import transpile

HEAD = 'extern "C" __global__ void {name}(const int* __restrict__ a, int* __restrict__ out, int n) {{\n'
NUMBER = "((((int)blockIdx.x) * 24) + ((int)threadIdx.x))"


def program(bodies: dict[str, str], tier: str = "vectors") -> transpile.Program:
    text = "#include <cooperative_groups.h>\n__device__ int mine() { return threadIdx.x; }\n"
    text += "__device__ int place() { return cooperative_groups::this_thread_block().thread_rank(); }\n"
    return transpile.compile_text(text + "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items()), tier=tier)


def in_one_row(body: str) -> bool:
    return "each_stretch(launch" in program({"k": body}).source.partition("// ---- entries")[0].partition("void k_launch")[2]


ALLOWED = {
    "any size": "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = a[i];",
    "the other way round": "int i = threadIdx.x + blockDim.x * blockIdx.x; if (i >= n) return; out[i] = a[i];",
    "a number": f"out[{NUMBER}] = a[{NUMBER}] + 1;",
    "a share of it": f"if (((((int)blockIdx.x) * 6) + (((int)threadIdx.x) >> 2)) < n / 4) out[{NUMBER}] = 1;",
    "a quotient": f"out[{NUMBER}] = a[((((int)blockIdx.x) * 8) + (((int)threadIdx.x) / 3)) % 7];",
    "a rest": f"out[{NUMBER}] = a[(((int)threadIdx.x) & 7)] + (((int)threadIdx.x) % 6);",
    "a rest of the number": f"out[{NUMBER}] = a[((((int)blockIdx.x) * 4) + ((int)threadIdx.x)) % 10];",
    "adds that each CPU thread counts for itself": f"atomicAdd(&out[0], a[{NUMBER}]);",
    "another axis": f"out[{NUMBER} + threadIdx.y] = blockIdx.z;",
    "a rest of a share": f"out[{NUMBER}] = a[(((int)blockIdx.x) + (((int)threadIdx.x) >> 2)) % 5];",
}

WRITTEN_FOR_ROWS = {
    "a quotient that does not fit": f"out[{NUMBER}] = a[((((int)blockIdx.x) * 4) + (((int)threadIdx.x) / 5)) % 7];",
    "two sizes": f"out[{NUMBER}] = a[((((int)blockIdx.x) * 12) + ((int)threadIdx.x))];",
    "the block alone": f"out[{NUMBER}] = blockIdx.x;",
    "the thread alone": f"out[{NUMBER}] = threadIdx.x;",
    "blocks of one thread": "out[((int)blockIdx.x)] = a[((int)blockIdx.x)] * 3;",
    "a rest that does not fit": f"out[{NUMBER}] = (((int)threadIdx.x) % 7);",
    "a rest of the number that does not fit": f"out[{NUMBER}] = a[((((int)blockIdx.x) * 5) + ((int)threadIdx.x)) % 10];",
    "a share of a rest": f"out[{NUMBER}] = a[(((((int)blockIdx.x) % 7) * 6) + (((int)threadIdx.x) >> 2)) / 7];",
}

REFUSED = {
    "large blocks": f"out[{NUMBER}] = threadIdx.x;".replace("24", "96"),
    "the grid": "int i = blockIdx.x * blockDim.x + threadIdx.x; for (; i < n; i += blockDim.x * gridDim.x) out[i] = a[i]; if (i < 0) out[0] = i;",
    "another axis and a loop": f"int s = 0; for (int k = 0; k < n; ++k) s += a[k * {NUMBER}]; out[{NUMBER} + threadIdx.y] = s;",
    "a function that looks itself": f"out[{NUMBER}] = mine();",
    "a function that asks for its place": f"out[{NUMBER}] = place();",
    "shared memory": f"__shared__ int s[24]; s[threadIdx.x] = a[{NUMBER}]; __syncthreads(); out[{NUMBER}] = s[23 - threadIdx.x];",
    "an atomic": f"atomicMax(&out[0], a[{NUMBER}]);",
}


@pytest.mark.parametrize("name", ALLOWED)
def test_forms_that_allow_it(name: str) -> None:
    assert in_one_row(ALLOWED[name])


@pytest.mark.parametrize("name", WRITTEN_FOR_ROWS)
def test_small_blocks_have_a_text_for_rows(name: str) -> None:
    assert "k_rows<0, 0, 0>(ww_row" in program({"k": WRITTEN_FOR_ROWS[name]}).source


@pytest.mark.parametrize("name", REFUSED)
def test_what_refuses_it(name: str) -> None:
    assert not in_one_row(REFUSED[name])


def random_body(random: Random, size: int, free: bool) -> str:
    """Return a kernel of blocks of `size` threads whose every look at the launch is one of the forms; `free`: or is any."""
    divisors = [m for m in range(1, size + 1) if size % m == 0]
    forms = [f"((((int)blockIdx.x) * {size // m}) + (((int)threadIdx.x) / {m}))" for m in divisors]
    forms += [f"(((int)threadIdx.x) % {m})" for m in divisors]
    forms += [f"((((int)threadIdx.x) >> {s}) + ((int)blockIdx.x) * {size >> s})" for s in (1, 2, 3) if size % (1 << s) == 0]
    forms += [f"(((int)threadIdx.x) & {(1 << s) - 1})" for s in (1, 2, 3) if size % (1 << s) == 0]
    forms += [f"((((int)blockIdx.x) * {(size // m) % n + n} + (((int)threadIdx.x) / {m})) % {n})" for m in divisors for n in (5, 8, 12)]
    if free:
        forms += ["(int)threadIdx.x", "(int)(blockIdx.x / 3)", "((int)blockIdx.x % 5)", "((int)threadIdx.x % 7)"]
        forms += [f"(((((int)blockIdx.x) % {p}) * {size // m} + (((int)threadIdx.x) / {m})) / {p})" for m in divisors for p in (1, 2, 9)]
    number = f"(((int)blockIdx.x) * {size} + (int)threadIdx.x)"
    value = " + ".join(random.choice((f"a[{form} % 64]", f"{form} * {random.randint(-3, 9)}")) for form in random.choices(forms, k=3))
    if random.random() < 0.3:  # a block's last thread is not the row's
        value += f" + ({number} < n - {random.randint(0, 9)} ? a[{number} % 64] : -5)"
    guard = random.choice(("", f"if ({number} < n) ", f"if ({number} >= 3 && {random.choice(forms)} <= n) "))
    return f"{guard}out[{number}] = {value};"


@pytest.mark.compiler
def test_random_kernels_agree_with_fibers(many: Callable[[int], int]) -> None:
    random = Random(7)
    sizes = {f"k{i}": random.choice((1, 2, 12, 15, 24, 32, 96)) for i in range(many(100))}
    bodies = {name: random_body(random, size, name in list(sizes)[len(sizes) * 2 // 5 :]) for name, size in sizes.items()}
    made = program(bodies)
    assert made.source.count("each_stretch(launch, [&]") > 0.6 * len(bodies) and made.source.count("_rows<0, 0, 0>(ww_row") > len(bodies) / 5
    rows, fibers = made.load(), program(bodies, "fibers").load(PLAIN)
    a = np.random.default_rng(0).integers(-99, 99, 64).astype(np.int32)
    for name, size in sizes.items():
        for blocks, n in ((1, size), (7, 5 * size - 1), (400, 133 * size)):
            seen, expected = (np.full(blocks * size + 8, -7, np.int32) for _ in range(2))
            rows[name][blocks, size](a, seen, n)
            fibers[name][blocks, size](a, expected, n)
            assert np.array_equal(seen, expected), (bodies[name], blocks, n)


@pytest.mark.compiler
def test_sheets_of_blocks_agree_with_fibers() -> None:
    x, y = "(blockIdx.x * blockDim.x + threadIdx.x)", "(blockIdx.y * blockDim.y + threadIdx.y + 10 * (blockIdx.z * blockDim.z + threadIdx.z))"
    bodies = {
        "all": f"out[{y} * n + {x}] = a[{x} % 64] + {y};",
        "guarded_load": f"out[{y} * n + {x}] = ({x} < n - 9 && blockIdx.y < 2) ? a[({x} + {y}) % 64] : -5;",
        "inside": f"if ({x} < 1 || {y} < 2 || {x} >= n - 3) return; out[{y} * n + {x}] = a[({x} + {y}) % 64] - a[{y} % 64];",
    }
    rows, fibers = program(bodies).load(), program(bodies, "fibers").load(PLAIN)
    assert all(in_one_row(body) for body in bodies.values())
    a = np.random.default_rng(0).integers(-99, 99, 64).astype(np.int32)
    for name in bodies:
        for grid, block in (((3, 5), (8, 2)), ((130, 2), (32, 4)), ((1, 3, 2), (8, 2, 2)), ((7, 1), (32, 3))):
            wide = grid[0] * block[0]
            seen, expected = (np.full(wide * 40, -7, np.int32) for _ in range(2))
            rows[name][grid, block](a, seen, wide)
            fibers[name][grid, block](a, expected, wide)
            assert np.array_equal(seen, expected) and (seen != -7).any(), (name, grid, block)


@pytest.mark.compiler
def test_a_function_that_asks_for_its_place_is_told() -> None:
    bodies = {"k": f"out[{NUMBER}] = place();"}
    a, seen = np.zeros(64, np.int32), np.zeros(120, np.int32)
    program(bodies).load()["k"][5, 24](a, seen, 120)
    assert np.array_equal(seen, np.tile(np.arange(24), 5))


@pytest.mark.compiler
def test_blocks_of_another_size_run_one_by_one() -> None:
    body = f"if ({NUMBER} < n) out[{NUMBER}] = a[{NUMBER} % 64] + 1;"
    a, seen, expected = np.arange(64, dtype=np.int32), np.zeros(200, np.int32), np.zeros(200, np.int32)
    program({"k": body}).load()["k"][5, 32](a, seen, 110)
    program({"k": body}, "fibers").load()["k"][5, 32](a, expected, 110)
    assert np.array_equal(seen, expected) and seen[:110].all() and not seen[110:].any()


def test_blocks_of_one_thread_run_as_a_row() -> None:
    kernel = program({"k": "if (blockIdx.x < n) out[((int)blockIdx.x)] = a[((int)blockIdx.x)] * 3 + blockIdx.x % 5;"}).load()["k"]
    a = np.arange(100, dtype=np.int32)
    for threads in (1, 3):  # three threads do the same
        out = np.zeros_like(a)
        kernel[100, threads](a, out, 90)
        assert np.array_equal(out, np.where(a < 90, a * 3 + a % 5, 0))

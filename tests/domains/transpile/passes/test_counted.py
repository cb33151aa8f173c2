"""`while` loops that count: translated as the `for` loops that they are; those that are none stay. Answers against one fiber a thread."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = "__global__ void {name}(const float* __restrict__ x, float* out, int n) {{ "
GRID, BLOCK = ("blockIdx.x * blockDim.x + threadIdx.x", "gridDim.x * blockDim.x"), ("threadIdx.x", "blockDim.x")


def written(body: str) -> str:
    return transpile.compile_text(HEAD.format(name="k") + body + " }").source.partition("static void k_block")[2]


@pytest.mark.parametrize(("start", "by"), [GRID, BLOCK, ("threadIdx.x + 5", "32")])
@pytest.mark.parametrize("kind", ["int", "unsigned int", "size_t"])
def test_the_for_loop_that_it_is(start: str, by: str, kind: str) -> None:
    """Every rule applies: the text is the same, word for word."""
    wanted = written(f"float v = 1; for ({kind} i = {start}; i < n; i += {by}) {{ v += x[i]; out[i] = v; }}")
    for body in (
        f"float v = 1; {kind} i = {start}; while (i < n) {{ v += x[i]; out[i] = v; i += {by}; }}",
        f"float v = 1; {kind} i = {start}; while (i < n) {{ v += x[i]; out[i] = v; i = i + {by}; }}",
        f"float v = 1; {kind} i = {start}; for (; i < n; i += {by}) {{ v += x[i]; out[i] = v; }}",
    ):
        assert written(body) == wanted


def test_a_start_further_up() -> None:
    """As in the reductions of CUDA's samples: declared, looked at, and then counted with."""
    source = written(
        "int i = blockIdx.x * blockDim.x + threadIdx.x; int by = gridDim.x * blockDim.x; float v = i; "
        "while (i < n) { v += x[i]; i += by; } out[threadIdx.x] = v;"
    )
    assert "for (; ((last_block * dim_x + (dim_x - 1))) + i_2_step < n; i_2_step += by)" in source and "3l * (by)" in source


def test_a_variable_for_several_loops() -> None:
    source = written(
        "int i; float v = 0; i = threadIdx.x; while (i < n) { v += x[i]; i += blockDim.x; } for (i = threadIdx.x; i < n; i += blockDim.x) out[i] = v;"
    )
    assert "i_2_step" in source and "i_3_step" in source and "int i;" not in source


STAY = {
    "used behind": "int i = threadIdx.x; while (i < n) { out[i] = x[i]; i += 32; } out[0] = i;",
    "used by the next turn": "int i = threadIdx.x; for (int k = 0; k < 3; ++k) while (i < n) { out[i] += x[i]; i += 32; }",
    "continue": "int i = threadIdx.x; while (i < n) { if (x[i] > 0) continue; out[i] = x[i]; i += 32; }",
    "changed twice": "int i = threadIdx.x; while (i < n) { if (x[i] > 0) i += 3; out[i] = x[i]; i += 32; }",
    "not at the end": "int i = threadIdx.x; while (i < n) { i += 32; out[i] = x[i]; }",
    "a second name": "int i = threadIdx.x; int& j = i; while (i < n) { out[j] = x[i]; i += 32; }",
    "its address": "int i = threadIdx.x; int* j = &i; while (i < n) { out[*j] = x[i]; i += 32; }",
    "a lambda": "int i = threadIdx.x; auto f = [&] { return i; }; while (i < n) { out[f()] = x[i]; i += 32; }",
    "a barrier": "int i = threadIdx.x; while (i < n) { out[i] = x[i]; __syncthreads(); i += 32; }",
    "a float": "float i = threadIdx.x; while (i < n) { out[(int)i] = x[0]; i += 32; }",
    "set on one way only": "int i = threadIdx.x; if (n > 3) i = 0; while (i < n) { out[i] = x[i]; i += 32; } if (n < 3) out[0] = i;",
}


@pytest.mark.parametrize("name", STAY)
def test_other_loops_stay(name: str) -> None:
    source = written(STAY[name])
    assert "_step" not in source and "i_2" not in source


def random_loop(random: Random, number: int) -> str:
    """Return a loop that counts, of one of the forms, with what may stand around it."""
    i, (start, by) = f"i{number}", random.choice((GRID, BLOCK, ("blockIdx.x * 5 + threadIdx.x", "17"), ("threadIdx.x % 7 * 3", "11")))
    kind = random.choice(("int", "unsigned", "long"))
    cond = random.choice((f"{i} < n", f"{i} <= n - 1", f"{i} < 3 * n / 4"))
    inner = f"int k = 0; while (k < 5) {{ v += x[{i}] * k; k += 2; }}"
    body = random.choice((f"v += x[{i}]", f"v = v * 0.5f + x[{i}]", f"if (x[{i}] > 0) v -= x[{i}]", inner))
    step = random.choice((f"{i} += {by}", f"{i} = {i} + {by}", f"{i} = ({i} + ({by}))"))
    loop = f"while ({cond}) {{ {body}; {step}; }}"
    form = random.randrange(6)
    if form == 0:
        return f"{kind} {i} = {start}; {loop}"
    if form == 1:
        return f"{kind} {i} = {start}; v += {i}; {random.choice(('', '__syncthreads();'))} {loop}"
    if form == 2:
        return f"{kind} {i}; {i} = {start}; {loop} {i} = {start}; {loop}"
    if form == 3:
        return f"{kind} {i} = {start}; {loop} v += {i};"
    if form == 4:
        return f"{kind} {i}; for (int t = 0; t < 2; ++t) {{ {i} = {start}; {loop} }}"
    return f"{kind} {i} = {start}; if (n > 5) {{ {loop} }} else {{ {loop} }}"


@pytest.mark.compiler
def test_answers_are_those_of_fibers_to_the_bit(many: Callable[[int], int]) -> None:
    random = Random(5)
    of = lambda: " ".join(random_loop(random, number) for number in range(random.randint(1, 3)))  # noqa: E731
    bodies = {f"k{k}": f"float v = threadIdx.x; {of()} out[blockIdx.x * blockDim.x + threadIdx.x] = v;" for k in range(many(60))}
    text = "".join(HEAD.format(name=name) + body + " }\n" for name, body in bodies.items())
    made = transpile.compile_text(text)
    assert made.source.count("_step < ") > len(bodies)
    slow = [transpile.compile_text(text, tier=tier).load(PLAIN) for tier in ("loops", "fibers")]
    programs = [made.load(OPTIMISED), *slow]
    x = np.random.default_rng(0).normal(0, 9, 5_000).astype(np.float32)
    for name, body in bodies.items():
        for blocks, threads, n in ((1, 32, 1), (3, 33, 500), (4, 64, 5_000)):
            outs = [np.zeros(blocks * threads, np.float32) for _ in programs]
            for loaded, out in zip(programs, outs, strict=True):
                loaded[name][blocks, threads](x, out, n)
            assert np.array_equal(outs[0], outs[2]) and np.array_equal(outs[1], outs[2]), (body, blocks, threads, n)

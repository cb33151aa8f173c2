"""What rewrites write: a golden text for each, and what holds of every recipe on every plain kernel, drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.cuda.plain20 import KERNELS
from benchmarks.fsr20 import run
from warpwright.base import Action, Candidate, Source
from warpwright.domains.cuda import unit
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.techniques import techniques
from warpwright.domains.transpile.frontend import scan
from warpwright.errors import NotApplicable
from warpwright.space import Space

pytest.importorskip("clang")

MATVEC = """template <typename T, int ROWS>
__global__ void product(T* out, const T* matrix, const T* vector, int m, int n) {
    int i = blockIdx.x * ROWS + threadIdx.x;
    if (i >= m) return;
    T sum = 0;
    for (int k = 0; k < n; ++k) sum += matrix[i * n + k] * vector[k];
    out[i] = sum;
}

extern "C" void matvec(float* out, const float* matrix, const float* vector, int m, int n) {
    product<float, 128><<<(m + 127) / 128, 128>>>(out, matrix, vector, m, n);
}
"""

THIRDS = """#define THREADS 96

__global__ void thirds(float* x, int n) {
    const int i = THREADS * blockIdx.x + threadIdx.x;
    if (i < n) x[i] /= 3.0f;
}

extern "C" void run(float* x, int n) {
    dim3 block(THREADS);
    thirds<<<(n + THREADS - 1) / THREADS, block>>>(x, n);
}
"""

TEXTBOOK = """__global__ void product(const float *a, const float *b, float *c, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    c[row * n + column] = 0;
    for (int k = 0; k < n; k++) {
        c[row * n + column] += a[row * n + k] * b[k * n + column];
    }
}

extern "C" void run(const float* a, const float* b, float* c, int n) {
    dim3 threads(16, 16);
    dim3 blocks(n / 16, n / 16);
    product<<<blocks, threads>>>(a, b, c, n);
}
"""

STRIDED = """__global__ void scale(const float* x, float* y, float by, int rows, int columns) {
    int stride = blockDim.x * gridDim.x;
    int size = rows * columns;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (i < size) {
        y[i] = by * x[i];
        i += stride;
    }
}

extern "C" void run(const float* x, float* y, float by, int rows, int columns) {
    scale<<<64, 256>>>(x, y, by, rows, columns);
}
"""

BY_NAME = {**{kernel.name: kernel.cuda for kernel in (*KERNELS, *run.KERNELS)}, "template": MATVEC, "thirds": THIRDS, "textbook": TEXTBOOK}
BY_NAME["strided"] = STRIDED

SHOWN = {
    "product_tile": "matmul", "transpose_tile": "transpose", "shuffle_tree": "dot", "gather_atomics": "sum", "privatise": "histogram",
    "cooperate": "softmax", "swap_axes": "matrix_add", "block": "saxpy", "coarsen": "reverse", "unroll": "convolution", "restrict": "saxpy",
    "fast_math": "softmax", "specialise": "template", "constant_block": "thirds",
    "local_sum": "textbook", "guard": "textbook", "flatten": "matrix_copy", "vectorise": "saxpy", "join_sums": "monte_carlo", "spread": "strided",
}  # fmt: skip
"""Technique -> the plain kernel on which its golden text shows it, by the first action that it offers there."""


def space(text: str) -> Space[Plan]:
    def lower(plan: Plan, actions: tuple[Action, ...]) -> Candidate:
        return Candidate(Source("python", (("optimized.py", plan.text),)), "cuda", actions)

    return Space(Plan(text), techniques("cuda"), lower)


def walked(made: Space[Plan], rng: Random, steps: int) -> tuple[list[Action], Plan]:
    """Return a recipe of legal actions drawn at random, and what it gives."""
    recipe: list[Action] = []
    plan = made.start
    for _ in range(steps):
        offered = made.actions(plan)
        if not offered:
            break
        recipe.append(rng.choice(offered))
        plan = made.apply(plan, recipe[-1])
    return recipe, plan


@pytest.mark.parametrize("technique", techniques("cuda"), ids=lambda technique: technique.name)
def test_a_rewrite_writes_its_golden_text(technique: Any, golden: Callable[[str, str], None]) -> None:
    plan = Plan(BY_NAME[SHOWN[technique.name]])
    action = next(iter(technique.sites(plan)))
    made = technique.apply(plan, action)
    flags = f"// flags: {' '.join(made.flags)}\n" if made.flags else ""
    golden(f"cuda/{technique.name}.cu", f"// {action}\n{flags}{made.text.strip()}\n")


def test_shifts_in_a_function_beside_the_kernel_stay_shifts() -> None:
    text = """__device__ unsigned long long wide(unsigned x, int n) { return (unsigned long long)x << n; }
__global__ void k(const unsigned* x, unsigned long long* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = wide(x[i], 3) >> 1;
}
extern "C" void run(const unsigned* x, unsigned long long* y, int n) { k<<<(n + 63) / 64, 64>>>(x, y, n); }
"""
    made = space(text)
    for action in made.actions(made.start):
        after = made.apply(made.start, action).text
        assert "ww::" not in after and "<< (n)" in after, action


RECIPES = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@RECIPES
@given(st.sampled_from(sorted(BY_NAME)), st.integers(0, 1 << 30), st.integers(1, 5))
def test_every_recipe_gives_a_text_with_the_same_entries_and_is_carried_out_alike_again(name: str, seed: int, steps: int) -> None:
    made = space(BY_NAME[name])
    recipe, plan = walked(made, Random(seed), steps)
    again = space(BY_NAME[name]).replay([Action.parse(str(action)) for action in recipe])
    assert (again.text, again.flags, again.done) == (plan.text, plan.flags, plan.done), "printed and parsed, it does the same"
    assert unit.entries(plan.text) == unit.entries(BY_NAME[name]), "who calls it calls it as before"
    read = unit.read(plan.text)
    assert {launch.kernel for launch in read.launches} <= read.kernels.keys() and read.launches
    assert "ww::" not in plan.text, "nothing is left of the front end, which nvcc does not know"
    balance = [token.text for token in scan.tokens(plan.text)]
    assert all(balance.count(opening) == balance.count(closing) for opening, closing in ("()", "{}", "[]"))


@RECIPES
@given(st.sampled_from(sorted(BY_NAME)), st.integers(0, 1 << 30), st.integers(0, 3))
def test_what_is_offered_is_legal_and_what_was_done_is_not_offered_again(name: str, seed: int, steps: int) -> None:
    made = space(BY_NAME[name])
    rng = Random(seed)
    _, plan = walked(made, rng, steps)
    offered = made.actions(plan)
    assert len(set(offered)) == len(offered)
    if not offered:
        return
    action = rng.choice(offered)
    before = (plan.text, plan.flags, plan.done)
    after = made.apply(plan, action)
    assert (plan.text, plan.flags, plan.done) == before, "a technique changes nothing that it is given"
    assert action not in made.actions(after)
    with pytest.raises(NotApplicable):
        made.apply(after, action)

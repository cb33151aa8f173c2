"""Sums in memory that become local values: where that may be, and random kernels against one fiber a thread."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = 'extern "C" __global__ void {name}(const int* __restrict__ a, int* __restrict__ out, int* __restrict__ other, int n) {{\n'
NUMBER = "(blockIdx.x * blockDim.x + threadIdx.x)"


def program(bodies: dict[str, str], tier: str) -> transpile.Program:
    text = "__device__ int at(const int* p, int i) { return p[i]; }\n"
    return transpile.compile_text(text + "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items()), tier=tier)


def is_kept(body: str) -> bool:
    return "out_kept" in program({"k": body}, "vectors").source


KEPT = {
    "a sum": f"out[{NUMBER}] = 0; for (int k = 0; k < 4; ++k) out[{NUMBER}] += a[k];",
    "nested loops": f"out[{NUMBER}] = 0; for (int k = 0; k < 4; ++k) for (int j = 0; j < n; ++j) out[{NUMBER}] = max(out[{NUMBER}], a[k + j]);",
    "a name": "int i = threadIdx.x; out[i] = 0; for (int k = 0; k < 4; ++k) out[i] = out[i] * 2 + a[k];",
    "under guards": f"if (threadIdx.x < n) out[{NUMBER}] = 1; for (int k = 0; k < 4; ++k) {{ if (threadIdx.x < n) out[{NUMBER}] += a[k]; }}",
    "inside a loop": "for (int o = 0; o < 3; ++o) { out[o * 96 + threadIdx.x] = 0; for (int k = 0; k < o; ++k) out[o * 96 + threadIdx.x] += k; }",
}

NOT_KEPT = {
    "another place": f"out[{NUMBER}] = 0; for (int k = 0; k < 4; ++k) out[{NUMBER} / 2] += a[k];",
    "a place that moves": "int i = threadIdx.x; out[i] = 0; for (int k = 0; k < 4; ++k) { out[i] += a[k]; i += 8; }",
    "a barrier": f"out[{NUMBER}] = 0; for (int k = 0; k < 4; ++k) {{ out[{NUMBER}] += a[k]; __syncthreads(); }}",
    "a call": f"out[{NUMBER}] = 0; for (int k = 0; k < 4; ++k) out[{NUMBER}] += at(out, k);",
    "an atomic": f"out[{NUMBER}] = 0; for (int k = 0; k < 4; ++k) {{ out[{NUMBER}] += a[k]; atomicAdd(&out[0], 1); }}",
    "a store under a guard": f"if (threadIdx.x < n) out[{NUMBER}] = 0; for (int k = 0; k < 4; ++k) out[{NUMBER}] += a[k];",
    "a guard that changes": f"for (int k = 0; k < 4; ++k) if (k < n) out[{NUMBER}] += a[k];",
    "an address": f"out[{NUMBER}] = 0; for (int k = 0; k < 4; ++k) {{ out[{NUMBER}] += a[k]; int* p = out + k; *p = 3; }}",
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept(name: str) -> None:
    assert is_kept(KEPT[name])


@pytest.mark.parametrize("name", NOT_KEPT)
def test_what_is_not(name: str) -> None:
    assert not is_kept(NOT_KEPT[name])


def test_it_takes_a_restricted_pointer() -> None:
    body = KEPT["a sum"].replace("out", "p").replace("a[k]", "q[k]")
    assert "p_kept" not in transpile.compile_text(f"__global__ void k(const int* q, int* p) {{ {body} }}").source


def random_body(random: Random) -> str:
    """Return statements on two arrays of sums, in loops and under guards; each thread has places of its own."""
    place = random.choice((NUMBER, "i"))
    guard = random.choice(("threadIdx.x < n", "i % 3 != 1", "i < n * 4"))

    def value() -> str:
        smaller = f"min(out[{place}], {random.randint(-9, 9)})"
        return random.choice((f"out[{place}]", f"other[{place}]", "a[(i + k) & 63]", "a[k]", "k", "n", smaller))

    def change() -> str:
        target = random.choice(("out", "other"))
        text = f"{target}[{place}] {random.choice(('=', '+=', '-='))} {value()} + {value()};"
        return random.choice((text, text, f"if ({guard}) {{ {text} }}", f"if (k % 2) {{ {text} }}"))

    def loop() -> str:
        return f"for (int k = 0; k < {random.choice(('3', 'n', 'i % 4'))}; ++k) {{ {' '.join(change() for _ in range(random.randint(1, 2)))} }}"

    def start(array: str) -> str:
        return random.choice((f"{array}[{place}] = {random.choice(('0', 'i', 'a[i & 63]'))};", f"if ({guard}) {array}[{place}] = 1;", ""))

    parts = [start("out"), start("other"), *(random.choice((loop, loop, change))() for _ in range(3))]
    parts += [random.choice(("", "__syncthreads();")), loop()]
    return f"const int k = 1; int i = {NUMBER}; " + " ".join(parts)


@pytest.mark.compiler
def test_random_kernels_agree_with_fibers(many: Callable[[int], int]) -> None:
    random = Random(3)
    bodies = {f"k{i}": random_body(random) for i in range(many(100))} | KEPT
    bodies = {name.replace(" ", "_"): body for name, body in bodies.items()}
    made = program(bodies, "vectors")
    assert made.source.count("_kept = ") > len(bodies) / 3
    vectors, fibers = made.load(OPTIMISED), program(bodies, "fibers").load(PLAIN)
    a = np.random.default_rng(0).integers(-99, 99, 64).astype(np.int32)
    for name, body in bodies.items():
        for n in (0, 5):
            seen, expected = ([np.arange(320, dtype=np.int32), np.arange(320, dtype=np.int32) * 2] for _ in range(2))
            vectors[name][3, 32](a, *seen, n)
            fibers[name][3, 32](a, *expected, n)
            assert all(np.array_equal(x, y) for x, y in zip(seen, expected, strict=True)), (body, n)

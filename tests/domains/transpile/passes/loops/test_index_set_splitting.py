"""Guards that leave one thread, or one of each warp: which get a loop of their own, and random kernels against one fiber a thread."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from executables import PLAIN

from warpwright.domains import transpile

HEAD = 'extern "C" __global__ void {name}(const int* __restrict__ a, int* __restrict__ out, int n) {{\n'
ALL = "int v = a[threadIdx.x]; out[threadIdx.x] = v; __syncthreads(); v += out[(threadIdx.x + 1) % blockDim.x]; __syncthreads(); "


def program(bodies: dict[str, str], tier: str = "vectors") -> transpile.Program:
    return transpile.compile_text("".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items()), tier=tier)


@pytest.mark.parametrize(("guard", "text"), [
    ("threadIdx.x == 0", "last_x = "), ("lane == 3", "const int thread_of_3 = stretch_x + 3 - (int)((stretch_x & 31));"), ("warp == 1", "last_x = "),
    ("(int)threadIdx.x == n", "last_x = "),
])  # fmt: skip
def test_narrow_guards(guard: str, text: str) -> None:
    source = program({"k": f"{ALL} int lane = threadIdx.x & 31, warp = threadIdx.x >> 5; v = v * 2; if ({guard}) out[warp] = v;"}).source
    assert text in source.partition("static void k_block")[2]


@pytest.mark.parametrize("guard", ["lane != 0", "v == 0", "lane == n", "(threadIdx.x & 3) == 0"])
def test_other_guards_stay(guard: str) -> None:
    source = program({"k": f"{ALL} int lane = threadIdx.x & 31; v = v * 2; if ({guard}) out[lane] = v;"}).source
    assert "thread_of_" not in source and "last_x" not in source.partition("static void k_block")[2]


@pytest.mark.compiler
def test_random_kernels_agree_with_fibers() -> None:
    random = Random(3)
    guards = ("threadIdx.x == {c}", "lane == {c}", "warp == 1", "(int)threadIdx.x == n", "lane == 0 && warp < n", "{c} == lane",
              "threadIdx.x / 16 == 2", "threadIdx.x + threadIdx.y == {c}", "(threadIdx.x & 15) == {c}")  # fmt: skip
    bodies = {}
    for i in range(40):
        guard = random.choice(guards).format(c=random.randrange(20))
        effect = random.choice(("out[(t * 3 + 1) % 128] = v", "s[warp] += v", "{ int w = v + lane; out[t] += w; }", "v = t - lane"))
        bodies[f"k{i}"] = (
            "__shared__ int s[32]; int t = threadIdx.y * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5; "
            "if (t < 32) s[t] = t; int v = a[t]; __syncthreads(); "
            f"{random.choice(('v = v * 2 + s[lane];', 'v -= lane;', 'out[128 + t] = v;'))} if ({guard}) {effect}; "
            "__syncthreads(); out[256 + t] = v + s[t % 32];"
        )
    shared = {name for name, body in bodies.items() if "s[warp] += v" in body}
    for name in shared:  # one thread for each place: no races
        bodies[name] = bodies[name].replace(") s[warp] += v", " && threadIdx.y == 0 && lane == 5) s[warp] += v")
    vectors, fibers = program(bodies).load(), program(bodies, "fibers").load(PLAIN)
    a = np.random.default_rng(0).integers(-99, 99, 128).astype(np.int32)
    for name in bodies:
        for block in ((128, 1), (48, 1), (32, 4), (20, 3)):
            for n in (-1, 0, 7):
                seen, expected = (np.zeros(512, np.int32) for _ in range(2))
                vectors[name][1, block](a, seen, n)
                fibers[name][1, block](a, expected, n)
                assert np.array_equal(seen, expected), (bodies[name], block, n)


SCORES = """const int row = i / n % n, col = i % n;
  if ({guard}) {{ out[i] = -1; return; }} int s = 0; for (int k = 0; k < 4; ++k) s += a[row * 4 + k] * a[col * 4 + k]; out[i] = s;"""


def alternatives(guard: str) -> str:
    body = "const int i = blockIdx.x * blockDim.x + threadIdx.x; " + SCORES.format(guard=guard)
    return program({"k": body}).source.partition("static void k_block")[2].partition("static void k_launch")[0]


def test_alternatives_with_a_loop_have_bounds_of_their_own() -> None:
    text = alternatives("col > row")
    assert "const int first_in = (int)ww::largest<long>({stretch_x, (long)stretch_x + (long)(part_2) - (long)(part_1) + 1});" in text
    assert "const int last_in = (int)ww::smallest<long>({stretch_end, (long)stretch_x + (long)(part_2) - (long)(part_1) + 1});" in text


@pytest.mark.parametrize("guard", ["a[i] > 0", "n > 7"])
def test_other_alternatives_stay_together(guard: str) -> None:
    text = alternatives(guard)
    assert "first_in" not in text and "last_in" not in text

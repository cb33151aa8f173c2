"""Blocks that take the steps of a grid-stride loop together, and steps at once: which kernels, and their answers against one fiber a thread."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = 'extern "C" __global__ void {name}(const float* __restrict__ a, float* out, int n) {{\n'
LOOP = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) "
TREE = "s[threadIdx.x] = v; __syncthreads(); for (int d = blockDim.x / 2; d > 0; d >>= 1) { "
TREE += "if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d]; __syncthreads(); } if (threadIdx.x == 0) out[blockIdx.x] = s[0];"


def program(bodies: dict[str, str], tier: str = "vectors", blocks: dict[str, tuple[int, int, int]] | None = None) -> transpile.Program:
    text = "__device__ int mine() { return threadIdx.x; }\n" + "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items())
    return transpile.compile_text(text, tier=tier, blocks=blocks or {})


def together(body: str) -> bool:
    return "blocks_at_once" in program({"k": body}).source.partition("static void k_block")[2]


TAKEN = {
    "saxpy": f"{LOOP} out[i] = 2 * a[i] + out[i];",
    "sum": f"__shared__ float s[1024]; float v = 0; {LOOP} v += a[i]; {TREE}",
    "largest": f"__shared__ float s[1024]; float v = -1e30f; {LOOP} v = fmaxf(v, a[i]); {TREE}",
    "a named start and step": f"__shared__ float s[1024]; int at = blockIdx.x * blockDim.x + threadIdx.x, by = blockDim.x * gridDim.x; float v = 0; "
    f"for (int i = at; i < n; i += by) v += a[i] * a[i]; {TREE}",
    "two loops": f"__shared__ float s[1024]; float v = 0; {LOOP} v += a[i]; s[threadIdx.x] = v; __syncthreads(); "
    f"v = s[(threadIdx.x + 1) % blockDim.x]; __syncthreads(); {LOOP} v -= a[i]; {TREE}",
    "shared counts": "__shared__ int c[64]; for (int i = threadIdx.x; i < 64; i += blockDim.x) c[i] = 0; __syncthreads(); "
    f"{LOOP} atomicAdd(&c[(int)a[i] & 63], 1); __syncthreads(); for (int i = threadIdx.x; i < 64; i += blockDim.x) atomicAdd(&out[i], (float)c[i]);",
    "a guard in the loop": f"__shared__ float s[1024]; float v = 0; {LOOP} if (a[i] > 0) v += a[i]; {TREE}",
    "blocks that return": f"__shared__ float s[1024]; float v = 0; {LOOP} v += a[i]; __syncthreads(); if (blockIdx.x % 3 == 1) return; {TREE}",
    "a loop that threads leave at the end": f"float v = 0; {LOOP} v += a[i]; int t = threadIdx.x; out[blockIdx.x * blockDim.x + t] = v; "
    "while (t < 40) { __syncthreads(); t += 8; out[blockIdx.x * blockDim.x + threadIdx.x] += t; }",
    "dynamic shared memory behind the loop": f"extern __shared__ float s[]; float v = 0; {LOOP} v += a[i]; {TREE}",
    "an inner loop": f"__shared__ float s[1024]; float v = 0; {LOOP} for (int k = 0; k < 3; ++k) v += a[i] * k; {TREE}",
}

APART = {
    "an atomic on global memory": f"{LOOP} atomicAdd(&out[i % 7], a[i]);",
    "an end of each block": "for (int i = blockIdx.x * 64 + threadIdx.x; i < min(n, (int)(blockIdx.x + 1) * 64); i += 32) out[i] = a[i];",
    "a row of each block": "for (int i = threadIdx.x; i < n; i += blockDim.x) out[blockIdx.x * n + i] = a[i];",
    "a start that falls": "for (int i = threadIdx.x + (n - blockIdx.x * blockDim.x); i < n; i += gridDim.x * blockDim.x) out[i] = a[i];",
    "dynamic shared memory": f"extern __shared__ float d[]; d[threadIdx.x] = 0; __syncthreads(); {LOOP} d[threadIdx.x] += a[i]; "
    "out[threadIdx.x] = d[0];",
    "a function that looks itself": f"float v = mine(); {LOOP} v += a[i]; __syncthreads(); out[blockIdx.x * blockDim.x + threadIdx.x] = v;",
    "a value that each block changes": f"int k = 1; float v = 0; {LOOP} v += a[i] * k; __syncthreads(); "
    "while (k < 5) { k += blockIdx.x + 1; __syncthreads(); } out[blockIdx.x * blockDim.x + threadIdx.x] = v + k;",
}


@pytest.mark.parametrize("name", TAKEN)
def test_blocks_that_go_together(name: str) -> None:
    assert together(TAKEN[name])


@pytest.mark.parametrize("name", APART)
def test_blocks_that_stay_apart(name: str) -> None:
    assert not together(APART[name])


def test_blocks_stay_apart_where_that_is_chosen() -> None:
    text = "__global__ void k(const float* a, float* out, int n) { " + TAKEN["sum"] + " }"
    assert "blocks_at_once = " in transpile.compile_text(text).source
    assert "blocks_at_once = " not in transpile.compile_text("/* warpwright: coalesce=0 */ " + text).source


def test_small_bodies_take_four_steps_at_once() -> None:
    of = lambda body: program({"k": body}).source.partition("static void k_block")[2]  # noqa: E731
    assert of(TAKEN["sum"]).count("+ 3l * (") == of(TAKEN["shared counts"]).count("+ 3l * (") == 1
    assert "3l * (" not in "".join(of(TAKEN[name]) for name in ("a guard in the loop", "an inner loop", "saxpy")) + of(APART["a row of each block"])


def random_body(random: Random) -> str:
    """Return a kernel whose beginning has grid-stride loops, barriers and shared memory; `out` has 4096 places, of which it adds to those it owns."""
    own = "v = v * 0.5f + a[i]", "v = fmaxf(v, a[i] - v)", "v += a[i] * a[(i * 7) % n]", "w += v; v -= a[i]", "{ float t = a[i]; v += t * t; w = t; }"
    lines = ["__shared__ float s[256]; float v = threadIdx.x, w = 1; int by = gridDim.x * blockDim.x;", "s[threadIdx.x] = v; __syncthreads();"]
    for _ in range(random.randint(1, 3)):
        start = random.choice(("blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x + blockDim.x * blockIdx.x + 3", "blockIdx.x * 5 + threadIdx.x"))
        step = random.choice(("by", "gridDim.x * blockDim.x", "(int)(blockDim.x * gridDim.x)", "37"))
        compare = random.choice(("< n", "<= n - 1", "< n / 2"))
        body = "; ".join(random.choices(own, k=random.randint(1, 2)))
        if random.random() < 0.2:
            body = f"if (a[i] > 0) {{ {body}; }}"
        lines.append(f"for (int i = {start}; i {compare}; i += {step}) {{ {body}; }}")
        if random.random() < 0.5:
            lines.append("s[threadIdx.x] = v + w; __syncthreads(); w = s[(threadIdx.x + 1) % blockDim.x]; __syncthreads();")
    if random.random() < 0.5:
        lines.append("for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);")
    if random.random() < 0.5:
        lines.append("if (threadIdx.x < 32) { w = v; for (int d = 16; d > 0; d /= 2) w += __shfl_xor_sync(0xffffffffu, w, d); }")
    lines.append("out[blockIdx.x * blockDim.x + threadIdx.x] = v * 3 + w;")
    return "\n".join(lines)


@pytest.mark.compiler
def test_each_core_has_the_dynamic_shared_memory_that_the_launch_asks_for() -> None:
    name = "dynamic shared memory behind the loop"
    kernel = program({"k": TAKEN[name]}).load(OPTIMISED)["k"]  # a library that launched nothing yet
    out = np.zeros(512, np.float32)
    kernel[512, 128, 512](np.ones(1 << 20, np.float32), out, 1 << 20)
    assert out.sum() == 1 << 20


@pytest.mark.compiler
def test_answers_are_those_of_fibers_to_the_bit() -> None:
    random = Random(11)
    bodies = {f"k{i}": random_body(random) for i in range(16)} | {name.replace(" ", "_"): body for name, body in TAKEN.items()}
    sizes = {name: random.choice((32, 64, 128, 256)) for name in bodies}
    known = {name: (size, 1, 1) for name, size in sizes.items() if random.random() < 0.5}
    made = program(bodies, blocks=known)
    assert made.source.count("blocks_at_once = ") > 0.8 * len(bodies)
    vectors, fibers = made.load(OPTIMISED), program(bodies, "fibers").load(PLAIN)
    a = np.random.default_rng(0).normal(0, 9, 50_000).astype(np.float32)
    for name, size in sizes.items():
        for blocks, n in ((1, 1), (3, 5), (7, 9 * size + 1), (4096 // size, 20_000), (90 * 32 // size, 50_000)):
            seen, expected = (np.ones(50_000, np.float32) for _ in range(2))
            vectors[name][blocks, size, 4 * size](a, seen, n)
            fibers[name][blocks, size, 4 * size](a, expected, n)
            assert np.array_equal(seen, expected), (bodies[name], size, blocks, n)

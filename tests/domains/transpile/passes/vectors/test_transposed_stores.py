"""Four numbers of each thread, stored apart, as vectors of threads: forms, and answers against one fiber a thread."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = "__global__ void {name}(const float* a, float* out, int n, int m) {{ __shared__ float s[2][4096]; "


def program(bodies: dict[str, str], blocks: dict[str, tuple[int, int, int]], tier: str = "vectors") -> transpile.Program:
    text = "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items())
    return transpile.compile_text(text, "stores.cu", tier=tier, blocks=blocks)


def written(body: str) -> str:
    return program({"k": body}, {"k": (128, 1, 1)}).source.partition("static void k_block")[2].partition("static void k_launch")[0]


FOUR = "const float4 four = reinterpret_cast<const float4*>(a)[threadIdx.x];"
PLACES = "s[0][(x * 4 + 0) * 64 + y] = four.x; s[0][(x * 4 + 1) * 64 + y] = four.y; s[0][(x * 4 + 2) * 64 + y] = four.z; s[0][(x * 4 + 3) * 64 + y] = four.w;"  # noqa: E501
REST = "__syncthreads(); out[threadIdx.x] = s[0][(threadIdx.x * 7) % 512];"
PLAIN_FORM = f"const int x = threadIdx.x % 2, y = threadIdx.x / 2; {FOUR} {PLACES} {REST}"


def test_stores_of_every_second_thread_are_vectors() -> None:
    text = written(PLAIN_FORM)
    assert "ww::stored_apart(BX, " in text and "ww::load_fours<apart>(" in text and "ww::store(&s[0][(x * 4 + 3) * 64 + y], fours[3]);" in text


@pytest.mark.parametrize("change", [
    ("four.w;", "four.z;"),  # a number twice
    (FOUR, FOUR.replace("const ", "", 1) + " if (m > 3) four.x = m;"),  # another value for some
    (REST, "out[300 + threadIdx.x] = four.x; " + REST),  # handed on
    ("y] = four.x", "(y + (int)a[y])] = four.x"),  # a place from memory
    ("(x * 4 + 0)", "(x * m + 0)"),  # a place that only the run shows
    (FOUR, "if (threadIdx.x > 100) return; " + FOUR),  # threads that have left
])  # fmt: skip
def test_other_stores_stay(change: tuple[str, str]) -> None:
    assert "ww::load_fours" not in written(PLAIN_FORM.replace(*change))


PLACES_OF = (
    "(x * 4 + N) * 256 % 4096 + y", "(x * 4 + N) * 128 + y", "N * 256 + threadIdx.x", "N * 300 + 256 - threadIdx.x", "N * 300 + y", "threadIdx.x * 4 + N",  # noqa: E501
    "N * 512 + y * 2 + x / 16", "x * 100 + y * 4 + N * 1024", "(3 - N) * 1024 + threadIdx.y * 256 + threadIdx.x", "(x * 4 + N / 2) * 128 + y",
    "N * 256 + threadIdx.y * 128 + threadIdx.x", "x * 512 + N * 128 + y + threadIdx.y * 64", "threadIdx.x + N",
)  # fmt: skip


def has_race(place: str, width: int, shape: tuple[int, int, int]) -> bool:
    """Say whether two threads write one place, or one writes beyond the array."""
    value = compile(place.replace("threadIdx.x", "tx").replace("threadIdx.y", "ty").replace("/", "//"), "place", "eval")
    seen: set[int] = set()
    for tx in range(shape[0]):
        for ty in range(shape[1]):
            own = {eval(value, {"x": tx % width, "y": tx // width, "tx": tx, "ty": ty, "N": n}) for n in range(4)}
            if own & seen or min(own) < 0 or max(own) >= 4096:
                return True
            seen |= own
    return False


def random_stores(random: Random, shape: tuple[int, int, int]) -> str:
    """Return a kernel that takes float4s apart, with places that go on from thread to thread, or nearly."""
    place, width = random.choice(PLACES_OF), random.choice((1, 2, 2, 4, 8, 32))
    while has_race(place, width, shape):
        place, width = random.choice(PLACES_OF), random.choice((1, 2, 2, 4, 8, 32))
    kind = random.choice(("int", "unsigned", "const unsigned"))
    at = random.choice(("threadIdx.x", "y * m + x", "threadIdx.x + threadIdx.y * blockDim.x", "blockDim.x - 1 - threadIdx.x", "threadIdx.x / 3"))
    four = random.choice(("float4 four = reinterpret_cast<const float4*>(a)[AT];", "const float4 four = reinterpret_cast<const float4*>(&a[(AT) * 4])[0];",  # noqa: E501
                          "float4 four; four = *reinterpret_cast<const float4*>(a + (AT) * 4);", "float4 four = {a[AT], a[AT + 1], 2, a[AT + 3]};"))  # fmt: skip  # noqa: E501
    members = random.sample("xyzw", 4) if random.random() < 0.3 else list("xyzw")
    stage = random.choice(("0", "m % 2", "stage"))
    stores = random.choice(("; ", ", ")).join(f"s[{stage}][{place.replace('N', str(n))}] = four.{member}" for n, member in enumerate(members))
    extra = random.choice(
        (
            "",
            "",
            "out[60000 + threadIdx.x + threadIdx.y * 300] = m;",
            "const float more = a[threadIdx.x] * 2; out[65000 + threadIdx.x + threadIdx.y * 300] = more;",
        )
    )
    later = random.choice(("", "", "out[50000 + threadIdx.x + threadIdx.y * 300] = four.y;", "four.x += 1; out[40000 + threadIdx.x + threadIdx.y * 300] = four.x;",  # noqa: E501
                           "out[70000 + threadIdx.x + threadIdx.y * 300] = y;"))  # fmt: skip
    later = "" if "const float4" in four and "+=" in later else later
    guard = random.choice(("", "", "", "if (threadIdx.x < 77) ", "if (y < 5) "))
    read = "sum += s[STAGE][(threadIdx.x * 13 + threadIdx.y) % 4096];"
    parts = [extra, four.replace("AT", at)]
    random.shuffle(parts)
    inside = f"{' '.join(parts)} {stores}; {later}"
    body = f"{guard}{{ {inside} }}" if guard or random.random() < 0.3 else inside
    rounds = random.choice((
        f"{body} __syncthreads(); {read} __syncthreads();",
        f"for (int stage = 0; stage < 2; ++stage) {{ {body} __syncthreads(); {read} __syncthreads(); }}",
        f"float4 four = {{1, 2, 3, 4}}; for (int stage = 0; stage < 2; ++stage) {{ {guard}{{ {stores}; }} __syncthreads(); {read} "
        f"four = reinterpret_cast<const float4*>(a)[threadIdx.x + stage]; {random.choice(('', '__syncthreads();'))} {extra} __syncthreads(); }}",
    ))  # fmt: skip
    loops = "for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < 8192; i += blockDim.x * blockDim.y)"
    rounds = rounds.replace("STAGE", "stage") if "int stage" in rounds else rounds.replace("STAGE", "0").replace("[stage]", "[0]")
    return (f"{loops} s[i / 4096][i % 4096] = i; __syncthreads(); float sum = 0; {kind} x = threadIdx.x % {width}, y = threadIdx.x / {width}; {rounds} "  # noqa: E501
            f"out[threadIdx.y * blockDim.x + threadIdx.x] = sum; __syncthreads(); {loops} out[1024 + i] = s[i / 4096][i % 4096];")  # fmt: skip


def agree(seed: int, count: int) -> int:
    """Compare tiers; return how many kernels had their stores as vectors."""
    random = Random(seed)
    shapes = {f"k{i}": random.choice(((128, 1, 1), (256, 1, 1), (64, 1, 1), (96, 1, 1), (128, 2, 1))) for i in range(count)}
    bodies = {name: random_stores(random, shape) for name, shape in shapes.items()}
    compiled = program(bodies, shapes)
    vectors, fibers = compiled.load(OPTIMISED), program(bodies, shapes, "fibers").load(PLAIN)
    a = np.random.default_rng(seed).normal(0, 3, 1 << 15).astype(np.float32)
    for name, shape in shapes.items():
        for n, m in ((33, 5), (200, 16)):
            seen, expected = (np.ones(1 << 17, np.float32) for _ in range(2))
            vectors[name][1, shape](a, seen, n, m)
            fibers[name][1, shape](a, expected, n, m)
            assert np.array_equal(seen, expected), (bodies[name], shape, n, m)
    return compiled.source.count("ww::load_fours<apart>(")


@pytest.mark.compiler
def test_answers_are_those_of_fibers_to_the_bit() -> None:
    assert agree(3, 12)


@pytest.mark.compiler
def test_a_value_that_each_thread_keeps_over_barriers_is_read_where_a_four_needs_it() -> None:
    body = ("if (threadIdx.x == 0) s[1][0] = m; __syncthreads(); const int b = s[1][0]; "
            + PLAIN_FORM.replace("[threadIdx.x];", "[threadIdx.x + b];").replace(REST, REST + " out[300 + threadIdx.x] = b;"))  # fmt: skip
    assert "ww::load_fours<apart>(" in written(body)
    a = np.arange(1024, dtype=np.float32)
    seen, expected = (np.zeros(512, np.float32) for _ in range(2))
    program({"k": body}, {"k": (128, 1, 1)}).load(PLAIN)["k"][1, (128, 1, 1)](a, seen, 3, 5)
    program({"k": body}, {"k": (128, 1, 1)}, "fibers").load(PLAIN)["k"][1, (128, 1, 1)](a, expected, 3, 5)
    assert np.array_equal(seen, expected) and seen[300] == 5


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.parametrize("seed", range(10, 14))
def test_many_answers_are_those_of_fibers_to_the_bit(seed: int) -> None:
    assert agree(seed, 40)

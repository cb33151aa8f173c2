"""Threads that leave loops at different times, as vectors under masks: the form, what is left alone, random kernels against one fiber a thread."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = "__global__ void {name}(const int* a, const float* f, int* out, float* real, int n, int m) {{\n"
NUMBER = "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;\n"


def program(bodies: dict[str, str], tier: str) -> transpile.Program:
    text = "".join(HEAD.format(name=name) + NUMBER + body + "\n}\n" for name, body in bodies.items())
    return transpile.compile_text(text, "masked.cu", tier=tier)


def written(body: str) -> str:
    return program({"k": body}, "vectors").source.partition("static void k_block")[2].partition("static void k_launch")[0]


def test_a_loop_that_threads_leave_on_their_own() -> None:
    text = written("int v = a[i], steps = 0; while (steps < m && v != 1) { v = v % 2 == 0 ? v >> 1 : 3 * v + 1; ++steps; } out[i] = steps;")
    assert "stay_1 &= ((steps_lanes < " in text and "if (!ww::some_lane(stay_1)) break;" in text
    assert "ww::store_lanes(&out[i], steps_lanes);" in text and "ww::store_lanes(&out[i], steps_lanes, begun);" in text


@pytest.mark.parametrize(
    "body",
    [
        "int s = 0; for (int k = 0; k < m; ++k) s += a[k * n + i]; out[i] = s;",  # a loop that compilers take
        "int s = 0, k = a[i]; while (k < m) { s += a[k]; ++k; } out[i] = s;",  # a gather in the loop
        "int s = 0, k = a[i]; while (k < m && a[k]) ++k; out[i] = k;",  # memory that the left side guards
        "int s = 1, k = a[i]; while (k < m) { s += m / (k + 3); ++k; } out[i] = s;",  # a lane that is left out may divide by 0
        "int s = 0, k = a[i]; while (k < m) { if (k < n) s += m / n; ++k; } out[i] = s;",  # no lane may be left, and n may be 0
        "int s = 0, k = a[i]; while (k < m) { s += k < n ? m % n : 1; ++k; } out[i] = s;",
        "int s = 0, k = a[i]; while (k < m) { if (k < n && s < m / n) s += 2; ++k; } out[i] = s;",
        "int s = 0; for (int k = a[i]; k < m; k += m / n) { if (s > 3) break; ++s; } out[i] = s;",
        "double s = 0; int k = a[i]; while (k < m) { s += 0.5; ++k; } real[i] = s;",  # doubles
        "int k = a[i]; while (k < m) { atomicAdd(out, 1); ++k; }",
        "int k = a[i]; while (k < m) { if (k == 7) return; ++k; } out[i] = k;",
    ],
)
def test_others_are_left_alone(body: str) -> None:
    assert "ww::ints" not in written(body)


class _Maker:
    """Writes a body of ints and floats: loops that threads leave at different times, with branches, jumps and loops inside."""

    def __init__(self, seed: int) -> None:
        self.rng, self.loops, self.counted = Random(seed), 0, ["m"]

    def whole(self, depth: int = 0) -> str:
        pick = self.rng.choice
        options = [
            pick(["u", "v", "w"]),
            pick(["u", "v", "w"]),
            str(self.rng.randrange(-4, 9)),
            pick(self.counted),
            "a[i]",
            "(int)threadIdx.x",
            "(int)(threadIdx.x - 3)",
            f"-({self.pair()})",
            "(int)q",
        ]
        if depth < 2:
            one, other = self.whole(depth + 1), self.whole(depth + 1)
            options += [
                f"({one} {pick('+-*&|^')} {other})",
                f"({one} % 7)",
                f"({one} >> 2)",
                f"min({one}, {other})",
                f"({self.truth(depth + 1)} ? {one} : {other})",
            ]
        return pick(options)

    def truth(self, depth: int = 0) -> str:
        pick = self.rng.choice
        simple = pick(
            [
                f"{self.whole(depth + 1)} {pick(['<', '>', '<=', '!=', '=='])} {self.whole(depth + 1)}",
                "x > y",
                "x * 0.5f < f[i]",
                "threadIdx.x - 1 > 0",
                "!(m > 4)",
                f"(q & 3u) == {self.rng.randrange(3)}u",
            ]
        )
        return simple if depth or self.rng.random() < 0.6 else f"({self.truth(2)} {pick(['&&', '||'])} !({self.truth(2)}))"

    def pair(self) -> str:
        return self.rng.choice(["x > y", "u < v", "!(x > y)", "m > 4"])

    def real(self) -> str:
        return self.rng.choice(
            [
                "x * 0.5f + y",
                "fmaxf(x, f[i] - y)",
                "fabsf(y) * 0.25f",
                f"(float)({self.whole(1)} & 15)",
                "x > y ? 1.5f : x * 0.125f",
                "fmaxf(-INFINITY, x)",
            ]
        )

    def change(self) -> str:
        pick = self.rng.choice
        return pick(
            [
                f"{pick('uvw')} {pick(['=', '+=', '^=', '-='])} {self.whole()};",
                f"{pick('xy')} = {self.real()};",
                f"q = q * 5u + {self.whole(1)};",
                "++v;",
                "x += -f[z];",
            ]
        )

    def branch(self, depth: int, jump: bool) -> str:
        other = f" else {{ {self.change()} }}" if self.rng.random() < 0.4 else ""
        leaves = self.rng.choice([" break;", " continue;"]) if jump and self.rng.random() < 0.5 else ""
        cond = "!a[z]" if self.rng.random() < 0.2 else self.truth()
        return f"if ({cond}) {{ {self.change()} {self.several(depth + 1, jump)}{leaves} }}{other}"

    def several(self, depth: int, jump: bool) -> str:
        parts = [self.change() if depth > 2 or self.rng.random() < 0.5 else self.branch(depth, jump) for _ in range(self.rng.randrange(1, 4))]
        if depth < 2 and self.loops < 4 and self.rng.random() < 0.5:
            parts.append(self.loop(depth + 1))
        return " ".join(parts)

    def loop(self, depth: int) -> str:
        self.loops += 1
        t, kind = f"t{self.loops}", self.rng.randrange(4)
        if kind == 0:
            self.counted.append(t)
            text = f"for (int {t} = 0; {t} < m % 6; ++{t}) {{ {self.several(depth, True)} }}"
            self.counted.remove(t)
            return text
        inside = self.several(depth, kind != 3)
        if kind == 1:
            return f"int {t} = 0; while ({t} < (u & 7) && {self.truth(1)}) {{ ++{t}; {inside} }}"
        if kind == 2:
            return f"for (int {t} = v & 3; {t} < 6; {t} += 1 + (w & 1)) {{ {inside} }}"
        return f"int {t} = 9; do {{ {inside} {t} -= 1 + (v & 3); }} while ({t} > 0);"

    def body(self) -> str:
        first = "const int z = m % 1; int u = a[i], v = i - 3, w = m; unsigned q = i * 7u; float x = f[i], y = 0.75f;"
        return f"{first} {self.loop(0)} {self.several(2, False)} {self.loop(0)} out[i] = u + v * 3 + w + (int)q; real[i] = x + y;"


@pytest.mark.compiler
def test_values_that_are_one_for_all_threads() -> None:
    loop = "for (int j = 0; j < m; ++j) {{ int o = j * 2; {} }}"
    bodies = {
        "negated": "float best = -INFINITY; " + loop.format("if (!a[o]) continue; float d = f[j] - i; if (d > best) best = d;") + " real[i] = best;",
        "minus": "float s = 0; " + loop.format("if (f[j] > i) continue; s += -f[o];") + " real[i] = s;",
        "truth": "int s = 0; " + loop.format("float d = f[j] - i; if (d < -9.f) continue; s += -(d > 0.0f) + ~(d > 1.f);") + " out[i] = s;",
        "index": "int s = 0; " + loop.format("if (f[j] > i) continue; if (threadIdx.x - 1 > 0) s += 1;") + " out[i] = s;",
        "quotient": "int s = 0; " + loop.format("if (i < n - 40) { s += m / (n - 40); } s += j;") + " out[i] = s;",
    }
    vectors = program(bodies, "vectors")
    one, other = vectors.load(OPTIMISED), program(bodies, "fibers").load(PLAIN)
    a, f = np.arange(40, dtype=np.int32) % 3, np.linspace(-9, 30, 40).astype(np.float32)
    for name in bodies:
        seen, expected = ((np.zeros(40, np.int32), np.zeros(40, np.float32)) for _ in range(2))
        one[name][2, 32](a, f, *seen, 40, 17)
        other[name][2, 32](a, f, *expected, 40, 17)
        assert np.array_equal(seen[0], expected[0]) and np.array_equal(seen[1], expected[1]), name


@pytest.mark.compiler
def test_random_kernels_agree_with_fibers(many: Callable[[int], int]) -> None:
    bodies = {f"k{seed}": _Maker(seed).body() for seed in range(many(20))}
    vectors = program(bodies, "vectors")
    assert sum("ww::some_lane(" in part for part in vectors.source.split("_block(const ww::Launch& launch")) > len(bodies) // 2
    one, other = vectors.load(OPTIMISED), program(bodies, "fibers").load(PLAIN)
    rng = np.random.default_rng(3)
    for name in bodies:
        for n, m in ((1, 4), (45, 11), (96, 3)):
            a, f = rng.integers(-40, 60, n).astype(np.int32), rng.standard_normal(n).astype(np.float32)
            a[0] = m % 2 * 5
            answers = []
            for loaded in (one, other):
                out, real = np.zeros(n, np.int32), np.zeros(n, np.float32)
                loaded[name][(n + 31) // 32, 32](a, f, out, real, n, m)
                answers.append((out, real))
            assert np.array_equal(answers[0][0], answers[1][0]), (name, n, bodies[name])
            assert np.array_equal(answers[0][1], answers[1][1], equal_nan=True), (name, n, bodies[name])

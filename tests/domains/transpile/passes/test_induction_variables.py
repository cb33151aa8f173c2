"""Whole numbers that all threads move alike across barriers: the form, what is left alone, and random kernels against one fiber a thread."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import numpy as np
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = "__global__ void {name}(const int* a, int* out, int n, int m) {{\n"
SHEETS = """__shared__ int s[64]; const int t = threadIdx.x; int at = blockIdx.x * 64 + t;
for (int k = 0; k < m; ++k) { at += n; __syncthreads(); s[t] = a[at]; __syncthreads(); out[at + n] += s[63 - t]; }"""


def program(bodies: dict[str, str], tier: str = "vectors") -> transpile.Program:
    text = "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items())
    return transpile.compile_text(text, "moved.cu", tier=tier, blocks=dict.fromkeys(bodies, (64, 1, 1)))


def apart(source: str) -> dict[str, str]:
    """Return the text of each kernel's blocks, by name."""
    pieces = re.split(r"static void (k\d+)_block\(", source)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def test_what_all_threads_add_is_one_number() -> None:
    text = program({"k": SHEETS}).source.partition("void k_block")[2]
    assert "at_moved += (long)(n);" in text and "a[(at + at_moved)]" in text and "out[(at + at_moved) + n]" in text
    assert "at_t[" not in text


OTHERS = [
    ("at += n;", "at += t;"),  # each thread by its own
    ("at += n;", "at += a[k];"),  # read from memory, which may change between two reads
    ("at += n;", "at += (unsigned)n;"),  # as an unsigned number
    ("at += n;", "at *= 2;"),
    ("at += n;", "if (a[t] > 3) at += n;"),
    ("at += n;", "at += n; int* p = &at; *p += 1;"),
    ("at += n;", "s[t] = at += n;"),
    ("int at = blockIdx.x * 64 + t;", "int at = a[t];"),
    ("int at", "long at"),
]  # fmt: skip


def test_others_are_left_alone() -> None:
    parts = apart(program({f"k{at}": SHEETS.replace(*change) for at, change in enumerate(OTHERS)}).source)
    assert len(parts) == len(OTHERS)
    for name, text in parts.items():
        assert "at_moved" not in text, name


LARGE = """__shared__ int s[64]; const int t = threadIdx.x, most = -2147483647 - 1 + (m & 0); int at = t - 64;
for (int k = 0; k < 3; ++k) {
  if (k == 0) at -= most; else if (k == 1) at += most; else { at -= most; at += -2147483647; }
  __syncthreads(); s[t] = at; __syncthreads(); out[t] += s[t ^ 1] / 3 + (at < 0 ? 1000 : 0); }
out[at + 200] += 5; out[300 + t] = at;"""
"""`at -= -2^31` from below zero fits, though the amount has no opposite; on the whole they move further than an int holds."""


def random_sheets(random: Random) -> str:
    """Return a kernel whose threads move along by uniform steps: some under conditions, with values cut, compared, and passed on."""
    pick = random.choice

    def move(depth: int = 0) -> str:
        name = pick(("at", "at", "by"))
        simple = pick((f"{name} += n;", f"{name} -= m;", f"{name} += n - 3;", f"++{name};", f"{name}--;", f"{name} += k * 2;", f"{name} -= -7;"))
        kind = random.randrange(6 if depth < 2 else 3)
        if kind == 3:
            return f"if (k % 3 == {random.randrange(3)}) {{ {simple} {move(depth + 1)} }} else {simple}"
        if kind == 4:
            return f"for (int j = 0; j < (m & 3); ++j, {simple.rstrip(';')}) {{ {move(depth + 1)} }}"
        return simple if kind < 5 else f"if (!(n - m > k)) {{ {simple} }}"

    def use(k: str = "k") -> str:
        name = pick(("at", "by"))
        return pick((
            f"a[({name} & 255)]", f"a[256 + {name} % 250]", f"({name} * 3 - t) / 5", f"({name} >> 2)", f"(int)((float){name} * 0.25f)", f"-{name}",
            f"({name} < n ? {k} : {name})", f"(!({name} - m >= t) ? 3 : t)", f"({name} == t)", f"max({name}, 40)", f"(unsigned char){name}",
            f"(int)(({name} + 1u) % 77u)", f"a[{pick(('t + 300 - t', k, '200'))} + ({name} * 0)]",
        ))  # fmt: skip

    inside = pick(("{0}", "if (t < 20 + n) {{ {0} }}", "if (at - by > t) {{ {0} }}"))
    store = inside.format(f"out[blockIdx.x * 64 + t] += {use()} + {use()};")
    read = pick(("s[t ^ 5]", "s[63 - t]", "s[t]"))
    first = pick(("blockIdx.x * 64 + t", "t - 40", "(t - 3) * n", "t % 7 - blockIdx.x"))
    return f"""__shared__ int s[64]; const int t = threadIdx.x; int at = {first}, by = n - t;
    for (int k = 0; k < {pick(('m', 'm - 4', '0', '5'))}; ++k) {{
      {move()} __syncthreads(); s[t] = {use()}; {move() if random.random() < 0.5 else ''} __syncthreads();
      out[blockIdx.x * 64 + t] += {read}; {store} {move() if random.random() < 0.4 else ''} }}
    out[512 + blockIdx.x * 64 + t] = {use('m')} + at - 2 * by;"""


def test_random_kernels_agree_with_fibers(many: Callable[[int], int]) -> None:
    bodies = {f"k{seed}": random_sheets(Random(seed)) for seed in range(many(15))} | {"large": LARGE}
    fast, slow = (program(bodies, tier) for tier in ("vectors", "fibers"))
    assert fast.source.count("_moved += ") > len(bodies)
    a = np.random.default_rng(5).integers(-900, 900, 600).astype(np.int32)
    loaded = fast.load(OPTIMISED), slow.load(PLAIN)
    for name, body in bodies.items():
        for n, m in ((5, 6), (-3, 4), (100, 9)):
            outs = [np.zeros(1024, np.int32) for _ in loaded]
            for kernels, out in zip(loaded, outs, strict=True):
                kernels[name][1 if name == "large" else 8, 64](a, out, n, m)  # whose blocks would write the same places at once
            assert np.array_equal(*outs), (name, n, m, body)

"""Loops over sums whose length, or what they read, is one for a row of threads and lies in memory; sums that outlive a barrier."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import numpy as np
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

HEAD = "__global__ void {name}(const int* start, const int* column, const float* value, const float* b, float* out, int rows, int width) {{\n"
SPARSE = """const int r = blockIdx.x * blockDim.y + threadIdx.y, c = threadIdx.x;
if (r >= rows || c >= width) return;
float sum = 0.f;
for (int i = start[r]; i < start[r + 1]; ++i) sum += value[i] * b[column[i] * width + c];
out[r * width + c] = sum;"""
COLUMNS = """__shared__ float s[8][33]; const int c = threadIdx.x; float w = 0.f;
for (int r = threadIdx.y; r < rows; r += 8) w += b[r * width + c];
s[threadIdx.y][c] = w; __syncthreads();
if (threadIdx.y == 0) { for (int i = 1; i < 8; ++i) w += s[i][c]; out[c] = w; }"""


def program(bodies: dict[str, str], tier: str = "vectors") -> transpile.Program:
    text = "".join(HEAD.format(name=name) + body + "\n}\n" for name, body in bodies.items())
    return transpile.compile_text(text, "rows.cu", tier=tier, blocks=dict.fromkeys(bodies, (32, 8, 1)))


def apart(source: str) -> dict[str, str]:
    """Return the text of each kernel's blocks, by name."""
    pieces = re.split(r"static void (k\d+)_block\(", source)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def test_a_row_of_threads_reads_its_length_once() -> None:
    text = program({"k": SPARSE}).source
    assert "for (int i = start[(block_x * dim_y + thread_y)]; i < start[(block_x * dim_y + thread_y) + 1]; ++i)" in text
    assert "value[i] * ww::load(&b[column[i] * width + c])" in text


def test_a_sum_that_a_later_region_reads_is_stored_for_each_thread() -> None:
    assert "ww::store(&w_t[(thread_z * dim_y + thread_y) * dim_x + thread_x], w_r[nth]);" in program({"k": COLUMNS}).source


OTHERS = [
    ("start[r + 1]", "start[r + c]"),  # threads of a row go on for longer than others
    ("int i = start[r]", "int i = start[c]"),
    ("b[column[i] * width + c]", "b[column[i + c] * width + c]"),  # read from anywhere
    ("b[column[i] * width + c]", "b[column[i] + c * width]"),  # rows, not read along
    ("b[column[i] * width + c]", "b[column[i] + i + c * width]"),
    ("sum += value[i] * b[", "out[c] = sum, sum += value[i] * b["),  # stores, while it reads how far to go
]  # fmt: skip


def test_others_are_left_alone() -> None:
    parts = apart(program({f"k{at}": SPARSE.replace(*change) for at, change in enumerate(OTHERS)}).source)
    assert len(parts) == len(OTHERS)
    for name, text in parts.items():
        assert "ww::load(&b[" not in text, name


def random_rows(random: Random) -> str:
    pick = random.choice
    r = pick(("const int r = blockIdx.x * blockDim.y + threadIdx.y;", "const unsigned r = blockIdx.x * 8 + threadIdx.y;"))
    guard = pick(("if (r >= rows || c >= width) return;", "if (r < rows && c < width) {", "if (!(r >= rows) && c > 2 && !(c >= width)) {"))
    kind = pick(("float", "float", "double"))
    cast = "(float)" if kind == "double" else ""
    begin = pick(("start[r]", "start[r] + 1", "r % 5", "start[start[r] * 0 + r]"))
    head = pick((
        f"for (int i = {begin}; i < start[r + 1]; {pick(('++i', 'i += 2'))})",
        f"const int first = {begin}, last = start[r + 1]; for (int i = first; i < last; ++i)",
        f"for (int i = {begin}; i < rows - 3; i += 3)",
    ))  # fmt: skip
    line = pick(("column[i]", "(column[i] - 1)", "(column[i] & 7)", "(rows - 1 - column[i])"))
    place = pick((f"{line} * width + c", f"c + width * {line}", f"{line} * width + c - 1"))
    term = pick((f"value[i] * b[{place}]", f"b[{place}] - value[column[i]]", f"-b[{place}]", f"b[{place}] * b[i * width + c]", f"b[{place}] * sum2"))
    inner = pick((f"sum += {term};", f"const int col = column[i]; sum -= b[col * width + c] * value[i]; sum += {term};"))
    more = pick(("", "if (b[i * width + c] > sum2) sum2 = b[i * width + c];")) if kind == "float" else ""
    store = f"out[r * width + c] = {cast}sum + sum2;"
    body = f"{kind} sum = {pick(('0', '1'))}; float sum2 = 1.f; {head} {{ {inner} {more} }} {store}"
    if random.random() < 0.4 and kind == "float":  # the sum outlives a barrier, after which others' are read
        loop = f"{head} {{ {inner} }}"
        return f"""__shared__ float s[8][33]; {r} const int c = threadIdx.x; float sum = 0, sum2 = 0.5f;
        {loop if "rows - 3" in head else f"for (int i = threadIdx.y; i < rows; i += 4) {{ {inner} }}"}
        s[threadIdx.y][c] = sum; __syncthreads();
        if (r < rows && c < width) out[r * width + c] = sum + s[7 - threadIdx.y][(c * 5 + 3) % (int)blockDim.x] * 0.5f + sum2;"""
    return f"{r} const int c = threadIdx.x; {guard} {body} {'}' if guard.endswith('{') else ''}"


def test_random_kernels_agree_with_fibers(many: Callable[[int], int]) -> None:
    bodies = {f"k{seed}": random_rows(Random(seed)) for seed in range(many(12))} | {"sparse": SPARSE, "columns": COLUMNS}
    fast, slow = (program(bodies, tier) for tier in ("vectors", "fibers"))
    assert sum("ww::load(&b[" in part for part in fast.source.split("_block(")) > len(bodies) // 2
    rng = np.random.default_rng(3)
    rows, width = 21, 29
    start = np.concatenate([[0], np.cumsum(rng.integers(0, 3, rows + 4))]).clip(0, rows - 1).astype(np.int32)  # some rows have no step
    column, value = rng.integers(1, rows - 1, 64).astype(np.int32), rng.standard_normal(64).astype(np.float32)
    b = rng.standard_normal((64, 40)).astype(np.float32)
    loaded = fast.load(OPTIMISED), slow.load(PLAIN)
    for name, body in bodies.items():
        for block in ((32, 8), (29, 8)):
            outs = [np.zeros((rows + 8, 40), np.float32) for _ in loaded]
            for kernels, out in zip(loaded, outs, strict=True):
                kernels[name][3, block](start, column, value, b, out, rows, width)
            assert np.array_equal(*outs), (name, block, body)

"""What two forms of one kernel cost, timed in turn: `while` loops that are translated as `for` loops, and shifts that are clamped as on a GPU.

    python -m benchmarks.transpile.forms [--passes 15]

The other form is one that the compiler leaves alone: the loop's counter is read after the loop, the amount of the shift has `& 31`. One thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

from warpwright.domains import transpile

LOOPS = {
    "grid, out[i] = 2 * x[i]": (
        "int i = blockIdx.x * blockDim.x + threadIdx.x; while (i < n) { out[i] = 2 * x[i]; i += gridDim.x * blockDim.x; }", 64,
    ),
    "grid, sum": (
        "int i = blockIdx.x * blockDim.x + threadIdx.x; float v = 0; while (i < n) { v += x[i]; i += gridDim.x * blockDim.x; } "
        "out[blockIdx.x * blockDim.x + threadIdx.x] = v;", 64,
    ),
    "block, exp of its rows of 4 Ki": (
        "int i = threadIdx.x; while (i < 4096) { out[blockIdx.x * 4096 + i] = expf(x[blockIdx.x * 4096 + i]); i += blockDim.x; }", 1024,
    ),
}  # fmt: skip
"""Body, and blocks of 256 threads."""
BEHIND = " if (i == -7) out[0] = i;"

SHIFTS = {
    "x << n[i]": "x[i] = x[i] << (n[i]MASK);", "x >> n[i], signed": "x[i] = (int)x[i] >> (n[i]MASK);",
    "a hash that rotates by r, 8 rounds": "unsigned h = x[i]; int r = n[0]; "
    "for (int k = 0; k < 8; ++k) { h = (h << (rMASK)) | (h >> ((32 - r)MASK)); h = h * 5 + 0xe6546b64u; } x[i] = h;",
    "bits 0 to 31, counted by products": "int s = 0; for (int k = 0; k < 32; ++k) s += ((x[i] >> (kMASK)) & 1) * k; x[i] = x[i] ^ s;",
}  # fmt: skip


def interleaved(calls: Sequence[Callable[[], None]], passes: int) -> list[float]:
    """Return the median time of each call in ms."""
    times: list[list[float]] = [[] for _ in calls]
    for count in range(passes + 2):
        for call, kept in zip(calls, times, strict=True):
            begun = time.perf_counter()
            call()
            if count > 1:
                kept.append(1e3 * (time.perf_counter() - begun))
    return [statistics.median(kept) for kept in times]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--passes", type=int, default=15)
    passes = options.parse_args().passes
    os.environ["OMP_NUM_THREADS"] = "1"
    parts = []
    for number, (body, _) in enumerate(LOOPS.values()):
        for name, more in ((f"for{number}", ""), (f"left{number}", BEHIND)):
            parts.append(f"__global__ void {name}(const float* __restrict__ x, float* out, int n) {{ {body}{more} }}")
    for number, body in enumerate(SHIFTS.values()):
        for name, mask in ((f"clamped{number}", ""), (f"masked{number}", " & 31")):
            head = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
            parts.append(f"__global__ void {name}(unsigned* x, const int* __restrict__ n) {{ {head} {body.replace('MASK', mask)} }}")
    kernels = transpile.compile_text("\n".join(parts)).load()
    random = np.random.default_rng(0)
    x, out = random.normal(0, 1, 1 << 22).astype(np.float32), np.zeros(1 << 22, np.float32)
    print("| form | translated, ms | left alone, ms | times |\n|---|---|---|---|")
    for number, (what, (_, blocks)) in enumerate(LOOPS.items()):
        pair = [kernels[f"{name}{number}"][blocks, 256] for name in ("for", "left")]
        show(what, *interleaved([lambda one=one: one(x, out, len(x)) for one in pair], passes))  # type: ignore[misc]
    words, amounts = random.integers(0, 1 << 32, 1 << 16, dtype=np.uint32), random.integers(0, 32, 1 << 16, dtype=np.int32)
    for number, what in enumerate(SHIFTS):
        pair = [kernels[f"{name}{number}"][256, 256] for name in ("clamped", "masked")]
        show(what, *interleaved([lambda one=one: [one(words, amounts) for _ in range(20)] for one in pair], passes))  # type: ignore[misc]


def show(what: str, now: float, left: float) -> None:
    print(f"| {what} | {now:.2f} | {left:.2f} | {left / now:.2f} |", flush=True)


if __name__ == "__main__":
    main()

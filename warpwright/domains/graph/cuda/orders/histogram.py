"""Counting how many numbers fall into each of equal bins: histc with given bounds, as a kernel that reads each number once.

    counts = histc(x, bins, low, high)        float32, up to MOST bins

A block counts in shared memory, in as many copies as there is room for, up to one a lane: with up to 256 bins no two lanes of a warp meet at a
counter, whatever the data. Blocks add up their counts as integers, and the one that ends last writes them as numbers. So the counts are exact and
the same in each run; torch adds ones to float32 numbers, by atomic additions to one copy a block.

A number's bin is torch's, to the rounding: (x - low) * bins / (high - low), cut off. The quotient is a product with the reciprocal unless that comes
so close to a whole number that the division could be on its other side.

bincount is not written here: how long its result is depends on the data, so no captured graph holds it. Traffic at least: a number read
once; 1.4 to 6.6 times that on an H200 (benchmarks/results/recurrent_h200).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cuda.generate import Generated, Launch
from warpwright.domains.graph.cuda.plan import MULTIPROCESSORS
from warpwright.domains.graph.ir import argument, aten, is_op, is_tensor, value

MOST, BLOCK, VECTORS = 8192, 256, 4
"""Bins; threads of a block; vectors of four that a thread reads at once."""
BLOCKS = 4
"""Blocks of a multiprocessor: each takes 32 KB of shared memory."""
SMALLEST, LARGEST = 1e-30, 1e30
"""Between these the reciprocal of the bounds' difference, and what is multiplied with it, are ordinary numbers."""


@dataclass(frozen=True)
class Histogram:
    """The counts of `length` numbers in `bins` bins from `low` to `high`, which belongs to the last."""

    node: fx.Node
    x: fx.Node
    length: int
    bins: int
    low: float
    high: float
    rows: int = 1

    @property
    def copies(self) -> int:
        """Counters of a bin in a block: a power of two."""
        return min(32, 1 << (MOST // self.bins).bit_length() - 1)


def read(node: Any) -> Histogram | None:
    """Return what a call counts; None for one that is not written here."""
    if not isinstance(node, fx.Node) or not is_op(node, aten.histc.default) or not is_tensor(node.args[0]):
        return None
    x: Any = node.args[0]
    bins, low, high = (argument(node, name) for name in ("bins", "min", "max"))
    if not all(isinstance(one, int | float) and math.isfinite(one) for one in (bins, low, high)):
        return None
    low, high = (float(torch.tensor(float(one), dtype=torch.float32)) for one in (low, high))
    if value(x).dtype != torch.float32 or not value(x).is_contiguous() or not 0 < value(x).numel() < 2**31:
        return None
    if not (0 < bins <= MOST and high - low > SMALLEST and max(abs(low), abs(high)) * bins < LARGEST):
        return None  # equal bounds stand for those of the data
    return Histogram(node, x, value(x).numel(), int(bins), low, high)


def generate(counted: Histogram, name: str, results: tuple[int, ...] = ()) -> Generated:
    """Return the kernel. It takes x, the counts, a workspace that it leaves alone, and flags: how many blocks have ended, and counts as integers."""
    bins, copies, n = counted.bins, counted.copies, counted.length
    step = 4 * BLOCK * VECTORS
    grid = min(BLOCKS * MULTIPROCESSORS, -(-n // step))
    width = torch.tensor(counted.high, dtype=torch.float32) - counted.low
    lines = [
        f"__shared__ int counts[{bins * copies}];",
        f"for (int i = threadIdx.x; i < {bins * copies}; i += {BLOCK}) counts[i] = 0;",
        "__syncthreads();",
        f"const int copy = threadIdx.x % {copies};",
        f"for (long long first = (long long)blockIdx.x * {step}; first < {n}; first += {grid * step}ll) {{",
        f"    float x[{4 * VECTORS}];",
        "#pragma unroll",
        f"    for (int v = 0; v < {VECTORS}; ++v) {{",
        f"        const long long at = first + (v * {BLOCK} + threadIdx.x) * 4;",
        "        float y[4];",
        f"        if (at < {n // 4 * 4}) {{",
        "            load<4>(y, a0 + at);",
        "        } else {",
        f"            for (int j = 0; j < 4; ++j) y[j] = at + j < {n} ? a0[at + j] : NAN;  // which is in no bin",
        "        }",
        "#pragma unroll",
        "        for (int j = 0; j < 4; ++j) x[v * 4 + j] = y[j];",
        "    }",
        "#pragma unroll",
        f"    for (int e = 0; e < {4 * VECTORS}; ++e) {{",
        f"        if (x[e] >= {_text(counted.low)} && x[e] <= {_text(counted.high)}) {{",
        f"            const float part = (x[e] - {_text(counted.low)}) * {_text(float(bins))};",
        f"            float bin = part * {_text(float(1 / width))};",
        f"            if (fabsf(bin - rintf(bin)) <= bin * 5e-7f) bin = part / {_text(float(width))};",
        f"            const int place = (int)bin < {bins} ? (int)bin : {bins - 1};",
        f"            atomicAdd(counts + place * {copies} + copy, 1);",
        "        }",
        "    }",
        "}",
        "__syncthreads();",
        f"for (int i = threadIdx.x; i < {bins}; i += {BLOCK}) {{",
        "    int sum = 0;",
        f"    for (int c = 0; c < {copies}; ++c) sum += counts[i * {copies} + (c + threadIdx.x) % {copies}];",
        "    if (sum) atomicAdd(flags + 1 + i, sum);",
        "}",
        "__threadfence();",
        "__shared__ int ended;",
        "__syncthreads();",
        "if (threadIdx.x == 0) ended = atomicAdd(flags, 1);",
        "__syncthreads();",
        f"if (ended != {grid - 1}) return;",
        "__threadfence();",
        f"for (int i = threadIdx.x; i < {bins}; i += {BLOCK}) o0[i] = (float)((volatile int*)flags)[1 + i];",
    ]
    parameters = "const float* __restrict__ a0, float* __restrict__ o0, double* w, int* flags"
    signature = f'extern "C" __global__ void __launch_bounds__({BLOCK}) {name}({parameters}) {{'
    text = "\n".join([signature, *(f"    {line}" for line in lines), "}"]) + "\n"
    return Generated(text, Launch(name, grid, BLOCK), workspace=1, vector=4, flags=1 + bins)


def _text(number: float) -> str:
    """Return a float32 number as C++ has it, to the bit."""
    digits = f"{number:.9g}"
    return (digits if any(mark in digits for mark in ".e") else digits + ".") + "f"

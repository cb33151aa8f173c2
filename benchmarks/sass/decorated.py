"""`@warpwright.sass.tune` on Triton kernels: what it keeps, whether the bits are the same, what a launch takes on the GPU and on the host.

    python -m benchmarks.sass.decorated --out OUT --seconds 20
    python -m benchmarks.sass.decorated --out OUT --seconds 3 --dry       no GPU: Triton's own path without one, then nothing

Tuned and original are timed as CUDA graphs of LAUNCHES launches each, in the order ABBA; the host's time of a launch is that of LAUNCHES calls in a
row. A row for each kernel is written as it ends.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

import warpwright.sass
from warpwright.sass import tuned
from warpwright.targets.cubin.judging import interval

LAUNCHES, ROUNDS = 50, 40


@triton.jit  # type: ignore[untyped-decorator]
def softmax(x: Any, y: Any, columns: Any, WIDE: tl.constexpr) -> None:
    """Write the softmax of each row."""
    row, here = tl.program_id(0), tl.arange(0, WIDE)
    values = tl.load(x + row * columns + here, mask=here < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * columns + here, powers / tl.sum(powers, 0), mask=here < columns)


@triton.jit  # type: ignore[untyped-decorator]
def normalised(x: Any, y: Any, weight: Any, columns: Any, WIDE: tl.constexpr) -> None:
    """Write each row with mean 0 and variance 1, times the weights."""
    row, here = tl.program_id(0), tl.arange(0, WIDE)
    values = tl.load(x + row * columns + here, mask=here < columns, other=0.0)
    apart = tl.where(here < columns, values - tl.sum(values, 0) / columns, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, 0) / columns + 1e-5)
    tl.store(y + row * columns + here, apart * scale * tl.load(weight + here, mask=here < columns), mask=here < columns)


@triton.jit  # type: ignore[untyped-decorator]
def attraction(x: Any, y: Any, mass: Any, forces: Any, count: Any, SIZE: tl.constexpr, STEP: tl.constexpr) -> None:
    """Write the forces between bodies in a plane."""
    here = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    own_x, own_y = tl.load(x + here), tl.load(y + here)
    force = tl.zeros((SIZE,), tl.float32)
    for start in range(0, count, STEP):
        other = start + tl.arange(0, STEP)
        along, across = tl.load(x + other)[None, :] - own_x[:, None], tl.load(y + other)[None, :] - own_y[:, None]
        near = tl.rsqrt(along * along + across * across + 1e-4)
        force += tl.sum(tl.load(mass + other)[None, :] * along * near * near * near, 1)
    tl.store(forces + here, force)


ROWS, COLUMNS, WIDE = 4096, 1500, 2048
BODIES, SIZE, STEP = 16384, 64, 32


def main() -> None:
    """Tune each kernel, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", default="attraction,softmax,normalised")
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with (given.out / "decorated.jsonl").open("a") as rows:
        for name in given.only.split(","):
            try:
                row = {"table": "decorated", "kernel": name, **(without_gpu if given.dry else measured)(name, given)}
            except Exception as error:
                traceback.print_exc()
                row = {"table": "decorated", "kernel": name, "error": f"{type(error).__name__}: {error}"[:300]}
            rows.write(json.dumps(row) + "\n")
            rows.flush()
            print(row, flush=True)


def without_gpu(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Return what the decorator says where there is no GPU."""
    kernel = warpwright.sass.tune(globals()[name], seconds=given.seconds, folder=given.out / "schedules")
    return {"gpu": tuned.gpu(), "decorates": kernel.original.fn.__name__}


def measured(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Return the row of one kernel."""
    kernel = warpwright.sass.tune(globals()[name], seconds=given.seconds, folder=given.out / "schedules")
    own, other, launch = prepared(name)

    began = time.monotonic()
    first = launch(kernel, own)
    searched = time.monotonic() - began
    second, plain = launch(kernel, own), launch(kernel.original, other)
    torch.cuda.synchronize()
    [outcome] = kernel.outcomes.values()
    ratios = compared(lambda: launch(kernel.original, other), lambda: launch(kernel, own))
    speedup, low, high = interval(ratios, 0.99)
    return {
        "gpu": tuned.gpu(), "Triton": triton.__version__, "ptxas": tuned.ptxas_version(first.asm["cubin"]), "search s": f"{searched:.1f}",
        "outcome": str(outcome), "edited cubin loaded": second.asm["cubin"] != plain.asm["cubin"],
        "same bits": bool(torch.equal(own.view(torch.int32), other.view(torch.int32))),
        "gain launched from Triton %": f"{100 * (speedup - 1):+.2f} ({100 * (low - 1):+.2f} to {100 * (high - 1):+.2f})",
        "host us, original": f"{host(lambda: launch(kernel.original, other)):.1f}", "host us, tuned": f"{host(lambda: launch(kernel, own)):.1f}",
    }  # fmt: skip


def prepared(name: str) -> tuple[torch.Tensor, torch.Tensor, Callable[[Any, torch.Tensor], Any]]:
    """Return where the tuned kernel and the original write, and how a kernel is launched to write there."""
    if name == "attraction":
        given = [torch.randn(BODIES, device="cuda") for _ in range(3)]
        own, other = (torch.zeros(BODIES, device="cuda") for _ in range(2))
        return own, other, lambda of, y: of[(BODIES // SIZE,)](*given, y, BODIES, SIZE=SIZE, STEP=STEP, num_warps=4)
    x, own, other = (torch.randn(ROWS, COLUMNS, device="cuda") for _ in range(3))
    weights = [torch.randn(COLUMNS, device="cuda")] if name == "normalised" else []
    return own, other, lambda of, y: of[(ROWS,)](x, y, *weights, COLUMNS, WIDE=WIDE, num_warps=4)


def graph_of(launch: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    """Return LAUNCHES launches as a CUDA graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            launch()
    return graph


def compared(original: Callable[[], Any], other: Callable[[], Any]) -> list[float]:
    """Return the ratios of times, original over other, of pairs ABBA."""
    graphs = [graph_of(original), graph_of(other)]

    def timed(which: int) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graphs[which].replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end))

    for which in (0, 1, 0, 1):
        timed(which)
    rounds = [[timed(which) for which in (0, 1, 1, 0)] for _ in range(ROUNDS)]
    return [(a + d) / (b + c) for a, b, c, d in rounds]


def host(launch: Callable[[], Any]) -> float:
    """Return the host's microseconds of a launch."""
    times = []
    for _ in range(7):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(LAUNCHES):
            launch()
        times.append((time.perf_counter() - began) / LAUNCHES * 1e6)
    return statistics.median(times)


if __name__ == "__main__":
    main()

"""Attention in 16 bits by templates/flash_hopper.cu beside torch's calls, on one Hopper GPU: error, time, TFLOP/s, one row a case.

    timeout -k 2 75 python -m benchmarks.kernels.flash_hopper --out OUT [--cases causal] [--ways all] [--seconds 60] [--watchdog] [--dry]

Each case is checked on one head of its first batch against float64, beside the error of torch's calls written out, and as a whole beside the
library's result, or what is written out where the library has no such call; then it is timed, by CUDA events, medians of batches of calls back to
back, warm caches, a batch of each program in turn. `--ways all` times several shapes of a tile. `--watchdog`: a barrier that never comes ends the
kernel (first runs). `--dry` compiles the kernels, needs no GPU, and calls nothing. Cases are those of FlashAttention 3's figures (arXiv 2407.08608:
16,384 rows in all, 2,048 numbers a row), some that are no multiple of a tile, and some with a cap or sinks.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend

from benchmarks.kernels.attention import Called, Case
from benchmarks.kernels.beside import cases_of, error, in_turns, said, timed
from benchmarks.kernels.row_file import run
from warpwright.templates import driver, flash_hopper
from warpwright.templates.flash_hopper import Shape

B, H = torch.bfloat16, torch.float16


def _paper() -> dict[str, Case]:
    cases = {}
    for d in (64, 128, 256):
        for n in (512, 2048, 8192, 16384):
            for causal in (False, True):
                cases[f"{n} x {d}{', causal' if causal else ''}"] = Case(16384 // n, 2048 // d, n, d, B, causal=causal)
    return cases


CASES: dict[str, Case] = _paper() | {
    "4096 x 128, causal, 4 x 16": Case(4, 16, 4096, 128, B, causal=True),
    "2048 x 64, 8 x 16": Case(8, 16, 2048, 64, B),
    "1024 x 256, causal, 8 x 16": Case(8, 16, 1024, 256, B, causal=True),
    "8 of 32 heads, causal": Case(4, 32, 4096, 128, B, kv=8, causal=True),
    "float16, 2048 x 128": Case(8, 16, 2048, 128, H),
    "ViT, 197 x 64": Case(64, 12, 197, 64, B),
    "heads of 72, 1100": Case(8, 16, 1100, 72, B),
    "heads of 96, causal, 1500": Case(8, 16, 1500, 96, B, causal=True),
    "heads of 192, 2000": Case(4, 8, 2000, 192, B),
    "200 rows, 5000 keys": Case(8, 16, 5000, 128, B, nq=200),
    "4096 x 128, causal, 4 x 16, cap": Case(4, 16, 4096, 128, B, causal=True, cap=30.0),
    "2048 x 64, 8 x 16, cap": Case(8, 16, 2048, 64, B, cap=50.0),
    "Gemma 2: 4096 x 256, causal, cap": Case(1, 16, 4096, 256, B, kv=8, causal=True, cap=50.0),
    "GPT-OSS: 4096 x 64, causal, sinks": Case(1, 64, 4096, 64, B, kv=8, causal=True, sinks=True),
}


def chosen(case: Case, multiprocessors: int = 132) -> Shape:
    """Return the shape that the kernel takes on an H100 or H200."""
    shape = flash_hopper.shape_for(case.d, case.causal, case.kind == H, case.rows, case.n, 0, case.b * case.h, multiprocessors)
    return shape._replace(capped=case.cap > 0, sinks=case.sinks)


def key_of(shape: Shape) -> str:
    """Return a shape's name in a row."""
    return f"{shape.keys} {shape.consumers} {shape.stages} {int(shape.turns)}"


def ways(case: Case, which: str) -> list[Shape]:
    """Return the shapes to be timed, the chosen one first."""
    first = chosen(case)
    if which == "chosen":
        return [first]
    alone = first._replace(turns=not first.turns)
    if first.used not in (64, 128, 256):
        return [first, first._replace(used=first.d)]
    if case.d <= 64:
        three, two = flash_hopper.shapes(case.d, case.causal, case.kind == H)
        more = [three, two, three._replace(keys=96), two._replace(keys=192), three._replace(stages=3)]
        more = [shape._replace(capped=first.capped, sinks=first.sinks) for shape in more]
    elif case.d <= 128:
        more = [first._replace(keys=128 if first.keys == 176 else 176), first._replace(keys=160), first._replace(keys=80, consumers=3)]
    else:
        more = [first._replace(keys=64)]
    return list(dict.fromkeys([first, alone, *(shape for shape in more if shape.shared + 1024 <= 227 * 1024)]))


class OnHopper(Called):
    """A case with its tensors, and the programs that compute it."""

    def by(self, shape: Shape) -> torch.Tensor:
        """Call the template."""
        given = (self.q, self.k, self.v, self.scale, self.case.causal)
        return flash_hopper.attention(*given, turned=True, cap=self.case.cap, sinks=self.sinks, shape=shape)


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--cases", default="", help="parts of names, divided by |")
    parser.add_argument("--ways", default="chosen", choices=("chosen", "all"))
    parser.add_argument("--seconds", type=float, default=60.0, help="no case is begun after that many")
    parser.add_argument("--jobs", type=int, default=min(15, os.cpu_count() or 1))
    parser.add_argument("--watchdog", action="store_true")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    start, names = time.monotonic(), cases_of(CASES, options)
    shapes = {shape._replace(watchdog=options.watchdog): None for name in names for shape in ways(CASES[name], options.ways)}
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:  # before this process has a GPU
        for shape, size in zip(shapes, pool.imap(_compiled, shapes), strict=True):
            if options.dry:
                print(f"{shape}: {size} bytes of machine code", flush=True)
    print(f"compiled in {time.monotonic() - start:.1f} s", flush=True)
    if options.dry:
        return
    run([({"case": name}, partial(_rows, name, options)) for name in names], options.out, options.seconds - (time.monotonic() - start))


def _compiled(shape: Shape) -> int:
    return len(driver.machine_code(shape.source(), "90a", shape.defines()))


def _rows(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    case = CASES[name]
    called = OnHopper(case, "cuda", None)
    exact = called.first(torch.float64)
    own = error(called.first(case.kind), exact)
    row: dict[str, Any] = {"table": "flash_hopper", "case": name, "device": torch.cuda.get_device_name(), "torch": torch.__version__}
    row |= {"tflop": case.flops / 1e12, "error of eager": own, "ms": {}, "error": {}, "failed": {}}
    own_ways = {key_of(shape): partial(called.by, shape._replace(watchdog=options.watchdog)) for shape in ways(case, options.ways)}
    for name_of, call in (programs := own_ways | _others(called)).items():
        timed(row, name_of, call, exact, True)
    in_turns(row, {name_of: call for name_of, call in programs.items() if name_of not in row["failed"]})
    library = called.baselines()["eager"]() if called.case.cap or called.case.sinks else called.library()
    furthest = max((float((call() - library).abs().max()) for name_of, call in own_ways.items() if name_of not in row["failed"]), default=0.0)
    yield from said(row, case.flops, own, {"chosen": next(iter(own_ways)), "furthest from the library's": furthest})


def _others(called: OnHopper) -> dict[str, Callable[[], torch.Tensor]]:
    backends = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
    if called.case.cap or called.case.sinks:  # the library has no such call
        others = called.baselines()
        return {name: others[name] for name in ("eager", "compile")}
    return {"sdpa": called.library, **{name: partial(called.library, one) for name, one in backends.items()}}


if __name__ == "__main__":
    main()

"""Products of all nodes' rows with one weight, and the weight's gradient, in float32: schedules of our kernels beside torch's, on one GPU.

    python -m benchmarks.rgnn.dense --out FOLDER          # about 25 s
    python -m benchmarks.rgnn.dense --dry --out FOLDER    # the same paths on a CPU: torch's only

`floor_ms` is the bytes over the bandwidth of a copy. `error` is relative, against float64.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.rgnn.forward_training import Clock, bandwidth
from benchmarks.rgnn.noted import note_of, rows_file, timed_from
from warpwright.domains.rgnn.emit import dense
from warpwright.domains.rgnn.emit.dense import Schedule
from warpwright.domains.rgnn.emit.own import outer

ROWS = {"mag": 1_939_743, "wikikg2": 2_500_604}

PRODUCTS = [Schedule(*x) for x in ((64, 4, 3, 2), (64, 4, 2, 3), (64, 4, 1, 4), (64, 4, 4, 2), (128, 8, 2, 2), (128, 8, 3, 1), (64, 8, 3, 2))]
THREE = ((32, 4, 3, 3), (32, 4, 2, 3), (32, 4, 4, 3), (64, 4, 2, 2), (64, 8, 3, 2), (32, 8, 3, 2), (32, 4, 3, 8))
SIX = ((32, 4, 3, 3), (32, 4, 4, 3), (64, 4, 2, 2), (64, 4, 3, 2), (64, 8, 2, 2), (128, 8, 2, 1))
OUTERS = [*(Schedule(*x) for x in THREE), *(Schedule(*x, "bf16x6") for x in SIX)]
"""Rows of a step, warps, steps under way, programs of a multiprocessor."""

TORCH, OWN = Schedule(0, 0, 0, 0), Schedule(outer.ROWS, outer.THREADS // 32, outer.STAGES, outer.RESIDENT, "outer.cu")


def jobs(x: torch.Tensor, g: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> list[tuple[str, Schedule, Callable[[], Any], float]]:
    """Return (what, how, call, bytes)."""
    out = torch.empty_like(g)
    whole, four = x.new_empty(3, *x.shape), 2.0 * (x.nbytes + g.nbytes)
    weights, biases = torch.stack([weight] * 3), torch.stack([bias] * 3)
    both, three = float(x.nbytes + g.nbytes), float(x.nbytes + 2 * g.nbytes)
    every: list[tuple[str, Schedule, Callable[[], Any], float]] = [
        ("product", TORCH, lambda: torch.addmm(bias, x, weight, out=out), both), ("added", TORCH, lambda: out.addmm_(x, weight), three),
        ("outer", TORCH, lambda: (x.t() @ g, g.sum(0)), both),
        ("three products", TORCH, lambda: torch.addmm(biases.flatten(), x, weights.flatten(0, 1).t()), four),
    ]  # fmt: skip
    if not x.is_cuda:
        return every
    every += [("product", by, lambda by=by: dense._product(x, weight, bias, out, by=by), both) for by in PRODUCTS]  # type: ignore[misc]
    every += [("outer", by, lambda by=by: dense._outer(x, g, by=by), both) for by in OUTERS]  # type: ignore[misc]
    every.append(("three products", dense.PRODUCT, lambda: dense.products(x, weights, biases, whole), four))
    every.append(("outer", OWN, lambda: dense.outer(x, g), both))
    return [*every, ("added", dense.PRODUCT, lambda: dense._product(x, weight, None, out, add=True), three)]


def main(argv: Sequence[str] | None = None) -> None:
    """Check and time every schedule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=30.0, help="nothing is begun later")
    parser.add_argument("--chosen", action="store_true", help="of our schedules those alone that layers use")
    parser.add_argument("--dry", action="store_true")
    args = parser.parse_args(argv)
    started, device = time.time(), torch.device("cpu" if args.dry or not torch.cuda.is_available() else "cuda")
    clock = Clock(device, 0.02)
    copy = bandwidth(clock)
    torch.manual_seed(0)
    weight, bias = torch.randn(64, 64, device=device), torch.randn(64, device=device)
    with rows_file(args.out, timed_from(started)) as write:
        write({"table": "machine", "copy_tb_s": copy / 1e12, "torch": torch.__version__})
        for name, rows in ROWS.items():
            x, g = (torch.randn(1000 if args.dry else rows, 64, device=device) for _ in range(2))
            wanted = {"product": (x.double() @ weight.double() + bias.double(),), "outer": (x.double().t() @ g.double(), g.double().sum(0))}
            for what, by, call, bytes_ in jobs(x, g, weight, bias):
                row = {"table": "dense", "graph": name, "what": what, "rows": x.shape[0], **vars(by), "floor_ms": bytes_ / copy * 1e3}
                if args.chosen and by not in {TORCH, OWN, dense.PRODUCT, dense.OUTER}:
                    continue
                if time.time() - started > args.seconds:
                    write(row | {"note": "not run: out of time"})
                    continue
                try:
                    results = call()
                    results = results if isinstance(results, tuple) else (results,)
                    pairs = zip(results, wanted.get(what, ()), strict=False)
                    row["error"] = max((float((a.double() - b).norm() / b.norm()) for a, b in pairs), default=None)
                    row["ms"] = clock.time(call)[0]
                except Exception as problem:
                    row["note"] = note_of(problem)
                write(row)


if __name__ == "__main__":
    main()

"""What a recorded training step of small graphs runs on a GPU, in order: what there is to fuse, and what waits for what.

    python -m benchmarks.rgnn.sequence --out FOLDER            # one GPU, at most --seconds (25)
    python -m benchmarks.rgnn.sequence --dry --out FOLDER      # the same path on a CPU, a tiny graph

A step is that of benchmarks.rgnn.steps, recorded whole. `kernels`: [name, us, us since the one before ended] of one replay; `us`: their sum; `ms`:
the step by the clock.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.rgnn.forward_training import Clock, layer_of
from benchmarks.rgnn.noted import Row, note_of, rows_file, timed_from
from benchmarks.rgnn.profiled import in_order
from benchmarks.rgnn.steps import step_of
from warpwright.domains.rgnn import synth
from warpwright.rgnn import captured


def sequence(name: str, model: str, clock: Clock, scale: float) -> dict[str, Any]:
    """Return the row of one layer on one graph."""
    device = clock.device
    graph = synth.synthetic(name, scale, device)
    layer = layer_of(model, graph, 64, device)
    step = captured(layer, step_of(model, layer, graph, device)[1])
    for _ in range(8 if clock.on_gpu else 1):
        step()
    shown = in_order(step, clock.on_gpu, 90)
    row = {"table": "sequence", "graph": name, "layer": model, "recorded": step.recorded is not None, "count": len(shown)}
    return row | {"us": round(sum(us for _, us, _ in shown), 1), "ms": clock.time(step)[0], "kernels": shown[:400]}


def _short(row: Row) -> str:
    return " ".join(f"{name}={value}" for name, value in row.items() if name != "kernels")


def main(argv: Sequence[str] | None = None) -> None:
    """List the kernels of each layer on each graph."""
    started = time.time()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--graphs", default="aifb,mutag,fb15k,bgs")
    parser.add_argument("--models", default="hgt,rgat,rgcn")
    parser.add_argument("--seconds", type=float, default=25.0, help="nothing is begun later")
    parser.add_argument("--dry", action="store_true", help="tiny graphs on the CPU")
    args = parser.parse_args(argv)
    device = torch.device("cpu" if args.dry or not torch.cuda.is_available() else "cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    clock = Clock(device, 0.001 if args.dry else 0.05)
    with rows_file(args.out, timed_from(started, _short)) as write:
        for name, model in itertools.product(args.graphs.split(","), args.models.split(",")):
            if time.time() - started > args.seconds:
                continue
            try:
                row = sequence(name, model, clock, 100 / sum(synth.SPECS[name].nodes) if args.dry else 1.0)
            except Exception as problem:
                row = {"table": "failures", "graph": name, "layer": model, "note": note_of(problem)}
            write(row)


if __name__ == "__main__":
    main()

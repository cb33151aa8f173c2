"""Time and memory of layers against the number of edges, on graphs with AM's statistics.

    python -m benchmarks.rgnn.growth --out FOLDER          # one GPU, 1e4 to 1e8 edges, about 25 s
    python -m benchmarks.rgnn.growth --dry --out FOLDER    # the same paths on a CPU, small graphs

With --warm the kernels are compiled, side by side, and nothing is timed: Triton keeps them. `gb` is the peak above the inputs and the graph's index,
which `index_gb` is. HGT ends at 1e7 edges.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.rgnn.forward_training import Clock, layer_of, measure, of_one_tensor
from benchmarks.rgnn.noted import note_of, rows_file, timed_from
from warpwright.domains.rgnn import synth

EDGES = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)


def grown(clock: Clock, model: str, edges: int) -> dict[str, Any]:
    """Return times and memory on one graph."""
    graph = synth.synthetic("am", edges / synth.SPECS["am"].edges, clock.device)
    layer = layer_of(model, graph, 64, clock.device)
    x = torch.randn(graph.count, 64, device=clock.device, requires_grad=True)
    weights = torch.randn(graph.count, 64, device=clock.device)
    run = of_one_tensor(layer, graph) if model == "hgt" else lambda x: layer(x, graph.edge_index, graph.edge_type)
    clock.clean()
    before = torch.cuda.memory_allocated() if clock.on_gpu else 0
    started = time.perf_counter()
    with torch.no_grad():
        weights = torch.randn_like(run(x))
    run(x).backward(weights)
    x.grad = None
    layer.zero_grad(set_to_none=True)
    clock.clean()
    count = graph.edge_type.numel()
    row: dict[str, Any] = {"table": "growth", "layer": model, "edges": count, "nodes": graph.count}
    row["first_step_ms"] = (time.perf_counter() - started) * 1e3
    row["index_gb"] = (torch.cuda.memory_allocated() - before) / 1e9 if clock.on_gpu else 0.0
    row |= measure(clock, layer, run, x, weights)
    row |= {"forward_ns_per_edge": row["forward_ms"] * 1e6 / count, "training_ns_per_edge": row["training_ms"] * 1e6 / count}
    return row | {"training_bytes_per_edge": row["training_gb"] * 1e9 / count}


def compiled(model: str, edges: int) -> None:
    """Run a layer once on a graph of so many edges."""
    grown(Clock(torch.device("cuda" if torch.cuda.is_available() else "cpu"), 0.0), model, edges)


def warm(models: Sequence[str], sizes: Sequence[int], seconds: float) -> None:
    """Compile what the graphs of these sizes take, in a process each; what is not ready after so many seconds is ended."""
    context, ends = multiprocessing.get_context("spawn"), time.time() + seconds
    processes = [context.Process(target=compiled, args=(model, edges), daemon=True) for edges in sizes for model in models]
    for process in processes:
        process.start()
    for process in processes:
        process.join(max(0.0, ends - time.time()))
        process.kill()


def main(argv: Sequence[str] | None = None) -> None:
    """Measure each layer on each graph, the small ones first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", default="rgcn,rgat,hgt")
    parser.add_argument("--seconds", type=float, default=30.0, help="nothing is begun later")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--dry", action="store_true")
    args = parser.parse_args(argv)
    sizes = (1_000, 10_000) if args.dry else EDGES
    if args.warm:
        warm(args.models.split(","), sizes[:4], args.seconds)
        return
    started, device = time.time(), torch.device("cpu" if args.dry or not torch.cuda.is_available() else "cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    clock = Clock(device, 0.02)
    with rows_file(args.out, timed_from(started)) as write:
        for edges in sizes:
            for model in args.models.split(","):
                row: dict[str, Any] = {"table": "growth", "layer": model, "edges": edges}
                if time.time() - started > args.seconds or (model == "hgt" and edges > 10_000_000):
                    continue
                try:
                    row = grown(clock, model, edges)
                except Exception as problem:
                    row["note"] = note_of(problem)
                clock.clean()
                write(row)


if __name__ == "__main__":
    main()

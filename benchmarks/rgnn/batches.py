"""RGCN on sampled batches, whose graph is new each time, with the index in the measured time; and on adversarial graphs, with the time per edge.

    python -m benchmarks.rgnn.batches --out FOLDER          # one GPU, about 40 s
    python -m benchmarks.rgnn.batches --dry --out FOLDER
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.rgnn import pairs
from benchmarks.rgnn.forward_training import Clock, error, gradients
from warpwright.domains.rgnn import synth
from warpwright.rgnn import RGATConv, RGCNConv


def seconds(function: Callable[[Any], Any], inputs: list[Any], on_gpu: bool) -> list[float]:
    """Return the wall time of a call on each of `inputs`, in ms, the device waited for."""
    times = []
    for given in inputs:
        if on_gpu:
            torch.cuda.synchronize()
        started = time.perf_counter()
        function(given)
        if on_gpu:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - started) * 1e3)
    return times


def batches(device: torch.device, edges: int, write: Callable[[dict[str, Any]], None]) -> None:
    """Time batches of random edges, 30 relations: their index and a forward, ours and torch.pairs."""
    nodes = edges // 2
    layer = RGCNConv(64, 64, 30).to(device)
    x = torch.randn(nodes, 64, device=device)
    drawn = [(torch.randint(nodes, (2, edges), device=device), torch.randint(30, (edges,), device=device)) for _ in range(30)]

    def ours(batch: Any) -> Any:
        with torch.no_grad():
            return layer(x, *batch)

    def plain(batch: Any) -> Any:
        with torch.no_grad():
            return pairs.rgcn(pairs.Pairs(*batch, nodes, 30), layer, x)

    for name, function in (("ours", ours), ("torch.pairs", plain)):
        times = seconds(function, drawn, device.type == "cuda")[10:]
        again = seconds(function, [drawn[-1]] * 10, device.type == "cuda")[3:]
        row = {"implementation": name, "edges": edges, "ms": statistics.median(times), "same_graph_ms": statistics.median(again)}
        write({"table": "batches", **row})


def adversarial(clock: Clock, edges: int, write: Callable[[dict[str, Any]], None]) -> None:
    """Time a training step on each adversarial graph, beside a plain graph (loops) of as many edges."""
    for name in ("loops", "hub", "relations", "lopsided", "duplicates", "none"):
        for kind in (RGCNConv, RGATConv):
            try:
                write({"table": "adversarial", **_adversarial(clock, name, kind, edges)})
            except Exception as problem:
                traceback.print_exc()
                write({"table": "failures", "graph": name, "note": f"{type(problem).__name__}: {str(problem)[:300]}"})


def _adversarial(clock: Clock, name: str, kind: type[Any], edges: int) -> dict[str, Any]:
    graph = synth.adversarial(name, edges, clock.device)
    torch.manual_seed(0)
    layer = kind(64, 64, len(graph.relations)).to(clock.device)
    if kind is RGATConv:
        with torch.no_grad():
            layer.q.mul_(100)  # scores of hundreds
    x = torch.randn(graph.count, 64, device=clock.device, requires_grad=True)
    weights = torch.randn(graph.count, 64, device=clock.device)

    def step() -> None:
        layer.zero_grad(set_to_none=True)
        layer(x, graph.edge_index, graph.edge_type).backward(weights)

    row: dict[str, Any] = {"graph": name, "layer": kind.__name__, "edges": graph.edge_type.numel(), "relations": len(graph.relations)}
    if graph.edge_type.numel():
        wide = kind(64, 64, len(graph.relations)).to(clock.device).double()
        wide.load_state_dict(layer.state_dict())
        p = pairs.Pairs(graph.edge_index, graph.edge_type, graph.count, len(graph.relations))
        reference = pairs.rgcn if kind is RGCNConv else pairs.rgat
        wanted = gradients(wide, lambda x: reference(p, wide, x), x.double(), weights)
        row["error"], row["error_in"] = error(gradients(layer, lambda x: layer(x, graph.edge_index, graph.edge_type), x, weights), wanted)
        row["error_of_torch_pairs"] = error(gradients(layer, lambda x: reference(p, layer, x), x, weights), wanted)[0]
    row["training_ms"] = clock.time(step)[0]
    return row


def main(argv: Sequence[str] | None = None) -> None:
    """Run both parts; by default with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--no-adversarial", action="store_true", help="sampled batches alone")
    args = parser.parse_args(argv)
    device = torch.device("cpu" if args.dry or not torch.cuda.is_available() else "cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    args.out.mkdir(parents=True, exist_ok=True)
    with (args.out / "rows.jsonl").open("w") as file:

        def write(row: dict[str, Any]) -> None:
            print(json.dumps(row), flush=True)
            file.write(json.dumps(row) + "\n")
            file.flush()

        try:
            batches(device, 1_000 if args.dry else 100_000, write)
        except Exception as problem:
            traceback.print_exc()
            write({"table": "failures", "graph": "batches", "note": f"{type(problem).__name__}: {str(problem)[:300]}"})
        if args.no_adversarial:
            return
        adversarial(Clock(device, 0.01 if args.dry else 0.2), 2_000 if args.dry else 1_000_000, write)


if __name__ == "__main__":
    main()

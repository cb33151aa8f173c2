"""RGCN on sampled batches, whose graph is new each time, with the index in the measured time; and on adversarial graphs, with the time per edge.

    python -m benchmarks.rgnn.batches --out FOLDER          # one GPU, about 35 s
    python -m benchmarks.rgnn.batches --dry --out FOLDER
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.rgnn import pairs
from benchmarks.rgnn.forward_training import Clock, error, gradients, layer_of, runs
from benchmarks.rgnn.noted import note_of, rows_file
from warpwright.domains.rgnn import synth
from warpwright.domains.rgnn.emit.triton.tuning import DEFAULT, Tuning
from warpwright.domains.rgnn.plan import Options
from warpwright.rgnn import RGCNConv


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


def batches(device: torch.device, edges: int, write: Callable[[dict[str, Any]], None], rounds: int = 5, warm: float = 1.0) -> None:
    """Time batches of random edges, 30 relations: their index and a forward, ours and torch.pairs in turn, after so many seconds of ours."""
    nodes = edges // 2
    layer = RGCNConv(64, 64, 30).to(device)
    x = torch.randn(nodes, 64, device=device)
    drawn = [(torch.randint(nodes, (2, edges), device=device), torch.randint(30, (edges,), device=device)) for _ in range(30)]

    def ours(batch: Any) -> Any:
        with torch.no_grad():
            return layer(x, *batch)

    def plain(batch: Any) -> Any:
        with torch.no_grad():
            return pairs.rgcn(pairs.Pairs(batch[0], batch[1], nodes, 30), layer, x)

    first = seconds(ours, [tuple(x.clone() for x in batch) for batch in drawn], device.type == "cuda")[10:]
    end = time.perf_counter() + warm
    while time.perf_counter() < end:  # a host's core takes its time to be fast, and memory is asked of the device for the first batches
        seconds(ours, [tuple(x.clone() for x in batch) for batch in drawn], device.type == "cuda")
    found: dict[str, list[list[float]]] = {"ours": [], "torch.pairs": []}
    again: dict[str, list[float]] = {"ours": [], "torch.pairs": []}
    for _ in range(rounds):
        for name, function in (("ours", ours), ("torch.pairs", plain)):
            fresh = [tuple(x.clone() for x in batch) for batch in drawn]
            found[name].append(seconds(function, fresh, device.type == "cuda")[10:])
            again[name] += seconds(function, [fresh[-1]] * 10, device.type == "cuda")[3:]
    for name, times in found.items():
        medians = [statistics.median(one) for one in times]
        row: dict[str, Any] = {"implementation": name, "edges": edges, "ms": statistics.median(time for one in times for time in one)}
        row |= {"least_round_ms": min(medians), "most_round_ms": max(medians), "same_graph_ms": statistics.median(again[name])}
        write({"table": "batches", **row, **({"at_the_start_ms": statistics.median(first)} if name == "ours" else {})})
    write({"table": "host", "us_of_an_empty_tensor": empty_us(device)})


def empty_us(device: torch.device) -> float:
    """Return what torch.empty takes the host, in us: hosts, and cores of one, differ by half."""
    begun = time.perf_counter()
    for _ in range(1000):
        torch.empty(8, device=device)
    return (time.perf_counter() - begun) * 1e3


GRAPHS = ("random", "loops", "hub", "relations", "lopsided", "duplicates", "none")


def adversarial(
    clock: Clock, edges: int, write: Callable[[dict[str, Any]], None], names: Sequence[str] = GRAPHS, end: float = float("inf"),
    tuning: Tuning = DEFAULT,
) -> None:
    """Time a training step on each adversarial graph, beside that of a random one of as many edges: `times_random` is the ratio per edge."""
    plain: dict[str, float] = {}
    for name in names:
        for model in ("rgcn", "rgat", "hgt"):
            if model == "hgt" and name in {"relations", "none"}:
                continue  # 10,000 edge types are as many parameters of p_rel; without edges HGT is its linear layers
            if time.time() > end:
                write({"table": "failures", "graph": name, "note": f"{model} not run: out of time"})
                continue
            try:
                row = {"table": "adversarial", "doubles": tuning.doubles, **_adversarial(clock, name, model, edges, tuning)}
                plain.setdefault(model, row.get("ns_per_edge", 0.0))
                if row["edges"] and "random" in names:
                    row["times_random"] = row["ns_per_edge"] / plain[model]
                write(row)
            except Exception as problem:
                write({"table": "failures", "graph": name, "note": note_of(problem)})


def _adversarial(clock: Clock, name: str, model: str, edges: int, tuning: Tuning) -> dict[str, Any]:
    graph = synth.adversarial(name, edges, clock.device)
    layer = layer_of(model, graph, 64, clock.device)
    layer.options = Options(tuning=tuning)
    if model == "rgat":
        with torch.no_grad():
            layer.q.mul_(100)  # type: ignore[operator]
    p = pairs.Pairs(graph.edge_index, graph.edge_type, graph.count, len(graph.relations)) if graph.edge_type.numel() else None
    x = torch.randn(graph.count, 64, device=clock.device, requires_grad=True)
    weights = torch.randn(graph.count, 64, device=clock.device)
    ours = runs(model, layer, graph, p, False)["ours"][1]  # type: ignore[arg-type]

    def step() -> None:
        layer.zero_grad(set_to_none=True)
        ours(x).backward(weights)

    row: dict[str, Any] = {"graph": name, "layer": model, "edges": graph.edge_type.numel(), "relations": len(graph.relations)}
    if p is not None:
        wide = layer_of(model, graph, 64, clock.device).double()
        wide.load_state_dict(layer.state_dict())
        wanted = gradients(wide, runs(model, wide, graph, p, False)["torch.pairs"][1], x.double(), weights)
        row["error"], row["error_in"] = error(gradients(layer, ours, x, weights), wanted)
        row["error_of_torch_pairs"] = error(gradients(layer, runs(model, layer, graph, p, False)["torch.pairs"][1], x, weights), wanted)[0]
    row["training_ms"] = clock.time(step)[0]
    return row | ({"ns_per_edge": row["training_ms"] * 1e6 / row["edges"]} if row["edges"] else {})


def main(argv: Sequence[str] | None = None) -> None:
    """Run both parts; by default with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--graphs", default=",".join(GRAPHS), help="adversarial ones; others are compared per edge where random is among them")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no graph is begun later")
    parser.add_argument("--no-adversarial", action="store_true", help="sampled batches alone")
    parser.add_argument("--float32", action="store_true", help="scores of a softmax in float32")
    args = parser.parse_args(argv)
    end = time.time() + args.seconds
    device = torch.device("cpu" if args.dry or not torch.cuda.is_available() else "cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    with rows_file(args.out) as write:
        try:
            batches(device, 1_000 if args.dry else 100_000, write, *((2, 0.1) if args.dry else ()))
        except Exception as problem:
            write({"table": "failures", "graph": "batches", "note": note_of(problem)})
        if args.no_adversarial:
            return
        clock, tuning = Clock(device, 0.01 if args.dry else 0.1), Tuning(doubles=not args.float32)
        adversarial(clock, 2_000 if args.dry else 1_000_000, write, args.graphs.split(","), end, tuning)


if __name__ == "__main__":
    main()

"""RGCN, RGAT and HGT layers on a CPU, forward and training step, ours beside the torch emitter, torch.pairs and PyG; and time against edges.

    python -m benchmarks.rgnn.cpu --out FOLDER                     # about 15 minutes, most of them PyG's (--pyg FOLDER: from there)
    python -m benchmarks.rgnn.cpu --dry --out FOLDER               # the same paths, tiny graphs
    python -m benchmarks.rgnn.cpu --parts growth --out FOLDER      # one part of: layers, passes, growth, adversarial, batches

Times are processor time of one thread, which other work on the machine disturbs least: the least of rounds in which each program runs once, one
after the other. Layers are 64 wide, float32, one head. PyG is left out where it would need more than 6 GB.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from benchmarks.rgnn import pairs
from benchmarks.rgnn.forward_training import error, gradients, layer_of, runs
from benchmarks.rgnn.noted import Write, note_of, rows_file
from warpwright.domains.rgnn import synth
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.plan import Options
from warpwright.rgnn import HGTConv, RGATConv, RGCNConv

CPU = torch.device("cpu")


def rounds(functions: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Return the least processor time of each function in ms, over rounds in which each runs once; one that takes over a second runs once in all."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    started = time.perf_counter()
    turn = 0
    while turn < 3 or time.perf_counter() - started < seconds:
        for name, function in functions.items():
            if not times[name] or times[name][0] < 1 or (turn == 1 and name.startswith("ours")):  # the first call of ours builds
                begun = time.thread_time()
                function()
                times[name].append(time.thread_time() - begun)
        turn += 1
    return {name: min(found) * 1e3 for name, found in times.items()}


def gigabytes_of_pyg(model: str, p: pairs.Pairs, training: bool) -> float:
    """Return about how much PyG needs: a weight for each edge (RGAT), a row for each node and relation (HGT)."""
    each = {"rgcn": p.nodes * 256, "rgat": 2 * p.edges * 64 * 64 * 4, "hgt": 3 * p.relations * p.nodes * 256}[model]
    return each * (3 if training else 1) / 1e9 * (p.relations if model == "rgcn" and training else 1)


def forward_of(run: Callable[[torch.Tensor], Any], x: torch.Tensor) -> Callable[[], None]:
    """Return a forward without gradients."""

    def forward() -> None:
        with torch.no_grad():
            run(x)

    return forward


def step_of(module: torch.nn.Module, run: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, weights: torch.Tensor) -> Callable[[], None]:
    """Return a forward and a backward, with the gradients of x and of all parameters."""

    def step() -> None:
        x.grad = None
        module.zero_grad(set_to_none=True)
        run(x).backward(weights)

    return step


def timed(
    model: str, p: pairs.Pairs, programs: Mapping[str, tuple[Any, Callable[[torch.Tensor], torch.Tensor]]], x: torch.Tensor, weights: torch.Tensor,
    seconds: float,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """Return for each program its times."""
    found: dict[str, dict[str, float]] = {name: {} for name in programs}
    makers = {"forward": lambda module, run: forward_of(run, x), "training": lambda module, run: step_of(module, run, x, weights)}
    for kind, maker in makers.items():
        fits = [n for n in programs if n != "pyg" or gigabytes_of_pyg(model, p, kind == "training") < 6]
        for name, ms in rounds({name: maker(*programs[name]) for name in fits}, seconds).items():
            found[name][f"{kind}_ms"] = ms
    return found


def layers(args: argparse.Namespace, write: Write) -> None:
    """Time each layer on each graph."""
    for name in args.graphs.split(","):
        graph, graph_name = synth.synthetic(name, args.scale), name if args.scale == 1 else f"{name}, {args.scale:g} of it"
        p = pairs.Pairs(graph.edge_index, graph.edge_type, graph.count, len(graph.relations))
        for model in args.models.split(","):
            layer = layer_of(model, graph, 64, CPU)
            x = torch.randn(graph.count, 64, requires_grad=True)
            programs = runs(model, layer, graph, p, args.with_pyg)
            weights = torch.randn_like(programs["torch.pairs"][1](x).detach())
            wide = layer_of(model, graph, 64, CPU).double()
            wide.load_state_dict(layer.state_dict())
            wanted = gradients(wide, runs(model, wide, graph, p, False)["torch.pairs"][1], x.double(), weights)
            wrong = {n: error(gradients(*programs[n], x, weights), wanted)[0] for n in ("ours", "torch.pairs")}
            plain = layer_of(model, graph, 64, CPU)
            plain.options = Options(emitter="eager")
            programs["ours, torch emitter"] = runs(model, plain, graph, p, False)["ours"]
            times = timed(model, p, programs, x, weights, args.each)
            for program, row in times.items():
                common = {"table": "times", "graph": graph_name, "layer": model, "edges": p.edges, "relations": p.relations, "pairs": p.targets}
                write(common | {"program": program, **row} | ({"error": wrong[program]} if program in wrong else {}))
            write(summary(graph_name, model, times, wrong["ours"]))


PASSES = {
    "both": Options(emitter="eager"), "reordering alone": Options(emitter="eager", compact=False),
    "compaction alone": Options(emitter="eager", reorder=False), "neither": Options(emitter="eager", reorder=False, compact=False),
}  # fmt: skip
"""By the torch emitter: no kernel has the rows of edges that programs without compaction have."""


def passes(args: argparse.Namespace, write: Write) -> None:
    """Time each layer compiled with and without reordering of linear operations and compaction."""
    for name in args.graphs.split(","):
        graph, graph_name = synth.synthetic(name, args.scale), name if args.scale == 1 else f"{name}, {args.scale:g} of it"
        p = pairs.Pairs(graph.edge_index, graph.edge_type, graph.count, len(graph.relations))
        for model in args.models.split(","):
            x = torch.randn(graph.count, 64, requires_grad=True)
            programs = {}
            for label, options in PASSES.items():
                layer = layer_of(model, graph, 64, CPU)
                layer.options = options
                programs[f"ours, {label}"] = runs(model, layer, graph, p, False)["ours"]
            weights = torch.randn_like(programs["ours, both"][1](x).detach())
            times = timed(model, p, programs, x, weights, args.each)
            row: dict[str, Any] = {"table": "passes", "graph": graph_name, "layer": model, "edges": p.edges, "of_src": p.sources, "of_dst": p.targets}
            for kind in ("forward", "training"):
                row[f"{kind} ms"] = f"{times['ours, both'][f'{kind}_ms']:.3g}"
                for label in list(PASSES)[1:] if kind == "forward" else ["compaction alone"]:  # a backward sums over pairs in all of them
                    row[f"{label}, {kind}"] = f"{times[f'ours, {label}'][f'{kind}_ms'] / times['ours, both'][f'{kind}_ms']:.2f}x"
            write(row)


def summary(graph: str, model: str, times: Mapping[str, Mapping[str, float]], wrong: float) -> dict[str, Any]:
    """Return a row for reading."""
    row: dict[str, Any] = {"table": "summary", "graph": graph, "layer": model}
    for kind in ("forward", "training"):
        row[f"{kind} ms"] = f"{times['ours'][f'{kind}_ms']:.3g}"
        for program, short in (("ours, torch emitter", "torch emitter"), ("torch.pairs", "torch.pairs"), ("pyg", "PyG")):
            there = f"{kind}_ms" in times.get(program, {})
            row[f"{short}, {kind}"] = f"{times[program][f'{kind}_ms'] / times['ours'][f'{kind}_ms']:.3g}x" if there else ""
    return row | {"error": f"{wrong:.1e}"}


def growth(args: argparse.Namespace, write: Write) -> None:
    """Time layers against edges: AM's statistics, from 1e4 edges to its own size and above."""
    for edges in (10_000, 100_000, 1_000_000, 10_000_000):
        if edges > (10_000 if args.dry else args.largest):
            break
        graph = synth.synthetic("am", edges / synth.SPECS["am"].edges)
        for model in args.models.split(","):
            layer = layer_of(model, graph, 64, CPU)
            x = torch.randn(graph.count, 64, requires_grad=True)
            p = pairs.Pairs(graph.edge_index[:, :0], graph.edge_type[:0], graph.count, len(graph.relations))
            module, run = runs(model, layer, graph, p, False)["ours"]
            started = time.thread_time()
            Index(graph.edge_index[0], graph.edge_index[1], graph.edge_type, graph.count, graph.count, len(graph.relations))
            row: dict[str, Any] = {"table": "growth", "layer": model, "edges": graph.edge_type.numel(), "nodes": graph.count}
            row["index ms"] = round((time.thread_time() - started) * 1e3, 1)
            weights = torch.randn_like(run(x).detach())
            for kind, function in (("forward", forward_of(run, x)), ("training", step_of(module, run, x, weights))):
                ms = rounds({"ours": function}, args.each)["ours"]
                row[f"{kind} ms"], row[f"{kind} ns/edge"] = round(ms, 2), round(ms * 1e6 / row["edges"], 1)
            write(row)


def adversarial(args: argparse.Namespace, write: Write) -> None:
    """Time a training step per edge on each adversarial graph, beside a plain graph of as many edges and nodes."""
    for kind in (RGCNConv, RGATConv, HGTConv):
        plain = 0.0
        for name in ("random", "hub", "relations", "lopsided", "duplicates", "loops", "none"):
            graph = synth.adversarial(name, 2_000 if args.dry else args.edges)
            row = {"table": "adversarial", "layer": kind.__name__, "graph": name} | _adversarial(graph, kind, args)
            plain = row["ns/edge"] if name == "random" else plain
            if name != "none" and plain:
                row["times the random graph"] = round(row["ns/edge"] / plain, 2)
            write(row)


def _adversarial(graph: synth.Synthetic, kind: type[Any], args: argparse.Namespace) -> dict[str, Any]:
    torch.manual_seed(0)
    relations, model = len(graph.relations), {RGCNConv: "rgcn", RGATConv: "rgat", HGTConv: "hgt"}[kind]
    if model == "hgt" and relations > 1000:
        model = "rgat"  # a thousand dictionary entries are another test
    layer = layer_of(model, graph, 64, CPU)
    x = torch.randn(graph.count, 64, requires_grad=True)
    if model == "rgat":
        scale_scores(layer, graph)
    p = pairs.Pairs(graph.edge_index, graph.edge_type, graph.count, relations)
    found = runs(model, layer, graph, p, False)
    module, run = found["ours"]
    weights = torch.randn_like(run(x).detach())
    row: dict[str, Any] = {"edges": graph.edge_type.numel(), "relations": relations}
    if row["edges"]:
        wide = layer_of(model, graph, 64, CPU).double()
        wide.load_state_dict(layer.state_dict())
        wanted = gradients(wide, runs(model, wide, graph, p, False)["torch.pairs"][1], x.double(), weights)
        row["error"] = f"{error(gradients(module, run, x, weights), wanted)[0]:.1e}"
        row["error of torch.pairs"] = f"{error(gradients(*found['torch.pairs'], x, weights), wanted)[0]:.1e}"
    row["training ms"] = round(rounds({"ours": step_of(module, run, x, weights)}, args.each)["ours"], 2)
    row["ns/edge"] = round(row["training ms"] * 1e6 / max(1, row["edges"]), 1)
    return row


def scale_scores(layer: Any, graph: synth.Synthetic) -> None:
    """Make scores of hundreds."""
    with torch.no_grad():
        layer.q.mul_(60)
        layer.k.mul_(60)


def batches(args: argparse.Namespace, write: Write) -> None:
    """Time a forward on batches that are new each time, with the index in the time."""
    edges = 2_000 if args.dry else 100_000
    nodes, count = edges // 2, 12
    layer = RGCNConv(64, 64, 30)
    x = torch.randn(nodes, 64)
    drawn = [(torch.randint(nodes, (2, edges)), torch.randint(30, (edges,))) for _ in range(count)]
    programs: dict[str, Callable[[Any], Any]] = {
        "ours": lambda batch: layer(x, *batch), "torch.pairs": lambda batch: pairs.rgcn(pairs.Pairs(batch[0], batch[1], nodes, 30), layer, x),
    }  # fmt: skip
    if args.with_pyg:
        other = layer.original()
        other.load_state_dict(layer.state_dict())
        programs["PyG"] = lambda batch: other(x, *batch)
    times: dict[str, list[float]] = {name: [] for name in programs}
    index = []
    with torch.no_grad():
        for batch in drawn:
            for name, function in programs.items():
                begun = time.thread_time()
                function(batch)
                times[name].append((time.thread_time() - begun) * 1e3)
            begun = time.thread_time()
            Index(batch[0][0], batch[0][1], batch[1], nodes, nodes, 30)
            index.append((time.thread_time() - begun) * 1e3)
    for name, found in times.items():
        row = {"table": "batches", "program": name, "edges": edges, "least ms": round(min(found[2:]), 2), "median ms": round(sorted(found[2:])[5], 2)}
        write(row | ({"index alone, ms": round(min(index[2:]), 2)} if name == "ours" else {}))


PARTS = {"layers": layers, "passes": passes, "growth": growth, "adversarial": adversarial, "batches": batches}


def main() -> None:
    """Run the parts that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--graphs", default="aifb,mutag,fb15k,biokg")
    parser.add_argument("--models", default="rgcn,rgat,hgt")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--edges", type=int, default=1_000_000, help="of an adversarial graph")
    parser.add_argument("--largest", type=int, default=10_000_000, help="edges of the largest graph of growth")
    parser.add_argument("--each", type=float, default=2.0, help="seconds of rounds for each figure")
    parser.add_argument("--with-pyg", action="store_true")
    parser.add_argument("--pyg", default="", help="folder with torch_geometric, where it is not installed")
    parser.add_argument("--append", action="store_true", help="keep the rows that are there")
    parser.add_argument("--dry", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*[Ss]parse.*")
    if args.pyg:
        sys.path.append(args.pyg)
    if args.dry:
        args.scale, args.each, args.graphs = 0.02, 0.01, "aifb,fb15k"
    torch.set_num_threads(1)
    with rows_file(args.out, append=args.append) as write:
        write({"table": "machine", "torch": torch.__version__, "load": os.getloadavg()[0]})
        for part in args.parts.split(","):
            try:
                PARTS[part](args, write)
            except Exception as problem:
                write({"table": "failures", "part": part, "note": note_of(problem)})


if __name__ == "__main__":
    main()

"""Other programs of the same layers beside one another on one GPU, to choose among them: attention in one kernel and by operations, scores' types.

    python -m benchmarks.rgnn.choose --out FOLDER                                        # one GPU, at most --seconds (90)
    python -m benchmarks.rgnn.choose --cells am/rgat,mutag/hgt --out FOLDER              # some layers on some graphs
    python -m benchmarks.rgnn.choose --cells mag/hgt --pyg mag/hgt --pairs mag/hgt --out FOLDER     # with PyG and torch.pairs beside
    python -m benchmarks.rgnn.choose --dry --cells aifb/rgat --out FOLDER                # the same path on a CPU, a tiny graph

A process for each cell compiles its programs and compares them with torch.pairs in float64, beside the others; then cells are timed one by one.
`FRESH` graphs are timed beside torch.pairs. A step is that of benchmarks.rgnn.steps; on small graphs it is recorded whole, and so is a forward;
on large ones by the label "recorded whole"; `lent_ms`: a recorded forward whose results are lent.
`error`: the largest relative difference of result and gradients, `error_in` where it is. `kernels`: [name, us, us since the one before ended] of one
step, `busy_us` their sum; of a recorded forward `forward_kernels` and `forward_busy_us`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.rgnn import pairs
from benchmarks.rgnn.forward_training import Clock, bandwidth, error, gradients, layer_of, measure, runs
from benchmarks.rgnn.noted import Row, note_of, rows_file, timed_from
from benchmarks.rgnn.profiled import in_order
from benchmarks.rgnn.steps import seen, step_of
from benchmarks.rgnn.together import COPY, LARGE, patiently
from warpwright.domains.rgnn import synth, tensors
from warpwright.domains.rgnn.emit.triton.tuning import Tuning
from warpwright.domains.rgnn.nn.launches import AFTER
from warpwright.domains.rgnn.plan import Options
from warpwright.rgnn import captured

USUAL = {"usual": Options()}
WHOLE, BOTH = "recorded whole", "in one kernel and recorded whole"
"""Of a large graph, whose steps are launched by the host otherwise."""
ATTENTION = USUAL | {"by operations": Options(attend=False), "in one kernel": Options(attend=True)}
PROGRAMS: dict[str, dict[str, Options]] = {
    "rgcn": USUAL,
    "rgat": ATTENTION | {"by operations, float32": Options(attend=False, tuning=Tuning(doubles=False))},
    "hgt": ATTENTION | {"in one kernel, projections apart": Options(attend=True, reorder=False)},
}  # fmt: skip
CELLS = "am/rgat,am/hgt,mutag/hgt,mutag/rgat,aifb/hgt,aifb/rgat,fb15k/hgt,fb15k/rgat,bgs/hgt,bgs/rgat,bgs/rgcn"


FRESH = {
    "dblp": synth.Spec((4057, 14328, 7723, 20), 6, 239566, 0.6, True, (0.9, 0.5), (1.3, 2.0)),
    "wn18rr": synth.Spec((40943,), 22, 173670, 1.4, True, (1.0, 1.0), (1.2, 1.2)),
    "nell": synth.Spec((75492,), 400, 308426, 1.0, True, (0.6, 0.4), (1.5, 2.0)),
    "freebase": synth.Spec((40402, 19427, 82351, 1025, 17641, 9368, 2731, 7153), 36, 1057688, 1.2, False, (0.8, 0.6), (1.4, 1.8)),
    "yago": synth.Spec((123182,), 74, 2158080, 1.2, True, (0.9, 0.3), (1.2, 2.2)),
}  # fmt: skip
"""Graphs with the counts of data sets that nothing here was made for: written down before any of them ran."""


class Cell:
    """A layer on a graph with its programs, prepared."""

    def __init__(self, name: str, model: str, device: torch.device, dry: bool, alone: Any, labels: Sequence[str], others: Sequence[str] = ()) -> None:
        synth.SPECS = {**synth.SPECS, **FRESH}
        self.small = name not in LARGE and sum(synth.SPECS[name].nodes) < 1 << 18
        graph = synth.synthetic(name, 100 / sum(synth.SPECS[name].nodes) if dry else 1.0, device)
        self.layer: Any = layer_of(model, graph, 64, device)
        leaves, self.step, weights = step_of(model, self.layer, graph, device)
        p = pairs.Pairs(graph.edge_index, graph.edge_type, graph.count, len(graph.relations))
        floors = [b / COPY * 1e3 for b in pairs.floor_bytes(p, 64, model)]
        self.common = {
            "table": "choose", "graph": name, "layer": model, "edges": p.edges, "source_pairs": p.sources, "target_pairs": p.targets,
            "forward_floor_ms": floors[0], "training_floor_ms": floors[1],
        }  # fmt: skip
        self.programs = {label: options for label, options in PROGRAMS[model].items() if not labels or label in labels}
        if not self.small and (not labels or WHOLE in labels):
            self.programs[WHOLE] = Options()
        if not self.small and model == "hgt" and (not labels or BOTH in labels):
            self.programs[BOTH] = Options(attend=True)
        self.fresh = name in FRESH
        if self.fresh:
            self.programs = {label: options for label, options in self.programs.items() if label in {"usual", "by operations"}}
        wide = layer_of(model, graph, 64, device).double()
        wide.load_state_dict(self.layer.state_dict())
        run = runs(model, wide, graph, p, False)["torch.pairs"][1]
        kinds, relations = graph.hetero()[:2]
        targets = {relation[-1] for relation in relations}
        given = [w for w, kind in zip(weights, kinds, strict=True) if kind in targets] if model == "hgt" else weights
        with alone:  # in float64 torch.pairs takes up to 60 GB
            wanted = gradients(wide, run, torch.cat([x.detach() for x in leaves]).double(), torch.cat(given))
            wanted = {key: x.flatten() for key, x in wanted.items()}
            Clock(device, 0.0).clean()
        self.leaves, self.weights = torch.cat([x.detach() for x in leaves]).requires_grad_(), torch.cat(given)
        beside = ["torch.pairs"] * self.fresh + list(others)
        self.beside = {label: run for label, run in runs(model, self.layer, graph, p, "pyg" in others).items() if label in beside}
        self.errors: dict[str, dict[str, Any]] = {}
        for label, options in self.programs.items():
            self.layer.options = options
            apart, where = error(seen(self.layer, leaves, self.step()), wanted)
            self.errors[label] = {"error": apart, "error_in": where}
            with torch.no_grad():
                self.step()

    def timed(self, clock: Clock, label: str) -> dict[str, Any]:
        """Return times of forward and step."""
        self.layer.options = self.programs[label]
        recorded = self.small or label in {WHOLE, BOTH}
        # a recorded step returns nothing, as PyG's and torch.pairs' do: its results would be copied
        whole, forward = (captured(self.layer, lambda: self.step() and ()), captured(self.layer, self.step)) if recorded else (self.step, self.step)
        lent = captured(self.layer, self.step, lend=True)
        for _ in range(AFTER + 3 if recorded else 2):
            whole()
            with torch.no_grad():
                forward()
                if recorded:
                    lent()
        row = self.common | {"program": label} | self.errors[label]
        row["training_ms"], row["training_gb"] = clock.time(whole)
        with torch.no_grad():
            row["forward_ms"], row["forward_gb"] = clock.time(forward)
            row |= {"lent_ms": clock.time(lent)[0], **forward_kernels(lent, clock)} if recorded else {}
        for other, run in self.beside.items() if label == "usual" else ():
            beside = measure(clock, *run, self.leaves, self.weights)
            row |= {f"{other} {name}": beside[name] for name in ("forward_ms", "training_ms", "training_gb")}
        return row | kernels_of(whole, clock)


def forward_kernels(function: Callable[[], Any], clock: Clock) -> dict[str, Any]:
    """Return what a forward runs on the device."""
    return {f"forward_{name}": value for name, value in kernels_of(function, clock).items()}


def kernels_of(function: Callable[[], Any], clock: Clock) -> dict[str, Any]:
    """Return what one call runs on the device, in order."""
    shown = in_order(function, clock.on_gpu, 60)
    return {"count": len(shown), "busy_us": round(sum(us for _, us, _ in shown), 1), "kernels": shown[:300]}


def worker(name: str, model: str, args: argparse.Namespace, alone: Any, pipe: Any) -> None:
    """Prepare a cell, then time its programs when asked: label -> rows; None ends it."""
    device = torch.device("cpu" if args.dry or not torch.cuda.is_available() else "cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_num_threads(1)
    clock = Clock(device, 0.001 if args.dry else args.each)
    try:
        labels = args.programs.split(",") if args.programs else ()
        others = [label for label, cells in (("pyg", args.pyg), ("torch.pairs", args.pairs)) if f"{name}/{model}" in cells.split(",")]
        cell = patiently(lambda: Cell(name, model, device, args.dry, alone, labels, others), clock)  # type: ignore[arg-type,return-value]
        tensors.awaited(torch.empty(0, device=device), 20.0)
        pipe.send(list(cell.programs))  # type: ignore[attr-defined]
    except Exception as problem:
        pipe.send(note_of(problem))
        return
    clock.clean()
    while (label := pipe.recv()) is not None:
        try:
            row = {"table": "copy", "bytes_per_second": bandwidth(clock)} if label == "copy" else cell.timed(clock, label)  # type: ignore[attr-defined]
        except Exception as problem:
            row = {"table": "failures", "graph": name, "layer": model, "program": label, "note": note_of(problem)}
        clock.clean()
        pipe.send(row)


def main(argv: Sequence[str] | None = None) -> None:
    """Prepare all cells, then time them in turn."""
    started = time.time()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cells", default=CELLS, help="graph/layer, in the order in which they are timed")
    parser.add_argument("--programs", default="", help="some of the programs")
    parser.add_argument("--pyg", default="", help="cells that PyG is timed beside")
    parser.add_argument("--pairs", default="", help="cells that torch.pairs is timed beside")
    parser.add_argument("--each", type=float, default=0.06, help="seconds of timing for each function")
    parser.add_argument("--prepare", type=float, default=55.0, help="seconds after which the timing begins")
    parser.add_argument("--seconds", type=float, default=90.0, help="nothing is begun later")
    parser.add_argument("--dry", action="store_true", help="tiny graphs on the CPU")
    args = parser.parse_args(argv)
    if not args.dry:  # the processes find it built when their programs are
        threading.Thread(target=tensors._build, daemon=True).start()
    context = multiprocessing.get_context("spawn")
    alone, jobs = context.Lock(), []
    with rows_file(args.out, timed_from(started, _short)) as write:
        for cell in args.cells.split(","):
            name, model = cell.split("/")
            mine, its = context.Pipe()
            process = context.Process(target=worker, args=(name, model, args, alone, its), daemon=True)
            process.start()
            jobs.append((name, model, mine, process))
        ready = []
        for name, model, pipe, process in jobs:
            labels: Any = "not ready before the timing began"
            if pipe.poll(max(0.1, started + args.prepare - time.time())):
                try:
                    labels = pipe.recv()
                except EOFError:
                    labels = "ended"
            if isinstance(labels, str):
                process.kill()
                process.join(5)
                write({"table": "failures", "graph": name, "layer": model, "note": labels})
                continue
            ready.append((pipe, labels))
        print(f"{time.time() - started:5.1f} s prepared", flush=True)
        for pipe, label in [*((pipe, "copy") for pipe, _ in ready[:1]), *((pipe, label) for pipe, labels in ready for label in labels)]:
            if time.time() - started < args.seconds:
                pipe.send(label)
                if pipe.poll(20):
                    write(pipe.recv())
        for pipe, _ in ready:
            pipe.send(None)


SHOWN = (
    "table", "graph", "layer", "program", "error", "error_in", "forward_ms", "lent_ms", "training_ms", "torch.pairs training_ms", "pyg forward_ms",
    "pyg training_ms", "busy_us", "forward_busy_us", "count", "note", "bytes_per_second",
)  # fmt: skip


def _short(row: Row) -> str:
    return " ".join(f"{name}={value:.4g}" if isinstance(value, float) else str(value) for name, value in row.items() if name in SHOWN)


if __name__ == "__main__":
    main()

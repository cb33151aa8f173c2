"""Eight graphs and three layers within one short GPU run: processes prepare and check side by side, then are timed one after another.

    python -m benchmarks.rgnn.together --out FOLDER                                       # one GPU, at most --seconds (76)
    python -m benchmarks.rgnn.together --dry --out FOLDER --graphs aifb --models rgcn     # the same paths on a CPU, tiny graphs

Preparing (kernels are compiled, results and gradients compared with torch.pairs in float64) takes most of a run, and needs the GPU little. What is
not ready when the timing begins is ended and recorded as such, so nothing runs beside what is timed. Columns are those of forward_training;
`ours: launches` is without the replay of recorded calls, `error_replayed` is of recorded calls; with `ours: caller's thread` backwards run there
(torch.autograd.set_multithreading_enabled). HGT is timed on the dictionaries that it takes and gives; `of one tensor` is with the copies that taking
one tensor apart and putting the results together takes. PyG is timed on small graphs, where it is installed.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks.rgnn import pairs
from benchmarks.rgnn.breakdown import each_kernel
from benchmarks.rgnn.forward_training import Clock, bandwidth, error, gradients, layer_of, measure, measure_parts, runs
from benchmarks.rgnn.noted import Row, note_of, rows_file, timed_from
from warpwright.domains.rgnn import synth
from warpwright.domains.rgnn.emit.triton.tuning import Tuning
from warpwright.domains.rgnn.nn.launches import AFTER
from warpwright.domains.rgnn.nn.replay import Replays
from warpwright.domains.rgnn.plan import Options

LARGE = ("mag", "wikikg2", "am", "biokg")
COPY = 4.2e12
"""Bytes per second of a large copy on an H200, where a run does not measure it."""

VARIANTS: dict[str, tuple[Options, tuple[str, ...], tuple[str, ...]]] = {
    "attention in one kernel": (Options(attend=True), ("mag", "wikikg2"), ("hgt",)),
    "attention by operations": (Options(attend=False), ("am",), ("hgt",)),
    "gradients beside": (Options(tuning=Tuning(overlap=True)), ("am", "mag", "wikikg2"), ("rgcn", "rgat", "hgt")),
}  # fmt: skip
"""Other programs, and the graphs and layers on which they are timed."""
ROOM = 100e9
"""Bytes of a card on which torch.pairs in float64 fits beside the other processes; on a smaller one the largest graphs are compared in float32."""
LAST = 8.0
"""Seconds before the timing begins from which no other program is prepared."""


@dataclass
class Cell:
    """A layer on a graph, prepared."""

    common: dict[str, Any]
    layer: Any
    x: torch.Tensor
    weights: torch.Tensor
    found: dict[str, Any]
    wanted: dict[str, torch.Tensor] | None
    small: bool
    graph: Any = None
    errors: dict[str, tuple[float, str]] = field(default_factory=dict)
    chosen: dict[str, Options] = field(default_factory=dict)
    """The variants that are prepared."""


def step(cell: Cell) -> dict[str, torch.Tensor]:
    """Return result and gradients as `gradients` does, but of the very same leaf."""
    module, run = cell.found["ours"]
    out = run(cell.x)
    names, parameters = zip(*module.named_parameters(), strict=True)
    grads = torch.autograd.grad(out, [cell.x, *parameters], cell.weights, allow_unused=True)
    grouped: dict[str, list[torch.Tensor]] = {}
    for name, g in zip(("x", *names), grads, strict=True):
        if g is not None:
            grouped.setdefault(name.split(".")[0], []).append(g.flatten())
    return {"out": out.detach()} | {name: torch.cat(parts) for name, parts in grouped.items()}


def prepared(name: str, model: str, args: argparse.Namespace, device: torch.device, alone: Any) -> Cell:
    """Draw the graph, compile what will be timed, and compare it with float64."""
    graph = synth.synthetic(name, 0.002 if args.dry else 1.0, device)
    p = pairs.Pairs(graph.edge_index, graph.edge_type, graph.count, len(graph.relations))
    layer = layer_of(model, graph, 64, device)
    x = torch.randn(graph.count, 64, device=device, requires_grad=True)
    found = runs(model, layer, graph, p, name not in LARGE and find_spec("torch_geometric") is not None)
    layer.options = Options(replay=False)
    weights = torch.randn_like(found["ours"][1](x).detach())
    floors = [b / COPY * 1e3 for b in pairs.floor_bytes(p, 64, model)]
    common = {
        "table": "times", "graph": name, "model": model, "d": 64, "nodes": graph.count, "edges": p.edges, "relations": p.relations,
        "source_pairs": p.sources, "target_pairs": p.targets, "forward_floor_ms": floors[0], "training_floor_ms": floors[1],
    }  # fmt: skip
    cell = Cell(common, layer, x, weights, found, None, name not in LARGE, graph)
    narrow = name in {"mag", "wikikg2"} and device.type == "cuda" and torch.cuda.get_device_properties(device).total_memory < ROOM
    common["compared_with"] = "float32" if narrow else "float64"
    wide = layer_of(model, graph, 64, device).to(torch.float32 if narrow else torch.float64)
    wide.load_state_dict(layer.state_dict())
    run = runs(model, wide, graph, p, False)["torch.pairs"][1]
    if cell.small:
        cell.wanted = gradients(wide, run, x.double(), weights)
        layer.replays, layer.options = Replays(), Options(replay=True)
        for _ in range(AFTER + 3):
            seen = gradients(layer, found["ours"][1], x, weights)
        cell.errors["ours"] = error(seen, cell.wanted)
        layer.options = Options(replay=False)
        cell.errors["ours: launches"] = error(gradients(layer, found["ours"][1], x, weights), cell.wanted)
        cell.errors["torch.pairs"] = error(gradients(layer, found["torch.pairs"][1], x, weights), cell.wanted)
        return cell
    with alone:  # in float64 torch.pairs takes up to 60 GB
        wanted = gradients(wide, run, x if narrow else x.double(), weights)
        Clock(device, 0.0).clean()
    if model != "hgt" and not narrow:
        cell.errors["torch.pairs"] = error(gradients(layer, found["torch.pairs"][1], x, weights), wanted)
    others = {f"ours: {label}": options for label, (options, graphs, models) in VARIANTS.items() if name in graphs and model in models}
    for label, options in ({"ours": Options()} | others).items():
        if label == "ours" or time.time() - args.started < args.prepare - LAST:
            layer.options = options
            cell.chosen[label] = options
            cell.errors[label] = error(gradients(layer, found["ours"][1], x, weights), wanted)
            with torch.no_grad():
                found["ours"][1](x)
    return cell


def whole_step(cell: Cell) -> None:
    """Run a training step."""
    cell.x.grad = None
    cell.found["ours"][1](cell.x).backward(cell.weights)


def timed(cell: Cell, clock: Clock, write: Callable[[dict[str, Any]], None], own: bool) -> None:
    """Time ours and torch.pairs."""
    small = ["ours: caller's thread", "ours: launches"] if cell.small else []
    small += ["ours: of one tensor"] if cell.common["model"] == "hgt" else []
    for label in ("ours", *small, *([] if own else ["torch.pairs"]), *(["pyg"] if "pyg" in cell.found else [])):
        row = cell.common | {"implementation": label}
        if label in cell.errors:
            row["error"], row["error_in"] = cell.errors[label]
        try:
            replayed = cell.small and label in {"ours", "ours: caller's thread", "ours: of one tensor"}
            by_type = cell.common["model"] == "hgt" and label not in {"torch.pairs", "ours: of one tensor"}
            cell.layer.options = Options(replay=replayed)
            cell.layer.replays = Replays()
            module, run = cell.found[label if label in cell.found else "ours"]
            for _ in range(2 * AFTER if cell.small and replayed else 0):
                seen = step(cell)
                with torch.no_grad():
                    run(cell.x)
            if cell.wanted is not None and label == "ours":
                row["error_replayed"] = error(seen, cell.wanted)[0]
                row["recorded"] = sum(state.recording is not None for state in cell.layer.replays.states.values())
                row["refused"] = cell.layer.replays.refused
            with torch.autograd.set_multithreading_enabled(label != "ours: caller's thread"):
                if by_type:
                    row |= measure_parts(clock, module, cell.graph, cell.x, cell.weights)
                else:
                    row |= measure(clock, module, run, cell.x, cell.weights)
        except Exception as problem:
            row["note"] = note_of(problem)
        write(row)


def variants(cell: Cell, clock: Clock, write: Callable[[dict[str, Any]], None]) -> None:
    """Time the variants."""
    for label, options in cell.chosen.items():
        cell.layer.options = options
        row = cell.common | {"table": "variants", "implementation": label, "error": cell.errors[label][0], "error_in": cell.errors[label][1]}
        module, run = cell.found["ours"]
        if cell.common["model"] == "hgt":
            write(row | measure_parts(clock, module, cell.graph, cell.x, cell.weights))
        else:
            write(row | measure(clock, module, run, cell.x, cell.weights))


def patiently(function: Callable[[], Cell], clock: Clock) -> Cell:
    """Return a prepared cell; what others use the memory for, which are at work beside, is tried again."""
    for wait in (2, 3, 4):
        try:
            return function()
        except torch.OutOfMemoryError:
            clock.clean()
            time.sleep(wait)
    return function()


def worker(name: str, models: Sequence[str], args: argparse.Namespace, alone: Any, pipe: Any) -> None:
    """Prepare cells, then time what is asked for: (part,) -> rows; None ends it."""
    device = torch.device("cpu" if args.dry or not torch.cuda.is_available() else "cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_num_threads(1)
    clock, cells, failures = Clock(device, 0.01 if args.dry else args.each), [], []
    for model in models:
        try:
            cells.append(patiently(lambda model=model: prepared(name, model, args, device, alone), clock))  # type: ignore[misc]
        except Exception as problem:
            failures.append({"table": "failures", "graph": name, "model": model, "note": note_of(problem)})
    clock.clean()
    pipe.send(failures)
    while (part := pipe.recv()) is not None:
        rows: list[dict[str, Any]] = []
        try:
            if part == "copy":
                rows.append({"table": "copy", "bytes_per_second": bandwidth(clock)})
            for cell in cells if part != "copy" else ():
                hgt = cell.common["model"] == "hgt"
                if part == "times":
                    timed(cell, clock, rows.append, hgt and not cell.small)
                elif part == "variants":
                    variants(cell, clock, rows.append)
                elif part == "kernels":
                    cell.layer.options = Options(replay=False)
                    kernels = each_kernel(functools.partial(whole_step, cell), device)
                    rows += [cell.common | {"table": "kernel_parts"} | row for row in kernels]
                elif hgt and not cell.small:
                    module, run = cell.found["torch.pairs"]
                    rows.append(cell.common | {"implementation": "torch.pairs"} | measure(clock, module, run, cell.x, cell.weights))
        except Exception as problem:
            rows.append({"table": "failures", "graph": name, "note": f"{part}: {note_of(problem)}"})
        clock.clean()
        pipe.send(rows)


def main(argv: Sequence[str] | None = None) -> None:
    """Prepare, then time in turn."""
    started = time.time()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--graphs", default="aifb,mutag,bgs,fb15k,mag,wikikg2,am,biokg")
    parser.add_argument("--models", default="rgcn,rgat,hgt")
    parser.add_argument("--each", type=float, default=0.05, help="seconds of timing for each function")
    parser.add_argument("--prepare", type=float, default=42.0, help="seconds after which the timing begins")
    parser.add_argument("--seconds", type=float, default=76.0, help="nothing is begun later")
    parser.add_argument("--parts", default="times,variants,kernels,pairs", help="what is timed: layers, other programs, kernels, torch.pairs' HGT")
    parser.add_argument("--dry", action="store_true", help="tiny graphs on the CPU")
    args = parser.parse_args(argv)
    args.started, scale = started, 1.0
    context = multiprocessing.get_context("spawn")
    alone, models = context.Lock(), args.models.split(",")
    jobs = [(g, [m]) for g in args.graphs.split(",") if g in LARGE for m in models] + [(g, models) for g in args.graphs.split(",") if g not in LARGE]
    ready = []
    with rows_file(args.out, timed_from(started, _short)) as put:

        def write(rows: list[dict[str, Any]]) -> None:
            nonlocal scale
            for row in rows:
                scale = COPY / row["bytes_per_second"] if row["table"] == "copy" else scale
                row |= {key: row[key] * scale for key in ("forward_floor_ms", "training_floor_ms") if key in row}
                put(row)

        pipes = []
        for name, own in jobs:
            mine, its = context.Pipe()
            process = context.Process(target=worker, args=(name, own, args, alone, its), daemon=True)
            process.start()
            pipes.append((name, own, mine, process))
        for name, own, pipe, process in pipes:
            if pipe.poll(max(0.1, started + args.prepare - time.time())):
                try:
                    write(pipe.recv())
                    ready.append((name, own, pipe, process))
                    continue
                except EOFError:
                    pass
            process.kill()
            process.join(5)
            write([{"table": "failures", "graph": name, "model": " ".join(own), "note": "not ready, or ended, before the timing began"}])
        print(f"{time.time() - started:5.1f} s prepared", flush=True)
        small = [job for job in ready if job[0] not in LARGE]
        large = [job for job in ready if job[0] in LARGE]
        varied = [job for job in large if any(job[0] in graphs and set(job[1]) & set(models) for _, graphs, models in VARIANTS.values())]
        asked = [("copy", job) for job in ready[:1]] + [("times", job) for job in (*small, *large)] + [("variants", job) for job in varied]
        asked += [("kernels", job) for job in large] + [("pairs", job) for job in large if "hgt" in job[1]]
        for part, (name, own, pipe, process) in [(part, job) for part, job in asked if part in {"copy", *args.parts.split(",")}]:
            left = started + args.seconds - time.time()
            if left < 1 or not process.is_alive():
                write([{"table": "failures", "graph": name, "model": " ".join(own), "note": f"{part} not run: out of time or ended"}])
                continue
            try:
                pipe.send(part)
                if pipe.poll(left + 4):
                    write(pipe.recv())
                    continue
            except (EOFError, BrokenPipeError):
                pass
            process.kill()
            write([{"table": "failures", "graph": name, "model": " ".join(own), "note": f"{part} took too long, or ended"}])
        for _, _, pipe, process in ready:
            if process.is_alive():
                pipe.send(None)
        for _, _, _, process in ready:
            process.join(3)
            process.kill()
    print(f"{time.time() - started:5.1f} s", flush=True)


COMMON = frozenset({"table", "d", "nodes", "edges", "relations", "source_pairs", "target_pairs"})


def _short(row: Row) -> str:
    shown = {name: value for name, value in row.items() if name not in COMMON and isinstance(value, str | float)}
    return " ".join(value if isinstance(value, str) else f"{name}={value:.4g}" for name, value in shown.items())


if __name__ == "__main__":
    main()

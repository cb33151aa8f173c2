"""Forward and training step of RGCN, RGAT and HGT layers on synthetic graphs with the counts of eight data sets: ours, plain torch, PyG if there.

    python -m benchmarks.rgnn.forward_training --out FOLDER            # one GPU, within --seconds (150)
    python -m benchmarks.rgnn.forward_training --dry --out FOLDER      # the same paths on a CPU, tiny graphs
    python -m benchmarks.rgnn.forward_training --with-pyg ...          # PyG too (--pyg FOLDER: from there)

fp32, one head. Times are medians of CUDA events, memory is the peak above the inputs. `error` is the largest relative difference (2-norm) of the
result and of all gradients from `torch.pairs` in float64. Floors are bytes over the copy bandwidth measured at the start.
"""

from __future__ import annotations

import argparse
import functools
import gc
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.rgnn import pairs
from benchmarks.rgnn.noted import Row, note_of, rows_file
from warpwright.domains.rgnn import synth
from warpwright.domains.rgnn.emit.triton.tuning import Tuning
from warpwright.domains.rgnn.nn.common import typed_index
from warpwright.domains.rgnn.plan import Options
from warpwright.rgnn import HGTConv, RGATConv, RGCNConv

STARTED = time.time()

Run = Callable[[torch.Tensor], torch.Tensor]
Layer = RGCNConv | RGATConv | HGTConv

OURS = {"ours": Options()}
VARIANTS = {
    "aggregate first": Options(scatter=0.5), "message first": Options(scatter=6.0), "no reordering": Options(reorder=False),
    "no compaction": Options(reorder=False, compact=False), "sums apart": Options(fuse=False),
    "sums apart, aggregate first": Options(fuse=False, scatter=0.5),
    "step 32": Options(tuning=Tuning(32, 4, 4)), "step 32, unroll 2": Options(tuning=Tuning(32, 4, 2)), "8 warps": Options(tuning=Tuning(64, 8, 4)),
    "unroll 2": Options(tuning=Tuning(64, 4, 2)), "unroll 8": Options(tuning=Tuning(64, 8, 8)), "torch emitter": Options(emitter="eager"),
    "scores in float32": Options(tuning=Tuning(doubles=False)), "no riders": Options(tuning=Tuning(ride=False)),
}  # fmt: skip


class Clock:
    """Times functions on one device."""

    def __init__(self, device: torch.device, seconds: float) -> None:
        """Spend about `seconds` on each function."""
        self.device, self.seconds, self.on_gpu = device, seconds, device.type == "cuda"

    def clean(self) -> None:
        """Free what is cached."""
        gc.collect()
        if self.on_gpu:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def time(self, function: Callable[[], Any]) -> tuple[float, float]:
        """Return the median in ms and the peak in GB."""
        self.clean()
        base = torch.cuda.memory_allocated() if self.on_gpu else 0
        started = time.perf_counter()
        function()
        if self.on_gpu:
            torch.cuda.synchronize()
        peak = (torch.cuda.max_memory_allocated() - base) / 1e9 if self.on_gpu else 0.0
        started = time.perf_counter()
        function()
        if self.on_gpu:
            torch.cuda.synchronize()
        once = time.perf_counter() - started
        count = int(min(50, max(1 if once > self.seconds else 5, self.seconds / max(once, 1e-5))))
        return statistics.median(self._samples(function, count)), peak

    def _samples(self, function: Callable[[], Any], count: int) -> Iterator[float]:
        for _ in range(count):
            if not self.on_gpu:
                started = time.perf_counter()
                function()
                yield (time.perf_counter() - started) * 1e3
                continue
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            function()
            end.record()
            end.synchronize()
            yield begin.elapsed_time(end)


def bandwidth(clock: Clock) -> float:
    """Return bytes per second of a large copy."""
    source = torch.empty((1 << 31 if clock.on_gpu else 1 << 24) // 4, device=clock.device)
    target = torch.empty_like(source)
    return 2 * source.nbytes / (clock.time(lambda: target.copy_(source))[0] * 1e-3)


def layer_of(model: str, graph: synth.Synthetic, d: int, device: torch.device) -> Layer:
    """Return our layer for a model."""
    torch.manual_seed(0)
    relations = len(graph.relations)
    layer: Layer = HGTConv(d, d, graph.hetero()[:2]) if model == "hgt" else (RGCNConv if model == "rgcn" else RGATConv)(d, d, relations)
    return layer.to(device)


def runs(model: str, layer: Any, graph: synth.Synthetic, p: pairs.Pairs, pyg: bool) -> dict[str, tuple[Any, Run]]:
    """Return name -> (module with the parameters, function of x)."""
    edges, kinds, offsets = graph.edge_index, graph.edge_type, graph.offsets()
    if model != "hgt":
        found: dict[str, tuple[Any, Run]] = {"ours": (layer, lambda x: layer(x, edges, kinds))}
        found["torch.pairs"] = layer, lambda x: pairs.LAYERS[model](p, layer, x)
        if pyg:
            other = layer.original().to(x_device(layer))
            other.load_state_dict(layer.state_dict())
            found["pyg"] = other, lambda x: other(x, edges, kinds)
        return found
    types = graph.hetero()[0]
    found = {"ours": (layer, of_one_tensor(layer, graph)), "torch.pairs": (layer, lambda x: pairs.hgt(p, layer, x, types, offsets))}
    if pyg:
        other = layer.original().to(x_device(layer))
        other.load_state_dict(layer.state_dict())
        found["pyg"] = other, of_one_tensor(other, graph)
    return found


def of_one_tensor(module: Any, graph: synth.Synthetic, lacking: bool = False) -> Run:
    """Return an HGT as a function of the rows of all node types, its results one after another; `lacking`: zeros for types that have none."""
    types, _, by_type = graph.hetero()

    def run(x: torch.Tensor) -> torch.Tensor:
        out = module(dict(zip(types, x.split(graph.nodes), strict=True)), by_type)
        given = [(kind, n) for kind, n in zip(types, graph.nodes, strict=True) if kind in out or lacking]
        return torch.cat([out[kind] if kind in out else x.new_zeros(n, module.out_channels) for kind, n in given])

    return run


def x_device(layer: torch.nn.Module) -> torch.device:
    """Return where a layer's parameters lie."""
    return next(layer.parameters()).device


def gradients(module: torch.nn.Module, run: Run, x: torch.Tensor, weights: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the result and the gradients of x and of all parameters that have one."""
    x = x.detach().requires_grad_()
    out = run(x)
    names, parameters = zip(*module.named_parameters(), strict=True)
    grads = torch.autograd.grad(out, [x, *parameters], weights.to(out.dtype), allow_unused=True)
    grouped: dict[str, list[torch.Tensor]] = {}
    for name, g in zip(("x", *names), grads, strict=True):
        if g is not None:  # parameters of many parts are one vector: a single number's gradient may cancel to nothing
            grouped.setdefault(name.split(".")[0], []).append(g.flatten())
    return {"out": out.detach()} | {name: torch.cat(parts) for name, parts in grouped.items()}


def error(got: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> tuple[float, str]:
    """Return the largest relative difference and where it is. A gradient that cancels to a millionth of the largest one is compared with that."""
    worst = 0.0, ""
    least = 1e-6 * max(float(value.norm()) for value in wanted.values())
    for name, value in wanted.items():
        if name in got and value.numel():
            worst = max(worst, (float((got[name].double() - value).norm()) / max(float(value.norm()), least, 1e-30), name))
    return worst


def measure_parts(clock: Clock, layer: torch.nn.Module, graph: synth.Synthetic, x: torch.Tensor, weights: torch.Tensor) -> dict[str, Any]:
    """Return times and peaks of HGT as it is called: of rows of each node type, with gradients of the results of each type.

    `measure` takes one tensor apart and puts the results together, which copies each row twice forward and twice backward.
    """
    types, _, edges = graph.hetero()
    parts = {kind: part.detach().clone().requires_grad_() for kind, part in zip(types, x.split(graph.nodes), strict=True)}

    def forward() -> None:
        with torch.no_grad():
            layer(parts, edges)

    with torch.no_grad():
        given = [kind for kind in types if kind in layer(parts, edges)]
    sizes = [graph.nodes[types.index(kind)] for kind in given]
    gradients = [part.clone() for part in weights.split(sizes)]

    def step() -> None:
        for part in parts.values():
            part.grad = None
        layer.zero_grad(set_to_none=True)
        out = layer(parts, edges)
        torch.autograd.backward([out[kind] for kind in given], gradients)

    row: dict[str, Any] = {}
    for name, function in (("forward", forward), ("training", step)):
        for _ in range(6):  # the fifth call may be recorded
            function()
        row[f"{name}_ms"], row[f"{name}_gb"] = clock.time(function)
    layer.zero_grad(set_to_none=True)
    return row


def measure(clock: Clock, module: torch.nn.Module, run: Run, x: torch.Tensor, weights: torch.Tensor) -> dict[str, Any]:
    """Return times and peaks of forward and of a training step."""

    def forward() -> None:
        with torch.no_grad():
            run(x)

    def step() -> None:
        x.grad = None
        module.zero_grad(set_to_none=True)
        run(x).backward(weights)

    row: dict[str, Any] = {}
    row["forward_ms"], row["forward_gb"] = clock.time(forward)
    row["training_ms"], row["training_gb"] = clock.time(step)
    x.grad = None
    module.zero_grad(set_to_none=True)
    return row


def captured(clock: Clock, module: torch.nn.Module, run: Run, x: torch.Tensor, weights: torch.Tensor) -> dict[str, Any]:
    """Return times of replays of CUDA graphs of forward and training step: what is left of launches, and a proof that nothing waits for the host."""
    wanted = [x, *(p for p in module.parameters() if p.requires_grad)]

    def forward() -> Any:
        with torch.no_grad():
            return run(x)

    def step() -> Any:
        return torch.autograd.grad(run(x), wanted, weights, allow_unused=True)

    row: dict[str, Any] = {}
    for name, function in (("forward_ms", forward), ("training_ms", step)):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                function()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            function()
        row[name] = clock.time(graph.replay)[0]
    return row


@functools.lru_cache(maxsize=1)
def drawn(name: str, scale: float, device: torch.device) -> synth.Synthetic:
    """Return a graph, drawn once for all models."""
    return synth.synthetic(name, scale, device)


def bench(args: argparse.Namespace, name: str, model: str, clock: Clock, copy: float, write: Callable[[dict[str, Any]], None]) -> None:
    """Measure one graph and model."""
    device = clock.device
    graph = drawn(name, args.scale, device)
    p = pairs.Pairs(graph.edge_index, graph.edge_type, graph.count, len(graph.relations))
    layer = layer_of(model, graph, args.dim, device)
    x = torch.randn(graph.count, args.dim, device=device, requires_grad=True)
    found = runs(model, layer, graph, p, args.with_pyg)
    with torch.no_grad():  # by ours where nothing else is timed: torch.pairs needs more memory than some cells leave
        weights = torch.randn_like(found["ours" if model in args.own.split(",") else "torch.pairs"][1](x))
    floors = [b / copy * 1e3 for b in pairs.floor_bytes(p, args.dim, model)]
    started = time.perf_counter()
    typed_index(graph.edge_index.clone(), graph.edge_type.clone(), graph.count, graph.count, len(graph.relations))
    if clock.on_gpu:
        torch.cuda.synchronize()
    common = {
        "table": "times", "graph": name, "model": model, "d": args.dim, "nodes": graph.count, "edges": p.edges, "relations": p.relations,
        "source_pairs": p.sources, "target_pairs": p.targets, "index_ms": (time.perf_counter() - started) * 1e3,
        "forward_floor_ms": floors[0], "training_floor_ms": floors[1],
    }  # fmt: skip
    wanted = None
    if not args.no_check:
        wide = layer_of(model, graph, args.dim, device).double()
        wide.load_state_dict(layer.state_dict())
        wanted = gradients(wide, runs(model, wide, graph, p, False)["torch.pairs"][1], x.double(), weights)
    options = [("ours", o) for o in OURS] if not args.variants else [("ours", o) for o in (*OURS, *(n for n in VARIANTS if re.search(args.only, n)))]
    jobs = [(f"{kind}: {o}" if o != "ours" else kind, kind, (OURS | VARIANTS)[o]) for kind, o in options]
    for label, kind, chosen in [*jobs, *((k, k, Options()) for k in found if k != "ours" and model not in args.own.split(","))]:
        row = common | {"implementation": label}
        if time.time() - STARTED > args.seconds:
            write(row | {"note": "not run: out of time"})
            continue
        try:
            layer.options = chosen
            module, run = found[kind]
            if wanted is not None and kind != "pyg":
                row["error"], row["error_in"] = error(gradients(module, run, x, weights), wanted)
            row |= measure(clock, module, run, x, weights)
        except torch.OutOfMemoryError as problem:
            row["note"] = f"out of memory: {str(problem)[:80]}"
        except Exception as problem:
            row["note"] = note_of(problem)
        layer.options = Options()
        write(row)
        clock.clean()
    if clock.on_gpu and p.edges < 1_000_000 and time.time() - STARTED < args.seconds:
        row = common | {"implementation": "ours: CUDA graph"}
        try:
            row |= captured(clock, *found["ours"], x, weights)
        except Exception as problem:
            row["note"] = note_of(problem)
        write(row)
        clock.clean()


def summary(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of times for reading."""
    short = {"table": "summary", "graph": row["graph"], "layer": row["model"], "program": row["implementation"]}
    for name in ("forward", "training"):
        time_ms = row.get(f"{name}_ms")
        short[f"{name} ms"] = f"{time_ms:.3g}" if time_ms is not None else ""
        short[f"{name}, floors"] = f"{time_ms / row[f'{name}_floor_ms']:.1f}" if time_ms is not None else ""
        short[f"{name} GB"] = f"{row[f'{name}_gb']:.3g}" if f"{name}_gb" in row else ""
    short["error"] = f"{row['error']:.1e}" if "error" in row else ""
    return short | {"note": row.get("note", "").split(".")[0][:60]}


SHOWN = (
    "error", "error_in", "forward_ms", "training_ms", "forward_gb", "training_gb", "forward_floor_ms", "training_floor_ms", "index_ms", "note",
)  # fmt: skip


def _short(row: Row) -> str:
    if "implementation" not in row:
        return ""
    text = " ".join(f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in row.items() if name in SHOWN)
    return f"{time.time() - STARTED:6.1f}s {row['graph']:8s} {row['model']:5s} {row['implementation']:22s} {text}"


def main(argv: Sequence[str] | None = None) -> None:
    """Run what the arguments name; by default those of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--graphs", default="aifb,mutag,bgs,am,mag,wikikg2,fb15k,biokg")
    parser.add_argument("--models", default="rgcn,rgat,hgt")
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--each", type=float, default=0.15, help="seconds of timing for each function")
    parser.add_argument("--seconds", type=float, default=150.0, help="nothing is begun later")
    parser.add_argument("--variants", action="store_true", help="ours in all variants too")
    parser.add_argument("--only", default="", help="of the variants those whose names this pattern is found in")
    parser.add_argument("--own", default="", help="models beside which nothing else is timed")
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("--with-pyg", action="store_true", help="PyG's layers too, which take most of the time")
    parser.add_argument("--pyg", default="", help="folder with torch_geometric, where it is not installed")
    parser.add_argument("--dry", action="store_true", help="tiny graphs on the CPU")
    args = parser.parse_args(argv)
    warnings.filterwarnings("ignore", message=".*[Ss]parse.*")
    if args.pyg:
        sys.path.append(args.pyg)
    if args.dry:
        args.scale, args.each = 0.002, 0.01
    device = torch.device("cpu" if args.dry or not torch.cuda.is_available() else "cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    clock = Clock(device, args.each)
    with rows_file(args.out, _short) as put:

        def write(row: Row) -> None:
            put(row)
            if row["table"] == "times":
                put(summary(row))

        copy = bandwidth(clock)
        machine = torch.cuda.get_device_name() if clock.on_gpu else "cpu"
        write({"table": "machine", "device": machine, "torch": torch.__version__, "copy_tb_s": copy / 1e12})
        for name in args.graphs.split(","):
            for model in args.models.split(","):
                try:
                    bench(args, name, model, clock, copy, write)
                except Exception as problem:
                    write({"table": "failures", "graph": name, "model": model, "note": note_of(problem)})
                clock.clean()


if __name__ == "__main__":
    main()

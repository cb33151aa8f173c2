"""Where the time of a compiled layer goes: a sampled batch by its parts, a small graph's step by launches and host, a large graph's step by kernel.

    python -m benchmarks.rgnn.breakdown --out FOLDER          # one GPU, about 60 s; --parts names some
    python -m benchmarks.rgnn.breakdown --dry --out FOLDER    # the same paths on a CPU
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast
from unittest import mock
from unittest.mock import patch

import torch
from torch._utils import _unflatten_dense_tensors

from benchmarks.rgnn import pairs
from benchmarks.rgnn.batches import seconds
from benchmarks.rgnn.forward_training import Clock, Run, bandwidth, layer_of, runs
from benchmarks.rgnn.noted import Row, Write, note_of, rows_file, timed_from
from benchmarks.rgnn.profiled import on_device
from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn import synth
from warpwright.domains.rgnn.emit.launch import Runner
from warpwright.domains.rgnn.emit.own import gathered
from warpwright.domains.rgnn.emit.own.kernel import Own
from warpwright.domains.rgnn.emit.rows import Kernel
from warpwright.domains.rgnn.emit.triton.tuning import Tuning
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.nn.common import typed_index
from warpwright.domains.rgnn.nn.replay import Recording
from warpwright.domains.rgnn.plan import Options
from warpwright.domains.rgnn.sorting import counting
from warpwright.rgnn import RGCNConv

EDGES = 100_000

STARTED, LIMIT = time.time(), 45.0


def wait(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def same_index(device: torch.device, dry: bool, write: Write) -> None:
    """Compare indices by counting with those by torch's sorts, on odd graphs."""
    shapes = {"batch": (50_000, 100_000, 30), "one node": (1, 5000, 3), "many relations": (20, 300_000, 10_000), "few edges": (100_000, 300, 30)}
    shapes |= {"hub": (30_000, 1_000_000, 8), "large": (200_000, 4_000_000, 100)}
    for name, (nodes, edges, relations) in shapes.items():
        edges = min(edges, 2000) if dry else edges
        index, kind = torch.randint(nodes, (2, edges), device=device), torch.randint(relations, (edges,), device=device)
        if name == "hub":
            index[1, : edges // 2] = 7
        counted = Index(index[0], index[1], kind, nodes, nodes, relations)
        with patch.object(counting, "launcher", lambda device: None):
            plain = Index(index[0], index[1], kind, nodes, nodes, relations)
        maps = Domain.PAIR_DST, Domain.DST
        wrong = [str(k) for k in maps if not torch.equal(counted.lift(k, Domain.EDGE), plain.lift(k, Domain.EDGE))]
        for rows in (Domain.PAIR_DST, Domain.PAIR_SRC):
            wrong += [str(rows)] * (counted.rows[rows] != plain.rows[rows] or not torch.equal(counted.start(rows), plain.start(rows)))
        ends = [x.lift(Domain.PAIR_DST, Domain.EDGE).long() << 32 | x.lift(Domain.PAIR_SRC, Domain.EDGE) for x in (counted, plain)]
        wrong += [str(Domain.PAIR_SRC)] * (not torch.equal(*(torch.sort(x)[0] for x in ends)))
        write({"table": "index_check", "graph": name, "edges": edges, "by_counting": counted.counted is not None, "wrong": wrong})


def counted(function: Callable[[], Any], device: torch.device, most: int = 8) -> dict[str, Any]:
    """Return what the profiler counts in one call: launches by kind, and the device's busy time in ms."""
    kinds = [torch.profiler.ProfilerActivity.CPU, *([torch.profiler.ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with torch.profiler.profile(activities=kinds) as profile:
        function()
        wait(device)
    events = profile.key_averages()
    busy = on_device(events)
    names = ("LaunchKernel", "LaunchCooperative", "Memcpy", "Memset", "Synchronize")
    row: dict[str, Any] = {name: sum(e.count for e in events if name in e.key and e not in busy) for name in names}
    row["gpu_ms"] = sum(e.self_device_time_total for e in busy) / 1e3
    longest = sorted(busy, key=lambda e: -e.self_device_time_total)[:most]
    row["kernels"] = {e.key[:100]: [e.count, round(e.self_device_time_total / 1e3, 4)] for e in longest}
    return row


def batch(device: torch.device, dry: bool, write: Write) -> None:
    """Time a new batch, its index alone, and the forward alone."""
    edges = 1000 if dry else EDGES
    nodes = edges // 2
    layer, x = RGCNConv(64, 64, 30).to(device), torch.randn(nodes, 64, device=device)
    drawn = [(torch.randint(nodes, (2, edges), device=device), torch.randint(30, (edges,), device=device)) for _ in range(64)]

    def whole(given: Any) -> Any:
        with torch.no_grad():
            return layer(x, *given)

    def index(given: Any) -> Any:
        return typed_index(given[0], given[1], nodes, nodes, 30)

    on_gpu = device.type == "cuda"
    for name, function, inputs in (("whole", whole, drawn[:30]), ("index", index, drawn[30:60]), ("same graph", whole, [drawn[0]] * 20)):
        row = {"table": "batch_parts", "part": name, "ms": statistics.median(seconds(function, inputs, on_gpu)[8:])}
        fresh = tuple(x.clone() for x in drawn[61]) if name != "same graph" else drawn[0]
        wait(device)
        write(row | counted(lambda function=function, fresh=fresh: function(fresh), device))  # type: ignore[misc]


def small(device: torch.device, dry: bool, write: Write) -> None:
    """Time forward and training step of small graphs: to the return of the last call (host), and to the end of the work."""
    graph = synth.synthetic("aifb", 0.05 if dry else 1.0, device)
    p = pairs.Pairs(graph.edge_index, graph.edge_type, graph.count, len(graph.relations))
    for model in ("rgcn", "rgat", "hgt"):
        layer = layer_of(model, graph, 64, device)
        x = torch.randn(graph.count, 64, device=device, requires_grad=True)
        module, run = runs(model, layer, graph, p, False)["ours"]
        weights = torch.randn_like(run(x).detach())

        def forward(run: Any = run, x: torch.Tensor = x) -> None:
            with torch.no_grad():
                run(x)

        def step(run: Any = run, x: torch.Tensor = x, module: Any = module, weights: torch.Tensor = weights) -> None:
            x.grad = None
            module.zero_grad(set_to_none=True)
            run(x).backward(weights)

        for name, function in (("forward", forward), ("step", step)):
            host, total = [], []
            for _ in range(40):
                wait(device)
                started = time.perf_counter()
                function()
                host.append((time.perf_counter() - started) * 1e3)
                wait(device)
                total.append((time.perf_counter() - started) * 1e3)
            row = {"table": "small_parts", "graph": "aifb", "model": model, "part": name, "host_ms": statistics.median(host[10:])}
            write(row | {"ms": statistics.median(total[10:])} | counted(function, device))


class Empty(torch.autograd.Function):
    """A node of autograd that computes next to nothing, and has no gradients but that of x: what its step takes is torch's own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        ctx.count = len(rest)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return gradient, *[None] * ctx.count


class Filled(torch.autograd.Function):
    """The same with gradients for all parameters, parts of one tensor: the least that a layer's step takes by way of autograd."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, flat: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        ctx.flat, ctx.rest = flat, rest
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return gradient, None, *_unflatten_dense_tensors(ctx.flat.clone(), ctx.rest)


def _step(run: Run, x: torch.Tensor, weights: torch.Tensor) -> None:
    run(x).backward(weights)


def _applied(node: Any, others: Sequence[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    return cast(torch.Tensor, node.apply(x, *others))


def host(device: torch.device, dry: bool, write: Write) -> None:
    """Time a replayed step of small graphs: until forward returns, its gradients begin and end, backward returns, all is done.

    Beside it steps of nodes that compute nothing, all with backwards in a thread of their own (torch's usual way) and in the caller's.
    """
    for name in ("aifb", "mutag"):
        graph = synth.synthetic(name, 0.05 if dry else 1.0, device)
        p = pairs.Pairs(graph.edge_index, graph.edge_type, graph.count, len(graph.relations))
        for model in ("rgcn", "rgat", "hgt"):
            layer = layer_of(model, graph, 64, device)
            layer.options = Options(replay=True)
            module, run = runs(model, layer, graph, p, False)["ours"]
            parameters = list(module.parameters())
            flat = torch.zeros(sum(x.numel() for x in parameters), device=device)
            programs: dict[str, Run] = {
                "ours": run, "nothing": functools.partial(_applied, Empty, parameters),
                "gradients of zeros": functools.partial(_applied, Filled, [flat, *parameters]),
            }  # fmt: skip
            for program, function in programs.items():
                for own_thread in (True, False):
                    with torch.autograd.set_multithreading_enabled(own_thread):
                        row = _host(device, dry, module, function, graph.count)
                    write({"table": "host", "graph": name, "layer": model, "program": program, "own_thread": own_thread, **row})


def _host(device: torch.device, dry: bool, module: Any, run: Callable[[torch.Tensor], torch.Tensor], nodes: int) -> dict[str, float]:
    x = torch.randn(nodes, 64, device=device, requires_grad=True)
    weights = torch.randn_like(run(x).detach())
    marks: list[float] = []
    gradients = Recording.gradients

    def marked(self: Recording, *args: Any) -> Any:
        marks.append(time.perf_counter())
        result = gradients(self, *args)
        marks.append(time.perf_counter())
        return result

    found: list[list[float]] = []
    with patch.object(Recording, "gradients", marked):
        for _ in range(12 if dry else 50):
            wait(device)
            marks.clear()
            begun = time.perf_counter()
            x.grad = None
            module.zero_grad(set_to_none=True)
            marks.append(time.perf_counter())
            out = run(x)
            marks.append(time.perf_counter())
            out.backward(weights)
            marks.append(time.perf_counter())
            wait(device)
            marks.append(time.perf_counter())
            zeroed, forward, *inside, returned, done = marks
            found.append([(t - begun) * 1e3 for t in (zeroed, forward, *(inside or (forward, returned)), returned, done)])
    names = ("zero_grad_ms", "forward_ms", "gradients_begin_ms", "gradients_end_ms", "backward_ms", "done_ms")
    return dict(zip(names, (statistics.median(column) for column in zip(*found[8 if dry else 20 :], strict=True)), strict=True))


def kernels(device: torch.device, dry: bool, write: Write, names: Sequence[str] = ("mag", "wikikg2", "am")) -> None:
    """Time each kernel of a forward and of a training step on large graphs; `floor_ms` is what the whole step has."""
    clock = Clock(device, 0.05)
    copy = bandwidth(clock)
    for name in names:
        graph = synth.synthetic(name, 0.001 if dry else 1.0, device)
        p = pairs.Pairs(graph.edge_index, graph.edge_type, graph.count, len(graph.relations))
        for model in ("rgat", "hgt", "rgcn"):
            if time.time() - STARTED > LIMIT:
                write({"table": "failures", "graph": name, "note": f"{model} not run: out of time"})
                continue
            layer = layer_of(model, graph, 64, device)
            x = torch.randn(graph.count, 64, device=device, requires_grad=True)
            run = runs(model, layer, graph, p, False)["ours"][1]
            weights = torch.randn_like(run(x).detach())
            for _ in range(2):
                run(x).backward(weights)
            floors = [b / copy * 1e3 for b in pairs.floor_bytes(p, 64, model)]
            common = {"table": "kernel_parts", "graph": name, "model": model, "edges": p.edges, "of_src": p.sources, "of_dst": p.targets}
            common |= {"forward_floor_ms": floors[0], "training_floor_ms": floors[1]}
            for row in each_kernel(functools.partial(_step, run, x, weights), device):
                write(common | row)
            clock.clean()


class Resident(Own):
    """The CUDA kernel of products of sums compiled for four blocks of a multiprocessor, which spill a few registers, in place of three."""

    def text(self) -> str:
        return super().text().replace("#define RESIDENT 3", "#define RESIDENT 4")


def products(device: torch.device, dry: bool, write: Write) -> None:
    """Time the kernels with products of am's graph: Triton's, ours, and ours with more blocks of fewer registers. Medians of seven steps."""
    graph = synth.synthetic("am", 0.001 if dry else 1.0, device)
    p = pairs.Pairs(graph.edge_index, graph.edge_type, graph.count, len(graph.relations))
    more = Resident(**{f.name: getattr(gathered.KERNEL, f.name) for f in dataclasses.fields(gathered.KERNEL)})
    for model in ("rgcn", "rgat"):
        for program, kernel, gathers in (("Triton", gathered.KERNEL, "triton"), ("ours", gathered.KERNEL, "own"), ("ours, four blocks", more, "own")):
            layer = layer_of(model, graph, 64, device)
            layer.options = Options(tuning=Tuning(gathers=gathers))
            x = torch.randn(graph.count, 64, device=device, requires_grad=True)
            run = runs(model, layer, graph, p, False)["ours"][1]
            indices.forget([graph.edge_index, graph.edge_type])
            with patch.object(gathered, "KERNEL", kernel):
                weights = torch.randn_like(run(x).detach())
                step = functools.partial(_step, run, x, weights)
                steps = [each_kernel(step, device) for _ in range(3 if dry else 9)]
            for rows in zip(*steps[2:], strict=True):
                if rows[0]["kernel"] == "whole step" or "ab'" in rows[0]["kernel"]:
                    ms = statistics.median(row["ms"] for row in rows)
                    write({"table": "products", "graph": "am", "model": model, "program": program, "kernel": rows[0]["kernel"], "ms": ms})


def profile(device: torch.device, dry: bool, write: Write) -> None:
    """List what a training step of HGT on am's graph runs on the device, by time: all kernels over rows, of torch and of dense products.

    In the usual program, and with attention in one kernel. `busy` is the sum, `whole step` what the step takes by the clock.
    """
    graph = synth.synthetic("am", 0.001 if dry else 1.0, device)
    layer = layer_of("hgt", graph, 64, device)
    types, _, edges = graph.hetero()
    parts = {kind: torch.randn(n, 64, device=device, requires_grad=True) for kind, n in zip(types, graph.nodes, strict=True)}

    def step() -> None:
        for part in parts.values():
            part.grad = None
        layer.zero_grad(set_to_none=True)
        out = list(layer(parts, edges).values())
        torch.autograd.backward(out, [torch.ones_like(x) for x in out])

    for program, options in (("attention by operations", Options(attend=False)), ("attention in one kernel", Options(attend=True))):
        layer.options = options
        for _ in range(3):
            step()
        ms = Clock(device, 0.2).time(step)[0]
        row = counted(step, device, 40)
        common = {"table": "profile", "graph": "am", "layer": "hgt", "program": program}
        for kernel, (count, busy) in row.pop("kernels").items():
            write({**common, "kernel": kernel, "count": count, "ms": busy})
        write({**common, "kernel": "busy", "count": row["LaunchKernel"], "ms": row["gpu_ms"]})
        write({**common, "kernel": "whole step", "count": 1, "ms": ms})


class Span:
    """What a device does between two events of the current stream; on a CPU nothing is timed."""

    def __init__(self, device: torch.device) -> None:
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if device.type == "cuda" else []

    def __enter__(self) -> Span:
        for event in self.events[:1]:
            event.record()
        return self

    def __exit__(self, *failed: object) -> None:
        for event in self.events[1:]:
            event.record()

    def ms(self) -> float:
        """Return the time after the device was waited for; 0 on a CPU."""
        return float(self.events[0].elapsed_time(self.events[1])) if self.events else 0.0


def each_kernel(function: Callable[[], Any], device: torch.device) -> list[dict[str, Any]]:
    """Return a row for each kernel over rows of one call of `function`, and one for the whole."""
    found: list[tuple[str, Span]] = []
    whole = Runner._run

    def timed(self: Runner, kernel: Kernel, *rest: Any) -> None:
        with Span(device) as span:
            whole(self, kernel, *rest)
        ops = self.schedule.program.ops
        shown = " ".join(f"{ops[i].kind}{ops[i].subscripts}->{ops[i].domain.name}{'*' * (i in kernel.stored)}" for i in kernel.ops)
        found.append((f"{kernel.rows.name}: {shown}", span))

    with mock.patch.object(Runner, "_run", timed):
        with Span(device) as step:
            function()
        wait(device)
    return [{"kernel": name, "ms": span.ms()} for name, span in [*found, ("whole step", step)]]


def _short(row: Row) -> str:
    return " ".join(value if isinstance(value, str) else f"{name}={value}" for name, value in row.items() if "floor" not in name)


PARTS = {"index": same_index, "batch": batch, "small": small, "host": host, "kernels": kernels, "products": products, "profile": profile}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the parts; by default with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--dry", action="store_true")
    args = parser.parse_args(argv)
    device = torch.device("cpu" if args.dry or not torch.cuda.is_available() else "cuda")
    with rows_file(args.out, timed_from(STARTED, _short)) as write:
        for name in args.parts.split(","):
            started = time.time()
            try:
                PARTS[name](device, args.dry, write)
            except Exception as problem:
                write({"table": "failures", "part": name, "note": note_of(problem)})
            print(f"{name}: {time.time() - started:.1f} s", flush=True)


if __name__ == "__main__":
    main()

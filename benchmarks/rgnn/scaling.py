"""A training step of relational layers on one to eight GPUs of one host: time, memory, and the part of it that is communication nobody hides.

    python -m benchmarks.rgnn.scaling --out FOLDER [--gpus 8] [--seconds 500]          # one process a GPU, NCCL
    python -m benchmarks.rgnn.scaling --dry --out FOLDER --gpus 4                      # the same paths on a CPU: gloo, tiny graphs

For 8, 4, 2 and 1 GPUs: RGCN, RGAT and HGT on graphs with the statistics of AM, MAG and wikikg2 (strong scaling: one graph, shared out by
warpwright.domains.rgnn.partition), and `beyond`: RGCN on a graph which fits no single card: up to 1e9 edges between 2e8 nodes, half of that on two
GPUs, or what the cards hold by the peak of a first try with `TRIED` of it. Of its edges nine tenths begin in the process that they end in, as after
a partitioner, and each process draws its own. It is beyond a card where the peaks of all processes together (`peak_gb` each) pass `card_gb`.

The most GPUs come first and have the seconds but for `LATER` for each fewer number of them, which run what they have run: its kernels are compiled
then. A cell that fails in one process ends all of them, and they begin anew after it. One GPU has the plain layer: nothing is shared out.

A step is forward, backward and the sum of the parameters' gradients over the processes; its time is the median of what the slowest process takes.
`exposed` is the share of the step that goes when nothing is sent (rows of others are zeros, gradients are not added up): communication that is not
hidden behind computing. `error`: result and gradient of x against one process that has the whole graph, where every process can hold that.
scaling.svg has the parallel efficiency in per cent, from one GPU on.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist

from benchmarks.rgnn.forward_training import layer_of, of_one_tensor
from warpwright.domains.rgnn import synth
from warpwright.domains.rgnn.nn.rgcn import RGCNConv
from warpwright.domains.rgnn.partition import Part, Parted, sum_gradients
from warpwright.reports import plots

WIDTH, REPEATS = 64, 10
GRAPHS = ("am", "mag", "wikikg2")
BEYOND_NODES, BEYOND_EDGES, BEYOND_RELATIONS, BEYOND_LOCAL = 200_000_000, 1_000_000_000, 64, 0.9
GPUS_BEYOND = 4
"""Two cards have half of the whole. A share of 5e7 nodes and 2.5e8 edges ran out of 150 GB all the same: 320 bytes an edge (80 GB), the edges (10)
and x, the result's gradient and each copy of rows (13 to 16 each). So the size is measured."""
TRIED, HELD = 0.04, 0.75
"""Of the graph, what is tried first; of a card's free memory, what the peak may take by that: the allocator's gaps are the rest."""
LATER = 16.0
"""Seconds that a number of GPUs but the first takes, 10 of them to start."""


class Share:
    """One process' layer, rows and step."""

    def __init__(self, layer: torch.nn.Module, part: Part, x: torch.Tensor) -> None:
        """Take the process' own rows."""
        self.part, self.layer, self.x = part, Parted(layer, part), x.requires_grad_()
        self.weights = torch.randn(x.shape[0], WIDTH, device=x.device, dtype=x.dtype)

    def step(self, add_up: bool = True) -> torch.Tensor:
        """Run forward and backward, add the gradients up, and return the result."""
        self.x.grad = None
        self.layer.zero_grad(set_to_none=True)
        out: torch.Tensor = self.layer(self.x)
        out.backward(self.weights)
        if add_up:
            sum_gradients(self.layer, self.part)
        return out.detach()


def silent(part: Part, x: torch.Tensor, back: bool = False) -> tuple[torch.Tensor, Any, torch.Tensor]:
    """Stand in for `Part.exchange`: the same gathers and memory, nothing sent."""
    rows, of = (x, part.sent) if back else (x.index_select(0, part.rows_sent), part.received)
    return x.new_zeros(sum(of), *x.shape[1:]), SimpleNamespace(wait=lambda: None), rows


def median_ms(step: Callable[[], Any], device: torch.device) -> float:
    """Return the median over steps of the time of the slowest process."""
    times = torch.zeros(REPEATS, device=device)
    for repeat in range(-2, REPEATS):
        dist.barrier()
        wait(device)
        begun = time.perf_counter()
        step()
        wait(device)
        if repeat >= 0:
            times[repeat] = time.perf_counter() - begun
    dist.all_reduce(times, op=dist.ReduceOp.MAX)
    return statistics.median(times.tolist()) * 1e3


def wait(device: torch.device) -> None:
    """Wait for the GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measured(share: Share, device: torch.device) -> dict[str, Any]:
    """Return a row's times and memory; a process' peak counts, the largest of all."""
    share.step()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    row: dict[str, Any] = {"step_ms": median_ms(share.step, device)}
    peak = torch.tensor([torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else 0.0], device=device)
    sent = torch.tensor([sum(share.part.sent) * WIDTH * 4 / 1e9], device=device)
    dist.all_reduce(peak, op=dist.ReduceOp.MAX)
    dist.all_reduce(sent)
    with mock.patch.object(Part, "exchange", silent):
        alone = median_ms(lambda: share.step(add_up=False), device)
    return row | {"silent_ms": alone, "exposed": 1 - alone / row["step_ms"], "peak_gb": peak.item(), "sent_gb_each_way": sent.item()}


def error(share: Share, whole: torch.nn.Module, graph: synth.Synthetic, places: torch.Tensor, x: torch.Tensor, weights: torch.Tensor) -> float:
    """Return the largest relative difference of result and gradient of x from a layer that has the whole graph."""
    share.weights = weights[places]
    out = share.step()
    x = x.clone().requires_grad_()
    if hasattr(whole, "node_types"):
        wanted = of_one_tensor(whole, graph, lacking=True)(x)
    else:
        wanted = whole(x, graph.edge_index, graph.edge_type)
    (gradient,) = torch.autograd.grad(wanted, x, weights)
    assert share.x.grad is not None
    apart = torch.stack([((a - b[places]).norm() / b.norm()).detach() for a, b in ((out, wanted), (share.x.grad, gradient))]).max().reshape(1)
    dist.all_reduce(apart, op=dist.ReduceOp.MAX)
    return float(apart)


def shared_out(name: str, model: str, device: torch.device, scale: float) -> dict[str, Any]:
    """Return the row of one layer on one graph, which every process draws whole and keeps its part of."""
    graph = synth.synthetic(name, scale, device)
    layer = layer_of(model, graph, WIDTH, device)
    part = Part(graph.edge_index, graph.edge_type, graph.nodes)
    every = torch.arange(graph.count, device=device)
    places = torch.cat([every[part.own(kind)] for kind in range(len(graph.nodes))])
    random = torch.Generator(device=device).manual_seed(1)
    x, weights = (torch.randn(graph.count, WIDTH, device=device, generator=random) for _ in range(2))
    share = Share(layer, part, x[places])
    row = {"nodes": graph.count, "edges": graph.edge_type.numel(), "error": error(share, layer, graph, places, x, weights)}
    del graph, x, weights, every
    return row | measured(share, device)


def beyond(device: torch.device, scale: float) -> dict[str, Any]:
    """Return the row of RGCN on a graph of which each process draws the edges into its own nodes."""
    scale *= min(1.0, dist.get_world_size() / GPUS_BEYOND)
    row: dict[str, Any] = {}
    if device.type == "cuda":
        free, peak = tried(device, scale * TRIED)
        fits = torch.tensor([fitting(free, peak)], device=device)
        dist.all_reduce(fits, op=dist.ReduceOp.MIN)
        scale *= fits.item()
        row = {"card_gb": free / 1e9, "tried_gb": peak / 1e9, "size": fits.item()}
    share, nodes, edges = drawn(device, scale)
    return row | {"nodes": nodes, "edges": edges} | measured(share, device)


def fitting(free: int, peak: int) -> float:
    """Return how much of the graph fits in `free` bytes, at most 1, where `TRIED` of it took `peak` bytes: memory is linear."""
    return min(1.0, HELD * free / (peak / TRIED))


def tried(device: torch.device, scale: float) -> tuple[int, int]:
    """Return a card's free bytes, with NCCL's own memory taken, and the most that two steps and what is before them took."""
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    share = drawn(device, scale)[0]
    share.step()
    share.step()
    peak = torch.cuda.max_memory_allocated(device) - before
    del share
    gc.collect()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(device)[0], peak


def drawn(device: torch.device, scale: float) -> tuple[Share, int, int]:
    """Return this process' share of `beyond`, and the nodes and edges of the whole."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    nodes, edges = int(BEYOND_NODES * scale), int(BEYOND_EDGES * scale) // ranks
    first, end = nodes * rank // ranks, nodes * (rank + 1) // ranks
    random = torch.Generator(device=device).manual_seed(rank)
    into, kinds = (torch.randint(high, (edges,), device=device, generator=random) for high in (end - first, BEYOND_RELATIONS))
    local = torch.rand(edges, device=device, generator=random) < BEYOND_LOCAL
    near = torch.randint(end - first, (edges,), device=device, generator=random) + first
    far = torch.randint(nodes, (edges,), device=device, generator=random)
    part = Part(torch.stack([torch.where(local, near, far), into + first]), kinds, [nodes])
    del into, kinds, local, near, far
    if device.type == "cuda":
        torch.cuda.empty_cache()  # of pieces that the edges left, which rows do not fit in
    torch.manual_seed(0)
    layer = RGCNConv(WIDTH, WIDTH, BEYOND_RELATIONS).to(device)
    return Share(layer, part, torch.randn(end - first, WIDTH, device=device)), nodes, edges * ranks


def one_rank(options: argparse.Namespace) -> None:
    """Run the cells of one number of processes; the first process writes the rows, and the first to fail says why."""
    device = torch.device("cpu" if options.dry else f"cuda:{options.rank}")
    if not options.dry:
        torch.cuda.set_device(device)
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo" if options.dry else "nccl", init_method=f"file://{options.store}", rank=options.rank, world_size=options.gpus,
        device_id=None if options.dry else device,
    )  # fmt: skip
    scale = 0.001 if options.dry else 1.0
    for name, model in (cell.split(":") for cell in options.cells.split(",")):
        row = row_of(name, model, options.gpus) | {"device": str(device.type)}
        try:
            row |= beyond(device, scale / 100 if options.dry else scale) if name == "beyond" else shared_out(name, model, device, scale)
        except Exception as problem:  # a cell that does not fit is a row
            row["note"] = f"{type(problem).__name__}: {str(problem)[:500]}"
        if device.type == "cuda":
            torch.cuda.empty_cache()
        if first_to_fail(options.store, name, model) if "note" in row else options.rank == 0:
            write(options.out, row)
        if "note" in row:
            print(options.rank, row["note"], flush=True)
            os._exit(1)  # the others may wait for this process in an exchange: whoever started them ends them all
    dist.destroy_process_group()


def first_to_fail(store: str, name: str, model: str) -> bool:
    """Return whether no other process has failed in a cell yet. The others wait for one that ran out of memory, and its end may take seconds."""
    try:
        Path(f"{store}-{name}-{model}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def cells_of(options: argparse.Namespace) -> list[str]:
    """Return "graph:layer" for each cell, those of most value first."""
    models, (graph, *others) = options.models.split(","), options.graphs.split(",")
    beyond_one = ["beyond:rgcn"] if options.gpus > 1 else []
    return [*(f"{graph}:{model}" for model in models), *beyond_one, *(f"{other}:{model}" for model in models for other in others)]


def row_of(name: str, model: str, gpus: int) -> dict[str, Any]:
    """Return what a row begins with."""
    return {"table": "scaling", "graph": name, "layer": model, "gpus": gpus, "when": time.time()}


def write(folder: Path, row: dict[str, Any]) -> None:
    """Append a row."""
    with (folder / "rows.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps(row), flush=True)


def written(folder: Path, gpus: int, begun: float) -> list[dict[str, Any]]:
    """Return this run's rows of a number of GPUs."""
    file = folder / "rows.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [row for row in rows if row["gpus"] == gpus and row["when"] >= begun]


def processes(options: argparse.Namespace, gpus: int, cells: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start one process a GPU."""
    store = options.out / f".store-{gpus}-{len(cells)}-{os.getpid()}"
    for rank in range(gpus):
        command = [sys.executable, "-m", "benchmarks.rgnn.scaling", "--out", str(options.out), "--gpus", str(gpus), "--rank", str(rank)]
        command += ["--store", str(store), "--cells", ",".join(cells), *(["--dry"] if options.dry else [])]
        yield subprocess.Popen(command, env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"})


def one_count(options: argparse.Namespace, gpus: int, cells: Sequence[str], end: float) -> list[str]:
    """Run cells on a number of GPUs until `end`; return those that have times."""
    begun = time.time()
    while (first := len(written(options.out, gpus, begun))) < len(cells) and time.time() < end:
        running = list(processes(options, gpus, cells[first:]))
        while any(process.poll() is None for process in running) and not any(process.poll() for process in running) and time.time() < end:
            time.sleep(0.2)
        failed = any(process.poll() for process in running)
        time.sleep(1.0 if failed else 0.0)  # the first process may be about to write why
        for process in running:
            process.kill()
            process.wait()
        rows = written(options.out, gpus, begun)
        if failed and (len(rows) == first or "note" not in rows[-1]):
            name, model = cells[len(rows)].split(":")
            write(options.out, row_of(name, model, gpus) | {"note": "a process ended"})
    return [f"{row['graph']}:{row['layer']}" for row in written(options.out, gpus, begun) if "note" not in row]


def until(end: float, later: int) -> float:
    """Return when a number of GPUs has to be done with `later` of them to come: at most half of the time is theirs."""
    left = max(end - time.time(), 0.0)
    return end - min(later * LATER, left / 2)


def efficiency(rows: Sequence[dict[str, Any]]) -> str:
    """Return a picture of each cell's parallel efficiency: the time on one GPU over GPUs times theirs."""
    cells: dict[str, dict[int, float]] = {}
    for row in rows:
        if "step_ms" in row:
            cells.setdefault(f"{row['graph']} {row['layer']}", {})[row["gpus"]] = row["step_ms"]
    lines = [(name, [100 * times[1] / (gpus * times[gpus]) for gpus in sorted(times)]) for name, times in cells.items() if 1 in times]
    return plots.curves(lines, along="GPUs, doubled each time")


def main(argv: Sequence[str] | None = None) -> int:
    """Run every number of GPUs, the most first; 1 if a process failed or was ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gpus", type=int, default=8, help="the most GPUs that are used")
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--models", default="rgcn,rgat,hgt")
    parser.add_argument("--seconds", type=float, default=500.0, help="processes are ended then")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    parser.add_argument("--cells", default="", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    options.out = options.out.absolute()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.rank is not None:
        one_rank(options)
        return 0
    end, right, cells = time.time() + options.seconds, True, cells_of(options)
    counts = [n for n in (8, 4, 2, 1) if n <= options.gpus]
    for number, gpus in enumerate(counts):
        asked = [cell for cell in cells if gpus > 1 or not cell.startswith("beyond")]
        done = one_count(options, gpus, asked, until(end, len(counts) - number - 1))
        right = right and len(done) == len(asked)
        cells = [cell for cell in cells if cell in done]
    if (file := options.out / "rows.jsonl").exists():
        (options.out / "scaling.svg").write_text(efficiency([json.loads(line) for line in file.read_text().splitlines()]))
    return int(not right)


if __name__ == "__main__":
    raise SystemExit(main())

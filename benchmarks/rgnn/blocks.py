"""How much a block of the small graphs' kernels takes: products by node type, rows of pairs, and sums' work list, with other sizes than the usual.

    python -m benchmarks.rgnn.blocks --out FOLDER          # one GPU, about 25 s
    python -m benchmarks.rgnn.blocks --dry --out FOLDER    # the loops alone, on a CPU

`us` is of a launch among twenty, `full` what kinds.FULL is, `each` the pairs of a block of pair_products; `programs` stands for counting.PROGRAMS, by
which tiles are longer or shorter: there forward and step are recorded whole, as in benchmarks.rgnn.choose. Results are compared with the usual ones'.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.rgnn.forward_training import Clock, layer_of
from benchmarks.rgnn.noted import Row, rows_file
from benchmarks.rgnn.steps import step_of
from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn import synth
from warpwright.domains.rgnn.emit.own import kinds, products
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.nn.launches import AFTER
from warpwright.domains.rgnn.sorting import counting
from warpwright.rgnn import captured

GRAPHS = ("aifb", "mutag", "fb15k", "bgs")
FULLS, EACH, LISTS = (200, 300, 396, 600, 800, 1200, 2400), (64, 128, 192, 256, 384, 512), (512, 1024, 2048, 4096)
LAYERS = ("bgs/rgcn", "fb15k/rgcn", "bgs/rgat", "bgs/hgt")

def us(function: Callable[[], Any], calls: int = 20) -> float:
    """Return microseconds of the device for a call among several."""
    if not torch.cuda.is_available():
        function()
        return 0.0
    times = []
    for _ in range(3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        graph = torch.cuda.CUDAGraph()
        function()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                function()
        graph.replay()
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / calls * 1e3)
    return min(times)


def by_kind(name: str, graph: synth.Synthetic, device: torch.device) -> Iterator[Row]:
    """Give the rows of products by node type: of one weight, as a root's, and of HGT's launches."""
    counts, rows = tuple(graph.nodes), graph.count
    x, moved, weight, bias = (torch.randn(shape, device=device) for shape in ((rows, 64), (rows, 64), (64, 64), (64,)))
    three, start = torch.randn(len(counts), 192, 64, device=device), torch.randn(len(counts), 192, device=device)
    square, gates = torch.randn(len(counts), 64, 64, device=device), torch.randn(len(counts), device=device)
    parts, out = [torch.randn(rows, 64, device=device) for _ in range(3)], torch.empty(rows, 64, device=device)
    usual = kinds.kinds(x, counts, 64)
    if usual is None:
        return
    for full in FULLS:
        own = replace(usual, full=full)
        launches: dict[str, Callable[[], Any]] = {
            "one weight": lambda full=full: kinds.multiplied(usual.launches[0], x, weight, bias, out, full),  # type: ignore[misc]
            "products": lambda own=own: own.products(x, three, start, 3), "sums": lambda own=own: own.sums(parts, three),  # type: ignore[misc]
            "mixed": lambda own=own: own.mixed(x, moved, square, start[:, :64].contiguous(), gates),  # type: ignore[misc]
            "unmixed": lambda own=own: own.unmixed(x, moved, out, square, gates),  # type: ignore[misc]
        }  # fmt: skip
        for what, launch in launches.items():
            yield {"table": "blocks", "graph": name, "what": what, "full": full, "us": us(launch)}


def of_pairs(name: str, graph: synth.Synthetic, device: torch.device) -> Iterator[Row]:
    """Give the rows of pair_products, for HGT's keys and values at once."""
    index = Index(graph.edge_index[0], graph.edge_index[1], graph.edge_type, graph.count, graph.count, len(graph.relations))
    sides = [products.Side(torch.randn(graph.count, 64, device=device), torch.randn(len(graph.relations), 64, 64, device=device)) for _ in range(2)]
    launch = products.KERNEL.launcher(device)
    if launch is None:
        return
    wanted = products.computed(launch, index, sides)
    for each in EACH:
        same = all(torch.equal(a, b) for a, b in zip(products.computed(launch, index, sides, each), wanted, strict=True))
        took = us(lambda each=each: products.computed(launch, index, sides, each))  # type: ignore[misc]
        yield {"table": "blocks", "graph": name, "what": "pair_products", "each": each, "us": took, "same": same}


def of_lists(cell: str, clock: Clock, dry: bool) -> Iterator[Row]:
    """Give the rows of a layer whose work lists are for other numbers of programs."""
    name, model = cell.split("/")
    graph = synth.synthetic(name, 0.002 if dry else 1.0, clock.device)
    layer = layer_of(model, graph, 64, clock.device)
    _, step, _ = step_of(model, layer, graph, clock.device)
    text, wanted = counting.text(), None
    for programs in LISTS:
        usual = f"#define PROGRAMS {counting.PROGRAMS}\n"
        assert usual in text
        mine = text.replace(usual, f"#define PROGRAMS {programs}\n")
        with patch.object(counting, "PROGRAMS", programs), patch.object(counting, "text", lambda mine=mine: mine):
            for cache in (counting._loaded, counting.layout):
                cache.cache_clear()
            indices._KEPT.clear()
            indices._FORGOTTEN[0] += 1
            whole, forward = (captured(layer, step) for _ in range(2))
            for _ in range(AFTER + 3):
                whole()
                with torch.no_grad():
                    seen = forward()
            seen = seen[0] if isinstance(seen, tuple) else seen
            wanted = seen if wanted is None else wanted
            row: Row = {"table": "blocks", "graph": name, "what": model, "programs": programs, "training_ms": clock.time(whole)[0]}
            with torch.no_grad():
                row["forward_ms"] = clock.time(forward)[0]
            yield row | {"apart": float((seen - wanted).norm() / wanted.norm())}
    for cache in (counting._loaded, counting.layout):
        cache.cache_clear()


def main(argv: Sequence[str] | None = None) -> None:
    """Time all, and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=25.0, help="nothing is begun later")
    parser.add_argument("--dry", action="store_true")
    args = parser.parse_args(argv)
    end, device = time.time() + args.seconds, torch.device("cpu" if args.dry or not torch.cuda.is_available() else "cuda", 0)
    torch.backends.cuda.matmul.allow_tf32 = False
    clock = Clock(device, 0.001 if args.dry else 0.03)
    with rows_file(args.out) as write:

        def rows() -> Iterator[Row]:
            for cell in LAYERS[:2]:
                yield from of_lists(cell, clock, args.dry)
            for name in GRAPHS:
                graph = synth.synthetic(name, 0.002 if args.dry else 1.0, device)
                yield from by_kind(name, graph, device)
                yield from of_pairs(name, graph, device)
            for cell in LAYERS[2:]:
                yield from of_lists(cell, clock, args.dry)

        for row in rows():
            write(row)
            if time.time() > end:
                break


if __name__ == "__main__":
    main()

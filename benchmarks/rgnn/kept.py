"""Whether what is kept between calls is told apart on a GPU: machine code by types, indices by edges, answers by threads, contexts of threads.

    python -m benchmarks.rgnn.kept --out FOLDER          # one GPU, about 15 s, of which compilers take most; no times
    python -m benchmarks.rgnn.kept --dry --out FOLDER    # the edges' part on a CPU

A row a check: `wrong` is how many of `asked` answers are not what torch, or a copy of the layer on a CPU, gives.
"""

from __future__ import annotations

import argparse
import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.rgnn.noted import noted, rows_file
from warpwright.domains.rgnn.emit.own import kinds
from warpwright.domains.rgnn.emit.triton import direct
from warpwright.domains.rgnn.nn.common import typed_index
from warpwright.rgnn import HGTConv, RGCNConv

Answers = Iterator[bool]
THREADS, BATCHES = 8, 20
TYPES = 40
"""Edge types of a graph that is known at one look."""


def types_of_launches(device: torch.device) -> Answers:
    """The same Triton function of the same numbers for other types, in turn."""
    import triton
    import triton.language as tl

    @triton.jit  # type: ignore[untyped-decorator]
    def moved(x: Any, y: Any, count: Any, SIZE: tl.constexpr) -> None:
        at = tl.arange(0, SIZE)
        tl.store(y + at, tl.load(x + at, mask=at < count), mask=at < count)

    kinds_of_rows = (torch.float32, torch.float64, torch.bfloat16, torch.int32)
    for of_x, of_y in [(a, b) for a in kinds_of_rows for b in kinds_of_rows] * 2:
        x, y = torch.arange(64, device=device).to(of_x), torch.zeros(64, dtype=of_y, device=device)
        direct.launch(lambda: moved, "moved", 1, [x, y], [64], [0], SIZE=64, num_warps=1)
        yield torch.equal(y.double(), x.double())


def answers_of_threads(device: torch.device) -> Answers:
    """Indices of random batches by threads with streams of their own, of which each ends while others ask: the numbers of pairs."""
    found: list[bool] = []

    def ask(seed: int) -> None:
        random = torch.Generator(device=device).manual_seed(seed)
        with torch.cuda.stream(torch.cuda.Stream(device)):
            for _ in range(BATCHES - seed):
                edges, types = (torch.randint(most, shape, generator=random, device=device) for most, shape in ((3000, (2, 20000)), (9, (20000,))))
                torch.cuda.current_stream(device).synchronize()
                index = typed_index(edges, types, 3000, 3000, 9)
                wanted = [torch.unique(types * 3000 + ends).numel() for ends in (edges[1], edges[0])]
                found.append([index.rows[domain] for domain in list(index.rows)[-2:]] == wanted)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield from found
    yield len(found) == sum(BATCHES - seed for seed in range(THREADS))


def threads_without_contexts(device: torch.device) -> Answers:
    """A thread whose first launch is ours."""
    x, weight, out = torch.randn(70, 64, device=device), torch.randn(64, 64, device=device), torch.empty(70, 64, device=device)
    launch = kinds._launches(device)
    assert launch is not None, "the kernels are not used here"
    failed: list[str] = []

    def run() -> None:
        try:
            kinds.multiplied(launch[0], x, weight, None, out)
        except Exception as problem:
            failed.append(str(problem))

    for _ in range(5):
        out.zero_()
        torch.cuda.synchronize()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        torch.cuda.synchronize()
        exact = x.double() @ weight.double()
        yield not failed and bool((out.double() - exact).norm() <= 1e-5 * exact.norm())


def edges_at_one_look(device: torch.device) -> Answers:
    """HGT on a graph of many edge types and RGCN, whose edges are written in place, given other memory and exchanged."""
    torch.manual_seed(0)
    metadata = ["a", "b"], [("a", f"to{number}", "b") for number in range(TYPES)]
    rows = {kind: torch.randn(90, 16, device=device) for kind in metadata[0]}
    edges = {kind: torch.randint(90, (2, 120), device=device) for kind in metadata[1]}
    layer, one = HGTConv(16, 16, metadata).to(device), RGCNConv(16, 16, 3).to(device)
    types, last = torch.randint(3, (120,), device=device), metadata[1][-1]

    def right() -> bool:
        with torch.no_grad():
            own = layer(rows, edges)["b"].cpu(), one(rows["a"], edges[last], types).cpu()
            there = {kind: x.cpu() for kind, x in rows.items()}, {kind: e.cpu().clone() for kind, e in edges.items()}
            wanted = copy.deepcopy(layer).cpu()(*there)["b"], copy.deepcopy(one).cpu()(there[0]["a"], there[1][last], types.cpu().clone())
        return all(bool((a - b).norm() <= 1e-5 * b.norm()) for a, b in zip(own, wanted, strict=True))

    def exchanged() -> None:
        edges[last] = torch.randint(90, (2, 120), device=device)

    changes: list[Callable[[], Any]] = [
        lambda: None, lambda: edges[last].random_(90), lambda: edges[last][:, :5].fill_(3), exchanged,
        lambda: setattr(edges[last], "data", torch.randint(90, (2, 120), device=device)),
        lambda: setattr(edges[last], "data", edges[last].data.clone().random_(90)),
        lambda: setattr(edges[last], "data", edges[last].data.flip(1)),
    ]  # fmt: skip
    for change in changes * 3:
        change()
        for _ in range(2):
            yield right()


CHECKS: dict[str, Callable[[torch.device], Answers]] = {
    f.__name__: f for f in (edges_at_one_look, types_of_launches, answers_of_threads, threads_without_contexts)
}


def _counted(check: Callable[[torch.device], Answers], device: torch.device) -> dict[str, Any]:
    answers = list(check(device))
    return {"asked": len(answers), "wrong": answers.count(False)}


def main(argv: Sequence[str] | None = None) -> None:
    """Ask all; by default with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry", action="store_true")
    args = parser.parse_args(argv)
    device = torch.device("cpu" if args.dry or not torch.cuda.is_available() else "cuda")
    with rows_file(args.out) as write:
        for name, check in CHECKS.items():
            if device.type == "cpu" and check is not edges_at_one_look:
                continue
            noted(write, {"table": "kept", "check": name}, partial(_counted, check, device))


if __name__ == "__main__":
    main()

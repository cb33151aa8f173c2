"""What a layer's call launches on a GPU and asks of torch, counted without one, and the processor time of a replayed call.

    python -m benchmarks.rgnn.launches --out FOLDER            # aifb and mutag, three layers, about a minute on a CPU
    python -m benchmarks.rgnn.launches --dry --out FOLDER      # tiny graphs

The program is the GPU's: the same plan, the same schedule of kernels over rows, the same calls of torch between them, on tensors of the CPU.
Kernels over rows are counted and not run, so results are of no use. Each call of torch that is no view and gives no bare memory is one launch or
more: a concatenation takes one for each 128 tensors, `_foreach_` one for each 64, a product and all else one. Backward is counted with the gradients
of x and of all parameters and their accumulation; an optimiser is not.

`calls`: all that torch is asked for, views and memory included; `host_us`: processor time of one call that is replayed (docs/rgnn.md, "Small
graphs"), without the launches, least of a few rounds. `nothing`: a node of autograd that gives every parameter a gradient of one
piece of memory, the least that such a step takes.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.rgnn.breakdown import Filled
from benchmarks.rgnn.forward_training import layer_of
from benchmarks.rgnn.noted import rows_file
from warpwright.domains.rgnn import plan, synth
from warpwright.domains.rgnn.emit.gpu import Rows
from warpwright.domains.rgnn.emit.launch import Runner
from warpwright.domains.rgnn.nn import replay
from warpwright.domains.rgnn.nn.launches import AFTER
from warpwright.domains.rgnn.nn.replay import Replays
from warpwright.domains.rgnn.plan import Options

NARROW = 8
"""Width of the layers whose host time is taken, on a fiftieth of the graph: copies are no part of it."""
MEMORY = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided")
VIEWS = frozenset({
    "alias", "as_strided", "detach", "expand", "lift_fresh", "permute", "select", "set_", "slice", "split", "split_with_sizes", "squeeze", "t",
    "transpose", "unbind", "unsqueeze", "view", "_reshape_alias", "_unsafe_view", "unfold", "diagonal", "_local_scalar_dense", "is_pinned",
})  # fmt: skip
KINDS = {
    "products": ("mm", "addmm", "addmm_", "bmm", "mv", "dot", "baddbmm", "_sparse_mm"),
    "copies": ("clone", "copy_", "_to_copy", "cat", "stack", "repeat", "_foreach_copy_", "index_select", "gather", "contiguous"),
    "fills": ("fill_", "zero_", "zeros", "new_zeros", "ones", "new_ones", "zeros_like", "ones_like", "full", "new_full", "index_fill_", "arange"),
    "sums": ("sum", "index_add_", "scatter_reduce_", "scatter_add_", "amax"),
}
"""What torch's launches are for; all else is arithmetic on elements."""


def kind_of(name: str) -> str:
    """Return the kind of a call of torch by its name."""
    return next((kind for kind, names in KINDS.items() if name in names), "elements")


class Counted(TorchDispatchMode):
    """Counts calls of torch by name, and the launches that they take."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.launches: Counter[str] = Counter()
        self.names: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.overloadpacket.__name__
        self.calls["calls"] += 1
        if name in MEMORY:
            self.calls["memory"] += 1
        elif name in VIEWS:
            self.calls["views"] += 1
        else:
            each = 128 if name in {"cat", "stack"} else 64 if name.startswith("_foreach") else 0
            launches = -(-len(args[0]) // each) if each else 1
            self.launches[kind_of(name)] += launches
            self.names[name] += launches
        return function(*args, **(kwargs or {}))


@contextlib.contextmanager
def of_gpu(counter: Counter[str]) -> Iterator[None]:
    """Have layers take the GPU's programs; their kernels over rows are counted and not run."""

    def launch(self: Rows, *rest: Any) -> None:
        counter["rows"] += 1

    with patch.object(plan, "emitter_for", lambda *rest: "gpu"), patch.object(Rows, "launch", launch), patch.object(Rows, "zero", Runner.zero):
        yield


class Still:
    """Stands for a recorded CUDA graph: `out` is there, and a replay does nothing."""

    def __init__(self, function: Callable[[], list[torch.Tensor]], pool: Any = None) -> None:
        self.out = [x.detach().clone() for x in function()]

    def replay(self) -> None:
        """Launch nothing."""


@contextlib.contextmanager
def standing_still() -> Iterator[None]:
    """Have recorded calls launch nothing."""
    instead = {"capture": Still, "warm": lambda function: function(), "suitable": lambda features: True}
    with contextlib.ExitStack() as stack:
        for name, stand_in in instead.items():
            stack.enter_context(patch.object(replay, name, stand_in))
        yield


class Calls:
    """Forward and training step of one layer on one graph, on what it takes: a tensor, or rows of each node type."""

    def __init__(self, name: str, model: str, scale: float, width: int = 64) -> None:
        graph = synth.synthetic(name, scale, torch.device("cpu"))
        self.given: tuple[Any, ...]
        self.layer: Any = layer_of(model, graph, width, torch.device("cpu"))
        if model == "hgt":
            types, _, edges = graph.hetero()
            rows = {kind: torch.randn(n, width, requires_grad=True) for kind, n in zip(types, graph.nodes, strict=True)}
            self.leaves, self.given = list(rows.values()), (rows, edges)
        else:
            x = torch.randn(graph.count, width, requires_grad=True)
            self.leaves, self.given = [x], (x, graph.edge_index, graph.edge_type)
        with torch.no_grad(), of_gpu(Counter()):
            self.gradients = [torch.ones_like(x) for x in self.results()]

    def results(self) -> list[torch.Tensor]:
        """Return the layer's results."""
        out = self.layer(*self.given)
        return list(out.values()) if isinstance(out, dict) else [out]

    def forward(self) -> None:
        """Run a forward without gradients."""
        with torch.no_grad():
            self.results()

    def clear(self) -> None:
        """Let go of gradients."""
        for x in (*self.leaves, *self.layer.parameters()):
            x.grad = None

    def step(self) -> None:
        """Run forward and backward."""
        torch.autograd.backward(self.results(), self.gradients)

    def nothing(self) -> None:
        """Run a step that computes nothing, with a gradient for each parameter."""
        x, parameters = self.leaves[0], list(self.layer.parameters())
        if not hasattr(self, "flat"):
            self.flat = torch.zeros(sum(p.numel() for p in parameters))
        Filled.apply(x, self.flat, *parameters).backward(x.detach())


def counts(calls: Calls, what: str, replayed: bool) -> dict[str, int]:
    """Return the counts of one call."""
    rows: Counter[str] = Counter()
    with of_gpu(rows), standing_still():
        calls.layer.options, calls.layer.replays = Options(replay=replayed), Replays()
        run = getattr(calls, what)
        for _ in range(AFTER + 3):  # what is kept beside the graph is made, and recorded calls are recorded
            calls.clear()
            run()
        calls.clear()
        rows.clear()
        with Counted() as mode:
            run()
    found = {"launches": sum(mode.launches.values()) + rows["rows"], "rows": rows["rows"]}
    found |= {kind: mode.launches[kind] for kind in (*KINDS, "elements")}
    return found | {"memory": mode.calls["memory"], "calls": mode.calls["calls"], "names": dict(mode.names.most_common())}  # type: ignore[dict-item]


def host_us(calls: Calls, what: str, rounds: int) -> float:
    """Return the processor time of one replayed call in microseconds, least of `rounds`."""
    with of_gpu(Counter()), standing_still():
        calls.layer.options, calls.layer.replays = Options(replay=True), Replays()
        run, found = getattr(calls, what), []
        for turn in range(AFTER + 3 + rounds):
            spent = 0.0
            for _ in range(1 if turn < AFTER + 3 else 10):
                calls.clear()
                began = time.process_time()
                run()
                spent += time.process_time() - began
            found.append(spent / 10)
        return min(found[AFTER + 3 :]) * 1e6


def main(argv: Sequence[str] | None = None) -> None:
    """Count, and print and write rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--graphs", default="aifb,mutag")
    parser.add_argument("--models", default="rgcn,rgat,hgt")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--dry", action="store_true", help="tiny graphs")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    with rows_file(args.out) as write:
        for graph in args.graphs.split(","):
            for model in args.models.split(","):
                calls, narrow = Calls(graph, model, 0.05 if args.dry else 1.0), Calls(graph, model, 0.02, NARROW)
                for what in ("forward", "step"):
                    row = {"table": "launches", "graph": graph, "layer": model, "what": what, "parameters": len(list(calls.layer.parameters()))}
                    replayed = counts(calls, what, True)
                    row |= counts(calls, what, False) | {f"replayed {name}": replayed[name] for name in ("launches", "calls")}
                    row["host us"] = round(host_us(narrow, what, args.rounds))
                    row["nothing us"] = round(host_us(narrow, "nothing", args.rounds)) if what == "step" else ""
                    write(row)


if __name__ == "__main__":
    main()

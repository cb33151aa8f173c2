"""Training steps of small graphs recorded whole (warpwright.rgnn.captured), beside the same step by launches and by recorded layers.

    python -m benchmarks.rgnn.steps --out FOLDER            # one GPU, at most --seconds (15)
    python -m benchmarks.rgnn.steps --graphs am --attend --out FOLDER     # a large graph, HGT's attention in one kernel
    python -m benchmarks.rgnn.steps --longest 64 --out FOLDER    # chunks of as many edges as large graphs have
    python -m benchmarks.rgnn.steps --dry --out FOLDER      # the same paths on a CPU, tiny graphs, where nothing is recorded

A step is zero_grad, forward and backward of one layer, HGT by node type. `error`: the largest relative difference of result and gradients from those
of a first step by launches, in float32 too and with HGT's attention by operations, and `error_in` where it is. Parameters of many parts are one
vector: the gradient of a single number (a relation's prior) may cancel to nothing. `forward_ms` is a forward recorded the same way.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.rgnn.forward_training import Clock, error, layer_of
from benchmarks.rgnn.noted import note_of, rows_file, timed_from
from warpwright.domains.rgnn import synth, tensors
from warpwright.domains.rgnn.emit.triton.tuning import DEFAULT, Tuning
from warpwright.domains.rgnn.nn.launches import AFTER
from warpwright.domains.rgnn.plan import Options
from warpwright.domains.rgnn.sorting import counting
from warpwright.rgnn import captured

Results = tuple[torch.Tensor, ...]


def step_of(
    model: str, layer: Any, graph: synth.Synthetic, device: torch.device
) -> tuple[list[torch.Tensor], Callable[[], Results], list[torch.Tensor]]:
    """Return the leaves that get gradients, forward and backward of a layer on a graph (without gradients only forward), and what backward is given.

    The last as long as the leaves: a node type that gets no edges has no result, and its part is not used.
    """
    types, _, edges = graph.hetero()
    sizes = graph.nodes if model == "hgt" else (graph.count,)
    leaves = [torch.randn(n, 64, device=device, requires_grad=True) for n in sizes]
    weights = [torch.randn_like(x) for x in leaves]

    def step() -> Results:
        for x in leaves:
            x.grad = None
        layer.zero_grad(set_to_none=True)
        if model == "hgt":
            out = layer(dict(zip(types, leaves, strict=True)), edges)
            pairs = [(out[kind], w) for kind, w in zip(types, weights, strict=True) if kind in out]
        else:
            pairs = [(layer(leaves[0], graph.edge_index, graph.edge_type), weights[0])]
        if torch.is_grad_enabled():
            torch.autograd.backward([x for x, _ in pairs], [w for _, w in pairs])
        return tuple(x.detach() for x, _ in pairs)

    return leaves, step, weights


def seen(layer: Any, leaves: Sequence[torch.Tensor], results: Results) -> dict[str, torch.Tensor]:
    """Return results and gradients, for `error`."""
    grouped = {
        "out": [x.double().flatten() for x in results],
        "x": [(torch.zeros_like(x) if x.grad is None else x.grad).double().flatten() for x in leaves],
    }
    for name, x in layer.named_parameters():
        if x.grad is not None:
            grouped.setdefault(name.split(".")[0], []).append(x.grad.double().flatten())
    return {name: torch.cat(parts) for name, parts in grouped.items()}


LABELS = ("launches", "recorded layers", "recorded whole")


def rows(
    name: str, model: str, clock: Clock, scale: float, attend: bool = False, labels: Sequence[str] = LABELS, tuning: Tuning = DEFAULT
) -> list[dict[str, Any]]:
    """Return the times of one layer on one graph."""
    graph = synth.synthetic(name, scale, clock.device)
    layer = layer_of(model, graph, 64, clock.device)
    leaves, step, _ = step_of(model, layer, graph, clock.device)
    layer.options = Options(attend=False)
    common = {"table": "steps", "graph": name, "layer": model, "attend": attend, "longest": counting.SHORT}
    common |= {"many": tuning.many, "doubles": tuning.doubles}
    wanted = {key: x.clone() for key, x in seen(layer, leaves, step()).items()}
    found = []
    for label in labels:
        layer.options = Options(replay=label == "recorded layers", attend=attend or None, tuning=tuning)
        whole: Any = captured(layer, step) if label == "recorded whole" else step

        def forward(whole: Any = whole) -> Any:
            with torch.no_grad():
                return whole()

        for _ in range(AFTER + 3):
            results = whole()
        apart, where = error(seen(layer, leaves, results), wanted)
        row = common | {"implementation": label, "error": apart, "error_in": where}
        row["recorded"] = getattr(whole, "recorded", None) is not None
        row["training_ms"], row["training_gb"] = clock.time(whole)
        whole = captured(layer, step) if label == "recorded whole" else step
        for _ in range(AFTER + 3):
            forward(whole)
        row["forward_ms"] = clock.time(lambda whole=whole: forward(whole))[0]  # type: ignore[misc]
        found.append(row)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Time each layer on each graph."""
    started = time.time()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--graphs", default="aifb,mutag")
    parser.add_argument("--models", default="hgt,rgat,rgcn")
    parser.add_argument("--attend", action="store_true", help="with Options(attend=True)")
    parser.add_argument("--whole", action="store_true", help="recorded whole alone")
    parser.add_argument("--longest", type=int, default=counting.SHORT, help="edges of a chunk in a small graph")
    parser.add_argument("--many", type=int, default=DEFAULT.many, help="pairs from which a small graph has the large graphs' kernels")
    parser.add_argument("--float32", action="store_true", help="scores of a softmax in float32")
    parser.add_argument("--seconds", type=float, default=15.0, help="nothing is begun later")
    parser.add_argument("--dry", action="store_true", help="tiny graphs on the CPU")
    args = parser.parse_args(argv)
    device = torch.device("cpu" if args.dry or not torch.cuda.is_available() else "cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    counting.SHORT = args.longest  # read when a graph's index is made
    tuning = Tuning(many=args.many, doubles=not args.float32)
    clock = Clock(device, 0.01 if args.dry else 0.1)
    tensors.awaited(torch.empty(0, device=device), 30.0)
    started = time.time()
    with rows_file(args.out, timed_from(started)) as write:
        for model in args.models.split(","):
            for name in args.graphs.split(","):
                if time.time() - started > args.seconds:
                    continue
                try:
                    scale = 0.05 * 1e4 / sum(synth.SPECS[name].nodes) if args.dry else 1.0
                    found = rows(name, model, clock, scale, args.attend, LABELS[2:] if args.whole else LABELS, tuning)
                except Exception as problem:
                    found = [{"table": "failures", "graph": name, "layer": model, "note": note_of(problem)}]
                for row in found:
                    write(row)


if __name__ == "__main__":
    main()

"""Why RGAT's gradient of q errs by more than 1e-5 on some graphs: scores so near to zero that float32 and float64 take other sides of leaky_relu.

    python -m benchmarks.rgnn.kinks --out FOLDER          # one GPU, about 15 s
    python -m benchmarks.rgnn.kinks --dry --out FOLDER    # the same paths on a CPU, tiny graphs

Errors of ours and of torch.pairs in float32, against float64 as it is, and against float64 that takes the slopes of float32's scores.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.rgnn import pairs
from benchmarks.rgnn.forward_training import Clock, gradients, layer_of
from benchmarks.rgnn.noted import rows_file, timed_from
from warpwright.domains.rgnn import synth


def scores(p: pairs.Pairs, layer: Any, x: torch.Tensor) -> torch.Tensor:
    """Return the score of each edge before leaky_relu."""
    of_target, of_source = (torch.einsum("rio,oh->rih", layer.weight, v) for v in (layer.q, layer.k))
    q = pairs.ByRelation.apply(x[p.target], of_target, p.target_start)[:, 0]
    return q[p.target_of] + pairs.ByRelation.apply(x[p.source], of_source, p.source_start)[:, 0][p.source_of]


def rgat(p: pairs.Pairs, layer: Any, x: torch.Tensor, positive: torch.Tensor | None) -> torch.Tensor:
    """Return `pairs.rgat`; `positive` says which scores are taken for positive, None: those that are."""
    score = scores(p, layer, x)
    slope = layer.negative_slope
    score = F.leaky_relu(score, slope) if positive is None else torch.where(positive, score, slope * score)
    h = pairs.Aggregate.apply(x, pairs.softmax(score, p.dst, p.nodes), p)
    return pairs.PairSum.apply(pairs.ByRelation.apply(h, layer.weight, p.target_start), p) + layer.bias


def errors(seen: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> dict[str, float]:
    """Return the relative error of each gradient."""
    return {name: float((seen[name].double() - value).norm() / value.norm()) for name, value in wanted.items() if name in seen}


def compared(name: str, device: torch.device, dry: bool, clock: Clock) -> Iterator[dict[str, Any]]:
    """Yield the errors on one graph."""
    graph = synth.synthetic(name, 0.01 if dry else 1.0, device)
    p = pairs.Pairs(graph.edge_index, graph.edge_type, graph.count, len(graph.relations))
    layer = layer_of("rgat", graph, 64, device)
    x, weights = (torch.randn(graph.count, 64, device=device) for _ in range(2))
    wide: Any = layer_of("rgat", graph, 64, device).double()
    wide.load_state_dict(layer.state_dict())
    with torch.no_grad():
        positive, of_wide = scores(p, layer, x) > 0, scores(p, wide, x.double())
        flipped = positive != (of_wide > 0)
        row: dict[str, Any] = {"table": "kinks", "graph": name, "edges": p.edges, "scores_of_another_sign": int(flipped.sum())}
        row["largest_of_them"] = float(of_wide[flipped].abs().max()) if bool(flipped.any()) else 0.0
    del of_wide
    seen = {"ours": gradients(layer, lambda x: layer(x, graph.edge_index, graph.edge_type), x, weights)}
    seen["torch.pairs"] = gradients(layer, lambda x: rgat(p, layer, x, None), x, weights)
    for against, chosen in (("float64", None), ("float64, float32's slopes", positive)):
        wanted = gradients(wide, functools.partial(rgat, p, wide, positive=chosen), x.double(), weights)
        for program, got in seen.items():
            yield row | {"program": program, "against": against, **{f"error_{k}": v for k, v in errors(got, wanted).items()}}
        del wanted
        clock.clean()


def main(argv: Sequence[str] | None = None) -> None:
    """Compare on each graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--graphs", default="wikikg2,mag,am")
    parser.add_argument("--seconds", type=float, default=20.0, help="nothing is begun later")
    parser.add_argument("--dry", action="store_true")
    args = parser.parse_args(argv)
    started, device = time.time(), torch.device("cpu" if args.dry or not torch.cuda.is_available() else "cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    clock = Clock(device, 0.0)
    with rows_file(args.out, timed_from(started)) as write:
        for name in args.graphs.split(","):
            if time.time() - started > args.seconds:
                break
            for row in compared(name, device, args.dry, clock):
                write(row)
            clock.clean()


if __name__ == "__main__":
    main()

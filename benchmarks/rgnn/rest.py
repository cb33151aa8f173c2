"""What is still to be measured on a GPU, in one command; each part in a folder of its own, and a part that fails is recorded.

    python -m benchmarks.rgnn.rest --out FOLDER                # one GPU, about 200 s; --parts names some of them
    python -m benchmarks.rgnn.rest --dry --out FOLDER          # the same paths on a CPU, tiny graphs

small     aifb, mutag, bgs, fb15k with the kernels of today, 45 s
large     am, mag, wikikg2, biokg with the kernels of today, 45 s
apart     wikikg2, biokg and mag with sums of rows in kernels of their own and in those of the products, 25 s
wide      all eight graphs at d = 256: times and peaks, no check, 60 s
wide_first, wide_large  some of them, checked, 20 s each
small_hgt HGT on aifb and mutag at d = 64, 10 s
today_large, today_small, today_apart  the same for a short run, HGT without torch.pairs, 60 s together
sampled   sampled batches with their index, 3 s
batches   sampled batches with their index, and adversarial graphs, 15 s
compiled  a model of three layers under torch.compile, one graph, beside the same model without, 20 s
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.rgnn import batches, forward_training
from benchmarks.rgnn.forward_training import Clock
from benchmarks.rgnn.noted import note_of, rows_file
from warpwright.domains.rgnn import synth
from warpwright.rgnn import RGATConv, RGCNConv

Part = Callable[[Path, list[str]], None]


def timing(*arguments: str) -> Part:
    """Return a part that runs benchmarks.rgnn.forward_training."""
    return lambda out, dry: forward_training.main([*arguments, "--out", str(out), *dry])


def compiled(out: Path, dry: list[str]) -> None:
    """Time a training step of a model with and without torch.compile."""
    device = torch.device("cpu" if dry or not torch.cuda.is_available() else "cuda")
    graph = synth.synthetic("fb15k", 0.02 if dry else 1.0, device)
    relations = len(graph.relations)
    torch.manual_seed(0)
    first, second, third = RGCNConv(64, 64, relations).to(device), RGATConv(64, 64, relations).to(device), RGCNConv(64, 16, relations).to(device)
    x = torch.randn(graph.count, 64, device=device, requires_grad=True)
    parameters = [x, *first.parameters(), second.weight, second.q, second.k, *third.parameters()]

    def model(x: torch.Tensor, edge_index: torch.Tensor, edge_type: torch.Tensor) -> torch.Tensor:
        hidden = torch.nn.functional.layer_norm(first(x, edge_index, edge_type), (64,)).relu()
        return third(torch.nn.functional.gelu(second(hidden, edge_index, edge_type)), edge_index, edge_type).log_softmax(1)

    clock = Clock(device, 0.01 if dry else 0.5)
    whole = torch.compile(model, fullgraph=True, backend="aot_eager" if dry else "inductor")

    def step(function: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
        loss = function(x, graph.edge_index, graph.edge_type).square().mean()
        return list(torch.autograd.grad(loss, parameters))

    wanted = step(model)
    with rows_file(out) as write:
        for name, function in (("as it is", model), ("torch.compile", whole)):
            pairs = zip(step(function), wanted, strict=True)
            row = {"table": "compiled", "model": name, "difference": max(float((a - b).norm() / b.norm().clamp(min=1e-12)) for a, b in pairs)}
            row["training_ms"] = clock.time(functools.partial(step, function))[0]
            write(row)


PARTS: dict[str, Part] = {
    "small": timing("--graphs", "aifb,mutag,bgs,fb15k", "--each", "0.1", "--seconds", "45"),
    "large": timing("--graphs", "am,mag,wikikg2,biokg", "--each", "0.1", "--seconds", "50"),
    "apart": timing(
        "--graphs", "wikikg2,biokg,mag", "--models", "rgcn,rgat", "--variants", "--only", "sums", "--no-check", "--each", "0.1", "--seconds", "25"
    ),
    "wide": timing("--dim", "256", "--no-check", "--each", "0.1", "--seconds", "60"),
    "wide_first": timing("--dim", "256", "--graphs", "aifb", "--each", "0.05", "--seconds", "20"),
    "wide_large": timing("--dim", "256", "--graphs", "am,mag,fb15k", "--models", "rgcn,rgat", "--each", "0.05", "--seconds", "12"),
    "small_hgt": timing("--graphs", "aifb,mutag", "--models", "hgt", "--each", "0.05", "--seconds", "8"),
    "today_large": timing("--graphs", "mag,wikikg2,am", "--own", "hgt", "--each", "0.05", "--seconds", "28"),
    "today_apart": timing(
        "--graphs", "wikikg2,am", "--models", "rgat,hgt,rgcn", "--own", "rgcn,rgat,hgt", "--variants", "--only", "apart$", "--no-check",
        "--each", "0.05", "--seconds", "15",
    ),
    "today_small": timing("--graphs", "aifb,mutag,fb15k", "--own", "hgt", "--each", "0.05", "--seconds", "12"),
    "sampled": lambda out, dry: batches.main(["--out", str(out), "--no-adversarial", *dry]),
    "batches": lambda out, dry: batches.main(["--out", str(out), *dry]),
    "compiled": compiled,
}


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--dry", action="store_true")
    args = parser.parse_args()
    for name in args.parts.split(","):
        begun = time.time()
        forward_training.STARTED = begun
        try:
            PARTS[name](args.out / name, ["--dry"] if args.dry else [])
        except Exception as problem:
            with rows_file(args.out / name, append=True) as write:
                write({"table": "failures", "part": name, "note": note_of(problem)})
        print(f"{name}: {time.time() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main()

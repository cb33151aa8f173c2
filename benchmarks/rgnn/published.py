"""Training scripts of public repositories by their own training functions, as they are and with `accelerate` as the only change.

    python -m benchmarks.rgnn.published --scripts FOLDER --out OUT        # PyG has to be installed; on a CPU

FOLDER has the scripts' own files, none of which is a part of this repository:

- rgcn_link_prediction.py of github.com/VV1NN/APT_Attribution_Thesis: two RGCN layers of four bases, DistMult, ten negatives an edge, `train_epoch`;
- ml/model.py and ml/train.py of a recommender of events and spaces: two HGT layers over users, events, spaces and tags, BPR loss, by `_train_step`;
- graphmask_explainer.py of github.com/fork123aniket/Model-agnostic-Graph-Explainability-from-Scratch: three FastRGCN layers of blocks as its example
  trains them, then explained by GraphMask, whose gates are trained on messages.

Their data need a network or are not published, so graphs are drawn with counts of that order, and the recommender's file of constants is written
here; all else is theirs. The recommender's edges are in the order of its metadata: PyG's HGT gives other answers in another. Each script runs in two
processes, as it is and accelerated: losses, the median time of a step or epoch, the process' peak.
"""

from __future__ import annotations

import argparse
import math
import resource
import statistics
import subprocess
import sys
import time
import types
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy
import torch
import torch.nn.functional as F

import warpwright.rgnn
from benchmarks.rgnn.foreign import ends
from benchmarks.rgnn.noted import rows_file

Train = Callable[[], float]
CPU = torch.device("cpu")


def link_prediction(random: torch.Generator, change: Callable[[Any], Any]) -> tuple[Train, Callable[[], torch.Tensor]]:
    """A graph of files, domains and addresses: 20,000 nodes, 40,000 triples of 14 relations and their inverses; five batches an epoch."""
    stub = types.ModuleType("eval_link_prediction")
    for name in ("LinkPredictionEvaluator", "load_split", "load_type_node_ids", "print_results"):
        setattr(stub, name, None)
    sys.modules["eval_link_prediction"] = stub
    m = import_module("rgcn_link_prediction")
    kind = torch.randint(14, (20000,), generator=random)
    triples = torch.stack((ends(20000, 20000, random, CPU, 2.0)[0], kind, ends(20000, 20000, random, CPU)[1]), 1)
    nodes, relations = {str(i): i for i in range(20000)}, {str(i): i for i in range(14)}
    edges, kinds = m.build_pyg_graph([tuple(map(str, triple)) for triple in triples.tolist()], nodes, relations)
    encoder = m.RGCNEncoder(20000, 128, 28, 35, 105, 153)
    given = ((9000, 35, 0), (6000, 105, 9000), (4000, 153, 15000))
    rows = [(torch.rand(n, width, generator=random), list(range(first, first + n))) for n, width, first in given]
    encoder.set_node_features(*(part for pair in rows for part in pair), CPU)
    model = change(m.RGCNLinkPredictor(encoder, m.DistMultDecoder(14, 128)))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.001)

    def last() -> torch.Tensor:
        with torch.no_grad():
            return model.eval().encode(edges, kinds)  # type: ignore[no-any-return]

    return lambda: m.train_epoch(model, edges, kinds, triples, 20000, optimizer=optimiser, device=CPU), last


COUNTS = {"user": 4000, "event": 1500, "space": 300, "tag": 200}
FORWARD = {("user", "attends", "event"): 20000, ("user", "joins", "space"): 8000, ("user", "similar_to", "user"): 12000,
           ("user", "likes", "tag"): 16000, ("event", "hosted_by", "space"): 1500, ("event", "tagged_with", "tag"): 4000,
           ("space", "tagged_with_space", "tag"): 900}  # fmt: skip


def recommender(random: torch.Generator, change: Callable[[Any], Any]) -> tuple[Train, Callable[[], torch.Tensor]]:
    """Seven relations between four node types and their inverses, four heads, a width of 128."""
    from torch_geometric.data import HeteroData

    both = FORWARD | {(end, f"rev_{name}", start): count for (start, name, end), count in FORWARD.items()}
    config, widths = types.ModuleType("ml.config"), {"user": 60, "event": 90, "space": 50, "tag": 30}
    constants = {f"{kind.upper()}_DIM": width for kind, width in widths.items()}
    constants |= {"HIDDEN_DIM": 128, "EMBED_DIM": 64, "HGT_HEADS": 4, "HGT_LAYERS": 2}
    config.__dict__.update(constants, DROPOUT=0.1, NODE_TYPES=list(COUNTS), METADATA=(list(COUNTS), list(both)))
    sys.modules["ml.config"] = config
    m, data = import_module("ml.train"), HeteroData()
    for kind, count in COUNTS.items():
        data[kind].x = torch.randn(count, widths[kind], generator=random)
    for start, name, end in FORWARD:
        sizes = torch.tensor([[COUNTS[start]], [COUNTS[end]]])
        data[start, name, end].edge_index = (torch.rand(2, FORWARD[start, name, end], generator=random) ** 2 * sizes).long()
    for start, name, end in FORWARD:
        data[end, f"rev_{name}", start].edge_index = data[start, name, end].edge_index.flip(0)
    model = change(m.HetEncoder())
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)

    def last() -> torch.Tensor:
        with torch.no_grad():
            return torch.cat(list(model.eval().forward_graph(data.x_dict, data.edge_index_dict).values()))

    return lambda: m._train_step(model, data, optimiser), last


def explainer(random: torch.Generator, change: Callable[[Any], Any]) -> tuple[Train, Callable[[], torch.Tensor]]:
    """AIFB's counts; after training, how important each edge is for two nodes."""
    from torch_geometric.explain import Explainer
    from torch_geometric.nn import FastRGCNConv

    numpy.math = math  # type: ignore[attr-defined]  # the script is of a time when numpy had it
    m = import_module("graphmask_explainer")
    edges, kinds = ends(8285, 58086, random, CPU, 2.0), torch.randint(90, (58086,), generator=random)
    x, labels = torch.randn(8285, 4, generator=random), torch.randint(4, (140,), generator=random)
    chosen = torch.randperm(8285, generator=random)[:140]

    class Net(torch.nn.Module):
        """As the script's example has it."""

        def __init__(self) -> None:
            super().__init__()
            self.conv1 = FastRGCNConv(4, 8, 90, num_blocks=2, aggr="mean")
            self.conv2 = FastRGCNConv(8, 12, 90, num_blocks=4, aggr="add")
            self.conv3 = FastRGCNConv(12, 4, 90, num_blocks=2, aggr="mean")

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edge_type: torch.Tensor) -> torch.Tensor:
            x = F.dropout(F.relu(self.conv1(x, edge_index, edge_type)), training=self.training)
            x = F.dropout(F.relu(self.conv2(x, edge_index, edge_type)), training=self.training)
            return F.log_softmax(self.conv3(x, edge_index, edge_type), dim=1)

    model = change(Net())
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def train() -> float:
        model.train()
        optimiser.zero_grad()
        loss = F.nll_loss(model(x, edges, kinds)[chosen], labels)
        loss.backward()
        optimiser.step()
        return loss.item()

    def last() -> torch.Tensor:
        torch.manual_seed(3)
        config = {"mode": "regression", "task_level": "node", "return_type": "raw"}
        algorithm = m.GraphMaskExplainer(3, epochs=5, layer_type="FastRGCN", log=False)
        explain = Explainer(model, algorithm, explanation_type="model", node_mask_type="attributes", edge_mask_type="object", model_config=config)
        return explain(x, edges, index=torch.tensor([20, 10]), edge_type=kinds).edge_mask  # type: ignore[no-any-return]

    return train, last


SCRIPTS = {f.__name__: f for f in (link_prediction, recommender, explainer)}


def one(name: str, accelerated: bool, steps: int, out: Path, double: bool) -> None:
    """Train one script's model and keep what it gave."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64 if double else torch.float32)
    torch.manual_seed(0)
    change = warpwright.rgnn.accelerate if accelerated else (lambda model: model)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        train, last = SCRIPTS[name](torch.Generator().manual_seed(0), change)
        torch.manual_seed(1)
        losses, times = [], []
        for _ in range(steps):
            begun = time.perf_counter()
            losses.append(train())
            times.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        result = last()
    kept = {"losses": losses, "ms": statistics.median(times[1:]) * 1e3, "last_ms": (time.perf_counter() - begun) * 1e3, "result": result.detach()}
    kept["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    kept["said"] = sorted({str(w.message)[:120] for w in said if "warpwright" in str(w.message)})
    torch.save(kept, out)


def row_of(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Return the row of one script."""
    found = []
    for accelerated in (False, True):
        file = args.out / f"{name}-{accelerated}.pt"
        command = [sys.executable, "-m", "benchmarks.rgnn.published", "--scripts", str(args.scripts), "--out", str(file), "--one", name]
        command += ["--steps", str(args.steps), *["--accelerated"] * accelerated, *["--double"] * args.double]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return {"note": f"{'accelerated' if accelerated else 'as it is'}: {done.stderr.strip().splitlines()[-1][:300]}"}
        found.append(torch.load(file))
        file.unlink()
    plain, ours = found
    apart = max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(ours["losses"], plain["losses"], strict=True))
    row = {"first loss": round(plain["losses"][0], 4), "last loss": round(plain["losses"][-1], 4)}
    row |= {"last loss, accelerated": round(ours["losses"][-1], 4), "largest difference": float(f"{apart:.2g}")}
    row |= {"ms": round(plain["ms"], 1), "ms, accelerated": round(ours["ms"], 1)}
    row |= {"times": round(plain["ms"] / ours["ms"], 2), "MB": round(plain["peak_mb"]), "MB, accelerated": round(ours["peak_mb"])}
    of_results = float((ours["result"] - plain["result"]).norm() / plain["result"].norm())
    return row | {"last result's difference": float(f"{of_results:.2g}"), "note": "; ".join(ours["said"])}


def main(argv: Sequence[str] | None = None) -> None:
    """Run each script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scripts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default=",".join(SCRIPTS))
    parser.add_argument("--steps", type=int, default=6, help="epochs, or steps of scripts that have one a call")
    parser.add_argument("--double", action="store_true", help="in float64, where what differs is no rounding of float32")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--accelerated", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    sys.path.insert(0, str(args.scripts))
    if args.one:
        one(args.one, args.accelerated, args.steps, args.out, args.double)
        return
    with rows_file(args.out) as write:
        for name in args.only.split(","):
            row = {"table": "published", "script": name} | row_of(name, args)
            write(row)


if __name__ == "__main__":
    main()

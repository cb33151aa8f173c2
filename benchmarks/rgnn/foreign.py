"""Relational models of public repositories, as they are and with `accelerate` as the only change: the losses of both, and the time of a step.

    python -m benchmarks.rgnn.foreign --models FOLDER --out OUT        # PyG has to be installed; --gpu: on a GPU

FOLDER has the models' own files (found by a search for PyG's layers in public code; none is a part of this repository): query_rgcn.py,
graph_encoder.py, gene_predictor.py, dialogue_rgat.py, hgt_kge.py, lean_hgt.py, risk_rgat.py, aifb_explained.py, and, found later, healing_rgcn.py,
joint_rgcn.py, hoeg_hgt.py, spatial_rgat.py, rgat_net.py, and, later still, adr_hgt.py, effects_hgt.py, graph_rgcn.py, state_rgat.py, grid_rgcn.py.
Graphs are drawn here: chains of claims, molecules side by side, a gene network with hubs,
conversations, a knowledge graph of three types, syntax trees with a virtual node, plants, word graphs, event logs, spots of a tissue, drugs, power
grids. PyG trains twice: its sums by atomics make a GPU's losses differ by themselves ("PyG's own"). Where training magnifies rounding, losses say
little; so both also give gradients at the weights that PyG has reached. Times are medians after the first third of the steps, memory is the peak of a
GPU above what was there. A model whose file raises, or whose accelerated form does, is a row with a note.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F

import warpwright.rgnn
from benchmarks.rgnn.noted import noted, rows_file

Loss = Callable[[Any], torch.Tensor]


def ends(nodes: int, edges: int, random: torch.Generator, device: torch.device, hubs: float = 1.0) -> torch.Tensor:
    """Return [2, edges] with low numbers the likelier the larger `hubs` is."""
    return (torch.rand(2, edges, generator=random) ** hubs * nodes).long().to(device)


def query_rgcn(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """Chains of 9 claims, 200 in a batch, of 8 relations."""
    first = torch.arange(2000).view(200, 10)
    edges = torch.stack((first[:, :-1].flatten(), first[:, 1:].flatten())).to(device)
    batch = {"edge_index": edges, "edge_type": torch.randint(8, (1800,), generator=random).to(device), "num_nodes": 2000}
    batch["query_index"] = torch.stack((first[:, 0], first[:, -1])).to(device)  # type: ignore[assignment]
    wanted = torch.randint(8, (200,), generator=random).to(device)
    return m.build_model(), lambda model: m.training_loss(model(batch), wanted)


def graph_encoder(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """100 graphs of 20 nodes side by side, 60 edges each of 3 relations; thirteen RGAT layers; its edges are copied for each."""
    start = torch.arange(100).repeat_interleave(60) * 20
    edges = torch.randint(20, (2, 6000), generator=random) + start
    kind, x = torch.randint(3, (6000,), generator=random).to(device), torch.randn(2000, 16, generator=random).to(device)
    batch, edges = (torch.arange(2000) // 20).to(device), edges.int().to(device)
    return m.GenericGraphEncoder(16), lambda model: torch.stack([y.square().mean() for y in model(x, edges, kind, batch)]).sum()


def gene_predictor(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """6,375 genes with hubs, 80,000 edges of 5 relations, four bases, in both directions."""
    one = ends(6375, 40000, random, device, 3.0)
    edges, kind = torch.cat((one, one.flip(0)), 1), torch.randint(5, (40000,), generator=random).to(device).repeat(2)
    x, pairs = torch.randn(6375, 48, generator=random).to(device), ends(6375, 4000, random, device)
    wanted = torch.randint(2, (4000,), generator=random).float().to(device)

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = m.GNNEncoder(48, 64, 32, 2, 0.0, "rgcn", 5)
            self.decoder = m.BilinearDecoder(32)

        def forward(self) -> Any:
            return self.decoder(self.encoder(x, edges, kind), pairs)

    return Both(), lambda model: F.binary_cross_entropy_with_logits(model(), wanted)


def dialogue_rgat(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """32 conversations of 10 to 60 turns as the model's own file makes graphs of them; multiplicative attention, four heads."""
    lengths, speakers = torch.randint(10, 60, (32,), generator=random), torch.randint(2, (32, 60), generator=random)
    x, edges, kind, *_ = m.graphify(torch.randn(32, 60, 64, generator=random), lengths, speakers, 5, device)
    return m.RGAT(64, 2, 4, 0.0), lambda model: model(x, edges, kind).square().mean()


def hgt_kge(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """Three node types of 4,000, 1,500 and 60 nodes, six relations, one without edges; two heads."""
    counts = {"person": 4000, "work": 1500, "place": 60}
    kinds = [("person", "made", "work"), ("work", "by", "person"), ("person", "lives", "place"), ("place", "of", "person"),
             ("work", "cites", "work"), ("place", "near", "place")]  # fmt: skip
    sizes = (9000, 9000, 4000, 4000, 12000, 0)
    pairs = [torch.stack([torch.randint(counts[e], (n,), generator=random) for e in (k[0], k[2])]) for k, n in zip(kinds, sizes, strict=True)]
    edges = {kind: pair.to(device) for kind, pair in zip(kinds, pairs, strict=True)}
    rows = {kind: torch.randn(n, 32, generator=random).to(device) for kind, n in counts.items()}
    encoder = m.HGTEncoder((list(counts), kinds), 32, 64, dropout=0.0)
    return encoder, lambda model: torch.stack([y.square().mean() for y in model(rows, edges).values()]).sum()


def lean_hgt(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """200 syntax trees of 15 expressions, 400 symbols, a virtual node a tree; a width of 96, eight heads, one node type expanded from one row."""
    parent = torch.arange(3000).view(200, 15)
    kinds = {("expr", "child", "expr"): torch.stack((parent[:, 1:].flatten(), parent[:, (torch.arange(1, 15) - 1) // 2].flatten())),
             ("symbol", "in", "expr"): torch.stack((torch.randint(400, (1500,), generator=random), torch.randint(3000, (1500,), generator=random))),
             ("expr", "of", "symbol"): torch.stack((torch.randint(3000, (1500,), generator=random), torch.randint(400, (1500,), generator=random))),
             ("expr", "to", "virtual"): torch.stack((torch.arange(3000), torch.arange(3000) // 15))}  # fmt: skip
    edges = {kind: pair.to(device) for kind, pair in kinds.items()}
    given = {"expr": torch.randn(3000, 47, generator=random).to(device), "symbol": torch.randint(1000, (400,), generator=random).to(device),
             "virtual": torch.zeros(200, 1, device=device)}  # fmt: skip
    wanted = F.normalize(torch.randn(200, 96, generator=random), dim=1).to(device)
    model = m.LeanHGT((["expr", "symbol", "virtual"], list(kinds)), 47, 64, 96, 96, 8, 2)
    return model, lambda model: (model(given, edges) - wanted).square().mean()


def risk_rgat(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """3,000 companies, 20,000 edges of 12 relations; three heads, their mean, four and two numbers a row."""
    edges, kind = ends(3000, 20000, random, device, 2.0), torch.randint(12, (20000,), generator=random).to(device)
    wanted = torch.randint(2, (3000,), generator=random).to(device)
    return m.RGATModel(3000, 50, 4, 12, 2), lambda model: F.cross_entropy(model(edges, kind), wanted)


def aifb_explained(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """AIFB's counts; the model's training, before it is explained (`explained`)."""
    edges, kind = ends(8285, 58086, random, device, 2.0), torch.randint(90, (58086,), generator=random).to(device)
    nodes, wanted = torch.arange(8285, device=device), torch.randint(4, (8285,), generator=random).to(device)
    return m.FastRGCN(8285, 32, 16, 4, 90), lambda model: F.cross_entropy(model.eval()(nodes, edges, kind), wanted)


def healing_rgcn(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """A plant's twin: 2,000 parts of six kinds, 12,000 edges of five relations and their inverses, three layers with dropout; its three heads."""
    one, kind = ends(2000, 12000, random, device, 1.5), torch.randint(5, (12000,), generator=random).to(device)
    edges, kinds = torch.cat((one, one.flip(0)), 1), torch.cat((kind, kind + 5))
    x, of = torch.randn(2000, 12 * m.K, generator=random).to(device), torch.randint(6, (2000,), generator=random).to(device)
    return m.HealingGNN(12), lambda model: sum(model(x, edges, kinds, of)[head].square().mean() for head in ("forecast", "degradation", "rca"))


def joint_rgcn(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """A word graph of 5,000 nodes with one number each, 40,000 edges of one relation, given as ones of float32; classes of 3,000 edges."""
    data = SimpleNamespace(x=torch.randn(5000, 1, generator=random).to(device), edge_index=ends(5000, 40000, random, device, 2.0))
    data.train_edge_index, data.train_y = data.edge_index[:, :3000], torch.randint(5, (3000,), generator=random).to(device)
    return m.GCNJointRepresentation(5, "rgcn"), lambda model: F.cross_entropy(model.decode(model.encode(data), data.train_edge_index), data.train_y)


def hoeg_hgt(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """An event log: 6,000 events, 800 orders, 1,500 items, six edge types; widths known at the first call; two layers of four heads."""
    counts, widths = {"event": 6000, "order": 800, "item": 1500}, {"event": 17, "order": 5, "item": 9}
    kinds = [("event", "follows", "event"), ("event", "of", "order"), ("order", "has", "event"), ("event", "on", "item"), ("item", "in", "event"),
             ("order", "lists", "item")]  # fmt: skip
    sizes = (5900, 6000, 6000, 9000, 9000, 1500)
    edges = {k: torch.stack([torch.randint(counts[e], (n,), generator=random) for e in (k[0], k[2])]).to(device)
             for k, n in zip(kinds, sizes, strict=True)}  # fmt: skip
    rows = {kind: torch.randn(n, widths[kind], generator=random).to(device) for kind, n in counts.items()}
    data, wanted = SimpleNamespace(node_types=list(counts), metadata=lambda: (list(counts), kinds)), torch.rand(6000, 1, generator=random).to(device)
    model = m.HGT(64, 1, 2, 4, data, "event").to(device)
    with torch.no_grad():
        model(rows, edges)  # its first layers learn their widths
    return model, lambda model: (model(rows, edges) - wanted).abs().mean()


def spatial_rgat(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """3,000 spots of a tissue with 300 genes, 18,000 edges of two relations; dropout of attention, which PyG computes."""
    x, edges = torch.randn(3000, 300, generator=random).to(device), ends(3000, 18000, random, device)
    kind = torch.randint(2, (18000,), generator=random).to(device)
    return m.RGAST([300, 128, 30]), lambda model: (model(x, edges, kind)[1] - x).square().mean()


def rgat_net(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """4,000 nodes, 30,000 edges with hubs of eight relations; three layers, four heads side by side, dropout between."""
    x, edges = torch.randn(4000, 50, generator=random).to(device), ends(4000, 30000, random, device, 2.0)
    kind, wanted = (torch.randint(most, (n,), generator=random).to(device) for most, n in ((8, 30000), (7, 4000)))
    return m.RGATNet(50, 32, 7, 3, 4, 8), lambda model: F.cross_entropy(model(x, edges, kind), wanted)


def drugs(random: torch.Generator, device: torch.device) -> tuple[dict[str, torch.Tensor], dict[tuple[str, str, str], torch.Tensor]]:
    """Return rows and edges of 3,000 drugs, 8,000 proteins, 1,200 diseases and 400 biomarkers: 120,000 of six types in both directions."""
    counts = {"drug": 3000, "protein": 8000, "disease": 1200, "biomarker": 400}
    kinds = [("drug", "targets", "protein"), ("drug", "treats", "disease"), ("drug", "associated_with", "biomarker"),
             ("protein", "interacts", "protein"), ("protein", "in", "disease"), ("disease", "shown_by", "biomarker")]  # fmt: skip
    sizes, edges = (16000, 8000, 3000, 20000, 10000, 3000), dict[tuple[str, str, str], torch.Tensor]()
    for kind, n in zip(kinds, sizes, strict=True):
        pair = torch.stack([(torch.rand(n, generator=random) ** 2 * counts[kind[side]]).long() for side in (0, 2)]).to(device)
        edges[kind], edges[kind[2], f"rev_{kind[1]}", kind[0]] = pair, pair.flip(0)
    return {kind: torch.randn(n, 128, generator=random).to(device) for kind, n in counts.items()}, edges


def adr_hgt(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """Side effects of 3,000 drugs: two HGT layers of width 256 and four heads, as its script makes them, and its loss over four fifths of them."""
    rows, edges = drugs(random, device)
    labels, chosen = (torch.rand(3000, 100, generator=random) < 0.1).float().to(device), torch.randperm(3000, generator=random)[:2400].to(device)
    model = torch.nn.ModuleList([m.HGT(dict.fromkeys(rows, 128), 256, 4, 2, (list(rows), list(edges))), m.ADRPredictor(256, 100)])
    return model, lambda model: F.binary_cross_entropy(model[1](model[0](rows, edges)["drug"][chosen]), labels[chosen])


def effects_hgt(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """The same drugs by another script: HGT with layer norms, dropout between, and two decoders; its two losses."""
    rows, edges = drugs(random, device)
    labels, pairs = (torch.rand(3000, 100, generator=random) < 0.1).float().to(device), edges["drug", "associated_with", "biomarker"]
    kinds = torch.randint(3, (pairs.shape[1],), generator=random).to(device)
    model = m.HGTModel(list(rows), (list(rows), list(edges)), dict.fromkeys(rows, 128), dropout=0.0)

    def loss(model: Any) -> torch.Tensor:
        out = model(rows, edges)
        effects = F.binary_cross_entropy_with_logits(model.predict_side_effects(out["drug"]), labels)
        return effects + 2.0 * F.cross_entropy(model.predict_biomarker_type(out["drug"], out["biomarker"], pairs), kinds)

    return model, loss


def graph_rgcn(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """500 graphs of 30 nodes side by side, 200 edges each of 12 relations; the mean of a graph's nodes is classified."""
    edges = torch.randint(30, (2, 100000), generator=random) + torch.arange(500).repeat_interleave(200) * 30
    data = SimpleNamespace(x=torch.randn(15000, 32, generator=random).to(device), edge_index=edges.to(device))
    data.edge_attr, data.batch = torch.randint(12, (100000,), generator=random).to(device), (torch.arange(15000) // 30).to(device)
    wanted = torch.randint(4, (500,), generator=random).to(device)
    return m.RGCN_graph(32, 4, 12, 3, 64), lambda model: F.cross_entropy(model(data), wanted)


def state_rgat(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """What a speaker knows, as 20,000 nodes and 150,000 statements of 40 relations; two RGAT layers, trained as an encoder of one state."""
    x, edges = torch.randn(20000, 64, generator=random).to(device), ends(20000, 150000, random, device, 2.0)
    kind, wanted = torch.randint(40, (150000,), generator=random).to(device), torch.tensor([3], device=device)
    return m.EncoderAttention(64, 64, 16, 40), lambda model: F.nll_loss(model(x, edges, kind), wanted)


def grid_rgcn(m: ModuleType, random: torch.Generator, device: torch.device) -> tuple[Any, Loss]:
    """Generators of 300 power grids side by side, 62 a grid with themselves and two others; edge types are made anew at each call."""
    own = torch.arange(18600)
    edges = torch.stack((own.repeat(3), torch.cat((own, own // 62 * 62 + (own + 1) % 62, own // 62 * 62 + (own * 7 + 3) % 62)))).to(device)
    given, wanted = torch.randn(18600, 6, generator=random).to(device), torch.randn(18600, 2, generator=random).to(device)
    spaces = {"node_features": {"gen": SimpleNamespace(shape=(62, 6))}}, {"redispatch": SimpleNamespace(shape=(62,))}

    def loss(model: Any) -> torch.Tensor:
        return F.mse_loss(model({"gen": SimpleNamespace(x=given), ("gen", "self loops gen", "gen"): SimpleNamespace(edge_index=edges)}), wanted)

    return m.GraphNet(*spaces, 16, 2), loss


MODELS = {f.__name__: f for f in (query_rgcn, graph_encoder, gene_predictor, dialogue_rgat, hgt_kge, lean_hgt, risk_rgat, aifb_explained)}
MODELS |= {f.__name__: f for f in (healing_rgcn, joint_rgcn, hoeg_hgt, spatial_rgat, rgat_net)}
LATEST = {f.__name__: f for f in (adr_hgt, effects_hgt, graph_rgcn, state_rgat, grid_rgcn)}
MODELS |= LATEST
SCHEMA = {"NodeType": range(6), "RELATIONS": range(5), "K": 8}
"""What healing_rgcn.py takes from another file of its repository."""
ELSEWHERE = {
    "sklearn.metrics": ("roc_auc_score", "average_precision_score", "f1_score", "classification_report"),
    "dialogue_system.rl_utils.rl_parameters": ("STATE_EMBEDDING_SIZE", "STATE_HIDDEN_SIZE"),
    "dialogue_system.utils.hp_rdf_dataset": ("HarryPotterRDF",), "ray.rllib.models.torch.misc": ("normc_initializer",),
}  # fmt: skip
"""Names that files import and that no training here uses: scores of a validation, data sets, initial weights of an agent."""


def loaded(folder: Path, name: str) -> ModuleType:
    """Return the module of a model's file, within packages of the names that it imports from."""
    for package in ("outside", "outside.models", "outside.twin", "outside.twin.schema"):
        sys.modules.setdefault(package, ModuleType(package)).__path__ = []
    vars(sys.modules["outside.twin.schema"]).update(SCHEMA)
    for path, names in ELSEWHERE.items():
        parts = path.split(".")
        for depth in range(len(parts)):
            sys.modules.setdefault(".".join(parts[: depth + 1]), ModuleType(parts[depth])).__dict__.setdefault("__path__", [])
        for one in names:
            vars(sys.modules[path]).setdefault(one, 0)
    spec = importlib.util.spec_from_file_location(f"outside.models.{name}", folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def explained(m: ModuleType, accelerated: bool, device: torch.device) -> torch.Tensor:
    """Return how important GNNExplainer finds each edge for one node, after ten epochs."""
    random = torch.Generator().manual_seed(1)
    torch.manual_seed(0)
    edges, kind = ends(300, 2000, random, device), torch.randint(6, (2000,), generator=random).to(device)
    whole = m.FastRGCN(300, 32, 16, 4, 6).to(device).eval()
    x = whole.embedding.weight.detach()
    model = m.FastRGCNExplainable(whole.conv1, whole.conv2)
    model = warpwright.rgnn.accelerate(model) if accelerated else model
    torch.manual_seed(2)
    result: torch.Tensor = m.make_explainer(model.eval(), 10)(x, edges, edge_type=kind, index=5).edge_mask
    return result


def trained(model: Any, loss_of: Loss, steps: int) -> tuple[list[float], float, float]:
    """Return the losses of some steps, the median time of a step in ms, and a GPU's peak in MB."""
    on_gpu = next(model.parameters()).is_cuda
    before = 0
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    optimiser, losses, times = torch.optim.Adam(model.parameters(), lr=0.01), [], []
    torch.manual_seed(3)  # of dropout
    for _ in range(steps):
        began = time.perf_counter()
        optimiser.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        times.append((time.perf_counter() - began) * 1e3)
    return losses, statistics.median(times[len(times) // 3 :]), (torch.cuda.max_memory_allocated() - before) / 1e6 if on_gpu else 0.0


def apart(some: Sequence[float], others: Sequence[float]) -> float:
    """Return the largest relative difference of losses, to two digits."""
    return float(f"{max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(some, others, strict=True)):.2g}")


def gradients_apart(model: Any, other: Any, loss_of: Loss) -> float:
    """Return how far the gradients of `other` are from those of `model` at the weights of `model`, over their norm; one that is None counts as zeros.

    Losses of two trainings may part by rounding alone, where each step magnifies it; gradients at the same weights do not.
    """
    other.load_state_dict(model.state_dict())
    found: list[dict[str, torch.Tensor]] = []
    for one in (other, model):
        one.zero_grad()
        torch.manual_seed(3)
        loss_of(one).backward()
        found.append({name: p.grad.double() for name, p in one.named_parameters() if p.grad is not None})
        one.zero_grad()
    ours, wanted = found
    nothing = torch.zeros(())
    squares = [(ours.get(name, nothing).to(p.device) - wanted.get(name, nothing).to(p.device)).square().sum() for name, p in model.named_parameters()]
    whole = sum(float(g.square().sum()) for g in wanted.values())
    return float(f"{(sum(map(float, squares)) / max(whole, 1e-300)) ** 0.5:.2g}")


def row_of(name: str, m: ModuleType, device: torch.device, steps: int) -> dict[str, Any]:
    """Return the row of one model."""
    torch.manual_seed(0)
    model, loss_of = MODELS[name](m, torch.Generator().manual_seed(0), device)
    model = model.to(device)
    other, again = copy.deepcopy(model), copy.deepcopy(model)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        other = warpwright.rgnn.accelerate(other)
        ours, own_ms, own_mb = trained(other, loss_of, steps)
    losses, ms, mb = trained(model, loss_of, steps)
    repeated = trained(again, loss_of, steps)[0]
    row: dict[str, Any] = {
        "first loss": round(losses[0], 4), "last loss": round(losses[-1], 4), "last loss, accelerated": round(ours[-1], 4),
        "largest difference": apart(ours, losses), "in the first five": apart(ours[:5], losses[:5]), "PyG's own": apart(repeated, losses),
        "PyG's own, first five": apart(repeated[:5], losses[:5]),
        "gradients at the last weights": gradients_apart(model, other, loss_of), "ms a step": round(ms, 2), "accelerated": round(own_ms, 2),
        "times": round(ms / own_ms, 2),
    }  # fmt: skip
    if device.type == "cuda":
        row |= {"MB": round(mb, 1), "MB, accelerated": round(own_mb, 1)}
    row["note"] = "; ".join(sorted({str(w.message)[:120] for w in said if "warpwright" in str(w.message)}))
    if name == "aifb_explained":
        plain, found = explained(m, False, device), explained(m, True, device)
        row["note"] += f"; explained: edges' importances differ by {float((plain - found).norm() / plain.norm()):.2g}"
    return row


def _loaded_row(args: argparse.Namespace, name: str, device: torch.device) -> dict[str, Any]:
    return row_of(name, loaded(args.models, name), device, args.steps)


def main(argv: Sequence[str] | None = None) -> None:
    """Run each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--dry", action="store_true", help="two steps on a CPU")
    args = parser.parse_args(argv)
    if args.dry:
        args.steps, args.gpu = 2, False
    device = torch.device("cuda" if args.gpu else "cpu")
    with rows_file(args.out) as write:
        for name in args.only.split(","):
            noted(write, {"table": "foreign", "model": name}, partial(_loaded_row, args, name, device))


if __name__ == "__main__":
    main()

"""Graphs of published data sets: from plain files, or by the packages that know them (extras: torch_geometric, ogb), which download.

    triples(path)           lines of source, relation, target: FB15k-237 and WN18RR as text, or as OpenKE's numbers
    n_triples(path)         RDF, <subject> <predicate> <object> . : aifb, mutag, bgs, am
    entities(name, root)    PyG's parse of those four     fb15k(root)    PyG's FB15k-237     ogb(name, root)    ogbl-wikikg2, ogbl-biokg
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from warpwright.domains.rgnn.synth import Synthetic
from warpwright.errors import MissingExtra, UsageError

_RDF = re.compile(r"^(<[^>]*>|_:\S+)\s+(<[^>]*>)\s+(.*?)\s*\.\s*$")


def triples(path: Path) -> Synthetic:
    """Return the graph of a file of triples; nodes and relations are numbered by first appearance, or as they are numbered.

    A first line with the count alone is OpenKE's form, "source target relation" by numbers. UsageError for a line that is no triple.
    """
    lines = [line.split("\t") if "\t" in line else line.split() for line in path.read_text().splitlines() if line.strip()]
    if lines and len(lines[0]) == 1 and lines[0][0].isdigit():
        numbers = [[int(x) for x in line] for line in lines[1:]]
        if len(numbers) != int(lines[0][0]) or any(len(line) != 3 for line in numbers):
            raise UsageError(f"expected {lines[0][0]} lines of three numbers in {path}, saw {len(numbers)} lines")
        sources, targets, kinds = torch.tensor(numbers).view(-1, 3).unbind(1)
        return graph(path.stem, sources, targets, kinds)
    wrong = next((number for number, line in enumerate(lines, 1) if len(line) != 3), 0)
    if wrong:
        raise UsageError(f"expected source, relation and target in line {wrong} of {path}, saw {lines[wrong - 1]}")
    return _named(path.stem, lines)


def n_triples(path: Path, literals: bool = False) -> Synthetic:
    """Return the graph of an N-Triples file; `literals`: text values are nodes too. UsageError for a line that is no statement."""
    triples = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _RDF.match(line)
        if match is None:
            raise UsageError(f"expected <subject> <predicate> <object> . in line {number} of {path}, saw {line[:80]!r}")
        if literals or match[3][0] in "<_":
            triples.append(list(match.groups()))
    return _named(path.stem, triples)


def _named(name: str, lines: Iterable[list[str]]) -> Synthetic:
    nodes: dict[str, int] = {}
    kinds: dict[str, int] = {}
    numbers = [
        (nodes.setdefault(source, len(nodes)), nodes.setdefault(target, len(nodes)), kinds.setdefault(kind, len(kinds)))
        for source, kind, target in lines
    ]
    sources, targets, types = torch.tensor(numbers, dtype=torch.long).view(-1, 3).unbind(1)
    return graph(name, sources, targets, types, len(nodes))


def graph(name: str, sources: torch.Tensor, targets: torch.Tensor, kinds: torch.Tensor, nodes: int = 0) -> Synthetic:
    """Return a graph of one node type with its edges sorted by relation."""
    order = torch.sort(kinds, stable=True)[1]
    relations = int(kinds.max()) + 1 if len(kinds) else 1
    sizes = torch.bincount(kinds, minlength=relations).tolist()
    count = nodes or (int(torch.cat([sources, targets]).max()) + 1 if len(kinds) else 1)
    return Synthetic(name, (count,), tuple((0, 0, size) for size in sizes), torch.stack([sources, targets])[:, order], kinds[order])


def entities(name: str, root: Path) -> Synthetic:
    """Return aifb, mutag, bgs or am as PyG parses them. Raises MissingExtra without PyG."""
    data = _package("torch_geometric.datasets", "torch_geometric").Entities(str(root), name)[0]
    return graph(name, data.edge_index[0], data.edge_index[1], data.edge_type, data.num_nodes)


def fb15k(root: Path) -> Synthetic:
    """Return FB15k-237's training edges. Raises MissingExtra without PyG."""
    data = _package("torch_geometric.datasets", "torch_geometric").FB15k_237(str(root), "train")[0]
    return graph("fb15k", data.edge_index[0], data.edge_index[1], data.edge_type, data.num_nodes)


def ogb(name: str, root: Path) -> Synthetic:
    """Return the training edges of ogbl-wikikg2 or ogbl-biokg; biokg's node types are numbered one after the other. Raises MissingExtra."""
    loaded = _package("ogb.linkproppred", "ogb").LinkPropPredDataset(name=name, root=str(root))
    split = loaded.get_edge_split()["train"]
    head, tail, kinds = (torch.as_tensor(split[key]).long() for key in ("head", "tail", "relation"))
    if "head_type" in split:
        counts = loaded[0]["num_nodes_dict"]
        start = dict(zip(counts, [0, *torch.tensor(list(counts.values())).cumsum(0).tolist()], strict=False))
        head += torch.tensor([start[kind] for kind in split["head_type"]])
        tail += torch.tensor([start[kind] for kind in split["tail_type"]])
        return graph(name, head, tail, kinds, sum(counts.values()))
    return graph(name, head, tail, kinds, int(loaded[0]["num_nodes"]))


def _package(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(package, "rgnn-data", "loading a published data set") from None

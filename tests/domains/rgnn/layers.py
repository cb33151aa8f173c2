"""Layers with small inputs, and small graphs, for the tests of the rgnn domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from warpwright.domains.rgnn import models
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.ir import Shape
from warpwright.domains.rgnn.lattice import Domain

NODE, ETYPE, ONE, EDGE = Domain.NODE, Domain.ETYPE, Domain.ONE, Domain.EDGE

D, H = 6, 2

LAYERS: Mapping[str, tuple[Callable[..., Any], Mapping[str, tuple[Domain, Shape]]]] = {
    "rgcn": (models.rgcn, {"x": (NODE, (D,)), "weight": (ETYPE, (D, 5))}),
    "rgcn_sum": (models.rgcn_sum, {"x": (NODE, (D,)), "weight": (ETYPE, (D, 5))}),
    "rgcn_max": (models.rgcn_max, {"x": (NODE, (D,)), "weight": (ETYPE, (D, 5))}),
    "rgat_single": (models.rgat_single, {"x": (NODE, (D,)), "weight": (ETYPE, (D, 5)), "query": (ONE, (5,)), "key": (ONE, (5,))}),
    "rgat_features": (models.rgat_single, {"x": (NODE, (D,)), "weight": (ETYPE, (D, 5)), "query": (ONE, (5,)), "key": (ONE, (5,)),
                                           "feature": (EDGE, ())}),
    "rgat": (models.rgat, {"x": (NODE, (D,)), "weight": (ETYPE, (D, H, 5)), "query": (ONE, (H, 5, H)), "key": (ONE, (H, 5, H))}),
    "rgat_within": (models.attention(1, 0.2, True), {"x": (NODE, (D,)), "weight": (ETYPE, (D, 5)), "query": (ONE, (5,)), "key": (ONE, (5,))}),
    "hgt_single": (models.hgt_single, {"key": (NODE, (D,)), "query": (NODE, (D,)), "value": (NODE, (D,)), "attention": (ETYPE, (D, D)),
                                       "message": (ETYPE, (D, D)), "prior": (ETYPE, ())}),
    "hgt": (models.hgt, {"key": (NODE, (H, D)), "query": (NODE, (H, D)), "value": (NODE, (H, D)), "attention": (ETYPE, (H, D, D)),
                         "message": (ETYPE, (H, D, D)), "prior": (ETYPE, (H,))}),
    "han": (models.han, {"x": (NODE, (D,)), "project": (ONE, (D, 5)), "query": (ETYPE, (5,)), "key": (ETYPE, (5,)), "meta": (ETYPE, ())}),
    "simple_hgn": (models.simple_hgn, {"x": (NODE, (D,)), "project": (ONE, (D, 5)), "query": (ONE, (5,)), "key": (ONE, (5,)), "kind": (ETYPE, (3,)),
                                       "of_kind": (ONE, (3,))}),
    "compgcn": (models.compgcn, {"x": (NODE, (D,)), "relation": (ETYPE, (D,)), "weight": (ONE, (D, 5))}),
    "hetero_sage": (models.hetero_sage, {"x": (NODE, (D,)), "neighbour": (ETYPE, (D, 5)), "own": (ETYPE, (D, 5))}),
    "rgin": (models.rgin, {"x": (NODE, (D,)), "weight": (ETYPE, (D, 5)), "first": (ONE, (D, 5)), "second": (ONE, (5, 4))}),
}  # fmt: skip

LARGE: Mapping[Domain, int] = {
    EDGE: 21_000_000, Domain.PAIR_SRC: 3_200_000, Domain.PAIR_DST: 1_500_000, Domain.SRC: 1_900_000, Domain.DST: 1_900_000, NODE: 1_900_000,
    ETYPE: 4, ONE: 1, Domain.TSRC: 4, Domain.TDST: 4, Domain.NTYPE: 4,
}  # fmt: skip
"""Rows of a large graph with many edges per pair."""

SPARSE = {**LARGE, EDGE: 5_700_000, Domain.PAIR_SRC: 3_300_000, Domain.PAIR_DST: 3_300_000, ETYPE: 108}
"""Rows of one with few."""


def edges(nodes: int = 20, count: int = 90, relations: int = 4, seed: int = 0, hub: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return edge_index and edge_type; the last nodes have no edges in, the last relation none at all, and `hub` edges of relation 0 go to node 1."""
    random = torch.Generator().manual_seed(seed)
    index = torch.stack([torch.randint(nodes, (count,), generator=random), torch.randint(max(1, nodes - 4), (count,), generator=random)])
    kind = torch.randint(max(1, relations - 1), (count,), generator=random)
    index[1, :hub], kind[:hub] = min(1, nodes - 1), 0
    return index, kind


def graph(nodes: int = 20, count: int = 90, relations: int = 4, seed: int = 0, hub: int = 0) -> Index:
    """Return the index of `edges`."""
    index, kind = edges(nodes, count, relations, seed, hub)
    return Index(index[0], index[1], kind, nodes, nodes, relations)


def inputs_of(name: str, index: Index, dtype: torch.dtype = torch.float64, seed: int = 0, wide: bool = False) -> dict[str, torch.Tensor]:
    """Return random inputs of a layer, which want gradients."""
    random = torch.Generator().manual_seed(seed)
    found = {}
    for key, (domain, shape) in (widened(name) if wide else LAYERS[name][1]).items():
        rows = () if domain is ONE else (index.rows[domain],)
        scale = shape[0] ** -0.5 if wide and shape else 1.0
        found[key] = (scale * torch.randn(*rows, *shape, generator=random, dtype=torch.float64)).to(dtype).requires_grad_()
    return found


WIDTHS = {D: 130, 5: 200}


def widened(name: str) -> dict[str, tuple[Domain, Shape]]:
    """Return the inputs of a layer whose rows are wider than a kernel holds whole."""
    return {key: (domain, tuple(WIDTHS[size] for size in shape)) for key, (domain, shape) in LAYERS[name][1].items()}

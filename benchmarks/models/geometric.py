"""Layers and models of PyTorch Geometric with drawn graphs, by rules from the names of what their constructors and forwards need."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from benchmarks.models.small_configs import NotMade

RELATIONS = 4
SMALL, REAL = (64, 256, 32), (32_768, 524_288, 128)
"""Nodes, edges and width of a graph."""


def make(name: str, size: tuple[int, int, int]) -> tuple[nn.Module, list[dict[str, torch.Tensor]]]:
    """Return a layer or model and the inputs that its forward needs, by keyword; raise NotMade."""
    from torch_geometric.nn import conv, models

    kind = getattr(conv, name, None) or getattr(models, name)
    if not (inspect.isclass(kind) and issubclass(kind, nn.Module)):
        raise NotMade(f"{name} is no module")
    return kind(**_known(kind.__init__, _settings(size), name)), [_known(kind.forward, _inputs(size), name)]


def _known(function: Any, values: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what a function needs, by the names of its parameters."""
    parameters = list(inspect.signature(function).parameters.items())[1:]  # but self
    needed = [key for key, one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    if unknown := [key for key in needed if key not in values]:
        raise NotMade(f"{name} needs {', '.join(unknown)}")
    return {key: values[key] for key in needed}


def _settings(size: tuple[int, int, int]) -> dict[str, Any]:
    nodes, _, width = size
    widths = dict.fromkeys(("in_channels", "out_channels", "hidden_channels", "channels", "edge_dim", "embedding_dim", "hidden_dim"), width)
    counts = {"num_layers": 3, "K": 3, "num_relations": RELATIONS, "dim": 3, "kernel_size": 5, "num_nodes": nodes, "num_timesteps": 2, "alpha": 0.1}
    return {**widths, **counts, "nn": nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))}


def _inputs(size: tuple[int, int, int]) -> dict[str, torch.Tensor]:
    nodes, edges, width = size
    ends = torch.randint(0, nodes, (2, edges))
    node = {"x": torch.randn(nodes, width), "x_0": torch.randn(nodes, width), "pos": torch.randn(nodes, 3), "z": torch.randint(1, 10, (nodes,))}
    edge = {"edge_index": ends, "hyperedge_index": ends, "edge_attr": torch.randn(edges, width), "edge_weight": torch.rand(edges)}
    return {**node, **edge, "edge_type": torch.randint(0, RELATIONS, (edges,)), "batch": torch.zeros(nodes, dtype=torch.int64)}

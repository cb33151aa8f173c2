"""RGCNConv and FastRGCNConv: PyG's relational graph convolution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import Parameter

from warpwright.domains.rgnn.index import uncompiled
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.nn.common import Layer, check_rows, glorot, of_dtype, typed_edges, whole_call, wide
from warpwright.domains.rgnn.operator import Edges, apply, apply_based
from warpwright.domains.rgnn.plan import based_on

LAYERS: Mapping[str, str] = {"mean": "rgcn", "sum": "rgcn_sum", "add": "rgcn_sum", "max": "rgcn_max"}
EMBEDDINGS: Mapping[str, str] = {"mean": "aggregate", "sum": "aggregate_sum", "add": "aggregate_sum", "max": "aggregate_max"}
BLOCKS: Mapping[str, str] = {"mean": "rgcn_blocks", "sum": "rgcn_blocks_sum", "add": "rgcn_blocks_sum", "max": "rgcn_blocks_max"}
"""Names in models.py by aggregation."""

X = torch.Tensor | None | tuple[torch.Tensor | None, torch.Tensor]


class RGCNConv(Layer):
    """x_dst root + bias + sum over relations r of the aggregate over j in N_r(i) of x_j W_r.

    A mean is over each relation's own edges, whatever the number of edges (PyG takes all incoming edges on its segment_matmul path).
    """

    pyg_module = "torch_geometric.nn.conv.rgcn_conv"

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        num_relations: int,
        num_bases: int | None = None,
        num_blocks: int | None = None,
        aggr: str = "mean",
        root_weight: bool = True,
        is_sorted: bool = False,
        bias: bool = True,
        **kwargs: Any,
    ) -> None:
        """Take PyG's arguments."""
        super().__init__()
        self.remember(locals())
        if num_bases is not None and num_blocks is not None:
            raise ValueError("Can not apply both basis-decomposition and block-diagonal-decomposition at the same time.")
        self.in_channels, self.out_channels, self.num_relations = in_channels, out_channels, num_relations
        self.num_bases, self.num_blocks, self.aggr = num_bases, num_blocks, aggr
        self.unsupported = f"the arguments {', '.join(kwargs)}" if kwargs else "" if isinstance(aggr, str) and aggr in LAYERS else f"aggr={aggr!r}"
        self.replayable = num_blocks is None and aggr != "max"
        pair = (in_channels, in_channels) if isinstance(in_channels, int) else in_channels
        self.in_channels_l, self.in_channels_r = pair
        if num_blocks is not None:
            if pair[0] % num_blocks or out_channels % num_blocks:
                raise AssertionError(f"expected channels that {num_blocks} blocks divide, saw {pair[0]} and {out_channels}")
            self.weight = Parameter(torch.empty(num_relations, num_blocks, pair[0] // num_blocks, out_channels // num_blocks))
        else:
            self.weight = Parameter(torch.empty(num_bases or num_relations, pair[0], out_channels))
        self.comp = Parameter(torch.empty(num_relations, num_bases)) if num_bases is not None else None  # in PyG's order: optimisers count parameters
        self.root = Parameter(torch.empty(pair[1], out_channels)) if root_weight else None
        self.bias = Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        for parameter in (self.weight, self.comp, self.root):
            glorot(parameter)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    @whole_call
    def forward(self, x: X, edge_index: Any, edge_type: torch.Tensor | None = None) -> torch.Tensor:
        """Return [targets, out]; x is [N, in], node numbers [N], None for all nodes' own rows, or a pair of them for sources and targets."""
        if self.unsupported or not isinstance(edge_index, torch.Tensor) or edge_index.layout != torch.strided or edge_type is None:
            result: torch.Tensor = self.fall_back(self.unsupported or f"edges as {type(edge_index).__name__}", x, edge_index, edge_type)
            return result
        source, target = x if isinstance(x, tuple) else (x, x)
        if source is None:
            source = torch.arange(self.in_channels_l, device=self.weight.device)
        target = source if target is None else target
        if self.num_blocks is not None and not target.is_floating_point():
            raise ValueError("Block-diagonal decomposition not supported for non-continuous input features.")
        if source.is_floating_point():
            check_rows(source, self.in_channels_l, "x")
        if target.is_floating_point() and self.root is not None:
            check_rows(target, self.in_channels_r, "x of the targets")
        graph = typed_edges(edge_index, edge_type, source.shape[0], target.shape[0], self.num_relations)
        weight = self.relation_weights()
        if not source.is_floating_point():
            message = (Domain.PAIR_SRC, _rows_of(weight, source, graph))
            return self.run_on(EMBEDDINGS, graph, {"message": message}, target)
        elif self.num_blocks is not None:
            parts = wide(source).view(source.shape[0], self.num_blocks, -1)
            return self.run_on(BLOCKS, graph, {"x": (Domain.SRC, parts), "weight": (Domain.ETYPE, weight)}, target)
        return self.run_on(LAYERS, graph, {"x": (Domain.SRC, wide(source)), "weight": (Domain.ETYPE, weight)}, target)

    def relation_weights(self) -> torch.Tensor:
        """Return each relation's weight [R, in, out], or [R, blocks, in / blocks, out / blocks]."""
        weight = wide(self.weight)
        if self.comp is None:
            return weight
        return (wide(self.comp) @ weight.flatten(1)).view(self.num_relations, self.in_channels_l, self.out_channels)

    def run_on(self, layers: Mapping[str, str], graph: Edges, inputs: dict[str, tuple[Domain, torch.Tensor]], target: torch.Tensor) -> torch.Tensor:
        """Return the aggregate and what the targets themselves contribute, to which it is added."""
        dtype = target.dtype if target.is_floating_point() else self.weight.dtype
        bias, root = None if self.bias is None else wide(self.bias), None if self.root is None else wide(self.root)
        if (root is None and bias is None) or self.num_blocks is not None or not target.is_floating_point():
            out = apply(layers[self.aggr], graph, inputs, self.options).flatten(1)
            return of_dtype(out if root is None and bias is None else out + self._base(target, root, bias), dtype)
        return of_dtype(apply_based(layers[self.aggr], graph, inputs, wide(target), root, bias, self.options), dtype)

    @staticmethod
    def _base(target: torch.Tensor, root: torch.Tensor | None, bias: torch.Tensor | None) -> torch.Tensor:
        if root is None or target.is_floating_point():
            return based_on(wide(target), root, bias)
        return root[target] if bias is None else root[target] + bias


@uncompiled
def _rows_of(weight: torch.Tensor, numbers: torch.Tensor, edges: Edges) -> torch.Tensor:
    """Return the weight's row of each (source, relation) pair, for sources that are given by numbers."""
    index = edges.index()
    rows = index.lift(Domain.ETYPE, Domain.PAIR_SRC).long() * weight.shape[1] + numbers[index.lift(Domain.SRC, Domain.PAIR_SRC)]
    return weight.flatten(0, 1)[rows]


class FastRGCNConv(RGCNConv):
    """The same function; PyG's uses more memory for speed, here nothing differs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take PyG's arguments; the aggregation is a sum or a mean."""
        super().__init__(*args, **kwargs)
        if self.aggr == "max":
            raise AssertionError("expected aggr out of add, sum, mean, saw max")

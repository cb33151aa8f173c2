"""RGCNConv and FastRGCNConv: PyG's relational graph convolution."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import Parameter

from warpwright.domains.rgnn import models
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.nn.common import Layer, glorot, typed_index, wide
from warpwright.domains.rgnn.plan import run

LAYERS = {"mean": models.rgcn, "sum": models.rgcn_sum, "add": models.rgcn_sum, "max": models.rgcn_max}

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
        self.unsupported = f"the arguments {', '.join(kwargs)}" if kwargs else "" if aggr in LAYERS else f"aggr={aggr!r}"
        pair = (in_channels, in_channels) if isinstance(in_channels, int) else in_channels
        self.in_channels_l = pair[0]
        self.comp = Parameter(torch.empty(num_relations, num_bases)) if num_bases is not None else None
        if num_blocks is not None:
            if pair[0] % num_blocks or out_channels % num_blocks:
                raise AssertionError(f"expected channels that {num_blocks} blocks divide, saw {pair[0]} and {out_channels}")
            self.weight = Parameter(torch.empty(num_relations, num_blocks, pair[0] // num_blocks, out_channels // num_blocks))
        else:
            self.weight = Parameter(torch.empty(num_bases or num_relations, pair[0], out_channels))
        self.root = Parameter(torch.empty(pair[1], out_channels)) if root_weight else None
        self.bias = Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        for parameter in (self.weight, self.comp, self.root):
            glorot(parameter)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

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
        graph = typed_index(edge_index, edge_type, source.shape[0], target.shape[0], self.num_relations)
        weight = wide(self.weight)
        if self.comp is not None:
            weight = (wide(self.comp) @ weight.flatten(1)).view(self.num_relations, self.in_channels_l, self.out_channels)
        if not source.is_floating_point():
            rows = graph.lift(Domain.ETYPE, Domain.PAIR_SRC).long() * self.in_channels_l + source[graph.lift(Domain.SRC, Domain.PAIR_SRC)]
            message = (Domain.PAIR_SRC, weight.flatten(0, 1)[rows])
            out = run(models.aggregate_max if self.aggr == "max" else models.aggregate if self.aggr == "mean" else models.aggregate_sum,
                      graph, {"message": message}, self.options)  # fmt: skip
        elif self.num_blocks is not None:
            parts = wide(source).view(source.shape[0], self.num_blocks, -1)
            layer = models.rgcn_blocks_max if self.aggr == "max" else models.rgcn_blocks if self.aggr == "mean" else models.rgcn_blocks_sum
            out = run(layer, graph, {"x": (Domain.SRC, parts), "weight": (Domain.ETYPE, weight)}, self.options).flatten(1)
        else:
            out = run(LAYERS[self.aggr], graph, {"x": (Domain.SRC, wide(source)), "weight": (Domain.ETYPE, weight)}, self.options)
        return self._finished(out, target)

    def _finished(self, out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if self.root is not None:
            out = out + (wide(target) @ wide(self.root) if target.is_floating_point() else wide(self.root)[target])
        if self.bias is not None:
            out = out + self.bias
        return out.to(target.dtype) if target.is_floating_point() else out.to(self.weight.dtype)


class FastRGCNConv(RGCNConv):
    """The same function; PyG's uses more memory for speed, here nothing differs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take PyG's arguments; the aggregation is a sum or a mean."""
        super().__init__(*args, **kwargs)
        if self.aggr == "max":
            raise AssertionError("expected aggr out of add, sum, mean, saw max")

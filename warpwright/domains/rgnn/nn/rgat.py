"""RGATConv: PyG's relational graph attention."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import Parameter

from warpwright.domains.rgnn.attention.additive import attended
from warpwright.domains.rgnn.index import uncompiled
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.nn.common import Layer, check_rows, glorot, of_dtype, whole_call, wide
from warpwright.domains.rgnn.operator import Edges, apply, apply_based


class RGATConv(Layer):
    """Attention with scores leaky_relu(x_i W_r q + x_j W_r k), normalised over all incoming edges or over those of each relation.

    Computed here: additive scores without `mod` and dropout in training, edge features, weights whole or of bases. `l2` is filled with
    1 / out_channels (PyG leaves it as the allocator had it).
    """

    pyg_module = "torch_geometric.nn.conv.rgat_conv"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_relations: int,
        num_bases: int | None = None,
        num_blocks: int | None = None,
        mod: str | None = None,
        attention_mechanism: str = "across-relation",
        attention_mode: str = "additive-self-attention",
        heads: int = 1,
        dim: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        edge_dim: int | None = None,
        bias: bool = True,
        **kwargs: Any,
    ) -> None:
        """Take PyG's arguments."""
        super().__init__()
        self.remember(locals())
        self._refuse(num_bases, num_blocks, mod, attention_mechanism, attention_mode, dim, dropout)
        self.in_channels, self.out_channels, self.num_relations = in_channels, out_channels, num_relations
        self.num_bases, self.num_blocks, self.mod, self.heads, self.dim, self.concat = num_bases, num_blocks, mod, heads, dim, concat
        self.attention_mechanism, self.attention_mode = attention_mechanism, attention_mode
        self.negative_slope, self.dropout, self.edge_dim = negative_slope, dropout, edge_dim
        reasons = {
            f"the arguments {', '.join(kwargs)}": bool(kwargs), f"mod={mod!r}": mod is not None, f"attention_mode={attention_mode!r}": dim != 1 or
            attention_mode != "additive-self-attention", "num_blocks": num_blocks is not None,
        }  # fmt: skip
        self.unsupported = next((reason for reason, applies in reasons.items() if applies), "")
        self.replayable = heads == 1
        width = heads * out_channels
        self.q, self.k = Parameter(torch.empty(width, heads * dim)), Parameter(torch.empty(width, heads * dim))
        self.bias = Parameter(torch.empty((width if concat else out_channels) * dim)) if bias else None
        self.e = Parameter(torch.empty(width, heads * dim)) if edge_dim is not None else None
        self.lin_edge = torch.nn.Linear(edge_dim, width, bias=False) if edge_dim is not None else None
        if num_bases is not None:
            self.att, self.basis = Parameter(torch.empty(num_relations, num_bases)), Parameter(torch.empty(num_bases, in_channels, width))
        elif num_blocks is not None:
            if in_channels % num_blocks or width % num_blocks:
                raise AssertionError("both 'in_channels' and 'heads * out_channels' must be multiple of 'num_blocks' used")
            self.weight = Parameter(torch.empty(num_relations, num_blocks, in_channels // num_blocks, width // num_blocks))
        else:
            self.weight = Parameter(torch.empty(num_relations, in_channels, width))
        self.w = Parameter(torch.empty(out_channels))  # in PyG's order: optimisers count parameters
        self.l1, self.b1 = (Parameter(torch.empty(1, out_channels)) for _ in range(2))
        self.l2, self.b2 = Parameter(torch.empty(out_channels, out_channels)), Parameter(torch.empty(1, out_channels))
        self.reset_parameters()

    @staticmethod
    def _refuse(bases: Any, blocks: Any, mod: Any, mechanism: str, mode: str, dim: int, dropout: float) -> None:
        if mechanism not in {"within-relation", "across-relation"}:
            raise ValueError('attention mechanism must either be "within-relation" or "across-relation"')
        if mode not in {"additive-self-attention", "multiplicative-self-attention"}:
            raise ValueError('attention mode must either be "additive-self-attention" or "multiplicative-self-attention"')
        if mode == "additive-self-attention" and dim > 1:
            raise ValueError('"additive-self-attention" mode cannot be applied when value of d is greater than 1.')
        if dropout > 0.0 and mod in {"additive", "scaled", "f-additive", "f-scaled"}:
            raise ValueError("mod must be None with dropout value greater than 0 in order to sample attention coefficients stochastically")
        if bases is not None and blocks is not None:
            raise ValueError("Can not apply both basis-decomposition and block-diagonal-decomposition at the same time.")

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        for name in ("weight", "basis", "att", "q", "k", "e"):
            glorot(getattr(self, name, None))
        if self.lin_edge is not None:
            glorot(self.lin_edge.weight)
        with torch.no_grad():
            for ones in (self.w, self.l1):
                ones.fill_(1.0)
            self.l2.fill_(1 / self.out_channels)
            for zeros in (self.bias, self.b1, self.b2):
                if zeros is not None:
                    zeros.zero_()

    @whole_call
    def forward(
        self, x: torch.Tensor, edge_index: Any, edge_type: torch.Tensor | None = None, edge_attr: Any = None, size: Any = None,
        return_attention_weights: bool | None = None,
    ) -> Any:  # fmt: skip
        """Return [N, heads * out] (concat) or [N, out]."""
        reason = self.unsupported or self._unsupported_call(x, edge_index, edge_type, edge_attr, size, return_attention_weights)
        if reason:
            return self.fall_back(reason, x, edge_index, edge_type, edge_attr, size, return_attention_weights)
        assert edge_type is not None
        check_rows(x, self.in_channels)
        weight = wide(self.att) @ wide(self.basis).flatten(1) if self.num_bases is not None else wide(self.weight)
        weight = weight.view(self.num_relations, self.in_channels, -1)
        graph = Edges((edge_index, edge_type), (x.shape[0], x.shape[0], self.num_relations), "typed" if edge_attr is None else "ordered")
        heads, width = self.heads, self.out_channels
        q, k = wide(self.q), wide(self.k)
        shapes = ((self.num_relations, self.in_channels, heads, width), (heads, width, heads)) if heads > 1 else (weight.shape, (width,))
        if heads == 1 and edge_attr is None and self.attention_mechanism == "across-relation":
            bias = None if self.bias is None else wide(self.bias)
            fused = attended(graph, wide(x), weight, q.reshape(-1), k.reshape(-1), bias, self.negative_slope, self.options)
            if fused is not None:
                return of_dtype(fused, x.dtype)
        layer = ("attention", heads, self.negative_slope, self.attention_mechanism == "within-relation")
        tensors = {"x": (Domain.NODE, wide(x)), "weight": (Domain.ETYPE, weight.view(shapes[0])),
                 "query": (Domain.ONE, q.reshape(shapes[1])), "key": (Domain.ONE, k.reshape(shapes[1]))}  # fmt: skip
        if edge_attr is not None:
            assert self.lin_edge is not None and self.e is not None
            features = wide(edge_attr if edge_attr.dim() > 1 else edge_attr[:, None]) @ (wide(self.lin_edge.weight).t() @ wide(self.e))
            tensors["feature"] = (Domain.EDGE, _in_order(features if heads > 1 else features[:, 0], graph))
        if heads == 1 and self.bias is not None:
            return of_dtype(apply_based(layer, graph, tensors, wide(x), None, wide(self.bias), self.options), x.dtype)
        out = apply(layer, graph, tensors, self.options)
        if heads > 1:
            out = out.flatten(1) if self.concat else out.mean(1)
        return of_dtype(out if self.bias is None else out + self.bias, x.dtype)

    def _unsupported_call(self, x: Any, edge_index: Any, edge_type: Any, edge_attr: Any, size: Any, weights: Any) -> str:
        if not isinstance(edge_index, torch.Tensor) or edge_index.layout != torch.strided or edge_type is None:
            return f"edges as {type(edge_index).__name__}"
        if self.training and self.dropout > 0:
            return "dropout of attention in training"
        if isinstance(weights, bool):
            return "return_attention_weights"
        if edge_attr is not None and (self.edge_dim is None or not edge_attr.is_floating_point() or edge_attr.shape[0] != edge_type.shape[0]):
            return "features of other than all edges"
        return "a given size or node numbers" if size is not None or not x.is_floating_point() else ""


@uncompiled
def _in_order(features: torch.Tensor, edges: Edges) -> torch.Tensor:
    """Return what edges add to scores in the order in which their index has them."""
    given = edges.index().given
    assert given is not None
    return features[given]

"""`torch.pairs`: what a careful user of plain torch writes. Sparse products over (destination, relation) pairs, one matrix product per relation.

It is the bar for compiled layers, and, run in float64, the reference that they are compared with: it shares no code with them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F


class Pairs:
    """Unique (relation, destination) and (relation, source) pairs of a graph, and sparse matrices over them."""

    def __init__(self, edge_index: torch.Tensor, edge_type: torch.Tensor, nodes: int, relations: int) -> None:
        """Sort the edges."""
        device = edge_index.device
        self.nodes, self.relations, self.edges = nodes, relations, edge_type.numel()
        key, perm = torch.sort(edge_type * nodes + edge_index[1])
        unique, count = torch.unique_consecutive(key, return_counts=True)
        self.src, self.dst, self.kind = edge_index[0][perm], edge_index[1][perm], edge_type[perm]
        self.targets = unique.numel()
        self.target = unique % nodes
        bounds = torch.arange(relations + 1, device=device)
        self.target_start = torch.searchsorted(unique // nodes, bounds).tolist()
        self.rows = torch.cat([count.new_zeros(1), count.cumsum(0)]).int()
        self.target_of = torch.repeat_interleave(torch.arange(self.targets, device=device), count, output_size=self.edges)
        self.inverse_count = 1.0 / count.double()
        order = torch.argsort(self.src, stable=True)
        every = torch.arange(nodes + 1, device=device)
        self.turned, self.turned_rows = order, torch.searchsorted(self.src[order], every).int()
        self.turned_columns = self.target_of[order].int()
        by_node = torch.argsort(self.target, stable=True)
        self.node_rows, self.node_columns = torch.searchsorted(self.target[by_node], every).int(), by_node.int()
        keys, self.source_of = torch.unique(self.kind * nodes + self.src, return_inverse=True)
        self.sources, self.source = keys.numel(), keys % nodes
        self.source_start = torch.searchsorted(keys // nodes, bounds).tolist()
        self.columns = self.src.int()


def times(rows: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, size: tuple[int, int], dense: torch.Tensor) -> torch.Tensor:
    """Return a sparse matrix times a dense one."""
    # cuSPARSE refuses more entries than the matrix has places, as the repeated edges of a hub give
    if columns.numel() <= size[0] * size[1]:
        return torch.sparse_csr_tensor(rows, columns, values, size=size, check_invariants=False) @ dense
    row_of = torch.repeat_interleave(torch.arange(size[0], device=rows.device), rows.diff(), output_size=columns.numel())
    return dense.new_zeros(size[0], dense.shape[1]).index_add_(0, row_of, values[:, None] * dense[columns.long()])


class Aggregate(torch.autograd.Function):
    """h[pair] = sum over the pair's edges e of w[e] x[src[e]]."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, p: Pairs) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        ctx.p = p
        return times(p.rows, p.columns, w.detach(), (p.targets, p.nodes), x)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (x, w), p, g = ctx.saved_tensors, ctx.p, g.contiguous()
        gx = times(p.turned_rows, p.turned_columns, w.detach()[p.turned], (p.nodes, p.targets), g)
        gw = None
        if ctx.needs_input_grad[1]:
            gw = x.new_empty(p.edges)
            for low in range(0, p.edges, 1 << 22):
                high = min(p.edges, low + (1 << 22))
                gw[low:high] = (g[p.target_of[low:high]] * x[p.src[low:high]]).sum(-1)
        return gx, gw, None


class PairSum(torch.autograd.Function):
    """out[node] = sum of z over the node's pairs."""

    @staticmethod
    def forward(ctx: Any, z: torch.Tensor, p: Pairs) -> torch.Tensor:
        ctx.p = p
        return times(p.node_rows, p.node_columns, z.new_ones(p.targets), (p.nodes, p.targets), z)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, None]:
        return g[ctx.p.target], None


class ByRelation(torch.autograd.Function):
    """z[a:b] = h[a:b] @ W[r] for the rows a to b of each relation."""

    @staticmethod
    def forward(ctx: Any, h: torch.Tensor, w: torch.Tensor, start: list[int]) -> torch.Tensor:
        ctx.save_for_backward(h, w)
        ctx.start = start
        z = h.new_empty(h.size(0), w.size(2))
        for r in range(w.size(0)):
            if start[r + 1] > start[r]:
                torch.mm(h[start[r] : start[r + 1]], w[r], out=z[start[r] : start[r + 1]])
        return z

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        (h, w), start, g = ctx.saved_tensors, ctx.start, g.contiguous()
        gh, gw = torch.empty_like(h), torch.zeros_like(w)
        for r in range(w.size(0)):
            low, high = start[r], start[r + 1]
            if high > low:
                torch.mm(g[low:high], w[r].t(), out=gh[low:high])
                torch.mm(h[low:high].t(), g[low:high], out=gw[r])
        return gh, gw, None


def softmax(score: torch.Tensor, dst: torch.Tensor, nodes: int) -> torch.Tensor:
    """Normalise over the edges into each node."""
    top = torch.full((nodes,), -math.inf, dtype=score.dtype, device=score.device).scatter_reduce_(0, dst, score.detach(), "amax")
    power = (score - top[dst]).exp()
    total = torch.zeros(nodes, dtype=score.dtype, device=score.device).index_add(0, dst, power)
    return power / (total[dst] + 1e-16)


def rgcn(p: Pairs, layer: Any, x: torch.Tensor) -> torch.Tensor:
    """RGCNConv with the mean."""
    h = Aggregate.apply(x, p.inverse_count.to(x.dtype)[p.target_of], p)
    return PairSum.apply(ByRelation.apply(h, layer.weight, p.target_start), p) + x @ layer.root + layer.bias


def rgat(p: Pairs, layer: Any, x: torch.Tensor) -> torch.Tensor:
    """RGATConv with one head."""
    wq, wk = torch.einsum("rio,oh->rih", layer.weight, layer.q), torch.einsum("rio,oh->rih", layer.weight, layer.k)
    q = ByRelation.apply(x[p.target], wq, p.target_start)[:, 0]
    k = ByRelation.apply(x[p.source], wk, p.source_start)[:, 0]
    score = F.leaky_relu(q[p.target_of] + k[p.source_of], layer.negative_slope)
    h = Aggregate.apply(x, softmax(score, p.dst, p.nodes), p)
    return PairSum.apply(ByRelation.apply(h, layer.weight, p.target_start), p) + layer.bias


def hgt(p: Pairs, layer: Any, x: torch.Tensor, kinds: list[str], offsets: list[int]) -> torch.Tensor:
    """HGTConv with one head; x is the concatenation over node types."""
    parts = [x[low:high] for low, high in itertools.pairwise(offsets)]
    kqv = torch.cat([F.linear(part, layer.kqv_lin.lins[t].weight, layer.kqv_lin.lins[t].bias) for part, t in zip(parts, kinds, strict=True)])
    k, q, v = (t.contiguous() for t in kqv.tensor_split(3, 1))
    prior = torch.cat([layer.p_rel["__".join(e)].view(1) for e in layer.edge_types]) / math.sqrt(k.size(1))
    turned = ByRelation.apply(q[p.target], layer.k_rel.weight.transpose(1, 2), p.target_start)
    score = (turned[p.target_of] * k[p.src]).sum(-1) * prior[p.kind]
    h = Aggregate.apply(v, softmax(score, p.dst, p.nodes), p)
    summed = PairSum.apply(ByRelation.apply(h, layer.v_rel.weight, p.target_start), p)
    outs = []
    for part, low, high, t in zip(parts, offsets, offsets[1:], kinds, strict=False):
        if t in {e[2] for e in layer.edge_types}:
            out = F.linear(F.gelu(summed[low:high]), layer.out_lin.lins[t].weight, layer.out_lin.lins[t].bias)
            share = layer.skip[t].sigmoid()
            outs.append(share * out + (1 - share) * part)
    return torch.cat(outs)


def floor_bytes(p: Pairs, d: int, model: str, item: int = 4) -> tuple[float, float]:
    """Return the bytes that a fused forward, and forward with backward, move: each edge reads its row (two for HGT), each pair's row is added once.

    Backward: each edge reads the gradient's row, and for attention the rows of both factors of each product; each source pair reads and adds a row.
    """
    row, ids, n, e = d * item, 8 * p.edges, p.nodes, p.edges
    weights = p.relations * d * d * item
    if model == "rgcn":
        forward = e * row + ids + p.targets * row + 2 * n * row + weights
        return forward, forward + e * row + ids + 2 * p.sources * row + 3 * n * row + 2 * weights
    if model == "rgat":
        forward = e * row + ids + 12 * e + (p.sources + 2 * p.targets) * row + n * row + weights
        return forward, forward + 2 * e * row + 2 * ids + 24 * e + 3 * (p.sources + p.targets) * row + 3 * n * row + 2 * weights
    forward = 2 * e * row + ids + 12 * e + 2 * p.targets * row + 6 * n * row + 2 * weights
    return forward, forward + 4 * e * row + 2 * ids + 24 * e + 3 * (p.sources + p.targets) * row + 9 * n * row + 4 * weights


LAYERS: Mapping[str, Any] = {"rgcn": rgcn, "rgat": rgat, "hgt": hgt}

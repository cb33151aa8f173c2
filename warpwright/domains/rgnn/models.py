"""Layers as front-end programs: nothing else in this domain knows any of them."""

from __future__ import annotations

import functools
from collections.abc import Callable

from warpwright.domains.rgnn.front import Graph, Sym, leaky_relu, sum_pairs
from warpwright.domains.rgnn.lattice import Domain


def rgcn(g: Graph, x: Sym, weight: Sym, aggregation: str = "mean") -> Sym:
    """Sum over relations of the aggregate of x_j W_r (Schlichtkrull et al. 2018); x [N, in], weight [R, in, out]."""
    return g.per_relation(g.src(x) @ weight[g.etype], aggregation)


rgcn_sum = functools.partial(rgcn, aggregation="sum")


def rgcn_max(g: Graph, x: Sym, weight: Sym) -> Sym:
    """The same with a maximum of x_j over each relation's edges before the product, as PyG has it."""
    return sum_pairs(g.max_in(g.src(x), Domain.PAIR_DST) @ weight[g.etype])


def rgat(g: Graph, x: Sym, weight: Sym, query: Sym, key: Sym, slope: float = 0.2, to: Domain = Domain.DST) -> Sym:
    """Additive attention over all incoming edges (Busbridge et al. 2019); weight [R, in, heads, out], query and key [heads, out, heads]."""
    z_dst, z_src = g.dst(x).per_head(weight[g.etype]), g.src(x).per_head(weight[g.etype])
    score = leaky_relu(project(z_dst, query) + project(z_src, key), slope)
    return g.sum_in(g.softmax_in(score, to)[..., None] * z_src)


def project(z: Sym, by: Sym) -> Sym:
    """Return [heads] of z [heads, out] and [heads, out, heads]."""
    return z._contract(by, "hm", "hmg", "g")


def hgt(g: Graph, key: Sym, query: Sym, value: Sym, attention: Sym, message: Sym, prior: Sym) -> Sym:
    """Heterogeneous graph transformer's aggregation (Hu et al. 2020); key, query, value [N, heads, D], attention, message [R, heads, D, D], prior [R, heads]."""
    score = (heads(g.src(key), attention[g.etype]) * g.dst(query)).sum() * prior[g.etype]
    return g.sum_in(g.softmax_in(score)[..., None] * heads(g.src(value), message[g.etype]))


def heads(x: Sym, weight: Sym) -> Sym:
    """Return [heads, out] of x [heads, in] and a weight [heads, in, out]."""
    return x._contract(weight, "hk", "hkm", "hm")


def rgat_single(g: Graph, x: Sym, weight: Sym, query: Sym, key: Sym, slope: float = 0.2, to: Domain = Domain.DST) -> Sym:
    """`rgat` of one head; weight [R, in, out], query and key [out]."""
    z_dst, z_src = g.dst(x) @ weight[g.etype], g.src(x) @ weight[g.etype]
    return g.sum_in(g.softmax_in(leaky_relu((z_dst * query).sum() + (z_src * key).sum(), slope), to) * z_src)


def hgt_single(g: Graph, key: Sym, query: Sym, value: Sym, attention: Sym, message: Sym, prior: Sym) -> Sym:
    """`hgt` of one head; key, query, value [N, D], attention, message [R, D, D], prior [R]."""
    score = ((g.src(key) @ attention[g.etype]) * g.dst(query)).sum() * prior[g.etype]
    return g.sum_in(g.softmax_in(score) * (g.src(value) @ message[g.etype]))


def aggregate(g: Graph, message: Sym, how: str = "mean") -> Sym:
    """Aggregate messages that are there already (an embedding's rows), per relation."""
    return g.per_relation(message, how)


aggregate_sum = functools.partial(aggregate, how="sum")
aggregate_max = functools.partial(aggregate, how="max")


def rgcn_blocks(g: Graph, x: Sym, weight: Sym, how: str = "mean") -> Sym:
    """`rgcn` with block-diagonal weights; x [N, blocks, in], weight [R, blocks, in, out]."""
    if how == "max":
        return sum_pairs(heads(g.max_in(g.src(x), Domain.PAIR_DST), weight[g.etype]))
    return g.per_relation(heads(g.src(x), weight[g.etype]), how)


rgcn_blocks_sum = functools.partial(rgcn_blocks, how="sum")
rgcn_blocks_max = functools.partial(rgcn_blocks, how="max")


@functools.cache
def attention(heads: int, slope: float, within: bool) -> Callable[..., Sym]:
    """Return `rgat_single` or `rgat` with a slope, normalised over all incoming edges or within each relation."""
    return functools.partial(rgat_single if heads == 1 else rgat, slope=slope, to=Domain.PAIR_DST if within else Domain.DST)

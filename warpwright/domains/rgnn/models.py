"""Layers as front-end programs: nothing else in this domain knows any of them."""

from __future__ import annotations

import functools
from collections.abc import Callable

from warpwright.domains.rgnn.front import Graph, Sym, leaky_relu, relu, sum_pairs
from warpwright.domains.rgnn.lattice import Domain


def based(layer: Callable[..., Sym]) -> Callable[..., Sym]:
    """Return the layer with `base` [N, out] added to its result, as a root weight or a bias gives it."""
    return _based(layer)


@functools.cache
def _based(layer: Callable[..., Sym]) -> Callable[..., Sym]:
    def with_base(g: Graph, base: Sym, **inputs: Sym) -> Sym:
        return layer(g, **inputs) + g.dst(base)

    return with_base


def rgcn(g: Graph, x: Sym, weight: Sym, aggregation: str = "mean") -> Sym:
    """Sum over relations of the aggregate of x_j W_r (Schlichtkrull et al. 2018); x [N, in], weight [R, in, out]."""
    return g.per_relation(g.src(x) @ weight[g.etype], aggregation)


rgcn_sum = functools.partial(rgcn, aggregation="sum")


def rgcn_max(g: Graph, x: Sym, weight: Sym) -> Sym:
    """The same with a maximum of x_j over each relation's edges before the product, as PyG has it."""
    return sum_pairs(g.max_in(g.src(x), Domain.PAIR_DST) @ weight[g.etype])


def rgat(
    g: Graph, x: Sym, weight: Sym, query: Sym, key: Sym, slope: float = 0.2, to: Domain = Domain.DST, feature: Sym | None = None
) -> Sym:
    """Additive attention over all incoming edges (Busbridge et al. 2019); weight [R, in, heads, out], query and key [heads, out, heads].

    `feature` [heads]: what an edge's own features add to its scores.
    """
    z_dst, z_src = g.dst(x).per_head(weight[g.etype]), g.src(x).per_head(weight[g.etype])
    score = project(z_dst, query) + project(z_src, key)
    score = leaky_relu(score if feature is None else score + feature, slope)
    return g.sum_in(g.softmax_in(score, to)[..., None] * z_src)


def project(z: Sym, by: Sym) -> Sym:
    """Return [heads] of z [heads, out] and [heads, out, heads]."""
    return z._contract(by, "hm", "hmg", "g")


def hgt(g: Graph, key: Sym, query: Sym, value: Sym, attention: Sym, message: Sym, prior: Sym) -> Sym:
    """Heterogeneous graph transformer's aggregation (Hu et al. 2020).

    key, query, value [N, heads, D], attention, message [R, heads, D, D], prior [R, heads].
    """
    score = (heads(g.src(key), attention[g.etype]) * g.dst(query)).sum() * prior[g.etype]
    return g.sum_in(g.softmax_in(score)[..., None] * heads(g.src(value), message[g.etype]))


def heads(x: Sym, weight: Sym) -> Sym:
    """Return [heads, out] of x [heads, in] and a weight [heads, in, out]."""
    return x._contract(weight, "hk", "hkm", "hm")


def rgat_single(
    g: Graph, x: Sym, weight: Sym, query: Sym, key: Sym, slope: float = 0.2, to: Domain = Domain.DST, feature: Sym | None = None
) -> Sym:
    """`rgat` of one head; weight [R, in, out], query and key [out], feature []."""
    z_dst, z_src = g.dst(x) @ weight[g.etype], g.src(x) @ weight[g.etype]
    score = (z_dst * query).sum() + (z_src * key).sum()
    score = leaky_relu(score if feature is None else score + feature, slope)
    return g.sum_in(g.softmax_in(score, to) * z_src)


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


# --- more layers, to show that nothing else has to know of them --------------------------------------------------------


def han(g: Graph, x: Sym, project: Sym, query: Sym, key: Sym, meta: Sym) -> Sym:
    """Heterogeneous graph attention (Wang et al. 2019): attention within each meta-path, weighted by the path's own share.

    x [N, in], project [in, out], query and key [R, out], meta [R]: the softmax over paths of their semantic scores.
    """
    z_src, z_dst = g.src(x) @ project, g.dst(x) @ project
    score = leaky_relu((z_dst * query[g.etype]).sum() + (z_src * key[g.etype]).sum(), 0.2)
    return sum_pairs(g.sum_in(g.softmax_in(score, Domain.PAIR_DST) * z_src, Domain.PAIR_DST) * meta[g.etype])


def simple_hgn(g: Graph, x: Sym, project: Sym, query: Sym, key: Sym, kind: Sym, of_kind: Sym) -> Sym:
    """SimpleHGN (Lv et al. 2021): one projection, scores with a part of the edge type's embedding; kind [R, d_e], of_kind [d_e]."""
    z_src, z_dst = g.src(x) @ project, g.dst(x) @ project
    score = leaky_relu((z_dst * query).sum() + (z_src * key).sum() + (kind[g.etype] * of_kind).sum(), 0.2)
    return g.sum_in(g.softmax_in(score) * z_src)


def compgcn(g: Graph, x: Sym, relation: Sym, weight: Sym) -> Sym:
    """CompGCN (Vashishth et al. 2020) with multiplication: sum of (x_j * relation_r) W; relation [R, in], weight [in, out]."""
    return g.mean_in((g.src(x) * relation[g.etype]) @ weight)


def hetero_sage(g: Graph, x: Sym, neighbour: Sym, own: Sym) -> Sym:
    """GraphSAGE for each relation (PyG's to_hetero), summed: mean_{N_r}(x_j) neighbour_r + x_i own_r over the relations that i has edges of."""
    mean = g.mean_in(g.src(x), Domain.PAIR_DST)
    return sum_pairs(mean @ neighbour[g.etype] + g.dst(x) @ own[g.etype])


def rgin(g: Graph, x: Sym, weight: Sym, first: Sym, second: Sym) -> Sym:
    """Relational GIN: a two-layer network of the sum of typed messages and the node's own row."""
    return relu((g.sum_in(g.src(x) @ weight[g.etype]) + g.dst(x) @ first) @ second)

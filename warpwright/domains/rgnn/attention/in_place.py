"""HGT's attention on a small graph without gradients, from the nodes' own rows where they lie: no key and no value of a node is made.

    keys, values [pairs]    = (row linear^T + bias) A_r of each (source, relation) pair, by one launch (emit/own/products.cu)
    query [nodes]           = row linear^T + bias, beside it in a recording
    out                     = as in layer.py

With gradients keys and values of nodes are what the backward reads; on large graphs of_rows.py has both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn.attention.kernels import launches, spans
from warpwright.domains.rgnn.attention.layer import wanted_still
from warpwright.domains.rgnn.emit.aside import beside
from warpwright.domains.rgnn.emit.own import products
from warpwright.domains.rgnn.emit.own.kinds import Kinds
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.operator import Edges
from warpwright.domains.rgnn.plan import Options

Linear = Callable[[], tuple[torch.Tensor, torch.Tensor, torch.Tensor]]

FEW = 8
"""Pairs of a node, in the mean, up to which its key and value cost more than weights that blocks of pairs make: bgs' graph has 2.8, fb15k's 13."""
PARTS = 3
"""Of a node type's weight [3 * out, in]: key, query, value."""


@functools.lru_cache(maxsize=16)
def _sources(sources: tuple[int, ...], device: torch.device) -> torch.Tensor:
    return torch.tensor(sources, dtype=torch.int32).to(device)


def attention(
    edges: Edges, kernels: Kinds, rows: Sequence[torch.Tensor], sources: tuple[int, ...], linear: Linear,
    relations: tuple[torch.Tensor, torch.Tensor], factor: float, options: Options,
) -> torch.Tensor | None:  # fmt: skip
    """Return the attention [N, out] of each type's rows (kinds.apart), where the options want the kernels and these take it; else None.

    `linear` gives weights [types, 3 * out, in], biases and the relations' priors [R], which `factor` multiplies; `relations`: what keys and values
    are multiplied by [R, out, out]; `sources`: types of the relations' sources.
    """
    if not options.reorder or not wanted_still(edges, rows[0], options, relations, sum(kernels.counts)):
        return None
    index, launch = edges.index(), launches(rows[0].device)
    alone = products.OF_ROWS.launcher(index.device)
    if launch is None or alone is None or FEW * sum(kernels.counts) < index.rows[Domain.PAIR_SRC]:
        return None
    weight, bias, prior = linear()
    of = products.Composed(weight, bias, *relations, prior, indices.mention(_sources(sources, rows[0].device)), factor)
    if not products.fits(of):
        return None
    asking = functools.partial(kernels.products, rows, weight, bias, PARTS, 1)
    query, (keys, values) = beside(index.device, asking, lambda: products.composed(alone, index, kernels.places_of(rows), of))
    return launch.forward(spans(index), query[0], keys, values).out

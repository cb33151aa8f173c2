"""HGT's attention from the nodes' own rows: a key's and a value's weight are multiplied by the relation's first, so that neither is made for a node.

    keys   [pairs]  = x (K_t A_r) + b_t A_r       of each (source, relation) pair, whose relation has one source type t; values alike
    query  [nodes]  = x Q_t + b_t
    out             = sum of softmax(query . keys) values, as in layer.py

A node's key and value are two of three products of all rows forward, and two of three terms of the rows' gradient and of the weights' gradients
backward. On am's graph (1.9 million nodes) these take 2.0 of 14.6 ms of a training step (an H200, by kernels); what is left of them here are products
of matrices, one for each relation.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn.attention.kernels import WIDEST, Attended, Launches, launches, spans, takes
from warpwright.domains.rgnn.attention.layer import Run, both, gradients, run, wanted
from warpwright.domains.rgnn.emit import dense
from warpwright.domains.rgnn.emit.aside import beside
from warpwright.domains.rgnn.emit.own.kinds import kinds as by_kind
from warpwright.domains.rgnn.emit.own.products import Side
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.ir import Program
from warpwright.domains.rgnn.operator import Edges
from warpwright.domains.rgnn.plan import STARTED, Options

PARTS = 3
"""Of a node type's weight [3 * out, in]: key, query, value."""


def taken(edges: Edges, x: torch.Tensor, nodes: int, width: int, options: Options, parameters: Sequence[torch.Tensor]) -> Launches | None:
    """Return what launches the kernels of HGT's attention where the options want them for such rows as x; None elsewhere."""
    if not options.reorder or not takes(x) or width > WIDEST or width % 4 or any(y.dtype is not torch.float32 for y in parameters):
        return None
    return launches(x.device) if wanted(edges, x, options, parameters, nodes) else None


def attention(
    edges: Edges, launch: Launches, counts: tuple[int, ...], sources: tuple[int, ...], x: torch.Tensor, weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor], key_of: torch.Tensor, value_of: torch.Tensor, prior: torch.Tensor, begun: Begun,
) -> torch.Tensor:  # fmt: skip
    """Return the attention [N, out] of rows x [N, in] of types of `counts` nodes.

    `weights` [3 * out, in] and `biases` of each type, `key_of` and `value_of` [R, out, out], `prior` [R]; `sources`: each relation's source type.
    """
    index = edges.index()
    runner = functools.partial(run, index.device)
    result: torch.Tensor = OfRows.apply(index, launch, runner, counts, sources, begun, x, key_of, value_of, prior, *weights, *biases)
    return result


def _chosen(sources: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """Return which parts of all types' weights the relations take, keys and then values."""
    return indices.mention(_chosen_on(sources, device))


@functools.lru_cache(maxsize=16)
def _chosen_on(sources: tuple[int, ...], device: torch.device) -> torch.Tensor:
    return torch.tensor([PARTS * kind + part for part in (0, PARTS - 1) for kind in sources], device=device)


def queries(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, counts: tuple[int, ...]) -> torch.Tensor:
    """Return x weight^T + bias of each row's type [N, out]."""
    own = by_kind(x, counts, weight.shape[1]) if len(x) < dense.MANY else None
    if own is not None:
        return own.products(x, weight, bias, 1)[0]
    out = x.new_empty(len(x), weight.shape[1])
    for rows, w, b, place in zip(x.split(counts), weight, bias, out.split(counts), strict=True):
        dense.products(rows, w[None], b[None], place[None])
    return out


def of_queries(
    x: torch.Tensor, weight: torch.Tensor, counts: tuple[int, ...], gradient: torch.Tensor, onto: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of weight and bias; that of the rows is added to `onto`."""
    own = by_kind(x, counts, weight.shape[1]) if len(x) < dense.MANY else None
    if own is not None:
        rows, summed = beside(
            x.device, lambda: own.sums([gradient], weight) if onto is not None else None, functools.partial(own.gradients, [gradient], x)
        )
        if onto is not None and rows is not None:
            onto.add_(rows)
        return summed[:2]
    found = []
    for place, (low, high) in enumerate(itertools.pairwise(itertools.accumulate(counts, initial=0))):
        rows, given = x[low:high], gradient[low:high]
        if onto is not None:
            dense.product(given, weight[place], out=onto[low:high], add=True)
        matrix, total = dense.outer(rows, given)
        found.append((matrix.t(), total))
    matrices, totals = zip(*found, strict=True)
    return torch.stack(matrices), torch.stack(totals)


class Begun:
    """Where the end of a layer, whose backward runs first, leaves its share of the rows' gradient, to which the attention's is added in memory."""

    def __init__(self) -> None:
        self.rows: torch.Tensor | None = None

    def taken(self) -> torch.Tensor | None:
        """Return what was left, once."""
        rows, self.rows = self.rows, None
        return rows


class OfRows(torch.autograd.Function):
    """The attention as one node of autograd."""

    @staticmethod
    def forward(
        ctx: Any, index: Index, launch: Launches, runner: Callable[[Program], Run], counts: tuple[int, ...], sources: tuple[int, ...],
        begun: Begun, x: torch.Tensor, key_of: torch.Tensor, value_of: torch.Tensor, prior: torch.Tensor, *linears: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        """Take what `attention` does."""
        kinds, (relations, width, _), depth = len(counts), key_of.shape, x.shape[1]
        weight, bias = torch.stack(linears[:kinds]).view(kinds, PARTS, width, depth), torch.stack(linears[kinds:]).view(kinds, PARTS, width)
        chosen = _chosen(sources, x.device)
        related = torch.cat([key_of * prior[:, None, None], value_of])
        taken, start = weight.view(-1, width, depth).index_select(0, chosen), bias.view(-1, 1, width).index_select(0, chosen)
        turned = torch.bmm(taken.transpose(1, 2), related).view(2, relations, depth, width)
        base = torch.bmm(start, related).view(2, relations, width)
        asking = weight[:, 1].contiguous()
        query = queries(x, asking, bias[:, 1].contiguous(), counts)
        keys, values = both(index, runner, *(Side(x.detach(), turned[i], base[i]) for i in (0, 1)))
        done = launch.forward(spans(index), query, keys, values)
        ctx.save_for_backward(x, key_of, prior, asking, taken, start, related, turned, query, keys, values, done.out, done.most, done.total)
        ctx.index, ctx.launch, ctx.runner, ctx.counts, ctx.chosen, ctx.begun = index, launch, runner, counts, chosen, begun
        return done.out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of what forward takes."""
        x, key_of, prior, asking, taken, start, related, turned, query, keys, values, *done = ctx.saved_tensors
        gradient, index, of_rows = gradient.contiguous(), ctx.index, ctx.needs_input_grad[6]
        of_query, shares, slopes = ctx.launch.backward(spans(index), query, keys, values, gradient, Attended(*done))
        del keys, values
        depth, width = x.shape[1], key_of.shape[1]
        onto = ctx.begun.taken() if of_rows else None
        onto = torch.zeros_like(x) if of_rows and onto is None else onto
        make, started = ctx.runner(gradients(depth, width, of_rows, True, of_rows)), {} if onto is None else {STARTED: onto}
        one, two = (
            functools.partial(make, index, {"rows": x, "weight": weight, "given": given, "number": number} | started)
            for weight, given, number in ((turned[0], query, slopes), (turned[1], gradient, shares))
        )
        of_keys, of_values = beside(index.device, one, two)
        if onto is not None and of_keys[0].data_ptr() != onto.data_ptr():  # by torch calls: results of their own
            onto = of_keys[0] + of_values[0] - onto
        found = [(side[-2], side[-1]) for side in (of_keys, of_values)]
        of_asking, of_start = of_queries(x, asking, ctx.counts, of_query, onto)
        return None, None, None, None, None, None, onto, *_of_weights(ctx, key_of, prior, taken, start, related, found, of_asking, of_start)


def _of_weights(
    ctx: Any, key_of: torch.Tensor, prior: torch.Tensor, taken: torch.Tensor, start: torch.Tensor, related: torch.Tensor,
    found: Sequence[tuple[torch.Tensor, torch.Tensor]], of_asking: torch.Tensor, of_asked: torch.Tensor,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """Return the gradients of the relations' matrices, of their priors, and of each type's weight and bias."""
    of_turned, of_base = (torch.cat(parts) for parts in zip(*found, strict=True))
    (relations, width, _), depth, kinds = key_of.shape, taken.shape[2], len(ctx.counts)
    of_related = torch.bmm(taken, of_turned).baddbmm_(start.transpose(1, 2), of_base[:, None])
    whole = taken.new_zeros(kinds * PARTS * width * (depth + 1))
    of_weight, of_bias = whole.split([kinds * PARTS * width * depth, kinds * PARTS * width])
    of_weight.view(-1, width, depth).index_add_(0, ctx.chosen, torch.bmm(related, of_turned.transpose(1, 2)))
    of_bias.view(-1, width).index_add_(0, ctx.chosen, torch.bmm(of_base[:, None], related.transpose(1, 2))[:, 0])
    of_weight.view(kinds, PARTS, width, depth)[:, 1] = of_asking
    of_bias.view(kinds, PARTS, width)[:, 1] = of_asked
    of_key, of_value = of_related[:relations], of_related[relations:]
    of_prior = (of_key * key_of).sum((1, 2))
    return (
        of_key * prior[:, None, None], of_value, of_prior, *of_weight.view(kinds, PARTS * width, depth).unbind(),
        *of_bias.view(kinds, PARTS * width).unbind(),
    )  # fmt: skip

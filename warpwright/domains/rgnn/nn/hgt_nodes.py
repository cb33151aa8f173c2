"""The first and the last step of HGT as nodes of autograd: the projections of each node type's rows, and the mixing of the result with them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F

from warpwright.domains.rgnn.attention.of_rows import Begun
from warpwright.domains.rgnn.emit.aside import beside
from warpwright.domains.rgnn.emit.dense import mixed, outers, products, summed, unmixed
from warpwright.domains.rgnn.nn.node_types import are_few, by_type, kernels_for, laid, of_kinds, side_by_side


class Project(torch.autograd.Function):
    """Rows of each node type times the type's weight, the three parts of the result each in one tensor over all nodes: no concatenation, no copy."""

    @staticmethod
    def forward(ctx: Any, counts: list[int], begun: Begun | None, lying: bool, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Take rows [N_t, in_t], weights [3 * out, in_t] and biases [3 * out] of all types, in this order; return three [N, out].

        The gradient of the rows is added to what the end of the layer has left in `begun`, if there is one.

        Rows of a small graph may be one tensor [N, in]: so is their gradient then, which what else reads them adds to in one launch. `lying`: they
        are of all types, are read where they lie, and there is no backward.
        """
        kinds = len(counts)
        weights, biases = tensors[-2 * kinds : -kinds], tensors[-kinds:]
        ctx.save_for_backward(*tensors[:-kinds])
        ctx.counts, ctx.few, ctx.begun = counts, are_few(counts), begun
        given = tensors[: -2 * kinds]
        rows = by_type(given, counts)
        ctx.own = kernels_for(tensors[0], counts, weights[0].shape[0] // 3) if ctx.few and (lying or len(given) == 1) else None
        if ctx.own is not None:
            weight, bias, _ = side_by_side(weights, biases)
            ctx.save_for_backward(tensors[0], weight)
            return ctx.own.products(given if lying else given[0], weight, bias, 3).unbind()
        if ctx.few:
            whole = rows[0].new_empty(sum(counts), weights[0].shape[0])
            for x, weight, bias, place in zip(rows, weights, biases, whole.split(counts), strict=True):
                torch.addmm(bias, x, weight.t(), out=place)
            return whole.view(whole.shape[0], 3, -1).transpose(0, 1).contiguous().unbind()
        whole = rows[0].new_empty(3, sum(counts), weights[0].shape[0] // 3)
        for x, weight, bias, place in zip(rows, weights, biases, whole.split(counts, 1), strict=True):
            products(x, weight.unflatten(0, (3, -1)), bias.unflatten(0, (3, -1)), place)
        return whole.unbind()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        """Return the gradients of rows, weights and biases."""
        if ctx.own is not None:
            x, weight = ctx.saved_tensors
            own, one = ctx.own, ctx.needs_input_grad[3]
            left = None if ctx.begun is None or not one else ctx.begun.taken()
            summing = functools.partial(own.sums, gradients, weight, left)
            of_x, (matrix, total, _) = beside(x.device, lambda: summing() if one else None, lambda: own.gradients(gradients, x))
            return None, None, None, of_x, *matrix.unbind(), *total.unbind()
        kinds = len(ctx.counts)
        given, weights = ctx.saved_tensors[:-kinds], ctx.saved_tensors[-kinds:]
        rows, wanted = by_type(given, ctx.counts), ctx.needs_input_grad[3 : 3 + len(given)]
        if ctx.few:
            every = torch.cat(gradients, 1)
            whole = every.split(ctx.counts)
            of_biases = (of_kinds(tuple(ctx.counts), every.device, every.dtype)[1] @ every).unbind()
            of_given = [torch.empty_like(x) for x in given] if any(wanted) else []
            for g, w, place in zip(whole, weights, by_type(of_given, ctx.counts), strict=True) if of_given else ():
                torch.mm(g, w, out=place)
            if of_given and ctx.begun is not None and (left := ctx.begun.taken()) is not None:
                of_given = [left.add_(*of_given)]
            nothing: list[None] = [None] * len(given)
            return None, None, None, *(of_given or nothing), *(g.t() @ x for g, x in zip(whole, rows, strict=True)), *of_biases
        of_rows, of_weights, of_bias = [], [], []
        for x, weight, one, *parts in zip(rows, weights, wanted, *(g.split(ctx.counts) for g in gradients), strict=True):
            of_rows.append(summed(parts, weight.unflatten(0, (3, -1))) if one else None)
            matrix, total = outers(x, parts)
            of_weights.append(matrix.t())
            of_bias.append(total)
        return None, None, None, *of_rows, *of_weights, *of_bias


class Finish(torch.autograd.Function):
    """The end of a layer on a small graph, where launches decide: x + share (gelu(out) W + b - x), with each node type's share, W and b.

    A type's share is the sigmoid of its gate. Only the types `own` have an end.
    """

    @staticmethod
    def forward(
        ctx: Any, counts: tuple[int, ...], own: tuple[int, ...], begun: Begun | None, kept: bool, x: torch.Tensor | Sequence[torch.Tensor],
        end: list[torch.Tensor], out: torch.Tensor, *tensors: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:  # fmt: skip
        """Take rows of all types, then weights [out, out], biases and gates [1] of the types `own`; return rows of each of these.

        The gradient of x is left in `begun`, if there is one, for the node that makes `out` of x. `kept`: may there be a backward? Without, x may be
        the rows of each type, which `in_place` finds fit. `end`: weights, biases and gates side by side, where they are.
        """
        kinds = len(own)
        weights, biases, gates = tensors[:kinds], tensors[kinds : 2 * kinds], tensors[2 * kinds :]
        first = x if isinstance(x, torch.Tensor) else x[0]
        sizes, kernels = [counts[kind] for kind in own], kernels_for(first, counts, first.shape[1])
        ctx.counts, ctx.own, ctx.sizes, ctx.begun = counts, own, sizes, begun
        ctx.set_materialize_grads(False)
        ctx.kernels = None if kernels is None else replace(kernels, chosen=own)
        if ctx.kernels is not None:
            weight, bias, gate = end or side_by_side(weights, biases, gates)
            whole, moved = ctx.kernels.mixed(x if isinstance(x, torch.Tensor) else [x[kind] for kind in own], out, weight, bias, gate, kept)
            ctx.save_for_backward(out, moved, weight, gate)
            starts = [sum(counts[:kind]) for kind in own]
        else:
            x = x if isinstance(x, torch.Tensor) else laid(x, counts, range(len(counts)))
            x, out = (_of_types(rows, counts, own) for rows in (x, out))
            active, done = F.gelu(out), torch.empty_like(x)
            for part, weight, bias, place in zip(active.split(sizes), weights, biases, done.split(sizes), strict=True):
                torch.addmm(bias, part, weight.t(), out=place)
            shares = torch.cat(gates).sigmoid()
            share = shares.index_select(0, of_kinds(tuple(sizes), x.device, x.dtype)[0])[:, None]
            moved = done.sub_(x)
            ctx.save_for_backward(out, active, share, shares, moved, *weights)
            whole = torch.addcmul(x, moved, share)
            starts = list(itertools.accumulate(sizes[:-1], initial=0))
        width = whole.shape[1]
        # parts of its memory, but no views for autograd: programs may write them in place
        places = zip(starts, sizes, strict=True)
        return tuple(whole.new_empty(0).set_(whole.untyped_storage(), width * start, (n, width)) for start, n in places)  # type: ignore[call-overload]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *given: torch.Tensor | None) -> tuple[Any, ...]:
        """Return the gradients of what forward takes; None for weights, biases and gates of a type whose rows no loss reads.

        An optimiser leaves what has no gradient as it is, and moves what has zeros by its momentum and its weight decay.
        """
        counts, own, sizes = ctx.counts, ctx.own, ctx.sizes
        out = ctx.saved_tensors[0]
        gradients = [out.new_zeros(n, out.shape[1]) if g is None else g for g, n in zip(given, sizes, strict=True)]
        if ctx.kernels is not None:
            of_x, of_out, of_weight, of_bias, of_gates = ctx.kernels.unmixed(laid(gradients, counts, own), *ctx.saved_tensors)
            if others := [kind for kind in range(len(counts)) if kind not in own]:
                torch._foreach_zero_([rows[kind] for rows in (of_x.split(counts), of_out.split(counts)) for kind in others])
            return None, None, None, None, _left(ctx, of_x), None, of_out, *_read(given, of_weight.unbind(), of_bias.unbind(), of_gates.split(1))
        gradient = torch.cat(gradients)
        out, active, share, shares, moved, *weights = ctx.saved_tensors
        members = of_kinds(tuple(sizes), gradient.device, gradient.dtype)[1]
        inner = gradient * share
        of_gates = torch.ops.aten.sigmoid_backward(members @ (gradient * moved).sum(1), shares)
        of_active, parts = torch.empty_like(active), inner.split(sizes)
        for g, weight, place in zip(parts, weights, of_active.split(sizes), strict=True):
            torch.mm(g, weight, out=place)
        of_weights = [g.t() @ a for g, a in zip(parts, active.split(sizes), strict=True)]
        of_x = _onto_types(gradient - inner, counts, own) if ctx.needs_input_grad[4] else None
        of_out = _onto_types(torch.ops.aten.gelu_backward(of_active, out), counts, own)
        return None, None, None, None, _left(ctx, of_x), None, of_out, *_read(given, of_weights, (members @ inner).unbind(), of_gates.split(1))


def _read(given: Sequence[torch.Tensor | None], *groups: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """Return groups of one gradient for each type, None for a type whose rows have none."""
    return [None if g is None else x for group in groups for x, g in zip(group, given, strict=True)]


def _left(ctx: Any, of_x: torch.Tensor | None) -> torch.Tensor | None:
    """Leave the gradient of x where the next node adds to it, or return it."""
    if ctx.begun is None or of_x is None or not ctx.needs_input_grad[4]:
        return of_x
    ctx.begun.rows = of_x
    return None


def _of_types(rows: torch.Tensor, counts: Sequence[int], own: Sequence[int]) -> torch.Tensor:
    """Return the rows of some types."""
    if len(own) == len(counts):
        return rows
    parts = rows.split(list(counts))
    return torch.cat([parts[kind] for kind in own])


def _onto_types(rows: torch.Tensor, counts: Sequence[int], own: Sequence[int]) -> torch.Tensor:
    """Return rows of some types among zeros for the others."""
    if len(own) == len(counts):
        return rows
    whole = rows.new_zeros(sum(counts), rows.shape[1])
    places = whole.split(list(counts))
    torch._foreach_copy_([places[kind] for kind in own], list(rows.split([counts[kind] for kind in own])))
    return whole


class Mixed(torch.autograd.Function):
    """The end of a layer on a large graph for some node types: as `Finish`, with no more reading of rows than it takes."""

    @staticmethod
    def forward(
        ctx: Any, counts: list[int], begun: Begun | None, out: torch.Tensor, shares: torch.Tensor, *tensors: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Take the aggregate [N, out] and shares of the types, then the types' rows, their weights [out, out] and their biases.

        The rows' gradients are left in `begun`, if there is one, for the node that makes the aggregate of them.
        """
        ctx.save_for_backward(out, shares, *tensors)
        ctx.set_materialize_grads(False)
        ctx.counts, ctx.begun = counts, begun
        kinds = len(counts)
        each = zip(tensors[:kinds], out.split(counts), shares.unbind(), tensors[kinds : 2 * kinds], tensors[2 * kinds :], strict=True)
        return tuple(mixed(*parts) for parts in each)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[Any, ...]:
        """Return the gradients of what forward takes; None for a type whose rows no loss reads."""
        (out, shares, *tensors), counts, kinds = ctx.saved_tensors, ctx.counts, len(ctx.counts)
        of_out = torch.empty_like(out)
        rows = None if ctx.begun is None else torch.empty_like(out)
        own: Sequence[torch.Tensor | None] = [None] * kinds if rows is None else rows.split(counts)
        each = zip(
            tensors[:kinds], out.split(counts), shares.unbind(), tensors[kinds : 2 * kinds], tensors[2 * kinds :], gradients, of_out.split(counts),
            own, strict=True,
        )  # fmt: skip
        found: list[tuple[torch.Tensor | None, ...]] = []
        for x, part, share, weight, bias, g, place, of_rows in each:
            if g is None:
                place.zero_()
                if of_rows is not None:
                    of_rows.zero_()
                found.append((None, None, torch.zeros_like(share), None, None))
            else:
                found.append(unmixed(x, part, share, weight, bias, g.contiguous(), place, of_rows))
        of_x, _, of_shares, of_weights, of_biases = zip(*found, strict=True)
        if rows is not None:
            ctx.begun.rows, of_x = rows, (None,) * kinds
        return None, None, of_out, torch.stack([x.reshape(()) for x in of_shares if x is not None]), *of_x, *of_weights, *of_biases

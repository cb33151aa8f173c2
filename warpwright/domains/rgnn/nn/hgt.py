"""HGTConv: PyG's heterogeneous graph transformer layer."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn import Parameter, ParameterDict

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn.attention.in_place import attention as in_place_attention
from warpwright.domains.rgnn.attention.layer import attended
from warpwright.domains.rgnn.attention.of_rows import Begun, attention, taken
from warpwright.domains.rgnn.emit.aside import beside
from warpwright.domains.rgnn.emit.dense import mixed, outers, products, summed, unmixed
from warpwright.domains.rgnn.emit.own.kernel import MANY
from warpwright.domains.rgnn.emit.own.kinds import apart
from warpwright.domains.rgnn.emit.own.kinds import kinds as by_kind
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.nn.common import Layer, check_rows, of_dtype, whole_call, wide
from warpwright.domains.rgnn.operator import Edges, apply
from warpwright.errors import UsageError

EdgeType = tuple[str, str, str]


class _Linears(torch.nn.Module):
    """One linear layer for each node type; `lins` is what PyG's HeteroDictLinear calls them."""

    def __init__(self, widths: dict[str, int], out_channels: int) -> None:
        super().__init__()
        self.lins = torch.nn.ModuleDict({kind: torch.nn.Linear(width, out_channels) for kind, width in widths.items()})


class _Relations(torch.nn.Module):
    """One matrix for each head and relation, at head * relations + relation."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.weight = Parameter(torch.empty(count, width, width))


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
        ctx.counts, ctx.few, ctx.begun = counts, sum(counts) < FEW, begun
        given = tensors[: -2 * kinds]
        rows = _by_kind(given, counts)
        ctx.own = by_kind(tensors[0], tuple(counts), weights[0].shape[0] // 3) if ctx.few and (lying or len(given) == 1) else None
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
        rows, wanted = _by_kind(given, ctx.counts), ctx.needs_input_grad[3 : 3 + len(given)]
        if ctx.few:
            every = torch.cat(gradients, 1)
            whole = every.split(ctx.counts)
            of_biases = (of_kinds(tuple(ctx.counts), every.device, every.dtype)[1] @ every).unbind()
            of_given = [torch.empty_like(x) for x in given] if any(wanted) else []
            for g, w, place in zip(whole, weights, _by_kind(of_given, ctx.counts), strict=True) if of_given else ():
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


def side_by_side(*groups: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return weights, biases, gates and others of all types as one tensor each, [types, ...]; all are copied by one launch for each 128."""
    flat = torch.cat([x.reshape(-1) for group in groups for x in group])
    sizes = [sum(x.numel() for x in group) for group in groups]
    return [part.view(len(group), *group[0].shape) for part, group in zip(flat.split(sizes), groups, strict=True)] + [flat[:0]] * (3 - len(groups))


def _by_kind(given: Sequence[torch.Tensor], counts: Sequence[int]) -> Sequence[torch.Tensor]:
    """Return the rows of each node type, of which all may be given as one tensor."""
    return given if len(given) == len(counts) else given[0].split(list(counts))


FEW = 1 << 18
"""Nodes below which launches decide: a type's three products are one, and their results are copied apart."""


def of_kinds(counts: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each node's type [N], and a matrix [types, N] of ones where a node is of a type: a product with it sums over the nodes of each type."""
    return indices.mention(_of_kinds(counts, device, dtype))


@functools.lru_cache(maxsize=16)
def _of_kinds(counts: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    kinds = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts)).to(device)
    return kinds, (torch.arange(len(counts), device=device)[:, None] == kinds).to(dtype)


class Together(torch.autograd.Function):
    """Rows of all node types in one tensor."""

    @staticmethod
    def forward(ctx: Any, *rows: torch.Tensor) -> torch.Tensor:
        """Return the rows of the types, one after another."""
        ctx.counts = [x.shape[0] for x in rows]
        return laid(rows, ctx.counts, range(len(rows)))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the parts of the gradient."""
        return gradient.split(ctx.counts)


FEW_PARTS = 8
"""Tensors up to which torch.cat takes less time than a copy of each, where there is no kernel of ours: 3 us for 7 of aifb's graph, and 16."""


def laid(parts: Sequence[torch.Tensor], counts: Sequence[int], own: Sequence[int]) -> torch.Tensor:
    """Return rows of the types `own`, each at its place among the rows of all types; other types' rows are not written."""
    if len(parts) == len(counts) == 1:
        return parts[0].contiguous()
    kernels = by_kind(parts[0], tuple(counts), parts[0].shape[1])
    whole = None if kernels is None else replace(kernels, chosen=tuple(own)).together(parts)
    if whole is not None:
        return whole
    if len(parts) == len(counts) <= FEW_PARTS:
        return torch.cat(list(parts))
    whole = parts[0].new_empty(sum(counts), *parts[0].shape[1:])
    places = whole.split(list(counts))
    torch._foreach_copy_([places[kind] for kind in own], list(parts))
    return whole


def in_place(rows: Sequence[torch.Tensor], counts: Sequence[int], columns: int) -> bool:
    """Are rows of a small graph's types read where they lie? A backward would read them at one place: so where there is none, and kernels take them.

    To put bgs' 24 MB together takes an H200 about as long as a tenth of the layer's forward.
    """
    plain = not torch.is_grad_enabled() and apart(rows)
    return plain and by_kind(rows[0], tuple(counts), columns) is not None


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
        sizes, kernels = [counts[kind] for kind in own], by_kind(first, counts, first.shape[1])
        ctx.counts, ctx.own, ctx.sizes, ctx.begun = counts, own, sizes, begun
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
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        """Return the gradients of what forward takes."""
        counts, own, sizes = ctx.counts, ctx.own, ctx.sizes
        if ctx.kernels is not None:
            of_x, of_out, of_weight, of_bias, of_gates = ctx.kernels.unmixed(laid(gradients, counts, own), *ctx.saved_tensors)
            if others := [kind for kind in range(len(counts)) if kind not in own]:
                torch._foreach_zero_([rows[kind] for rows in (of_x.split(counts), of_out.split(counts)) for kind in others])
            return None, None, None, None, _left(ctx, of_x), None, of_out, *of_weight.unbind(), *of_bias.unbind(), *of_gates.split(1)
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
        return None, None, None, None, _left(ctx, of_x), None, of_out, *of_weights, *(members @ inner).unbind(), *of_gates.split(1)


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


def _projected(
    counts: list[int], rows: Sequence[torch.Tensor], linears: list[tuple[torch.Tensor, torch.Tensor]], begun: Begun | None, lying: bool
) -> tuple[torch.Tensor, ...]:
    if torch.compiler.is_compiling():  # which writes no views
        whole = torch.cat([F.linear(x, *linear) for x, linear in zip(rows, linears, strict=True)])
        return tuple(part.contiguous() for part in whole.chunk(3, 1))
    parts: tuple[torch.Tensor, ...] = Project.apply(counts, begun, lying, *rows, *(w for w, _ in linears), *(b for _, b in linears))
    return parts


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


class HGTConv(Layer):
    """Attention over all incoming edges of a node, with projections by node type and by edge type.

    Relations are taken by name, whatever the order of `edge_index_dict` (PyG's answer depends on it).
    """

    pyg_module = "torch_geometric.nn.conv.hgt_conv"
    checked: tuple[list[str], list[EdgeType], str] | None = None
    """Node types and edge types of the last call, and the form of its edges: wikikg2's graph has 535 edge types."""

    def __init__(
        self, in_channels: int | dict[str, int], out_channels: int, metadata: tuple[list[str], list[EdgeType]], heads: int = 1, **kwargs: Any
    ) -> None:
        """Take PyG's arguments; widths have to be known (-1, a lazy one, is not computed here)."""
        super().__init__()
        self.remember(locals())
        if out_channels % heads:
            raise ValueError(f"'out_channels' (got {out_channels}) must be divisible by the number of heads (got {heads})")
        widths = in_channels if isinstance(in_channels, dict) else dict.fromkeys(metadata[0], in_channels)
        self.in_channels, self.out_channels, self.heads = widths, out_channels, heads
        self.node_types, self.edge_types = metadata
        self.edge_names = ["__".join(kind) for kind in self.edge_types]
        self.edge_types_map = {kind: number for number, kind in enumerate(self.edge_types)}
        self.dst_node_types = {kind[-1] for kind in self.edge_types}
        self.unsupported = f"the arguments {', '.join(kwargs)}" if kwargs else ""
        self.replayable = heads == 1
        depth, relations = out_channels // heads, len(self.edge_types)
        self.kqv_lin, self.out_lin = _Linears(widths, 3 * out_channels), _Linears(dict.fromkeys(self.node_types, out_channels), out_channels)
        self.k_rel, self.v_rel = _Relations(heads * relations, depth), _Relations(heads * relations, depth)
        self.skip, self.p_rel = ParameterDict(), ParameterDict()
        for kind in self.node_types:  # one by one: a dictionary would be sorted, and optimisers count parameters
            self.skip[kind] = Parameter(torch.empty(1))
        for name in self.edge_names:
            self.p_rel[name] = Parameter(torch.empty(1, heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        for linear in (*self.kqv_lin.lins.values(), *self.out_lin.lins.values()):
            linear.reset_parameters()  # type: ignore[operator]
        for relation in (self.k_rel, self.v_rel):
            bound = 1 / math.sqrt(relation.weight.shape[-1])
            torch.nn.init.uniform_(relation.weight, -bound, bound)
        for one in (*self.skip.values(), *self.p_rel.values()):
            torch.nn.init.ones_(one)

    @whole_call
    def forward(self, x_dict: dict[str, torch.Tensor], edge_index_dict: dict[EdgeType, Any]) -> dict[str, torch.Tensor]:
        """Return [N, out] for each node type that is a destination; node types that the metadata lack are left out, as PyG does."""
        edges = list(edge_index_dict.values())
        strange = any(not isinstance(e, torch.Tensor) or e.layout != torch.strided for e in edges)
        if self.unsupported or strange:
            result: dict[str, torch.Tensor] = self.fall_back(self.unsupported or "edges that are no tensors", x_dict, edge_index_dict)
            return result
        kinds = [kind for kind in x_dict if kind in self.skip]
        self._check(x_dict, kinds, edge_index_dict)
        counts = [x_dict[kind].shape[0] for kind in kinds]
        rows = [wide(x_dict[kind]) for kind in kinds]
        together = self._alike(x_dict, kinds, counts)
        lying = together and in_place(rows, counts, self.out_channels)
        if together and not lying:
            rows = [Together.apply(*rows)] if len(rows) > 1 else rows
        linears = [self._linear(self.kqv_lin, kind) for kind in kinds]
        begun = Begun()
        found = self._in_place(rows, counts, kinds, linears, edge_index_dict) if lying else None
        out, end = found or (self._of_rows(rows, counts, kinds, linears, edge_index_dict, begun), [])
        alone = out is None or not all(x.requires_grad for x in rows)
        few = together and rows[0].shape[-1] == self.out_channels
        shared = begun if few and edge_index_dict and rows[0].requires_grad else None  # without edges no gradient comes to the projections
        if out is None:
            out = self._of_projections(rows, counts, kinds, linears, edge_index_dict, shared, lying)
        if few:
            return self._all_finished(x_dict, kinds, counts, rows if lying else rows[0], out.flatten(1), shared, end)
        return self._finished(x_dict, kinds, counts, out.flatten(1), None if alone else begun)

    def _of_projections(
        self, rows: list[torch.Tensor], counts: list[int], kinds: list[str], linears: list[tuple[torch.Tensor, torch.Tensor]],
        edge_index_dict: dict[EdgeType, Any], begun: Begun | None, lying: bool,
    ) -> torch.Tensor:  # fmt: skip
        """Return the attention of all nodes, with a key, a query and a value of each."""
        keys, queries, values = self._by_head(_projected(counts, rows, linears, begun, lying))
        if edge_index_dict:
            tensors = self._tensors(keys, queries, values)
            graph = self._edges(kinds, counts, edge_index_dict)
            fused = attended(graph, tensors, self.options) if self.heads == 1 else None
            return apply("hgt_single" if self.heads == 1 else "hgt", graph, tensors, self.options) if fused is None else fused
        return torch.zeros_like(values)

    def _in_place(
        self, rows: list[torch.Tensor], counts: list[int], kinds: list[str], linears: list[tuple[torch.Tensor, torch.Tensor]],
        edge_index_dict: dict[EdgeType, Any],
    ) -> tuple[torch.Tensor, list[torch.Tensor]] | None:  # fmt: skip
        """Return the attention of a small graph's nodes from their own rows, without gradients; None where that is not computed so.

        And weights, biases and gates of the layer's end, side by side: they are laid with the others, by the same launches.
        """
        if self.heads > 1 or not edge_index_dict or any(kind[0] not in kinds for kind in self.edge_types):
            return None
        kernels, own = by_kind(rows[0], tuple(counts), self.out_channels), self.results(kinds)
        ends = [(*self._linear(self.out_lin, kind), wide(self.skip[kind])) for kind in own]
        priors = [wide(self.p_rel._parameters[name]) for name in self.edge_names]  # type: ignore[arg-type]
        groups = [[*group] for group in (*zip(*linears, strict=True), *zip(*ends, strict=True))] + [priors]
        if kernels is None or any(x.dtype is not torch.float32 for group in groups for x in group):
            return None
        sources, graph = tuple(kinds.index(kind[0]) for kind in self.edge_types), self._edges(kinds, counts, edge_index_dict)
        end: list[torch.Tensor] = []

        def linear() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            weight, bias, *end[:], prior = side_by_side(*groups)
            return weight, bias, prior.view(-1)

        relations, factor = (wide(self.k_rel.weight), wide(self.v_rel.weight)), 1.0 / math.sqrt(self.out_channels)
        found = in_place_attention(graph, kernels, rows, sources, linear, relations, factor, self.options)
        return None if found is None else (found, end)

    def _of_rows(
        self, rows: list[torch.Tensor], counts: list[int], kinds: list[str], linears: list[tuple[torch.Tensor, torch.Tensor]],
        edge_index_dict: dict[EdgeType, Any], begun: Begun,
    ) -> torch.Tensor | None:  # fmt: skip
        """Return the attention of all nodes from their own rows, where it is one kernel and all types' rows have one width; else None."""
        if self.heads > 1 or not edge_index_dict or self.options.attend is False or torch.compiler.is_compiling():
            return None
        if self.options.attend is None and sum(counts) < MANY:
            return None  # products of relations' matrices take more launches than a small graph's rows
        if len({(x.shape[1], x.dtype, x.device) for x in rows}) > 1 or any(kind[0] not in kinds for kind in self.edge_types):
            return None
        weights, biases = zip(*linears, strict=True)
        key_of, value_of = (wide(r.weight) for r in (self.k_rel, self.v_rel))
        graph = self._edges(kinds, counts, edge_index_dict)
        launch = taken(graph, rows[0], sum(counts), self.out_channels, self.options, (*weights, *biases, key_of, value_of))
        if launch is None:
            return None
        prior = self._prior().view(-1)
        x, sources = rows[0] if len(rows) == 1 else torch.cat(rows), tuple(kinds.index(kind[0]) for kind in self.edge_types)
        return attention(graph, launch, tuple(counts), sources, x, weights, biases, key_of, value_of, prior, begun)

    def _check(self, x_dict: dict[str, torch.Tensor], kinds: list[str], edge_index_dict: dict[EdgeType, torch.Tensor]) -> None:
        if not kinds:
            raise UsageError(f"expected rows of some of {', '.join(self.node_types)} in x_dict, saw {', '.join(map(repr, x_dict)) or 'none'}")
        for kind in kinds:
            check_rows(x_dict[kind], self.in_channels[kind], f"x_dict[{kind!r}]")
        if self._known(kinds, edge_index_dict) is not None:
            return
        for relation in edge_index_dict:
            if relation not in self.edge_types_map:
                raise UsageError(f"expected relations of the metadata, saw {relation}; they are {', '.join(map(str, self.edge_types))}")
            if lacking := [kind for kind in (relation[0], relation[-1]) if kind not in kinds]:
                raise UsageError(f"expected rows of {lacking[0]!r} in x_dict, which {relation} has as an end, saw rows of {', '.join(kinds)}")

        if not torch.compiler.is_compiling():
            self.checked = kinds, list(edge_index_dict), self._form(kinds, edge_index_dict)

    def _known(self, kinds: list[str], edge_index_dict: dict[EdgeType, torch.Tensor]) -> str | None:
        """Return the form of the edges where the last call had the same types. Asked anew at each use: by now it may be another thread's call."""
        known = None if torch.compiler.is_compiling() else self.checked
        return known[2] if known is not None and known[0] == kinds and known[1] == list(edge_index_dict) else None

    def _form(self, kinds: list[str], edge_index_dict: dict[EdgeType, torch.Tensor]) -> str:
        return ",".join(f"{self.edge_types_map[kind]} {kinds.index(kind[0])} {kinds.index(kind[-1])}" for kind in edge_index_dict)

    def results(self, kinds: Sequence[str]) -> list[str]:
        """Return the destinations among the node types."""
        return [kind for kind in kinds if kind in self.dst_node_types]

    def _linear(self, linears: _Linears, kind: str) -> tuple[torch.Tensor, torch.Tensor]:
        linear = linears.lins[kind]
        return wide(linear.weight), wide(linear.bias)  # type: ignore[arg-type]

    def _by_head(self, parts: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
        return [part if self.heads == 1 else part.view(part.shape[0], self.heads, -1) for part in parts]

    def _tensors(self, keys: torch.Tensor, queries: torch.Tensor, values: torch.Tensor) -> dict[str, tuple[Domain, torch.Tensor]]:
        relations, depth, prior = len(self.edge_types), self.out_channels // self.heads, self._prior()
        if self.heads == 1:  # views: a selection's gradient is two launches
            weights, prior = [wide(r.weight) for r in (self.k_rel, self.v_rel)], prior.view(-1)
        else:
            weights = [wide(r.weight).view(self.heads, relations, depth, depth).transpose(0, 1).contiguous() for r in (self.k_rel, self.v_rel)]
        return {
            "key": (Domain.NODE, keys), "query": (Domain.NODE, queries), "value": (Domain.NODE, values),
            "attention": (Domain.ETYPE, weights[0]), "message": (Domain.ETYPE, weights[1]), "prior": (Domain.ETYPE, prior),
        }  # fmt: skip

    def _prior(self) -> torch.Tensor:
        """Return the relations' priors over the root of a head's width [R, heads]."""
        parameters = self.p_rel._parameters  # a ParameterDict's own look-up takes longer than the rest of this, with a hundred relations
        return wide(torch.cat([parameters[name] for name in self.edge_names])) / math.sqrt(self.out_channels // self.heads)  # type: ignore[misc]

    def _edges(self, kinds: list[str], counts: list[int], edge_index_dict: dict[EdgeType, torch.Tensor]) -> Edges:
        form = self._known(kinds, edge_index_dict) or self._form(kinds, edge_index_dict)
        return Edges(tuple(edge_index_dict.values()), (*counts, len(self.edge_types)), form)

    def _alike(self, x_dict: dict[str, torch.Tensor], kinds: list[str], counts: list[int]) -> bool:
        """Is it a small graph, whose rows are alike in all types?"""
        if sum(counts) >= FEW or torch.compiler.is_compiling():
            return False
        return len({(x_dict[kind].dtype, x_dict[kind].shape[-1]) for kind in kinds}) == 1

    def _all_finished(
        self, x_dict: dict[str, torch.Tensor], kinds: list[str], counts: list[int], rows: torch.Tensor | Sequence[torch.Tensor], out: torch.Tensor,
        begun: Begun | None, end: list[torch.Tensor],
    ) -> dict[str, torch.Tensor]:  # fmt: skip
        """Return the results of a small graph's destinations, mixed with their own rows; all types lie in one tensor, or each in its own.

        `end`: weights, biases and gates, where they are side by side already.
        """
        own = [kind for kind in kinds if kind in self.dst_node_types]
        if not own:
            return {}
        weights, biases = zip(*(self._linear(self.out_lin, kind) for kind in own), strict=True)
        gates, numbers = [wide(self.skip[kind]) for kind in own], tuple(kinds.index(kind) for kind in own)
        parts: tuple[torch.Tensor, ...] = Finish.apply(
            tuple(counts), numbers, begun, torch.is_grad_enabled(), rows, end, out, *weights, *biases, *gates
        )
        return {kind: of_dtype(part, x_dict[kind].dtype) for kind, part in zip(own, parts, strict=True)}

    def _finished(
        self, x_dict: dict[str, torch.Tensor], kinds: list[str], counts: list[int], out: torch.Tensor, begun: Begun | None
    ) -> dict[str, torch.Tensor]:
        large = sum(counts) >= FEW and not torch.compiler.is_compiling()
        own = [kind for kind in kinds if kind in self.dst_node_types and x_dict[kind].shape[-1] == self.out_channels]
        shares = torch.cat([wide(self.skip[kind]) for kind in own]).sigmoid() if own else out.new_zeros(0)
        if large and own == kinds:
            weights, biases = zip(*(self._linear(self.out_lin, kind) for kind in kinds), strict=True)
            ends = Mixed.apply(counts, begun, out, shares, *(wide(x_dict[kind]) for kind in kinds), *weights, *biases)
            return {kind: part.to(x_dict[kind].dtype) for kind, part in zip(kinds, ends, strict=True)}
        results, share_of = {}, dict(zip(own, shares.split(1), strict=True)) if own else {}
        for kind, part in zip(kinds, (out if large else F.gelu(out)).split(counts), strict=True):
            if kind not in self.dst_node_types:
                continue
            if large and kind in share_of:
                weight, bias = self._linear(self.out_lin, kind)
                (end,) = Mixed.apply([part.shape[0]], None, part, share_of[kind], wide(x_dict[kind]), weight, bias)
                results[kind] = end.to(x_dict[kind].dtype)
                continue
            part = F.gelu(part) if large else part
            done = F.linear(part, *self._linear(self.out_lin, kind))
            results[kind] = (torch.lerp(wide(x_dict[kind]), done, share_of[kind]) if kind in share_of else done).to(x_dict[kind].dtype)
        return results

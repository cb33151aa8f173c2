"""A compiled layer as an operator of torch.library, with a fake kernel and a gradient, so that torch.compile sees one node and no graph break.

Outside torch.compile layers run as an autograd function (plan.py), which keeps what the backward reads. The operator keeps only its inputs, since
the numbers of pairs are unknown while a graph is compiled: its backward computes those values again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn import models
from warpwright.domains.rgnn.front import trace
from warpwright.domains.rgnn.index import INTEGERS, Index, OutOfRange
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.plan import Inputs, Layer, Options, based_on, gradients, run, run_based, run_now
from warpwright.errors import UsageError

Tensors = Mapping[str, tuple[Domain, torch.Tensor]]


@dataclass(frozen=True)
class Edges:
    """Edge tensors of a call, and how an index is made of them.

    typed: edge_index, edge_type; sizes are sources, targets, relations; ordered: the same, with the order of the edges kept. Otherwise `form` has
    "relation source target" for each edge_index, the relation's number and the node types' places; sizes are the nodes of each type, then the
    relations.
    """

    tensors: tuple[torch.Tensor, ...]
    sizes: tuple[int, ...]
    form: str = "typed"

    def index(self, meanwhile: Callable[[], None] = lambda: None) -> Index:
        """Return the graph's index, kept for the same tensors. Raises UsageError for edges that are no pairs of numbers in range.

        `meanwhile` may be called while a new one is made on the device.
        """
        if self.form in {"typed", "ordered"}:
            (edge_index, edge_type), (sources, targets, relations), kept = self.tensors, self.sizes, self.form == "ordered"

            def make(tidy: Callable[[], None]) -> Index:
                def both() -> None:
                    meanwhile()
                    tidy()

                return Index(*ends_of(edge_index), edge_type, sources, targets, relations, order_kept=kept, meanwhile=both)

            return indices.of(self.tensors, (*self.sizes, *[1] * kept), make)
        return indices.of(self.tensors, (*self.sizes, hash(self.form)), self._of_parts)

    def _of_parts(self, tidy: Callable[[], None]) -> Index:
        *counts, relations = self.sizes
        parts = [tuple(map(int, part.split())) for part in self.form.split(",")]
        if strange := {edges.dtype for edges in self.tensors} - INTEGERS:  # one of bools among others would be made integers with them
            raise UsageError(f"expected integers for the ends of edges, saw {', '.join(map(str, strange))}")
        ends = [ends_of(edges) for edges in self.tensors]
        device, lengths = ends[0][0].device, torch.tensor([src.numel() for src, _ in ends])
        part_of = torch.repeat_interleave(torch.arange(len(parts)), lengths).to(device)
        numbers = torch.tensor([number for number, _, _ in parts], device=device)[part_of]
        src, dst = (_among_all([pair[side] for pair in ends], part_of, [part[1 + side] for part in parts], counts) for side in (0, 1))
        try:
            return Index(src, dst, numbers, sum(counts), sum(counts), relations, meanwhile=tidy)
        except OutOfRange as problem:
            raise OutOfRange(f"{problem} (-1: a node that its type does not have; nodes are counted through all types)") from None


def ends_of(edge_index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sources and targets of an edge_index [2, E]."""
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise UsageError(f"expected edge_index of shape (2, edges), saw {tuple(edge_index.shape)}")
    source, target = edge_index.unbind(0)
    return source, target


def _among_all(ends: list[torch.Tensor], part_of: torch.Tensor, kinds: list[int], counts: list[int]) -> torch.Tensor:
    """Return the ends of all parts' edges among the nodes of all types; -1, which an index refuses, for one that its type does not have."""
    numbers, device = torch.cat(ends), part_of.device
    start = torch.tensor([sum(counts[:kind]) for kind in kinds], device=device)[part_of]
    size = torch.tensor([counts[kind] for kind in kinds], device=device)[part_of]
    return torch.where((numbers >= 0) & (numbers < size), numbers + start, -1)


_KNOWN: dict[str, tuple[Layer, tuple[str, ...], tuple[Domain, ...], Options]] = {}
"""Layers by the names that operators are called with."""


Spec = str | tuple[Any, ...]
"""A layer's name in models.py, or the name of what makes it, with its arguments: constants, which torch.compile can take along."""


def layer_of(spec: Spec) -> Layer:
    """Return the layer."""
    if isinstance(spec, str):
        layer: Layer = getattr(models, spec)
        return layer
    return layer_of(spec[0])(*(layer_of(part) if isinstance(part, (str, tuple)) else part for part in spec[1:]))  # type: ignore[return-value]


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _name(layer: Spec, names: tuple[str, ...], domains: tuple[str, ...], options: str) -> str:
    """Return the name of a layer with the options of this text; all arguments are strings and numbers, which torch.compile can keep."""
    layer_key = (layer_of(layer), names, tuple(Domain[domain] for domain in domains), Options.parse(options))
    for name, known in _KNOWN.items():
        if known == layer_key:
            return name
    _KNOWN[f"layer{len(_KNOWN)}"] = layer_key
    return f"layer{len(_KNOWN) - 1}"


def apply(layer: Spec, edges: Edges, tensors: Tensors, options: Options, donated: tuple[str, ...] = ()) -> torch.Tensor:
    """Return the layer's result: by the operator while torch.compile traces, else as `plan.run`."""
    if not torch.compiler.is_compiling():
        return run_now(layer_of(layer), edges.index(), tensors, options, donated)
    name = _name(layer, tuple(tensors), tuple(domain.name for domain, _ in tensors.values()), options.text)
    result: torch.Tensor = relational([x for _, x in tensors.values()], list(edges.tensors), list(edges.sizes), edges.form, name)
    return result


def apply_based(
    layer: Spec, edges: Edges, tensors: Tensors, target: torch.Tensor, root: torch.Tensor | None, bias: torch.Tensor | None, options: Options
) -> torch.Tensor:
    """Return the layer's result plus target @ root + bias [N, out]; of root and bias one may be None."""
    if not torch.compiler.is_compiling():
        return run_based(layer_of(("based", layer)), edges.index, tensors, target, root, bias, options)
    base = (Domain.DST, based_on(target, root, bias))
    return apply(("based", layer), edges, {**tensors, "base": base}, options, donated=("base",))


def _arguments(name: str, values: Sequence[torch.Tensor]) -> tuple[Layer, dict[str, tuple[Domain, torch.Tensor]], Options]:
    layer, names, domains, options = _KNOWN[name]
    return layer, {n: (d, x) for n, d, x in zip(names, domains, values, strict=True)}, options


@torch.library.custom_op("warpwright::relational", mutates_args=())
def relational(values: list[torch.Tensor], edges: list[torch.Tensor], sizes: list[int], form: str, name: str) -> torch.Tensor:
    """Return the result of a known layer."""
    layer, tensors, options = _arguments(name, values)
    with torch.no_grad():
        return run(layer, Edges(tuple(edges), tuple(sizes), form).index(), tensors, options)


@relational.register_fake
def _(values: list[torch.Tensor], edges: list[torch.Tensor], sizes: list[int], form: str, name: str) -> torch.Tensor:
    layer, tensors, _ = _arguments(name, values)
    inputs: Inputs = tuple((n, d, tuple(int(size) for size in x.shape[d is not Domain.ONE :])) for n, (d, x) in tensors.items())
    program = trace(layer, {n: (d, shape) for n, d, shape in inputs})
    rows = sizes[1] if form in {"typed", "ordered"} else sum(sizes[:-1])
    return values[0].new_empty(rows, *program.ops[program.outputs[0]].shape)


@torch.library.custom_op("warpwright::relational_backward", mutates_args=())
def relational_backward(
    gradient: torch.Tensor, values: list[torch.Tensor], edges: list[torch.Tensor], sizes: list[int], form: str, name: str, wanted: list[bool]
) -> list[torch.Tensor]:
    """Return the gradients of the values that are wanted."""
    layer, tensors, options = _arguments(name, values)
    chosen = tuple(n for n, want in zip(tensors, wanted, strict=True) if want)
    results = gradients(layer, Edges(tuple(edges), tuple(sizes), form).index(), tensors, chosen, gradient, options)
    taken = {x.untyped_storage().data_ptr() for x in (gradient, *values)}
    fresh = []
    for x in results:  # an operator returns nothing that shares memory: the gradient of what is added is the gradient itself
        fresh.append(x.clone() if x.untyped_storage().data_ptr() in taken else x)
        taken.add(fresh[-1].untyped_storage().data_ptr())
    return fresh


@relational_backward.register_fake
def _(
    gradient: torch.Tensor, values: list[torch.Tensor], edges: list[torch.Tensor], sizes: list[int], form: str, name: str, wanted: list[bool]
) -> list[torch.Tensor]:
    return [x.new_empty(x.shape) for x, want in zip(values, wanted, strict=True) if want]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    values, edges, sizes, form, name = inputs
    ctx.save_for_backward(*values, *edges)
    ctx.count, ctx.sizes, ctx.form, ctx.name = len(values), sizes, form, name


def _backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    values, edges = list(ctx.saved_tensors[: ctx.count]), list(ctx.saved_tensors[ctx.count :])
    wanted = [bool(x.requires_grad) for x in values]
    results = iter(relational_backward(gradient, values, edges, ctx.sizes, ctx.form, ctx.name, wanted))
    return [next(results) if want else None for want in wanted], [None] * len(edges), None, None, None


relational.register_autograd(_backward, setup_context=_keep)

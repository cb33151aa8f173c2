"""HGT's attention as one node of autograd: the kernels of attend.cu, between products of the pairs' rows that the usual kernels over rows compute.

    keys, values [pairs]     = key A_r, value M_r                   of each (source, relation) pair, in memory for the backward
    out [nodes]              = sum of softmax(query . keys) values   attend
    of_query, shares, slopes = backward of it                       attend_back; the last two are numbers of edges
    gradients of key, value, A, M                                    sums over the edges of pairs, then products

A relation's prior is a factor of its A, by which a pair's key is multiplied, so no edge reads it; its gradient is the inner product of two matrices.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from warpwright.domains.rgnn.attention.kernels import Attended, Launches, launches, spans, takes
from warpwright.domains.rgnn.emit.aside import beside
from warpwright.domains.rgnn.emit.eager import Eager
from warpwright.domains.rgnn.emit.gpu import Rows
from warpwright.domains.rgnn.emit.own import products
from warpwright.domains.rgnn.emit.own.kernel import MANY
from warpwright.domains.rgnn.emit.own.products import Side
from warpwright.domains.rgnn.emit.rows import lower
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.ir import Builder, Program
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.operator import Edges
from warpwright.domains.rgnn.plan import STARTED, Options
from warpwright.domains.rgnn.sorting.counting import SMALL

Tensors = Mapping[str, tuple[Domain, torch.Tensor]]
Run = Callable[[Index, Mapping[str, torch.Tensor]], list[torch.Tensor]]


def attended(edges: Edges, tensors: Tensors, options: Options) -> torch.Tensor | None:
    """Return the result of `hgt_single` on a large graph [N, width] where the options want the kernels and these take it; else None."""
    query = tensors["query"][1]
    launch = launches(query.device) if wanted(edges, query, options, [x for _, x in tensors.values()]) else None
    if launch is None:
        return None
    index = edges.index()
    return attention(index, launch, functools.partial(run, index.device), {name: x for name, (_, x) in tensors.items()})


def wanted(edges: Edges, rows: torch.Tensor, options: Options, others: Sequence[torch.Tensor], nodes: int = 0) -> bool:
    """Do the options want the kernels of this room for `rows` of a graph's nodes, and do these take them?

    By None those have them that are large, or small and there to stay, with no more pairs of sources than of destinations. `nodes`: how many there
    are, where `rows` are only some. Each question is a call, and calls of small graphs are counted.
    """
    found = _decided(edges, rows, options, others, nodes)
    if isinstance(found, bool):
        return found
    _calls(found)[0] += 1
    return _stays(found)


def wanted_still(edges: Edges, rows: torch.Tensor, options: Options, others: Sequence[torch.Tensor], nodes: int = 0) -> bool:
    """The same of a call that will ask `wanted` itself where this says no: it is not counted twice."""
    found = _decided(edges, rows, options, others, nodes)
    return found if isinstance(found, bool) else _stays(found)


def _decided(edges: Edges, rows: torch.Tensor, options: Options, others: Sequence[torch.Tensor], nodes: int) -> bool | Index:
    """Return the answer, or the index of a small graph, for which it is whether that stays."""
    if options.attend is False or torch.compiler.is_compiling() or not takes(rows):
        return False
    if options.attend is not None:
        return True
    usual = options.emitter in ("auto", "gpu") and options.reorder and options.compact and all(x.dtype is torch.float32 for x in others)
    index = edges.index() if usual else None
    if index is None or not few_sources(index):
        return False
    if (nodes or rows.shape[0]) >= MANY <= index.edges:
        return True
    return index if index.edges <= SMALL else False


def _calls(index: Index) -> list[int]:
    return index.keep("asked", lambda: [0])


def _stays(index: Index) -> bool:
    """Has the graph been asked for before? Its work list takes a dozen launches, which a sampled batch would not get back."""
    return _calls(index)[0] > SEEN


SEEN = 2
"""Calls of a small graph by operations. A recording is made after two more."""


def few_sources(index: Index) -> bool:
    """Return whether there are edges, and the plan without these kernels has a key's and a value's row for each (source, relation) pair too.

    The kernels read both rows of every pair. Where destinations have fewer pairs the plan turns queries and gradients instead, and moves less: HGT's
    training step on an H200 takes 15.3 ms with the kernels and 16.8 without where both have 3.3 million (am), 22.1 and 19.3 where sources have 3.2
    and destinations 1.5 (mag), 33.0 and 27.5 with 11.2 and 3.7 (wikikg2).
    """
    return index.edges > 0 and index.rows[Domain.PAIR_SRC] <= index.rows[Domain.PAIR_DST]


def attention(index: Index, launch: Launches, runner: Callable[[Program], Run], tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Return `hgt_single` of its inputs, with gradients. `runner` returns what runs a program over rows."""
    names = ("key", "query", "value", "attention", "message", "prior")
    result: torch.Tensor = _Attention.apply(index, launch, runner, *map(tensors.__getitem__, names))
    return result


@functools.cache
def messages(depth: int, width: int, based: bool = False) -> Program:
    """Return the program of each pair's row: `rows` of the source times the relation's `weight`. One for both: their weights together would spill.

    `based`: plus the relation's `base`.
    """
    builder = Builder()
    of_source = builder.view(builder.input("rows", Domain.NODE, (depth,)), Domain.SRC)
    row = builder.contract((of_source, builder.input("weight", Domain.ETYPE, (depth, width))), ("a", "ab"), "b")
    return builder.program([builder.map("add", row, builder.input("base", Domain.ETYPE, (width,))) if based else row])


@functools.cache
def gradients(depth: int, width: int, of_rows: bool = True, based: bool = False, started: bool = False) -> Program:
    """Return the program of the gradients of `rows` and `weight`, where that of a pair's row is the sum of `number` times `given` over its edges.

    `based`: of the relation's `base` too, last. `started`: that of `rows` is added to STARTED.
    """
    builder = Builder()
    of_target = builder.view(builder.input("given", Domain.NODE, (width,)), Domain.DST)
    summed = builder.contract((of_target, builder.input("number", Domain.EDGE, ())), ("a", ""), "a", domain=Domain.PAIR_SRC)
    of_source = builder.view(builder.input("rows", Domain.NODE, (depth,)), Domain.SRC)
    weight, outputs = builder.input("weight", Domain.ETYPE, (depth, width)), []
    if of_rows:
        onto = builder.contract((weight, summed), ("ab", "b"), "a", domain=Domain.SRC)
        outputs.append(builder.map("add", onto, builder.input(STARTED, Domain.SRC, (depth,))) if started else onto)
    outputs.append(builder.contract((of_source, summed), ("a", "b"), "ab", over=Domain.PAIR_SRC, domain=Domain.ETYPE))
    if based:
        outputs.append(builder.contract((summed,), ("a",), "a", over=Domain.PAIR_SRC, domain=Domain.ETYPE))
    return builder.program(outputs)


@functools.cache
def run(device: torch.device, program: Program) -> Run:
    """Return what runs a program over the rows of large graphs on a device."""
    return Rows(lower(program), donated=(STARTED,)) if device.type == "cuda" else Eager(program)


def both(index: Index, runner: Callable[[Program], Run], first: Side, second: Side) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows of all pairs of both sides, by one launch where a kernel takes them."""
    found = products.messages(index, (first, second))
    if found is None:
        found = list(beside(index.device, functools.partial(rows_of, index, runner, first), functools.partial(rows_of, index, runner, second)))
    return found[0], found[1]


def one(index: Index, runner: Callable[[Program], Run], side: Side) -> torch.Tensor:
    """Return the rows of all pairs of one side."""
    found = products.messages(index, (side,))
    return rows_of(index, runner, side) if found is None else found[0]


def rows_of(index: Index, runner: Callable[[Program], Run], side: Side) -> torch.Tensor:
    """Return the same by the usual kernels over rows."""
    weight = side.weight if side.scale is None else side.weight * side.scale[:, None, None]
    given = {"rows": side.rows, "weight": weight} | ({} if side.base is None else {"base": side.base})
    (rows,) = runner(messages(*side.weight.shape[1:], side.base is not None))(index, given)
    return rows


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, index: Index, launch: Launches, runner: Callable[[Program], Run], key: torch.Tensor, query: torch.Tensor, value: torch.Tensor,
        attention: torch.Tensor, message: torch.Tensor, prior: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        sides = Side(key.detach(), attention.detach(), scale=prior.detach()), Side(value.detach(), message.detach())
        keys, values = both(index, runner, *sides)
        done = launch.forward(spans(index), query.detach(), keys, values)
        ctx.save_for_backward(key, query, value, attention, message, prior, keys, values, done.out, done.most, done.total)
        ctx.index, ctx.launch, ctx.runner = index, launch, runner
        return done.out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        key, query, value, attention, message, prior, keys, values, *done = ctx.saved_tensors
        gradient = gradient.contiguous()
        of_query, shares, slopes = ctx.launch.backward(spans(ctx.index), query, keys, values, gradient, Attended(*done))
        del keys, values
        make = ctx.runner(gradients(query.shape[1], query.shape[1]))
        one, two = (
            functools.partial(make, ctx.index, {"rows": rows, "weight": weight, "given": given, "number": number})
            for rows, weight, given, number in ((key, attention * prior[:, None, None], query, slopes), (value, message, gradient, shares))
        )
        (of_key, of_turned), (of_value, of_message) = beside(ctx.index.device, one, two)
        of_prior = (of_turned * attention).sum((1, 2)) if ctx.needs_input_grad[8] else None
        return None, None, None, of_key, of_query, of_value, of_turned * prior[:, None, None], of_message, of_prior

"""RGAT's attention as one node of autograd: the kernels of additive.cu, between products of the pairs' rows by the usual kernels over rows.

    q, k                 [pairs]  = x W_r q, x W_r k            of each (destination, relation) and (source, relation) pair, float64     pair_numbers
    values               [pairs]  = x W_r                       of each (source, relation) pair, in memory for the backward
    out                  [nodes]  = bias + sum of softmax(leaky_relu(q + k)) values                                                      additive
    shares, slopes       [edges]  each edge's share, and the gradient of its q and k                                                     additive_back
    gradients of x and W          sums over the edges of pairs, then products; by way of q and k: pair_rows, and sums over pairs

Scores are float64, as in doubles.py. Kernels for each operation take six passes over the edges forward and nine backward, make the pairs' rows again
in the backward, and add rows of pairs to rows of nodes in memory; here there are one and two passes, and a node's row is written once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from warpwright.domains.rgnn.attention.kernels import SHARED_TEXT, SPANS, THREADS, WIDEST, example, spans
from warpwright.domains.rgnn.attention.layer import Run, gradients, one, run, wanted
from warpwright.domains.rgnn.emit.aside import beside
from warpwright.domains.rgnn.emit.own.kernel import Launch, Own, dense, loaded_together, numbers_of_a_check, unless_ordered, with_the_others
from warpwright.domains.rgnn.emit.own.products import Side
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.ir import Builder, Program
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.operator import Edges
from warpwright.domains.rgnn.plan import Options
from warpwright.domains.rgnn.sorting.counting import LONGEST, SHORT


@dataclass(frozen=True)
class Sides:
    """The pairs of each node, first those of destinations and then those of sources: where they begin [nodes + 1], which, and their relations."""

    to: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    of: tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def sides(index: Index) -> Sides:
    """Return the pairs of each node, kept beside the graph."""

    def side(pairs: Domain, nodes: Domain) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        starts, order = index.pairs_of(pairs, nodes)
        return starts, order, index.lift(Domain.ETYPE, pairs)[order.long()]

    return index.keep("pairs by node", lambda: Sides(side(Domain.PAIR_DST, Domain.DST), side(Domain.PAIR_SRC, Domain.SRC)))


@dataclass(frozen=True)
class Attended:
    """What the forward leaves: the result [nodes, width], each node's largest score, float64, and its sum of exp(score - largest) [nodes]."""

    out: torch.Tensor
    most: torch.Tensor
    total: torch.Tensor


@dataclass(frozen=True)
class Launches:
    """What launches the kernels on one device."""

    numbers: Launch
    additive: Launch
    joined: Launch
    back: Launch
    rows: Launch
    columns: Launch

    def numbers_of(self, index: Index, x: torch.Tensor, vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the numbers of both sides' pairs, float64; `vectors` [2, relations, depth] float64."""
        by, (nodes, depth) = sides(index), x.shape
        to, of = (x.new_empty(index.rows[pairs], dtype=torch.float64) for pairs in (Domain.PAIR_DST, Domain.PAIR_SRC))
        self.numbers(-(-nodes // SPANS), dense(x), vectors, *by.to, to, *by.of, of, nodes, index.relations, depth)
        return to, of

    def forward(self, index: Index, to: torch.Tensor, of: torch.Tensor, values: torch.Tensor, base: torch.Tensor | None, slope: float) -> Attended:
        """Return the attention of the pairs' numbers `to` and `of` over rows `values` [pairs, width], added to `base` [width]."""
        work, values = spans(index), dense(values)
        nodes, depth = index.rows[Domain.DST], values.shape[1]
        done = Attended(values.new_empty(nodes, depth), to.new_empty(nodes), values.new_empty(nodes))
        parts = values.new_empty(work.slots, depth), to.new_empty(work.slots), values.new_empty(work.slots)
        table, results = (work.node, work.begin, work.end, work.slot), (done.out, done.most, done.total)
        given, count = (to, of, values, _to(index), work.pair), work.node.numel()
        self.additive(-(-count // SPANS), *given, *table, base, *results, *parts, slope, count, depth)
        if cut := work.cut_nodes.numel():
            self.joined(-(-cut // SPANS), work.cut_nodes, work.first, work.count, *parts, base, *results, cut, depth)
        return done

    def backward(
        self, index: Index, to: torch.Tensor, of: torch.Tensor, values: torch.Tensor, base: torch.Tensor | None, slope: float,
        gradient: torch.Tensor, done: Attended,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """Return for each edge, by relation and destination, its share and the gradient of its two numbers."""
        work, values = spans(index), dense(values)
        shares = values.new_empty(index.edges)
        slopes, count = torch.empty_like(shares), work.node.numel()
        given = to, of, values, dense(gradient), dense(done.out), base, done.most, done.total, _to(index), work.pair, work.edge
        self.back(-(-count // SPANS), *given, work.node, work.begin, work.end, work.slot, shares, slopes, slope, count, values.shape[1])
        return shares, slopes

    def onto(self, index: Index, rows: torch.Tensor, to: torch.Tensor, of: torch.Tensor, vectors: torch.Tensor) -> None:
        """Add to each node's row its pairs' numbers times `vectors` [2, relations, depth] of both sides."""
        by, (nodes, depth) = sides(index), rows.shape
        self.rows(-(-nodes // SPANS), rows, vectors, to, *by.to, of, *by.of, nodes, index.relations, depth)


    def summed(self, rows: torch.Tensor, most: int = 0) -> torch.Tensor:
        """Return the sums of the columns of rows [nodes, width], by at most so many blocks (0: BLOCKS)."""
        (count, width), out = rows.shape, rows.new_zeros(rows.shape[1])
        if count:
            self.columns(min(most or BLOCKS, -(-count // SPANS)), dense(rows), out, count, width)
        return out


BLOCKS = 528
"""Of sums of columns: four for each multiprocessor of an H200."""


def _to(index: Index) -> torch.Tensor:
    """Return each edge's (destination, relation) pair, in the order of destinations."""
    return index.along(Domain.DST, Domain.PAIR_DST)


@functools.cache
def sums(depth: int) -> Program:
    """Return the program of each pair's sum of `slope` over its edges, and of the relations' sums of it times `rows`, of both sides."""
    builder, outputs = Builder(), []
    rows, slope = builder.input("rows", Domain.NODE, (depth,)), builder.input("slope", Domain.EDGE, ())
    for pairs, nodes in ((Domain.PAIR_DST, Domain.DST), (Domain.PAIR_SRC, Domain.SRC)):
        number = builder.contract((slope,), ("",), "", over=Domain.EDGE, domain=pairs)
        outputs += [number, builder.contract((builder.view(rows, nodes), number), ("a", ""), "a", over=pairs, domain=Domain.ETYPE)]
    return builder.program(outputs)


class _Additive(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, index: Index, launch: Launches, runner: Callable[[Program], Run], slope: float,
        x: torch.Tensor, weight: torch.Tensor, query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor | None,
    ) -> torch.Tensor:  # fmt: skip
        relations, depth, width = weight.shape
        asked = torch.stack((query, key)).double()
        vectors = (asked @ weight.double().view(-1, width).t()).view(2, relations, depth)
        make = functools.partial(one, index, runner, Side(x.detach(), weight.detach()))
        (to, of), values = beside(index.device, functools.partial(launch.numbers_of, index, x.detach(), vectors), make)
        base = None if bias is None else dense(bias.detach())
        done = launch.forward(index, to, of, values, base, slope)
        ctx.save_for_backward(x, weight, query, key, base, to, of, values, vectors, done.out, done.most, done.total)
        ctx.index, ctx.launch, ctx.runner, ctx.slope = index, launch, runner, slope
        return done.out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, query, key, base, to, of, values, vectors, *done = ctx.saved_tensors
        gradient, index = gradient.contiguous(), ctx.index
        share, slope = ctx.launch.backward(index, to, of, values, base, ctx.slope, gradient, Attended(*done))
        del values
        (depth, width), of_rows = weight.shape[1:], ctx.needs_input_grad[4]
        given = {"rows": x, "weight": weight, "given": gradient, "number": share}
        of_pairs, of_bias = functools.partial(ctx.runner(sums(depth)), index, {"rows": x, "slope": slope}), ctx.needs_input_grad[8]
        whole = functools.partial(ctx.runner(gradients(depth, width, of_rows)), index, given)
        numbers, (*rows, of_weight) = beside(index.device, lambda: (*of_pairs(), ctx.launch.summed(gradient) if of_bias else None), whole)
        to_sums, to_vectors, of_sums, of_vectors, of_base = numbers
        if of_rows:
            ctx.launch.onto(index, rows[0], to_sums, of_sums, vectors.to(x.dtype))
        sides_of = torch.stack((to_vectors.view(-1), of_vectors.view(-1)))
        of_weight.view(-1, width).addmm_(sides_of.t(), torch.stack((query, key)))
        of_query, of_key = sides_of @ weight.reshape(-1, width)
        return None, None, None, None, rows[0] if of_rows else None, of_weight, of_query, of_key, of_base


def additive(
    index: Index, launch: Launches, runner: Callable[[Program], Run], slope: float, x: torch.Tensor, weight: torch.Tensor, query: torch.Tensor,
    key: torch.Tensor, bias: torch.Tensor | None,
) -> torch.Tensor:  # fmt: skip
    """Return `rgat_single` of its inputs plus `bias`, with gradients. `runner` returns what runs a program over rows."""
    result: torch.Tensor = _Additive.apply(index, launch, runner, slope, x, weight, query, key, bias)
    return result


def attended(
    edges: Edges, x: torch.Tensor, weight: torch.Tensor, query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor | None, slope: float,
    options: Options,
) -> torch.Tensor | None:  # fmt: skip
    """Return the result of `rgat_single` plus `bias` [N, width] where the options want the kernels and these take it; else None."""
    others = [y for y in (weight, query, key, bias) if y is not None]
    fits = weight.shape[2] <= WIDEST and not weight.shape[2] % 4 and all(y.dtype is torch.float32 and y.device == x.device for y in others)
    if not fits or not options.tuning.doubles or not wanted(edges, x, options, others):
        return None
    launch = launches(x.device)
    if launch is None:
        return None
    return additive(edges.index(), launch, functools.partial(run, x.device), slope, x, weight, query, key, bias)


@functools.cache
def _loaded(device: torch.device) -> Launches | None:
    otherwise = "additive attention over graphs' edges is computed operation by operation"
    return loaded_together(_OWN, device, Launches, right_on, otherwise)


def launches(device: torch.device) -> Launches | None:
    """Return the kernels of a device; None on a CPU, where sums have to be in a fixed order, or where they fail (warns once)."""
    return unless_ordered(device, _loaded)


def right_on(launch: Launches, device: torch.device) -> bool:
    """Is what each kernel computes of a small graph right, with chunks as small graphs have them and as large ones?"""
    return all(_right_on(launch, device, longest) for longest in (SHORT, LONGEST))


def _right_on(launch: Launches, device: torch.device, longest: int) -> bool:
    """The same with chunks of at most so many edges. A node is cut, its last span and others are shorter than those beside them; one has no edges."""
    random, slope = numbers_of_a_check(), 0.2
    index = example(random, device, longest, 150)
    nodes, relations = index.rows[Domain.NODE], index.relations
    x, gradient = (torch.randn(nodes, WIDEST, generator=random).to(device) for _ in range(2))
    values = torch.randn(index.rows[Domain.PAIR_SRC], WIDEST, generator=random).to(device)
    vectors = torch.randn(2, relations, WIDEST, generator=random, dtype=torch.float64).to(device)
    base = torch.randn(WIDEST, generator=random).to(device)
    numbers = launch.numbers_of(index, x, vectors)
    done = launch.forward(index, *numbers, values, base, slope)
    rows = gradient.clone()
    launch.onto(index, rows, numbers[0].float(), numbers[1].float(), vectors.float())
    found = [*numbers, done.out, *launch.backward(index, *numbers, values, base, slope, gradient, done), rows]
    found.append(launch.summed(gradient.repeat(8, 1), 2))  # more rows than two blocks take at once
    wanted = _plain(index, x.cpu(), vectors.cpu(), values.cpu(), base.cpu(), slope, gradient.cpu())
    return all(float((a.double().cpu() - b).norm()) <= 1e-5 * float(b.norm()) for a, b in zip(found, wanted, strict=True))


def _plain(
    index: Index, x: torch.Tensor, vectors: torch.Tensor, values: torch.Tensor, base: torch.Tensor, slope: float, gradient: torch.Tensor
) -> list[torch.Tensor]:
    """Return by torch calls, in float64, what the kernels compute.

    Numbers of pairs, result, shares, gradients of numbers, rows added to, and eight times the sums of columns.
    """
    x, values, base, gradient = (y.double() for y in (x, values, base, gradient))

    def at(low: Domain, high: Domain) -> torch.Tensor:
        return index.lift(low, high).long().cpu()

    ends = ((Domain.PAIR_DST, Domain.DST), (Domain.PAIR_SRC, Domain.SRC))
    numbers = [(x[at(nodes, pairs)] * vector[at(Domain.ETYPE, pairs)]).sum(1) for (pairs, nodes), vector in zip(ends, vectors, strict=True)]
    to, of = (at(domain, Domain.EDGE) for domain in (Domain.DST, Domain.PAIR_SRC))
    raw = numbers[0][at(Domain.PAIR_DST, Domain.EDGE)] + numbers[1][of]
    score = torch.where(raw > 0, raw, slope * raw)
    top = torch.full((len(x),), -torch.inf, dtype=score.dtype).scatter_reduce(0, to, score, "amax")
    power = (score - top[to]).exp()
    share = power / torch.zeros_like(top).index_add(0, to, power)[to]
    out = torch.zeros_like(gradient).index_add(0, to, share[:, None] * values[of])
    slopes = share * ((gradient[to] * values[of]).sum(1) - (gradient * out).sum(1)[to]) * torch.where(raw > 0, 1.0, slope)
    rows, columns = gradient, 8 * gradient.sum(0)
    for (pairs, nodes), number, vector in zip(ends, numbers, vectors, strict=True):
        rows = rows.index_add(0, at(nodes, pairs), number[:, None] * vector[at(Domain.ETYPE, pairs)])
    return [*numbers, out + base, share, slopes, rows, columns]


_OWN = tuple(
    Own("../../attention/additive.cu", entry, formats, THREADS, 0, with_the_others, "additive attention over graphs' edges", SHARED_TEXT)
    for entry, formats in (
        ("pair_numbers", "P" * 10 + "qqq"), ("additive", "P" * 16 + "dqq"), ("additive_joined", "P" * 10 + "qq"),
        ("additive_back", "P" * 17 + "dqq"), ("pair_rows", "P" * 10 + "qqq"),
        ("column_sums", "PPqq"),
    )
)  # fmt: skip

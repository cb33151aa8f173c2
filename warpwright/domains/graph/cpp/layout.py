"""How a program's iteration space becomes loops: axes joined where every tensor allows it, and one of three orders chosen.

    flat     nothing is reduced: all axes but the last are rows, the last one runs in vectors
    crossed  the same where some operands are contiguous along another axis than the results are: in tiles of the two
    rows     the last axis is reduced: one row a time, in cache, in vectors along the reduced axes
    columns  the last axis is not reduced: a tile of it in vectors, the reduced axes one after the other
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from warpwright.domains.graph.cpp.program import Axes, Program, Unsupported
from warpwright.domains.graph.ir import shape


@dataclass(frozen=True)
class Loop:
    """A joined axis: its size, and for every tensor of the program the distance between neighbours (0: broadcast)."""

    size: int
    reduced: bool
    strides: tuple[int, ...]
    axis: int = -1
    """The axis, where operands have other places along it: such a one is not joined to others."""


@dataclass(frozen=True)
class Layout:
    """The loops of a kernel, outermost first. `tensors` counts operands first, then outputs."""

    order: Literal["flat", "rows", "columns", "crossed"]
    outer: tuple[Loop, ...]
    """Not reduced, without the vectorised one."""
    inner: tuple[Loop, ...]
    """Reduced (flat: the last axis; crossed: that along which the crossed operands are contiguous, and that of the results)."""
    lanes: Loop | None = None
    """Columns only: the vectorised axis."""
    crossed: tuple[int, ...] = ()
    """The operands that are contiguous along the former."""

    @property
    def rows(self) -> int:
        """How many independent rows."""
        return math.prod(loop.size for loop in self.outer)

    @property
    def length(self) -> int:
        """Elements of a row, without lanes."""
        return math.prod(loop.size for loop in self.inner)

    @property
    def vector(self) -> Loop:
        """The loop that runs in vectors."""
        return self.lanes if self.lanes is not None else self.inner[-1]


def strides(axes: Axes, sizes: Sequence[int]) -> dict[int, int]:
    """Return for each axis the distance between neighbours in a contiguous tensor over `axes`."""
    steps_of, step = {}, 1
    for dim in reversed(axes):
        for axis in reversed(dim):
            steps_of[axis] = step
            step *= sizes[axis]
    return steps_of


def spread(axes: Axes, sizes: Sequence[int], steps: Sequence[int]) -> dict[int, int]:
    """Return for each axis the distance between neighbours in a tensor whose dimensions have the strides `steps`."""
    steps_of = {}
    for dim, step in zip(axes, steps, strict=True):
        for axis in reversed(dim):
            steps_of[axis] = step
            step *= sizes[axis]
    return steps_of


def choose(program: Program, strides: Sequence[Sequence[int] | None] | None = None) -> Layout:
    """Return the loops for a finished program; Unsupported when its innermost axis is not contiguous in every tensor.

    `strides` are the strides of each operand, and of each result if it goes on; tensors of which there are none are contiguous.
    """
    tables = _tables(program, strides)
    long = [axis for axis, size in enumerate(program.sizes) if size != 1]
    try:
        return _ordered(program, tables, long)
    except Unsupported:
        order = _order(tables, long)
        if order == long:
            raise
        return _ordered(program, tables, order)


def crossed(program: Program, strides: Sequence[Sequence[int] | None] | None = None) -> Layout:
    """Return the loops of a program without reductions whose operands are contiguous along one axis, or another; Unsupported otherwise."""
    if program.moves:
        raise Unsupported("other places in tensors that lie in two orders")
    tables = _tables(program, strides)
    long = [axis for axis, size in enumerate(program.sizes) if size != 1]
    inputs, first = len(program.operands), tables[len(program.operands)]
    if program.reduced or not all(axis in first for axis in long):
        raise Unsupported("reductions of tensors that lie in two orders")
    order = sorted(long, key=lambda axis: -first[axis])
    loops = joined([Loop(program.sizes[axis], False, tuple(table.get(axis, 0) for table in tables)) for axis in order])
    along = loops[-1]
    crossing = tuple(t for t, step in enumerate(along.strides) if step > 1)
    across = [loop for loop in loops[:-1] if all(loop.strides[t] == 1 for t in crossing)]
    if not across or not crossing or crossing[-1] >= inputs or min(along.size, across[0].size) < LEAST_CROSSED:
        raise Unsupported("tensors that lie in more than two orders")
    return Layout("crossed", tuple(loop for loop in loops[:-1] if loop is not across[0]), (across[0], along), crossed=crossing)


LEAST_CROSSED = 8
"""A tile of fewer neighbours wastes more than a copy takes."""


def _tables(program: Program, operand_strides: Sequence[Sequence[int] | None] | None) -> list[dict[int, int]]:
    """Return for each tensor, operands first, the distance between neighbours along each of its axes."""
    inputs, targets = len(program.operands), [program.sums.get(node) for node, _ in program.outputs]
    results = [output.axes if target is None else target.own for (_, output), target in zip(program.outputs, targets, strict=True)]
    tensors = [axes for _, axes in program.operands] + results
    tables = [strides(axes, program.sizes) for axes in tensors]
    for t in (t for t, target in enumerate(targets, inputs) if target is not None):
        tables[t] = spread(tensors[t], program.sizes, torch.empty(shape(program.outputs[t - inputs][0]), device="meta").stride())
    for t in program.moves:  # whose sizes are their own
        own = torch.empty(shape(program.operands[t][0]), device="meta").stride()
        tables[t] = spread(tensors[t], program.sizes, own)
    for t, steps in enumerate(operand_strides or ()):
        if steps is not None:
            tables[t] = spread(tensors[t], program.sizes, steps)
    return tables


def _ordered(program: Program, tables: Sequence[Mapping[int, int]], order: Sequence[int]) -> Layout:
    """Return the loops over the axes in an order."""
    reduced = program.reduced or frozenset()
    apart = {axis for moves in program.moves.values() for move in moves for axis in move.axes}
    apart |= {axis for v in program.values if v.kind == "place" for axis in v.over}
    loops = [
        Loop(program.sizes[axis], axis in reduced, tuple(table.get(axis, 0) for table in tables), axis if axis in apart else -1) for axis in order
    ]
    if any(v.text == "First" for v in program.values) and (places := [axis for axis in order if axis in reduced]) != sorted(places):
        raise Unsupported("an index of elements that are met in another order")
    loops = loops or [Loop(1, bool(reduced), (0,) * len(tables))]
    loops = joined(loops)
    outer = tuple(loop for loop in loops if not loop.reduced)
    inner = tuple(loop for loop in loops if loop.reduced)
    if not inner and not reduced:
        layout = Layout("flat", outer[:-1], outer[-1:])
    elif loops[-1].reduced:
        layout = Layout("rows", outer, inner)
    else:
        layout = Layout("columns", outer[:-1], inner or (Loop(1, True, (0,) * len(tables)),), outer[-1])
    if any(step > 1 for step in layout.vector.strides):
        raise Unsupported("a tensor that is not contiguous along the innermost axis")
    return layout


def _order(tables: Sequence[Mapping[int, int]], long: list[int]) -> list[int]:
    """Return the axes as the elements of most tensors that run over all of them follow one another in memory, outermost first."""
    orders = [tuple(sorted(long, key=lambda axis: -table[axis])) for table in tables if all(axis in table for axis in long)]
    if not orders:
        return long
    most = max(map(orders.count, orders))
    return list(next(order for order in orders if orders.count(order) == most))


def joined(loops: list[Loop]) -> list[Loop]:
    """Join neighbouring axes wherever every tensor runs through both in one stride."""
    done: list[Loop] = []
    for loop in loops:
        before = done[-1] if done else None
        alone = loop.axis >= 0 or (before is not None and before.axis >= 0)
        if before is not None and not alone and before.reduced == loop.reduced and all(
            a == b * loop.size for a, b in zip(before.strides, loop.strides, strict=True)
        ):
            done[-1] = Loop(before.size * loop.size, loop.reduced, loop.strides)
        else:
            done.append(loop)
    return done

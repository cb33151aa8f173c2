"""What a kernel computes, element by element, and how aten calls become that.

An iteration space is a list of axes. Every value knows, for each dimension of the tensor it stands for, over which axes it runs (none: size 1).
A value that runs over a reduced axis lives on the level of elements, any other on the level of rows. A reduction ends a phase: what needs its
result belongs to the next one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import fx

from warpwright.domains.graph.ir import aten, is_op, is_tensor, shape, value

Axes = tuple[tuple[int, ...], ...]
"""For each dimension of a tensor the axes over which it runs, outermost first; () for a dimension of size 1."""

FLOAT, MASK, PLACE = "f", "m", "i"
"""Types of values: float32, bool, and the index of an element among those that a reduction joins."""
FLOATS = (torch.float32, torch.bfloat16, torch.float16)
"""Types that are computed with in float32; what is rounded to a half between calls is not, within a kernel. Which a language writes, it says."""


class Unsupported(Exception):
    """These calls cannot be one kernel; the reason is in the message."""


@dataclass(frozen=True)
class Bag:
    """Rows of an operand that are joined to one. Numbers are those of operands; -1: there is none."""

    how: str
    """sum, mean, max, min, prod; or largest: as max, but that a NaN is only taken where it comes first."""
    index: int = -1
    """Holds the rows; without one they follow one another."""
    offsets: int = -1
    """Holds where each bag begins, and with `last` where the last one ends too; without one the rows of `index` are the bags."""
    count: int = 0
    """Of bags."""
    length: int = 0
    """Rows of each, where there are no offsets."""
    total: int = 0
    """Rows of all bags."""
    last: bool = False
    whole: bool = False
    """Has the last one to end with the last row?"""
    weights: int = -1
    """Holds a factor for each row."""
    lengths: int = -1
    """Holds what torch works the offsets out from, where a kernel cannot run."""
    padding: int = -1
    """The row that does not count."""
    begin: float = 0.0
    """What the first row is joined to."""
    empty: float = 0.0
    """What a bag without rows is."""


@dataclass(frozen=True)
class Move:
    """How the place in an operand follows from an element's place, where it is not the same."""

    kind: Literal["window", "roll", "gather", "sample", "bag"]
    """The operand begins at `start` of the dimension over `axes`, and there is nothing of it elsewhere; it is rolled by `start` along the one axis;
    its dimension `dim` has the place that the operand `index` holds; along the one axis it has the place that `text` gives; or its first dimension is
    joined to that over `axes` by `bag`."""
    size: int
    """Of the operand's dimension."""
    axes: tuple[int, ...] = ()
    start: int = 0
    dim: int = -1
    index: int = -1
    signed: bool = False
    """Do negative indices count from the end?"""
    text: str = ""
    """A C++ expression of an element's place {0}."""
    bag: Bag | None = None


@dataclass(frozen=True)
class Target:
    """Where a result's elements are joined to what is there."""

    move: Move
    """The dimension whose place an operand holds."""
    own: Axes
    """Over which axes the other dimensions run."""
    how: str = "add"
    """add, mul, max, min or put."""


@dataclass(frozen=True)
class Value:
    """One result of the program."""

    number: int
    kind: str
    """load, const, op, reduce, part (the mean or the sum of squares of a reduction of kind Moments, the value or the index of one of kind First) or
    place (a function of an index)."""
    text: str
    """An op's C++ expression, with {0}, {1} ... for its arguments; a reduction's C++ type; a const's digits; a part's member."""
    args: tuple[Value, ...]
    axes: Axes
    type: str = FLOAT
    operand: int = -1
    phase: int = 0
    cost: int = 0
    """About how many cycles it takes to compute again, arguments included."""

    @property
    def over(self) -> frozenset[int]:
        """The axes over which it runs."""
        return frozenset(a for dim in self.axes for a in dim)


@dataclass
class Program:
    """A kernel being built: calls of the graph are added one by one."""

    sizes: list[int]
    """Size of each axis, outermost first."""
    dims: Axes
    """The axes of each dimension of the whole space."""
    reduced: frozenset[int] | None = None
    """The axes over which every reduction of this program runs."""
    values: list[Value] = field(default_factory=list)
    operands: list[tuple[fx.Node, Axes]] = field(default_factory=list)
    env: dict[fx.Node, Value] = field(default_factory=dict)
    outputs: list[tuple[fx.Node, Value]] = field(default_factory=list)
    moves: dict[int, tuple[Move, ...]] = field(default_factory=dict)
    """Operand -> its moves, where it has such."""
    sums: dict[fx.Node, Target] = field(default_factory=dict)
    """Calls whose results are sums at places that indices choose -> where (`sums.py`)."""
    later: frozenset[fx.Node] = frozenset()
    """Calls that are parts of a larger tensor, and are built as such."""
    members: frozenset[fx.Node] = frozenset()
    """All calls of the kernel, whose results do not lie in memory."""
    frame: tuple[Move, ...] = ()
    """The windows that are being built."""

    # --- making values ---

    def _new(self, kind: str, text: str, args: Sequence[Value], axes: Axes, **rest: Any) -> Value:
        phase = max((a.phase for a in args), default=0) + (kind == "reduce")
        value = Value(len(self.values), kind, text, tuple(args), axes, phase=phase, **rest)
        self.values.append(value)
        return value

    def const(self, number: float) -> Value:
        """Return a number."""
        number = float(number)
        text = {math.inf: "INF", -math.inf: "-INF"}.get(number, "NAN" if number != number else f"{number!r}f")
        return self._new("const", text, (), ())

    def op(self, text: str, *args: Value, cost: int = 1, type: str = FLOAT) -> Value:
        """Return an element-wise function of values that broadcast against each other."""
        return self._new("op", text, args, self._together([a.axes for a in args]), cost=cost + sum(a.cost for a in args), type=type)

    def _together(self, many: Sequence[Axes]) -> Axes:
        """Return the axes of a broadcast: dimensions are aligned from the right and have to run over the same axes."""
        rank = max((len(axes) for axes in many), default=0)
        joined: list[tuple[int, ...]] = []
        for dim in range(-rank, 0):
            known = {axes[dim] for axes in many if len(axes) >= -dim and axes[dim]}
            if len(known) > 1:
                raise Unsupported("two values run over different axes in the same dimension")
            joined.append(known.pop() if known else ())
        return tuple(joined)

    def reduce(self, kind: str, x: Value, dims: Sequence[int]) -> Value:
        """Return a reduction (Sum, Max, Min, Moments or First) over some dimensions of `x`, which are kept with size 1."""
        if self.frame:
            raise Unsupported("a reduction of a part")
        axes = frozenset(a for d in dims for a in x.axes[d])
        kept = tuple(() if i in {d % len(x.axes) for d in dims} else dim for i, dim in enumerate(x.axes))
        if not axes or (self.reduced is not None and axes != self.reduced):
            raise Unsupported("two reductions run over different axes")
        missing = {a for a in range(len(self.sizes)) if a not in x.over}
        if missing:
            raise Unsupported("a reduction of a value that is broadcast")
        self.reduced = axes
        return self._new("reduce", kind, (x,), kept)

    def part(self, moments: Value, member: str) -> Value:
        """Return the mean (`mean`) or the sum of squared differences (`m2`) of a Moments reduction; the value (`top`) or the index (`place`) of a
        First one."""
        return self._new("part", member, (moments,), moments.axes, type=PLACE if member == "place" else FLOAT)

    def count(self, x: Value, dims: Sequence[int]) -> int:
        """Return how many elements a reduction of `x` over `dims` joins."""
        return math.prod(self.sizes[a] for d in dims for a in x.axes[d])

    def with_axes(self, x: Value, axes: Axes) -> Value:
        """Return `x` as a tensor of other dimensions: squeezed or unsqueezed."""
        return x if axes == x.axes else self._new("op", "{0}", (x,), axes, cost=x.cost, type=x.type)

    # --- reading arguments ---

    def size(self, dim: tuple[int, ...]) -> int:
        """Return the size of a dimension, in the window that is being built."""
        framed = [move.size for move in self.frame if move.axes == dim]
        return framed[0] if framed else math.prod(self.sizes[a] for a in dim)

    def axes_for(self, sizes: Sequence[int], near: Axes) -> Axes:
        """Return the axes of a tensor of these sizes that is broadcast against values over `near`."""
        if len(sizes) > len(near):
            raise Unsupported("a tensor of more dimensions than what it meets")
        axes = []
        for size, dim in zip(reversed(sizes), reversed(near), strict=False):
            if size != 1 and size != self.size(dim):
                raise Unsupported("a tensor whose sizes do not fit the iteration space")
            axes.append(() if size == 1 else dim)
        return tuple(reversed(axes))

    def load(self, node: fx.Node, axes: Axes) -> Value:
        """Return the elements of a tensor from outside."""
        if value(node).dtype not in (*FLOATS, torch.int64, torch.int32, torch.bool, torch.uint8):
            raise Unsupported(f"a tensor of {value(node).dtype}")
        return self._read(axes, self.operand(node, axes, tuple(w for w in self.frame if w.axes in axes)), 2)

    def _read(self, axes: Axes, operand: int, cost: int) -> Value:
        """Return an operand's elements: of all calls that read them the same value, so that a row that is kept is kept for each of them."""
        known = (v for v in self.values if v.kind == "load" and v.operand == operand and v.axes == axes)
        return next(known, None) or self._new("load", "", (), axes, operand=operand, cost=cost)

    def operand(self, node: fx.Node, axes: Axes, moves: tuple[Move, ...] = ()) -> int:
        """Return the number of the operand, which is a new one if it is not read so yet."""
        if node in self.members:
            raise Unsupported("a result of this kernel that is read in another way")
        for t, known in enumerate(self.operands):
            if known == (node, axes) and self.moves.get(t, ()) == moves:
                return t
        self.operands.append((node, axes))
        if moves:
            self.moves[len(self.operands) - 1] = moves
        return len(self.operands) - 1

    # --- other places ---

    def rolled(self, node: fx.Node, shifts: Sequence[tuple[int, int]]) -> Value:
        """Return a tensor from outside, rolled along dimensions: pairs of dimension and shift."""
        axes = self.axes_for(shape(node), self.dims)
        if self.frame or any(len(axes[d]) != 1 for d, _ in shifts):
            raise Unsupported("a roll of a part, or along a dimension that is split")
        moves = tuple(Move("roll", shape(node)[d], axes[d], shift % shape(node)[d]) for d, shift in shifts)
        return self._read(axes, self.operand(node, axes, moves), 4)

    def gathered(self, node: fx.Node, axes: Axes, own: Axes, indices: Sequence[tuple[int, fx.Node, Axes]], signed: bool) -> Value:
        """Return a tensor from outside over `axes`; its dimensions run over `own`, or have the places of a tensor of indices over its axes."""
        moves = [window for window in self.frame if window.axes in axes]
        for dim, index, over in indices:
            if not is_tensor(index) or value(index).dtype not in (torch.int64, torch.int32) or not shape(index):
                raise Unsupported("a gather by what are no indices, or by a single one, which may lie in the host's memory")
            places = self.operand(index, over, tuple(window for window in self.frame if window.axes in over))
            moves.append(Move("gather", shape(node)[dim], dim=dim, index=places, signed=signed))
        return self._read(axes, self.operand(node, own, tuple(moves)), 4)

    def sampled(self, node: fx.Node, axes: Axes, places: Mapping[int, str]) -> Value:
        """Return a tensor from outside over `axes`; along some dimensions it has the places that expressions of an element's own give."""
        moves = [window for window in self.frame if window.axes in axes]
        for d, text in places.items():
            if len(axes[d]) != 1 or any(window.axes == axes[d] for window in self.frame):
                raise Unsupported("resampling along a dimension of size 1, or one that is split or part of another")
            moves.append(Move("sample", shape(node)[d], axes[d], text=text))
        return self._read(axes, self.operand(node, axes, tuple(moves)), 4)

    def bagged(self, node: fx.Node, axes: Axes, form: Bag) -> Value:
        """Return the bags of a tensor from outside over `axes`, the first of which counts them."""
        moves = [window for window in self.frame if window.axes in axes]
        moves.append(Move("bag", shape(node)[0], axes[0], bag=form))
        return self._read(axes, self.operand(node, ((), *axes[1:]), tuple(moves)), 16)

    def function_of_place(self, dim: tuple[int, ...], text: str) -> Value:
        """Return a number that follows from an element's index {0} along a dimension."""
        axes = tuple(dim if own == dim else () for own in self.dims)
        return self._new("place", text, (), axes, cost=6)

    def part_of(self, arg: Any, build: Any, windows: Sequence[tuple[tuple[int, ...], int, int]]) -> Value:
        """Return an argument as part of the whole space. `windows`: dimension, where the part begins, and its size; `build` builds calls."""
        moves = []
        for dim, start, size in windows:
            if not dim or any(w.axes == dim for w in self.frame):
                raise Unsupported("a part of a part along the same dimension")
            moves.append(Move("window", size, dim, start))
        with self._framed(moves):
            return self._built(arg, build)

    def _built(self, arg: Any, build: Any) -> Value:
        if arg in self.later and arg not in self.env:
            for needed in arg.all_input_nodes:
                if needed in self.later:
                    self._built(needed, build)
            self.env[arg] = build(arg)
            if tuple(self.size(dim) for dim in self.env[arg].axes) != shape(arg):
                raise Unsupported(f"{arg.name} does not fit the part")
        return self.read(arg, self.dims)

    @contextmanager
    def _framed(self, moves: Sequence[Move]) -> Iterator[None]:
        """Build values for windows of the space: sizes of dimensions are theirs meanwhile."""
        before = self.frame, self.env
        self.frame, self.env = (*self.frame, *moves), {}
        try:
            yield
        finally:
            self.frame, self.env = before

    def within(self, dim: tuple[int, ...], start: int, stop: int) -> Value:
        """Return whether an element lies in a part of the dimension."""
        axes = tuple(dim if own == dim else () for own in self.dims)
        return self._new("place", f"({{0}} >= {start} && {{0}} < {stop})", (), axes, type=MASK)

    def read(self, arg: Any, near: Axes) -> Value:
        """Return an argument of a call as a value: a number, a result of this program, or a tensor from outside."""
        if isinstance(arg, bool) or not isinstance(arg, int | float | fx.Node):
            raise Unsupported(f"an argument {arg!r}")
        if not isinstance(arg, fx.Node):
            return self.const(arg)
        if arg in self.env:
            return self.env[arg]
        if not is_tensor(arg):
            raise Unsupported("an argument that is no tensor")
        if arg.meta.get("number") is not None:
            return self.const(arg.meta["number"])
        if is_op(arg, aten.expand.default, aten.expand_as.default):  # as it lies, without the copy that a broadcast takes
            return self.read(arg.args[0], near)
        return self.load(arg, self.axes_for(shape(arg), near))

    def axes_of_result(self, node: fx.Node, args: Sequence[Any]) -> Axes:
        """Return over which axes the result of an element-wise call runs."""
        known = self._together([self.env[a].axes for a in args if isinstance(a, fx.Node) and a in self.env])
        sizes = shape(node)
        whole = len(sizes) == len(self.dims)
        axes: list[tuple[int, ...]] = []
        for i, size in enumerate(sizes):
            back = i - len(sizes)
            dim = known[back] if len(known) >= -back else ()
            if not dim and size != 1:
                if not whole or self.size(self.dims[back]) != size:
                    raise Unsupported("a result that does not fit the iteration space")
                dim = self.dims[back]
            axes.append(dim)
        return tuple(axes)

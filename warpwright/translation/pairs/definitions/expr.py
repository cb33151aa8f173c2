"""Tensor expressions: an iteration space, reductions inside it, and a body; a graph is a list of such stages over named buffers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from warpwright.errors import WarpwrightError
from warpwright.translation.pairs.definitions.functions import FUNCTIONS, Interval

Kind = Literal["const", "index", "load", "acc", "call"]
Combine = Literal["sum", "prod", "max", "min", "argmax", "argmin"]
Values = Literal["uniform", "index", "permutation"]
DTYPES: Mapping[str, str] = {"float32": "float", "int32": "int", "int8": "signed char"}
"""Element type to its C and CUDA name."""

Axis = tuple[str, int]
"""Name and extent."""


class PairError(WarpwrightError):
    """A definition, a schedule or a printed program that the generator itself got wrong."""


@dataclass(frozen=True)
class Expr:
    """A scalar expression. `value`: the constant, the name of an axis, buffer or reduction, or the function's name."""

    kind: Kind
    value: str | float | int
    args: tuple[Expr, ...] = ()
    dtype: str = "float32"

    def _with(self, name: str, other: Expr | float | int, swapped: bool = False) -> Expr:
        right = other if isinstance(other, Expr) else const(other, self.dtype)
        pair = (right, self) if swapped else (self, right)
        integer = self.dtype == "int32" and right.dtype == "int32"
        table = {
            "+": ("iadd", "add"),
            "-": ("isub", "subtract"),
            "*": ("imul", "multiply"),
            "//": ("idiv", "idiv"),
            "%": ("imod", "imod"),
            "/": ("", "divide"),
        }
        return call(table[name][0 if integer else 1], *pair)

    def __add__(self, other: Expr | float | int) -> Expr:
        if self.dtype == "int32" and other == 0:
            return self
        return self._with("+", other)

    def __radd__(self, other: float | int) -> Expr:
        return self._with("+", other, True)

    def __sub__(self, other: Expr | float | int) -> Expr:
        if self.dtype == "int32" and other == 0:
            return self
        return self._with("-", other)

    def __rsub__(self, other: float | int) -> Expr:
        return self._with("-", other, True)

    def __mul__(self, other: Expr | float | int) -> Expr:
        if self.dtype == "int32" and other == 1:
            return self
        return self._with("*", other)

    def __rmul__(self, other: float | int) -> Expr:
        return self._with("*", other, True)

    def __truediv__(self, other: Expr | float) -> Expr:
        return self._with("/", other)

    def __rtruediv__(self, other: float) -> Expr:
        return self._with("/", other, True)

    def __floordiv__(self, other: int | Expr) -> Expr:
        return self if other == 1 else self._with("//", other)

    def __mod__(self, other: int | Expr) -> Expr:
        return self._with("%", other)


_INTEGER = frozenset({"iadd", "isub", "imul", "idiv", "imod", "imin", "imax", "to_int"})
_TRUTH = frozenset({"lt", "le", "eq", "and", "or"})


def const(value: float | int, dtype: str = "float32") -> Expr:
    """Return a constant."""
    return Expr("const", float(value) if dtype == "float32" else int(value), (), dtype)


def index(name: str) -> Expr:
    """Return the value of an axis."""
    return Expr("index", name, (), "int32")


def acc(name: str, dtype: str = "float32") -> Expr:
    """Return the value of a reduction of the same stage."""
    return Expr("acc", name, (), dtype)


def call(name: str, *args: Expr | float | int) -> Expr:
    """Return a function of `functions.FUNCTIONS` applied to `args`."""
    if name not in FUNCTIONS or FUNCTIONS[name].arity != len(args):
        raise PairError(f"expected a known function with its number of arguments, saw {name} of {len(args)}")
    whole = name in _INTEGER or name in _TRUTH
    given = tuple(a if isinstance(a, Expr) else const(a, "int32" if whole else "float32") for a in args)
    if name in _TRUTH:
        return Expr("call", name, given, "bool")
    if name in _INTEGER:
        return Expr("call", name, given, "int32")
    if name == "clamp_int8":
        return Expr("call", name, given, "int8")
    return Expr("call", name, given, given[1].dtype if name == "select" else "float32")


def select(condition: Expr, yes: Expr, no: Expr | float) -> Expr:
    """Return `yes` where `condition` holds; only the chosen side is evaluated in C and CUDA."""
    return call("select", condition, yes, no if isinstance(no, Expr) else const(no, yes.dtype))


def within(value: Expr, extent: int) -> Expr:
    """Return whether 0 <= value < extent."""
    return call("and", call("le", 0, value), call("lt", value, extent))


@dataclass(frozen=True)
class Buffer:
    """A dense row-major array. `low`, `high`: the input domain; for indices, low <= value < high."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -1.0
    high: float = 1.0
    values: Values = "uniform"

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def __getitem__(self, at: Expr | tuple[Expr | int, ...]) -> Expr:
        """Return the element at `at`, one expression per dimension."""
        given = at if isinstance(at, tuple) else (at,)
        if len(given) != len(self.shape):
            raise PairError(f"expected {len(self.shape)} indices of {self.name}, saw {len(given)}")
        return Expr("load", self.name, tuple(a if isinstance(a, Expr) else const(a, "int32") for a in given), self.dtype)

    @property
    def interval(self) -> Interval:
        """The input domain."""
        return self.low, self.high


@dataclass(frozen=True)
class Reduction:
    """`name` = combine of `body` over `axes`; the body may use earlier reductions of the stage."""

    name: str
    axes: tuple[Axis, ...]
    combine: Combine
    body: Expr

    @property
    def dtype(self) -> str:
        """Type of the result."""
        if self.combine in ("argmax", "argmin"):
            return "int32"
        return "int32" if self.body.dtype in ("int32", "int8") else "float32"


@dataclass(frozen=True)
class Stage:
    """out[axes] = body, for every point of `axes`. With `at`, out[at] += body instead ("add") or out[at] = body ("set"): a scatter.

    With `scan`, the last axis is scanned: out[..., j] = body(..., 0) combined with ... body(..., j).
    """

    out: str
    axes: tuple[Axis, ...]
    body: Expr
    reductions: tuple[Reduction, ...] = ()
    at: tuple[Expr, ...] = ()
    scatter: Literal["", "add", "set"] = ""
    scan: Literal["", "sum", "prod", "max"] = ""

    @property
    def outer(self) -> tuple[Axis, ...]:
        """The axes that the reductions depend on; all others are repeated with the same reduction values."""
        used = {name for reduction in self.reductions for name in names(reduction.body, "index")}
        return tuple(axis for axis in self.axes if axis[0] in used)

    @property
    def inner(self) -> tuple[Axis, ...]:
        """The other axes."""
        outer = self.outer
        return tuple(axis for axis in self.axes if axis not in outer)

    @property
    def work(self) -> int:
        """Evaluations of bodies."""
        points = math.prod(extent for _, extent in self.outer)
        inside = sum(math.prod(extent for _, extent in r.axes) for r in self.reductions)
        return points * (inside + math.prod(extent for _, extent in self.inner))


@dataclass(frozen=True)
class Graph:
    """A program: input buffers, stages in order, and which buffers are outputs. Everything else is temporary."""

    name: str
    family: str
    inputs: tuple[Buffer, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[str, ...]
    shapes: Mapping[str, Buffer] = field(default_factory=dict)
    """Buffers that stages write, by name; filled by `graph()`."""
    provenance: tuple[str, ...] = ()
    """How the graph was made: its operators and mutations in order."""

    def buffer(self, name: str) -> Buffer:
        """Return a buffer by name."""
        for one in self.inputs:
            if one.name == name:
                return one
        return self.shapes[name]

    @property
    def temporaries(self) -> tuple[str, ...]:
        """Buffers that are neither inputs nor outputs."""
        return tuple(name for name in self.shapes if name not in self.outputs)

    @property
    def work(self) -> int:
        """Evaluations of bodies over all stages."""
        return sum(stage.work for stage in self.stages)


def graph(
    name: str, family: str, inputs: tuple[Buffer, ...], stages: tuple[Stage, ...], outputs: tuple[str, ...] = (), scattered: tuple[Buffer, ...] = ()
) -> Graph:
    """Return a checked graph. `scattered` gives the shapes of buffers that are written by scatters only."""
    shapes: dict[str, Buffer] = {one.name: one for one in scattered}
    for stage in stages:
        if stage.scatter:
            if stage.out not in shapes:
                raise PairError(f"expected the scattered buffer {stage.out} to exist before it is scattered to")
            continue
        shapes[stage.out] = Buffer(stage.out, tuple(extent for _, extent in stage.axes), _stored(stage.body.dtype))
    made = Graph(name, family, inputs, stages, outputs or (stages[-1].out,), shapes, (name,))
    for stage in stages:
        for expr in bodies(stage):
            for buffer in names(expr, "load"):
                made.buffer(buffer)
    return made


def _stored(dtype: str) -> str:
    return "int32" if dtype == "bool" else dtype


def bodies(stage: Stage) -> tuple[Expr, ...]:
    """Return every expression of a stage."""
    return (*(reduction.body for reduction in stage.reductions), stage.body, *stage.at)


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield an expression and everything below it."""
    yield expr
    for arg in expr.args:
        yield from walk(arg)


def names(expr: Expr, kind: Kind) -> tuple[str, ...]:
    """Return the names of all leaves of a kind, each once, in order."""
    return tuple(dict.fromkeys(str(node.value) for node in walk(expr) if node.kind == kind))


def rewrite(expr: Expr, rule: Callable[[Expr], Expr | None]) -> Expr:
    """Return the expression with `rule` applied from the leaves up; a rule returns None where it does not apply."""
    args = tuple(rewrite(arg, rule) for arg in expr.args)
    made = expr if args == expr.args else replace(expr, args=args)
    return rule(made) or made


def substitute(expr: Expr, by: Mapping[str, Expr]) -> Expr:
    """Return the expression with axes replaced by expressions."""
    return rewrite(expr, lambda node: by.get(str(node.value)) if node.kind == "index" else None)


def loads(stage: Stage) -> tuple[str, ...]:
    """Return the buffers that a stage reads, each once, in order."""
    return tuple(dict.fromkeys(name for expr in bodies(stage) for name in names(expr, "load")))

"""Tensor expressions: an iteration space, reductions inside it, and a body; a graph is a list of such stages over named tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from warpwright.translation.errors import PairError
from warpwright.translation.pairs.definitions.functions import FUNCTIONS, Interval

Kind = Literal["const", "index", "load", "acc", "call"]
Combine = Literal["sum", "prod", "max", "min", "argmax", "argmin"]
Values = Literal["uniform", "index", "permutation"]
Axis = tuple[str, int]
"""Name and extent."""


@dataclass(frozen=True)
class Expr:
    """A scalar expression. `value`: the constant, the name of an axis, tensor or reduction, or the function's name."""

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
    """Return a function of `functions.FUNCTIONS` applied to `args`. Raises PairError where there is none of that name and arity."""
    if name not in FUNCTIONS or FUNCTIONS[name].arity != len(args):
        raise PairError(f"expected a known function with its number of arguments, saw {name} of {len(args)}")
    whole = name in _INTEGER or name in _TRUTH
    typed = tuple(a if isinstance(a, Expr) else const(a, "int32" if whole else "float32") for a in args)
    if name in _TRUTH:
        return Expr("call", name, typed, "bool")
    if name in _INTEGER:
        return Expr("call", name, typed, "int32")
    if name == "clamp_int8":
        return Expr("call", name, typed, "int8")
    return Expr("call", name, typed, typed[1].dtype if name == "select" else "float32")


def select(condition: Expr, yes: Expr, no: Expr | float) -> Expr:
    """Return `yes` where `condition` holds; only the chosen side is evaluated in C and CUDA."""
    return call("select", condition, yes, no if isinstance(no, Expr) else const(no, yes.dtype))


def within(value: Expr, extent: int) -> Expr:
    """Return whether 0 <= value < extent."""
    return call("and", call("le", 0, value), call("lt", value, extent))


def conjunction(*conditions: Expr) -> Expr:
    """Return whether all conditions hold."""
    whole = conditions[0]
    for one in conditions[1:]:
        whole = call("and", whole, one)
    return whole


@dataclass(frozen=True)
class Tensor:
    """A dense row-major array. `low`, `high`: the domain that inputs are drawn from; for indices, low <= value < high."""

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
        indices = at if isinstance(at, tuple) else (at,)
        if len(indices) != len(self.shape):
            raise PairError(f"expected {len(self.shape)} indices of {self.name}, saw {len(indices)}")
        return Expr("load", self.name, tuple(a if isinstance(a, Expr) else const(a, "int32") for a in indices), self.dtype)

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
        """The axes that the reductions depend on: the reduction values are the same along all others."""
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
    """A program: input tensors, stages in order, and which tensors are outputs. All others are temporaries."""

    name: str
    family: str
    inputs: tuple[Tensor, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[str, ...]
    shapes: Mapping[str, Tensor] = field(default_factory=dict)
    """Tensors that stages write, by name; filled by `graph()`."""
    provenance: tuple[str, ...] = ()
    """The operator and the mutations that led to this graph, in order."""

    def tensor(self, name: str) -> Tensor:
        """Return a tensor by name. Raises KeyError for an unknown one."""
        for one in self.inputs:
            if one.name == name:
                return one
        return self.shapes[name]

    @property
    def temporaries(self) -> tuple[str, ...]:
        """Tensors that are neither inputs nor outputs."""
        return tuple(name for name in self.shapes if name not in self.outputs)

    @property
    def work(self) -> int:
        """Evaluations of bodies over all stages."""
        return sum(stage.work for stage in self.stages)


def graph(
    name: str, family: str, inputs: tuple[Tensor, ...], stages: tuple[Stage, ...], outputs: tuple[str, ...] = (), scattered: tuple[Tensor, ...] = ()
) -> Graph:
    """Return a checked graph. `scattered` holds the tensors that only scatters write. Raises PairError or KeyError for an unknown tensor."""
    shapes: dict[str, Tensor] = {one.name: one for one in scattered}
    for stage in stages:
        if stage.scatter:
            if stage.out not in shapes:
                raise PairError(f"expected the scattered buffer {stage.out} to exist before it is scattered to")
            continue
        shapes[stage.out] = Tensor(stage.out, tuple(extent for _, extent in stage.axes), _stored(stage.body.dtype))
    checked = Graph(name, family, inputs, stages, outputs or (stages[-1].out,), shapes, (name,))
    for stage in stages:
        for tensor in loads(stage):
            checked.tensor(tensor)
    return checked


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
    rebuilt = expr if args == expr.args else replace(expr, args=args)
    return rule(rebuilt) or rebuilt


def substitute(expr: Expr, by: Mapping[str, Expr]) -> Expr:
    """Return the expression with axes replaced by expressions."""
    return rewrite(expr, lambda node: by.get(str(node.value)) if node.kind == "index" else None)


def loads(stage: Stage) -> tuple[str, ...]:
    """Return the tensors that a stage reads, each once, in order."""
    return tuple(dict.fromkeys(name for expr in bodies(stage) for name in names(expr, "load")))

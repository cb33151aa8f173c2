"""Expressions and small statements as C or CUDA text: what both printers share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from warpwright.translation.c_source import C_NAMES
from warpwright.translation.pairs.definitions.expr import Axis, Combine, Expr, Graph, Reduction
from warpwright.translation.pairs.definitions.functions import FUNCTIONS

LARGEST = {"float32": "3.402823466e+38f", "int32": "2147483647"}


@dataclass(frozen=True)
class Scope:
    """The text of an expression's leaves. An axis or a reduction that is not listed is printed by its own name."""

    graph: Graph
    cuda: bool
    axes: Mapping[str, str]
    loads: Mapping[str, str]
    """Loads that a variable holds already, by tensor name."""
    accs: Mapping[str, str]

    def having(self, axes: Mapping[str, str] | None = None, accs: Mapping[str, str] | None = None, loads: Mapping[str, str] | None = None) -> Scope:
        """Return the scope with more texts."""
        return replace(self, axes={**self.axes, **(axes or {})}, accs={**self.accs, **(accs or {})}, loads={**self.loads, **(loads or {})})


def scope(graph: Graph, cuda: bool) -> Scope:
    """Return the scope in which every leaf is printed by its own name."""
    return Scope(graph, cuda, {}, {}, {})


def number(value: float | int | str, dtype: str) -> str:
    """Return a constant's text."""
    if dtype != "float32":
        return str(int(value))
    text = f"{float(value):.9g}"
    return f"{text}f" if any(c in text for c in ".en") else f"{text}.0f"


def express(expr: Expr, inside: Scope) -> str:
    """Return the text of an expression."""
    if expr.kind == "const":
        return number(expr.value, expr.dtype)
    if expr.kind == "index":
        return inside.axes.get(str(expr.value), str(expr.value))
    if expr.kind == "acc":
        return inside.accs.get(str(expr.value), str(expr.value))
    if expr.kind == "load":
        held = inside.loads.get(str(expr.value))
        return held or f"{expr.value}[{offset(expr.args, inside.graph.tensor(str(expr.value)).shape, inside)}]"
    function = FUNCTIONS[str(expr.value)]
    return (function.device if inside.cuda else function.c).format(*(express(arg, inside) for arg in expr.args))


def offset(at: Sequence[Expr], shape: Sequence[int], inside: Scope) -> str:
    """Return the row-major offset of the element at these indices."""
    terms: list[str] = []
    constant = 0
    for d, position in enumerate(at):
        stride = math.prod(shape[d + 1 :])
        if position.kind == "const":
            constant += int(position.value) * stride
            continue
        text = express(position, inside)
        terms.append(text if stride == 1 else f"{text} * {stride}")
    if constant or not terms:
        terms.append(str(constant))
    return " + ".join(terms)


def c_type(dtype: str) -> str:
    """Return the C name of an element type."""
    return C_NAMES[dtype]


def start_of(one: Reduction) -> str:
    """Return the value that a reduction starts from."""
    kind = "float32" if one.combine in ("argmax", "argmin") else one.dtype
    start: Mapping[Combine, str] = {
        "sum": number(0, kind), "prod": number(1, kind), "max": f"-{LARGEST[kind]}", "min": LARGEST[kind],
        "argmax": f"-{LARGEST[kind]}", "argmin": LARGEST[kind],
    }  # fmt: skip
    return start[one.combine]


def combined(how: Combine, a: str, b: str, cuda: bool, dtype: str = "float32") -> str:
    """Return the expression that combines two values."""
    if how in ("sum", "prod"):
        return f"{a} {'+' if how == 'sum' else '*'} {b}"
    if cuda and dtype == "float32":
        return f"f{how}f({a}, {b})"
    return f"{b} {'>' if how == 'max' else '<'} {a} ? {b} : {a}"


def accumulate(one: Reduction, into: str, value: str, cuda: bool) -> str:
    """Return the statement that combines one value into the accumulator. (For an argmax see `keep_best`.)"""
    if one.combine in ("sum", "prod"):
        return f"{into} {'+' if one.combine == 'sum' else '*'}= {value};"
    if cuda and one.dtype == "float32":
        return f"{into} = f{one.combine}f({into}, {value});"
    kind = c_type(one.dtype)
    return f"{{ {kind} v = {value}; {into} = v {'>' if one.combine == 'max' else '<'} {into} ? v : {into}; }}"


def keep_best(one: Reduction, best: str, at: str, value: str, place: str) -> str:
    """Return the statement of an argmax or argmin that keeps the first of equal values."""
    sign = ">" if one.combine == "argmax" else "<"
    return f"{{ float v = {value}; if (v {sign} {best}) {{ {best} = v; {at} = {place}; }} }}"


def flat_place(axes: Sequence[Axis], inside: Scope) -> str:
    """Return the position of a point among the points of `axes`."""
    return offset([Expr("index", name, (), "int32") for name, _ in axes], [extent for _, extent in axes], inside)


def split(flat: str, axes: Sequence[Axis]) -> dict[str, str]:
    """Return the text of every axis, given the variable that counts the points of `axes` in row-major order."""
    texts: dict[str, str] = {}
    for d, (name, extent) in enumerate(axes):
        stride = math.prod(e for _, e in axes[d + 1 :])
        text = flat if stride == 1 else f"{flat} / {stride}"
        texts[name] = text if d == 0 else f"({text}) % {extent}" if stride > 1 else f"{text} % {extent}"
    return texts


def declare(flat: str, axes: Sequence[Axis]) -> list[str]:
    """Return declarations of the axes, computed from a flat counter."""
    return [f"int {name} = {text};" for name, text in split(flat, axes).items()]


def indent(lines: Sequence[str], levels: int = 1) -> list[str]:
    """Return the lines indented by two spaces a level."""
    return [("  " * levels + line) if line else line for line in lines]


def stored(stage_out: str, shape: Sequence[int], at: Sequence[Expr], value: str, inside: Scope) -> str:
    """Return the statement that stores a value."""
    return f"{stage_out}[{offset(at, shape, inside)}] = {value};"

"""Numpy text of a graph: the reference. It follows from the definition alone, without a schedule, and runs in float64 or float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from warpwright.translation.pairs.definitions.expr import Axis, Expr, Graph, Stage
from warpwright.translation.pairs.definitions.functions import FUNCTIONS

Array = NDArray[Any]

HEAD = """import math
import numpy as np

erf = np.vectorize(math.erf, otypes=[float])


def over(value, extents, ndim):
    value = np.asarray(value)
    value = value.reshape((1,) * (ndim - value.ndim) + value.shape)
    return np.broadcast_to(value, value.shape[: value.ndim - len(extents)] + tuple(extents))
"""

_REDUCE = {
    "sum": "np.sum({0}, axis={1})", "prod": "np.prod({0}, axis={1})", "max": "np.max({0}, axis={1})", "min": "np.min({0}, axis={1})",
    "argmax": "np.argmax((lambda v: v.reshape(v.shape[:v.ndim - {2}] + (-1,)))({0}), axis=-1)",
    "argmin": "np.argmin((lambda v: v.reshape(v.shape[:v.ndim - {2}] + (-1,)))({0}), axis=-1)",
}  # fmt: skip
_SCAN = {"sum": "np.cumsum({0}, axis=-1)", "prod": "np.cumprod({0}, axis=-1)", "max": "np.maximum.accumulate({0}, axis=-1)"}
_NUMPY = {"float32": "real", "int32": "np.int64", "int8": "np.int64"}


def print_reference(graph: Graph) -> str:
    """Return the text of `reference(inputs..., real=np.float64)`, which returns a tuple of the outputs."""
    lines = [f"def reference({', '.join(b.name for b in graph.inputs)}, real=np.float64):"]
    lines += [f"    {b.name} = {b.name}.astype({_NUMPY[b.dtype]})" for b in graph.inputs]
    for name in dict.fromkeys(stage.out for stage in graph.stages if stage.scatter):
        if all(s.out != name for s in graph.stages if not s.scatter):
            lines.append(f"    {name} = np.zeros({graph.tensor(name).shape}, {_NUMPY[graph.tensor(name).dtype]})")
    for stage in graph.stages:
        lines += [f"    {line}" for line in _stage(stage, graph)]
    return HEAD + "\n\n" + "\n".join([*lines, f"    return ({', '.join(graph.outputs)},)", ""])


def _stage(stage: Stage, graph: Graph) -> list[str]:
    extents = tuple(extent for _, extent in stage.axes)
    lines: list[str] = []
    for one in stage.reductions:
        axes, deep = (*stage.axes, *one.axes), len(one.axes)
        lines += _grid(axes)
        value = f"over({_express(one.body, graph, axes, deep)}, {tuple(e for _, e in one.axes)}, {len(axes)})"
        lines.append(f"{one.name} = {_REDUCE[one.combine].format(value, tuple(range(-deep, 0)), deep)}")
    lines += _grid(stage.axes)

    def full(expr: Expr) -> str:
        return f"over({_express(expr, graph, stage.axes, 0)}, {extents}, {len(extents)})"

    if stage.scatter:
        at = ", ".join(map(full, stage.at))
        write = f"np.add.at({stage.out}, ({at},), {full(stage.body)})" if stage.scatter == "add" else f"{stage.out}[{at}] = {full(stage.body)}"
        return [*lines, write]
    if stage.scan:
        return [*lines, f"{stage.out} = {_SCAN[stage.scan].format(full(stage.body))}"]
    return [*lines, f"{stage.out} = np.array({full(stage.body)}, dtype={_NUMPY[graph.tensor(stage.out).dtype]})"]


def _grid(axes: Sequence[Axis]) -> list[str]:
    """Return the line that makes each axis an array along its own dimension."""
    return [f"{', '.join(name for name, _ in axes)}, = np.ix_({', '.join(f'range({extent})' for _, extent in axes)})"]


def _express(expr: Expr, graph: Graph, axes: Sequence[Axis], deep: int, guarded: bool = False) -> str:
    """Return numpy text over `axes`, the last `deep` of which are a reduction's.

    Inside a select, indices are clipped into the array, since numpy evaluates both sides.
    """
    if expr.kind == "const":
        return repr(expr.value)
    if expr.kind == "index":
        return str(expr.value)
    if expr.kind == "acc":
        return f"{expr.value}[(..., *[None] * {deep})]" if deep else str(expr.value)
    if expr.kind == "load":
        return _load(expr, graph, axes, deep, guarded)
    args = (_express(a, graph, axes, deep, guarded or expr.value == "select") for a in expr.args)
    return FUNCTIONS[str(expr.value)].numpy.format(*(f"({a})" if a.startswith("-") else a for a in args))


def _load(expr: Expr, graph: Graph, axes: Sequence[Axis], deep: int, guarded: bool) -> str:
    """Return the text of a load; one whose indices are whole axes is a view, which costs no gather."""
    shape, extents = graph.tensor(str(expr.value)).shape, dict(axes)
    at = [str(a.value) if a.kind == "index" else "" for a in expr.args]
    if all(at) and len(set(at)) == len(at) and all(extents[name] == s for name, s in zip(at, shape, strict=True)):
        kept = [name for name, _ in axes if name in at]
        turned = tuple(at.index(name) for name in kept)
        text = str(expr.value) if turned == tuple(range(len(at))) else f"{expr.value}.transpose({turned})"
        return text if len(kept) == len(axes) else f"{text}[{', '.join(':' if name in at else 'None' for name, _ in axes)}]"
    positions = [_express(a, graph, axes, deep, guarded) for a in expr.args]
    if guarded:
        positions = [f"np.clip({position}, 0, {s - 1})" for position, s in zip(positions, shape, strict=True)]
    return f"{expr.value}[{', '.join(positions)}]"


def compile_reference(text: str) -> Callable[..., tuple[Array, ...]]:
    """Return the function that a reference text defines."""
    names: dict[str, Any] = {}
    exec(compile(text, "<reference>", "exec"), names)
    return names["reference"]  # type: ignore[no-any-return]

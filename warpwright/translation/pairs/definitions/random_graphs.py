"""Random graphs by augmentation of an operator: growth, merging of branches, substitution, layout changes and fusion.

A function is put on a tensor only where the tensor's values, seen over several draws and widened, lie inside the function's domain. A
function with jumps (floor, comparisons) is put on inputs only: elsewhere a rounding error could move a value over a jump.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

import numpy as np

from warpwright.translation.pairs.definitions import (
    operators_nn,  # noqa: F401 (they register their rows of the table)
    operators_norm,  # noqa: F401 (they register their rows of the table)
)
from warpwright.translation.pairs.definitions.expr import (
    Buffer,
    Expr,
    Graph,
    PairError,
    Reduction,
    Stage,
    bodies,
    call,
    loads,
    rewrite,
    substitute,
    walk,
)
from warpwright.translation.pairs.definitions.functions import BINARY, TERNARY, UNARY, Function, Interval
from warpwright.translation.pairs.definitions.inputs import inputs_of
from warpwright.translation.pairs.definitions.operators import OPERATORS, positions
from warpwright.translation.pairs.definitions.reference import compile_reference, print_reference

WIDEN = 0.25
"""Of the width that was seen, on each side."""

LARGEST = 1e4
"""Values beyond this are not grown further."""

MOST_STAGES = 7
Mutation = Callable[[Random, Graph], Graph | None]


def random_graph(rng: Random, name: str = "", steps: int | None = None) -> Graph:
    """Return a graph made from an operator (`name`, else any) by `steps` mutations (else 0 to 5, 0 for half of the draws)."""
    name = name or rng.choice(tuple(OPERATORS))
    if name not in OPERATORS:
        raise PairError(f"expected an operator of the table, saw {name!r}", f"known: {', '.join(sorted(OPERATORS))}")
    made = OPERATORS[name].make(rng)
    steps = rng.choice((0, 0, 0, 0, 1, 2, 2, 3, 4, 5)) if steps is None else steps
    for _ in range(steps):
        mutation = rng.choice(MUTATIONS)
        after = mutation(rng, made)
        if after is not None and len(after.stages) <= MOST_STAGES:
            made = replace(after, provenance=(*made.provenance, _label(mutation, made, after)))
    if len(made.provenance) > 1:
        made = replace(made, name=f"graph_{name}", family=f"graph_{made.family}")
    return made


def _label(mutation: Mutation, before: Graph, after: Graph) -> str:
    """Return the mutation's name with the functions that it brought in."""
    fresh = _functions(after) - _functions(before) if mutation is not fuse else set()
    return f"{mutation.__name__}({', '.join(sorted(fresh))})"


def _functions(graph: Graph) -> set[str]:
    return {str(node.value) for stage in graph.stages for expr in bodies(stage) for node in walk(expr) if node.kind == "call"}


# --- which values a tensor has ---------------------------------------------------------------------------------------------------------


def intervals(graph: Graph) -> Mapping[str, Interval]:
    """Return the widened range of every float32 buffer: the domain of an input, what was seen of the others."""
    every = replace(graph, outputs=tuple(graph.shapes))
    function = compile_reference(print_reference(every))
    seen: dict[str, list[float]] = {name: [] for name in graph.shapes}
    for where in ("whole", "ends"):
        for name, value in zip(every.outputs, function(**inputs_of(graph, 99, where)), strict=True):
            seen[name] += [float(np.min(value)), float(np.max(value))]
    found = {b.name: b.interval for b in graph.inputs if b.dtype == "float32"}
    for name, ends in seen.items():
        margin = WIDEN * (max(ends) - min(ends))
        if graph.shapes[name].dtype == "float32":
            found[name] = (min(ends) - margin, max(ends) + margin)
    return found


def _inside(value: Interval, domain: Interval) -> bool:
    return domain[0] <= value[0] and value[1] <= domain[1]


def _fits(function: Function, name: str, found: Mapping[str, Interval], graph: Graph) -> bool:
    if name not in found or max(map(abs, found[name])) > LARGEST:
        return False
    exact = function.exact or name in {b.name for b in graph.inputs}
    return exact and _inside(found[name], function.domain)


def _fresh(graph: Graph) -> str:
    return next(f"z{number}" for number in range(1, 99) if f"z{number}" not in graph.shapes)


def _with_stage(graph: Graph, stage: Stage, more: tuple[Buffer, ...] = (), consumed: str = "") -> Graph:
    """Return the graph with one more stage, which becomes an output; an output that it consumes becomes temporary."""
    shapes = {**graph.shapes, stage.out: Buffer(stage.out, tuple(e for _, e in stage.axes))}
    outputs = (*(name for name in graph.outputs if name != consumed), stage.out)
    return replace(graph, inputs=(*graph.inputs, *more), stages=(*graph.stages, stage), outputs=outputs, shapes=shapes)


def _sources(graph: Graph) -> tuple[str, ...]:
    """Return the outputs, twice each, and the other buffers: where to grow from."""
    return (*graph.outputs, *graph.outputs, *(b.name for b in graph.inputs), *graph.temporaries)


# --- the mutations ---------------------------------------------------------------------------------------------------------------------


def grow(rng: Random, graph: Graph) -> Graph | None:
    """Put a function of one argument on a tensor: on an output it extends the chain, elsewhere it begins a branch."""
    found, name = intervals(graph), rng.choice(_sources(graph))
    fitting = [f for f in UNARY if _fits(f, name, found, graph)]
    if not fitting:
        return None
    buffer = graph.buffer(name)
    axes, at = positions(buffer.shape)
    return _with_stage(graph, Stage(_fresh(graph), axes, call(rng.choice(fitting).name, buffer[at])), (), name if rng.random() < 0.8 else "")


def merge(rng: Random, graph: Graph) -> Graph | None:
    """Join two tensors of one shape, or one and a new input, by a function of two or three arguments."""
    found, name = intervals(graph), rng.choice(_sources(graph))
    fitting = [f for f in (*BINARY, *TERNARY) if f.exact and _fits(f, name, found, graph)]
    if not fitting:
        return None
    function, buffer = rng.choice(fitting), graph.buffer(name)
    axes, at = positions(buffer.shape)
    domain = function.domain2 or function.domain
    args: list[Expr] = [buffer[at]]
    more: list[Buffer] = []
    for _ in range(function.arity - 1):
        others = [o for o in (*graph.shapes, *(b.name for b in graph.inputs)) if o != name and graph.buffer(o).shape == buffer.shape]
        others = [o for o in others if o in found and _inside(found[o], domain)]
        if others and rng.random() < 0.6:
            args.append(graph.buffer(rng.choice(others))[at])
            continue
        low, high = max(domain[0], 0.3 if domain[0] > 0 else -2.0), min(domain[1], 2.0)
        new = Buffer(f"x{len(graph.inputs) + len(more)}", buffer.shape, "float32", low, high)
        more.append(new)
        args.append(new[at])
    return _with_stage(graph, Stage(_fresh(graph), axes, call(function.name, *args)), tuple(more), name if rng.random() < 0.8 else "")


def reduce(rng: Random, graph: Graph) -> Graph | None:
    """Reduce the last axis of an output of at least two dimensions."""
    name = rng.choice(graph.outputs)
    buffer = graph.buffer(name)
    if len(buffer.shape) < 2 or buffer.dtype != "float32" or buffer.shape[-1] < 2:
        return None
    axes, at = positions(buffer.shape)
    how = rng.choice(("sum", "max", "min", "sum"))
    one = Reduction("s", axes[-1:], how, buffer[at])  # type: ignore[arg-type]
    body = Expr("acc", "s") / float(buffer.shape[-1]) if how == "sum" else Expr("acc", "s")
    return _with_stage(graph, Stage(_fresh(graph), axes[:-1], body, (one,)), (), name)


def substitute_function(rng: Random, graph: Graph) -> Graph | None:
    """Replace one function by another of as many arguments, where its arguments lie in the other's domain."""
    found = intervals(graph)
    places = [(s, node) for s, stage in enumerate(graph.stages) for node in walk(stage.body) if _replaceable(node, found)]
    if not places:
        return None
    at, old = rng.choice(places)
    table = {1: UNARY, 2: BINARY, 3: TERNARY}[len(old.args)]
    names = [str(arg.value) for arg in old.args]
    fitting = [f for f in table if f.name != old.value and f.exact and _fits(f, names[0], found, graph)]
    fitting = [f for f in fitting if all(_inside(found[n], f.domain2 or f.domain) for n in names[1:])]
    if not fitting:
        return None
    new = rng.choice(fitting).name
    stage = graph.stages[at]
    body = rewrite(stage.body, lambda node: replace(node, value=new) if node == old else None)
    return _checked(replace(graph, stages=(*graph.stages[:at], replace(stage, body=body), *graph.stages[at + 1 :])))


def _replaceable(node: Expr, found: Mapping[str, Interval]) -> bool:
    ours = {f.name for f in (*UNARY, *BINARY, *TERNARY)}
    return node.kind == "call" and node.value in ours and all(a.kind == "load" and a.value in found for a in node.args)


def _checked(graph: Graph) -> Graph | None:
    """Return the graph if all its values are finite and moderate: a substitution moves everything that comes after it."""
    with np.errstate(all="ignore"):
        found = intervals(graph)
    return graph if all(np.isfinite(i).all() and max(map(abs, i)) < 1e30 for i in found.values()) else None


def transpose_input(rng: Random, graph: Graph) -> Graph | None:
    """Store an input with its last two dimensions exchanged."""
    fitting = [b for b in graph.inputs if len(b.shape) >= 2]
    if not fitting:
        return None
    old = rng.choice(fitting)
    new = replace(old, shape=(*old.shape[:-2], old.shape[-1], old.shape[-2]))

    def turned(node: Expr) -> Expr | None:
        mine = node.kind == "load" and node.value == old.name
        return replace(node, args=(*node.args[:-2], node.args[-1], node.args[-2])) if mine else None

    return _rewritten(replace(graph, inputs=tuple(new if b is old else b for b in graph.inputs)), turned)


def transpose_output(rng: Random, graph: Graph) -> Graph | None:
    """Store an output with its dimensions rotated by one."""
    fitting = [s for s in graph.stages if s.out in graph.outputs and len(s.axes) >= 2 and not s.scan and not s.scatter]
    fitting = [s for s in fitting if not any(s.out in loads(other) for other in graph.stages) and sum(o.out == s.out for o in graph.stages) == 1]
    if not fitting:
        return None
    old = rng.choice(fitting)
    new = replace(old, axes=(*old.axes[1:], old.axes[0]))
    shapes = {**graph.shapes, old.out: replace(graph.shapes[old.out], shape=tuple(e for _, e in new.axes))}
    return replace(graph, stages=tuple(new if s is old else s for s in graph.stages), shapes=shapes)


def _rewritten(graph: Graph, rule: Callable[[Expr], Expr | None]) -> Graph:
    def changed(stage: Stage) -> Stage:
        parts = tuple(replace(r, body=rewrite(r.body, rule)) for r in stage.reductions)
        return replace(stage, body=rewrite(stage.body, rule), reductions=parts, at=tuple(rewrite(a, rule) for a in stage.at))

    return replace(graph, stages=tuple(map(changed, graph.stages)))


def fuse(rng: Random, graph: Graph) -> Graph | None:
    """Inline a pointwise stage into the stages that read it."""
    writes = [stage.out for stage in graph.stages]
    fitting = [s for s in graph.stages if not (s.reductions or s.scan or s.scatter or s.out in graph.outputs) and writes.count(s.out) == 1]
    fitting = [s for s in fitting if sum(1 for _ in walk(s.body)) <= 24]
    if not fitting:
        return None
    gone = rng.choice(fitting)

    def inlined(node: Expr) -> Expr | None:
        if node.kind != "load" or node.value != gone.out:
            return None
        return substitute(gone.body, {name: at for (name, _), at in zip(gone.axes, node.args, strict=True)})

    kept = replace(graph, stages=tuple(s for s in graph.stages if s is not gone), shapes={n: b for n, b in graph.shapes.items() if n != gone.out})
    return _rewritten(kept, inlined)


MUTATIONS: tuple[Mutation, ...] = (grow, grow, grow, merge, merge, reduce, substitute_function, transpose_input, transpose_output, fuse, fuse)

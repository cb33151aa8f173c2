"""Random graphs: an operator of the table, mutated by growth, merging of branches, substitution, layout changes and fusion.

A function is applied to a tensor only where the tensor's values, observed on several draws and widened, lie inside the function's domain. A
function with jumps (floor, comparisons) is applied to inputs only: elsewhere a rounding error could move a value across a jump.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

import numpy as np

from warpwright.translation.errors import PairError
from warpwright.translation.pairs.definitions.expr import (
    Expr,
    Graph,
    Reduction,
    Stage,
    Tensor,
    bodies,
    call,
    loads,
    rewrite,
    substitute,
    walk,
)
from warpwright.translation.pairs.definitions.functions import BINARY, TERNARY, UNARY, Function, Interval
from warpwright.translation.pairs.definitions.inputs import inputs_of
from warpwright.translation.pairs.definitions.operators import OPERATORS
from warpwright.translation.pairs.definitions.operators.table import positions
from warpwright.translation.pairs.definitions.reference import compile_reference, print_reference

WIDEN = 0.25
"""Margin on each side of the observed interval, as a share of its width."""

LARGEST = 1e4
"""Tensors with values beyond this are not grown further."""

MOST_STAGES = 7
Mutation = Callable[[Random, Graph], Graph | None]


def random_graph(rng: Random, name: str = "", steps: int | None = None) -> Graph:
    """Return an operator (`name`, else any) after `steps` mutations (else 0 to 5, most often 0). Raises PairError for an unknown operator."""
    name = name or rng.choice(tuple(OPERATORS))
    if name not in OPERATORS:
        raise PairError(f"expected an operator of the table, saw {name!r}", f"known: {', '.join(sorted(OPERATORS))}")
    result = OPERATORS[name].make(rng)
    steps = rng.choice((0, 0, 0, 0, 1, 2, 2, 3, 4, 5)) if steps is None else steps
    for _ in range(steps):
        mutation = rng.choice(MUTATIONS)
        after = mutation(rng, result)
        if after is not None and len(after.stages) <= MOST_STAGES:
            result = replace(after, provenance=(*result.provenance, _label(mutation, result, after)))
    if len(result.provenance) > 1:
        result = replace(result, name=f"graph_{name}", family=f"graph_{result.family}")
    return result


def _label(mutation: Mutation, before: Graph, after: Graph) -> str:
    """Return the mutation's name with the functions that it introduced."""
    fresh = _functions(after) - _functions(before) if mutation is not fuse else set()
    return f"{mutation.__name__}({', '.join(sorted(fresh))})"


def _functions(graph: Graph) -> set[str]:
    return {str(node.value) for stage in graph.stages for expr in bodies(stage) for node in walk(expr) if node.kind == "call"}


# --- the values of a tensor ---------------------------------------------------------------------------------------------------------


def intervals(graph: Graph) -> Mapping[str, Interval]:
    """Return the interval of every float32 tensor: the domain of an input, the widened observed range of the others."""
    every = replace(graph, outputs=tuple(graph.shapes))
    function = compile_reference(print_reference(every))
    observed: dict[str, list[float]] = {name: [] for name in graph.shapes}
    for where in ("whole", "ends"):
        for name, value in zip(every.outputs, function(**inputs_of(graph, 99, where)), strict=True):
            observed[name] += [float(np.min(value)), float(np.max(value))]
    known = {b.name: b.interval for b in graph.inputs if b.dtype == "float32"}
    for name, ends in observed.items():
        margin = WIDEN * (max(ends) - min(ends))
        if graph.shapes[name].dtype == "float32":
            known[name] = (min(ends) - margin, max(ends) + margin)
    return known


def _inside(value: Interval, domain: Interval) -> bool:
    return domain[0] <= value[0] and value[1] <= domain[1]


def _fits(function: Function, name: str, known: Mapping[str, Interval], graph: Graph) -> bool:
    if name not in known or max(map(abs, known[name])) > LARGEST:
        return False
    exact = function.exact or name in {b.name for b in graph.inputs}
    return exact and _inside(known[name], function.domain)


def _fresh(graph: Graph) -> str:
    return next(f"z{number}" for number in range(1, 99) if f"z{number}" not in graph.shapes)


def _with_stage(graph: Graph, stage: Stage, more: tuple[Tensor, ...] = (), consumed: str = "") -> Graph:
    """Return the graph with one more stage, which becomes an output; an output that it consumes becomes temporary."""
    shapes = {**graph.shapes, stage.out: Tensor(stage.out, tuple(e for _, e in stage.axes))}
    outputs = (*(name for name in graph.outputs if name != consumed), stage.out)
    return replace(graph, inputs=(*graph.inputs, *more), stages=(*graph.stages, stage), outputs=outputs, shapes=shapes)


def _sources(graph: Graph) -> tuple[str, ...]:
    """Return the tensors to grow from: outputs twice, so that they are drawn more often, then all others."""
    return (*graph.outputs, *graph.outputs, *(b.name for b in graph.inputs), *graph.temporaries)


# --- the mutations ---------------------------------------------------------------------------------------------------------------------


def grow(rng: Random, graph: Graph) -> Graph | None:
    """Apply a function of one argument to a tensor: an output's chain gets longer, any other tensor gets a branch."""
    known, name = intervals(graph), rng.choice(_sources(graph))
    fitting = [f for f in UNARY if _fits(f, name, known, graph)]
    if not fitting:
        return None
    tensor = graph.tensor(name)
    axes, at = positions(tensor.shape)
    return _with_stage(graph, Stage(_fresh(graph), axes, call(rng.choice(fitting).name, tensor[at])), (), name if rng.random() < 0.8 else "")


def merge(rng: Random, graph: Graph) -> Graph | None:
    """Join two tensors of one shape, or one and a new input, by a function of two or three arguments."""
    known, name = intervals(graph), rng.choice(_sources(graph))
    fitting = [f for f in (*BINARY, *TERNARY) if f.exact and _fits(f, name, known, graph)]
    if not fitting:
        return None
    function, tensor = rng.choice(fitting), graph.tensor(name)
    axes, at = positions(tensor.shape)
    domain = function.domain2 or function.domain
    args: list[Expr] = [tensor[at]]
    more: list[Tensor] = []
    for _ in range(function.arity - 1):
        others = [o for o in (*graph.shapes, *(b.name for b in graph.inputs)) if o != name and graph.tensor(o).shape == tensor.shape]
        others = [o for o in others if o in known and _inside(known[o], domain)]
        if others and rng.random() < 0.6:
            args.append(graph.tensor(rng.choice(others))[at])
            continue
        low, high = max(domain[0], 0.3 if domain[0] > 0 else -2.0), min(domain[1], 2.0)
        new = Tensor(f"x{len(graph.inputs) + len(more)}", tensor.shape, "float32", low, high)
        more.append(new)
        args.append(new[at])
    return _with_stage(graph, Stage(_fresh(graph), axes, call(function.name, *args)), tuple(more), name if rng.random() < 0.8 else "")


def reduce(rng: Random, graph: Graph) -> Graph | None:
    """Reduce the last axis of an output of at least two dimensions."""
    name = rng.choice(graph.outputs)
    tensor = graph.tensor(name)
    if len(tensor.shape) < 2 or tensor.dtype != "float32" or tensor.shape[-1] < 2:
        return None
    axes, at = positions(tensor.shape)
    how = rng.choice(("sum", "max", "min", "sum"))
    one = Reduction("s", axes[-1:], how, tensor[at])  # type: ignore[arg-type]
    body = Expr("acc", "s") / float(tensor.shape[-1]) if how == "sum" else Expr("acc", "s")
    return _with_stage(graph, Stage(_fresh(graph), axes[:-1], body, (one,)), (), name)


def substitute_function(rng: Random, graph: Graph) -> Graph | None:
    """Replace one function by another of as many arguments, where its arguments lie in the other's domain."""
    known = intervals(graph)
    sites = [(s, node) for s, stage in enumerate(graph.stages) for node in walk(stage.body) if _replaceable(node, known)]
    if not sites:
        return None
    at, old = rng.choice(sites)
    table = {1: UNARY, 2: BINARY, 3: TERNARY}[len(old.args)]
    names = [str(arg.value) for arg in old.args]
    fitting = [f for f in table if f.name != old.value and f.exact and _fits(f, names[0], known, graph)]
    fitting = [f for f in fitting if all(_inside(known[n], f.domain2 or f.domain) for n in names[1:])]
    if not fitting:
        return None
    new = rng.choice(fitting).name
    stage = graph.stages[at]
    body = rewrite(stage.body, lambda node: replace(node, value=new) if node == old else None)
    return _checked(replace(graph, stages=(*graph.stages[:at], replace(stage, body=body), *graph.stages[at + 1 :])))


def _replaceable(node: Expr, known: Mapping[str, Interval]) -> bool:
    functions = {f.name for f in (*UNARY, *BINARY, *TERNARY)}
    return node.kind == "call" and node.value in functions and all(a.kind == "load" and a.value in known for a in node.args)


def _checked(graph: Graph) -> Graph | None:
    """Return the graph if all its values are finite and moderate, else None: a substitution changes every value after it."""
    with np.errstate(all="ignore"):
        known = intervals(graph)
    return graph if all(np.isfinite(i).all() and max(map(abs, i)) < 1e30 for i in known.values()) else None


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

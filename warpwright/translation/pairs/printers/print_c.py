"""C11 text of a graph, parallel with OpenMP: one loop nest a stage, as its schedule says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from warpwright.translation.errors import PairError
from warpwright.translation.pairs.definitions.expr import Axis, Graph, Reduction, Stage, index, substitute
from warpwright.translation.pairs.printers.schedule import LoopSchedule
from warpwright.translation.pairs.printers.text import Scope, accumulate, c_type, express, flat_place, indent, keep_best, scope, start_of, stored

INCLUDES = "#include <math.h>\n#include <stdlib.h>\n"
_OPENMP = {"sum": "+", "prod": "*", "max": "max", "min": "min"}


def print_c(graph: Graph, schedules: Sequence[LoopSchedule], name: str = "") -> str:
    """Return the C half: one function whose parameters are the inputs, then the outputs."""
    inputs = [f"const {c_type(b.dtype)}* restrict {b.name}" for b in graph.inputs]
    outputs = [f"{c_type(graph.tensor(n).dtype)}* restrict {n}" for n in graph.outputs]
    lines = []
    for temporary in graph.temporaries:
        tensor = graph.tensor(temporary)
        kind = c_type(tensor.dtype)
        lines.append(f"{kind}* restrict {temporary} = ({kind}*)malloc({tensor.size} * sizeof({kind}));")
    for stage, schedule in zip(graph.stages, schedules, strict=True):
        body = _STRATEGIES[schedule.strategy](stage, graph, schedule)
        lines += ["{", *indent(body), "}"] if _declares(body) else body
    lines += [f"free({temporary});" for temporary in graph.temporaries]
    return "\n".join([INCLUDES, f"void {name or entry(graph)}({', '.join(inputs + outputs)}) {{", *indent(lines), "}", ""])


def _declares(lines: Sequence[str]) -> bool:
    """Whether lines declare variables outside any loop: they need a block of their own, as a second stage may use the same names."""
    return any(line.startswith(("float ", "int ")) for line in lines)


def _nest(axes: Sequence[Axis], body: list[str], head: Sequence[str] = (), simd: str = "") -> list[str]:
    """Return nested loops; `head` goes before the outermost, `simd` before the innermost (if that is another loop)."""
    lines = body
    for depth, (name, extent) in enumerate(reversed(axes)):
        before = [simd] if simd and depth == 0 and (len(axes) > 1 or not head) else []
        lines = [*before, f"for (int {name} = 0; {name} < {extent}; ++{name}) {{", *indent(lines), "}"]
    return [*head, *lines] if axes else lines


def _parallel(axes: Sequence[Axis], collapse: int) -> list[str]:
    deep = min(collapse, len(axes))
    return [f"#pragma omp parallel for collapse({deep})" if deep > 1 else "#pragma omp parallel for"] if axes else []


def _store(stage: Stage, graph: Graph, inside: Scope) -> str:
    value, shape = express(stage.body, inside), graph.tensor(stage.out).shape
    if not stage.scatter:
        return stored(stage.out, shape, [index(name) for name, _ in stage.axes], value, inside)
    target = stored(stage.out, shape, stage.at, "", inside).partition(" = ")[0]
    return f"{target} += {value};" if stage.scatter == "add" else f"{target} = {value};"


def _serial(one: Reduction, inside: Scope, schedule: LoopSchedule, parallel: bool = False) -> list[str]:
    """Return the loops of one reduction, with its result in a variable of its name."""
    if one.combine in ("argmax", "argmin"):
        update = keep_best(one, f"{one.name}_best", one.name, express(one.body, inside), flat_place(one.axes, inside))
        return [f"float {one.name}_best = {start_of(one)};", f"int {one.name} = 0;", *_nest(one.axes, [update])]
    clause = f"reduction({_OPENMP[one.combine]}:{one.name})"
    body = [accumulate(one, one.name, express(one.body, inside), False)]
    if parallel:
        plain = len(one.axes) == 1 and schedule.simd
        loops = _nest(one.axes, body, [f"#pragma omp parallel for {'simd ' if plain else ''}{clause}"])
    elif schedule.unroll and not schedule.simd:
        loops = _nest(one.axes, body, simd=f"#pragma GCC unroll {schedule.unroll}")
    else:
        loops = _nest(one.axes, body, simd=f"#pragma omp simd {clause}" if schedule.simd else "")
    return [f"{c_type(one.dtype)} {one.name} = {start_of(one)};", *loops]


def _loops(stage: Stage, graph: Graph, schedule: LoopSchedule) -> list[str]:
    """Loops in the order of the axes; rows in parallel, the reductions and remaining axes of each row inside."""
    inside = scope(graph, False)
    if stage.scan:
        return _scan(stage, graph, schedule, inside)
    if stage.scatter:
        return _nest(stage.axes, [_store(stage, graph, inside)])
    simd = "#pragma omp simd" if schedule.simd else ""
    if not stage.reductions:
        collapse = min(schedule.collapse, max(1, len(stage.axes) - 1))
        return _nest(stage.axes, [_store(stage, graph, inside)], _parallel(stage.axes, collapse), simd)
    whole = not stage.outer
    work = [line for one in stage.reductions for line in _serial(one, inside, schedule, whole)]
    work += _nest(stage.inner, [_store(stage, graph, inside)], simd=simd if math.prod(e for _, e in stage.inner) > 1 else "")
    return _nest(stage.outer, work, _parallel(stage.outer, schedule.collapse))


def _scan(stage: Stage, graph: Graph, schedule: LoopSchedule, inside: Scope) -> list[str]:
    if not stage.scan:
        raise PairError(f"expected a scan, saw the stage that writes {stage.out}")
    one = Reduction("running", (stage.axes[-1],), stage.scan, stage.body)
    shape = graph.tensor(stage.out).shape
    keep = stored(stage.out, shape, [index(name) for name, _ in stage.axes], "running", inside)
    row = [f"float running = {start_of(one)};", *_nest(stage.axes[-1:], [accumulate(one, "running", express(stage.body, inside), False), keep])]
    return _nest(stage.axes[:-1], row, _parallel(stage.axes[:-1], schedule.collapse))


def _atomic(stage: Stage, graph: Graph, schedule: LoopSchedule) -> list[str]:
    """A parallel scatter with atomic additions."""
    return _nest(stage.axes, ["#pragma omp atomic", _store(stage, graph, scope(graph, False))], _parallel(stage.axes, 1))


def _lanes(stage: Stage, graph: Graph, schedule: LoopSchedule) -> list[str]:
    """Accumulate `rows` x `lanes` outputs at once: the last output axis in vectors, the rows in registers."""
    (last, width), before = stage.outer[-1], list(stage.outer[:-1])
    rows = schedule.rows if before else 1
    lanes = min(schedule.lanes, width)
    blocked = f"{before[-1][0]}0" if rows > 1 else ""
    if rows > 1:
        name, extent = before[-1]
        before[-1] = (blocked, extent // rows)
        stage = _shifted(stage, name, blocked, rows)
    inside = scope(graph, False)
    at = "[row][l]" if rows > 1 else "[l]"
    body: list[str] = []
    for one in stage.reductions:
        kind, size = c_type(one.dtype), f"[{rows}][{lanes}]" if rows > 1 else f"[{lanes}]"
        held = inside.having(accs={r.name: f"{r.name}{at}" for r in stage.reductions})
        body += [f"{kind} {one.name}{size};", *_over_rows(rows, [f"for (int l = 0; l < {lanes}; ++l) {one.name}{at} = {start_of(one)};"])]
        step = [f"int {last} = {last}0 + l;", accumulate(one, f"{one.name}{at}", express(one.body, held), False)]
        step = _over_rows(rows, ["#pragma omp simd", "for (int l = 0; l < count; ++l) {", *indent(step), "}"])
        body += _nest(one.axes, step)
    keep = [f"int {last} = {last}0 + l;", _store(stage, graph, inside.having(accs={r.name: f"{r.name}{at}" for r in stage.reductions}))]
    body += _over_rows(rows, ["for (int l = 0; l < count; ++l) {", *indent(keep), "}"])
    even = width % lanes == 0
    body = [f"const int count = {lanes if even else f'{width} - {last}0 < {lanes} ? {width} - {last}0 : {lanes}'};", *body]
    inner = [f"for (int {last}0 = 0; {last}0 < {width}; {last}0 += {lanes}) {{", *indent(body), "}"]
    if not before:
        return ["#pragma omp parallel for", *inner]
    return _nest(before, inner, _parallel(before, schedule.collapse))


def _over_rows(rows: int, body: list[str]) -> list[str]:
    return [f"for (int row = 0; row < {rows}; ++row) {{", *indent(body), "}"] if rows > 1 else body


def _shifted(stage: Stage, name: str, blocked: str, rows: int) -> Stage:
    """Return the stage with one axis written as block * rows + row, in its bodies and in its store."""
    by = {name: index(blocked) * rows + index("row")}
    parts = tuple(Reduction(r.name, r.axes, r.combine, substitute(r.body, by)) for r in stage.reductions)
    at = tuple(by.get(axis, index(axis)) for axis, _ in stage.axes)
    return Stage(stage.out, stage.axes, substitute(stage.body, by), parts, at, "set")


_STRATEGIES: Mapping[str, Callable[[Stage, Graph, LoopSchedule], list[str]]] = {"loops": _loops, "lanes": _lanes, "atomic": _atomic}


def entry(graph: Graph) -> str:
    """Return the name of the C function, prefixed so that it is never a library function such as `abs`."""
    return f"op_{graph.name}"

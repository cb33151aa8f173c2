"""The faster tiers of one kernel: the passes in their order, and what is written in the end; or the reason why not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.callees import Device
from warpwright.domains.transpile.analysis.lockstep import exchange, may_wait, relies_on_lockstep
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.analysis.settings import Settings
from warpwright.domains.transpile.choices import BY_RULE, Choices
from warpwright.domains.transpile.emit import entry
from warpwright.domains.transpile.emit.writer import Writer
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.parse import RESERVED
from warpwright.domains.transpile.frontend.scan import Kernel
from warpwright.domains.transpile.ir import Expr, Function, Shape, Stmt, Var
from warpwright.domains.transpile.passes import barrier_fission, block_fusion, columns, flatten_blocks, sheets, techniques, unstaged
from warpwright.domains.transpile.passes.loops import reshaped
from warpwright.domains.transpile.passes.normalise import normalise, rename, renamer
from warpwright.domains.transpile.passes.techniques import Lowered
from warpwright.domains.transpile.passes.variables import induction_variables, private_arrays, private_counts, scalar_replacement, versions


@dataclass(frozen=True)
class Written:
    """A kernel in tier loops or vectors."""

    text: str
    tier: str
    reason: str
    """Why not vectors, or empty."""


@dataclass(frozen=True)
class State:
    """A kernel on its way through the passes."""

    function: Function
    """As parsed."""
    device: Device
    settings: Settings
    body: tuple[Stmt, ...] = ()
    variables: dict[int, Var] = field(default_factory=dict)
    counts: tuple[Var, ...] = ()
    """Arrays that each CPU thread counts in apart."""
    lowered: Lowered | None = None
    """From barrier fission on."""
    row_body: tuple[str, tuple[Stmt, ...]] | None = None
    """The size of small blocks, and the body that runs many of them as one row."""
    rows: Lowered | None = None
    """That body, cut at its barriers."""
    columns: Lowered | None = None
    """The kernel for several blocks side by side, cut at its barriers (`columns.py`)."""

    unstaged: tuple[unstaged.Unstaged, Lowered] | None = None
    """The kernel without its copies in shared memory, cut (`unstaged.py`)."""

    @property
    def cut(self) -> Lowered:
        """The kernel after barrier fission."""
        assert self.lowered is not None
        return self.lowered

    @property
    def wide_blocks(self) -> tuple[Shape, ...]:
        """Shapes of known blocks of one row, of which several stand side by side."""
        shapes = tuple((together, x, 1) for x, y, z in self.settings.blocks if y * z == 1 for together in columns.TOGETHER)
        return shapes if self.columns is None else tuple(s for s in shapes if columns.fits(self.columns.plan, s[0], s[1]))

    @property
    def flattens(self) -> bool:
        """Whether blocks may run together."""
        return self.settings.vectors and self.settings.choices.coalesce != 0


@dataclass(frozen=True)
class Pass:
    """One rewriting of a kernel: where `applies` holds, `rewrite` returns the kernel with more done to it."""

    name: str
    rewrite: Callable[[State], State]
    applies: Callable[[State], bool] = lambda state: True


def _normalise(state: State) -> State:
    others: dict[str, tuple[Function, ...]] = {}
    for function in state.device.functions if state.settings.vectors else ():
        others[function.name] = (*others.get(function.name, ()), function)
    body, variables = normalise(state.function, state.device.syncing, others, state.device.known.references, state.device.known.stateful)
    body, variables = _with_own_names(state.function, body, variables)
    return replace(state, body=body, variables=variables)


_DERIVED = re.compile(r"(\w+)_(t|r|l|v|all|init|of_warp|lanes|begun|step|at|joined)")
"""What the output calls something that it makes of a variable: `sum_t` is `sum` of each thread."""


def _with_own_names(kernel: Function, body: tuple[Stmt, ...], variables: dict[int, Var]) -> tuple[tuple[Stmt, ...], dict[int, Var]]:
    """Return the kernel with another name for each variable that is called as what is made of another one.

    Raises DoesNotApply for a global that the output's own names would hide, and for a parameter or a global that is called as such."""
    free = {e.name: e.line for e in ir.expressions(body) if e.kind == "name" and (e.var is None or e.var not in variables)}
    if hidden := next((name for name in free if name in RESERVED), None):
        raise DoesNotApply(free[hidden], f"{hidden} is a name that the output has for itself")
    types = {word: v.line for v in variables.values() for word in re.findall(r"\w+", v.type)}
    if hidden := next((word for word in types if word in RESERVED), None):
        raise DoesNotApply(types[hidden], f"{hidden}, a type, is a name that the output has for itself")
    names = {v.name for v in variables.values()}
    taken = {name for name in (*names, *free) if (made := _DERIVED.fullmatch(name)) and made[1] in names}
    if fixed := next((name for name in (*free, *(p.name for p in kernel.parameters)) if name in taken), None):
        raise DoesNotApply(kernel.line, f"{fixed} is what the output calls something that it makes of another variable")
    new: dict[int, Var | Expr] = {key: replace(v, name=f"{v.name}_own") for key, v in variables.items() if v.name in taken}
    if not new:
        return body, variables
    change = renamer(new, {})
    named_apart = {key: one for key, one in new.items() if isinstance(one, Var)}
    return tuple(rename(stmt, change, new) for stmt in body), variables | named_apart


def _move_arrays(state: State) -> State:
    variables = dict(state.variables)
    return replace(state, body=private_arrays.moved(state.body, variables), variables=variables)


def _part_values(state: State) -> State:
    variables = dict(state.variables)
    return replace(state, body=versions.apart(state.body, variables, state.device.known.references), variables=variables)


def _move_alike(state: State) -> State:
    variables = dict(state.variables)
    return replace(state, body=induction_variables.apart(state.body, variables, state.device.known), variables=variables)


def _count_apart(state: State) -> State:
    body, counts = private_counts.apart(state.body, state.variables)
    return replace(state, body=body, counts=counts)


def _replace_scalars(state: State) -> State:
    variables = dict(state.variables)
    return replace(state, body=scalar_replacement.kept(state.body, variables), variables=variables)


def _cut(body: Sequence[Stmt], state: State) -> Plan:
    settings = state.settings
    return barrier_fission.plan(body, state.variables, state.device.known, stride=settings.vectors, recompute=settings.choices.recompute)


def _flatten(state: State) -> State:
    plan, impure = state.cut.plan, state.settings.impure
    if reshaped.goes_down(plan, impure, state.settings.constants):
        return replace(state, lowered=replace(state.cut, down=_in_any_order(state.body)))
    size = flatten_blocks.block_size(state.body, plan, impure)
    row_body = flatten_blocks.for_rows(state.body, plan, impure, state.settings.blocks) if size is None else None
    return replace(state, lowered=replace(state.cut, one_row=size), row_body=row_body)


def _in_any_order(body: Sequence[Stmt]) -> bool:
    """Say whether nothing shows in which order blocks run, where one CPU thread runs them all."""
    return not any(e.kind == "call" and e.name.startswith(("atomic", "printf")) for e in ir.expressions(tuple(body)))


def _cut_rows(state: State) -> State:
    assert state.row_body is not None
    size, body = state.row_body
    plan = _cut(body, state)
    return replace(state, rows=Lowered(plan, size)) if flatten_blocks.is_apart(plan) else state


def _join_columns(state: State) -> State:
    made = columns.columns(state.body, state.variables) if columns.cost(state.cut.plan) >= columns.LEAST else None
    if made is None:
        return state
    body, variables = made
    settings = state.settings
    try:
        plan = barrier_fission.plan(body, variables, state.device.known, stride=True, recompute=settings.choices.recompute)
    except DoesNotApply:
        return state
    joined = replace(state, columns=Lowered(plan))
    return joined if joined.wide_blocks and columns.pays(state.cut.plan, plan) else state


def _unstage(state: State) -> State:
    for shape in state.settings.blocks:
        made = unstaged.unstaged(state.body, state.variables, shape) or sheets.unstaged(state.body, state.variables, shape)
        if made is None:
            continue
        try:
            plan = _cut(made.body, state)
        except DoesNotApply:
            continue
        size = flatten_blocks.block_size(unstaged.without_loops(made.body), plan, state.settings.impure)
        if size == str(shape[0]):
            return replace(state, unstaged=(made, Lowered(plan, size)))
    return state


def _fuse_blocks(state: State) -> State:
    return replace(state, lowered=replace(state.cut, prologue=block_fusion.fused_prologue(state.cut.plan, state.settings.impure)))


def _choose(state: State) -> State:
    rows = state.rows and techniques.choose(state.rows, replace(state.settings, blocks=()))
    wide = state.columns and techniques.choose(state.columns, replace(state.settings, blocks=state.wide_blocks))
    plain = state.unstaged and (state.unstaged[0], techniques.choose(state.unstaged[1], replace(state.settings, blocks=())))
    return replace(state, lowered=techniques.choose(state.cut, state.settings), rows=rows, columns=wide, unstaged=plain)


PASSES: tuple[Pass, ...] = (
    Pass("normalise", _normalise),
    Pass("private arrays", _move_arrays, lambda state: state.settings.vectors),
    Pass("values apart", _part_values, lambda state: state.settings.vectors),
    Pass("induction variables", _move_alike, lambda state: state.settings.vectors),
    Pass("private counts", _count_apart, lambda state: state.settings.vectors),
    Pass("scalar replacement", _replace_scalars, lambda state: state.settings.vectors),
    Pass("barrier fission", lambda state: replace(state, lowered=Lowered(_cut(state.body, state)))),
    Pass("flatten blocks", _flatten, lambda state: state.flattens),
    Pass("barrier fission of rows", _cut_rows, lambda state: state.row_body is not None),
    Pass("columns", _join_columns, lambda state: state.flattens and bool(state.wide_blocks) and not state.counts),
    Pass("unstaged", _unstage, lambda state: state.flattens and bool(state.settings.blocks) and not state.counts),
    Pass("block fusion", _fuse_blocks, lambda state: state.flattens and state.cut.one_row is None and state.row_body is None),
    Pass("choose techniques", _choose),
)
"""In the order in which they run (docs/transpile.md says what each does)."""


def write(
    kernel: Kernel, parsed: Function, program: Device, line: int, blocks: Sequence[Shape], vectors: bool, choices: Choices = BY_RULE
) -> Written:
    """Return the kernel in the fastest of the two tiers that takes it, as chosen. Raises DoesNotApply with the reason."""
    if choices.tier == 0:
        raise DoesNotApply(line, "chosen")
    vectors = vectors and choices.tier > 1
    if parsed.problem:
        raise DoesNotApply(line, f"not understood: {parsed.problem}")
    if parsed.fibers:
        raise DoesNotApply(line, parsed.fibers)
    _check(parsed, program)
    calls = program.calls if vectors else {}
    known = program.known
    settings = Settings(tuple(blocks), vectors, known.impure, program.simple, program.own, choices, calls, frozenset(parsed.template))
    state = State(parsed, program, settings)
    for step in PASSES:
        if step.applies(state):
            state = step.rewrite(state)
    return _written(named(kernel, parsed), state, line)


def _written(kernel: Kernel, state: State, line: int) -> Written:
    """Return the text of a kernel that went through all passes, and the tier that it came to."""
    writer = Writer(state.cut, state.settings)
    row_writer = Writer(state.rows, replace(state.settings, blocks=())) if state.rows is not None else None
    column_writer = Writer(state.columns, replace(state.settings, blocks=state.wide_blocks)) if state.columns is not None else None
    plain = None
    if state.unstaged is not None:
        plain = (state.unstaged[0], Writer(state.unstaged[1], replace(state.settings, blocks=())))
    text = entry.functions(kernel, writer, line, row_writer, state.counts, column_writer, plain)
    if not state.settings.vectors or not writer.vectorised:
        return Written(text, "loops", writer.scalar[0] if writer.scalar else "warps in lockstep" if state.settings.vectors else "asked for")
    return Written(text, "vectors", f"in part: {writer.scalar[0]}" if writer.scalar else "")


def named(kernel: Kernel, parsed: Function) -> Kernel:
    """Return the kernel with the names that the parser gave its parameters: one that is called `index`, as the output's own, has another."""
    pairs = zip(kernel.parameters, parsed.parameters, strict=False)
    renamed = [scan.renamed(parameter, var.name) if parameter.name != var.name else parameter for parameter, var in pairs]
    return replace(kernel, parameters=tuple(renamed) + tuple(kernel.parameters[len(renamed) :]))


def _check(parsed: Function, program: Device) -> None:
    """Refuse what the loops would get wrong: unread functions that may synchronise, and code that relies on warps in lockstep."""
    syncing = program.syncing
    for expr in ir.expressions(parsed.body):
        if expr.kind == "call" and (problem := next((f.problem for f in syncing.get(expr.name, ()) if f.problem), "")):
            raise DoesNotApply(expr.line, f"{expr.name} synchronises and was not understood: {problem}")
        if expr.kind == "call" and expr.name in parsed.template and (syncing or program.known.impure):
            raise DoesNotApply(expr.line, f"{expr.name}, a function that the template takes, may ask for the thread or synchronise")
    if line := exchange(parsed):
        raise DoesNotApply(line, "threads exchange values without a barrier: the kernel relies on warps that run in lockstep")
    for stmt in ir.walk(parsed.body):
        if isinstance(stmt, ir.Declare) and "volatile" in stmt.var.type and (stmt.var.space in ("shared", "dynamic") or "*" in stmt.var.type):
            raise DoesNotApply(stmt.line, f"{stmt.var.name} is volatile: the kernel may rely on warps that run in lockstep")
        if isinstance(stmt, ir.DoWhile) and may_wait(stmt, parsed.variables or {}):
            raise DoesNotApply(stmt.line, "a loop that reads volatile memory may wait for another thread")
    by_name: dict[str, list[Function]] = {}
    for function in program.functions:
        by_name.setdefault(function.name, []).append(function)
    seen: set[str] = set()
    todo = [parsed]
    while todo:  # what the kernel calls, and what that calls
        for expr in ir.expressions(todo.pop().body):
            if expr.kind != "call" or expr.name not in by_name or expr.name in seen:
                continue
            seen.add(expr.name)
            for function in by_name[expr.name]:
                if function.fibers:
                    raise DoesNotApply(expr.line, function.fibers)
                if relies_on_lockstep(function):
                    what = f"exchanges values at line {line} without a barrier" if (line := exchange(function)) else "uses volatile memory"
                    what = "writes what may overlap through two pointers, without a barrier" if function.stepped else what
                    raise DoesNotApply(expr.line, f"{expr.name} {what}: it may rely on warps that run in lockstep")
            todo += by_name[expr.name]

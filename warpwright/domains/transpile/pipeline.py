"""Tiers L and V for one kernel: parsed, normalised, cut, written; or the reason why not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from warpwright.domains.transpile import ir, vmath
from warpwright.domains.transpile.analysis import vectorise
from warpwright.domains.transpile.analysis.settings import Settings
from warpwright.domains.transpile.choices import BY_RULE, Choices
from warpwright.domains.transpile.emit import entry
from warpwright.domains.transpile.emit.writer import Writer
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.fibers.lockstep import may_wait, relies_on_lockstep
from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.scan import Kernel
from warpwright.domains.transpile.integers import LAUNCH
from warpwright.domains.transpile.ir import Function, Shape
from warpwright.domains.transpile.passes import barrier_fission, block_fusion, flatten_blocks, scalar_replacement, techniques
from warpwright.domains.transpile.passes.normalise import SYNC_CALLS, normalise, synchronising
from warpwright.domains.transpile.passes.strides import Callees
from warpwright.domains.transpile.passes.techniques import Lowered

LOOKS_AT_THREAD = frozenset({*LAUNCH, "this_thread_block", "this_thread", "this_grid", "tiled_partition", "coalesced_threads", "__activemask"})
"""Names by which a function learns which thread runs it."""


@dataclass(frozen=True)
class Written:
    """A kernel in tier loops or vectors."""

    text: str
    tier: str
    reason: str
    """Why not vectors, or empty."""


def callees(functions: Sequence[Function]) -> Callees:
    """Return what the kernels have to know of the device functions."""
    impure: set[str] = set()
    words = {f.name: _words(f) for f in functions}
    grew = True
    while grew:
        grew = False
        for function in functions:
            if function.name not in impure and (function.problem or words[function.name] & (LOOKS_AT_THREAD | impure)):
                impure.add(function.name)
                grew = True
    references = {f.name: tuple(i for i, p in enumerate(f.parameters) if p.reference and not p.type.startswith("const")) for f in functions}
    return Callees(frozenset(impure), references)


def _words(function: Function) -> set[str]:
    """Return the words of a function's expressions; no word is part of two pieces, so that they need not be put together."""
    pieces = (part for expr in ir.expressions(function.body) for part in expr.parts if isinstance(part, str))
    return set(re.findall(r"\w+", " ".join([ir.plain(piece) if "/" in piece else piece for piece in pieces])))


def simple_functions(functions: Sequence[Function], known: Callees) -> frozenset[str]:
    """Return the device functions that a loop over threads may call and still be vectorised."""
    simple: frozenset[str] = frozenset()
    own = frozenset(f.name for f in functions)
    for _ in range(4):  # functions that call simple functions, a few levels deep
        simple = frozenset(f.name for f in functions if f.name not in known.impure and vectorise.is_simple(f, simple, own))
    return simple


@dataclass(frozen=True)
class Device:
    """What the kernels of a program have to know of its device functions: it is the same for all of them, and found once."""

    functions: Sequence[Function]
    known: Callees
    syncing: Mapping[str, Function]
    """Those that synchronise."""
    simple: frozenset[str]
    """Those that a loop over threads may call and still be vectorised."""
    calls: Mapping[str, str]
    """Library function -> what tier vectors calls instead."""
    own: frozenset[str]


def device(functions: Sequence[Function]) -> Device:
    """Return what there is to know of a program's device functions."""
    known = callees(functions)
    own = frozenset(f.name for f in functions)
    return Device(functions, known, synchronising(functions), simple_functions(functions, known), vmath.calls(functions), own)


def named(kernel: Kernel, parsed: Function) -> Kernel:
    """Return the kernel with the names that the parser gave its parameters: one that is called `index`, as the output's own, has another."""
    pairs = zip(kernel.parameters, parsed.parameters, strict=False)
    made = [scan.renamed(given, var.name) if given.name != var.name else given for given, var in pairs]
    return replace(kernel, parameters=tuple(made) + tuple(kernel.parameters[len(made) :]))


def write(
    kernel: Kernel, parsed: Function, program: Device, line: int, blocks: Sequence[Shape], vectors: bool,
    choices: Choices = BY_RULE,
) -> Written:  # fmt: skip
    """Return the kernel in the fastest of the two tiers that takes it, as chosen. Raises DoesNotApply with the reason."""
    if choices.tier == 0:
        raise DoesNotApply(line, "chosen")
    vectors = vectors and choices.tier > 1
    if parsed.problem:
        raise DoesNotApply(line, f"not understood: {parsed.problem}")
    known = program.known
    _check(parsed, program)
    body, variables = normalise(parsed, program.syncing)
    body = scalar_replacement.kept(body, variables) if vectors else body
    plan = barrier_fission.plan(body, variables, known, stride=vectors, recompute=choices.recompute)
    wide = vectors and choices.coalesce != 0
    one_row = flatten_blocks.block_size(body, plan, known.impure) if wide else None
    rows = flatten_blocks.for_rows(body, plan, known.impure, blocks) if wide and one_row is None else None
    prologue = block_fusion.fused_prologue(plan, known.impure) if wide and one_row is None and rows is None else None
    settings = Settings(tuple(blocks), vectors, known.impure, program.simple, program.own, choices, program.calls if vectors else {})
    writer = Writer(techniques.choose(Lowered(plan, one_row, prologue), settings), settings)
    row_writer = None
    if rows is not None:
        planned = barrier_fission.plan(rows[1], variables, known, stride=True, recompute=choices.recompute)
        for_rows = replace(settings, blocks=())
        row_writer = Writer(techniques.choose(Lowered(planned, rows[0]), for_rows), for_rows) if flatten_blocks.is_apart(planned) else None
    text = entry.functions(named(kernel, parsed), writer, line, row_writer)
    if vectors and writer.vectorised and not writer.scalar:
        return Written(text, "vectors", "")
    reason = writer.scalar[0] if writer.scalar else ("asked for" if not vectors else "warps in lockstep")
    return Written(
        text, "vectors" if vectors and writer.vectorised else "loops", reason if not (vectors and writer.vectorised) else f"in part: {reason}"
    )


def _check(parsed: Function, program: Device) -> None:
    """Refuse what the loops would get wrong: unread functions that may synchronise, and code that relies on warps in lockstep."""
    syncing = program.syncing
    for expr in ir.expressions(parsed.body):
        if expr.kind == "call" and expr.name in syncing and syncing[expr.name].problem:
            raise DoesNotApply(expr.line, f"{expr.name} synchronises and was not understood: {syncing[expr.name].problem}")
    for stmt in ir.walk(parsed.body):
        if isinstance(stmt, ir.Declare) and "volatile" in stmt.var.type and (stmt.var.space in ("shared", "dynamic") or "*" in stmt.var.type):
            raise DoesNotApply(stmt.line, f"{stmt.var.name} is volatile: the kernel may rely on warps that run in lockstep")
        if isinstance(stmt, ir.DoWhile) and may_wait(stmt, parsed.variables or {}):
            raise DoesNotApply(stmt.line, "a loop that reads volatile memory may wait for another thread")
    by_name = {f.name: f for f in program.functions}
    seen: set[str] = set()
    todo = [parsed]
    while todo:  # what the kernel calls, and what that calls
        for expr in ir.expressions(todo.pop().body):
            if expr.kind != "call" or expr.name not in by_name or expr.name in seen:
                continue
            seen.add(expr.name)
            if relies_on_lockstep(by_name[expr.name]):
                raise DoesNotApply(expr.line, f"{expr.name} uses volatile memory: it may rely on warps that run in lockstep")
            todo.append(by_name[expr.name])


def is_needed_by_fibers(function: Function) -> bool:
    """Say whether a device function can only run on fibers."""
    return any(e.kind == "call" and e.name in SYNC_CALLS for e in ir.expressions(function.body))

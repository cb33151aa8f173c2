"""Strided loops: their steps outside of the loop over threads, which then touches neighbouring memory.

`for (i = base + thread; i < n; i += s) body` becomes up to three loops over steps: four steps at once and one step, which all threads of the block
take without a guard, and the last steps, which some take. A thread goes through its own steps in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import bounds
from warpwright.domains.transpile.analysis.callees import Callees
from warpwright.domains.transpile.analysis.counters import counted_loop
from warpwright.domains.transpile.analysis.regions import Loop, Node, Plan, Region, Single
from warpwright.domains.transpile.analysis.uniform import Facts, varies
from warpwright.domains.transpile.ir import Declare, Expr, For, If, Stmt, Var
from warpwright.domains.transpile.passes.normalise import rename, renamer
from warpwright.domains.transpile.printing import Printer

AT_ONCE, LARGEST_BODY = 4, 24
"""Steps at once, and the operations of a body up to which they pay: what a thread adds up in is loaded and stored once for all. (A sum of 4 Mi
floats in groups of 16 blocks of 256 threads: 0.98 ms by one step, 0.52 by four, 1.15 by eight, which share 8 places of a cache.)"""

_CHEAP = frozenset(["fmaxf", "fminf", "fmax", "fmin", "max", "min", "fabsf", "fabs", "abs", "fmaf", "__ldg", "float", "double", "int", "static_cast"])
"""Functions that a body for several steps may call. Rows that a block goes through alone stay with one step: they are read in order. (Softmax of rows
of 4 KiB that are in no cache: 0.57 ms by one step, 0.65 with four for its maximum, 0.77 with four for its exponentials too.)"""


class Strides:
    """What is known of a kernel while it is cut, and the cutting of its strided loops."""

    def __init__(self, facts: Facts, variables: dict[int, Var], scalars: set[int], callees: Callees, stride: bool, recompute: int) -> None:
        self.facts = facts
        self.variables = variables
        self.scalars = scalars
        self.callees = callees
        self.stride = stride
        self.recompute = recompute
        self.hoisted: list[Stmt] = []
        self.numbers = iter(range(1, 1_000_000))
        self.fresh_key = min([0, *variables]) - 1
        self.steps: set[int] = set()
        """Counters of strided loops' steps, from zero on."""

    # --- questions ----------------------------------------------------------------------------------------------------------------

    def varies(self, expr: Expr) -> bool:
        return varies(expr, self.facts.varying, self.variables, self.callees.impure)

    def loads(self, expr: Expr) -> bool:
        return any(n.kind == "index" or (n.kind == "unary" and n.name == "*") or n.kind == "call" for n in expr.walk())

    def is_stable(self, expr: Expr) -> bool:
        """Say whether an expression keeps its value wherever it is computed: it reads no memory and nothing that changes."""
        if self.loads(expr) or any(n.kind in ("lane", "assign", "lambda", "other") for n in expr.walk()):
            return False
        return all(n.kind != "name" or n.var is None or self.is_fixed(n.var) for n in expr.walk())

    def is_fixed(self, key: int) -> bool:
        var = self.variables.get(key)
        return var is not None and not self.facts.assigned.get(key) and key not in self.facts.addressed and not var.dims

    # --- strided loops ------------------------------------------------------------------------------------------------------------

    def strided(self, stmt: For) -> list[Node] | None:
        """`for (i = base + thread; i < n; i += s) body`: the steps outside, the threads inside, where neighbours touch neighbouring memory."""
        counted = counted_loop(stmt, self.facts)
        if counted is None:
            return None
        declaration, ends, by = counted
        assert declaration.init is not None
        if self.varies(ends) or self.varies(by) or not self.varies(declaration.init) or not (self.is_stable(ends) and self.is_stable(by)):
            return None
        shown = Plan([], self.facts, self.variables, self.hoisted, self.scalars, set(), set(), set())
        start = bounds.expand(declaration.init, shown)
        if start is None or not bounds.grows(start) or not bounds.mentions_x(start):
            return None
        return self.steps_outside(stmt, declaration, bounds.at_thread(start, False), bounds.at_thread(start, True))

    def steps_outside(self, stmt: For, declaration: Declare, first: Expr, last: Expr) -> list[Node]:
        """Return the steps that all threads take, without a guard, and then those that some take."""
        var = declaration.var
        assert stmt.cond is not None and stmt.step is not None and declaration.init is not None
        kind = "int" if var.type == "int" else "long"
        names = {v.name for v in self.variables.values()}
        name = next(n for i in range(1, 10_000) if (n := f"{var.name}_step{i if i > 1 else ''}") not in names)
        steps = Var(_derived(var.key, 1), name, kind, (), "local", stmt.line)
        self.variables[steps.key] = steps
        self.steps.add(steps.key)
        own = replace(var, type=kind)
        self.variables[var.key] = own
        steps_name = ir.name_of(steps, stmt.line)
        init = Expr("binary", (Expr("paren", ("(", declaration.init, ")"), stmt.line), " + ", steps_name), stmt.line, "+", None, kind)
        inner = Declare(own, init, False, stmt.line)
        self.facts.declared[var.key] = inner
        self.facts.assigned[var.key] = []
        step = replace(stmt.step, parts=(steps_name, " += ", stmt.step.children[1]))
        zero = Declare(steps, ir.number(0, stmt.line), False, stmt.line)
        guarded: list[Node] = [Region([inner, If(stmt.cond, stmt.body, line=stmt.line)])]
        loops: list[Node] = [Single(zero), Loop([], _reaches(stmt.cond, first, steps_name, kind), step, guarded, stmt.line, "first")]
        if not any(e.name in self.callees.references and self.callees.references[e.name] for e in ir.expressions(stmt.body)):
            whole: list[Node] = [Region(self.copied([inner, *stmt.body], 2))]
            loops.insert(1, Loop([], _reaches(stmt.cond, last, steps_name, kind), step, whole, stmt.line, "last"))
            jumps_over_blocks = any(e.kind == "name" and e.name == "blockIdx" for e in last.walk())
            if jumps_over_blocks and _is_small(stmt.body, self.variables):
                loops.insert(1, self.several(stmt, inner, steps_name, last))
        return loops

    def several(self, stmt: For, inner: Declare, steps: Expr, last: Expr) -> Loop:
        """Return the loop that takes several steps at once."""
        assert stmt.cond is not None and stmt.step is not None and inner.init is not None
        by, line = ir.paren(stmt.step.children[1]), stmt.line
        copies: list[Stmt] = []
        for count in range(AT_ONCE):
            further = Expr("binary", (f"{count} * ", by), line, "*", None, by.type)
            init = inner.init if count == 0 else replace(inner.init, parts=(inner.init, " + ", further))
            copies.append(ir.Block(tuple(self.copied([replace(inner, init=init), *stmt.body], 3 + count)), line))
        start = Expr("cast", ("(long)", ir.paren(last)), line, "", None, "long")
        reach = Expr("binary", (start, " + ", steps), line, "+", None, "long")
        reach = Expr("binary", (reach, " + ", Expr("binary", (f"{AT_ONCE - 1}l * ", by), line, "*", None, "long")), line, "+", None, "long")
        cond = replace(stmt.cond, parts=(reach, f" {stmt.cond.name} ", stmt.cond.children[1]))
        step = replace(stmt.step, parts=(steps, " += ", Expr("binary", (f"{AT_ONCE} * ", by), line, "*", None, by.type)))
        return Loop([], cond, step, [Region(copies)], line, "last")

    def copied(self, stmts: Sequence[Stmt], use: int) -> list[Stmt]:
        """Return the statements with variables of their own; `use` tells the copies apart."""
        names: dict[int, Var | Expr] = {}
        for stmt in ir.walk(tuple(stmts)):
            if isinstance(stmt, Declare):
                old = stmt.var
                var = replace(self.variables.get(old.key, old), key=_derived(old.key, use))
                names[old.key] = var
                self.variables[var.key] = var
                self.facts.assigned[var.key] = list(self.facts.assigned.get(old.key, []))
                for group in (self.facts.varying, self.facts.addressed):
                    if old.key in group:
                        group.add(var.key)
        change = renamer(names, {})
        copies = [rename(s, change, names) for s in stmts]
        for stmt in ir.walk(tuple(copies)):
            if isinstance(stmt, Declare):
                self.facts.declared[stmt.var.key] = stmt
        return copies


def _derived(key: int, use: int) -> int:
    """Return the key of a variable that is made from another one: the same at each attempt."""
    return -use * 1_000_000_000_000 - 2 * abs(key) - (key < 0)


def _reaches(cond: Expr, start: Expr, steps: Expr, kind: str) -> Expr:
    """Return the loop's condition for the thread that begins at `start`."""
    value = Expr("binary", (Expr("paren", ("(", start, ")"), cond.line), " + ", steps), cond.line, "+", None, kind)
    return replace(cond, parts=(value, f" {cond.name} ", cond.children[1]))


def _is_small(body: Sequence[Stmt], variables: Mapping[int, Var]) -> bool:
    """Is the body straight, small, and changes nothing but values of its thread and counts in shared memory, so that several copies pay?"""
    exprs = list(ir.expressions(tuple(body)))
    if len(exprs) > LARGEST_BODY or not all(isinstance(s, Declare | ir.Evaluate | ir.Block) for s in ir.walk(tuple(body))):
        return False
    counts = {id(e) for e in exprs if e.kind == "call" and e.name.startswith("atomic") and Printer(variables).is_shared(e.children[1])}
    if any(e.kind == "lambda" or (e.kind == "call" and e.name not in _CHEAP and id(e) not in counts) for e in exprs):
        return False
    changed = [target for e in exprs if (target := ir.assigned(e)) is not None]
    return all(e.kind == "name" and e.var is not None and e.var in variables and variables[e.var].space == "local" for e in changed)

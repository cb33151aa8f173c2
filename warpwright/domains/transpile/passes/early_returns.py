"""Early returns as branches: fission makes of a kernel several loops over its threads, and a thread that has left takes part in none that follows.

| before | after |
|---|---|
| `if (c) { A; return; } rest` | `if (c) A; else rest`, the latter marked as one that the other threads left |
| `if (c) { if (d) { A; return; } B; } rest` | `left = false; if (c) { if (d) { A; left = true; } if (!left) B; } if (!left) rest` |
| `for (...) { A; if (d) return; B; } rest` | `left = false; for (...) { A; if (d) { left = true; break; } B; } if (!left) rest` |

The first form needs no flag. The others are for kernels whose threads meet: in one loop over threads a `return` is a jump to its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.ir import Barrier, Collective, Declare, DoWhile, Evaluate, Expr, For, If, Jump, Raw, Return, Stmt, Var

_RETURNS = re.compile(r"\breturn\b")
_JUMPS = re.compile(r"\b(return|continue|goto)\b")


def without(stmts: Sequence[Stmt], fresh: Callable[[str, str, int], Var], negated: Callable[[Expr], Expr]) -> tuple[Stmt, ...]:
    """Return a kernel's statements with its returns as branches.

    fresh: makes a variable of a name, a type and a line; negated: makes a condition's opposite.
    Raises DoesNotApply where a thread leaves from inside a statement that is kept as text and threads meet.
    """
    worker = _Leaving(fresh, negated, None)
    done = worker.branches(stmts)
    if not any(isinstance(s, Barrier | Collective) for s in ir.walk(done)):
        return done
    check_kept(done)
    return worker.flagged(done) if any(isinstance(s, Return) for s in ir.walk(done)) else done


def of_function(
    stmts: Sequence[Stmt], fresh: Callable[[str, str, int], Var], negated: Callable[[Expr], Expr], result: Var | None
) -> tuple[Stmt, ...]:
    """Return the statements of a device function that is put in place of its call: what it returns is in `result`, its threads come back."""
    check_kept(tuple(stmts))
    worker = _Leaving(fresh, negated, result, exits=False)
    done = worker.branches(stmts)
    return worker.flagged(done) if any(isinstance(s, Return) for s in ir.walk(done)) else done


def check_kept(stmts: tuple[Stmt, ...]) -> None:
    """Raise DoesNotApply where a statement that is kept as text may leave more than itself: pieces of the kernel are not what it left."""
    for stmt in ir.walk(stmts):
        if isinstance(stmt, Raw) and stmt.expr.kind != "type" and (jump := _JUMPS.search(ir.text_of(stmt.expr))):
            raise DoesNotApply(stmt.line, f"a {jump[0]} in a switch or another statement that is kept as text, in a kernel with barriers")


def returns(stmt: Stmt) -> bool:
    """Say whether a thread may leave the kernel in a statement."""
    return any(isinstance(s, Return) or (isinstance(s, Raw) and _RETURNS.search(ir.text_of(s.expr)) is not None) for s in ir.walk((stmt,)))


def _has_return(stmts: Sequence[Stmt]) -> bool:
    return any(isinstance(s, Return) for s in ir.walk(tuple(stmts)))


def _ends(stmts: Sequence[Stmt]) -> bool:
    """Say whether every thread that runs these statements to their end leaves."""
    last = stmts[-1] if stmts else None
    if isinstance(last, ir.Block):
        return _ends(last.body)
    return isinstance(last, Return) or (isinstance(last, If) and _ends(last.then) and _ends(last.other))


@dataclass
class _Leaving:
    fresh: Callable[[str, str, int], Var]
    negated: Callable[[Expr], Expr]
    result: Var | None
    """What a device function returns; None for a kernel."""
    exits: bool = True
    """Whether threads that leave do not come back."""

    def left(self, stmt: Return) -> tuple[Stmt, ...]:
        """Return what a thread does in place of the return."""
        if self.result is None or stmt.value is None:
            return ()
        return (_assign(self.result, stmt.value, stmt.line),)

    # --- without flags --------------------------------------------------------------------------------------------------------------

    def branches(self, stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Turn `if (c) { a; return; } rest` into branches; other returns stay."""
        out: list[Stmt] = []
        for index, stmt in enumerate(stmts):
            if isinstance(stmt, Return):
                return (*out, *self.left(stmt))
            if not isinstance(stmt, ir.Block | If) or not _has_return((stmt,)):
                out.append(stmt)
                continue
            rest = stmts[index + 1 :]
            if isinstance(stmt, ir.Block):
                return (*out, *self.branches([*stmt.body, *rest]))
            if isinstance(stmt, If):
                if _ends(stmt.then) and _ends(stmt.other):
                    return (*out, replace(stmt, then=self.branches(stmt.then), other=self.branches(stmt.other)))
                if _ends(stmt.then):
                    return (*out, *self.leaving(stmt, self.branches(stmt.then), (*stmt.other, *rest), True))
                if _ends(stmt.other):
                    return (*out, *self.leaving(stmt, self.branches(stmt.other), (*stmt.then, *rest), False))
            out.append(stmt)
        return tuple(out)

    def leaving(self, stmt: If, gone: tuple[Stmt, ...], stay: tuple[Stmt, ...], when: bool) -> list[Stmt]:
        """`gone` runs where the condition is `when`, and these threads leave; `stay` is what the others do."""
        stay = self.branches(stay)
        if stmt.constexpr:
            return [replace(stmt, then=gone if when else stay, other=stay if when else gone)]
        if not gone:
            return [replace(stmt, cond=self.negated(stmt.cond) if when else stmt.cond, then=stay, other=(), exits=self.exits)] if stay else []
        if not stay:
            return [replace(stmt, cond=stmt.cond if when else self.negated(stmt.cond), then=gone, other=())]
        flag = self.fresh("leaves", "bool", stmt.line)
        leaves = ir.name_of(flag, stmt.line)
        return [
            Declare(flag, stmt.cond if when else self.negated(stmt.cond), False, stmt.line),
            replace(stmt, cond=leaves, then=gone, other=()),
            If(self.negated(leaves), stay, (), exits=self.exits, line=stmt.line),
        ]

    # --- with a flag ----------------------------------------------------------------------------------------------------------------

    def flagged(self, stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Return the statements with a flag that says whether the thread has left, and all that follows a return under it."""
        line = next(s.line for s in ir.walk(tuple(stmts)) if isinstance(s, Return))
        flag = self.fresh("left", "bool", line)
        return (Declare(flag, Expr("literal", ("false",), line, "", None, "bool"), False, line), *self.under(stmts, flag, False))

    def under(self, stmts: Sequence[Stmt], flag: Var, in_loop: bool) -> tuple[Stmt, ...]:
        """Return the statements with the flag set in place of each return; in a loop, which is left too."""
        out: list[Stmt] = []
        for index, stmt in enumerate(stmts):
            if isinstance(stmt, Return):
                gone = (*self.left(stmt), _assign(flag, Expr("literal", ("true",), stmt.line, "", None, "bool"), stmt.line))
                return (*out, *gone, *((Jump("break", stmt.line),) if in_loop else ()))
            if not _has_return((stmt,)):
                out.append(stmt)
                continue
            out.append(self.inside(stmt, flag, in_loop))
            name = ir.name_of(flag, stmt.line)
            if in_loop:
                out += [If(name, (Jump("break", stmt.line),), line=stmt.line)] if isinstance(stmt, For | DoWhile) else []
            elif rest := self.under(stmts[index + 1 :], flag, False):
                return (*out, If(self.negated(name), rest, (), exits=self.exits, line=stmt.line))
            else:
                return tuple(out)
        return tuple(out)

    def inside(self, stmt: Stmt, flag: Var, in_loop: bool) -> Stmt:
        if isinstance(stmt, If):
            return replace(stmt, then=self.under(stmt.then, flag, in_loop), other=self.under(stmt.other, flag, in_loop))
        if isinstance(stmt, For | DoWhile):
            return replace(stmt, body=self.under(stmt.body, flag, True))
        assert isinstance(stmt, ir.Block)
        return replace(stmt, body=self.under(stmt.body, flag, in_loop))


def _assign(var: Var, value: Expr, line: int) -> Stmt:
    return Evaluate(Expr("assign", (ir.name_of(var, line), " = ", value), line, "=", None, var.type), line)

"""A switch whose cases do not run into one another, as branches: its threads may leave it, or meet inside it, where text can only be run through."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.cursors import Cursors, kind
from warpwright.domains.transpile.ir import Block, DoWhile, Expr, For, If, Jump, Return, Stmt

LEAVES_OR_MEETS = re.compile(r"\breturn\s*;|\bcontinue\b|\b__(sync|shfl|ballot|any|all|reduce|activemask)|\bsync\s*\(")
"""What the text of a switch has that pieces of a kernel cannot run through; any other switch stays as it is written."""


@dataclass
class _Case:
    values: list[Any]
    """Cursors of its labels' values."""
    default: bool
    stmts: list[Stmt]


def branches(
    cursor: Any, cursors: Cursors, statement: Callable[[Any], Sequence[Stmt]], expression: Callable[[Any], Expr], line: int
) -> list[Stmt] | None:
    """Return a switch as a chain of branches; None for one that a chain does not say."""
    parts = cursors.children(cursor)
    if len(parts) != 2 or kind(parts[1]) != "COMPOUND_STMT":
        return None
    value = expression(parts[0])
    if not ir.is_quiet(value):
        return None
    cases = _cases(cursors.children(parts[1]), cursors, statement)
    if cases is None:
        return None
    chain: tuple[Stmt, ...] = next((tuple(case.stmts) for case in cases if case.default), ())
    for case in reversed([case for case in cases if not case.default]):
        equal = [_equal(value, expression(one), line) for one in case.values]
        cond = equal[0]
        for one in equal[1:]:
            cond = Expr("binary", (cond, " || ", one), line, "||", None, "bool")
        chain = (If(cond, tuple(case.stmts), chain, line=case.stmts[0].line if case.stmts else line),)
    return list(chain)


def _equal(value: Expr, label: Expr, line: int) -> Expr:
    plain = ("name", "literal", "paren", "member")
    left, right = (one if one.kind in plain else ir.paren(one) for one in (value, label))
    return Expr("binary", (left, " == ", right), line, "==", None, "bool")


def _cases(children: Sequence[Any], cursors: Cursors, statement: Callable[[Any], Sequence[Stmt]]) -> list[_Case] | None:
    cases: list[_Case] = []
    for index, child in enumerate(children):
        values, default, inner = _labels(child, cursors)
        if values is None:
            return None
        if not values and not default:
            if not cases:
                return None
            cases[-1].stmts += statement(child)
        elif cases and not _closed(cases[-1]):
            return None
        else:
            cases.append(_Case(values, default, list(statement(inner))))
        last = index + 1 == len(children)
        if last and cases:
            _closed(cases[-1])
    return None if any(_breaks(stmt) for case in cases for stmt in case.stmts) else cases


def _labels(child: Any, cursors: Cursors) -> tuple[list[Any] | None, bool, Any]:
    """Return the values of a statement's labels, whether one is `default`, and the statement under them; None for a range of values."""
    values: list[Any] = []
    default = False
    while (word := kind(child)) in ("CASE_STMT", "DEFAULT_STMT"):
        parts = cursors.children(child)
        if word == "CASE_STMT":
            if len(parts) != 2:
                return None, False, child
            values.append(parts[0])
        else:
            default = True
        child = parts[-1]
    return values, default, child


def _closed(case: _Case) -> bool:
    """Say whether a case ends before the next one, and take its last `break` away."""
    if case.stmts and isinstance(block := case.stmts[-1], Block) and block.body:
        case.stmts[-1:] = block.body
    last = case.stmts[-1] if case.stmts else None
    if isinstance(last, Jump) and last.word == "break":
        case.stmts.pop()
        return True
    return isinstance(last, Jump | Return)


def _breaks(stmt: Stmt) -> bool:
    """Say whether a statement has a `break` of the switch around it."""
    if isinstance(stmt, Jump):
        return stmt.word == "break"
    return not isinstance(stmt, For | DoWhile) and any(_breaks(s) for body in ir.bodies(stmt) for s in body)

"""The compiler's form of a kernel: statements and typed expressions as frozen values.

An expression keeps the source's own words: `parts` are pieces of text and sub-expressions, in order. What the compiler has to understand
(names, calls, subscripts, assignments) has a kind; whatever else C++ has is kind "other" and is printed as it was written.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

Answer = TypeVar("Answer")

Shape = tuple[int, int, int]
"""Threads of a block along x, y and z."""

KINDS = ("name", "member", "call", "index", "binary", "assign", "unary", "conditional", "literal", "cast", "paren", "type", "lambda", "lane", "other")


class _kept(Generic[Answer]):
    """A property that is computed once for each value: functools' own takes a lock in Python 3.11, longer than most of these answers."""

    def __init__(self, answer: Callable[[Any], Answer]) -> None:
        self.answer, self.name, self.__doc__ = answer, answer.__name__, answer.__doc__

    def __get__(self, value: Any, owner: type) -> Answer:
        known = vars(value)[self.name] = self.answer(value)  # from here on it is found there
        return known


@dataclass(frozen=True)
class Var:
    """A variable. Two are the same when their keys are."""

    key: int
    name: str
    """Unique in the kernel."""
    type: str
    """Element type as written, without dimensions and without const at the top."""
    dims: tuple[str, ...] = ()
    """Text of each array dimension."""
    space: str = "local"
    """local, parameter, shared, dynamic (shared), warp (one value for each warp)."""
    line: int = 0
    reference: bool = False
    const: bool = False


@dataclass(frozen=True)
class Expr:
    """An expression."""

    kind: str
    parts: tuple[str | Expr, ...]
    line: int = 0
    name: str = ""
    """Of a name; callee; operator of binary, assign (`+=`) and unary (`++`); member."""
    var: int | None = None
    """Key of the variable, of a name that is one."""
    type: str = ""
    """As the parser spells it; empty where it depends on a template parameter."""
    pure: bool = False
    """Of a call: of a const method, which leaves its object as it is."""

    @_kept
    def children(self) -> tuple[Expr, ...]:
        """Sub-expressions, in order; made once, since every walk asks for them."""
        return tuple([p for p in self.parts if not isinstance(p, str)])

    def walk(self) -> Iterator[Expr]:
        """Yield this expression and all inside it, each before what is in it."""
        known = vars(self).get("nodes")
        return iter(known) if known is not None else self._walk()

    @_kept
    def nodes(self) -> tuple[Expr, ...]:
        """All that `walk` yields. Kept for a whole expression of a statement, through which dozens of passes go; not for each inside it."""
        return tuple(self._walk())

    @_kept
    def keys(self) -> frozenset[int]:
        """Keys of the variables that are named in a whole expression."""
        return frozenset([node.var for node in self.nodes if node.var is not None])

    @_kept
    def changes(self) -> frozenset[int]:
        """Keys of the variables that a whole expression assigns to, or to elements or members of."""
        roots = [target(changed) for node in self.nodes if (changed := assigned(node)) is not None]
        return frozenset([root.var for root in roots if root is not None and root.var is not None])

    def _walk(self) -> Iterator[Expr]:
        """Walk without recursion: a sum of n terms is n deep."""
        open_nodes = [self]
        while open_nodes:
            node = open_nodes.pop()
            yield node
            open_nodes += node.children[::-1]

    def map(self, change: Callable[[Expr], Expr | None]) -> Expr:
        """Return the expression with each node that `change` answers for replaced (outermost first; the answer is not looked into).

        An expression in which nothing changes is returned itself, with what is known of it.
        """
        new = change(self)
        if new is not None:
            return new
        children = self.children
        return self.with_children([c.map(change) for c in children]) if children else self

    def with_children(self, children: Sequence[Expr]) -> Expr:
        """Return the expression with other children; itself where they are its own."""
        if all(map(operator.is_, self.children, children)):
            return self
        new = iter(children)
        return self.with_parts(tuple([p if isinstance(p, str) else next(new) for p in self.parts]))

    def with_parts(self, parts: tuple[str | Expr, ...]) -> Expr:
        """Return the expression with other parts: `replace` takes three times as long, and most that is made while a kernel is rewritten is this."""
        return Expr(self.kind, parts, self.line, self.name, self.var, self.type, self.pure)


@dataclass(frozen=True)
class Declare:
    """`type name dims = init;`, or `type name init` when `direct`."""

    var: Var
    init: Expr | None = None
    direct: bool = False
    line: int = 0
    comment: str = ""


@dataclass(frozen=True)
class Evaluate:
    """An expression for its effect."""

    expr: Expr
    line: int = 0
    comment: str = ""


@dataclass(frozen=True)
class Block:
    """`{ ... }`."""

    body: tuple[Stmt, ...]
    line: int = 0
    comment: str = ""


@dataclass(frozen=True)
class If:
    """A branch. `exits`: the threads that do not take it have left the kernel, so a barrier inside is reached by all that are alive."""

    cond: Expr
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...] = ()
    constexpr: bool = False
    exits: bool = False
    line: int = 0
    comment: str = ""


@dataclass(frozen=True)
class For:
    """`for (init; cond; step) body`; a while loop has no init and no step."""

    init: tuple[Stmt, ...]
    cond: Expr | None
    step: Expr | None
    body: tuple[Stmt, ...]
    line: int = 0
    comment: str = ""
    pragma: str = ""
    """What the output asks of its compiler for this loop."""


@dataclass(frozen=True)
class DoWhile:
    """`do body while (cond)`."""

    body: tuple[Stmt, ...]
    cond: Expr
    line: int = 0
    comment: str = ""


@dataclass(frozen=True)
class Return:
    """`return value;`."""

    value: Expr | None = None
    line: int = 0
    comment: str = ""


@dataclass(frozen=True)
class Jump:
    """`break;` or `continue;`."""

    word: str
    line: int = 0
    comment: str = ""


@dataclass(frozen=True)
class Raw:
    """A statement that is not looked into for structure (switch, asm, ...): its text with the expressions inside it."""

    expr: Expr
    line: int = 0
    comment: str = ""


@dataclass(frozen=True)
class Barrier:
    """All threads of the `scope` (block or warp) meet."""

    scope: str
    line: int = 0
    comment: str = ""


@dataclass(frozen=True)
class Collective:
    """`var` = `operation` over what the threads of the scope hold in `offered`: ballot, or, and, count, add, min, max, xor."""

    var: Var
    operation: str
    offered: Var
    scope: str
    line: int = 0
    comment: str = ""


Stmt = Declare | Evaluate | Block | If | For | DoWhile | Return | Jump | Raw | Barrier | Collective


@dataclass(frozen=True)
class Function:
    """A kernel or a device function, as parsed."""

    name: str
    parameters: tuple[Var, ...]
    body: tuple[Stmt, ...]
    returns: str
    line: int
    start: int
    """Offset of the definition in the source's text."""
    template: tuple[str, ...] = ()
    """Names of its template's parameters."""
    problem: str = ""
    """Why the parser could not read it, or empty."""
    variables: Mapping[int, Var] | None = None
    fibers: str = ""
    """Why only fibers take it though it was read, or empty."""
    stepped: bool = False
    """Whether it writes what may overlap, so that the threads of a warp take its stores together (`analysis/lockstep.py`)."""


_BODIES: Mapping[type, Callable[..., tuple[tuple[Stmt, ...], ...]]] = {
    Block: lambda stmt: (stmt.body,), DoWhile: lambda stmt: (stmt.body,), If: lambda stmt: (stmt.then, stmt.other),
    For: lambda stmt: (stmt.init, stmt.body),
}  # fmt: skip


def bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """Return the statement lists directly inside a statement."""
    inside = _BODIES.get(type(stmt))
    return inside(stmt) if inside is not None else ()


def walk(stmts: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yield every statement, outer before inner."""
    open_stmts = list(stmts[::-1])
    while open_stmts:
        stmt = open_stmts.pop()
        yield stmt
        if (inside := _BODIES.get(type(stmt))) is not None:
            for body in inside(stmt)[::-1]:
                open_stmts += body[::-1]


_EXPRESSIONS: Mapping[type, Callable[..., tuple[Expr, ...]]] = {
    Declare: lambda stmt: () if stmt.init is None else (stmt.init,), Evaluate: lambda stmt: (stmt.expr,), Raw: lambda stmt: (stmt.expr,),
    If: lambda stmt: (stmt.cond,), DoWhile: lambda stmt: (stmt.cond,), For: lambda stmt: tuple([e for e in (stmt.cond, stmt.step) if e is not None]),
    Return: lambda stmt: () if stmt.value is None else (stmt.value,),
}  # fmt: skip


def own_expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """Return the expressions of a statement that are not in a statement inside it."""
    own = _EXPRESSIONS.get(type(stmt))
    return own(stmt) if own is not None else ()


def expressions(stmts: tuple[Stmt, ...]) -> Iterator[Expr]:
    """Yield every expression and all inside it."""
    return itertools.chain.from_iterable(expr.nodes for stmt in walk(stmts) for expr in own_expressions(stmt))


def map_expressions(stmt: Stmt, change: Callable[[Expr], Expr | None]) -> Stmt:
    """Return the statement with its expressions, and those of the statements inside it, changed as by `Expr.map`; itself where nothing changes."""
    own = lambda expr: expr.map(change) if expr is not None else None  # noqa: E731
    inner = lambda body: _mapped(body, change)  # noqa: E731
    if isinstance(stmt, Declare):
        return _with(stmt, init=own(stmt.init))
    if isinstance(stmt, Evaluate | Raw):
        return _with(stmt, expr=own(stmt.expr))
    if isinstance(stmt, Block):
        return _with(stmt, body=inner(stmt.body))
    if isinstance(stmt, If):
        return _with(stmt, cond=own(stmt.cond), then=inner(stmt.then), other=inner(stmt.other))
    if isinstance(stmt, For):
        return _with(stmt, init=inner(stmt.init), cond=own(stmt.cond), step=own(stmt.step), body=inner(stmt.body))
    if isinstance(stmt, DoWhile):
        return _with(stmt, body=inner(stmt.body), cond=own(stmt.cond))
    if isinstance(stmt, Return):
        return _with(stmt, value=own(stmt.value))
    return stmt


def _mapped(body: tuple[Stmt, ...], change: Callable[[Expr], Expr | None]) -> tuple[Stmt, ...]:
    new = tuple([map_expressions(stmt, change) for stmt in body])
    return body if all(map(operator.is_, body, new)) else new


def _with(stmt: Any, **fields: object) -> Stmt:
    """Return the statement with other fields; itself where they are its own: to make one takes longer than to look."""
    known = vars(stmt)
    changed: Stmt = stmt if all(known[name] is value for name, value in fields.items()) else replace(stmt, **fields)
    return changed


def name_of(var: Var, line: int = 0) -> Expr:
    """Return the expression that is a variable's name."""
    return Expr("name", (var.name,), line, var.name, var.key, var.type)


def number(value: int, line: int = 0) -> Expr:
    """Return the expression that is a whole number."""
    return Expr("literal", (str(value),), line, "", None, "int")


def paren(expr: Expr) -> Expr:
    """Return the expression in parentheses."""
    return Expr("paren", ("(", expr, ")"), expr.line, "", None, expr.type)


def bare(expr: Expr) -> Expr:
    """Return the expression without parentheses around it."""
    while expr.kind == "paren" and len(expr.children) == 1:
        expr = expr.children[0]
    return expr


def is_quiet(expr: Expr) -> bool:
    """Say whether an expression reads no memory and has no effect, so that it may also run for threads that a guard leaves out."""
    return not any(
        n.kind in ("index", "call", "assign", "lane", "lambda") or (n.kind == "unary" and n.name in ("*", "++", "--")) for n in expr.walk()
    )


def text_of(expr: Expr) -> str:
    """Return an expression as it is written, without comments and line breaks; it is made once, and kept beside the fields."""
    known: str | None = vars(expr).get("written")
    if known is None:
        known = vars(expr)["written"] = plain("".join([p if isinstance(p, str) else text_of(p) for p in expr.parts]))
    return known


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_BLANKS = re.compile(r"\s+")
_NOT_PLAIN = re.compile(r"//|/\*|\s\s|[^\S ]")


def plain(text: str) -> str:
    """Return a text in one line, without comments."""
    if _NOT_PLAIN.search(text) is None:  # of twenty texts nineteen: the pieces that a text is joined from went through here themselves
        return text
    return _BLANKS.sub(" ", _COMMENT.sub(" ", text))


def target(expr: Expr) -> Expr | None:
    """Return the name at the root of an assignable expression: `a` of `a[i].x`, `(a)`; None through a pointer's `*` or a call."""
    if expr.kind == "name":
        return expr
    if expr.kind in ("index", "member", "paren", "cast") and expr.children:
        return target(expr.children[0] if expr.kind != "cast" else expr.children[-1])
    return None


def assigned(expr: Expr) -> Expr | None:
    """Return what an expression assigns to, or None."""
    if expr.kind == "assign" or (expr.kind == "unary" and expr.name in ("++", "--")):
        return expr.children[0]
    return None

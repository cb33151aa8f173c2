"""Code that counts on warps in lockstep, as code that says so: `__syncwarp()` where a warp would meet, and no `volatile`.

`volatile` in shared memory is as a rule a sign of such code: `s[t] += s[t + 16]`, without a barrier. In lockstep all threads of the warp read
before any of them writes, and all have written before any goes on:

| from | to |
|---|---|
| `s[t] += s[t + 16];` | `{ float stored = s[t] + s[t + 16]; __syncwarp(); s[t] = stored; __syncwarp(); }` |
| `if (c) { ... }`, with such a statement inside | the same, and `__syncwarp();` behind it: there the warp is together again |

The passes that follow take it as any code with these barriers; what they do not take runs on fibers, in the steps of `fibers/lockstep.py`. Only
threads of one warp meet here, as on a GPU: fibers keep a whole block in step. A function is left as it is where its volatile memory is anything
but arrays in shared memory and pointers, where a loop may end by what is read there (the thread may wait for another one), or where it is
written otherwise than by a statement of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.synchronisation import OTHERS
from warpwright.domains.transpile.ir import Block, Declare, DoWhile, Evaluate, Expr, For, Function, If, Return, Stmt, Var

_FIRST_KEY = 1 << 62
"""Keys of the new variables begin here: those of the parser are small, those of `normalise` negative."""
_ELEMENT = re.compile(r"(?:unsigned |signed |long )*\w+")
"""Element types of which a value is kept."""


class _Otherwise(Exception):
    """The function uses volatile memory in a way that is not read here."""


def with_barriers(function: Function, kernel: bool) -> Function:
    """Return a function that counts on lockstep with a `__syncwarp()` at each place where the warp would meet; else itself."""
    variables = function.variables or {}
    parameters = {var.key for var in function.parameters}
    volatile = {v.key: v for v in variables.values() if "volatile" in v.type and not (kernel and v.key in parameters)}
    if not volatile or function.problem or function.fibers or function.stepped:
        return function
    rewriter = _Rewriter(function, volatile)
    try:
        rewriter.check(parameters)
        body = rewriter.block(function.body)
    except _Otherwise:
        return function
    plain = {key: _plain(var) if key in volatile else var for key, var in variables.items()} | rewriter.new
    return replace(function, body=_declared(body, plain), variables=plain, parameters=tuple(plain.get(var.key, var) for var in function.parameters))


class _Rewriter:
    def __init__(self, function: Function, volatile: dict[int, Var]) -> None:
        self.function, self.volatile = function, volatile
        self.taken = {v.name for v in (function.variables or {}).values()} | {e.name for e in ir.expressions(function.body) if e.kind == "name"}
        self.new: dict[int, Var] = {}

    def check(self, parameters: set[int]) -> None:
        """Raise _Otherwise where volatile memory is more than arrays in shared memory and pointers that stay where they are."""
        changed = frozenset().union(*(e.changes for s in ir.walk(self.function.body) for e in ir.own_expressions(s)))
        declared = {s.var.key: s.init for s in ir.walk(self.function.body) if isinstance(s, Declare)}
        shared = {v.key for v in (self.function.variables or {}).values() if v.space in ("shared", "dynamic")}
        for key, var in self.volatile.items():
            if var.reference or (var.dims and key not in shared) or not _ELEMENT.fullmatch(_element(var)):
                raise _Otherwise
            if key in shared:
                continue
            init = declared.get(key)
            of_shared = init is not None and len(init.keys & shared) == 1
            if var.type.count("*") != 1 or key in self.moved(changed) or not (key in parameters or of_shared):
                raise _Otherwise
        nested = [s for top in self.function.body for s in ir.walk((top,)) if isinstance(s, Return) and s is not self.function.body[-1]]
        if (nested and self.function.returns != "void") or any(isinstance(s, ir.Raw) and self.named(s.expr) for s in ir.walk(self.function.body)):
            raise _Otherwise

    def moved(self, changed: frozenset[int]) -> set[int]:
        """Return the pointers that are assigned to themselves, not through."""
        places = (ir.assigned(e) for e in ir.expressions(self.function.body))
        return {root.var for place in places if place is not None and (root := ir.bare(place)).kind == "name" and root.var in changed}  # type: ignore[misc]

    def named(self, expr: Expr) -> bool:
        return any(node.var in self.volatile for node in expr.walk())

    # --- statements ---------------------------------------------------------------------------------------------------------------

    def block(self, stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(new for stmt in stmts for new in self.statement(stmt))

    def statement(self, stmt: Stmt) -> Iterator[Stmt]:
        if isinstance(stmt, Evaluate) and self.stores(stmt.expr):
            yield self.step(stmt)
        elif isinstance(stmt, Block):
            yield replace(stmt, body=self.block(stmt.body))
        elif isinstance(stmt, If):
            self.read_only(stmt.cond)
            new = replace(stmt, then=self.block(stmt.then), other=self.block(stmt.other))
            yield from self.met(new, stmt)
        elif isinstance(stmt, For | DoWhile):
            yield from self.met(self.loop(stmt), stmt)
        else:
            for expr in ir.own_expressions(stmt):
                self.read_only(expr)
            yield self.declared(stmt)

    def loop(self, loop: For | DoWhile) -> Stmt:
        heads = [head for head in (loop.cond, loop.step if isinstance(loop, For) else None) if head is not None]
        reads = any(self.named(e) for s in ir.walk(loop.body) for e in ir.own_expressions(s))
        leaves = isinstance(loop, DoWhile) or loop.cond is None or any(isinstance(s, ir.Jump | Return) for s in ir.walk(loop.body))
        if any(map(self.named, heads)) or (reads and leaves) or self.read_into(loop.body) & frozenset().union(*(head.keys for head in heads)):
            raise _Otherwise
        body = self.block(loop.body)
        return replace(loop, init=self.block(loop.init), body=body) if isinstance(loop, For) else replace(loop, body=body)

    def read_into(self, body: tuple[Stmt, ...]) -> frozenset[int]:
        """Return the variables of a loop that get, in however many steps, what is read in such memory."""
        found: frozenset[int] = frozenset(self.volatile)
        while True:
            before = found
            for stmt in ir.walk(body):
                for expr in ir.own_expressions(stmt):
                    if expr.keys & found:
                        found |= expr.changes | ({stmt.var.key} if isinstance(stmt, Declare) else set())
            if found == before:
                return found

    def met(self, new: Stmt, old: Stmt) -> Iterator[Stmt]:
        """Yield a branch or a loop, and a meeting behind it if it has one inside."""
        yield new
        if sum(map(_meets, ir.walk((new,)))) > sum(map(_meets, ir.walk((old,)))):
            yield _meeting(old.line)

    def declared(self, stmt: Stmt) -> Stmt:
        """Return a declaration of such a pointer without `volatile` in what it is made of."""
        if not isinstance(stmt, Declare) or stmt.var.key not in self.volatile or stmt.init is None:
            return stmt
        return replace(stmt, init=stmt.init.map(_without))

    def stores(self, expr: Expr) -> bool:
        """Say whether a statement writes such memory."""
        return any(
            root is not None and root.var in self.volatile
            for e in expr.walk()
            if (place := ir.assigned(e)) is not None
            for root in [ir.target(place)]
        )

    def step(self, stmt: Evaluate) -> Stmt:
        """Return the statements of one store."""
        expr, line = stmt.expr, stmt.line
        if expr.kind != "assign" or len(expr.children) != 2 or expr.children[0].kind != "index":
            raise _Otherwise
        place, value = expr.children
        self.read_only(value)
        array, index = place.children if len(place.children) == 2 else (None, None)
        if array is None or index is None or array.kind != "name" or any(e.kind in ("call", "assign", "lambda") or e.changes for e in index.walk()):
            raise _Otherwise
        if array.var not in self.volatile or self.named(index) or ir.text_of(value).lstrip().startswith("{"):
            raise _Otherwise
        if index.keys & value.changes:  # `s[i] = i = ...`
            raise _Otherwise
        if expr.name != "=":
            value = Expr("binary", (place, f" {expr.name[:-1]} ", ir.paren(value)), expr.line, expr.name[:-1], None, expr.type)
        stored = self.fresh(_element(self.volatile[array.var]), line)
        write = Expr("assign", (place, " = ", ir.name_of(stored, line)), expr.line, "=", None, expr.type)
        return Block((Declare(stored, value, False, line), _meeting(line), Evaluate(write, line), _meeting(line)), line, stmt.comment)

    def fresh(self, kind: str, line: int) -> Var:
        name = next(n for i in itertools.count(1) if (n := f"stored{i}") not in self.taken)
        self.taken.add(name)
        var = Var(_FIRST_KEY + len(self.new), name, kind, line=line)
        self.new[var.key] = var
        return var

    def read_only(self, expr: Expr) -> None:
        """Raise _Otherwise unless such memory is only read, element by element, or handed to a function as it is."""
        if self.stores(expr):
            raise _Otherwise
        handed = {id(child) for e in expr.walk() if e.kind == "call" and not e.name.startswith("atomic") for child in e.children[1:]}
        arrays = {id(e.children[0]) for e in expr.walk() if e.kind == "index" and len(e.children) == 2}
        for e in expr.walk():
            if e.kind == "name" and e.var in self.volatile and id(e) not in handed | arrays:
                raise _Otherwise
            if e.kind == "unary" and e.name == "&" and self.named(e):
                raise _Otherwise


def _meeting(line: int) -> Stmt:
    return Evaluate(Expr("call", (Expr("name", ("__syncwarp",), line, "__syncwarp"), "()"), line, "__syncwarp", None, "void"), line)


def _meets(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and stmt.expr.kind == "call" and stmt.expr.name in OTHERS


def _plain(var: Var) -> Var:
    return replace(var, type=" ".join(var.type.replace("volatile", " ").split()))


def _element(var: Var) -> str:
    """Return the type of what is in an array or behind a pointer."""
    return re.sub(r"\bconst\b", "", _plain(var).type).replace("*", "").strip() if "*" in var.type else _plain(var).type


def _without(expr: Expr) -> Expr | None:
    if any(isinstance(part, str) and "volatile" in part for part in expr.parts):
        parts = tuple(re.sub(r"\bvolatile\s*", "", part) if isinstance(part, str) else part.map(_without) for part in expr.parts)
        return replace(expr, parts=parts, type=re.sub(r"\bvolatile\s*", "", expr.type))
    return None


def _declared(stmts: Sequence[Stmt], variables: dict[int, Var]) -> tuple[Stmt, ...]:
    """Return the statements with the variables that they declare as they are now."""
    return tuple(_redeclared(stmt, variables) for stmt in stmts)


def _redeclared(stmt: Stmt, variables: dict[int, Var]) -> Stmt:
    if isinstance(stmt, Declare):
        return replace(stmt, var=variables.get(stmt.var.key, stmt.var))
    if isinstance(stmt, If):
        return replace(stmt, then=_declared(stmt.then, variables), other=_declared(stmt.other, variables))
    if isinstance(stmt, For):
        return replace(stmt, init=_declared(stmt.init, variables), body=_declared(stmt.body, variables))
    return replace(stmt, body=_declared(stmt.body, variables)) if isinstance(stmt, Block | DoWhile) else stmt

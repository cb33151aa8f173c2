"""Print expressions and statements of a region as C++: thread indices become loop variables, everything else stays as written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from warpwright.domains.transpile import ir, vmath
from warpwright.domains.transpile.integers import UNSIGNED, literal, not_negative
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, If, Jump, Raw, Return, Stmt, Var

INDENT = "  "

_BUILTINS = {"threadIdx": "thread", "blockIdx": "block", "blockDim": "dim", "gridDim": "grid"}

_WHOLE = {
    "threadIdx": "uint3{(unsigned)thread_x, (unsigned)thread_y, (unsigned)thread_z}", "blockIdx": "index", "blockDim": "launch.block",
    "gridDim": "launch.grid", "warpSize": "32", "ww_lane": "lane_index",
}  # fmt: skip

_LEAVES = re.compile(r"\breturn\s*;")

_ATOMICS = ("Add", "Sub", "Max", "Min", "Exch", "And", "Or", "Xor", "Inc", "Dec", "CAS")

UNROLLED = 4
"""Trips of a loop, up to which it is unrolled inside a loop over threads."""

_INT_TYPES = ("int", "long", "float", "double", "long long", "short", "char", "half", "bool")


@dataclass
class Printer:
    """How names and calls print in the kernel at hand."""

    variables: Mapping[int, Var]
    calls: Mapping[str, str] = field(default_factory=dict)
    """Function -> what to call instead."""
    leave: str = ""
    """What stands for `return`."""
    returned: bool = False
    """Whether `leave` was used."""
    unroll: bool = False
    """Ask for short loops to be unrolled: a loop around two more is not vectorised."""
    vector: bool = False
    """Whether the loop at hand is vectorised: there is no vector instruction for a quotient of ints."""
    last_line: int = 0
    """Source line of the statement before: a statement on another line says which."""
    times: int = -1
    """Times that serial loops are unrolled, where that is chosen; -1: by the rule."""

    def expr(self, expr: Expr, exact: bool = False) -> str:
        """Return the text. `exact`: thread indices are unsigned here, since the difference could be seen."""
        if expr.kind == "name":
            return self.name(expr, exact)
        if expr.kind == "member" and len(expr.children) == 1 and expr.children[0].kind == "name" and expr.children[0].var is None:
            base = _BUILTINS.get(expr.children[0].name)
            if base is not None:
                return f"(unsigned){base}_{expr.name}" if exact else f"{base}_{expr.name}"
        if expr.kind == "lane":
            assert expr.var is not None
            return f"{self.variables[expr.var].name}_l[{self.parts(expr, False)}]"
        if expr.kind == "call":
            return self.call(expr)
        if self.vector and expr.kind == "binary" and expr.name in ("/", "%") and _is_int_division(expr):
            left, right = (self.expr(child) for child in expr.children)
            return f"ww::{'quotient' if expr.name == '/' else 'rest'}({left}, {right})"
        if expr.kind == "lambda" or expr.kind == "other":
            return self.parts(expr, True)
        if _becomes_signed(expr):
            return f"(({expr.type.removeprefix('const ')}){self.parts(expr, exact)})"
        return self.parts(expr, (exact and expr.kind != "index") or _unsigned_matters(expr))

    def parts(self, expr: Expr, exact: bool) -> str:
        return ir.plain("".join([p if isinstance(p, str) else self.expr(p, exact) for p in expr.parts]))

    def name(self, expr: Expr, exact: bool) -> str:
        if expr.var is not None and expr.var in self.variables:
            return self.variables[expr.var].name
        if expr.name in _WHOLE and expr.var is None:
            return _WHOLE[expr.name]
        return self.parts(expr, exact)

    def call(self, expr: Expr) -> str:
        name = expr.name
        if name.startswith("atomic") and len(expr.children) > 1 and self.is_shared(expr.children[1]):
            kind = re.sub(r"_(block|system)$", "", name)[6:]
            if kind in _ATOMICS:
                arguments = ", ".join(self.expr(c) for c in expr.children[1:])
                return f"ww::private_{kind.lower()}({arguments})"
        instead = vmath.instead(expr, self.calls)
        if instead is not None:
            return f"{instead}({', '.join(self.expr(c) for c in expr.children[1:])})"
        return self.parts(expr, False)

    def is_shared(self, address: Expr) -> bool:
        """Say whether an address certainly lies in shared memory, which only this block sees."""
        inner = address
        while inner.kind == "paren" or (inner.kind == "unary" and inner.name == "&"):
            inner = inner.children[0]
        if inner.kind == "binary" and inner.name == "+":
            inner = inner.children[0]
        root = ir.target(inner)
        return root is not None and root.var is not None and root.var in self.variables and self.variables[root.var].space in ("shared", "dynamic")

    # --- statements ---------------------------------------------------------------------------------------------------------------

    def statements(self, stmts: tuple[Stmt, ...] | list[Stmt], depth: int) -> list[str]:
        """Return the lines of statements that one thread runs."""
        return [line for stmt in stmts for line in self.statement(stmt, depth)]

    def statement(self, stmt: Stmt, depth: int) -> list[str]:
        """Return the lines of a statement; the first says which source line it comes from, where that is another than before."""
        changed = stmt.line and stmt.line != self.last_line and not isinstance(stmt, ir.Block)
        self.last_line = stmt.line if changed else self.last_line
        lines = self.written(stmt, depth)
        first = 1 if stmt.comment and len(lines) > 1 else 0
        first += len(lines) > first + 1 and lines[first].startswith("#pragma")
        if changed and lines:
            lines[first] += f"  // line {stmt.line}"
        return lines

    def written(self, stmt: Stmt, depth: int) -> list[str]:
        pad = INDENT * depth
        lines = [f"{pad}// {stmt.comment}"] if stmt.comment else []
        if isinstance(stmt, Declare):
            return [*lines, f"{pad}{self.declaration(stmt)};"]
        if isinstance(stmt, Evaluate):
            return [*lines, f"{pad}{self.expr(stmt.expr)};"]
        if isinstance(stmt, Raw):
            text = self.left(self.expr(stmt.expr))
            return [*lines, pad + text + ("" if text.endswith((";", "}")) else ";")]
        if isinstance(stmt, ir.Block):
            return [*lines, pad + "{", *self.statements(stmt.body, depth + 1), pad + "}"]
        if isinstance(stmt, If):
            return [*lines, *self.branch(stmt, depth)]
        if isinstance(stmt, For):
            head = self.loop_head(stmt)
            trips = trip_count(stmt)
            if stmt.pragma:
                lines.append(f"#pragma {stmt.pragma}")
            elif self.times > 0 and head.startswith("for"):
                lines.append(f"#pragma GCC unroll {self.times}")
            elif self.times < 0 and self.unroll and trips is not None and trips <= UNROLLED:
                lines.append(f"#pragma GCC unroll {trips}")
            return [*lines, f"{pad}{head} {{", *self.statements(stmt.body, depth + 1), pad + "}"]
        if isinstance(stmt, ir.DoWhile):
            return [*lines, pad + "do {", *self.statements(stmt.body, depth + 1), f"{pad}}} while ({self.expr(stmt.cond)});"]
        if isinstance(stmt, Jump):
            return [f"{pad}{stmt.word};"]
        if isinstance(stmt, Return):
            self.returned = True
            return [f"{pad}{self.leave};"]
        raise AssertionError(f"a {type(stmt).__name__} inside a region")

    def left(self, text: str) -> str:
        """Return a statement that is kept as text with `leave` for each return."""
        if not self.leave or _LEAVES.search(text) is None:
            return text
        self.returned = True
        return _LEAVES.sub(f"{self.leave};", text)

    def branch(self, stmt: If, depth: int) -> list[str]:
        pad = INDENT * depth
        head = f"{pad}if {'constexpr ' if stmt.constexpr else ''}({self.expr(stmt.cond)}) {{"
        lines = [head, *self.statements(stmt.then, depth + 1)]
        if stmt.other:
            lines += [pad + "} else {", *self.statements(stmt.other, depth + 1)]
        return [*lines, pad + "}"]

    def loop_head(self, stmt: For) -> str:
        if not stmt.init and stmt.step is None and stmt.cond is not None:
            return f"while ({self.expr(stmt.cond)})"
        cond = self.expr(stmt.cond) if stmt.cond is not None else ""
        step = self.expr(stmt.step) if stmt.step is not None else ""
        return f"for ({self.loop_init(stmt.init)}; {cond}; {step})"

    def loop_init(self, init: tuple[Stmt, ...] | list[Stmt]) -> str:
        """Return the text of a loop's first part; several declarations share their type."""
        if not init:
            return ""
        texts = [self.declaration(s) if isinstance(s, Declare) else self.expr(ir.own_expressions(s)[0]) for s in init]
        if isinstance(init[0], Declare) and len(init) > 1:
            rest = []
            for stmt in init[1:]:
                assert isinstance(stmt, Declare)
                stars = "*" if stmt.var.type.rstrip().endswith("*") else ""
                rest.append(f"{stars}{stmt.var.name}" + (f" = {self.expr(stmt.init)}" if stmt.init is not None else ""))
            return ", ".join([texts[0], *rest])
        return ", ".join(texts)

    def declaration(self, stmt: Declare, const: bool = False) -> str:
        """Return `type name[dims] = init` without a semicolon."""
        var = stmt.var
        if var.space == "dynamic":
            return f"{var.type}* const {var.name} = ({var.type}*)ww::dynamic_shared()"
        head = declarator(var)
        if (const or var.const) and not var.reference and "*" not in var.type and stmt.init is not None:
            head = f"const {head}"
        if stmt.init is None:
            return head
        init = self.expr(stmt.init)
        return f"{head}{init}" if stmt.direct else f"{head} = {init}"


def declarator(var: Var, name: str = "", more: str = "") -> str:
    """Return `type name[more][dims]`."""
    dims = more + "".join(f"[{d}]" for d in var.dims)
    kind = var.type
    pointer = re.search(r"\(\*\)", kind)
    if pointer:
        return kind.replace("(*)", f"(*{name or var.name}{dims})", 1)
    if re.search(r"\(&\)", kind):
        return kind.replace("(&)", f"(&{name or var.name})", 1)
    array = re.match(r"(.*[^\]])((?:\[\d+\])+)$", kind)
    if array:
        return f"{array[1]} {name or var.name}{dims}{array[2]}"
    return f"{kind} {name or var.name}{dims}"


def trip_count(stmt: For) -> int | None:
    """Return how often a loop from one number to another runs; None where that is not written down."""
    if len(stmt.init) != 1 or not isinstance(counter := stmt.init[0], Declare) or counter.init is None or stmt.cond is None or stmt.step is None:
        return None
    start, step, cond = literal(counter.init), stmt.step, stmt.cond
    end = literal(cond.children[1]) if cond.kind == "binary" and cond.name == "<" and cond.children[0].var == counter.var.key else None
    if start is None or end is None or step.kind != "unary" or step.name != "++" or step.children[0].var != counter.var.key:
        return None
    return max(0, end - start)


def _is_int_division(expr: Expr) -> bool:
    """Is this a quotient or rest of ints by a number that is known when it runs only?"""
    return len(expr.children) == 2 and all(e.type in ("int", "const int") for e in (expr, *expr.children)) and literal(expr.children[1]) is None


def _becomes_signed(expr: Expr) -> bool:
    """Is this what a signed variable stands for, of an unsigned value that may be one below zero?"""
    signed = expr.kind == "paren" and len(expr.children) == 1 and expr.type.removeprefix("const ") in ("int", "long", "long long")
    if not signed or expr.children[0].type.removeprefix("const ") not in UNSIGNED or not_negative(expr.children[0]):
        return False
    return any(n.var is not None or (n.kind in ("binary", "unary") and n.name in ("-", "~")) for n in expr.children[0].walk())


def _unsigned_matters(expr: Expr) -> bool:
    """Say whether signed and unsigned thread indices could give different values in this operation."""
    if expr.kind == "unary" and expr.name in ("-", "~"):
        return expr.type not in _INT_TYPES
    if expr.kind == "binary" and expr.name == "-":
        return expr.type not in _INT_TYPES
    if expr.kind == "binary" and expr.name in ("/", "%", ">>", "<", "<=", ">", ">="):
        return any(c.type in UNSIGNED for c in expr.children) and not all(map(not_negative, expr.children))
    if expr.kind == "binary" and expr.name == "*":
        return any(c.kind == "literal" and len(ir.text_of(c)) > 5 and "." not in ir.text_of(c) for c in expr.children)
    return False


class FunctionPrinter(Printer):
    """Writes whole functions, as fibers run them: they return, and the launch gives them their dynamic shared memory."""

    def written(self, stmt: Stmt, depth: int) -> list[str]:
        pad = INDENT * depth
        if isinstance(stmt, Declare) and stmt.var.space == "dynamic":
            return [f"{pad}{stmt.var.type}* const {stmt.var.name} = ({stmt.var.type}*)ww::dynamic_shared();"]
        if isinstance(stmt, Return):
            return [f"{pad}return {self.expr(stmt.value)};" if stmt.value is not None else f"{pad}return;"]
        if isinstance(stmt, Raw):
            text = self.parts(stmt.expr, False)
            return [pad + text + ("" if text.endswith((";", "}")) else ";")]
        return super().written(stmt, depth)

"""libclang's view of a source -> the IR of its kernels and device functions. Needs the extra `transpile`; the CUDA toolkit is not needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from warpwright.domains.transpile import shifts
from warpwright.domains.transpile.ir import (
    Block,
    Declare,
    DoWhile,
    Evaluate,
    Expr,
    For,
    Function,
    If,
    Jump,
    Raw,
    Return,
    Stmt,
    Var,
    plain,
)
from warpwright.domains.transpile.open_types import OPEN, closed
from warpwright.domains.transpile.source import Source
from warpwright.errors import MissingExtra

STUB = Path(__file__).parent / "stub" / "cuda_stub.h"

ARGUMENTS = ("-x", "cuda", "--cuda-host-only", "-nocudainc", "-nocudalib", "-nostdinc", "-std=c++17", "-Wno-everything", "-ferror-limit=0")

_EXPRESSION_KINDS = {
    "DECL_REF_EXPR": "name", "MEMBER_REF_EXPR": "member", "CALL_EXPR": "call", "ARRAY_SUBSCRIPT_EXPR": "index", "BINARY_OPERATOR": "binary",
    "COMPOUND_ASSIGNMENT_OPERATOR": "assign", "UNARY_OPERATOR": "unary", "CONDITIONAL_OPERATOR": "conditional", "INTEGER_LITERAL": "literal",
    "FLOATING_LITERAL": "literal", "CHARACTER_LITERAL": "literal", "CXX_BOOL_LITERAL_EXPR": "literal", "STRING_LITERAL": "literal",
    "CSTYLE_CAST_EXPR": "cast", "CXX_STATIC_CAST_EXPR": "cast", "CXX_REINTERPRET_CAST_EXPR": "cast", "CXX_FUNCTIONAL_CAST_EXPR": "cast",
    "CXX_CONST_CAST_EXPR": "cast", "PAREN_EXPR": "paren", "TYPE_REF": "type", "TEMPLATE_REF": "type", "NAMESPACE_REF": "type", "LAMBDA_EXPR": "lambda",  # noqa: E501
}  # fmt: skip

_TRANSPARENT = {"UNEXPOSED_EXPR", "CALL_EXPR"}
"""Implicit conversions: one child of the same extent."""

RESERVED = ("thread", "thread_x", "thread_y", "thread_z", "lane_index", "warp_index", "dim_x", "dim_y", "dim_z", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z",  # noqa: E501
            "launch", "block", "lanes", "warps", "any_active", "first_row", "first_lane", "nth_row",
            "nth_vector", "rows_at_once", "vectors_at_once", "first_x", "last_x",
            "stretch_x", "stretch_end", "threads", "threads_max", "one_row", "index",
            "first_block", "last_block", "blocks_end", "blocks_most", "blocks_at_once", "threads_most", "any_inside",
            "warp_thread", "warp_x", "steps_at", "steps_by", "steps_end")  # fmt: skip
"""Names that the output uses for itself: a variable of the kernel with such a name gets another."""

_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}


def parse(source: Source) -> list[Function]:
    """Return the kernels and device functions of the source, in order. One that the parser does not understand has a `problem`."""
    try:
        from clang import cindex
    except ImportError:
        raise MissingExtra("libclang", "transpile", "translating CUDA") from None
    ascii_text = source.text.encode("ascii", "replace").decode()
    arguments = [*ARGUMENTS, "-include", str(STUB)]
    unit = cindex.Index.create().parse("input.cu", args=arguments, unsaved_files=[("input.cu", ascii_text)])
    problems = [
        (d.location.offset, d.spelling) for d in unit.diagnostics if d.severity >= 3 and d.location.file and d.location.file.name == "input.cu"
    ]
    found: list[Function] = []
    _declarations(unit.cursor, ascii_text, source, problems, found)
    return found


def _declarations(cursor: Any, text: str, source: Source, problems: Sequence[tuple[int, str]], found: list[Function]) -> None:
    for child in cursor.get_children():
        if child.location.file is None or child.location.file.name != "input.cu":
            continue
        if child.kind.name in ("NAMESPACE", "LINKAGE_SPEC", "UNEXPOSED_DECL"):
            _declarations(child, text, source, problems, found)
        elif child.kind.name in ("FUNCTION_DECL", "FUNCTION_TEMPLATE") and child.is_definition():
            parts = list(child.get_children())
            kinds = {c.kind.name for c in parts}
            if kinds & {"CUDAGLOBAL_ATTR", "CUDADEVICE_ATTR"} and "COMPOUND_STMT" in kinds:
                found.append(_Reader(child, text, source, problems).function())


class _Unreadable(Exception):
    """A statement that the reader has no form for."""


class _Reader:
    """Reads one function: it keeps the variables seen so far and gives each a name of its own."""

    def __init__(self, cursor: Any, text: str, source: Source, problems: Sequence[tuple[int, str]]) -> None:
        self.cursor = cursor
        self.text = text
        self.source = source
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        self.problem = next((f"line {source.line(at)}: {what}" for at, what in problems if start <= at < end), "")
        self.vars: dict[int, Var] = {}
        self.names: set[str] = set(RESERVED)

    def function(self) -> Function:
        cursor = self.cursor
        parts = list(cursor.get_children())
        template = tuple(c.spelling for c in parts if c.kind.name.startswith("TEMPLATE_") and c.kind.name.endswith("_PARAMETER"))
        body: tuple[Stmt, ...] = ()
        parameters: tuple[Var, ...] = ()
        try:
            parameters = tuple(self.parameter(c) for c in parts if c.kind.name == "PARM_DECL")
            body = self.block(next(c for c in parts if c.kind.name == "COMPOUND_STMT"))
        except _Unreadable as error:
            self.problem = self.problem or str(error)
        start = cursor.extent.start.offset
        return Function(
            cursor.spelling, parameters, body, cursor.result_type.spelling, self.source.line(start), start, template, self.problem, dict(self.vars)
        )

    def parameter(self, cursor: Any) -> Var:
        kind = cursor.type.kind.name
        spelled = cursor.type.spelling
        const = cursor.type.is_const_qualified()
        return self.add(
            Var(cursor.location.offset, cursor.spelling, _unconst(spelled, const), (), "parameter", self.line(cursor), "REFERENCE" in kind, const)
        )

    def add(self, var: Var) -> Var:
        name, number = var.name, 2
        while name in self.names:
            name, number = f"{var.name}_{number}", number + 1
        self.names.add(name)
        made = Var(var.key, name, var.type, var.dims, var.space, var.line, var.reference, var.const)
        self.vars[var.key] = made
        return made

    def line(self, cursor: Any) -> int:
        return self.source.line(cursor.extent.start.offset)

    # --- statements ---------------------------------------------------------------------------------------------------------------

    def block(self, cursor: Any) -> tuple[Stmt, ...]:
        body: list[Stmt] = []
        at = cursor.extent.start.offset + 1
        for child in cursor.get_children():
            comment = self.comment(at, child.extent.start.offset)
            made = self.statement(child)
            body += [_commented(made[0], comment), *made[1:]] if made and comment else made
            at = child.extent.end.offset
        return tuple(body)

    def comment(self, start: int, end: int) -> str:
        found = re.findall(r"//[ \t]*([^\n]*)", self.text[start:end])
        return " ".join(line.strip() for line in found if line.strip())[:120]

    def body_of(self, cursor: Any) -> tuple[Stmt, ...]:
        return self.block(cursor) if cursor.kind.name == "COMPOUND_STMT" else tuple(self.statement(cursor))

    def statement(self, cursor: Any) -> list[Stmt]:
        kind, line = cursor.kind.name, self.line(cursor)
        if kind == "COMPOUND_STMT":
            return [Block(self.block(cursor), line)]
        if kind == "DECL_STMT":
            return [made for child in cursor.get_children() for made in self.declaration(child)]
        if kind == "NULL_STMT":
            return []
        if kind == "UNEXPOSED_STMT" and len(kids := list(cursor.get_children())) == 1:  # a statement under #pragma unroll
            return self.statement(kids[0])
        if kind == "BREAK_STMT":
            return [Jump("break", line)]
        if kind == "CONTINUE_STMT":
            return [Jump("continue", line)]
        if kind == "RETURN_STMT":
            kids = list(cursor.get_children())
            return [Return(self.expr(kids[0]) if kids else None, line)]
        if kind == "IF_STMT":
            return [self.branch(cursor, line)]
        if kind == "FOR_STMT":
            return [self.loop(cursor, line)]
        if kind == "WHILE_STMT":
            cond, body = list(cursor.get_children())[-2:]
            return [For((), self.expr(cond), None, self.body_of(body), line)]
        if kind == "DO_STMT":
            body, cond = list(cursor.get_children())[-2:]
            return [DoWhile(self.body_of(body), self.expr(cond), line)]
        if kind in ("SWITCH_STMT", "ASM_STMT", "MS_ASM_STMT", "CXX_FOR_RANGE_STMT", "LABEL_STMT", "GOTO_STMT", "CASE_STMT", "DEFAULT_STMT"):
            return [Raw(self.expr(cursor), line)]
        return [Evaluate(self.expr(cursor), line)]

    def branch(self, cursor: Any, line: int) -> Stmt:
        kids = list(cursor.get_children())
        head = self.text[cursor.extent.start.offset : kids[0].extent.start.offset]
        if not head.rstrip().endswith("(") or kids[0].kind.name in ("DECL_STMT", "VAR_DECL"):
            raise _Unreadable(f"line {line}: an if that declares a variable")
        other = self.body_of(kids[2]) if len(kids) > 2 else ()
        return If(self.expr(kids[0]), self.body_of(kids[1]), other, "constexpr" in head, False, line)

    def loop(self, cursor: Any, line: int) -> Stmt:
        kids = list(cursor.get_children())
        *head, body = kids
        first, second = self.semicolons(cursor)
        init: tuple[Stmt, ...] = ()
        cond = step = None
        for child in head:
            start = child.extent.start.offset
            if start < first:
                init = tuple(self.statement(child))
            elif start < second:
                cond = self.expr(child)
            else:
                step = self.expr(child)
        return For(init, cond, step, self.body_of(body), line)

    def semicolons(self, cursor: Any) -> tuple[int, int]:
        """Return the offsets of the two semicolons of a for statement."""
        text, at, depth = self.text, self.text.index("(", cursor.extent.start.offset) + 1, 0
        found: list[int] = []
        while len(found) < 2:
            letter = text[at]
            depth += (letter in "([{") - (letter in ")]}")
            if letter == ";" and depth == 0:
                found.append(at)
            at += 1
        return found[0], found[1]

    def declaration(self, cursor: Any) -> list[Stmt]:
        kind, line = cursor.kind.name, self.line(cursor)
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        if kind != "VAR_DECL":
            if kind in (
                "TYPEDEF_DECL",
                "TYPE_ALIAS_DECL",
                "STRUCT_DECL",
                "ENUM_DECL",
                "USING_DECLARATION",
                "USING_DIRECTIVE",
                "CLASS_DECL",
                "STATIC_ASSERT",
                "UNION_DECL",
                "NAMESPACE_ALIAS",
            ):
                return [Raw(Expr("type", (plain(self.text[start:end]) + ";",), line), line)]
            raise _Unreadable(f"line {line}: a declaration of kind {kind}")
        kids = list(cursor.get_children())
        head = self.text[start : cursor.location.offset]
        attributes = {k.kind.name for k in kids}
        shared = "CUDASHARED_ATTR" in attributes or re.search(r"\b__shared__\b", head) is not None
        tail, at = self.text[cursor.location.offset + len(cursor.spelling) : end], cursor.location.offset + len(cursor.spelling)
        dims: list[str] = []
        while found := re.match(r"\s*\[", tail):
            close = _close(tail, found.end() - 1)
            dims.append(plain(tail[found.end() : close]).strip())
            at, tail = at + close + 1, tail[close + 1 :]
        element = cursor.type
        if dims and not dims[0] and (size := element.get_array_size()) > 0:
            dims[0] = str(size)  # int a[] = {1, 2}
        for _ in dims:
            element = element.element_type
        const = element.is_const_qualified() or "constexpr" in head
        space = "local"
        if shared:
            space = "dynamic" if re.search(r"\bextern\b", head) else "shared"
        elif re.search(r"\bconstexpr\b|\bstatic\b", head):
            space = "constant"
        spelled = _unconst(element.spelling, element.is_const_qualified())
        if "(lambda" in spelled or "(anonymous" in spelled or "(unnamed" in spelled:
            spelled = "auto"
        volatile = re.search(r"\bvolatile\b", head) is not None and "volatile" not in spelled
        reference = "REFERENCE" in element.kind.name
        spelled = f"volatile {spelled}" if volatile else spelled
        var = self.add(Var(cursor.location.offset, cursor.spelling, spelled, tuple(dims), space, line, reference, const))
        inits = [k for k in kids if k.extent.start.offset >= at and not k.kind.name.endswith("_ATTR") and k.extent.end.offset <= end]
        return [Declare(var, *self.initialiser(tail, at, end, inits, line), line)]

    def initialiser(self, tail: str, at: int, end: int, inits: Sequence[Any], line: int) -> tuple[Expr | None, bool]:
        """Return what a variable is initialised with, and whether it stands without `=`."""
        bare = tail.strip()
        if bare.startswith("="):
            if not inits:
                raise _Unreadable(f"line {line}: an initialiser that the parser does not show")
            return self.expr(inits[-1]), False
        if bare.startswith(("(", "{")):
            return self.pieces("other", at + len(tail) - len(tail.lstrip()), end, inits, line), True
        return None, False

    # --- expressions --------------------------------------------------------------------------------------------------------------

    def expr(self, cursor: Any, extent: tuple[int, int] | None = None) -> Expr:
        """Return an expression; `extent` is the cursor's, if it is known: asking the parser is most of the reading of a large kernel."""
        kids = list(cursor.get_children())
        start, end = extent or _extent(cursor)
        kind = cursor.kind.name
        if kind in _TRANSPARENT and len(kids) == 1 and _extent(kids[0]) == (start, end):
            return self.expr(kids[0], (start, end))
        made = self.pieces(_EXPRESSION_KINDS.get(kind, "other"), start, end, kids, self.source.line(start))
        name, var = "", None
        if kind == "DECL_REF_EXPR" and self.text[start:end].rpartition("::")[2].strip() != cursor.spelling and "<" not in self.text[start:end]:
            return Expr("other", (self.text[start:end],), made.line)  # what a lambda's [=] captures
        if kind == "DECL_REF_EXPR":
            name = cursor.spelling
            declared = cursor.referenced
            if declared is not None and declared.kind.name in ("VAR_DECL", "PARM_DECL") and self.is_own(declared):
                var = declared.location.offset
                made = Expr("name", (name,), made.line)
        elif kind == "CALL_EXPR":
            name = cursor.spelling or _callee(self.text[start:end])
        elif kind == "MEMBER_REF_EXPR":
            name = cursor.spelling
        elif kind in ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR") or kind == "UNARY_OPERATOR":
            name = "".join(plain(p).strip() for p in made.parts if isinstance(p, str))
        real = "assign" if kind == "BINARY_OPERATOR" and name in _ASSIGNMENTS else made.kind
        if kind == "CALL_EXPR" and (sign := name.removeprefix("operator")) == "".join(plain(p).strip() for p in made.parts if isinstance(p, str)):
            if sign in _ASSIGNMENTS and len(made.children) == 2:  # of a class: a call to the parser
                real, name = "assign", sign
            elif sign in ("++", "--") and len(made.children) == 1:
                real, name = "unary", sign
        if name == "by" and made.kind == "call" and self.text[start:end].startswith("ww::by("):
            return shifts.amount(made)
        if kind == "CALL_EXPR" and _is_of_runtime(cursor.referenced):
            made = shifts.plain(replace(made, type=cursor.type.spelling))
            if made.kind != "call":
                return closed(made) if made.type == OPEN else made
        pure = kind == "CALL_EXPR" and real == "call" and (called := cursor.referenced) is not None and called.is_const_method()
        found = Expr(real, made.parts, made.line, name, var, cursor.type.spelling, pure)
        return closed(found) if found.type == OPEN else found

    def is_own(self, declared: Any) -> bool:
        """Say whether a declaration is one of this function's variables: the offset alone may be one in the stub."""
        location = declared.location
        return location.offset in self.vars and location.file is not None and location.file.name == "input.cu"

    def pieces(self, kind: str, start: int, end: int, kids: Sequence[Any], line: int) -> Expr:
        """Return the text of [start, end) with the children in their places."""
        parts: list[str | Expr] = []
        at = start
        for (low, high), child in sorted(((_extent(c), c) for c in kids), key=lambda pair: pair[0][0]):
            if low < at or high > end or high <= low or child.kind.name.endswith("_ATTR"):
                continue
            if _names_operator(child):
                continue  # an operator's name is its sign, which is in the text; that of a call operator covers the arguments
            if low > at:
                parts.append(self.text[at:low])
            parts.append(self.expr(child, (low, high)))
            at = high
        if at < end:
            parts.append(self.text[at:end])
        return Expr(kind, tuple(parts), line)


def _extent(cursor: Any) -> tuple[int, int]:
    extent = cursor.extent
    return extent.start.offset, extent.end.offset


def _is_of_runtime(called: Any) -> bool:
    """Say whether what is called is the runtime's own, or open."""
    return called is None or called.semantic_parent is None or called.semantic_parent.spelling == "ww"


def _names_operator(cursor: Any) -> bool:
    """Say whether a child of a call is the name of the operator; a conversion around `a[0]` or `a + b` is spelled `operator` too."""
    while cursor.spelling.startswith("operator"):
        if cursor.kind.name != "UNEXPOSED_EXPR":
            return cursor.kind.name in ("DECL_REF_EXPR", "OVERLOADED_DECL_REF")
        kids = list(cursor.get_children())
        if len(kids) != 1:
            return not kids
        cursor = kids[0]
    return False


def _callee(text: str) -> str:
    """Return what a call in a template calls; nothing for `f(a) + b`, which the parser shows as a call too where types are open."""
    found = re.match(r"([\w:]+)\s*(?:<[^()]*>\s*)?\(", text)
    if found is None:
        return ""
    depth, end = 0, found.end() - 1
    while end < len(text) and (depth := depth + (text[end] == "(") - (text[end] == ")")):
        end += 1
    return found[1].rpartition("::")[2] if end >= len(text.rstrip()) - 1 else ""


def _commented(stmt: Stmt, comment: str) -> Stmt:
    return replace(stmt, comment=comment)


def _unconst(spelled: str, const: bool) -> str:
    """Return a type's text without const at the top."""
    if not const:
        return spelled
    if spelled.startswith("const ") and "*" not in spelled:
        return spelled[6:]
    return (
        re.sub(r"(\*\s*)const\b", r"\1", spelled)
        if spelled.rstrip().endswith("const")
        else re.sub(r"\bconst\b\s*(?=(__restrict\s*)?$)|^const ", "", spelled)
    )


def _close(text: str, at: int) -> int:
    depth = 0
    for index in range(at, len(text)):
        depth += (text[index] == "[") - (text[index] == "]")
        if depth == 0:
            return index
    return len(text) - 1

"""Expressions: libclang's view of one -> the IR's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from warpwright.domains.transpile.frontend.cursors import LEAVES, Cursors, kind
from warpwright.domains.transpile.frontend.open_types import OPEN, closed
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text import shifts
from warpwright.domains.transpile.ir import Expr, Var, plain, text_of

_EXPRESSION_KINDS = {
    "DECL_REF_EXPR": "name", "MEMBER_REF_EXPR": "member", "CALL_EXPR": "call", "ARRAY_SUBSCRIPT_EXPR": "index", "BINARY_OPERATOR": "binary",
    "COMPOUND_ASSIGNMENT_OPERATOR": "assign", "UNARY_OPERATOR": "unary", "CONDITIONAL_OPERATOR": "conditional", "INTEGER_LITERAL": "literal",
    "FLOATING_LITERAL": "literal", "CHARACTER_LITERAL": "literal", "CXX_BOOL_LITERAL_EXPR": "literal", "STRING_LITERAL": "literal",
    "CSTYLE_CAST_EXPR": "cast", "CXX_STATIC_CAST_EXPR": "cast", "CXX_REINTERPRET_CAST_EXPR": "cast", "CXX_FUNCTIONAL_CAST_EXPR": "cast",
    "CXX_CONST_CAST_EXPR": "cast", "PAREN_EXPR": "paren", "TYPE_REF": "type", "TEMPLATE_REF": "type", "NAMESPACE_REF": "type", "LAMBDA_EXPR": "lambda",  # noqa: E501
}  # fmt: skip

_TRANSPARENT = {"UNEXPOSED_EXPR", "CALL_EXPR"}
"""Implicit conversions: one child of the same extent."""

_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}


class Expressions:
    """Reads expressions of one function. `vars` are its variables so far; `fibers`: why its threads cannot be turns of a loop, if they cannot."""

    def __init__(self, cursors: Cursors, text: str, source: Source) -> None:
        self.cursors = cursors
        self.text = text
        self.source = source
        self.fibers = ""
        self.groups = "cooperative_groups" in source.text
        self.vars: dict[int, Var] = {}

    def expr(self, cursor: Any, extent: tuple[int, int] | None = None) -> Expr:
        """Return an expression; `extent` is the cursor's, if it is known: asking the parser is most of the reading of a large kernel."""
        start, end = extent or self.cursors.extent(cursor)
        word, text = kind(cursor), self.text[start:end]
        kids = [] if word in LEAVES or (word == "DECL_REF_EXPR" and text.isidentifier()) else self.cursors.children(cursor)
        if word in _TRANSPARENT and len(kids) == 1 and self.cursors.extent(kids[0]) == (start, end):
            return self.expr(kids[0], (start, end))
        parts: tuple[str | Expr, ...] = self.pieces(start, end, kids, word == "CALL_EXPR") if kids else (text,) if text else ()
        line, form = self.source.line(start), _EXPRESSION_KINDS.get(word, "other")
        name, var = "", None
        if word == "DECL_REF_EXPR":
            name, declared, offset = self.cursors.declaration(cursor)
            if text.rpartition("::")[2].strip() != name and "<" not in text:
                return Expr("other", (text,), line)  # what a lambda's [=] captures
            if declared in ("VAR_DECL", "PARM_DECL") and offset in self.vars:  # in the stub, others may have the same offset: theirs is None
                var, parts = offset, (name,)
        elif word == "CALL_EXPR":
            name = cursor.spelling or _callee(text)
        elif word == "MEMBER_REF_EXPR":
            name = cursor.spelling
        elif word in ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR", "UNARY_OPERATOR"):
            name = _sign(parts)
            name = _IN_WORDS.get(name, name)
            form = "assign" if word == "BINARY_OPERATOR" and name in _ASSIGNMENTS else form
        spelled = self.cursors.type(cursor)
        if word != "CALL_EXPR":
            read = Expr(form, parts, line, name, var, spelled)
            return closed(read) if spelled == OPEN else read
        return self.call(cursor, Expr(form, parts, line, name), spelled, start)

    def call(self, cursor: Any, read: Expr, spelled: str, start: int) -> Expr:
        """Return what a call is, made but for its type: an operator of a class is a call to the parser, and so is a shift by `ww::by`."""
        if read.name == "by" and self.text.startswith("ww::by(", start):
            return shifts.amount(read)
        called = cursor.referenced
        if not self.fibers and self.groups and (name := _asks_group(read, called)):
            self.fibers = f"line {read.line}: `{name}` of a cooperative group"
        if _is_of_runtime(called):
            shift = shifts.plain(replace(read, name="", type=spelled))
            if shift.kind != "call":
                return closed(shift) if shift.type == OPEN else shift
        form, name, sign = read.kind, read.name, read.name.removeprefix("operator")
        if sign == _sign(read.parts):
            if sign in _ASSIGNMENTS and len(read.children) == 2:
                form, name = "assign", sign
            elif sign in ("++", "--") and len(read.children) == 1:
                form, name = "unary", sign
        pure = form == "call" and called is not None and called.is_const_method()
        whole = Expr(form, read.parts, read.line, name, None, spelled, pure)
        return closed(whole) if spelled == OPEN else whole

    def pieces(self, start: int, end: int, kids: Sequence[Any], called: bool = False) -> tuple[str | Expr, ...]:
        """Return the text of [start, end) with the children in their places. `called`: one of a call may be the name of an operator."""
        parts: list[str | Expr] = []
        at = start
        for (low, high), child in self.in_order(kids):
            if low < at or high > end or high <= low or kind(child).endswith("_ATTR"):
                continue
            if called and self.names_operator(child):
                continue  # an operator's name is its sign, which is in the text; that of a call operator covers the arguments
            if low > at:
                parts.append(self.text[at:low])
            parts.append(self.expr(child, (low, high)))
            at = high
        if at < end:
            parts.append(self.text[at:end])
        return tuple(parts)

    def in_order(self, kids: Sequence[Any]) -> list[tuple[tuple[int, int], Any]]:
        """Return children with their extents, by where they begin. In the place of a constructor's call that has its class's name in it, which is a
        child too (`Range(a, b)`), stand the arguments."""
        each = sorted(((self.cursors.extent(c), c) for c in kids), key=lambda pair: pair[0][0])
        named = {low for (low, _), child in each if kind(child) == "TYPE_REF"}
        hidden = [child for (low, _), child in each if low in named and kind(child) == "CALL_EXPR"]
        if not hidden:
            return each
        shown = [pair for pair in each if pair[1] not in hidden]
        return sorted([*shown, *self.in_order([k for call in hidden for k in self.cursors.children(call)])], key=lambda pair: pair[0][0])

    def names_operator(self, cursor: Any) -> bool:
        """Say whether a child of a call is the name of the operator; a conversion around `a[0]` or `a + b` is spelled `operator` too."""
        while (word := kind(cursor)) in ("DECL_REF_EXPR", "OVERLOADED_DECL_REF", "UNEXPOSED_EXPR") and cursor.spelling.startswith("operator"):
            if word != "UNEXPOSED_EXPR":
                return True
            kids = self.cursors.children(cursor)
            if len(kids) != 1:
                return not kids
            cursor = kids[0]
        return False


_IN_WORDS = {"and": "&&", "or": "||", "not": "!", "bitand": "&", "bitor": "|", "xor": "^", "compl": "~", "not_eq": "!=", "and_eq": "&=",
             "or_eq": "|=", "xor_eq": "^="}  # fmt: skip
"""Operators that C++ lets one write as words."""


def _sign(parts: Sequence[str | Expr]) -> str:
    """Return what an expression has between its children: its operator."""
    return "".join([plain(p).strip() for p in parts if isinstance(p, str)])


def _is_of_runtime(called: Any) -> bool:
    """Say whether what is called is the runtime's own, or open."""
    return called is None or called.semantic_parent is None or called.semantic_parent.spelling == "ww"


_GROUP = frozenset(
    ["sync", "thread_rank", "num_threads", "size", "shfl", "shfl_up", "shfl_down", "shfl_xor", "any", "all", "ballot", "match_any", "match_all",
     "meta_group_rank", "meta_group_size", "block_rank", "is_valid", "reduce", "inclusive_scan", "exclusive_scan", "wait", "tiled_partition",
     "coalesced_threads", "labeled_partition", "binary_partition", "invoke_one", "memcpy_async"]
)  # fmt: skip
"""Operations of cooperative groups: one on an object of open type may be such."""


def _asks_group(call: Expr, called: Any) -> str:
    """Return which operation of a cooperative group a call is, or may be; else nothing."""
    words = re.findall(r"\w+", re.sub(r"<.*>", "", text_of(call.children[0]))) if call.children else []
    name = call.name or (words[-1] if words else "")
    if called is None:
        return name if name in _GROUP else ""
    parent = called.semantic_parent
    while parent is not None and kind(parent) not in ("NAMESPACE", "TRANSLATION_UNIT"):
        parent = parent.semantic_parent
    known = parent is not None and parent.spelling == "cooperative_groups" and name not in ("this_thread_block", "this_grid")
    return name if known else ""


def _callee(text: str) -> str:
    """Return what a call in a template calls; nothing for `f(a) + b`, which the parser shows as a call too where types are open."""
    callee = re.match(r"([\w:]+)\s*(?:<[^()]*>\s*)?\(", text)
    if callee is None:
        return ""
    depth, end = 0, callee.end() - 1
    while end < len(text) and (depth := depth + (text[end] == "(") - (text[end] == ")")):
        end += 1
    return callee[1].rpartition("::")[2] if end >= len(text.rstrip()) - 1 else ""

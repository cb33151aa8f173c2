"""libclang's view of a source -> the IR of its kernels and device functions. Needs the extra `transpile`; the CUDA toolkit is not needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from warpwright.domains.transpile.errors import DoesNotApply, Refusal
from warpwright.domains.transpile.frontend import scan, switches
from warpwright.domains.transpile.frontend.cursors import LEAVES, Cursors, kind
from warpwright.domains.transpile.frontend.open_types import OPEN, closed
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text import shifts
from warpwright.domains.transpile.frontend.units import unit_of
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
    text_of,
)

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
            "nth_vector", "rows_at_once", "vectors_at_once", "threads_at_once", "fours", "row_from", "nth_part", "first_x", "last_x",
            "stretch_x", "stretch_end", "threads", "threads_max", "one_row", "index",
            "first_block", "last_block", "blocks_end", "blocks_most", "blocks_at_once", "threads_most", "any_inside",
            "warp_thread", "warp_x", "steps_at", "steps_by", "steps_end", "nth", "nth_lane", "nth_step", "at_x", "group_y", "rows_y",
            "begun_x", "last_y", "first_in", "last_in", "chunk_x", "chunk_end", "shape_x", "shape_y", "row_x", "nth_warp", "apart", "distance",
            "packed_read", "packed_written", "packed_some", "packed_place", "packed_row", "packed_sums", "packed_at", "packed_from", "packed_to",
            "packed_low", "packed_high", "inside", "alive", "begun", "BX", "BY", "BZ")  # fmt: skip
"""Names that the output uses for itself: a variable of the kernel with such a name gets another."""

_MEETS = re.compile(
    r"\b(__sync\w+|__shfl\w*|__ballot\w*|__any\w*|__all\w*|__activemask|__match_\w+|__reduce_\w+|this_thread_block|coalesced_threads|this_grid"
    r"|cub\s*::|cuda\s*::\s*(?:barrier|pipeline)|(?:Block|Warp)(?:Reduce|Scan|Load|Store|Exchange|RadixSort|Histogram))"
)
"""Words of functions whose threads meet."""

_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}


def parse(source: Source) -> list[Function]:
    """Return the kernels and device functions of the source, in order. One that the parser does not understand has a `problem`."""
    ascii_text = source.text.encode("ascii", "replace").decode()
    _refuse_depth(ascii_text, source)
    unit = unit_of(ascii_text, "input.cu")
    _refuse_wrong_side(unit, source)
    problems = [
        (d.location.offset, d.spelling) for d in unit.diagnostics if d.severity >= 3 and d.location.file and d.location.file.name == "input.cu"
    ]
    functions: list[Function] = []
    _declarations(unit.cursor, Cursors(unit, "input.cu", ascii_text), ascii_text, source, problems, functions)
    return functions


DEEPEST = 1000
"""Levels of brackets: compilers refuse 257 by themselves, and libclang ends this process at tens of thousands."""


def _refuse_depth(text: str, source: Source) -> None:
    depth = 0
    for bracket in re.finditer(r"[()\[\]{}]", text):
        depth += 1 if bracket[0] in "([{" else -1
        if depth > DEEPEST:
            place = source.place(bracket.start())
            raise Refusal(*place, "front-end", f"expected brackets at most {DEEPEST} deep, saw more", "give a program's text")


def _refuse_wrong_side(unit: Any, source: Source) -> None:
    """Raise for what every CUDA compiler rejects and a C++ compiler would take: a kernel with a result, a shared variable with a value, a call of the
    host's function in device code."""
    for one in unit.diagnostics:
        said, at = one.spelling, one.location.offset
        if one.severity < 3 or not one.location.file or one.location.file.name != "input.cu":
            continue
        if said.startswith("initialization is not supported for __shared__"):
            rest = source.text[at : source.text.find(";", at)]
            name = _before_value(rest)
            wrong = name and f"expected {name} without a value, since it is shared, saw {' '.join(rest.split())}"
        elif said.startswith("kernel function type"):
            wrong = "expected a kernel that returns void, saw " + said.partition("'")[2].partition("'")[0]
        elif any(_FROM_DEVICE.search(note.spelling) for note in one.children):
            wrong = f"{said}: it is the host's, and device code calls it"
        else:
            continue
        if wrong:
            raise Refusal(*source.place(at), "not-cuda", wrong, "no CUDA compiler takes it")


def _before_value(declarator: str) -> str:
    """Return what stands before the `=` of a value; empty where there is none (`s[N == 2 ? 4 : 8]`)."""
    depth = 0
    for at, letter in enumerate(declarator):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "=" and depth == 0:
            return declarator[:at].strip()
    return ""


_FROM_DEVICE = re.compile(r"call to __host__ function from __(global|device)__ function")


def _declarations(cursor: Any, cursors: Cursors, text: str, source: Source, problems: Sequence[tuple[int, str]], functions: list[Function]) -> None:
    for child in cursors.children(cursor):
        if cursors.own_offset(child) is None:
            continue
        if kind(child) in ("NAMESPACE", "LINKAGE_SPEC", "UNEXPOSED_DECL"):
            _declarations(child, cursors, text, source, problems, functions)
        elif kind(child) in ("FUNCTION_DECL", "FUNCTION_TEMPLATE") and child.is_definition() and not cursors.is_instance(child):
            kinds = {kind(c) for c in cursors.children(child)}
            if kinds & {"CUDAGLOBAL_ATTR", "CUDADEVICE_ATTR"} and "COMPOUND_STMT" in kinds:
                functions.append(_Reader(child, cursors, text, source, problems).function())


class _Reader:
    """Reads one function: it keeps the variables seen so far and gives each a name of its own."""

    def __init__(self, cursor: Any, cursors: Cursors, text: str, source: Source, problems: Sequence[tuple[int, str]]) -> None:
        self.cursor = cursor
        self.cursors = cursors
        self.text = text
        self.source = source
        start, end = cursors.extent(cursor)
        self.problem = next((f"line {source.line(at)}: {what}" for at, what in problems if start <= at < end), "")
        self.fibers = "it launches kernels" if any(start <= site.start < end for site in source.launches) else ""
        self.groups = "cooperative_groups" in source.text
        self.vars: dict[int, Var] = {}
        self.names: set[str] = set(RESERVED)

    def function(self) -> Function:
        cursor = self.cursor
        parts = self.cursors.children(cursor)
        template = tuple(c.spelling for c in parts if kind(c).startswith("TEMPLATE_") and kind(c).endswith("_PARAMETER"))
        body: tuple[Stmt, ...] = ()
        parameters: tuple[Var, ...] = ()
        try:
            parameters = tuple(self.parameter(c) for c in parts if kind(c) == "PARM_DECL")
            body = self.block(next(c for c in parts if kind(c) == "COMPOUND_STMT"))
        except DoesNotApply as error:
            self.problem = self.problem or str(error)
        start, end = self.cursors.extent(cursor)
        if self.problem and not self.fibers and (word := _MEETS.search(self.text, start, end)):  # it has to be known, though nothing else is
            self.fibers = f"line {self.source.line(word.start())}: `{word[0]}` in {cursor.spelling}, which was not understood: {self.problem}"
        return Function(
            cursor.spelling, parameters, body, cursor.result_type.spelling, self.source.line(start), start, template, self.problem,
            dict(self.vars), self.fibers,
        )  # fmt: skip

    def parameter(self, cursor: Any) -> Var:
        spelled = cursor.type.spelling
        const = cursor.type.is_const_qualified()
        reference = "REFERENCE" in cursor.type.kind.name
        plain_type = cursor.type.get_canonical()
        if plain_type.kind.name.endswith("ARRAY"):  # `float x[]` and `float x[8]` are pointers, `float x[][8]` is one to arrays
            inner = (cursor.type if cursor.type.kind == plain_type.kind else plain_type).element_type
            spelled, const = re.sub(r"(?=\[)|$", " (*)" if inner.kind.name.endswith("ARRAY") else " *", inner.spelling, count=1), False
        return self.add(
            Var(cursor.location.offset, cursor.spelling or "unnamed", _unconst(spelled, const), (), "parameter", self.line(cursor), reference, const)
        )

    def add(self, var: Var) -> Var:
        name, number = var.name, 2
        while name in self.names:
            name, number = f"{var.name}_{number}", number + 1
        self.names.add(name)
        unique = Var(var.key, name, var.type, var.dims, var.space, var.line, var.reference, var.const)
        self.vars[var.key] = unique
        return unique

    def line(self, cursor: Any) -> int:
        return self.source.line(self.cursors.extent(cursor)[0])

    # --- statements ---------------------------------------------------------------------------------------------------------------

    def block(self, cursor: Any) -> tuple[Stmt, ...]:
        body: list[Stmt] = []
        at = self.cursors.extent(cursor)[0] + 1
        for child in self.cursors.children(cursor):
            start, end = self.cursors.extent(child)
            comment = self.comment(at, start)
            read = self.statement(child)
            body += [_commented(read[0], comment), *read[1:]] if read and comment else read
            at = end
        return tuple(body)

    def comment(self, start: int, end: int) -> str:
        comments = re.findall(r"//[ \t]*([^\n]*)", self.text[start:end])
        return " ".join(line.strip() for line in comments if line.strip())[:120]

    def body_of(self, cursor: Any) -> tuple[Stmt, ...]:
        return self.block(cursor) if kind(cursor) == "COMPOUND_STMT" else tuple(self.statement(cursor))

    def statement(self, cursor: Any) -> list[Stmt]:
        word, line = kind(cursor), self.line(cursor)
        if word == "COMPOUND_STMT":
            return [Block(self.block(cursor), line)]
        if word == "DECL_STMT":
            return [stmt for child in self.cursors.children(cursor) for stmt in self.declaration(child)]
        if word == "NULL_STMT":
            return []
        if word == "UNEXPOSED_STMT" and len(kids := self.cursors.children(cursor)) == 1:  # a statement under #pragma unroll
            return self.statement(kids[0])
        if word == "BREAK_STMT":
            return [Jump("break", line)]
        if word == "CONTINUE_STMT":
            return [Jump("continue", line)]
        if word == "RETURN_STMT":
            kids = self.cursors.children(cursor)
            return [Return(self.expr(kids[0]) if kids else None, line)]
        if word == "IF_STMT":
            return [self.branch(cursor, line)]
        if word == "FOR_STMT":
            return [self.loop(cursor, line)]
        if word == "WHILE_STMT":
            cond, body = self.cursors.children(cursor)[-2:]
            return [For((), self.expr(cond), None, self.body_of(body), line)]
        if word == "DO_STMT":
            body, cond = self.cursors.children(cursor)[-2:]
            return [DoWhile(self.body_of(body), self.expr(cond), line)]
        if word == "SWITCH_STMT" and switches.LEAVES_OR_MEETS.search(self.text, *self.cursors.extent(cursor)):
            chain = switches.branches(cursor, self.cursors, self.statement, self.expr, line)
            if chain is not None:
                return chain
        if word in ("SWITCH_STMT", "ASM_STMT", "MS_ASM_STMT", "CXX_FOR_RANGE_STMT", "LABEL_STMT", "GOTO_STMT", "CASE_STMT", "DEFAULT_STMT"):
            return [Raw(self.expr(cursor), line)]
        return [Evaluate(self.expr(cursor), line)]

    def branch(self, cursor: Any, line: int) -> Stmt:
        kids = self.cursors.children(cursor)
        head = self.text[self.cursors.extent(cursor)[0] : self.cursors.extent(kids[0])[0]]
        if not head.rstrip().endswith("(") or kind(kids[0]) in ("DECL_STMT", "VAR_DECL"):
            raise DoesNotApply(line, "an if that declares a variable")
        other = self.body_of(kids[2]) if len(kids) > 2 else ()
        return If(self.expr(kids[0]), self.body_of(kids[1]), other, "constexpr" in head, False, line)

    def loop(self, cursor: Any, line: int) -> Stmt:
        kids = self.cursors.children(cursor)
        *head, body = kids
        first, second = self.semicolons(cursor)
        init: tuple[Stmt, ...] = ()
        cond = step = None
        for child in head:
            start, _ = self.cursors.extent(child)
            if start < first:
                init = tuple(self.statement(child))
            elif start < second:
                cond = self.expr(child)
            else:
                step = self.expr(child)
        return For(init, cond, step, self.body_of(body), line)

    def semicolons(self, cursor: Any) -> tuple[int, int]:
        """Return the offsets of the two semicolons of a for statement."""
        text, at, depth = self.text, self.text.index("(", self.cursors.extent(cursor)[0]) + 1, 0
        offsets: list[int] = []
        while len(offsets) < 2:
            letter = text[at]
            depth += (letter in "([{") - (letter in ")]}")
            if letter == ";" and depth == 0:
                offsets.append(at)
            at += 1
        return offsets[0], offsets[1]

    def declaration(self, cursor: Any) -> list[Stmt]:
        word, line = kind(cursor), self.line(cursor)
        start, end = self.cursors.extent(cursor)
        if word != "VAR_DECL":
            if word in (
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
            raise DoesNotApply(line, f"a declaration of kind {word}")
        kids = self.cursors.children(cursor)
        head = self.text[start : cursor.location.offset]
        attributes = {kind(k) for k in kids}
        shared = "CUDASHARED_ATTR" in attributes or re.search(r"\b__shared__\b", head) is not None
        tail, at = self.text[cursor.location.offset + len(cursor.spelling) : end], cursor.location.offset + len(cursor.spelling)
        dims: list[str] = []
        while bracket := re.match(r"\s*\[", tail):
            close = scan.closing(tail, bracket.end() - 1, "[]") - 1
            dims.append(plain(tail[bracket.end() : close]).strip())
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
        spelled = _unconst(element.spelling, element.is_const_qualified()).replace("(anonymous namespace)::", "")
        template = self.deduced(cursor, kids)
        if "(anonymous" in spelled or "(unnamed" in spelled:
            raise DoesNotApply(line, f"{cursor.spelling} is of a type without a name")
        if template or "(lambda" in spelled:
            spelled = "auto"
        volatile = re.search(r"\bvolatile\b", head) is not None and "volatile" not in spelled
        reference = "REFERENCE" in element.kind.name
        spelled = f"volatile {spelled}" if volatile else spelled
        var = self.add(Var(cursor.location.offset, cursor.spelling, spelled, tuple(dims), space, line, reference, const))
        # A constructor's call begins with the variable's name.
        made = [k for k in kids if kind(k) == "CALL_EXPR" and self.cursors.extent(k)[0] == cursor.location.offset]
        given = [argument for call in made for argument in self.cursors.children(call)]
        extents = ((k, self.cursors.extent(k)) for k in [*kids, *given] if not kind(k).endswith("_ATTR"))
        inits = [k for k, (low, high) in extents if low >= at and high <= end]
        init, direct = self.initialiser(tail, at, end, inits, line)
        if template:  # `Tensor a = b;` is `auto a = Tensor(b);`
            whole: tuple[str | Expr, ...] = (template, "{}") if init is None else (template, init) if direct else (f"{template}(", init, ")")
            init, direct = Expr("other", whole, line), False
        return [Declare(var, init, direct, line)]

    def deduced(self, cursor: Any, kids: Sequence[Any]) -> str:
        """Return the class template that a variable is declared with where its arguments are left to be deduced; else nothing."""
        used = [k for k in kids if kind(k) == "TEMPLATE_REF" and k.location.offset < cursor.location.offset]
        if not used:
            return ""
        last = self.cursors.extent(used[-1])
        between = self.text[last[1] : cursor.location.offset]
        qualified = re.search(r"(?:\w+\s*::\s*)*$", self.text[: last[0]])
        return (qualified[0] if qualified else "") + self.text[slice(*last)] if not between.strip() else ""

    def initialiser(self, tail: str, at: int, end: int, inits: Sequence[Any], line: int) -> tuple[Expr | None, bool]:
        """Return what a variable is initialised with, and whether it stands without `=`."""
        bare = tail.strip()
        if bare.startswith("="):
            if not inits:
                raise DoesNotApply(line, "an initialiser that the parser does not show")
            return self.expr(inits[-1]), False
        if bare.startswith(("(", "{")):
            return Expr("other", self.pieces(at + len(tail) - len(tail.lstrip()), end, inits), line), True
        if bare.startswith(")"):  # `float (*rows)[8] = sums;`, `float (*call)(float) = f;`
            what = re.match(r"\)\s*((\[[^\[\]]*\]\s*)+|\([^()]*\)\s*)(=|$)", bare)
            if what is None or (what[3] and not inits):
                raise DoesNotApply(line, "such a pointer to an array or a function")
            return (self.expr(inits[-1]), False) if what[3] else (None, False)
        return None, False

    # --- expressions --------------------------------------------------------------------------------------------------------------

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

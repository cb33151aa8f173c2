"""libclang's view of a source -> the IR of its kernels and device functions. Needs the extra `transpile`; the CUDA toolkit is not needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from warpwright.domains.transpile.errors import DoesNotApply, Refusal
from warpwright.domains.transpile.frontend import scan, switches
from warpwright.domains.transpile.frontend.cursors import Cursors, kind
from warpwright.domains.transpile.frontend.expressions import Expressions
from warpwright.domains.transpile.frontend.source import Source
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
)

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


class _Reader(Expressions):
    """Reads one function: it keeps the variables seen so far and gives each a name of its own."""

    def __init__(self, cursor: Any, cursors: Cursors, text: str, source: Source, problems: Sequence[tuple[int, str]]) -> None:
        super().__init__(cursors, text, source)
        self.cursor = cursor
        start, end = cursors.extent(cursor)
        self.problem = next((f"line {source.line(at)}: {what}" for at, what in problems if start <= at < end), "")
        self.fibers = "it launches kernels" if any(start <= site.start < end for site in source.launches) else ""
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

"""Which arrays of a body over one index can be read and written as vectors of four elements, and the loops that do so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpwright.domains.cuda import shape
from warpwright.domains.cuda.shape import Plain, expect
from warpwright.domains.cuda.techniques.launches import terms
from warpwright.domains.cuda.techniques.qualifiers import written_through
from warpwright.domains.cuda.write import raw
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.ir import Block, Declare, Evaluate, Expr, For, If, Stmt, Var

WIDTH = 4
VECTORS = {"float": "float4", "int": "int4", "unsigned int": "uint4", "unsigned": "uint4"}
"""Element of 4 bytes -> the vector of four."""


@dataclass(frozen=True)
class Wide:
    """Which arrays of a body over one index are read and written by vectors."""

    index: Var
    stmts: tuple[Stmt, ...]
    """What is done for one index."""
    arrays: tuple[Var, ...]
    """Read or written by vectors."""
    loaded: frozenset[int]
    """Keys of those that are read first."""
    stored: frozenset[int]

    def loop(self, end: str, unroll: int, ahead: bool = False) -> list[Stmt]:
        """Return the statements that go through all indices below `end`: by vectors, then one by one.

        `ahead`: what is only read is read a turn before it is used, which no compiler does by itself where a turn has atomics.
        """
        aligned = " | ".join(f"(size_t){var.name}" for var in self.arrays)
        place = "(long long)blockIdx.x * blockDim.x + threadIdx.x"
        stride = "(long long)gridDim.x * blockDim.x"
        body: list[Stmt] = []
        first: list[Stmt] = []
        for var in self.arrays:
            kind, early = VECTORS[element(var)], ahead and var.key not in self.stored
            load = f" = ((const {kind}*){var.name})[ww_four]" if var.key in self.loaded else ""
            body.append(raw(f"{'' if var.key in self.stored else 'const '}{kind} ww_{var.name}{f' = ww_next_{var.name}' if early else load};"))
            if early:
                following = f"ww_next_{var.name} = ((const {kind}*){var.name})"
                first += [raw(f"{kind} ww_next_{var.name};"), raw(f"if ({place} < ww_fours) {following}[{place}];")]
                body.append(raw(f"if (ww_four + {stride} < ww_fours) {following}[ww_four + {stride}];"))
        body += [self.lane(number) for number in range(WIDTH)]
        body += [raw(f"(({VECTORS[element(v)]}*){v.name})[ww_four] = ww_{v.name};") for v in self.arrays if v.key in self.stored]
        single = (Declare(self.index, Expr("other", (f"({self.index.type})ww_index",))), *self.stmts)
        return [
            raw(f"const long long ww_end = {end};"),
            raw(f"const long long ww_fours = ({aligned}) % 16 == 0 && ww_end > 0 ? ww_end / {WIDTH} : 0;"),
            *first,
            For((raw(f"long long ww_four = {place}"),), Expr("other", ("ww_four < ww_fours",)), Expr("other", (f"ww_four += {stride}",)), tuple(body),
                pragma=f"unroll {unroll}" if unroll > 1 else ""),
            For((raw(f"long long ww_index = {WIDTH} * ww_fours + {place}"),), Expr("other", ("ww_index < ww_end",)),
                Expr("other", (f"ww_index += {stride}",)), single),
        ]  # fmt: skip

    def lane(self, number: int) -> Block:
        """Return what is done for one of the four indices."""
        names = {var.key: f"ww_{var.name}.{'xyzw'[number]}" for var in self.arrays}

        def change(expr: Expr) -> Expr | None:
            array = own(expr, self.index.key)
            return Expr("other", (names[array],), expr.line, "", None, expr.type) if array in names else None

        first = Declare(self.index, Expr("other", (f"({self.index.type})({WIDTH} * ww_four + {number})",)))
        return Block((first, *(ir.map_expressions(stmt, change) for stmt in self.stmts)))


def element(var: Var) -> str:
    """Return the element type of a pointer; "" for another variable."""
    words = var.type.replace("__restrict__", " ").replace("__restrict", " ").replace("const", " ").split()
    return " ".join(words)[:-1].strip() if " ".join(words).endswith("*") and " ".join(words).count("*") == 1 else ""


def own(expr: Expr, index: int) -> int | None:
    """Return the array of which an expression is the element at the index; None for another expression."""
    if expr.kind != "index" or len(expr.children) != 2:
        return None
    array, place = ir.bare(expr.children[0]), ir.bare(expr.children[1])
    return array.var if array.kind == "name" and place.kind == "name" and place.var == index else None


def wide(index: Var, stmts: Sequence[Stmt], function: ir.Function) -> Wide:
    """Return how a body over one index goes by vectors; raise NotApplicable where no array is read or written at the index in every turn."""
    parameters = {var.key: var for var in function.parameters if element(var) in VECTORS}
    for stmt in ir.walk(tuple(stmts)):
        expect(not isinstance(stmt, ir.Return | ir.Raw), "a body that is not left")
    written = written_through(function) & parameters.keys()
    sure, stores = set(_sure(stmts, index.key)), _stores(stmts, index.key)
    read: set[int] = set()
    for expr in ir.expressions(tuple(stmts)):
        array = own(expr, index.key)
        if array is not None:
            read.add(array)
    arrays: list[Var] = []
    loaded: set[int] = set()
    stored: set[int] = set()
    for key, var in parameters.items():
        if key not in read or key not in sure:
            continue
        if key not in written:
            loaded.add(key)
        elif _only_own(stmts, key, index.key) and key in stores:
            stored.add(key)
            if stores[key]:
                loaded.add(key)
        else:
            continue
        arrays.append(var)
    expect(bool(arrays), "an array whose element at the thread's index is read or written in every turn")
    return Wide(index, tuple(stmts), tuple(arrays), frozenset(loaded), frozenset(stored))


def _sure(stmts: Sequence[Stmt], index: int) -> Iterator[int]:
    """Yield the arrays whose element at the index is touched in every turn, whatever the values are."""
    for stmt in stmts:
        tops = [stmt.cond] if isinstance(stmt, If) else [*ir.own_expressions(stmt)] if isinstance(stmt, Declare | Evaluate) else []
        yield from (array for top in tops for array in _always(top, index))
        if isinstance(stmt, Block):
            yield from _sure(stmt.body, index)


def _always(expr: Expr, index: int) -> Iterator[int]:
    array = own(expr, index)
    if array is not None:
        yield array
        return
    if expr.kind == "unary" and expr.name == "&":
        return
    children = expr.children
    if expr.kind == "conditional" or (expr.kind == "binary" and expr.name in ("&&", "||")):
        children = children[:1]
    for child in children:
        yield from _always(child, index)


def _stores(stmts: Sequence[Stmt], index: int) -> dict[int, bool]:
    """Return the arrays whose element at the index is assigned to in every turn, and whether it is touched besides."""
    plain: dict[int, int] = {}
    for stmt in stmts:
        assign = ir.bare(stmt.expr) if isinstance(stmt, Evaluate) else None
        array = own(ir.bare(assign.children[0]), index) if assign is not None and assign.kind == "assign" else None
        if array is not None and assign is not None:
            plain[array] = plain.get(array, 0) + (assign.name == "=")
    touched = [own(expr, index) for expr in ir.expressions(tuple(stmts))]
    return {array: touched.count(array) > count for array, count in plain.items()}


def _only_own(stmts: Sequence[Stmt], array: int, index: int) -> bool:
    """Is an array touched at the thread's index alone?"""
    inside: set[int] = set()
    for expr in ir.expressions(tuple(stmts)):
        if own(expr, index) == array:
            inside |= {id(node) for node in expr.children[0].walk()}
        if expr.kind == "unary" and expr.name == "&" and any(node.var == array for node in expr.walk()):
            return False
    return all(id(expr) in inside for expr in ir.expressions(tuple(stmts)) if expr.kind == "name" and expr.var == array)


def below(guard: Expr | None, index: int, depends: set[int], threads: str = "ww_threads") -> str:
    """Return the text of the first index that does no work, under a guard `index < bound`; raise NotApplicable for another guard."""
    if guard is None:
        return threads
    [*parts] = terms(guard)
    expect(len(parts) == 1 and parts[0].kind == "binary" and len(parts[0].children) == 2, "one bound of the index")
    [term] = parts
    left, right = term.children
    name = term.name
    if ir.bare(right).var == index:
        left, right, name = right, left, {">": "<", ">=": "<="}.get(name, "")
    expect(ir.bare(left).kind == "name" and ir.bare(left).var == index and name in ("<", "<="), "a bound above the index")
    expect(not right.keys & depends and not any(n.kind in ("index", "call") for n in right.walk()), "a bound that is the same for all threads")
    bound = f"(long long)({ir.text_of(right)})" + (" + 1" if name == "<=" else "")
    return f"{threads} < {bound} ? {threads} : {bound}"


def wide_body(plain: Plain, body: Sequence[Stmt], unroll: int, ahead: bool = False) -> list[Stmt]:
    """Return the loops over all indices of a plain kernel by vectors; raise NotApplicable where there is nothing to gain."""
    [index] = plain.indices
    others = [s for s in plain.prelude if not (isinstance(s, Declare) and s.var.key == index)]
    depends = shape.closure(plain.all, {index})
    widened = wide(plain.var(index), [*others, *body], plain.function)
    declared = {s.var.key for s in others if isinstance(s, Declare)}
    end = below(plain.guard, index, depends | declared)
    return widened.loop(end, unroll, ahead)

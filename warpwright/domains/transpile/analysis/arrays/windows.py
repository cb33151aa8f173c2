"""Shared arrays that are windows of global memory: each element is a copy of the one that lies as far from another as in shared memory.

    s[ty][tx] = in[y * W + x]; if (threadIdx.x == 0 && x > 0) s[ty][0] = in[y * W + x - 1]; ... __syncthreads(); out[...] = s[ty][tx - 1] + ...

Where blocks have one known shape, the threads' stores are listed one by one, and so are the elements that threads read. An element that is read has
been written, by a thread whose guards hold: they follow from those of the reader, or they are asked of the block when it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import polynomials
from warpwright.domains.transpile.analysis.arrays import tiles
from warpwright.domains.transpile.analysis.bounds import converts
from warpwright.domains.transpile.analysis.guards import Guard, follows, guards
from warpwright.domains.transpile.analysis.polynomials import Parts, Polynomial, added, constant, multiplied
from warpwright.domains.transpile.analysis.uniform import PURE_CALLS
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, If, Shape, Stmt, Var

MOST = 1 << 15
"""Reads and stores of a block, up to which they are listed: a tenth of a second."""

_THREAD = tuple(f"threadIdx.{axis}" for axis in polynomials.AXES)


@dataclass(frozen=True)
class Loop:
    """A loop that counts up."""

    counter: str
    start: Polynomial
    goes_on: tuple[Guard, ...]
    step: int


@dataclass(frozen=True)
class Copy:
    """A store to shared memory of what lies in global memory."""

    array: int
    indices: tuple[Polynomial, ...]
    source: int
    """The pointer's key."""
    address: Polynomial
    guards: tuple[Guard, ...]
    loops: tuple[Loop, ...]


@dataclass(frozen=True)
class Use:
    """An element that a thread reads."""

    expr: Expr
    array: int
    indices: tuple[Polynomial, ...]
    facts: tuple[Guard, ...]
    loops: tuple[Loop, ...]


@dataclass(frozen=True)
class Window:
    """An array, the memory that it is a copy of, where its element 0 would lie there, and how far apart neighbours along each of its axes are."""

    source: int
    base: Polynomial
    strides: tuple[Polynomial, ...]

    def address(self, indices: Sequence[Polynomial]) -> Polynomial:
        total = self.base
        for index, stride in zip(indices, self.strides, strict=True):
            total = added(total, multiplied(index, stride))
        return total


@dataclass(frozen=True)
class Store:
    """A place in global memory that a thread writes."""

    pointer: int
    address: Polynomial
    loops: tuple[Loop, ...]


@dataclass
class Values:
    """What is known of a kernel's local variables along the way, for blocks of one shape."""

    variables: Mapping[int, Var]
    block: Shape
    changed: frozenset[int]
    """Keys of variables that are assigned to."""
    known: dict[int, Polynomial | None] = field(default_factory=dict)
    quotients: Parts = field(default_factory=Parts)
    registers: dict[int, tuple[int, Polynomial]] = field(default_factory=dict)
    """Key of a variable -> the pointer, and where behind it lies what the variable holds."""
    stores: list[Store] = field(default_factory=list)
    """What `uses` finds written to global memory."""

    def __post_init__(self) -> None:
        self.known |= dict.fromkeys(self.changed)

    def of(self, expr: Expr) -> Polynomial | None:
        return polynomials.of(expr, self.known, self.variables, self.block, self.quotients)

    def read(self, expr: Expr) -> tuple[int, Polynomial]:
        """Return the pointer, and where behind it lies what an expression reads. Raises DoesNotApply where it is more."""
        expr = ir.bare(expr)
        if expr.kind == "name" and expr.var in self.registers:
            return self.registers[expr.var]
        place = tiles.element(expr) if expr.kind == "index" else None
        address = self.of(place[1][0]) if place is not None and len(place[1]) == 1 else None
        if place is None or address is None or self.variables[place[0]].space != "parameter":
            raise DoesNotApply
        return place[0], address

    def declare(self, stmt: Declare) -> None:
        """Note what a local variable holds."""
        var, init = stmt.var, stmt.init
        fixed = init is not None and not var.dims and var.key not in self.changed
        whole = fixed and var.type.removeprefix("const ") in ("int", "unsigned int")
        self.known[var.key] = self.of(init) if whole and init is not None and not converts(var.type, init) else None

    def loop(self, stmt: For) -> Loop | None:
        """Return a loop that counts up by a number, and note its counter; None for another."""
        first = stmt.init[0] if len(stmt.init) == 1 else None
        if not isinstance(first, Declare) or first.init is None or stmt.cond is None or stmt.step is None or not stmt.step.children:
            return None
        key, start, step = first.var.key, self.of(first.init), stmt.step
        by: int | None = 1 if step.kind == "unary" and step.name == "++" else None
        if step.kind == "assign" and step.name == "+=":
            value = self.of(step.children[1])
            by = constant(value) if value is not None else None
        if start is None or not by or by < 0 or step.children[0].var != key or any(key in e.changes for e in ir.expressions(stmt.body)):
            return None
        self.known[key] = polynomials.symbol(f"#{key}")
        goes_on = guards(stmt.cond, self.of)
        return Loop(f"#{key}", start, tuple(goes_on), by) if goes_on is not None else None


def copies(stmts: Sequence[Stmt], values: Values) -> list[Copy]:
    """Return the stores of statements that do nothing else. Raises DoesNotApply for others."""
    found: list[Copy] = []
    _copies(tuple(stmts), values, (), (), found)
    return found


def _copies(stmts: tuple[Stmt, ...], values: Values, conds: tuple[Guard, ...], loops: tuple[Loop, ...], found: list[Copy]) -> None:
    for stmt in stmts:
        if isinstance(stmt, Declare) and (stmt.init is None or ir.is_quiet(stmt.init)):
            if stmt.var.space == "local":
                values.declare(stmt)
        elif isinstance(stmt, Evaluate):
            found.append(_copy(stmt.expr, values, conds, loops))
        elif isinstance(stmt, ir.Block):
            _copies(stmt.body, values, conds, loops, found)
        elif isinstance(stmt, If):
            for body, opposite in ((stmt.then, False), (stmt.other, True)):
                more = guards(stmt.cond, values.of, opposite) if body else []
                if more is None:
                    raise DoesNotApply
                _copies(body, values, (*conds, *more), loops, found)
        elif isinstance(stmt, For) and (loop := values.loop(stmt)) is not None:
            _copies(stmt.body, values, conds, (*loops, loop), found)
        else:
            raise DoesNotApply


def _copy(expr: Expr, values: Values, conds: tuple[Guard, ...], loops: tuple[Loop, ...]) -> Copy:
    place = tiles.element(expr.children[0]) if expr.kind == "assign" and expr.name == "=" else None
    if place is None or values.variables[place[0]].space != "shared" or len(place[1]) != len(values.variables[place[0]].dims):
        raise DoesNotApply
    value = ir.bare(expr.children[1])
    if value.kind == "conditional":  # what lies there, or a number beyond the border
        more = guards(value.children[0], values.of)
        if more is None or ir.bare(value.children[2]).kind != "literal":
            raise DoesNotApply
        conds, value = (*conds, *more), ir.bare(value.children[1])
    source, address = values.read(value)
    indices = [values.of(index) for index in place[1]]
    if any(index is None for index in indices) or pointed(values.variables[source]) != values.variables[place[0]].type.removeprefix("const "):
        raise DoesNotApply
    return Copy(place[0], tuple(i for i in indices if i is not None), source, address, conds, loops)


def pointed(var: Var) -> str:
    """Return the type that a plain pointer points to; nothing of another variable."""
    head, star, tail = var.type.partition("*")
    plain = star and tail.strip() in ("", "__restrict", "__restrict__", "const", "const __restrict", "__restrict const") and not var.reference
    return head.replace("const ", "").strip() if plain and not var.dims and "volatile" not in head else ""


def uses(stmts: Sequence[Stmt], arrays: frozenset[int], values: Values) -> list[Use]:
    """Return the elements of arrays that statements read, which write none. Raises DoesNotApply for statements that do something else with them."""
    found: list[Use] = []
    _uses(tuple(stmts), arrays, values, (), (), found)
    return found


def _uses(
    stmts: tuple[Stmt, ...], arrays: frozenset[int], values: Values, facts: tuple[Guard, ...], loops: tuple[Loop, ...], found: list[Use]
) -> None:
    read = lambda expr, more=(): found.extend(_reads(expr, arrays, values, facts, (*loops, *more)))  # noqa: E731
    for stmt in stmts:
        if isinstance(stmt, For):
            for first in stmt.init:
                _uses((first,), arrays, values, facts, loops, found)
            loop = values.loop(stmt)
            if loop is None:
                values.known |= {first.var.key: None for first in stmt.init if isinstance(first, Declare)}
            inner = (*loops, loop) if loop is not None else loops
            for expr in (stmt.cond, stmt.step):
                if expr is not None and arrays & expr.keys:
                    raise DoesNotApply
                if expr is not None:
                    read(expr)
            _uses(stmt.body, arrays, values, facts, inner, found)
            continue
        for expr in ir.own_expressions(stmt):
            read(expr)
        if isinstance(stmt, Declare):
            values.declare(stmt)
        elif isinstance(stmt, If):
            for body, opposite in ((stmt.then, False), (stmt.other, True)):
                _uses(body, arrays, values, (*facts, *(guards(stmt.cond, values.of, opposite) or [])), loops, found)
        elif isinstance(stmt, ir.Block):
            _uses(stmt.body, arrays, values, facts, loops, found)
        elif not isinstance(stmt, Evaluate):
            raise DoesNotApply


def _reads(expr: Expr, arrays: frozenset[int], values: Values, facts: tuple[Guard, ...], loops: tuple[Loop, ...]) -> Iterator[Use]:
    """Yield the elements that an expression reads."""
    if any(n.kind in ("lambda", "lane", "other") or n.name == "warpSize" or (n.kind == "call" and n.name not in PURE_CALLS) for n in expr.walk()):
        raise DoesNotApply
    for node in expr.walk():
        if (written := ir.assigned(node)) is not None and (store := _store(written, values, loops)) is not None:
            values.stores.append(store)
    if not arrays & expr.keys:
        return
    seen = 0
    for node in expr.walk():
        place = tiles.element(node) if node.kind == "index" else None
        if place is None or place[0] not in arrays or len(place[1]) != len(values.variables[place[0]].dims):
            continue
        indices = [values.of(index) for index in place[1]]
        if any(index is None for index in indices):
            raise DoesNotApply
        seen += 1
        yield Use(node, place[0], tuple(i for i in indices if i is not None), facts, loops)
    if (
        seen != sum(n.kind == "name" and n.var in arrays for n in expr.walk())
        or arrays & expr.changes
        or any(n.kind == "unary" and n.name == "&" for n in expr.walk())
    ):
        raise DoesNotApply


def _store(written: Expr, values: Values, loops: tuple[Loop, ...]) -> Store | None:
    """Return the place in global memory that is written; None for a local variable."""
    root = ir.target(written)
    if root is None or root.var is None or (var := values.variables.get(root.var)) is None:
        raise DoesNotApply
    if var.space == "local" and "*" not in var.type and not var.reference:
        return None
    place = tiles.element(written)
    address = values.of(place[1][0]) if place is not None and len(place[1]) == 1 and pointed(var) and var.space == "parameter" else None
    if address is None:
        raise DoesNotApply
    return Store(root.var, address, loops)


def rounds(loops: Sequence[Loop], known: dict[str, int], quotients: Parts) -> Iterator[dict[str, int]]:
    """Yield the numbers of loops' counters, with those that are known already. Raises DoesNotApply where only the run shows how long they are."""
    known = quotients.with_parts(known)
    if not loops:
        yield known
        return
    loop = loops[0]
    count = constant(polynomials.at(loop.start, known))
    if count is None:
        raise DoesNotApply
    for _ in range(MOST):
        inside = quotients.with_parts(known | {loop.counter: count})
        left = [guard.at(inside) for guard in loop.goes_on]
        if any(one is None for one in left):
            return
        if any(left):
            raise DoesNotApply
        yield from rounds(loops[1:], inside, quotients)
        count += loop.step
    raise DoesNotApply


def threads(block: Shape) -> Iterator[dict[str, int]]:
    """Yield the indices of a block's threads."""
    for z in range(block[2]):
        for y in range(block[1]):
            for x in range(block[0]):
                yield dict(zip(_THREAD, (x, y, z), strict=True))


def _place(indices: Sequence[Polynomial], known: dict[str, int]) -> tuple[int, ...]:
    numbers = [constant(polynomials.at(index, known)) for index in indices]
    if any(n is None for n in numbers):
        raise DoesNotApply
    return tuple(n for n in numbers if n is not None)


def window(array: int, stores: Sequence[Copy], values: Values) -> tuple[Window, dict[tuple[int, ...], list[list[Polynomial]]]]:
    """Return the window that an array is, and for each element that is written what has to hold for that, in any of several ways."""
    stores = [store for store in stores if store.array == array]
    if len({store.source for store in stores}) != 1:
        raise DoesNotApply
    addresses: dict[tuple[int, ...], Polynomial] = {}
    ways: dict[tuple[int, ...], list[list[Polynomial]]] = {}
    count = 0
    for store in stores:
        for thread in threads(values.block):
            for known in rounds(store.loops, thread, values.quotients):
                count += 1
                if count > MOST:
                    raise DoesNotApply
                left = [guard.at(known) for guard in store.guards]
                if any(one is None for one in left):
                    continue
                place, address = _place(store.indices, known), polynomials.in_block(store.address, known)
                if addresses.setdefault(place, address) != address:
                    raise DoesNotApply
                ways.setdefault(place, []).append([part for one in left for part in one or ()])
    return _fitted(stores[0].source, addresses), ways


def _fitted(source: int, addresses: Mapping[tuple[int, ...], Polynomial]) -> Window:
    """Return the window in which elements have these addresses."""
    if not addresses:
        raise DoesNotApply
    strides = []
    for axis in range(len(next(iter(addresses)))):
        pairs = ((place, (*place[:axis], place[axis] + 1, *place[axis + 1 :])) for place in addresses)
        stride = next((added(addresses[after], addresses[place], -1) for place, after in pairs if after in addresses), None)
        if stride is None:
            raise DoesNotApply
        strides.append(stride)
    made = Window(source, {}, tuple(strides))
    bases = [added(address, made.address([polynomials.number(n) for n in place]), -1) for place, address in addresses.items()]
    if any(base != bases[0] for base in bases):
        raise DoesNotApply
    return Window(source, bases[0], tuple(strides))


def asked(read: Use, ways: Mapping[tuple[int, ...], Sequence[Sequence[Polynomial]]], values: Values) -> list[Polynomial]:
    """Return what a block is asked (at most zero) so that each element that its threads read has been written: of each sum the largest number."""
    worst: dict[tuple[tuple[tuple[str, ...], int], ...], Polynomial] = {}
    count = 0
    for thread in threads(values.block):
        for known in rounds(read.loops, thread, values.quotients):
            count += 1
            facts = [guard.at(known) for guard in read.facts]
            if any(one is None for one in facts):
                continue
            place = _place(read.indices, known)
            if count > MOST or place not in ways:
                raise DoesNotApply
            held = [part for guard, one in zip(read.facts, facts, strict=True) if not guard.unsigned for part in one or ()]
            left = min(([part for part in way if not follows(part, held)] for way in ways[place]), key=len)
            for part in left:
                rest = tuple(sorted((product, factor) for product, factor in part.items() if product))
                if rest not in worst or worst[rest].get((), 0) < part.get((), 0):
                    worst[rest] = part
    return list(worst.values())


def text(value: Polynomial, values: Values, names: Mapping[str, str]) -> str:
    """Return a polynomial as C++ computes it: in longs, or in ranges of them."""
    terms = []
    for product, factor in sorted(value.items(), key=lambda item: (-len(item[0]), item[0])):
        if any(name.startswith("@") for name in product):
            raise DoesNotApply
        factors = [names.get(name) or f"(long){values.variables[int(name[1:])].name}" for name in product]
        terms.append(" * ".join([*factors, f"{factor}l"] if factor != 1 or not factors else factors))
    return " + ".join(terms) or "0l"

"""Unstaged: stencils that read global memory where a thread of the GPU reads its block's copy of it, for known blocks.

    s[ty][tx] = in[y * W + x]; if (threadIdx.x == 0 && x > 0) s[ty][0] = ...; __syncthreads(); if (...) out[y * W + x] = s[ty][tx - 1] + ...;
    ->   if (...) out[y * W + x] = in[y * W + x - 1] + ...;

The copy is there for a GPU that would else read each element several times. A CPU has its caches; what it pays for is the copy (18 short rows of
lines that lie 4 KiB apart for a block of 16 x 16) and that a block runs alone: without a barrier, blocks run as one row of threads. (stencil_shared
on an EPYC without AVX-512: 1.1 -> 0.18 ms.) What the elements are, and that each has been written, `arrays/windows.py` says. Blocks for which the
latter does not follow run as before, and so does a launch that writes where it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.arrays import windows
from warpwright.domains.transpile.analysis.polynomials import AXES, Parts, Polynomial
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.integers import LAUNCH
from warpwright.domains.transpile.ir import Declare, Expr, Shape, Stmt, Var

MOST_READS = 24
"""Elements that a thread reads, up to which it pays: a loop that goes through a tile again and again reads it in one place from its copy."""


Places = Mapping[tuple[int, ...], object]
"""Elements of a shared array, by their indices."""


@dataclass(frozen=True)
class Unstaged:
    """A kernel without its copies."""

    shape: Shape
    body: tuple[Stmt, ...]
    apart: str
    """What has to hold for a launch: that it writes nothing that it reads."""
    inside: Mapping[str, str]
    """Axis -> what has to hold for a block, at number `at` along it."""
    rounds: str = ""
    """How many rounds of a loop there are, where each is a block along z (`sheets.py`)."""


def unstaged(body: Sequence[Stmt], variables: Mapping[int, Var], block: Shape) -> Unstaged | None:
    """Return a kernel without its copies, for blocks of one shape; None for another kernel."""
    barriers = [i for i, stmt in enumerate(body) if isinstance(stmt, ir.Barrier)]
    while barriers and barriers[-1] == len(body) - 1:  # behind it nothing happens
        body, barriers = body[:-1], barriers[:-1]
    arrays = frozenset(s.var.key for s in body if isinstance(s, Declare) and s.var.space == "shared")
    meetings = [stmt for stmt in ir.walk(tuple(body)) if isinstance(stmt, ir.Barrier | ir.Collective)]
    if not arrays or len(barriers) != 1 or len(meetings) != 1 or meetings[0].scope != "block":
        return None
    try:
        return _unstaged(body[: barriers[0]], body[barriers[0] + 1 :], arrays, variables, block)
    except DoesNotApply:
        return None


def _unstaged(first: Sequence[Stmt], then: Sequence[Stmt], arrays: frozenset[int], variables: Mapping[int, Var], block: Shape) -> Unstaged:
    changed = frozenset(key for expr in ir.expressions((*first, *then)) for key in expr.changes)
    values = windows.Values(variables, block, changed)
    stores = windows.copies([s for s in first if not (isinstance(s, Declare) and s.var.space == "shared")], values)
    reads = windows.uses(then, arrays, values)
    kept = [s for s in first if isinstance(s, Declare) and s.var.space == "local"]
    return rewritten(kept, then, stores, reads, values)


def rewritten(
    kept: Sequence[Stmt], then: Sequence[Stmt], stores: Sequence[windows.Copy], reads: Sequence[windows.Use], values: windows.Values, rounds: str = ""
) -> Unstaged:
    """Return statements that read shared memory as they read global memory, behind the values that they may need.

    Raises DoesNotApply where that is not known to be the same. `rounds`: how many there are, where a round is a block.
    """
    if not reads or sum(_times(read, values) for read in reads) > MOST_READS:
        raise DoesNotApply
    made = {array: windows.window(array, stores, values) for array in {read.array for read in reads}}
    new = {id(read.expr): _in_memory(read, made[read.array][0], values) for read in reads}
    asked = [part for read in reads for part in windows.asked(read, made[read.array][1], values)]
    moved = [ir.map_expressions(s, lambda e: new.get(id(e)) or _held(e, values) or _grouped(e, values)) for s in (*kept, *then)]
    held: list[tuple[windows.Window, Places]] = [(windows.Window(*place, ()), {}) for place in values.registers.values()]
    return Unstaged(values.block, _used(moved), _apart([*made.values(), *held], values, rounds), _inside(asked, values), rounds)


def _held(expr: Expr, values: windows.Values) -> Expr | None:
    """Return what a register holds as it lies in memory."""
    if expr.kind != "name" or expr.var not in values.registers:
        return None
    pointer, address = values.registers[expr.var]
    return Expr("index", (ir.name_of(values.variables[pointer]), "[", written(address, values, expr.line), "]"), expr.line, "", None, expr.type)


def _times(read: windows.Use, values: windows.Values) -> int:
    return sum(1 for _ in windows.rounds(read.loops, next(windows.threads((1, 1, 1))), values.quotients))


def _in_memory(read: windows.Use, window: windows.Window, values: windows.Values) -> Expr:
    """Return the element as it lies in global memory. Raises DoesNotApply where neighbouring threads do not read neighbours."""
    address = window.address(read.indices)
    across = {product: factor for product, factor in address.items() if "threadIdx.x" in product}
    if across != {("threadIdx.x",): 1}:
        raise DoesNotApply
    pointer = values.variables[window.source]
    return Expr("index", (ir.name_of(pointer), "[", written(address, values, read.expr.line), "]"), read.expr.line, "", None, read.expr.type)


def _grouped(expr: Expr, values: windows.Values) -> Expr | None:
    """Return an index that names the launch, or what a loop moved, with each thread's number in the grid together; and a block's size as a number."""
    if expr.kind == "member" and expr.children and expr.children[0].name == "blockDim" and expr.name in AXES:
        return ir.number(values.block[AXES.index(expr.name)], expr.line)
    if expr.kind != "index" or not any(n.kind == "name" and (n.name in LAUNCH or n.var in values.changed) for n in expr.children[1].walk()):
        return None
    address = values.of(expr.children[1])
    if address is None:
        return None
    base, _ = expr.children
    return expr.with_children([base.map(lambda e: _grouped(e, values)), written(address, values, expr.line)])


def written(value: Polynomial, values: windows.Values, line: int) -> Expr:
    """Return a polynomial as an expression: products first, then the thread's numbers in the grid, then the number."""
    left = dict(value)
    terms: list[tuple[int, Expr | None, tuple[str, ...]]] = []
    for product, factor in value.items():
        for axis, size in zip(AXES, values.block, strict=True):
            thread, block = f"threadIdx.{axis}", f"blockIdx.{axis}"
            rest = tuple(name for name in product if name != thread)
            joined = tuple(sorted((*rest, block)))
            if product.count(thread) == 1 and left.get(product) == factor and left.get(joined) == factor * size:
                del left[product], left[joined]
                terms.append((factor, _number_in_grid(axis, size, line), rest))
    terms += [(factor, None, product) for product, factor in left.items() if product]
    terms.sort(key=lambda term: -len(term[2]))
    total: Expr | None = None
    for factor, group, names in terms:
        factors = [group] if group is not None else []
        factors += [_symbol(name, values, line) for name in names]
        term = factors[0]
        for more in factors[1:]:
            term = _binary(term, "*", more)
        term = _binary(ir.number(abs(factor), line), "*", term) if abs(factor) != 1 else term
        if total is None:
            total = term if factor > 0 else Expr("unary", ("-", term), line, "-", None, "int")
        else:
            total = _binary(total, "+" if factor > 0 else "-", term)
    alone = value.get((), 0)
    if total is None:
        return ir.number(alone, line) if alone >= 0 else Expr("unary", ("-", ir.number(-alone, line)), line, "-", None, "int")
    return _binary(total, "+" if alone > 0 else "-", ir.number(abs(alone), line)) if alone else total


def _number_in_grid(axis: str, size: int, line: int) -> Expr:
    product = _binary(_symbol_of_launch("blockIdx", axis, line), "*", ir.number(size, line))
    return ir.paren(_binary(product, "+", _symbol_of_launch("threadIdx", axis, line)))


def _symbol_of_launch(name: str, axis: str, line: int) -> Expr:
    return Expr("member", (Expr("name", (name,), line, name), f".{axis}"), line, axis, None, "unsigned int")


def _symbol(name: str, values: windows.Values, line: int) -> Expr:
    if name.startswith("@"):
        raise DoesNotApply
    if not name.startswith("#"):
        return _symbol_of_launch(name[:-2], name[-1], line)
    var = values.variables[int(name[1:])]
    plain = ir.name_of(var, line)
    return Expr("cast", ("(long)", plain), line, "", None, "long") if var.type.removeprefix("const ") == "unsigned int" else plain


def _binary(left: Expr, operator: str, right: Expr) -> Expr:
    kind = "long" if "long" in (left.type, right.type) else "int"
    return Expr("binary", (left, f" {operator} ", right), left.line, operator, None, kind)


def _used(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Return the statements without values that nothing asks for any more."""
    while True:
        named = {key for expr in ir.expressions(tuple(body)) for key in expr.keys}
        kept = [s for s in body if not (isinstance(s, Declare) and s.var.space == "local" and s.var.key not in named
                                        and (s.init is None or ir.is_quiet(s.init)))]  # fmt: skip
        if len(kept) == len(body):
            return tuple(kept)
        body = kept


# --- what has to hold -----------------------------------------------------------------------------------------------------------------


def _inside(asked: Sequence[Polynomial], values: windows.Values) -> dict[str, str]:
    """Return what a block is asked, by the axis along which it matters. Raises DoesNotApply where it is several."""
    texts: dict[str, list[str]] = {axis: [] for axis in AXES}
    for part in asked:
        axes = {name[-1] for product in part for name in product if name.startswith("blockIdx.")}
        if len(axes) > 1 or any(name.startswith("threadIdx.") for product in part for name in product):
            raise DoesNotApply
        text = f"{windows.text(part, values, {f'blockIdx.{axis}': 'at' for axis in axes})} <= 0"
        if text not in texts[axis := next(iter(axes), "x")]:
            texts[axis].append(text)
    return {axis: " && ".join(parts) or "true" for axis, parts in texts.items()}


def _apart(made: Sequence[tuple[windows.Window, Places]], values: windows.Values, rounds: str) -> str:
    """Return the condition under which a launch writes nothing that it has to have read before."""
    spans = {f"threadIdx.{axis}": f"ww::Range{{0, {size - 1}}}" for axis, size in zip(AXES, values.block, strict=True)}
    spans |= {f"blockIdx.{axis}": f"ww::Range{{0, (long)launch.grid.{axis} - 1}}" for axis in AXES}
    spans |= {"blockIdx.z": "ww::Range{0, rounds - 1}"} if rounds else {}
    texts: list[str] = []
    for window, places in made:
        read = windows.text(window.base, values, spans)
        for axis, stride in enumerate(window.strides):
            ends = [place[axis] for place in places]
            read += f" + ({windows.text(stride, values, spans)}) * ww::Range{{{min(ends)}, {max(ends)}}}"
        for store in values.stores:
            seen = spans | _counted(store.loops)
            source, to = (values.variables[key].name for key in (window.source, store.pointer))
            text = f"ww::are_apart({source}, {read}, {to}, {windows.text(store.address, values, seen)})"
            if text not in texts:
                texts.append(text)
    return " && ".join(texts) or "true"


def _counted(loops: Sequence[windows.Loop]) -> dict[str, str]:
    """Return the ranges of loops' counters. Raises DoesNotApply where they are not known."""
    seen = list(windows.rounds(loops, {}, Parts())) if loops else []
    ends = {loop.counter: [known[loop.counter] for known in seen] or [0] for loop in loops}
    return {counter: f"ww::Range{{{min(numbers)}, {max(numbers)}}}" for counter, numbers in ends.items()}


def without_loops(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Return the statements with those of counted loops in their place: what they say of the launch, for loops that are short."""
    return tuple(ir.Block((*s.init, *without_loops(s.body))) if isinstance(s, ir.For)
                 else replace(s, then=without_loops(s.then), other=without_loops(s.other)) if isinstance(s, ir.If)
                 else replace(s, body=without_loops(s.body)) if isinstance(s, ir.Block) else s for s in body)  # fmt: skip

"""A tree of sums in shared memory -> shuffles in registers; and several elements a thread before it, where only its sum is used.

    s[t] = v; __syncthreads(); for (h = blockDim.x / 2; h > 0; h /= 2) { if (t < h) s[t] += s[t + h]; __syncthreads(); }
    ->   v = sum of v over the block; if (t == 0) s[0] = v; __syncthreads();
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from warpwright.base import Action
from warpwright.domains.cuda import helpers, shape, write
from warpwright.domains.cuda.constants import block_shape
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import expect
from warpwright.domains.cuda.techniques.strided import THREADS, with_parameter
from warpwright.domains.cuda.techniques.wide import WIDTH, below, wide
from warpwright.domains.cuda.unit import Launch, Unit
from warpwright.domains.cuda.write import raw
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, If, Stmt
from warpwright.errors import NotApplicable
from warpwright.space import Traits

EACH = (16, 4)
MOST_BLOCKS = 1056


@dataclass(frozen=True)
class Tree:
    """A kernel that ends in a tree: `index; s[t] = value; tree; if (t == 0) atomicAdd(place, s[0])`."""

    unit: Unit
    function: ir.Function
    array: ir.Var
    index: Declare
    between: tuple[Stmt, ...]
    """Declarations beside index and array."""
    value: Expr
    place: Expr
    """Where the block's sum goes."""
    scaled: Callable[[Expr], Expr]
    """What of a sum is added there: itself, or a multiple of it."""


class ShuffleTree:
    """A tree in shared memory that ends in one atomic -> sums in registers over several elements, then shuffles."""

    name = "shuffle_tree"
    traits = Traits("S", tried_first=True)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the numbers of elements for each kernel of that kind."""
        for kernel, _ in plan.matching(tree):
            if _goes_wide(plan, kernel):
                yield Action(self.name, kernel, (("each", EACH[0]), ("wide", WIDTH)))
            yield from (Action(self.name, kernel, (("each", each),)) for each in EACH)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text without the tree; `wide`: elements are read as vectors of so many."""
        params = dict(action.params)
        each, width = int(params.get("each", 0)), int(params.get("wide", 1))
        expect(each in EACH and width in (1, WIDTH), f"each of {EACH}, wide 1 or {WIDTH}", f"{each} and {width}")
        matched = tree(plan, action.at)
        kernel = matched.unit.kernels[action.at]
        kind = matched.array.type
        call = helpers.reducer("block", "sum", kind)
        var = matched.index.var
        turn: list[Stmt] = [
            Declare(var, Expr("other", (f"({var.type})ww_index",))),
            *matched.between,
            Evaluate(Expr("other", ("ww_own += ", ir.paren(matched.value)))),
        ]
        init = raw("long long ww_index = (long long)blockIdx.x * blockDim.x + threadIdx.x")
        step = Expr("other", ("ww_index += (long long)gridDim.x * blockDim.x",))
        each_alone = [For((init,), Expr("other", ("ww_index < ww_threads",)), step, tuple(turn), pragma="unroll 4")]
        share = matched.scaled(Expr("other", ("ww_own",)))
        body: list[Stmt] = [
            raw(f"{kind} ww_own = 0;"),
            *(_by_vectors(matched) if width == WIDTH else each_alone),
            raw(f"ww_own = {call}(ww_own);"),
            If(Expr("other", ("threadIdx.x == 0",)), (Evaluate(Expr("other", ("atomicAdd(", matched.place, ", ", share, ")"))),)),
        ]
        head = with_parameter(matched.unit.text[kernel.start : kernel.head_end], "long long ww_threads")
        changes = [Edit(kernel.start, kernel.end, write.kernel(head, matched.function, body))]
        for launch in matched.unit.launches_of(action.at):
            grid, block, *rest = launch.configuration
            threads = f"ww_threads({grid}, {block})"
            config = [f"dim3(ww_fewer({threads}, {THREADS}, {each}, {MOST_BLOCKS}), ww_copies({grid}, {block}))", str(THREADS), *rest]
            changes.append(Edit(launch.start, launch.end, f"{launch.kernel}<<<{', '.join(config)}>>>({', '.join([*launch.arguments, threads])})"))
        return plan.then(helpers.with_helpers(matched.unit.changed(changes), {"threads", "fewer", "copies", call}), self.name, action.at)


def _goes_wide(plan: Plan, name: str) -> bool:
    try:
        _by_vectors(tree(plan, name))
    except NotApplicable:
        return False
    return True


def _by_vectors(matched: Tree) -> list[Stmt]:
    """Return the loops that gather a thread's own sum by vectors; raise NotApplicable for a value that is not zero beyond a bound."""
    value, between = matched.value, matched.between
    chosen = _chosen(value)
    if chosen is None:  # `d = i < n ? e : 0` in front, and a multiple of d as the value
        at = next((n for n, s in enumerate(between) if isinstance(s, Declare) and s.init is not None and _chosen(s.init) is not None), -1)
        one = between[at] if at >= 0 else None
        if not isinstance(one, Declare) or one.init is None or not _vanishes(value, one.var.key):
            raise NotApplicable("expected a value that is zero beyond a bound, saw another")
        chosen = _chosen(one.init)
        assert chosen is not None
        between = (*between[:at], replace(one, init=chosen[1]), *between[at + 1 :])
    else:
        value = chosen[1]
    end = below(chosen[0], matched.index.var.key, shape.closure(matched.between, {matched.index.var.key}))
    gather = Evaluate(Expr("other", ("ww_own += ", ir.paren(value))))
    return wide(matched.index.var, [*between, gather], matched.function).loop(end, 4)


_ZERO = re.compile(r"0|0\.0*f?|\.0+f?")


def _chosen(expr: Expr) -> tuple[Expr, Expr] | None:
    """Return c and e of `c ? e : 0`."""
    bare = ir.bare(expr)
    if bare.kind != "conditional" or len(bare.children) != 3:
        return None
    cond, inside, beyond = bare.children
    return (cond, inside) if _ZERO.fullmatch(ir.text_of(ir.bare(beyond))) else None


def _vanishes(value: Expr, key: int) -> bool:
    """Is a value zero where a variable is?"""
    bare = ir.bare(value)
    if bare.kind == "name":
        return bare.var == key
    return bare.kind == "binary" and bare.name == "*" and all(_vanishes(child, key) for child in bare.children)


def tree(plan: Plan, name: str) -> Tree:
    """Return a kernel's tree; raise NotApplicable for a kernel that is not of that form from beginning to end."""
    unit = plan.unit
    function = unit.functions.get(name)
    expect(function is not None and name in unit.kernels and bool(unit.launches_of(name)), f"a kernel {name} that is launched")
    assert function is not None
    declared: list[Declare] = []
    rest = list(function.body)
    while rest and isinstance(rest[0], Declare):
        declared.append(rest.pop(0))  # type: ignore[arg-type]
    arrays = [d.var for d in declared if d.var.space in ("shared", "dynamic")]
    expect(len(arrays) == 1 and arrays[0].type in helpers.TYPES and len(rest) in (4, 5), "one shared array, a store, a tree and one atomic")
    [array] = arrays
    store, meet, loop, *more, last = rest
    expect(_is_meeting(meet) and all(map(_is_meeting, more)), "a barrier in front of the tree, and nothing but one behind it")
    if not isinstance(last, If):
        raise NotApplicable("expected the first thread to add the sum, saw another statement")
    indices = [d for d in declared if d.init is not None and shape.axis_of(d.init) == "x"]
    expect(len(indices) == 1, "one index along x")
    thread = {d.var.key for d in declared if d.init is not None and ir.text_of(ir.bare(d.init)) == "threadIdx.x"}
    assign = ir.bare(store.expr) if isinstance(store, Evaluate) else None
    expect(assign is not None and assign.kind == "assign" and assign.name == "=", "a store into the array")
    assert assign is not None
    expect(_element(assign.children[0], array.key, thread) == "t", "a store at the thread's own place")
    halves = {_half(unit, launch) for launch in unit.launches_of(name)}
    expect(_is_tree(loop, array.key, thread, halves), "a tree of sums over the whole block")
    between = _between(declared, indices[0], array, thread)
    place, scaled = _place(last, array, thread, {var.key for var in function.parameters})
    return Tree(unit, function, array, indices[0], between, assign.children[1], place, scaled)


def _half(unit: Unit, launch: Launch) -> int:
    """Return half the threads of a launch's block, where it has one axis and a constant size; else 0."""
    sides = block_shape(unit, launch)
    return sides[0] // 2 if sides is not None and sides[1:] == (1, 1) and sides[0] % 2 == 0 else 0


def _between(declared: Sequence[Declare], index: Declare, array: ir.Var, thread: set[int]) -> tuple[Stmt, ...]:
    others = [d for d in declared if d is not index and d.var.key != array.key and d.var.key not in thread]
    for one in others:
        named = [n for n in one.init.walk() if n.kind == "name"] if one.init is not None else []
        asks = any(n.var in thread or n.name in shape.THREAD_WORDS for n in named)
        expect(one.var.space == "local" and not asks, "declarations that follow from the index")
    return tuple(others)


def _is_meeting(stmt: Stmt | None) -> bool:
    return isinstance(stmt, Evaluate) and ir.text_of(stmt.expr).replace(" ", "") == "__syncthreads()"


def _is_thread(expr: Expr, thread: set[int]) -> bool:
    bare = ir.bare(expr)
    return bare.var in thread if bare.kind == "name" else ir.text_of(bare) == "threadIdx.x"


def _element(expr: Expr, array: int, thread: set[int]) -> str:
    """Return the place in the array: t, t + half (as the name of half), or a number."""
    bare = ir.bare(expr)
    if bare.kind != "index" or ir.bare(bare.children[0]).var != array:
        return ""
    place = ir.bare(bare.children[1])
    if _is_thread(place, thread):
        return "t"
    if place.kind == "literal":
        return ir.text_of(place)
    if place.kind == "binary" and place.name == "+" and len(place.children) == 2:
        left, right = place.children
        other = right if _is_thread(left, thread) else left if _is_thread(right, thread) else None
        return f"t+{ir.text_of(ir.bare(other))}" if other is not None else ""
    return ""


def _is_tree(stmt: Stmt, array: int, thread: set[int], halves: set[int]) -> bool:
    """Is a loop `for (h = blockDim.x / 2; h > 0; h /= 2) { if (t < h) s[t] += s[t + h]; barrier; }`? `halves`: half the block, in each launch."""
    if not isinstance(stmt, For) or len(stmt.init) != 1 or not isinstance(first := stmt.init[0], Declare) or first.init is None:
        return False
    half = first.var.name
    start, cond = ir.text_of(first.init).replace(" ", ""), ir.text_of(stmt.cond).replace(" ", "") if stmt.cond else ""
    step = ir.text_of(stmt.step).replace(" ", "").replace("ww::by(1)", "1") if stmt.step else ""
    whole = re.fullmatch(r"\(?blockDim\.x\)?(/2|>>1|>>ww::by\(1\))", start) is not None or {start} == {str(half) for half in halves if half}
    if not whole or cond not in (f"{half}>0", f"{half}>=1", f"{half}!=0", half):
        return False
    if step not in (f"{half}/=2", f"{half}>>=1", f"{half}={half}/2", f"{half}={half}>>1") or len(stmt.body) != 2 or not _is_meeting(stmt.body[1]):
        return False
    branch = stmt.body[0]
    if not isinstance(branch, If) or branch.other or len(branch.then) != 1 or not isinstance(add := branch.then[0], Evaluate):
        return False
    cond_of = ir.bare(branch.cond)
    if cond_of.kind != "binary" or cond_of.name != "<" or not _is_thread(cond_of.children[0], thread):
        return False
    if ir.text_of(ir.bare(cond_of.children[1])) != half:
        return False
    assign = ir.bare(add.expr)
    if assign.kind != "assign" or assign.name != "+=":
        return False
    return _element(assign.children[0], array, thread) == "t" and _element(assign.children[1], array, thread) == f"t+{half}"


def _place(stmt: If, array: ir.Var, thread: set[int], parameters: set[int]) -> tuple[Expr, Callable[[Expr], Expr]]:
    """Return the address to which the first thread adds, and what of the sum it adds."""
    cond = ir.bare(stmt.cond)
    zero = cond.kind == "binary" and cond.name == "==" and _is_thread(cond.children[0], thread) and ir.text_of(ir.bare(cond.children[1])) == "0"
    expect(zero and len(stmt.then) == 1 and not stmt.other, "the first thread alone behind the tree")
    call = ir.bare(stmt.then[0].expr) if isinstance(stmt.then[0], Evaluate) else None
    expect(call is not None and call.kind == "call" and call.name == "atomicAdd" and len(call.children) == 3, "atomicAdd of the sum")
    assert call is not None
    core, scaled = multiple(call.children[2], parameters)
    expect(_element(core, array.key, thread) == "0", "the array's first element, or a multiple of it")
    address = call.children[1]
    same = not any(n.kind == "name" and (n.name in shape.THREAD_WORDS or n.var in thread) for n in address.walk())
    expect(same, "a place that is the same for all blocks")
    return address, scaled


def multiple(expr: Expr, parameters: set[int]) -> tuple[Expr, Callable[[Expr], Expr]]:
    """Return e of `e`, `e / n`, `e * a` and `a * e`, where the other side is made of parameters and the value is no integer; and the way back."""
    bare = ir.bare(expr)
    if bare.kind != "binary" or bare.name not in ("*", "/") or len(bare.children) != 2 or bare.type not in ("float", "double"):
        return expr, lambda e: e
    left, right = bare.children
    at = 0 if _uniform(right, parameters) else 1 if bare.name == "*" and _uniform(left, parameters) else -1
    if at < 0:
        return expr, lambda e: e
    core, inner = multiple(bare.children[at], parameters)
    return core, lambda e: bare.with_children([inner(e), right] if at == 0 else [left, inner(e)])


def _uniform(expr: Expr, parameters: set[int]) -> bool:
    plain = ("literal", "binary", "paren", "cast", "type")
    known = all(node.var in parameters if node.kind == "name" else node.kind in plain for node in expr.walk())
    return known and not any("*" in node.type for node in expr.walk())

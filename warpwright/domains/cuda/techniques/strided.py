"""Fewer threads that do more each: grid-stride loops, and what they allow: sums in registers, and counts in shared memory.

    i = index; if (i < n) body          ->   for (i = index; i < threads; i += all threads) if (i < n) body
    ... atomicAdd(total, v) ...         ->   ... sum += v ...; one atomicAdd a block
    ... atomicAdd(&bins[b], v) ...      ->   ... atomicAdd(&shared[b], v) ...; one atomicAdd a block and bin
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from warpwright.base import Action
from warpwright.domains.cuda import helpers, shape, write
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.shape import Plain, expect
from warpwright.domains.cuda.techniques.wide import WIDTH, wide_body
from warpwright.domains.cuda.unit import Launch
from warpwright.domains.cuda.write import raw
from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, If, Stmt
from warpwright.errors import NotApplicable
from warpwright.space import Traits

THREADS = 256
MOST_BLOCKS = 2112
"""16 blocks for each of 132 multiprocessors: more are a tail, fewer leave memory idle."""
SHARED_BYTES = 48 * 1024


def one_axis(plan: Plan, name: str) -> Plain:
    """Return a plain kernel with one index, along x; raise NotApplicable for another."""
    plain = shape.plain(plan, name)
    expect(plain is not None and list(plain.indices.values()) == ["x"], f"{name} with one index along x, and threads that know nothing else")
    assert plain is not None
    return plain


def strided(plain: Plain, body: Sequence[Stmt], unroll: int) -> list[Stmt]:
    """Return the loop in which a thread goes through its indices: prelude, guard and `body` for each. The count is the parameter ww_threads."""
    [index] = plain.indices
    own = replace(plain.var(index))
    inner: list[Stmt] = []
    for stmt in plain.prelude:
        if isinstance(stmt, Declare) and stmt.var.key == index:
            inner.append(replace(stmt, init=Expr("other", (f"({own.type})ww_index",))))
        else:
            inner.append(stmt)
    inner += [If(plain.guard, tuple(body))] if plain.guard is not None else list(body)
    init = raw("long long ww_index = (long long)blockIdx.x * blockDim.x + threadIdx.x")
    cond, step = Expr("other", ("ww_index < ww_threads",)), Expr("other", ("ww_index += (long long)gridDim.x * blockDim.x",))
    return [ir.For((init,), cond, step, tuple(inner), pragma=f"unroll {unroll}" if unroll > 1 else "")]


def with_parameter(head: str, parameter: str) -> str:
    """Return a kernel's head with one parameter more."""
    head = head.rstrip()
    bare = head[: head.rindex(")")].rstrip()
    return f"{bare}{'' if bare.endswith('(') else ', '}{parameter})"


def fewer(plain: Plain, launch: Launch, each: int, shared: str = "", most: int = MOST_BLOCKS) -> str:
    """Return a launch's text with THREADS a block, and so few blocks that a thread has `each` indices or more."""
    grid, block, *rest = launch.configuration
    threads = f"ww_threads({grid}, {block})"
    config = [f"dim3(ww_fewer({threads}, {THREADS}, {each}, {most}), ww_copies({grid}, {block}))", str(THREADS)]
    if shared or rest:
        config += [shared or rest[0], *rest[1:]]
    arguments = ", ".join([*launch.arguments, threads])
    return f"{launch.kernel}<<<{', '.join(config)}>>>({arguments})"


class Coarsen:
    """One index a thread -> a grid-stride loop over several."""

    name = "coarsen"
    traits = Traits("S")
    EACH = (2, 4)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the numbers of indices for each kernel with one."""
        for kernel, _ in plan.matching(one_axis):
            yield from (Action(self.name, kernel, (("each", each),)) for each in self.EACH)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with the loop."""
        plain, each = one_axis(plan, action.at), int(dict(action.params).get("each", 0))
        expect(each in self.EACH, f"each of {self.EACH}", str(each))
        head = with_parameter(plain.head, "long long ww_threads")
        text = write.kernel(head, plain.function, strided(plain, plain.body, each))
        changes = [Edit(plain.kernel.start, plain.kernel.end, text)]
        changes += [Edit(one.start, one.end, fewer(plain, one, each)) for one in plain.unit.launches_of(action.at)]
        return plan.then(helpers.with_helpers(plain.unit.changed(changes), {"threads", "fewer", "copies"}), self.name, action.at)


@dataclass(frozen=True)
class Atomic:
    """`atomicAdd(address, value);` as a statement."""

    operation: str
    address: Expr
    value: Expr
    kind: str
    """Type of what is added to."""


_OPERATIONS = {"atomicAdd": "sum", "atomicMax": "max", "atomicMin": "min"}
_LEAST = {"max": {"int": "(-2147483647 - 1)", "unsigned int": "0u"}, "min": {"int": "2147483647", "unsigned int": "0xffffffffu"}}


def atomic(stmt: Stmt) -> Atomic | None:
    """Return the atomic that a statement is, where its old value is not used."""
    call = ir.bare(stmt.expr) if isinstance(stmt, Evaluate) else None
    if call is None or call.kind != "call" or call.name not in _OPERATIONS or len(call.children) != 3:
        return None
    _, address, value = call.children
    kind = re.sub(r"\s*\*\s*(__restrict(__)?)?$", "", address.type).replace("const", "").strip()
    return Atomic(_OPERATIONS[call.name], address, value, kind) if kind in helpers.TYPES else None


def replaced(stmts: Sequence[Stmt], change: dict[int, list[Stmt]]) -> tuple[Stmt, ...]:
    """Return statements with those whose id is in `change` replaced."""
    rebuilt: list[Stmt] = []
    for stmt in stmts:
        if id(stmt) in change:
            rebuilt += change[id(stmt)]
        elif isinstance(stmt, If):
            rebuilt.append(replace(stmt, then=replaced(stmt.then, change), other=replaced(stmt.other, change)))
        elif isinstance(stmt, ir.For | ir.Block):
            rebuilt.append(replace(stmt, body=replaced(stmt.body, change)))
        else:
            rebuilt.append(stmt)
    return tuple(rebuilt)


class GatherAtomics:
    """Every thread adds to one place -> a thread sums up what it has, a block joins that by shuffles, and adds once."""

    name = "gather_atomics"
    traits = Traits("S", tried_first=True)
    EACH = (16, 4)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the numbers of indices for each kernel with atomics on places that are the same for all threads."""
        for kernel, (plain, _) in plan.matching(_same_place):
            if _goes_wide(plain):
                yield Action(self.name, kernel, (("each", self.EACH[0]), ("wide", WIDTH)))
            yield from (Action(self.name, kernel, (("each", each),)) for each in self.EACH)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with one atomic a block; `wide`: elements are read as vectors of so many."""
        params = dict(action.params)
        each, width = int(params.get("each", 0)), int(params.get("wide", 1))
        expect(each in self.EACH and width in (1, WIDTH), f"each of {self.EACH}, wide 1 or {WIDTH}", f"{each} and {width}")
        plain, atomics = _same_place(plan, action.at)
        before: list[Stmt] = []
        after: list[Stmt] = []
        needed = {"threads", "fewer", "copies"}
        change: dict[int, list[Stmt]] = {}
        for number, (stmt, one) in enumerate(atomics):
            name, call = f"ww_own_{number}", helpers.reducer("block", one.operation, one.kind)
            needed.add(call)
            before.append(raw(f"{one.kind} {name} = {_LEAST.get(one.operation, {}).get(one.kind, '0')};"))
            value = Expr("other", (f"({one.kind})(", one.value, ")"))
            if one.operation == "sum":
                change[id(stmt)] = [Evaluate(Expr("other", (f"{name} += ", value)))]
            else:
                change[id(stmt)] = [Evaluate(Expr("other", (f"{name} = {one.operation}({name}, ", value, ")")))]
            function = {"sum": "atomicAdd", "max": "atomicMax", "min": "atomicMin"}[one.operation]
            after.append(raw(f"{name} = {call}({name});"))
            after.append(If(Expr("other", ("threadIdx.x == 0",)), (Evaluate(Expr("other", (f"{function}(", one.address, f", {name})"))),)))
        inner = replaced(plain.body, change)
        body = [*before, *(wide_body(plain, inner, 4) if width == WIDTH else strided(plain, inner, 4)), *after]
        text = write.kernel(with_parameter(plain.head, "long long ww_threads"), plain.function, body)
        changes = [Edit(plain.kernel.start, plain.kernel.end, text)]
        changes += [Edit(one.start, one.end, fewer(plain, one, each)) for one in plain.unit.launches_of(action.at)]
        return plan.then(helpers.with_helpers(plain.unit.changed(changes), needed), self.name, action.at)


def _goes_wide(plain: Plain) -> bool:
    """Can a kernel's elements be read as vectors?"""
    try:
        wide_body(plain, plain.body, 1)
    except NotApplicable:
        return False
    return True


def _same_place(plan: Plan, name: str) -> tuple[Plain, list[tuple[Stmt, Atomic]]]:
    """Return a kernel and its atomics on places that parameters alone give, which nothing else in it reads or writes."""
    plain = one_axis(plan, name)
    parameters = {var.key for var in plain.function.parameters}
    changed = shape.changed_by(plain.all)
    atomics: list[tuple[Stmt, Atomic]] = []
    for stmt in ir.walk(plain.body):
        one = atomic(stmt)
        if one is not None and one.address.keys <= parameters - changed and one.address.keys:
            if one.operation != "sum" and one.kind not in _LEAST[one.operation]:
                continue
            atomics.append((stmt, one))
    expect(bool(atomics), "an atomic on a place that is the same for all threads")
    _expect_untouched(plain, [one for _, one in atomics])
    return plain, atomics


def _expect_untouched(plain: Plain, atomics: Sequence[Atomic]) -> None:
    """What is added to is read and written by these atomics alone."""
    inside = {id(node) for one in atomics for node in one.address.walk()}
    arrays = {node.var for one in atomics for node in one.address.walk() if node.kind == "name" and "*" in node.type}
    for expr in ir.expressions(plain.all):
        expect(not (expr.kind == "name" and expr.var in arrays and id(expr) not in inside), "a place that only the atomics touch")


class Privatise:
    """Atomics on a small table in memory -> on a copy of it in shared memory, which a block adds to the table once.

    The table's size is what the host text fills with zeros before the launch; a table that is too large keeps the kernel as it was.
    """

    name = "privatise"
    traits = Traits("S", tried_first=True)
    EACH = (16, 64)

    def sites(self, plan: Plan) -> Iterator[Action]:
        """Yield the numbers of indices for each kernel with atomics on a table that the host fills with zeros."""
        for kernel, _ in plan.matching(_table):
            if f"{kernel}_private" in plan.unit.kernels:
                continue
            if _goes_wide(one_axis(plan, kernel)):
                yield from (Action(self.name, kernel, (("each", each), ("wide", WIDTH))) for each in self.EACH)
            yield from (Action(self.name, kernel, (("each", each),)) for each in self.EACH)

    def apply(self, plan: Plan, action: Action) -> Plan:
        """Return the text with a second kernel, and launches that choose; `wide`: elements are read as vectors of so many."""
        params = dict(action.params)
        each, width = int(params.get("each", 0)), int(params.get("wide", 1))
        expect(each in self.EACH and width in (1, WIDTH), f"each of {self.EACH}, wide 1 or {WIDTH}", f"{each} and {width}")
        plain, array, atomics, sizes = _table(plan, action.at)
        expect(f"{action.at}_private" not in plain.unit.kernels, "a kernel without a private form")
        kind = atomics[0][1].kind
        change: dict[int, list[Stmt]] = {}
        for stmt, one in atomics:
            place = _place(one.address)
            assert place is not None
            beyond = Evaluate(Expr("other", (f"atomicAdd({array.name} + ww_bin, ({kind})(", one.value, "))")))
            within = Evaluate(Expr("other", (f"atomicAdd(&ww_own[ww_bin], ({kind})(", one.value, "))")))
            chosen = If(Expr("other", ("(unsigned long long)ww_bin < (unsigned long long)ww_bins",)), (within,), (beyond,))
            change[id(stmt)] = [ir.Block((Evaluate(Expr("other", ("const long long ww_bin = ", place))), chosen))]
        entry = "for (int ww_bin = threadIdx.x; ww_bin < ww_bins; ww_bin += blockDim.x)"
        inner = replaced(plain.body, change)
        body: list[Stmt] = [
            raw(f"extern __shared__ {kind} ww_own[];"),
            raw(f"{entry} ww_own[ww_bin] = 0;"),
            raw("__syncthreads();"),
            *(wide_body(plain, inner, 2, ahead=True) if width == WIDTH else strided(plain, inner, 4)),
            raw("__syncthreads();"),
            raw(f"{entry} {{ {kind} ww_count = ww_own[ww_bin]; if (ww_count != 0) atomicAdd(&{array.name}[ww_bin], ww_count); }}"),
        ]
        own = f"{action.at}_private"
        head = with_parameter(plain.head, "long long ww_threads, int ww_bins")
        head = re.sub(rf"\b{action.at}(\s*\()", rf"{own}\1", head)
        text = write.kernel(head, plain.function, body)
        changes = [Edit(plain.kernel.end, plain.kernel.end, f"\n\n{text}\n")]
        for launch, size in zip(plain.unit.launches_of(action.at), sizes, strict=True):
            old = plain.unit.text[launch.start : launch.end]
            most = MOST_BLOCKS if each == self.EACH[0] else MOST_BLOCKS // 2  # fewer blocks add fewer tables to the one in memory
            new = fewer(plain, replace(launch, kernel=own), each, f"(size_t)({size})", most)
            new = f"{new[:-1]}, (int)(({size}) / sizeof({kind})))"
            changes.append(Edit(launch.start, launch.end, f"if ((size_t)({size}) <= {SHARED_BYTES}) {{ {new}; }} else {old}"))
        return plan.then(helpers.with_helpers(plain.unit.changed(changes), {"threads", "fewer", "copies"}), self.name, action.at)


def _table(plan: Plan, name: str) -> tuple[Plain, ir.Var, list[tuple[Stmt, Atomic]], list[str]]:
    plain = one_axis(plan, name)
    parameters = {var.key: var for var in plain.function.parameters}
    atomics: list[tuple[Stmt, Atomic]] = []
    arrays: set[int] = set()
    for stmt in ir.walk(plain.body):
        one = atomic(stmt)
        if one is None or one.operation != "sum" or one.address.keys <= parameters.keys():
            continue
        root = _array(one.address)
        if root is not None and root in parameters:
            atomics.append((stmt, one))
            arrays.add(root)
    expect(len(arrays) == 1 and bool(atomics), "atomics on one table")
    _expect_untouched_table(plain, arrays, atomics)
    [key] = arrays
    at = [var.key for var in plain.function.parameters].index(key)
    sizes = [_filled(plain.unit.text, launch, launch.arguments[at]) for launch in plain.unit.launches_of(name)]
    return plain, parameters[key], atomics, sizes


def _expect_untouched_table(plain: Plain, arrays: set[int], atomics: Sequence[tuple[Stmt, Atomic]]) -> None:
    inside = {id(node) for _, one in atomics for node in one.address.walk()}
    for expr in ir.expressions(plain.all):
        expect(not (expr.kind == "name" and expr.var in arrays and id(expr) not in inside), "a table that only the atomics touch")


def _place(address: Expr) -> Expr | None:
    """Return the index in `&table[index]` or `table + index`."""
    bare = ir.bare(address)
    if bare.kind == "unary" and bare.name == "&":
        inner = ir.bare(bare.children[0])
        return inner.children[1] if inner.kind == "index" and ir.bare(inner.children[0]).kind == "name" else None
    if bare.kind == "binary" and bare.name == "+" and ir.bare(bare.children[0]).kind == "name" and "*" in bare.children[0].type:
        return bare.children[1]
    return None


def _array(address: Expr) -> int | None:
    if _place(address) is None:
        return None
    bare = ir.bare(address)
    inner = ir.bare(bare.children[0])
    return ir.bare(inner.children[0]).var if bare.kind == "unary" else inner.var


def _filled(text: str, launch: Launch, argument: str) -> str:
    """Return the bytes that the host fills with zeros before a launch in the memory that is an argument of it."""
    from warpwright.domains.transpile.frontend import scan

    tokens = scan.tokens(text[: launch.start])
    for at in range(len(tokens) - 1, -1, -1):
        if tokens[at].text in ("cudaMemset", "cudaMemsetAsync") and tokens[at + 1].text == "(":
            inside = text[tokens[at + 1].end : tokens[scan.matching(tokens, at + 1)].start]
            parts = scan.split_commas(inside)
            if len(parts) >= 3 and parts[0] == argument and parts[1] == "0":
                return parts[2]
        if tokens[at].text == "__global__":
            break
    raise NotApplicable(f"expected cudaMemset({argument}, 0, bytes) before the launch of {launch.kernel}, saw none")

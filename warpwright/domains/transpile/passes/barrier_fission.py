"""Cut a kernel at its barriers: a tree of regions (a loop over the threads each) under control that all threads share.

Values that live in more than one region are kept in per-thread arrays, recomputed where that is cheap, or stay scalar
when they are uniform (MCUDA's deep fission, with the uniform and the cheap ones taken out).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import uniform
from warpwright.domains.transpile.analysis.arrays.own_places import own_places
from warpwright.domains.transpile.analysis.callees import NO_CALLEES, Callees
from warpwright.domains.transpile.analysis.placement import check_groups, needed_scalars, touches
from warpwright.domains.transpile.analysis.regions import (  # fmt: skip
    Branch,
    CollectiveNode,
    Leave,
    Loop,
    Masked,
    MaskedLoop,
    Node,
    Plan,
    Region,
    Single,
    Sync,
    WarpGroup,
    changed,
    children,
    contains,
    jumps,
    leaves,
    meets,
    node_stmts,
    used,
    walk,
)
from warpwright.domains.transpile.analysis.uniform import Facts
from warpwright.domains.transpile.errors import Demote, DoesNotApply
from warpwright.domains.transpile.integers import RANK, THREADS
from warpwright.domains.transpile.ir import Barrier, Block, Collective, Declare, Evaluate, Expr, For, If, Jump, Raw, Return, Stmt, Var
from warpwright.domains.transpile.passes import early_returns
from warpwright.domains.transpile.passes.strides import Strides

RECOMPUTE_NODES = 24
"""A value is recomputed in each region when its expression has at most this many nodes and reads no memory."""


def plan(body: Sequence[Stmt], variables: dict[int, Var], callees: Callees = NO_CALLEES, stride: bool = False, recompute: int = -1) -> Plan:
    """Return the plan of a kernel in normal form.

    stride: put the steps of strided loops outside of the loop over threads; recompute: instead of RECOMPUTE_NODES, where not negative.
    """
    forced: set[int] = set()
    scalars: set[int] = set()
    stride = stride and not any(early_returns.returns(stmt) for stmt in body)
    for _ in range(200):
        facts = uniform.analyse(body, variables, frozenset(forced), callees.impure, callees.references)
        scalars -= facts.varying
        builder = _Builder(facts, dict(variables), scalars, callees, stride, recompute if recompute >= 0 else RECOMPUTE_NODES)
        try:
            nodes = builder.group(builder.schedule(body, False, False))
            grown = scalars | needed_scalars(nodes, facts, builder.variables)
            check_groups(nodes, grown, facts, builder.variables)
        except Demote as demote:
            forced |= demote.keys
            scalars -= demote.keys
            continue
        if grown == scalars:
            _check_returns(nodes)
            made = _placed(nodes, facts, builder, scalars)
            made.own = own_places(body, made)
            return made
        scalars = grown
    raise DoesNotApply(0, "the analysis of uniform values does not settle")


def _check_returns(nodes: Sequence[Node], followed: bool = False) -> None:
    """Raise DoesNotApply where a return is not in the last loop over threads: its thread would take part in those that follow."""
    for index, node in enumerate(nodes):
        more = followed or index + 1 < len(nodes)
        if isinstance(node, Region) and more and (line := next((s.line for s in node.stmts if early_returns.returns(s)), None)) is not None:
            raise DoesNotApply(line, "a return that other loops over threads follow")
        if isinstance(node, Branch):
            _check_returns(node.then, more)
            _check_returns(node.other, more)
        else:
            _check_returns(children(node), more or isinstance(node, Loop | MaskedLoop | WarpGroup))


class _Builder(Strides):
    """Builds the tree of a kernel."""

    # --- the tree -----------------------------------------------------------------------------------------------------------------

    def schedule(self, stmts: Sequence[Stmt], in_loop: bool, masked: bool) -> list[Node]:
        nodes: list[Node] = []
        for stmt in stmts:
            for node in self.nodes(stmt, in_loop, masked):
                last = nodes[-1] if nodes else None
                if isinstance(node, Region) and isinstance(last, Region):
                    last.stmts += node.stmts
                else:
                    nodes.append(node)
        return nodes

    def nodes(self, stmt: Stmt, in_loop: bool, masked: bool) -> list[Node]:
        if isinstance(stmt, Declare) and stmt.var.space in ("shared", "dynamic"):
            self.hoisted.append(stmt)
            return []
        if isinstance(stmt, Declare) and (stmt.var.space == "constant" or self.is_constant(stmt)):
            self.hoisted.append(stmt)
            return []
        if isinstance(stmt, Raw) and stmt.expr.kind == "type":
            self.hoisted.append(stmt)
            return []
        if isinstance(stmt, Barrier):
            return [Sync(stmt.scope, stmt.line)]
        if isinstance(stmt, Collective):
            return [CollectiveNode(stmt)]
        if contains(stmt, (Barrier, Collective)) or (in_loop and jumps(stmt)):
            return self.structure(stmt, in_loop, masked)
        if self.is_single(stmt, masked):
            return [Single(stmt)]
        if self.stride and isinstance(stmt, For) and (loops := self.strided(stmt)) is not None:
            return loops
        return [Region([stmt])]

    def structure(self, stmt: Stmt, in_loop: bool, masked: bool) -> list[Node]:
        if isinstance(stmt, Block):
            return self.schedule(stmt.body, in_loop, masked)
        if isinstance(stmt, If):
            return self.branch(stmt, in_loop, masked)
        if isinstance(stmt, For):
            return self.loop(stmt, masked)
        if isinstance(stmt, Jump):
            if masked:
                raise DoesNotApply(stmt.line, f"a {stmt.word} that only some threads take, in a loop with a barrier")
            return [Leave(stmt.word)]
        raise DoesNotApply(stmt.line, f"a barrier inside a {type(stmt).__name__.lower()}")

    def branch(self, stmt: If, in_loop: bool, masked: bool) -> list[Node]:
        if stmt.constexpr or not self.varies(stmt.cond):
            if masked and self.loads(stmt.cond):
                pass  # a load that no thread may do: the address is uniform, and some thread is in the branch or nothing is stored
            return [Branch(stmt.cond, self.schedule(stmt.then, in_loop, masked), self.schedule(stmt.other, in_loop, masked), stmt)]
        if in_loop and jumps(stmt):
            raise DoesNotApply(stmt.line, "a break or continue that only some threads take, in a loop with a barrier")
        before: list[Node] = []
        cond = stmt.cond
        if not self.is_stable(cond):
            flag = self.flag(stmt.line)
            before.append(Region([Declare(flag, cond, False, stmt.line)]))
            cond = ir.name_of(flag, stmt.line)
        then, other = self.schedule(stmt.then, False, True), self.schedule(stmt.other, False, True)
        if _waits(then) and _waits(other) and self.asks_for_the_thread(stmt.cond):
            raise DoesNotApply(stmt.line, "threads that part here wait in both branches: which of their barriers meet, only a run shows")
        nodes: list[Node] = [*before, Masked(cond, then, stmt.exits, stmt.line)]
        if stmt.other:
            negated = Expr("unary", ("!", Expr("paren", ("(", cond, ")"), stmt.line)), stmt.line, "!", None, "bool")
            nodes.append(Masked(negated, other, False, stmt.line))
        return nodes

    def asks_for_the_thread(self, expr: Expr, depth: int = 0) -> bool:
        """Say whether the thread's number is in an expression, or in what its variables are declared as."""
        inits = [d.init for n in expr.walk() if n.var is not None and (d := self.facts.declared.get(n.var)) is not None and d.init is not None]
        return any(n.name == "threadIdx" for n in expr.walk()) or (depth < 8 and any(self.asks_for_the_thread(init, depth + 1) for init in inits))

    def flag(self, line: int) -> Var:
        names = {v.name for v in self.variables.values()}
        name = next(n for i in range(1, 10_000) if (n := f"taken_{i}") not in names)
        var = Var(self.fresh_key, name, "bool", (), "local", line)
        self.fresh_key -= 1
        self.variables[var.key] = var
        self.facts.varying.add(var.key)
        self.facts.declared[var.key] = Declare(var, None, False, line)
        self.facts.assigned.setdefault(var.key, [])
        return var

    def loop(self, stmt: For, masked: bool) -> list[Node]:
        if stmt.cond is not None and self.varies(stmt.cond):
            return self.masked_loop(stmt)
        steps = _commas(stmt.step)
        uniform_steps = [s for s in steps if self.only_scalars(Evaluate(s))]
        rest: list[Stmt] = [Evaluate(s, stmt.line) for s in steps if s not in uniform_steps]
        own_continue = any(isinstance(s, Jump) and s.word == "continue" for b in stmt.body for s in ir.walk((b,)))
        if rest and own_continue:
            raise DoesNotApply(stmt.line, "`continue` in a loop with a barrier whose step differs between threads")
        init = [s for s in stmt.init if (isinstance(s, Declare) and s.var.key not in self.facts.varying) or self.only_scalars(s)]
        before: list[Node] = [Region([s]) for s in stmt.init if s not in init]
        body = self.schedule([*stmt.body, *rest], True, masked)
        step = uniform_steps[0] if len(uniform_steps) == 1 else (Expr("other", tuple(_joined(uniform_steps)), stmt.line) if uniform_steps else None)
        return [*before, Loop(list(init), stmt.cond, step, body, stmt.line)]

    def masked_loop(self, stmt: For) -> list[Node]:
        if any(jumps(s) for s in stmt.body):
            raise DoesNotApply(stmt.line, "a break or continue in a loop with a barrier that threads leave at different times")
        assert stmt.cond is not None
        flag = self.flag(stmt.line)
        before = self.schedule([*stmt.init, Declare(flag, Expr("literal", ("true",), stmt.line), False, stmt.line)], False, True)
        steps: list[Stmt] = [Evaluate(stmt.step, stmt.line)] if stmt.step is not None else []
        return [*before, MaskedLoop(flag, stmt.cond, self.schedule([*stmt.body, *steps], False, True), stmt.line)]

    # --- questions ----------------------------------------------------------------------------------------------------------------

    def is_constant(self, stmt: Declare) -> bool:
        """Say whether a declaration is a constant that needs nothing but other constants: it may size an array."""
        if not stmt.var.const or stmt.init is None or stmt.var.dims or "*" in stmt.var.type or stmt.var.reference:
            return False
        known = {s.var.key for s in self.hoisted if isinstance(s, Declare) and s.var.space not in ("shared", "dynamic")}
        return all(
            n.kind in ("literal", "binary", "paren", "type", "cast")
            or (n.kind == "name" and ((n.var is None and n.name not in BUILTINS) or n.var in known))
            for n in stmt.init.walk()
        )

    def constants(self) -> set[int]:
        return {s.var.key for s in self.hoisted if isinstance(s, Declare)}

    def is_single(self, stmt: Stmt, masked: bool) -> bool:
        """Say whether the statement runs once for the block; one that mixes uniform and varying effects keeps both for each thread."""
        touched = {k for k in changed(stmt) if k in self.scalars}
        if not touched:
            return False
        if not self.only_scalars(stmt) or (masked and any(self.loads(e) for s in ir.walk((stmt,)) for e in ir.own_expressions(s))):
            raise Demote(touched)
        return True

    def only_scalars(self, stmt: Stmt) -> bool:
        """Say whether the statement changes nothing but scalars and is the same for all threads."""
        if contains(stmt, (Raw, Return)) or _stores(stmt, self.variables, self.callees):
            return False
        if any(self.varies(e) for s in ir.walk((stmt,)) for e in ir.own_expressions(s)):
            return False
        declared = {s.var.key for s in ir.walk((stmt,)) if isinstance(s, Declare)} if not isinstance(stmt, Declare) else set()
        return all(k in self.scalars or k in declared for k in changed(stmt))

    # --- warps --------------------------------------------------------------------------------------------------------------------

    def group(self, nodes: list[Node]) -> list[Node]:
        """Put runs of nodes in which warps meet, but the block does not, under a loop over warps."""
        out: list[Node] = []
        run: list[Node] = []

        def flush() -> None:
            first = next((i for i, n in enumerate(run) if meets(n, "warp")), None)
            if first is None:
                out.extend(run)
            else:
                last = max(i for i, n in enumerate(run) if meets(n, "warp"))
                low, high = self.around(run, first, last)
                out.extend(run[:low])
                out.append(WarpGroup(run[low:high], next(self.numbers)))
                out.extend(run[high:])
            run.clear()

        for node in nodes:
            if meets(node, "block") or isinstance(node, Leave) or (isinstance(node, Branch) and leaves(node)):
                flush()
                out.append(self.inner(node))
            else:
                run.append(node)
        flush()
        return out

    def around(self, run: list[Node], first: int, last: int) -> tuple[int, int]:
        """Return which part of the run the group takes: its offers before the first meeting, the answers after the last one."""
        low = first
        while low > 0 and isinstance(run[low - 1], Region) and isinstance(run[low], Sync | CollectiveNode):
            region = run[low - 1]
            assert isinstance(region, Region)
            offers = [i for i, s in enumerate(region.stmts) if isinstance(s, Declare) and s.var.space == "lanes"]
            if not offers:
                break
            if offers[0] > 0:  # what stands before the first offer is a loop over all threads
                run[low - 1 : low] = [Region(region.stmts[: offers[0]]), Region(region.stmts[offers[0] :])]
                first, last = first + 1, last + 1
                low += 1
            low -= 1
            break
        high = last + 1
        if high < len(run) and isinstance(run[high], Region) and isinstance(run[last], Sync | CollectiveNode):
            region = run[high]
            assert isinstance(region, Region)
            answers = [i for i, s in enumerate(region.stmts) if _reads_warp(s, self.variables)]
            if answers:
                if answers[-1] + 1 < len(region.stmts):
                    run[high : high + 1] = [Region(region.stmts[: answers[-1] + 1]), Region(region.stmts[answers[-1] + 1 :])]
                high += 1
        while low > 0 and _is_straight(run[low - 1]):
            low -= 1
        while high < len(run) and _is_straight(run[high]):
            high += 1
        return low, high

    def inner(self, node: Node) -> Node:
        if isinstance(node, Branch):
            return replace(node, then=self.group(node.then), other=self.group(node.other))
        if isinstance(node, Loop | Masked | MaskedLoop):
            return replace(node, body=self.group(node.body))
        return node


BUILTINS = frozenset(["threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"])


def _is_straight(node: Node) -> bool:
    """Say whether a node is a region without loops: beside a meeting of warps it runs warp by warp, and `if (lane == 0)` for one lane."""
    return isinstance(node, Region) and not any(isinstance(s, For | ir.DoWhile) for s in ir.walk(tuple(node.stmts)))


def _reads_warp(stmt: Stmt, variables: Mapping[int, Var]) -> bool:
    return any(
        e.kind == "lane" or (e.var is not None and e.var in variables and variables[e.var].space in ("lanes", "warp"))
        for e in ir.expressions((stmt,))
    )


def _commas(step: Expr | None) -> list[Expr]:
    if step is None:
        return []
    if step.kind == "binary" and step.name == ",":
        return [one for child in step.children for one in _commas(child)]
    return [step]


def _joined(exprs: Sequence[Expr]) -> Iterator[str | Expr]:
    for index, expr in enumerate(exprs):
        if index:
            yield ", "
        yield expr


def _stores(stmt: Stmt, variables: Mapping[int, Var], callees: Callees) -> bool:
    """Say whether the statement may write to memory: anything but a local variable."""
    for expr in ir.expressions((stmt,)):
        changed = ir.assigned(expr)
        if changed is not None:
            root = ir.target(changed)
            if root is None or root.var is None or root.var not in variables or variables[root.var].space != "local" or changed.kind == "index":
                return True
        if (
            expr.kind == "call"
            and (expr.name not in uniform.PURE_CALLS or expr.name in callees.impure)
            and not expr.name.startswith(("make_", "operator"))
        ):
            return True
    return False


def _placed(nodes: list[Node], facts: Facts, builder: _Builder, scalars: set[int]) -> Plan:
    regions, groups, _ = touches(nodes)
    result = Plan(nodes, facts, builder.variables, builder.hoisted, scalars, set(), set(), set(), steps=builder.steps)
    declared = [s.var.key for n, _ in walk(nodes) for s in ir.walk(tuple(node_stmts(n))) if isinstance(s, Declare)]
    result.order = {key: position for position, key in enumerate(dict.fromkeys([*declared, *builder.variables]))}
    constants = builder.constants()
    for key, var in builder.variables.items():
        if var.space == "lanes":
            result.lane_arrays.add(key)
        if var.space != "local" or key in scalars or key in constants or len(regions.get(key, ())) < 2:
            continue
        if _recomputable(key, builder):
            result.recomputed.add(key)
        elif var.reference or (var.type == "auto" or "auto" in var.type.split()):
            raise DoesNotApply(var.line, f"{var.name} is a reference or of a deduced type and lives across a barrier")
        elif 0 not in groups[key] and len(groups[key]) == 1:
            result.lane_arrays.add(key)
        else:
            result.arrays.add(key)
    _close_recomputed(result, regions, builder)
    return result


def _recomputable(key: int, builder: _Builder, depth: int = 0) -> bool:
    """Say whether a variable's initialiser gives the same value wherever it is computed, cheaply."""
    declaration = builder.facts.declared.get(key)
    if declaration is None or declaration.init is None or declaration.direct or not builder.is_fixed(key) or depth > 12:
        return False
    if builder.variables[key].reference:
        return _stable_place(declaration.init, builder, depth)
    if sum(1 for _ in declaration.init.walk()) > builder.recompute and _nodes(declaration.init) > builder.recompute:
        return False
    for node in declaration.init.walk():
        if node.kind in ("index", "lane", "lambda", "assign", "call", "other") or (node.kind == "unary" and node.name in ("*", "++", "--")):  # noqa: SIM102
            if not (node.kind == "call" and node.name in ("min", "max", "dim3", "abs")) and not (node.kind == "other" and not node.children):
                return False
        if node.kind == "name" and node.var is not None and not _available(node.var, builder, depth):
            return False
    return True


def _nodes(expr: Expr) -> int:
    """Return the nodes of an expression; a thread's number in its block counts as one, however it is written."""
    if expr.kind == "paren" and ir.text_of(expr).strip() in (RANK, THREADS):
        return 1
    return 1 + sum(_nodes(child) for child in expr.children)


def _available(key: int, builder: _Builder, depth: int) -> bool:
    var = builder.variables.get(key)
    if var is None or var.space in ("lanes", "warp", "block"):
        return False
    if var.space in ("shared", "dynamic", "constant", "parameter"):
        return not builder.facts.assigned.get(key) or bool(var.dims)
    if key in builder.constants():
        return True
    if key in builder.scalars:
        return not builder.facts.assigned.get(key)
    return _recomputable(key, builder, depth + 1)


def _stable_place(expr: Expr, builder: _Builder, depth: int) -> bool:
    """Say whether a reference's initialiser names the same place wherever it is computed."""
    names = [n for n in expr.walk() if n.kind == "name" and n.var is not None]
    if any(n.kind in ("call", "assign", "lane", "lambda") for n in expr.walk()):
        return False
    return all(_available(n.var, builder, depth) or builder.variables[n.var].dims for n in names if n.var in builder.variables)


def _close_recomputed(result: Plan, regions: Mapping[int, set[int]], builder: _Builder) -> None:
    """What a recomputed value is computed from has to be there in each region too."""
    todo = list(result.recomputed)
    while todo:
        declaration = builder.facts.declared[todo.pop()]
        for key in used([Evaluate(declaration.init)]) if declaration.init is not None else ():
            var = builder.variables.get(key)
            if var is None or var.space != "local" or key in result.scalars or key in result.recomputed or key in builder.constants():
                continue
            if var.dims:
                result.arrays.add(key)
            else:
                result.recomputed.add(key)
                todo.append(key)


def _waits(nodes: Sequence[Node]) -> bool:
    """Say whether a block's threads wait for one another inside."""
    return any(meets(node, "block") for node in nodes)

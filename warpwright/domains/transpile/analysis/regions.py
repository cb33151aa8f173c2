"""The tree that a kernel is cut into: regions, and the control around them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.uniform import Facts
from warpwright.domains.transpile.ir import Collective, Declare, DoWhile, Evaluate, Expr, For, If, Jump, Stmt, Var


@dataclass
class Region:
    """Statements that each thread runs through without waiting."""

    stmts: list[Stmt]
    number: int = 0


@dataclass
class Single:
    """A statement on uniform values: it runs once for the block."""

    stmt: Stmt


@dataclass
class Sync:
    """A place where all threads of the scope meet: the cut itself."""

    scope: str
    line: int


@dataclass
class CollectiveNode:
    """A vote or reduction over what the threads offered."""

    stmt: Collective


@dataclass
class Branch:
    """An `if` whose condition is uniform."""

    cond: Expr
    then: list[Node]
    other: list[Node]
    stmt: If


@dataclass
class Loop:
    """A loop whose trip is uniform."""

    init: list[Stmt]
    cond: Expr | None
    step: Expr | None
    body: list[Node]
    line: int
    reach: str = ""
    """Of the steps of a strided loop: it goes on while they reach the block's `first` or `last` thread."""


@dataclass
class Masked:
    """Nodes that only those threads run for which the condition holds."""

    cond: Expr
    body: list[Node]
    exits: bool
    line: int


@dataclass
class MaskedLoop:
    """A loop that each thread leaves on its own: it goes on while any thread is in it."""

    flag: Var
    cond: Expr
    body: list[Node]
    line: int
    number: int = 0


@dataclass
class WarpGroup:
    """Nodes that run for one warp after another, since warps meet in them but the block does not."""

    body: list[Node]
    number: int = 0


@dataclass
class Leave:
    """`break` or `continue` of a uniform loop."""

    word: str


Node = Region | Single | Sync | CollectiveNode | Branch | Loop | Masked | MaskedLoop | WarpGroup | Leave


_PLAIN = re.compile(
    r".*\*.*|(volatile )?(((un)?signed )?(bool|char|short|int|long|long long|float|double)|unsigned|u?int\d+_t|size_t|(float|double|u?int)[2-4])"
)
"""Types of numbers, vectors and pointers, which a declaration leaves as they are."""


@dataclass
class Plan:
    """A kernel cut into regions, and where each variable lives."""

    nodes: list[Node]
    facts: Facts
    variables: dict[int, Var]
    hoisted: list[Stmt]
    """Shared arrays, constants and types, declared before everything else."""
    scalars: set[int]
    """Uniform variables that live outside of the regions."""
    arrays: set[int]
    """Variables that live in a per-thread array of the block."""
    lane_arrays: set[int]
    """Variables that live in a per-lane array of the current warp."""
    recomputed: set[int]
    order: dict[int, int] = field(default_factory=dict)
    """Key -> position of the declaration."""
    steps: set[int] = field(default_factory=set)
    """Counters of strided loops' steps, from zero on."""
    own: frozenset[int] = frozenset()
    """Arrays in global memory that threads touch by their own number alone (`own_places.py`)."""
    definitions: dict[int, Expr | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What `bounds.expand` found variables to be computed from, while `scalars` is what it is."""

    def is_object(self, var: Var) -> bool:
        """Say whether a variable may be an object that its declaration makes, as `Sum s;` may do."""
        return not var.reference and _PLAIN.fullmatch(var.type) is None

    def is_room(self, stmt: Stmt) -> bool:
        """Say whether a statement does nothing but declare a variable that has its place in an array."""
        return isinstance(stmt, Declare) and stmt.init is None and stmt.var.key in self.arrays | self.lane_arrays and not self.is_object(stmt.var)

    def in_order(self, keys: Iterable[int]) -> list[Var]:
        """Return the variables in the order of their declaration."""
        return [self.variables[key] for key in sorted(keys, key=lambda k: self.order.get(k, 0))]

    def closure(self, keys: set[int]) -> set[int]:
        """Return the keys with those that their recomputed values need."""
        needed, todo = set(keys), list(keys)
        while todo:
            key = todo.pop()
            declaration = self.facts.declared.get(key)
            if key in self.recomputed and declaration is not None and declaration.init is not None:
                new = used([Evaluate(declaration.init)]) - needed
                needed |= new
                todo += new
        return needed

    def by_reference(self, stmts: Sequence[Stmt]) -> set[int]:
        """Return the keys that a call in the statements may change."""
        return {key for s in ir.walk(tuple(stmts)) for key in self._assigned_by.get(id(s), ())}

    @functools.cached_property
    def _assigned_by(self) -> Mapping[int, Sequence[int]]:
        """Identity of a statement -> the keys that the analysis saw it assign."""
        keys: dict[int, list[int]] = {}
        for key, changes in self.facts.assigned.items():
            for stmt in changes:
                keys.setdefault(id(stmt), []).append(key)
        return keys


def contains(stmt: Stmt, kinds: tuple[type, ...]) -> bool:
    """Say whether a statement is or has inside it one of the kinds."""
    return any(isinstance(s, kinds) for s in ir.walk((stmt,)))


def jumps(stmt: Stmt) -> bool:
    """Say whether a statement has a break or continue that leaves it."""
    if isinstance(stmt, Jump):
        return True
    if isinstance(stmt, For | DoWhile):
        return False
    return any(jumps(s) for body in ir.bodies(stmt) for s in body)


def changed(stmt: Stmt) -> set[int]:
    """Return the keys that the statement declares or assigns."""
    keys: set[int] = set()
    for one in ir.walk((stmt,)):
        if isinstance(one, Declare | Collective):
            keys.add(one.var.key)
        for expr in ir.own_expressions(one):
            keys |= expr.changes
    return keys


def meets(node: Node, scope: str) -> bool:
    if isinstance(node, Sync):
        return node.scope == scope
    if isinstance(node, CollectiveNode):
        return node.stmt.scope == scope
    return any(meets(n, scope) for n in children(node))


def endings(nodes: list[Node]) -> list[Node]:
    """Return the branches and loops that hold the last barriers of these nodes and that threads pass by on their own; empty without one.

    Threads that pass them by, or leave them, have only the kernel's end before them: on a GPU a barrier waits for those that have not exited."""
    node = next((n for n in reversed(nodes) if meets(n, "block")), None)
    if isinstance(node, MaskedLoop):
        return [node]
    if isinstance(node, Masked):
        return [node, *endings(node.body)]
    return endings(node.then if not node.other else []) if isinstance(node, Branch) else []


def leaves(node: Node) -> bool:
    if isinstance(node, Leave):
        return True
    if isinstance(node, Loop | MaskedLoop):
        return False
    return any(leaves(n) for n in children(node))


def children(node: Node) -> list[Node]:
    """Return the nodes directly inside a node."""
    if isinstance(node, Branch):
        return [*node.then, *node.other]
    if isinstance(node, Loop | Masked | MaskedLoop | WarpGroup):
        return node.body
    return []


def walk(nodes: Sequence[Node], group: int = 0) -> Iterator[tuple[Node, int]]:
    """Yield every node with the number of the warp group around it (0: none)."""
    for node in nodes:
        yield node, group
        yield from walk(children(node), node.number if isinstance(node, WarpGroup) else group)


def node_stmts(node: Node) -> list[Stmt]:
    """Return the statements directly in a node."""
    if isinstance(node, Region):
        return node.stmts
    if isinstance(node, Single | CollectiveNode):
        return [node.stmt]
    if isinstance(node, Loop):
        extra: list[Stmt] = [Evaluate(e) for e in (node.cond, node.step) if e is not None]
        return [*node.init, *extra]
    if isinstance(node, Branch | Masked):
        return [Evaluate(node.cond)]
    if isinstance(node, MaskedLoop):
        return [Evaluate(node.cond)]
    return []


def used(stmts: Sequence[Stmt]) -> set[int]:
    """Return the keys of all variables that the statements name."""
    keys: set[int] = set()
    for stmt in ir.walk(tuple(stmts)):
        for expr in ir.own_expressions(stmt):
            keys |= expr.keys
        if isinstance(stmt, Declare):
            keys.add(stmt.var.key)
        elif isinstance(stmt, Collective):
            keys |= {stmt.var.key, stmt.offered.key}
    return keys


def all_stmts(nodes: Sequence[Node]) -> list[Stmt]:
    """Return the statements directly in the nodes and in those inside them."""
    return [stmt for node, _ in walk(nodes) for stmt in node_stmts(node)]


def changed_in(node: Node, plan: Plan) -> set[int]:
    """Return the keys that a node changes."""
    stmts = all_stmts([node])
    return {key for s in stmts for key in changed(s)} | plan.by_reference(stmts)

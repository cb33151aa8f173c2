"""Lowering to the second level: an ordered program becomes kernels over rows, and operations of nodes and weights that torch does.

A kernel works on the rows of one domain (pairs, sorted by relation, or nodes). For each row it reads what the row determines, runs over the row's
edges where something is summed over them, and finishes with operations of the row: a product with the relation's weight, a sum onto nodes, a
weight gradient. So one template has both forms of the literature as cases: a typed matrix product with a gather or a segment sum in front and a
scatter behind, and a traversal of segments. Values of edges with one number are computed again wherever they are read, not stored.

Fusion is by stages: an operation joins the kernel of its rows that runs when all it reads from memory is there. A row with many edges is cut, so
the sums of a kernel are parts; within the kernel only linear operations may take them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from warpwright.domains.rgnn.emit.places import (
    ROWS,
    exponentials_of_edges,
    gradient_alone,
    is_gradient,
    is_product,
    is_total,
    numbers_of_edges,
    numbers_of_nodes,
    outputs_of_edges,
    place_of,
    wide_product,
)
from warpwright.domains.rgnn.ir import Op, Program
from warpwright.domains.rgnn.lattice import PAIRS, Domain
from warpwright.errors import NotApplicable


@dataclass(frozen=True)
class Kernel:
    """The operations that one pass over `rows` computes."""

    rows: Domain
    ops: tuple[int, ...]
    stored: tuple[int, ...]
    """Those whose results go to memory."""
    partial: frozenset[int]
    """Those that hold only a part of a row's sum while the kernel runs."""


@dataclass(frozen=True)
class Schedule:
    """A program as kernels, and positions of operations that torch does, in order of execution."""

    program: Program
    steps: tuple[Kernel | int, ...]
    inline: frozenset[int]

    def __str__(self) -> str:
        lines = []
        for step in self.steps:
            if isinstance(step, int):
                op = self.program.ops[step]
                lines.append(f"torch   %{step} = {op.kind} {op.function}".rstrip())
            else:
                lines.append(f"kernel over {step.rows.name}: " + " ".join(f"%{i}{'*' if i in step.stored else ''}" for i in step.ops))
        return "\n".join(lines)


@dataclass
class _Lowering:
    """The state of `lower`."""

    program: Program
    fuse: bool = True
    general: bool = False
    ready: dict[int, int] = field(default_factory=dict)
    """Stage from which a value is in memory (of an inline one: from which it can be computed)."""
    stage: dict[int, int] = field(default_factory=dict)
    home: dict[int, Domain] = field(default_factory=dict)
    inline: set[int] = field(default_factory=set)
    partial: set[int] = field(default_factory=set)
    stored: set[int] = field(default_factory=set)
    again: bool = False
    """Are all numbers of edges computed again wherever they are read?"""
    beside: bool = False
    """Are weight gradients of sums made in the kernel that sums?"""
    of_nodes: frozenset[int] = frozenset()
    """Numbers of nodes that are computed again wherever they are read."""
    of_edges: frozenset[int] = frozenset()
    """Numbers of edges that are stored."""
    least: dict[int, int] = field(default_factory=dict)
    """Stages that operations wait for."""
    of_products: set[int] = field(default_factory=set)
    """Rows that a product gives, or that are computed from one in registers."""
    of_gradients: frozenset[int] = frozenset()
    """Rows that weight gradients take: their sums for each relation are made with these."""

    def __post_init__(self) -> None:
        self.of_gradients = frozenset(i for op in self.program.ops if is_gradient(op) for i in op.inputs)
        self.of_nodes = frozenset() if self.general else frozenset(numbers_of_nodes(self.program))
        if not self.general:
            stored = set() if self.again else numbers_of_edges(self.program) | exponentials_of_edges(self.program)
            self.of_edges = frozenset(outputs_of_edges(self.program) | stored)

    def take(self, position: int) -> None:
        """Place one operation."""
        op = self.program.ops[position]
        place = "inline" if position in self.of_nodes else place_of(self.program, op, self.general)
        place = Domain.PAIR_DST if position in self.of_edges else place
        if isinstance(place, Domain):
            self._in_kernel(position, op, place)
            return
        self.ready[position] = max((self.ready[i] for i in op.inputs), default=0)
        self._store(op.inputs)
        if place == "inline":
            self.inline.add(position)

    def _in_kernel(self, position: int, op: Op, rows: Domain) -> None:
        self.home[position] = rows
        inputs = self._reads(position)
        if is_product(op) or any(i in self.of_products and self._in_registers(op, i, rows) for i in inputs):
            self.of_products.add(position)
        earliest = self.least.get(position, 0)
        stage = max(earliest, *(self.stage[i] if self._in_registers(op, i, rows) else self.ready[i] for i in inputs))
        self.stage[position], self.ready[position] = stage, stage + 1
        parts = [i for i in inputs if i in self.partial and self.stage[i] == stage and self._in_registers(op, i, rows)]
        if parts or (op.sums and op.over is Domain.EDGE):
            self.partial.add(position)

    def delay(self) -> None:
        """Move each value into the later kernel of its rows that alone reads it, so that it need not be stored."""
        readers: dict[int, list[int]] = {}
        for position in range(len(self.program.ops)):
            for value in self._reads(position) if position not in self.inline else ():
                readers.setdefault(value, []).append(position)
        for position in sorted(self.home, reverse=True):
            by = readers.get(position, [])
            stages = {self.stage.get(reader) for reader in by}
            own = all(self.home.get(r) is self.home[position] and self._in_registers(self.program.ops[r], position, self.home[position]) for r in by)
            if len(stages) == 1 and own and position not in self.program.outputs:
                self.stage[position] = next(iter(stages)) or 0
        self.partial = set()
        for position in sorted(self.home):
            op = self.program.ops[position]
            inputs = self._reads(position)
            taken = [i for i in inputs if self._in_registers(op, i, self.home[position]) and self.stage[i] == self.stage[position]]
            self._store(i for i in inputs if i not in taken)
            if (op.sums and op.over is Domain.EDGE) or any(i in self.partial for i in taken):
                self.partial.add(position)

    def _reads(self, position: int) -> list[int]:
        """Return what an operation reads: of one that takes rows window by window what these are computed from there."""
        inputs = self._leaves(self.program.ops[position].inputs)
        return [leaf for i in inputs for leaf in self._row_leaves(i)] if self._windowed(position) else inputs

    def _windowed(self, position: int) -> bool:
        op = self.program.ops[position]
        return not self.general and position in self.home and (gradient_alone(self.program, op) or wide_product(self.program, op))

    def _row_leaves(self, value: int) -> list[int]:
        return [leaf for i in self.program.ops[value].inputs for leaf in self._row_leaves(i)] if self._again(value) else [value]

    def _again(self, value: int) -> bool:
        """Is a row's value computed in one step from others of the row, so that another kernel may compute it again?"""
        op = self.program.ops[value]
        summed = op.kind == "contract" and any(c not in op.subscripts[-1] for s in op.subscripts for c in s)
        return value in self.home and op.kind in {"map", "contract"} and not op.sums and op.domain is self.home[value] and not summed

    def with_rows(self, ops: Iterable[int]) -> tuple[int, ...]:
        """Return the operations of a kernel in order, and with them the values that are computed again for those that take rows by windows."""
        members: set[int] = set(ops)
        stack = [i for position in members if self._windowed(position) for i in self.program.ops[position].inputs]
        while stack:
            value = stack.pop()
            if value not in members and self._again(value):
                members.add(value)
                stack += self.program.ops[value].inputs
        return tuple(sorted(members))

    def apart(self, ops: list[int]) -> list[list[int]]:
        """Return the operations of one stage over the same rows as kernels.

        Each wide product has one, with what takes its result in registers, and each sum of rows over a node's edges: two at once took 9.1 ms where
        one takes 2.1 (21 million edges, an H200). Without `fuse` so have products that no edge's row is read for: registers are what gathers lack.
        So have weight gradients on large graphs: a product beside one took 3.6 ms where the bytes of both apart take 1.1 (3.7 million rows).
        """
        group = {position: position for position in ops}

        def top(position: int) -> int:
            while group[position] != position:
                position = group[position]
            return position

        for position in ops:
            for value in self.program.ops[position].inputs if not self._windowed(position) else ():
                if value in group:
                    group[top(value)] = top(position)
        for position in ops if not self.again and not self.general else ():
            if is_total(self.program.ops[position]):
                (value,) = self.program.ops[position].inputs
                of = [i for i in ops if is_gradient(self.program.ops[i]) and value in self.program.ops[i].inputs and not self._windowed(i)]
                group[top(position)] = top(of[0]) if of else top(position)
        heavy = {top(position) for position in ops if self._windowed(position) or (not self.general and self._gathers_alone(position))}
        looping = {top(position) for position in ops if _over_edges(self.program.ops[position])}
        multiplied = {top(position) for position in ops if is_product(self.program.ops[position])}
        if not self.again and not self.general:
            heavy |= {top(i) for i in ops if is_gradient(self.program.ops[i])} - looping - multiplied
        kernels: dict[int, list[int]] = {}
        for position in ops:
            own = top(position)
            quiet = not self.fuse and not self.general and own not in looping
            kernels.setdefault(own if own in heavy else -2 if quiet else -1, []).append(position)
        return list(kernels.values())

    def _gathers_alone(self, position: int) -> bool:
        op = self.program.ops[position]
        return self.home[position] not in PAIRS and op.kind == "contract" and op.over is Domain.EDGE and bool(op.shape)

    def _leaves(self, values: Iterable[int]) -> list[int]:
        """Return the values with inline ones replaced by what they read."""
        leaves: list[int] = []
        for value in values:
            leaves += self._leaves(self.program.ops[value].inputs) if value in self.inline else [value]
        return list(dict.fromkeys(leaves))

    def _in_registers(self, op: Op, value: int, rows: Domain) -> bool:
        """May `op`, in a kernel over `rows`, take `value` before it is in memory?"""
        of_row = self.home.get(value) is rows and self.program.ops[value].domain is rows and value in op.inputs
        of_row = of_row and value not in self._leaves(i for i in op.inputs if i in self.inline)
        if not self.general and (gradient_alone(self.program, op) or wide_product(self.program, op)):
            return False
        if of_row and not self.fuse and _over_edges(op) and value in self.of_products:
            return False
        if not of_row or value not in self.partial:
            return of_row
        if not self.general and not self.again and not self.beside and (is_gradient(op) or (is_total(op) and value in self.of_gradients)):
            return False
        if not self.fuse and self.program.ops[value].shape:
            return False
        if op.kind == "segmax" and op.over is not Domain.EDGE:
            return self.program.ops[value].kind == "segmax"
        linear = (op.kind == "contract" or op.function == "scale") and op.over is not Domain.EDGE and op.domain is not Domain.EDGE
        return linear and sum(i in self.partial for i in op.inputs) == 1 and self.program.ops[value].kind != "segmax"

    def _store(self, values: Iterable[int]) -> None:
        self.stored.update(i for i in self._leaves(values) if i in self.home)


def lower(program: Program, fuse: bool = True, general: bool = False, again: bool = False, beside: bool = False, ride: bool = False) -> Schedule:
    """Return the schedule of an ordered program; raise NotApplicable for a form that no kernel has.

    Without `fuse` sums of rows over edges are stored, and another kernel takes them: more programs of it fit on a core. `general`: for an emitter
    that has products of any form, with rows of any shape (heads, blocks) and any width. `again`: no number of an edge is stored that can be computed
    again. `beside`: weight gradients of sums of rows over edges are made by the kernel that sums them, rather than by one of their own. `ride`: what
    riding.py has made sums over pairs waits for the product that it is added to.
    """
    state = _Lowering(program, fuse, general, again=again, beside=beside)
    for position in range(len(program.ops)):
        state.take(position)
    if not fuse and not general:
        state = _gathering_once(state)
    if ride:
        state = _riding(state)
    for position in program.outputs:
        if position in state.inline:
            raise NotApplicable("expected no value of an edge among the results")
    state._store(program.outputs)
    state.delay()
    steps: list[tuple[tuple[int, int, int], Kernel | int]] = []
    groups: dict[tuple[int, Domain], list[int]] = {}
    for position in range(len(program.ops)):
        if position in state.home:
            groups.setdefault((state.stage[position], state.home[position]), []).append(position)
        elif position not in state.inline:
            steps.append(((state.ready[position], 0, position), position))
    for (stage, rows), every in groups.items():
        for ops in state.apart(_used(program, every, state)):
            stored, partial = (tuple(i for i in ops if i in chosen) for chosen in (state.stored, state.partial))
            over = Domain.EDGE if not general and all(_is_number_of_edges(program, i) for i in ops) else rows
            steps.append(((stage, 1, ROWS.index(rows)), Kernel(over, state.with_rows(ops), stored, frozenset(partial))))
    return Schedule(program, tuple(step for _, step in sorted(steps, key=lambda pair: pair[0])), frozenset(state.inline))


def _is_number_of_edges(program: Program, position: int) -> bool:
    """Is it computed from numbers, for each edge alone? A kernel of nothing else runs over edges: loops over each row's took five times as long."""
    op = program.ops[position]
    return op.domain is Domain.EDGE and not op.sums and not op.shape and not any(program.ops[i].shape for i in op.inputs)


def _waiting(state: _Lowering, positions: Iterable[int], stage: int) -> _Lowering:
    """Return the state in which some operations wait for a stage."""
    least = {**state.least, **dict.fromkeys(positions, stage)}
    waiting = _Lowering(state.program, state.fuse, state.general, again=state.again, beside=state.beside, least=least)
    for position in range(len(state.program.ops)):
        waiting.take(position)
    return waiting


def _gathering_once(state: _Lowering) -> _Lowering:
    """Return a state in which operations that read the same rows for each edge are in one kernel, where none of them needs another's result."""
    groups: dict[tuple[Domain, frozenset[int]], list[int]] = {}
    for position, rows in state.home.items():
        op = state.program.ops[position]
        wide = {i for i in op.inputs if state.program.ops[i].shape and not state.program.ops[i].domain <= rows}
        if _over_edges(op) and wide:
            groups.setdefault((rows, frozenset(wide)), []).append(position)
    for group in groups.values():
        last = max(state.stage[position] for position in group)
        if all(state.stage[position] == last for position in group):
            continue
        waiting = _waiting(state, group, last)
        if all(waiting.stage[position] == last for position in group):
            state = waiting
    return state


def _riding(state: _Lowering) -> _Lowering:
    """Return a state in which a pair's number times a row, which is added to a product of sums over the same pairs, is in the product's kernel."""
    program = state.program
    for op in program.ops:
        if op.kind != "map" or op.function != "add":
            continue
        for rider, product in (op.inputs, op.inputs[::-1]):
            own, other = program.ops[rider], program.ops[product]
            numbers = [i for i in own.inputs if state.home.get(i) is own.over and not program.ops[i].shape]
            both = own.over in PAIRS and own.over is other.over and own.sums and is_product(other) and not is_product(own)
            if not both or len(numbers) != 1:
                continue
            sums = [i for i in other.inputs if state.home.get(i) is own.over and program.ops[i].over is Domain.EDGE]
            last = max(state.stage[product], state.stage[numbers[0]] + 1)
            waiting = _waiting(state, (rider, product, *sums), last)
            if waiting.stage[rider] == waiting.stage[product] == last:
                state = waiting
    return state


def finished(schedule: Schedule, position: int, raw: Collection[int] = ()) -> bool:
    """Has a maximum over edges to be made zero in memory where there are no edges? Kernels do so where they read it; so does who reads the `raw`."""
    if position in schedule.program.outputs and position not in raw:
        return True
    return any(isinstance(step, int) and position in schedule.program.ops[step].inputs for step in schedule.steps)


def _used(program: Program, ops: list[int], state: _Lowering) -> list[int]:
    """Return the operations of a stage whose results are stored, and what they read of it in registers."""
    used: set[int] = set()
    for position in reversed(ops):
        if position in state.stored or position in used:
            used.add(position)
            used.update(program.ops[position].inputs if not state._windowed(position) else ())
    return [position for position in ops if position in used]


def _over_edges(op: Op) -> bool:
    return op.domain is Domain.EDGE or (op.over is Domain.EDGE and op.kind in {"contract", "segmax"})


def multiplies_sums(schedule: Schedule) -> bool:
    """Has a schedule kernels that multiply what they sum over edges, and have all of those no other loop over edges?"""
    ops = schedule.program.ops
    kernels = [step for step in schedule.steps if isinstance(step, Kernel) and any(is_product(ops[i]) for i in step.ops)]
    looping = [[ops[i] for i in kernel.ops if _over_edges(ops[i])] for kernel in kernels]
    return any(looping) and all(op.domain is not Domain.EDGE and bool(op.shape) for loop in looping for op in loop)


def added(op: Op, position: int, kernel: Kernel) -> bool:
    """Is the result added up in memory, which has to be zero before?"""
    return op.domain is not Domain.EDGE and (op.domain is not kernel.rows or position in kernel.partial)


def late(program: Program, kernel: Kernel, position: int) -> bool:
    """Does the operation take something that the kernel's loop over edges has summed?"""
    op = program.ops[position]
    if position in kernel.ops and op.over is Domain.EDGE and op.kind in {"contract", "segmax"}:
        return True
    return any(i in kernel.ops and late(program, kernel, i) for i in op.inputs)

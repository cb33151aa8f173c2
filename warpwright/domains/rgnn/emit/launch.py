"""Runs a schedule of kernels over rows: memory for results, what torch does between kernels, and values freed after their last use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from warpwright.domains.rgnn.derive import GRADIENT
from warpwright.domains.rgnn.emit.aside import Aside
from warpwright.domains.rgnn.emit.doubles import NONE, Doubles
from warpwright.domains.rgnn.emit.eager import is_outer, plus_outer, value_in_float64, value_of
from warpwright.domains.rgnn.emit.rows import Kernel, Schedule, added, finished
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.ir import Program
from warpwright.domains.rgnn.lattice import Domain


@dataclass(frozen=True)
class Argument:
    """What a parameter of a kernel is: a value of the program, a result, or an index array."""

    kind: str
    """value, out, along, lift or order."""
    of: Any = None

    @property
    def name(self) -> str:
        """Its name in a kernel's text."""
        return f"{self.kind}_{self.of.name.lower() if isinstance(self.of, Domain) else self.of}" if self.of is not None else self.kind


ZEROED = 1 << 23
"""Numbers in sums that are made zero by one launch: they are then all in memory from the start, in a second cache of 50 MB."""


class Values(list[Any]):
    """A call's values, by their positions in the program."""

    aside: Aside | None = None


class Runner:
    """Runs a schedule; an emitter says how one kernel is launched."""

    at_once = False
    """Are small sums made zero together? It saves launches."""
    raw_maxima = False
    """Do kernels take a maximum over no edges, minus infinity, for zero?"""

    def __init__(self, schedule: Schedule, donated: tuple[str, ...] = (), raw: frozenset[int] = frozenset(), doubles: Doubles = NONE) -> None:
        """Take the numbers of outputs that are read only where there are edges: a maximum among them needs no zero."""
        self.schedule = schedule
        self.doubles = doubles
        self.sums = shared_sums(schedule, donated)
        self.outers = added_outers(schedule)
        self.done = self._last_uses()
        ops = schedule.program.ops
        outputs = schedule.program.outputs
        inner = {outputs[n] for n in raw} - {value for n, value in enumerate(outputs) if n not in raw}  # a result that is saved too is a result
        self.maxima = {i for i, op in enumerate(ops) if op.kind == "segmax" and (not self.raw_maxima or finished(schedule, i, inner))}
        self.inputs = [(i, op.function, op.domain is Domain.ONE) for i, op in enumerate(ops) if op.kind == "input"]
        joined = {outer for outer, _ in self.outers.values()}
        real = [(n, step) for n, step in enumerate(schedule.steps) if not isinstance(step, int) or ops[step].kind != "input"]
        unread = counts_of_functions(schedule)
        self.steps = [(n, step) for n, step in real if step not in joined and step not in unread]

    def _last_uses(self) -> list[list[int]]:
        """Return for each step the values that are not read afterwards."""
        last: dict[int, int] = {}
        program = self.schedule.program
        joined = {(add, outer) for add, (outer, _) in self.outers.items()}
        for number, step in enumerate(self.schedule.steps):
            for position in (step,) if isinstance(step, int) else step.ops:
                stack = list(program.ops[position].inputs)
                while stack:
                    value = stack.pop()
                    last[value] = number
                    if value in self.schedule.inline or (position, value) in joined:
                        stack += program.ops[value].inputs
        steps = range(len(self.schedule.steps))
        return [[value for value, end in last.items() if end == number and value not in program.outputs] for number in steps]

    def __call__(self, index: Index, inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Return the outputs; inputs as for `interpret`."""
        program = self.schedule.program
        values = Values([None] * len(program.ops))
        for position, name, one in self.inputs:
            values[position] = inputs[name][None] if one else inputs[name]
        given = list(inputs.values())
        like = next((x for x in given if x.dtype is not torch.float64), given[0])  # what was saved in float64 says nothing of the rest
        room = self._zeroed(index, like)
        for number, step in self.steps:
            if values.aside is not None and not (isinstance(step, int) and program.ops[step].kind in {"view", "reshape"}):
                values.aside.before(values[i] for position in ((step,) if isinstance(step, int) else step.ops) for i in program.ops[position].inputs)
            if not isinstance(step, int):
                self._run(step, number, index, values, like, room)
            elif program.ops[step].kind == "view":
                values[step] = values[program.ops[step].inputs[0]]
            elif step in self.sums.of:
                values[step] = room[self.sums.of[step]]
            elif step in self.outers:
                outer, other = self.outers[step]
                values[step] = plus_outer(values[other], program.ops[outer], program, values)
            elif step in self.doubles.vectors:
                values[step] = value_in_float64(program.ops[step], program, values, index)
            else:
                values[step] = value_of(program.ops[step], program, values, index, inputs, like)
            for value in self.done[number]:
                values[value] = None
        if values.aside is not None:
            values.aside.join()
        for vector in self.doubles.vectors.intersection(program.outputs):
            values[vector] = values[vector].to(like.dtype)
        return [values[i][0] if program.ops[i].domain is Domain.ONE else values[i] for i in program.outputs]

    def _zeroed(self, index: Index, like: torch.Tensor) -> dict[int, torch.Tensor]:
        """Return memory of sums by the first of those that share it: of those that are made zero together."""
        places = index.keep((self, "zeroed"), lambda: self._places(index)) if self.at_once else ()
        if not places:
            return {}
        whole = like.new_zeros(places[-1][-1])
        return {first: whole.as_strided(shape, strides, start) for first, shape, strides, start, _ in places}

    def _places(self, index: Index) -> list[tuple[int, tuple[int, ...], tuple[int, ...], int, int]]:
        """Return first sum, shape, strides, start and end of what is made zero together; nothing where it is much, or one alone."""
        program = self.schedule.program
        zeroed = [i for step in self.schedule.steps if isinstance(step, Kernel) for i in step.stored if added(program.ops[i], i, step)]
        places, end = [], 0
        for position in zeroed:
            op, alone = program.ops[position], self.sums.of.get(position, position) == position
            # a layer's result is no view of other memory: programs may write it in place
            if op.kind == "segmax" or not alone or position in self.sums.seeds or self._is_result(position):
                continue
            shape = (index.rows[op.domain], *op.shape)
            places.append((position, shape, _dense_strides(shape), end, end + math.prod(shape)))
            end += -(-math.prod(shape) // 64) * 64
        return places if len(places) > 1 and end <= ZEROED else []

    def _is_result(self, position: int) -> bool:
        if GRADIENT in self.schedule.program.names():
            return False
        first = self.schedule.program.outputs[0]
        while self.schedule.program.ops[first].kind in {"view", "reshape"}:
            first = self.schedule.program.ops[first].inputs[0]
        return self.sums.of.get(first, first) == position

    def _run(self, kernel: Kernel, number: int, index: Index, values: list[Any], like: torch.Tensor, room: dict[int, torch.Tensor]) -> None:
        program = self.schedule.program
        for position in kernel.stored:
            op, first = program.ops[position], self.sums.of.get(position, position)
            if first in room:
                values[position] = room[first]
            elif first in self.sums.seeds:
                values[position] = room[first] = values[self.sums.seeds[first]]
            else:
                shape = (index.rows[op.domain], *op.shape)
                double = position in self.doubles.numbers | self.doubles.maxima
                values[position] = like.new_empty(shape, dtype=torch.float64) if double else self.memory(like, shape)
                if op.kind == "segmax":
                    values[position].fill_(-torch.inf)
                elif added(op, position, kernel):
                    self.zero(values[position], position, kernel, number, index)
                if position in self.sums.of:
                    room[first] = values[position]
        self.launch(kernel, number, index, values)
        for position in kernel.stored:
            if position in self.maxima:
                values[position].masked_fill_(values[position] == -torch.inf, 0.0)

    def memory(self, like: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        """Return memory for a result."""
        return like.new_empty(shape)

    def zero(self, memory: torch.Tensor, position: int, kernel: Kernel, number: int, index: Index) -> None:
        """Make the memory of a sum, which a kernel adds to, zero where that has to be."""
        memory.fill_(0.0)

    def launch(self, kernel: Kernel, number: int, index: Index, values: list[Any]) -> None:
        """Run one kernel, the `number`th step, into the memory that `values` has for its results."""
        raise NotImplementedError


def _dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def array_of(argument: Argument, kernel: Kernel, index: Index, values: list[Any]) -> torch.Tensor:
    """Return what is passed for a parameter."""
    if argument.kind in {"value", "out"}:
        value: torch.Tensor = values[argument.of]
        return value if value.is_contiguous() else value.contiguous()
    if argument.kind == "order":
        order = index.order(kernel.rows)
        assert order is not None
        return order
    return index.along(kernel.rows, argument.of) if argument.kind == "along" else index.lift(argument.of, kernel.rows)


@dataclass(frozen=True)
class Sums:
    """Sums in memory that are made in the same memory, since nothing but their additions reads them."""

    of: Mapping[int, int] = field(default_factory=dict)
    """Each sum, and each addition of them -> the first sum of those that share memory."""
    seeds: Mapping[int, int] = field(default_factory=dict)
    """First sum -> the donated input in whose memory it is made."""


def shared_sums(schedule: Schedule, donated: tuple[str, ...]) -> Sums:
    """Return the sums that share memory: kernels add to it, so additions of sums, and of a donated input, take nothing more."""
    program = schedule.program
    readers: dict[int, set[int]] = {}
    for position, op in enumerate(program.ops):
        for value in op.inputs if op.kind != "view" else ():
            readers.setdefault(_viewed(program, value), set()).add(position)
    kept = {_viewed(program, value) for value in program.outputs}
    stored = {i: step for step in schedule.steps if isinstance(step, Kernel) for i in step.stored}
    of: dict[int, int] = {}
    seeds: dict[int, int] = {}
    for position, op in enumerate(program.ops):
        if op.kind != "map" or op.function != "add" or position not in schedule.steps:
            continue
        parts = [_viewed(program, value) for value in op.inputs]
        own = [readers[v] == {position} and v not in kept and (v in of or _is_sum(program, stored, v)) for v in parts]
        donations = [_is_donated(program, v, donated) for v in parts]
        if parts[0] == parts[1] or not any(own) or any(program.ops[v].shape != op.shape for v in parts):
            continue
        if all(own) and sum(of.get(v, v) in seeds for v in parts) < 2:
            groups = [of.get(v, v) for v in parts]
            first = next((g for g in groups if g in seeds), min(groups))
            for value in [*of, *parts]:
                if of.get(value, value) in groups:
                    of[value] = first
        elif donations[own.index(False) if not all(own) else 0] and of.get(parts[own.index(True)], parts[own.index(True)]) not in seeds:
            which = own.index(True)
            first = of.get(parts[which], parts[which])
            of[parts[which]], seeds[first] = first, parts[1 - which]
        else:
            continue
        of[position] = first
    return Sums(of, seeds)


def added_outers(schedule: Schedule) -> dict[int, tuple[int, int]]:
    """Return addition -> product of two weights that it alone reads, and the other operand."""
    program, added = schedule.program, {}
    readers = [value for op in program.ops for value in op.inputs]
    for position, op in enumerate(program.ops):
        if op.kind != "map" or op.function != "add" or op.domain is not Domain.ETYPE or position not in schedule.steps:
            continue
        for outer, other in (op.inputs, op.inputs[::-1]):
            alone = readers.count(outer) == 1 and outer not in program.outputs and outer in schedule.steps
            same = program.ops[outer].shape == program.ops[other].shape == op.shape and program.ops[other].domain is Domain.ETYPE
            if alone and same and is_outer(program.ops[outer], program):
                added[position] = (outer, other)
                break
    return added


def counts_of_functions(schedule: Schedule) -> set[int]:
    """Return the counts that nothing reads but functions of counts, which are kept beside a graph and ask for counts themselves."""
    ops, unread = schedule.program.ops, {i for i, op in enumerate(schedule.program.ops) if op.kind == "count"}
    for position, op in enumerate(ops):
        of_counts = op.kind == "map" and all(ops[i].kind == "count" for i in op.inputs) and position in schedule.steps
        unread -= set() if of_counts else set(op.inputs)
    return unread - set(schedule.program.outputs)


def _is_sum(program: Program, stored: Mapping[int, Kernel], value: int) -> bool:
    return value in stored and program.ops[value].kind == "contract" and added(program.ops[value], value, stored[value])


def _viewed(program: Program, value: int) -> int:
    """Return what a value is another name of."""
    return _viewed(program, program.ops[value].inputs[0]) if program.ops[value].kind == "view" else value


def _is_donated(program: Program, value: int, donated: tuple[str, ...]) -> bool:
    op = program.ops[value]
    return op.kind == "input" and op.function in donated

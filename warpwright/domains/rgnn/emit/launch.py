"""Runs a schedule of kernels over rows: memory for results, what torch does between kernels, and values freed after their last use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from warpwright.domains.rgnn.emit.eager import value_of
from warpwright.domains.rgnn.emit.rows import Kernel, Schedule, added
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


class Runner:
    """Runs a schedule; an emitter says how one kernel is launched."""

    def __init__(self, schedule: Schedule, donated: tuple[str, ...] = ()) -> None:
        self.schedule = schedule
        self.seeds = seeds(schedule, donated)
        self.done = self._last_uses()

    def _last_uses(self) -> list[list[int]]:
        """Return for each step the values that are not read afterwards."""
        last: dict[int, int] = {}
        program = self.schedule.program
        for number, step in enumerate(self.schedule.steps):
            for position in (step,) if isinstance(step, int) else step.ops:
                stack = list(program.ops[position].inputs)
                while stack:
                    value = stack.pop()
                    last[value] = number
                    if value in self.schedule.inline:
                        stack += program.ops[value].inputs
        steps = range(len(self.schedule.steps))
        return [[value for value, end in last.items() if end == number and value not in program.outputs] for number in steps]

    def __call__(self, index: Index, inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Return the outputs; inputs as for `interpret`."""
        program = self.schedule.program
        values: list[Any] = [None] * len(program.ops)
        like = next(iter(inputs.values()))
        for number, step in enumerate(self.schedule.steps):
            if isinstance(step, int) and step in self.seeds.values():
                values[step] = next(values[sum_] for sum_, add in self.seeds.items() if add == step)
            elif isinstance(step, int):
                values[step] = value_of(program.ops[step], program, values, index, inputs, like)
            else:
                self._run(step, number, index, values, like)
            for value in self.done[number]:
                values[value] = None
        return [values[i][0] if program.ops[i].domain is Domain.ONE else values[i] for i in program.outputs]

    def _run(self, kernel: Kernel, number: int, index: Index, values: list[Any], like: torch.Tensor) -> None:
        program = self.schedule.program
        for position in kernel.stored:
            op = program.ops[position]
            shape = (index.rows[op.domain], *op.shape)
            if position in self.seeds:
                values[position] = values[seed_of(program, position, self.seeds[position])]
                continue
            values[position] = self.memory(like, shape)
            if op.kind == "segmax" or added(op, position, kernel):
                values[position].fill_(-torch.inf if op.kind == "segmax" else 0.0)
        self.launch(kernel, number, index, values)
        for position in kernel.stored:
            if program.ops[position].kind == "segmax":
                values[position] = torch.where(values[position] == -torch.inf, 0.0, values[position])

    def memory(self, like: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        """Return memory for a result."""
        return like.new_empty(shape)

    def launch(self, kernel: Kernel, number: int, index: Index, values: list[Any]) -> None:
        """Run one kernel, the `number`th step, into the memory that `values` has for its results."""
        raise NotImplementedError


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


def seeds(schedule: Schedule, donated: tuple[str, ...]) -> dict[int, int]:
    """Return sum -> addition for sums in memory that nothing but the addition of a donated input reads: they are made in the input's memory."""
    program = schedule.program
    readers: dict[int, list[int]] = {}
    for position, op in enumerate(program.ops):
        for value in op.inputs:
            readers.setdefault(value, []).append(position)
    stored = {i: step for step in schedule.steps if isinstance(step, Kernel) for i in step.stored}
    found = {}
    for position, op in enumerate(program.ops):
        for value in op.inputs if op.function == "add" and op.kind == "map" else ():
            free = value in stored and program.ops[value].kind == "contract" and added(program.ops[value], value, stored[value])
            alone = free and readers[value] == [position] and value not in program.outputs
            if alone and _is_donated(program, seed_of(program, value, position), donated):
                found[value] = position
    return found


def seed_of(program: Program, value: int, addition: int) -> int:
    """Return the other operand of an addition."""
    first, second = program.ops[addition].inputs
    return second if first == value else first


def _is_donated(program: Program, value: int, donated: tuple[str, ...]) -> bool:
    op = program.ops[value]
    return _is_donated(program, op.inputs[0], donated) if op.kind == "view" else op.kind == "input" and op.function in donated

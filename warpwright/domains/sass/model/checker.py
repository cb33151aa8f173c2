"""Is an edited schedule legal? It is when it keeps every dependence and the model of hazards finds nothing that it does not find in the original.

A block is checked from the original's state at its entry; where it leaves more in flight than the original did, the blocks after it are checked again
from that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from warpwright.domains.sass.code import control, hints, isa
from warpwright.domains.sass.code.instruction import Instruction
from warpwright.domains.sass.code.kernel import Kernel, Schedule
from warpwright.domains.sass.model import hazards
from warpwright.domains.sass.model.distances import Distances
from warpwright.domains.sass.model.hazards import State, Violation, Watch
from warpwright.domains.sass.model.model import Alarm, Model, alarm
from warpwright.domains.sass.model.native_model import NativeModel

_PASSABLE = isa.GMMA | frozenset(("BAR", "LDGDEPBAR", "DEPBAR", "NOP"))
"""Fences that arithmetic on registers may pass; rule 7 keeps the waits that it carries before them. A barrier is passed too by what no other thread
sees: compilers themselves move read-only loads above barriers (the stencil, unrolled) and leave them in flight there (169 in six kernels)."""

STACK_POINTER = 1

MOST_PROVEN = 512
"""Schedules whose candidates may still be measured: searches ask for some dozens at once."""


def independent(first: Instruction, second: Instruction) -> bool:
    """May two adjacent instructions be exchanged, as far as registers, memory and fences go?"""
    if first.defs & (second.defs | second.uses) or second.defs & first.uses or first.opaque or second.opaque:
        return False
    if "fence" in (first.kind, second.kind):
        fence, other = (first, second) if first.kind == "fence" else (second, first)
        registers = other.defs | other.uses
        passes = other.kind == "fixed" or (other.private and fence.base == "BAR")
        return passes and fence.base in _PASSABLE and not fence.text.startswith("@!PT") and STACK_POINTER not in registers
    if first.memory and second.memory and _ordered(first, second):
        return False
    return not (first.base in isa.COLLECTIVES and second.base in isa.COLLECTIVES)


def _ordered(first: Instruction, second: Instruction) -> bool:
    """Must two memory accesses keep their order? Not when both read, touch different spaces, or different bytes from one base."""
    assert first.memory and second.memory
    (spaces, access), (other_spaces, other_access) = first.memory, second.memory
    if access == other_access == "r" or not set(spaces) & set(other_spaces):
        return False
    asynchronous = [instruction for instruction in (first, second) if instruction.base == "LDGSTS"]
    if len(asynchronous) == 1:
        other = second if asynchronous[0] is first else first
        return other.memory != ("g", "r")
    here, there = first.address, second.address
    return spaces != other_spaces or here is None or there is None or not here.apart(there)


@dataclass(eq=False)
class Checker:
    """The rules of one kernel."""

    kernel: Kernel
    distances: Distances
    proven: dict[str, Schedule] = field(default_factory=dict)
    """Key of a candidate -> its schedule, of the newest that the domain's own edits made, each accepted here: their texts need not be read to be
    measured. What is kept in the end is read from its text, and proven anew (`complaints`)."""

    def note(self, key: str, schedule: Schedule) -> None:
        """Keep the schedule of a candidate that the domain's own edits made."""
        if len(self.proven) >= MOST_PROVEN:
            del self.proven[next(iter(self.proven))]
        self.proven[key] = schedule

    @cached_property
    def entries(self) -> list[State | None]:
        """The original's state at the entry of each block; None where nothing leads."""
        return hazards.entries(self.kernel.original)

    @cached_property
    def flights(self) -> dict[int, frozenset[int]]:
        """What the original has in flight at each fence, branch and memory access."""
        in_flight: dict[int, frozenset[int]] = {}

        def note(instruction: Instruction, state: State) -> None:
            in_flight[instruction.index] = state.in_flight()

        self._scan(self.kernel.original, self.entries, Watch(flight=note))
        return in_flight

    @cached_property
    def accepted(self) -> Mapping[Alarm, int]:
        """The false alarms, and the fewest cycles that each has."""
        cycles: dict[Alarm, int] = {}
        for violation in self.false_alarms:
            cycles[alarm(violation)] = min(violation.cycles, cycles.get(alarm(violation), violation.cycles))
        return cycles

    @cached_property
    def judge(self) -> Model:
        """The model by hazards.py: what is kept in the end is judged by it."""
        return Model(self.kernel, self.distances, self.flights, self.accepted)

    @cached_property
    def model(self) -> NativeModel:
        """The same in C++, which edits ask."""
        return NativeModel(self.kernel, self.distances, self.flights, self.accepted)

    @cached_property
    def false_alarms(self) -> list[Violation]:
        """What the model finds in the original, which is legal."""
        violations: list[Violation] = []
        self._scan(self.kernel.original, self.entries, Watch(report=violations.append, needed=self.distances.needed))
        return violations

    def _scan(self, schedule: Schedule, entries: list[State | None], watch: Watch) -> None:
        for entry, block in zip(entries, self.kernel.blocks, strict=True):
            if entry is not None:
                hazards.run(entry.copy(), hazards.items(schedule, block), watch)

    def reachable(self, block: int) -> bool:
        """Does anything lead to a block? What cannot be reached is not edited."""
        return self.entries[block] is not None

    def movable(self, index: int) -> bool:
        """May an instruction move at all?"""
        return index in self._movable

    @cached_property
    def _movable(self) -> frozenset[int]:
        fixed = self.kernel.pinned | {0} | {violation.index for violation in self.false_alarms}
        fixed |= {violation.fact[2] for violation in self.false_alarms if violation.fact}
        return frozenset(one.index for one in self.kernel.instructions if one.index not in fixed and one.base not in isa.ENDS)

    @cached_property
    def arithmetic(self) -> frozenset[int]:
        """The instructions that touch registers alone and may move: their waits protect nothing else."""
        return frozenset(one.index for one in self.kernel.instructions if one.kind == "fixed" and not one.opaque and self.movable(one.index))

    def exchangeable(self, schedule: Schedule, place: int) -> bool:
        """May the instruction at `place` and its successor be exchanged, as far as dependences go?"""
        block = self.kernel.blocks[self.kernel.block_of[place]]
        if place + 1 not in block or not self.reachable(self.kernel.block_of[place]):
            return False
        return self.passable(schedule.order[place], schedule.order[place + 1])

    def passable(self, before: int, after: int) -> bool:
        """May two adjacent instructions, `before` and `after` it, be exchanged, as far as dependences go?"""
        key = (before, after)
        if key not in self._passable:
            self._passable[key] = before in self._movable and after in self._movable and self._free(before, after)
        return self._passable[key]

    def _free(self, before: int, after: int) -> bool:
        first, second = self.kernel.instructions[before], self.kernel.instructions[after]
        if "WARPGROUP" in (first.base, second.base) and (first.defs | first.uses | second.defs | second.uses) & self.kernel.gmma_registers:
            return False
        return independent(first, second)

    @cached_property
    def _passable(self) -> dict[tuple[int, int], bool]:
        return {}

    def first_violation(self, schedule: Schedule, block: int) -> Violation | None:
        """Return the first thing that the model finds in a block, without its false alarms."""
        return self.model.walk(schedule, block, self.entry(schedule.assumed, block))[0]

    def accept(self, schedule: Schedule, block: int) -> Schedule | None:
        """Return `schedule`, whose predecessor was legal before `block` was edited, if it is legal; else None."""
        return self._settled(schedule, [block]) if self.reachable(block) else None

    def legal(self, schedule: Schedule) -> bool:
        """Does the model find nothing in a schedule? Dependences aside: see `complaints`."""
        return self.adopted(schedule) is not None

    def adopted(self, schedule: Schedule) -> Schedule | None:
        """Return a schedule that was made elsewhere, with what its blocks leave in flight, so that it can be edited; None for what is not legal."""
        original, changed = self.kernel.original, []
        for block, places in enumerate(self.kernel.blocks):
            span = slice(places.start, places.stop)
            if schedule.order[span] != original.order[span] or schedule.words[span] != original.words[span]:
                changed.append(block)
        reached = all(self.reachable(block) for block in changed)
        return self._settled(replace(schedule, assumed={}), changed) if reached else None

    def _settled(self, schedule: Schedule, changed: list[int]) -> Schedule | None:
        """Run the blocks that changed, and those that may now begin with more in flight, until nothing new comes of it; None at a violation."""
        assumed: dict[int, Any] = dict(schedule.assumed)
        waiting = list(changed)
        while waiting:
            block = waiting.pop()
            found, after = self.model.walk(schedule, block, self.entry(assumed, block))
            if found is not None:
                return None
            waiting += [following for following in self._widened(assumed, block, after) if following not in waiting]
        return Schedule(schedule.kernel, schedule.order, schedule.words, assumed)

    def lacking(self, schedule: Schedule, block: int) -> list[Violation]:
        """Return the first thing that edits' model finds in each block that a changed one reaches, itself included; see `accept`."""
        assumed, waiting, lacks = dict(schedule.assumed), [block], {}
        while waiting:
            number = waiting.pop()
            found, after = self.model.walk(schedule, number, self.entry(assumed, number))
            if found is not None:
                lacks[number] = found
                continue
            waiting += [following for following in self._widened(assumed, number, after) if following not in waiting]
        return list(lacks.values())

    def _widened(self, assumed: dict[int, Any], block: int, after: Any) -> list[int]:
        """Let the blocks behind one begin with what it leaves in flight; return those for which that is anything new."""
        wider = []
        for following in self.kernel.successors[block]:
            known = self.entry(assumed, following)
            if not after.within(known):
                assumed[following] = known.copy()
                assumed[following].join(after)
                wider.append(following)
        return wider

    def all_violations(self, schedule: Schedule) -> list[Violation]:
        """Return the first thing that the judge finds in each block of a whole schedule, from its own states, without its false alarms."""
        entries = enumerate(self.judge.entries(schedule))
        walks = [self.judge.walk(schedule, block, entry) for block, entry in entries if entry is not None]
        return [found for found, _ in walks if found is not None]

    def entry(self, assumed: Mapping[int, Any], block: int) -> Any:
        """Return the state of `model` at the entry of a block: what an edit left there, or the original's."""
        return assumed.get(block) or self._entries[block]

    @cached_property
    def _entries(self) -> list[Any]:
        return [None if entry is None else self.model.state(entry) for entry in self.entries]

    def before(self, number: int) -> Mapping[int, frozenset[int]]:
        """Return what must come before each instruction of a block."""
        if number not in self._before:
            self._before[number] = self._links(number)
        return self._before[number]

    def _links(self, number: int) -> Mapping[int, frozenset[int]]:
        inside = [self.kernel.instructions[index] for index in self.kernel.blocks[number]]
        fixed = {instruction.index for instruction in inside if not self.movable(instruction.index) or self._of_products(instruction)}
        links: dict[int, frozenset[int]] = {}
        for place, second in enumerate(inside):
            ordered = second.index in fixed
            before = (one.index for one in inside[:place] if ordered or one.index in fixed or not independent(one, second))
            links[second.index] = frozenset(before)
        return links

    def _of_products(self, instruction: Instruction) -> bool:
        """Does it belong to the matrix products of a warp group, which nothing that touches their registers passes?"""
        return instruction.base == "WARPGROUP" or bool(instruction.kind == "fence" and instruction.is_gmma)

    @cached_property
    def _before(self) -> dict[int, Mapping[int, frozenset[int]]]:
        return {}


def complaints(schedule: Schedule, checker: Checker) -> list[str]:
    """Say everything that is wrong with a schedule, wherever it came from: what does not rely on how it was edited. Empty for a legal one.

    The checker is that of the schedule's kernel, which is another than the cubin's where registers are renamed.
    """
    kernel, problems = schedule.kernel, []
    if checker.kernel.words != kernel.words:
        raise ValueError(f"expected the rules of {kernel.name} as the schedule has it, saw those of other words")
    for block in kernel.blocks:
        order = schedule.order[block.start : block.stop]
        if sorted(order) != list(block):
            problems.append(f"block at {block.start} is no permutation of itself")
            continue
        problems += _broken_orders(kernel, order)
    for place, index in enumerate(schedule.order):
        if not hints.means_the_same(kernel.instructions[index], kernel.words[index], schedule.words[place], kernel.cubin.arch):
            problems.append(f"instruction {index} does something else")
        if schedule.words[place] != kernel.words[index] and not control.decode(schedule.words[place]).legal:
            problems.append(f"instruction {index} has the control word {control.decode(schedule.words[place])}")
        if place != index and not checker.movable(index):
            problems.append(f"instruction {index} must not move: {kernel.instructions[index].text}")
    problems += [f"{one.rule} at {one.index}: {kernel.instructions[one.index].text}" for one in checker.all_violations(schedule)]
    return problems


def _broken_orders(kernel: Kernel, order: tuple[int, ...]) -> list[str]:
    broken = []
    for place, first in enumerate(order):
        for second in order[place + 1 :]:
            if second < first and not independent(kernel.instructions[second], kernel.instructions[first]):
                broken.append(f"{first} passed {second}: {kernel.instructions[first].text} / {kernel.instructions[second].text}")
    return broken


def dependences(kernel: Kernel, block: int) -> list[tuple[int, int]]:
    """Return the pairs (earlier, later) of a block that must keep their order."""
    inside = [kernel.instructions[index] for index in kernel.blocks[block]]
    return [(first.index, second.index) for i, first in enumerate(inside) for second in inside[i + 1 :] if not independent(first, second)]

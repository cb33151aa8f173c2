"""Is an edited schedule legal? It is when it keeps every dependence, and when the model of hazards finds nothing that it does not find in the original.

A block is checked from the original's state at its entry; when it leaves no more in flight than the original did, the other blocks need no look.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

from warpwright.domains.sass import control, hazards, isa
from warpwright.domains.sass.distances import Distances
from warpwright.domains.sass.hazards import OPERATION, State, Violation, Watch
from warpwright.domains.sass.instruction import Instruction
from warpwright.domains.sass.kernel import Kernel, Schedule

_PASSABLE = isa.GMMA | frozenset(("BAR", "LDGDEPBAR", "DEPBAR", "NOP"))
"""Fences that arithmetic on registers may pass; rule 7 keeps the waits that it carries before them."""

STACK_POINTER = 1


def independent(first: Instruction, second: Instruction) -> bool:
    """May two adjacent instructions be exchanged, as far as registers, memory and fences go?"""
    if first.defs & (second.defs | second.uses) or second.defs & first.uses:
        return False
    if "fence" in (first.kind, second.kind):
        fence, other = (first, second) if first.kind == "fence" else (second, first)
        registers = other.defs | other.uses
        return other.kind == "fixed" and fence.base in _PASSABLE and not fence.text.startswith("@!PT") and STACK_POINTER not in registers
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

    @cached_property
    def entries(self) -> list[State | None]:
        """The original's state at the entry of each block; None where nothing leads."""
        return hazards.entries(self.kernel.original)

    @cached_property
    def exits(self) -> list[State | None]:
        """The original's state at the end of each block."""
        original = self.kernel.original
        blocks = zip(self.entries, self.kernel.blocks, strict=True)
        return [hazards.run(entry.copy(), hazards.items(original, block)) if entry else None for entry, block in blocks]

    @cached_property
    def flights(self) -> dict[int, frozenset[int]]:
        """What the original has in flight at each fence, branch and memory access."""
        found: dict[int, frozenset[int]] = {}

        def note(instruction: Instruction, state: State) -> None:
            found[instruction.index] = state.in_flight()

        self._scan(self.kernel.original, self.entries, Watch(flight=note))
        return found

    @cached_property
    def accepted(self) -> frozenset[tuple[str, int]]:
        """(rule, instruction) of what the model finds in the original: its own false alarms."""
        found: list[Violation] = []
        self._scan(self.kernel.original, self.entries, Watch(report=found.append, needed=self.distances.needed))
        return frozenset((violation.rule, violation.index) for violation in found)

    @cached_property
    def counted_boards(self) -> int:
        """The scoreboards that some DEPBAR counts: their operations keep them."""
        boards = 0
        for instruction in self.kernel.instructions:
            boards |= instruction.counted
        return boards

    def _scan(self, schedule: Schedule, entries: list[State | None], watch: Watch) -> None:
        for entry, block in zip(entries, self.kernel.blocks, strict=True):
            if entry is not None:
                hazards.run(entry.copy(), hazards.items(schedule, block), watch)

    def reachable(self, block: int) -> bool:
        """Does anything lead to a block? What cannot be reached is not edited."""
        return self.entries[block] is not None

    def movable(self, index: int) -> bool:
        """May an instruction move at all?"""
        instruction = self.kernel.instructions[index]
        alarmed = any(index == known for _, known in self.accepted)
        return index > 0 and index not in self.kernel.pinned and instruction.base not in isa.ENDS and not alarmed

    def exchangeable(self, schedule: Schedule, place: int) -> bool:
        """May the instruction at `place` and its successor be exchanged, as far as dependences go?"""
        block = self.kernel.blocks[self.kernel.block_of[place]]
        if place + 1 not in block or not self.reachable(self.kernel.block_of[place]):
            return False
        first, second = schedule.at(place), schedule.at(place + 1)
        if not (self.movable(first.index) and self.movable(second.index)):
            return False
        if "WARPGROUP" in (first.base, second.base) and (first.defs | first.uses | second.defs | second.uses) & self.kernel.gmma_registers:
            return False
        return independent(first, second)

    def violations(self, schedule: Schedule, block: int) -> list[Violation]:
        """Return what the model finds in a block, from the original's entry, without its false alarms."""
        return self._block(schedule, block, self.entries[block])[0]

    def accept(self, schedule: Schedule, block: int) -> Schedule | None:
        """Return `schedule`, whose predecessor was legal before `block` was edited, if it is legal; else None."""
        if self.entries[block] is None:
            return None
        if not schedule.composed:
            return schedule if not self.all_violations(schedule) else None
        found, after = self._block(schedule, block, self.entries[block])
        if found:
            return None
        before = self.exits[block]
        assert before is not None
        if after.within(before):
            return schedule
        whole = replace(schedule, composed=False)
        return whole if not self.all_violations(whole) else None

    def all_violations(self, schedule: Schedule) -> list[Violation]:
        """Return what the model finds in a whole schedule, from its own states, without its false alarms; and broken dependences."""
        found = []
        for block, entry in enumerate(hazards.entries(schedule)):
            if entry is not None:
                found += self._block(schedule, block, entry)[0]
        return found

    def _block(self, schedule: Schedule, block: int, entry: State | None) -> tuple[list[Violation], State]:
        assert entry is not None
        found: list[Violation] = []
        places = self.kernel.blocks[block]
        earlier: set[int] = set()

        def report(violation: Violation) -> None:
            if (violation.rule, violation.index) not in self.accepted:
                found.append(violation)

        def flight(instruction: Instruction, state: State) -> None:
            for operation in state.in_flight() - self.flights.get(instruction.index, frozenset()):
                overtook = operation > instruction.index and operation in earlier
                if operation != instruction.index and not overtook:
                    fact = next(iter(state.facts[OPERATION + operation]))
                    found.append(Violation("FLIGHT", instruction.index, OPERATION + operation, fact))

        watch = Watch(report, self.distances.needed, None, flight)
        state = entry.copy()
        for place in places:
            instruction = schedule.at(place)
            hazards.step(state, instruction, schedule.words[place], watch)
            earlier.add(instruction.index)
        return found, state


def complaints(schedule: Schedule, checker: Checker) -> list[str]:
    """Say everything that is wrong with a schedule, wherever it came from: what does not rely on how it was edited. Empty for a legal one."""
    kernel, found = schedule.kernel, []
    for block in kernel.blocks:
        order = schedule.order[block.start : block.stop]
        if sorted(order) != list(block):
            found.append(f"block at {block.start} is no permutation of itself")
            continue
        found += _broken_orders(kernel, order)
    for place, index in enumerate(schedule.order):
        if (schedule.words[place] ^ kernel.words[index]) & ~control.MASK:
            found.append(f"instruction {index} does something else")
        if schedule.words[place] != kernel.words[index] and not control.decode(schedule.words[place]).legal:
            found.append(f"instruction {index} has the control word {control.decode(schedule.words[place])}")
        if place != index and not checker.movable(index):
            found.append(f"instruction {index} must not move: {kernel.instructions[index].text}")
    found += [f"{violation.rule} at {violation.index}: {kernel.instructions[violation.index].text}" for violation in checker.all_violations(schedule)]
    return found


def _broken_orders(kernel: Kernel, order: tuple[int, ...]) -> list[str]:
    found = []
    for place, first in enumerate(order):
        for second in order[place + 1 :]:
            if second < first and not independent(kernel.instructions[second], kernel.instructions[first]):
                found.append(f"{first} passed {second}: {kernel.instructions[first].text} / {kernel.instructions[second].text}")
    return found


def dependences(kernel: Kernel, block: int) -> Counter[tuple[int, int]]:
    """Return the pairs (earlier, later) of a block that must keep their order."""
    instructions = [kernel.instructions[index] for index in kernel.blocks[block]]
    pairs = ((first.index, second.index) for i, first in enumerate(instructions) for second in instructions[i + 1 :] if not independent(first, second))
    return Counter(pairs)

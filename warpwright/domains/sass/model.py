"""What is asked of the model of hazards about one kernel's schedules: does a block pass, what does it lack, what is in flight where.

`Model` answers by hazards.py and judges what is kept; `NativeModel` (native_model.py) answers the same much faster, for searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warpwright.domains.sass import control, hazards, isa
from warpwright.domains.sass.distances import Distances
from warpwright.domains.sass.hazards import OPERATION, Fact, Key, State, Violation, Watch
from warpwright.domains.sass.instruction import Instruction
from warpwright.domains.sass.kernel import Kernel, Schedule

ROUNDS = 6
"""Times that one instruction is examined, each time with more waits or later."""

Alarm = tuple[str, int, int, Fact | None, Key | None]
"""Rule, instruction, register, what is in flight, and what a distance is learnt for."""


def alarm(violation: Violation) -> Alarm:
    """Return what a violation is about."""
    return violation.rule, violation.index, violation.register, violation.fact, violation.key


@dataclass(frozen=True, eq=False)
class Model:
    """The model of one kernel, by hazards.py."""

    kernel: Kernel
    distances: Distances
    flights: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """What the original has in flight at each fence, branch and memory access."""
    accepted: Mapping[Alarm, int] = field(default_factory=dict)
    """The false alarms, and the fewest cycles that each has: fewer, or another register or operation, is no false alarm."""

    def state(self, state: State) -> Any:
        """Return a state as this model has them: they can be copied, joined and compared."""
        return state

    def walk(self, schedule: Schedule, block: int, entry: Any) -> tuple[Violation | None, Any]:
        """Issue a block from the state at its entry, to its end or its first violation; return that, and the state there."""
        violations: list[Violation] = []
        earlier: set[int] = set()
        state, watch = entry.copy(), self.watch(violations, earlier)
        for instruction, word in hazards.items(schedule, self.kernel.blocks[block]):
            hazards.step(state, instruction, word, watch)
            if violations:
                return violations[0], state
            earlier.add(instruction.index)
        return None, state

    def entries(self, schedule: Schedule) -> list[Any]:
        """Return the state at the entry of every block; None where nothing leads."""
        return hazards.entries(schedule)

    def settled(self, schedule: Schedule, block: int, entry: Any, shortest: bool) -> tuple[int, ...] | None:
        """Return a schedule's words with the waits and stalls that a block lacks; None where that is not to be had.

        `shortest`: with stalls of one cycle first, but of fences and of the block's last, which order more than registers.
        """
        places, state, words = self.kernel.blocks[block], entry.copy(), list(schedule.words)
        violations: list[Violation] = []
        earlier: set[int] = set()
        watch = self.watch(violations, earlier)
        for place in places:
            instruction = schedule.at(place)
            if shortest and place + 1 < places.stop and instruction.kind != "fence" and instruction.base not in isa.ENDS:
                words[place] = control.with_stall(words[place], 1)
            if not _examined(state, instruction, words, place, places.start, watch, violations):
                return None
            hazards.issue(state, instruction, words[place])
            earlier.add(instruction.index)
        return tuple(words)

    def known(self, violation: Violation) -> bool:
        """Is it one of the false alarms?"""
        return alarm(violation) in self.accepted and violation.cycles >= self.accepted[alarm(violation)]

    def watch(self, violations: list[Violation], earlier: set[int]) -> Watch:
        """Return a watch that puts what is not a false alarm into `violations`; `earlier`: the instructions of the block that were issued."""

        def report(violation: Violation) -> None:
            if not self.known(violation):
                violations.append(violation)

        instructions = self.kernel.instructions

        def flight(instruction: Instruction, state: State) -> None:
            for operation in sorted(state.in_flight() - self.flights.get(instruction.index, frozenset())):
                overtook = operation > instruction.index and operation in earlier
                if operation != instruction.index and not overtook and not instructions[operation].private:
                    fact, cover = next(iter(state.facts[OPERATION + operation].items()))
                    report(Violation("FLIGHT", instruction.index, OPERATION + operation, fact, cover))

        return Watch(report, self.distances.needed, None, flight)


def _examined(
    state: State, instruction: Instruction, words: list[int], place: int, start: int, watch: Watch, violations: list[Violation]
) -> bool:
    """Add waits to a word and cycles before it until the model finds nothing; return whether that is so."""
    for _ in range(ROUNDS):
        violations.clear()
        hazards.examine(state, instruction, words[place], watch)
        if not violations:
            return True
        missing = max((violation.needed - violation.cycles for violation in violations if violation.rule == "DISTANCE"), default=0)
        for violation in violations:
            if violation.rule == "DISTANCE":
                continue
            if not violation.cover:
                return False
            words[place] = control.with_wait(words[place], (violation.cover & -violation.cover).bit_length() - 1)
        if missing:
            if not lengthened(words, place, start, missing):
                return False
            state.now += missing
    return False


def lengthened(words: list[int], place: int, start: int, cycles: int) -> bool:
    """Lengthen the stalls before a place; return whether there was room."""
    for before in range(place - 1, start - 1, -1):
        stall = control.stall(words[before])
        more = min(cycles, control.MOST_STALL - stall)
        if more:
            words[before] = control.with_stall(words[before], stall + more)
            cycles -= more
        if not cycles:
            return True
    return False

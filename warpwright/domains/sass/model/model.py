"""The model of hazards asked about one kernel's schedules: does a block pass, and what is in flight where? It judges whatever is kept.

Searches ask native_model.py, which answers the same much faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from warpwright.domains.sass.code.instruction import Instruction
from warpwright.domains.sass.code.kernel import Kernel, Schedule
from warpwright.domains.sass.model import hazards
from warpwright.domains.sass.model.distances import Distances
from warpwright.domains.sass.model.hazards import OPERATION, Fact, Key, State, Violation, Watch

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

    def walk(self, schedule: Schedule, block: int, entry: State) -> tuple[Violation | None, State]:
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

    def entries(self, schedule: Schedule) -> list[State | None]:
        """Return the state at the entry of every block; None where nothing leads."""
        return hazards.entries(schedule)

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

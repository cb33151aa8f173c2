"""The dependences of a schedule, as people read them: for each instruction what must be over before it, within its block and from others.

    i17 R4 +5        it reads R4, which i17 wrote five cycles before
    i12 R8 B0        it reads R8, of which scoreboard 0 tells when i12 has it
    i9 R4 war +2     it writes R4, which i9 read; `war B1` where a scoreboard tells of that
    i5 R4 waw +7     it writes R4, which i5 wrote and nobody read since
    b2:i17 R4        i17 of block 2 may have been before, on a path to here; of this block where its number stands, a turn of the loop before

Each is what may hold on some path: of a guarded instruction that writes a register what was there before may be too. Memory and barriers are not
among them: what they order is kept by the model of hazards (model/hazards.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warpwright.domains.sass.code import control
from warpwright.domains.sass.code.disassembly import register_name
from warpwright.domains.sass.code.instruction import Instruction
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.domains.sass.model.hazards import fixed_point


@dataclass
class Reaching:
    """Register -> the instructions that may have written it last, and that may have read it since, as bits of one number each."""

    writers: dict[int, int]
    readers: dict[int, int]

    def copy(self) -> Reaching:
        """Return one that may be changed."""
        return Reaching(dict(self.writers), dict(self.readers))

    def join(self, other: Reaching) -> bool:
        """Add what reaches a place by another way; return whether that is more than was known."""
        known = self.copy()
        for mine, theirs in ((self.writers, other.writers), (self.readers, other.readers)):
            for register, bits in theirs.items():
                mine[register] = mine.get(register, 0) | bits
        return self != known

    def issue(self, instruction: Instruction) -> None:
        """Go on behind an instruction."""
        one = 1 << instruction.index
        for register in instruction.uses:
            self.readers[register] = self.readers.get(register, 0) | one
        for register in instruction.defs:
            if instruction.guard is None:
                self.writers[register] = one
                self.readers.pop(register, None)
            else:
                self.writers[register] = self.writers.get(register, 0) | one


def dependences(schedule: Schedule) -> list[tuple[str, ...]]:
    """Return for each place what its instruction depends on."""
    kernel = schedule.kernel

    def after(number: int, state: Reaching) -> Reaching:
        state = state.copy()
        for place in kernel.blocks[number]:
            state.issue(schedule.at(place))
        return state

    entries = fixed_point(kernel, Reaching({}, {}), after)
    words = dict(zip(schedule.order, schedule.words, strict=True))
    return [edges for number, entry in enumerate(entries) for edges in _of_block(schedule, number, entry or Reaching({}, {}), words)]


def _of_block(schedule: Schedule, number: int, entry: Reaching, words: dict[int, int]) -> Iterator[tuple[str, ...]]:
    kernel, state, cycle = schedule.kernel, entry.copy(), 0
    issued: dict[int, int] = {}
    """Instruction of this block -> the cycle of its issue."""

    def edge(index: int, register: int, kind: str, board: int) -> str:
        where = f"i{index}" if index in issued else f"b{kernel.block_of[index]}:i{index}"
        when = f"B{board}" if board < control.BOARDS else f"+{cycle - issued[index]}" if index in issued else ""
        return " ".join(filter(None, (where, register_name(register), kind, when)))

    for place in kernel.blocks[number]:
        instruction = schedule.at(place)
        edges = []
        for register in sorted(instruction.uses):
            edges += [edge(one, register, "", control.write_board(words[one])) for one in _numbers(state.writers.get(register, 0))]
        for register in sorted(instruction.defs):
            readers = state.readers.get(register, 0)
            edges += [edge(one, register, "war", control.read_board(words[one])) for one in _numbers(readers)]
            written = 0 if readers or register in instruction.uses else state.writers.get(register, 0)
            edges += [edge(one, register, "waw", control.write_board(words[one])) for one in _numbers(written)]
        yield tuple(edges)
        state.issue(instruction)
        issued[instruction.index] = cycle
        cycle += max(1, control.stall(schedule.words[place]))


def _numbers(bits: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, the lowest first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest

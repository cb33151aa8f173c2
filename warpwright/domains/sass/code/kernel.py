"""A kernel of a cubin, read: its instructions, basic blocks and loops; and a Schedule of it, the domain's IR."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from warpwright.base import digest
from warpwright.domains.sass.code import isa, operands
from warpwright.domains.sass.code.cubin import WORD, Cubin
from warpwright.domains.sass.code.disassembly import listing
from warpwright.domains.sass.code.instruction import Instruction, read

_TARGET = re.compile(r"`\(([^)]+)\)")
_ABSOLUTE = re.compile(r"\b(0x[0-9a-f]+)$")
_INDIRECT = ("BRX", "JMX", "BRXU", "JMXU")


@dataclass(frozen=True, eq=False)
class Kernel:
    """The original: what never changes."""

    cubin: Cubin
    name: str
    instructions: tuple[Instruction, ...]
    words: tuple[int, ...]
    padding: tuple[int, ...]
    """Words after the last listed instruction: alignment."""
    labels: dict[str, int]
    pinned: frozenset[int]
    compiled: Kernel | None = None
    """The compiler's, where registers have been renamed (renaming.py)."""
    registers: int = 0
    """Up to how many its values were spread over; 0 where they were not."""

    @cached_property
    def targets(self) -> tuple[tuple[int, ...], ...]:
        """Instruction -> the instructions that it may jump to."""
        return tuple(self._targets_of(instruction) for instruction in self.instructions)

    def _targets_of(self, instruction: Instruction) -> tuple[int, ...]:
        targets = [self.labels[label] for label in _TARGET.findall(instruction.text) if label in self.labels]
        absolute = _ABSOLUTE.search(instruction.text)
        if not targets and absolute and instruction.base in ("BRA", "CALL", "BSSY"):
            targets = [int(absolute[1], 16) // WORD]
        return tuple(target for target in targets if target < len(self.instructions))

    @cached_property
    def blocks(self) -> tuple[range, ...]:
        """The basic blocks."""
        count = len(self.instructions)
        leaders = {0, *(label for label in self.labels.values() if label < count), *(target for targets in self.targets for target in targets)}
        leaders |= {i + 1 for i, instruction in enumerate(self.instructions) if instruction.base in isa.ENDS and i + 1 < count}
        starts = sorted(leaders)
        return tuple(range(start, end) for start, end in zip(starts, [*starts[1:], count], strict=True))

    @cached_property
    def block_of(self) -> tuple[int, ...]:
        """Place -> its block."""
        return tuple(number for number, block in enumerate(self.blocks) for _ in block)

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """Block -> the blocks that may follow it."""
        return tuple(tuple(dict.fromkeys(self._successors_of(number))) for number in range(len(self.blocks)))

    def _successors_of(self, number: int) -> list[int]:
        block = self.blocks[number]
        last = self.instructions[block[-1]]
        after = [number + 1] if number + 1 < len(self.blocks) else []
        jumps = [self.block_of[target] for target in self.targets[block[-1]]]
        unguarded = last.guard is None
        if last.base == "RET":  # to whatever follows a call
            calls = [i + 1 for i, call in enumerate(self.instructions) if call.base == "CALL" and i + 1 < len(self.instructions)]
            return [self.block_of[place] for place in calls] + ([] if unguarded else after)
        if last.base in _INDIRECT:
            everywhere = [self.block_of[label] for label in self.labels.values() if label < len(self.instructions)]
            return jumps + everywhere + after
        if last.base == "CALL":
            return jumps or after
        if last.base in ("BREAK", "BSYNC"):
            return jumps + after
        if last.base in ("BRA", "JMP"):
            conditional = any(re.match(r"!?U?P|DIV$|CONV$", operand) for operand in last.operands[:-1])
            return jumps + ([] if unguarded and not conditional else after)
        return [] if last.base in ("EXIT", "KILL") and unguarded else after

    @cached_property
    def depth(self) -> tuple[int, ...]:
        """Block -> how many loops it lies in, counted by the backward branches that span it."""
        depth = [0] * len(self.blocks)
        for number, following in enumerate(self.successors):
            block = self.blocks[number]
            for target in following if self.instructions[block[-1]].base in ("BRA", "JMP") else ():
                if target < number or (target == number and len(block) > 1):
                    for between in range(target, number + 1):
                        depth[between] += 1
        return tuple(depth)

    @cached_property
    def gmma_registers(self) -> frozenset[int]:
        """The general registers that matrix products of a warp group use."""
        uses = (instruction.defs | instruction.uses for instruction in self.instructions if instruction.is_gmma)
        return frozenset(register for registers in uses for register in registers if register < 256)

    @cached_property
    def counted_boards(self) -> int:
        """The scoreboards that some DEPBAR counts, one bit each: their operations keep them."""
        boards = 0
        for instruction in self.instructions:
            boards |= instruction.counted
        return boards

    @cached_property
    def slot_registers(self) -> tuple[tuple[int, int, int], ...]:
        """Instruction -> the registers that it reads through its operand slots."""
        return tuple(operands.slot_registers(one, word) for one, word in zip(self.instructions, self.words, strict=True))

    @cached_property
    def products(self) -> tuple[Mapping[int, int] | None, ...]:
        """Instruction -> slot -> register, of a product or sum of plain registers."""
        return tuple(operands.of_product(one, word) for one, word in zip(self.instructions, self.words, strict=True))

    @cached_property
    def digest(self) -> str:
        """Identity of the original code."""
        return digest(self.name, self.cubin.data.hex())

    @cached_property
    def original(self) -> Schedule:
        """The compiler's schedule."""
        return Schedule(self, tuple(range(len(self.instructions))), self.words)


class Identity:
    """Words that are looked up often: a tuple's hash is counted anew each time, over hundreds of numbers."""

    __slots__ = ("hash", "words")

    def __init__(self, words: tuple[int, ...]) -> None:
        self.words, self.hash = words, hash(words)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Identity) and self.words == other.words)


@dataclass(frozen=True)
class Schedule:
    """An order of a kernel's instructions within their blocks, with their control words."""

    kernel: Kernel
    order: tuple[int, ...]
    """Place -> instruction (its place in the original)."""
    words: tuple[int, ...]
    """Place -> instruction word."""
    assumed: Mapping[int, Any] = field(default_factory=dict, compare=False)
    """Block -> the state (hazards.State) at its entry, where an edit leaves more in flight there than the original; the checker's."""

    @cached_property
    def identity(self) -> Identity:
        """The words as a key of a table, hashed once."""
        return Identity(self.words)

    def at(self, place: int) -> Instruction:
        """Return the instruction at a place."""
        return self.kernel.instructions[self.order[place]]

    def place_of(self, index: int) -> int:
        """Return where an instruction stands now."""
        return self.order.index(index, *self._block_bounds(index))

    def _block_bounds(self, index: int) -> tuple[int, int]:
        block = self.kernel.blocks[self.kernel.block_of[index]]
        return block.start, block.stop

    def with_words(self, changes: dict[int, int]) -> Schedule:
        """Return the schedule with other words at some places."""
        words = list(self.words)
        for place, word in changes.items():
            words[place] = word
        return Schedule(self.kernel, self.order, tuple(words), self.assumed)

    def with_all(self, words: Sequence[int]) -> Schedule:
        """Return the schedule with other words at all places."""
        return Schedule(self.kernel, self.order, tuple(words), self.assumed)

    def exchanged(self, place: int) -> Schedule:
        """Return the schedule with the instruction at `place` and its successor exchanged, their control words with them."""
        order, words = list(self.order), list(self.words)
        order[place : place + 2] = order[place + 1], order[place]
        words[place : place + 2] = words[place + 1], words[place]
        return Schedule(self.kernel, tuple(order), tuple(words), self.assumed)

    def moved(self, place: int, to: int) -> Schedule:
        """Return the schedule with the instruction at `place` at another place, its control word with it; those between move up or down by one."""
        order, words = list(self.order), list(self.words)
        order.insert(to, order.pop(place))
        words.insert(to, words.pop(place))
        return Schedule(self.kernel, tuple(order), tuple(words), self.assumed)

    @property
    def cubin(self) -> Cubin:
        """The edited cubin."""
        return self.put_into(self.kernel.cubin)

    def put_into(self, cubin: Cubin) -> Cubin:
        """Return a cubin that has the kernel with this schedule, its number of registers and its lists of shuffles instead."""
        kernel = self.kernel
        moved = {index: place for place, index in enumerate(self.order) if place != index}
        edited = cubin.with_words(kernel.name, self.words + kernel.padding).with_listed(kernel.name, moved)
        if cubin is kernel.cubin:
            return edited
        return edited.with_register_count(kernel.name, kernel.cubin.register_count(kernel.name))

    @cached_property
    def key(self) -> str:
        """Identity of the code."""
        return digest(self.kernel.digest, b"".join(word.to_bytes(WORD, "little") for word in self.words).hex())


def read_kernel(cubin: Cubin, name: str) -> Kernel:
    """Read a kernel; raise UsageError when the cubin has none of that name, CaptureError where it cannot be disassembled."""
    listed = listing(cubin, name)
    words = cubin.words(name)
    count = len(listed.lines)
    instructions = tuple(read(index, line) for index, line in enumerate(listed.lines))
    pinned = frozenset(index for index in cubin.pinned(name) if index < count)
    free = frozenset[str]() if cubin.names_masks(name) else isa.SHUFFLES
    pinned |= {index for index in cubin.listed(name) if index < count and instructions[index].base not in free}
    return Kernel(cubin, name, instructions, words[:count], words[count:], listed.labels, pinned)

"""Registers renamed: the values of a block get registers of their own, so that instructions may pass one another that shared one before.

ptxas puts values into few registers, one after the other. A load cannot rise above the last use of the register that it fills, so the order that a
search may choose is bounded by names, not by data. Here every value that is born and dies within a block may move to another register, to the one
that has been free for longest; `limit` may be more than the compiler took, where as many blocks stay resident.

Nothing is taken on trust: the renamed words are disassembled anew, and `differences` compares the flow of data of both listings, instruction by
instruction. What the disassembler reads otherwise than meant keeps its old registers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from warpwright.domains.sass.code import control, isa
from warpwright.domains.sass.code.disassembly import P, R
from warpwright.domains.sass.code.instruction import Instruction
from warpwright.domains.sass.code.kernel import Kernel, read_kernel
from warpwright.domains.sass.editing.flow import NONE, PREDICATES, destinations, differences, file_base, named, sources, tokens
from warpwright.domains.sass.model.checker import Checker
from warpwright.domains.sass.model.distances import Distances, shipped
from warpwright.errors import CaptureError, UsageError

EARLIER = 90
"""Places that a load should be able to begin earlier, where there are registers for it."""

RESERVED = 2
"""Registers that a kernel's count has beyond those that its code names: ptxas's counts have two from sm_70 on."""

ATTEMPTS = 100
"""Times that the values of a block are dealt out, each time with one more that stays: blocks of two hundred instructions take some forty."""

STACK = 1
"""It holds the stack's address."""

ROUNDS = 12
"""Times that a renaming is tried, each time with more values left where they are."""

WRITTEN = {R: (16,), P: (81, 84)}
READ = {R: (24, 32, 64), P: (12, 87, 77)}
"""Where the numbers of registers begin in an instruction word, by file: of destinations, and of sources. Guards are sources."""

WIDTH = {R: 8, P: 3}
"""Bits of a register's number."""

SMALLEST = 8
"""Blocks of fewer instructions keep their registers."""

ADDEND = 3
"""Which operand of a product and sum the addend is."""

UNCLEAR = ("VOTE", "P2R", "R2P", "MATCH")
"""They name predicates in other ways."""

_ACCUMULATES = ("FFMA", "HFMA2", "DFMA", "IMAD", "HMMA", "IMMA", "DMMA")

Place = tuple[int, int]
"""(instruction, register)."""


@dataclass
class Value:
    """Registers that hold one value, or several that must stay side by side: from the first definition to the last use, by place."""

    start: int
    end: int
    registers: set[int] = field(default_factory=set)
    written: set[Place] = field(default_factory=set)
    read: set[Place] = field(default_factory=set)
    loaded: bool = False
    """Does an operation of variable latency write it? It should be free to begin much earlier."""
    wide: bool = False
    """Does an instruction name several of them at once? Then they stay aligned."""
    fixed: bool = False
    """Does it come from elsewhere, or live on?"""


def with_registers(kernel: Kernel, registers: int) -> Kernel:
    """Return the kernel with its values spread over so many registers; the kernel itself for 0, or where none can move."""
    if not registers:
        return kernel
    return replace(renamed(kernel, shipped(kernel.cubin.arch).with_kernel(kernel), registers - RESERVED), registers=registers)


def renamed(kernel: Kernel, distances: Distances, limit: int) -> Kernel:
    """Return the kernel with its values in up to `limit` registers; the kernel itself where none can move.

    `distances` are those of the compiler's schedule: what the renamed one would teach is not a compiler's. A cubin that names registers outside its
    code (masks of shuffles) keeps its own.
    """
    if kernel.cubin.names_masks(kernel.name):
        return kernel
    false_alarms = frozenset((violation.rule, violation.index) for violation in Checker(kernel, distances).false_alarms)
    kept: set[int] = set()
    for _ in range(ROUNDS):
        moves = list(_moves(kernel, limit, kept))
        if not moves:
            return kernel
        candidate = _with_words(kernel, _encoded(kernel, moves))
        wrong = set(differences(kernel, candidate)) or _too_early(candidate, distances, false_alarms)
        if not wrong:
            return candidate
        kept |= wrong
    return kernel


def _too_early(kernel: Kernel, distances: Distances, known: frozenset[tuple[str, int]]) -> set[int]:
    """Return the instructions that come too early for the compiler's control words, and those whose registers are in flight then."""
    found = [violation for violation in Checker(kernel, distances).false_alarms if (violation.rule, violation.index) not in known]
    return {violation.index for violation in found} | {violation.fact[2] for violation in found if violation.fact}


def renamed_as(kernel: Kernel, words: Mapping[int, int], registers: int) -> Kernel:
    """Return the kernel with the words that an earlier renaming gave some instructions; raise UsageError where they do something else."""
    every = [words.get(index, word) for index, word in enumerate(kernel.words)]
    controls = any((after ^ before) & control.MASK for after, before in zip(every, kernel.words, strict=True))
    candidate = _with_words(kernel, every)
    if controls or kernel.cubin.names_masks(kernel.name) or differences(kernel, candidate):
        seen = "expected words that differ from the compiler's in their registers alone, saw others"
        raise UsageError(seen, "give what `warpwright optimize` wrote")
    return replace(candidate, registers=registers)


def _with_words(kernel: Kernel, words: list[int]) -> Kernel:
    """Return the kernel with other words, disassembled anew; labels, and what did not change, are the compiler's."""
    cubin = kernel.cubin.with_words(kernel.name, (*words, *kernel.padding))
    listed = read_kernel(cubin, kernel.name)
    highest = max((register for one in listed.instructions for register in one.defs | one.uses if register < NONE), default=0)
    cubin = cubin.with_register_count(kernel.name, max(kernel.cubin.register_count(kernel.name), RESERVED + 1 + highest))
    if len(listed.instructions) != len(kernel.instructions):
        counts = f"expected {len(kernel.instructions)} instructions, saw {len(listed.instructions)} with others' registers"
        raise CaptureError(f"{kernel.name}: {counts}", "report this")
    pairs = zip(kernel.instructions, listed.instructions, kernel.words, words, strict=True)
    instructions = tuple(mine if before == after else theirs for mine, theirs, before, after in pairs)
    return replace(kernel, cubin=cubin, instructions=instructions, words=listed.words, compiled=kernel)


# --- values ----------------------------------------------------------------------------------------------------------------------------


def live_at_entries(kernel: Kernel) -> list[set[int]]:
    """Return the general registers that each block, or what follows it, may read before it writes them."""
    live: list[set[int]] = [set() for _ in kernel.blocks]
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(kernel.blocks))):
            here = _live_after(kernel, number, live)
            for index in reversed(kernel.blocks[number]):
                instruction = kernel.instructions[index]
                if instruction.guard is None:
                    here -= instruction.defs
                here |= set(named(instruction.uses))
            if here != live[number]:
                live[number], changed = here, True
    return live


def _live_after(kernel: Kernel, number: int, live: list[set[int]]) -> set[int]:
    return set[int]().union(*(live[following] for following in kernel.successors[number]))


def values_of(kernel: Kernel, number: int, live: list[set[int]]) -> list[Value]:
    """Return the values of a block, those that live in it or through it too."""
    block = kernel.blocks[number]
    after = _live_after(kernel, number, live)
    held = {register: Value(block.start, block.start, {register}, fixed=True) for register in live[number] | {STACK}}
    ended: list[Value] = []
    for index in block:
        instruction = kernel.instructions[index]
        for register in named(instruction.uses):
            value = held.setdefault(register, Value(block.start, index, {register}, fixed=True))
            value.end = max(value.end, index if instruction.kind == "fixed" else _answered(kernel, block, index))
            value.read.add((index, register))
        for together in _side_by_side(sources(instruction), instruction.uses):
            _joined(held, together)
        before, goes_on = dict(held), _goes_on(instruction)
        for register in named(instruction.defs):
            if goes_on and register in held:
                held[register].written.add((index, register))
                held[register].end = max(held[register].end, index)
                continue
            if instruction.guard is not None:
                held[register] = Value(block.start, index, {register}, {(index, register)}, fixed=True)
            else:
                loaded = instruction.memory is not None
                held[register] = Value(index, index, {register}, {(index, register)}, loaded=loaded, fixed=register == STACK)
        ended += _gone(before, held)
        for together in _side_by_side(destinations(instruction), instruction.defs):
            _joined(held, together)
        if _stays(kernel, instruction):
            for register in named(instruction.defs):
                held[register].fixed = True
            for register in named(instruction.uses):
                before[register].fixed = True
    for register, value in held.items():
        if register in after:
            value.fixed, value.end = True, block.stop
    return _distinct([*ended, *held.values()])


def _answered(kernel: Kernel, block: range, index: int) -> int:
    """Return where the result of an operation is first needed: by then it has read its sources, of which no scoreboard may tell before."""
    results = kernel.instructions[index].defs
    return next((later for later in range(index + 1, block.stop) if results & kernel.instructions[later].uses), block.stop)


def _goes_on(instruction: Instruction) -> bool:
    """Are registers updated in place: a sum that grows, or one of two outcomes? They stay where they are, then."""
    if instruction.guard is not None:
        return True
    operands = instruction.operands
    return instruction.base in _ACCUMULATES and len(operands) > ADDEND and tokens(operands[ADDEND]) == tokens(operands[0])


def _stays(kernel: Kernel, instruction: Instruction) -> bool:
    """Must an instruction keep its registers? Those that the cubin lists for being of the whole warp need not."""
    pointed_at = instruction.index in kernel.pinned and instruction.base not in isa.COLLECTIVES
    return instruction.is_gmma or instruction.opaque or pointed_at or instruction.base in (*isa.ENDS, *UNCLEAR)


def _side_by_side(tokens: list[int], registers: frozenset[int]) -> Iterator[list[int]]:
    """Yield the registers that one operand names together: R4 of a 128-bit load is R4 to R7."""
    general, bases = {register for register in registers if register < NONE}, set(tokens)
    for base in sorted(bases & general):
        together = [base]
        while len(together) < 8 and together[-1] + 1 in general and together[-1] + 1 not in bases:
            together.append(together[-1] + 1)
        if len(together) > 1:
            yield together


def _joined(held: dict[int, Value], together: list[int]) -> None:
    """Let several registers move by the same distance from now on."""
    first = held[together[0]]
    first.wide = True
    for register in together[1:]:
        other = held[register]
        if other is first:
            continue
        first.start, first.end = min(first.start, other.start), max(first.end, other.end)
        first.registers |= other.registers
        first.written |= other.written
        first.read |= other.read
        first.fixed |= other.fixed
        first.loaded |= other.loaded
        for name, value in held.items():
            if value is other:
                held[name] = first
        held[register] = first


def _gone(before: Mapping[int, Value], held: Mapping[int, Value]) -> list[Value]:
    """Return the values that no register holds any more."""
    still = {id(value) for value in held.values()}
    return [value for value in before.values() if id(value) not in still]


def _distinct(values: list[Value]) -> list[Value]:
    return list({id(value): value for value in values}.values())


# --- registers --------------------------------------------------------------------------------------------------------------------------


def _moves(kernel: Kernel, limit: int, kept: set[int]) -> Iterator[tuple[Value, int]]:
    """Yield the values that move, and by how many registers; those of the instructions `kept` stay.

    Where there are loops, those of loops alone move.
    """
    live, inner = live_at_entries(kernel), min(1, max(kernel.depth))
    for number, block in enumerate(kernel.blocks):
        if len(block) >= SMALLEST and kernel.depth[number] >= inner:
            values = values_of(kernel, number, live)
            for value in values:
                value.fixed |= any(index in kept for index, _ in value.written | value.read)
            for file in (R, P):
                yield from _allocated([value for value in values if file_base(min(value.registers)) == file], block.start, limit)


def _allocated(values: list[Value], start: int, limit: int) -> list[tuple[Value, int]]:
    """Return the values of a block that move; one that finds no room stays, and the others make room for it. None move where too many do not."""
    values = [replace(value) for value in values]
    for _ in range(ATTEMPTS):
        moves = _placed(values, start, limit)
        if not isinstance(moves, Value):
            return moves
        moves.fixed = True
    return []


def _placed(values: list[Value], start: int, limit: int) -> list[tuple[Value, int]] | Value:
    """Return the values that move, or the first that finds no room."""
    taken, wanted = _Timetable(), _Timetable()
    for value in values:
        if value.fixed:
            taken.add(value, 0, value.start)
    moves = []
    for value in sorted((one for one in values if not one.fixed), key=lambda one: (not one.loaded, not one.wide, one.start, min(one.registers))):
        delta = _distance(taken, wanted, value, start, limit)
        if delta is None:
            return value
        taken.add(value, delta, value.start)
        if value.loaded:
            wanted.add(value, delta, max(start, value.start - EARLIER))
        moves += [(value, delta)] if delta else []
    return moves


class _Timetable:
    """When each register is taken: from which place to which."""

    def __init__(self) -> None:
        self.stretches: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def add(self, value: Value, delta: int, start: int) -> None:
        """Take a value's registers, moved, from a place on."""
        for register in value.registers:
            self.stretches[register + delta].append((start, value.end))

    def overlaps(self, register: int, value: Value) -> bool:
        """Is a register taken while a value lives?"""
        return any((begin < value.end and value.start < end) or begin == value.start for begin, end in self.stretches.get(register, ()))

    def free_since(self, register: int, value: Value, start: int) -> int:
        """Return where the last stretch before a value ends."""
        return max((end for _, end in self.stretches.get(register, ()) if end <= value.start), default=start - 1)


def _distance(taken: _Timetable, wanted: _Timetable, value: Value, start: int, limit: int) -> int | None:
    """Return by how many registers a value moves; None where there is no room.

    To where nothing has been for longest, and, if there is such a place, where no load would like to begin earlier.
    """
    low, high = min(value.registers), max(value.registers)
    file = file_base(low)
    step = 1 if file == P else 4 if value.wide else 2  # the bank stays, and the alignment
    first, last = (P, P + PREDICATES - 1) if file == P else (R, limit - 1)
    best: tuple[bool, int, bool, int] | None = None
    chosen = None
    for delta in range(-((low - first) // step) * step, last + 1 - high, step):
        places = [register + delta for register in value.registers]
        if STACK in places or any(taken.overlaps(place, value) for place in places):
            continue
        alone = not any(wanted.overlaps(place, value) for place in places)
        gap = value.start - max(taken.free_since(place, value, start) for place in places) if alone else 0
        rank = (alone, gap, delta == 0, -abs(delta))
        if best is None or rank > best:
            best, chosen = rank, delta
    return chosen


# --- words ------------------------------------------------------------------------------------------------------------------------------


def _encoded(kernel: Kernel, moves: list[tuple[Value, int]]) -> list[int]:
    """Return the instruction words with the registers of the values that move."""
    written: dict[Place, int] = {}
    read: dict[Place, int] = {}
    for value, delta in moves:
        written.update(dict.fromkeys(value.written, delta))
        read.update(dict.fromkeys(value.read, delta))
    words = list(kernel.words)
    for index in {index for index, _ in (*written, *read)}:
        words[index] = _word(kernel.instructions[index], words[index], written, read)
    return words


def _word(instruction: Instruction, word: int, written: Mapping[Place, int], read: Mapping[Place, int]) -> int:
    with_results = _with_fields(word, instruction.index, destinations(instruction), WRITTEN, written)
    return _with_fields(with_results, instruction.index, sources(instruction), READ, read)


def _with_fields(word: int, index: int, registers: list[int], fields: Mapping[int, tuple[int, ...]], moved: Mapping[Place, int]) -> int:
    """Return the word with other registers in its fields, in the order of the text: a number or a uniform register may look the same in another."""
    left, changed = {file: list(places) for file, places in fields.items()}, word
    for register in registers:
        file, number = file_base(register), register & 255
        mask = (1 << WIDTH[file]) - 1
        at = next((at for at in left[file] if word >> at & mask == number), None)
        if at is not None:
            left[file].remove(at)
            changed = changed & ~(mask << at) | (number + moved.get((index, register), 0)) << at
    return changed

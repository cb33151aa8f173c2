"""The flow of data of two kernels compared, instruction by instruction: does renamed code say what the compiler's says?

Both are read as disassembled. An instruction says the same when its operation and operands are the same but for the numbers of the registers that are
renamed, and when each register that it reads may hold the values of the same definitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from warpwright.domains.sass.code.disassembly import P, R
from warpwright.domains.sass.code.instruction import Instruction
from warpwright.domains.sass.code.kernel import Kernel

NONE = 255
"""RZ."""

PREDICATES = 7
"""P0 to P6."""

_REGISTER = re.compile(r"(?<![\w.])([RP])(\d+)\b")
_PREDICATE = re.compile(r"^U?P(T|\d)$")


def named(registers: Iterable[int]) -> list[int]:
    """Return the registers of the files that are renamed: general ones and predicates."""
    return [register for register in registers if register < NONE or P <= register < P + PREDICATES]


def file_base(register: int) -> int:
    return register & ~255


def tokens(text: str) -> list[int]:
    """Return the registers that a text names, in its order."""
    return [(P if letter == "P" else R) + int(number) for letter, number in _REGISTER.findall(text)]


def destinations(instruction: Instruction) -> list[int]:
    """Return the registers that the instruction's text names as written: the first operands, as far as they are."""
    found: list[int] = []
    general = any(register < NONE for register in instruction.defs)
    predicates = 0
    for operand in instruction.operands:
        here = tokens(operand)
        if _PREDICATE.match(operand) and predicates < 2 and all(token in instruction.defs for token in here):
            predicates += 1
        elif general and operand.startswith("R"):
            general = False
        else:
            break
        found += here
    return found


def sources(instruction: Instruction) -> list[int]:
    """Return the registers that the instruction's text names as read, in its order: the guard first."""
    every = tokens(instruction.text)
    guard = 1 if instruction.guard is not None and file_base(instruction.guard) == P else 0
    return every[:guard] + every[guard + len(destinations(instruction)) :]


Definition = tuple[str, int, int]
"""("entry", register, 0), or ("at", instruction, which of its registers)."""


def differences(first: Kernel, second: Kernel) -> list[int]:
    """Return the instructions of which two kernels, both as disassembled, do not say the same: operation, operands, which values they read."""
    if len(first.instructions) != len(second.instructions) or first.blocks != second.blocks:
        return list(range(len(first.instructions)))
    wrong = [mine.index for mine, theirs in zip(first.instructions, second.instructions, strict=True) if _shape(mine) != _shape(theirs)]
    return wrong or _flow_differs(first, second)


def _shape(instruction: Instruction) -> tuple[object, ...]:
    """Return what an instruction says but for the numbers of the registers that are renamed."""
    others = (frozenset(registers) - frozenset(named(registers)) for registers in (instruction.defs, instruction.uses))
    counts = (len(named(instruction.defs)), len(destinations(instruction)))
    return _REGISTER.sub(r"\1#", instruction.text), *others, *counts


def _flow_differs(first: Kernel, second: Kernel) -> list[int]:
    return [index for index, (mine, theirs) in enumerate(zip(_reads(first), _reads(second), strict=True)) if mine != theirs]


def _reads(kernel: Kernel) -> list[list[frozenset[Definition]]]:
    """Return, for each instruction, which definitions may reach each register that it reads: operand by operand, in the order of the text."""
    found: list[list[frozenset[Definition]]] = [[] for _ in kernel.instructions]
    for number, reaching in enumerate(_reaching(kernel)):
        state = dict(reaching)
        for index in kernel.blocks[number]:
            instruction = kernel.instructions[index]
            found[index] = [state.get(register, frozenset([("entry", register, 0)])) for register in _read_in_order(instruction)]
            _define(state, instruction)
    return found


def _read_in_order(instruction: Instruction) -> Iterator[int]:
    """Yield the registers that an instruction reads, as its operands name them: each with those beside it unnamed; then what no source names."""
    uses, told = set(named(instruction.uses)), set(sources(instruction))
    left = set(uses)
    for register in sources(instruction):
        yield register
        left.discard(register)
        beside = register + 1
        while register < NONE and beside in uses and beside not in told:
            yield beside
            left.discard(beside)
            beside += 1
    yield from sorted(left)


def _define(state: dict[int, frozenset[Definition]], instruction: Instruction) -> None:
    """Let an instruction write: each register is known by the operand that names it and its place behind that."""
    told = destinations(instruction)
    for register in named(instruction.defs):
        base = max((one for one in told if one <= register and file_base(one) == file_base(register)), default=None)
        mine = frozenset([("at", instruction.index, register if base is None else 1000 * (1 + told.index(base)) + register - base)])
        older = state.get(register, frozenset([("entry", register, 0)]))
        state[register] = mine if instruction.guard is None else mine | older


def _reaching(kernel: Kernel) -> list[dict[int, frozenset[Definition]]]:
    """Return the definitions that may reach the entry of each block."""
    entries: list[dict[int, frozenset[Definition]]] = [{} for _ in kernel.blocks]
    seen, waiting = [False] * len(kernel.blocks), [0]
    seen[0] = True
    while waiting:
        number = waiting.pop()
        state = dict(entries[number])
        for index in kernel.blocks[number]:
            _define(state, kernel.instructions[index])
        for following in kernel.successors[number]:
            if _merge(entries[following], state, seen[following]) or not seen[following]:
                seen[following] = True
                if following not in waiting:
                    waiting.append(following)
    return entries


def _merge(into: dict[int, frozenset[Definition]], state: Mapping[int, frozenset[Definition]], seen: bool) -> bool:
    changed = False
    for register in into.keys() | state.keys():
        entry = frozenset([("entry", register, 0)])
        older = into.get(register, entry if seen else frozenset())
        both = older | state.get(register, entry)
        if both != into.get(register):
            into[register], changed = both, True
    return changed

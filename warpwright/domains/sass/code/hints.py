"""Hints of loads and stores of global memory: which lines a cache gives up first, and how much the second-level cache fetches with a line.

    bits     field
    68-69    ahead: 0 nothing, else 64, 128 or 256 bytes that the second-level cache fetches (LTC64B in a listing); of loads alone
    84-86    evict: first (EF), normally, last (EL), unchanged (EU), or not kept in the first-level cache (NA)

They say nothing of what is read or written, or in what order (PTX: performance hints), so every value is legal. The numbers come from compiles of
`ld.global.L1::evict_first` and its kin for sm_80, 86, 89 and 90, which agree. What is strong, volatile or of another space keeps its word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warpwright.domains.sass.code import control
from warpwright.domains.sass.code.instruction import Instruction

EVICTIONS: Mapping[str, int] = {"first": 0, "normal": 1, "last": 2, "unchanged": 4, "none": 5}

AHEADS: Mapping[int, int] = {0: 0, 64: 1, 128: 2, 256: 3}

_EVICTION, _AHEAD = 84, 68
_MASKS = {"LDG": 7 << _EVICTION | 3 << _AHEAD, "STG": 7 << _EVICTION}

ARCHITECTURES = range(80, 91)

_NAMES = {number: name for name, number in EVICTIONS.items()}
_BYTES = {number: ahead for ahead, number in AHEADS.items()}


@dataclass(frozen=True)
class Hint:
    """What an access says to the caches."""

    evict: str
    ahead: int = 0

    def __str__(self) -> str:
        return f"{self.evict} {self.ahead}"


def mask(instruction: Instruction, word: int, arch: int) -> int:
    """Return the bits of an instruction's word that are hints; 0 where it has none that are known."""
    if arch not in ARCHITECTURES or any(mark in instruction.opcode for mark in (".STRONG", ".MMIO", ".VOLATILE", ".PRIVATE")):
        return 0
    return _MASKS.get(instruction.base, 0) if word >> _EVICTION & 7 in _NAMES else 0


def means_the_same(instruction: Instruction, before: int, after: int, arch: int) -> bool:
    """Do two words of an instruction differ in their control fields and hints alone, and are these known ones?"""
    hinted = mask(instruction, before, arch)
    known = not hinted or mask(instruction, after, arch) != 0
    return known and not (before ^ after) & ~(control.MASK | hinted)


def read(word: int, instruction: Instruction) -> Hint:
    """Return the hint of an access that has one (`mask`)."""
    return Hint(_NAMES[word >> _EVICTION & 7], _BYTES[word >> _AHEAD & 3] if instruction.base == "LDG" else 0)


def write(word: int, instruction: Instruction, hint: Hint) -> int:
    """Return the word of an access with another hint; raise KeyError or ValueError for one that there is not."""
    if instruction.base != "LDG" and hint.ahead:
        raise ValueError(f"expected no bytes ahead of a store, saw {hint}")
    ahead = AHEADS[hint.ahead] << _AHEAD if instruction.base == "LDG" else 0
    return word & ~_MASKS[instruction.base] | EVICTIONS[hint.evict] << _EVICTION | ahead


def parse(text: str) -> Hint:
    """Return the hint that prints as `text`; raise ValueError or KeyError for what none prints as."""
    evict, ahead = text.split()
    return Hint(evict, int(ahead))

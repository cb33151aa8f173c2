"""List scheduling of a block: an order that keeps its dependences, nearest to what is wanted; and the dependences as that needs them."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from warpwright import native
from warpwright.domains.sass.code.instruction import Instruction
from warpwright.domains.sass.model.checker import Checker
from warpwright.domains.sass.model.native_model import FLAGS

LATENCIES: Mapping[str, float] = {"LDG": 200.0, "LDS": 28.0, "LDSM": 32.0, "SHFL": 26.0, "MUFU": 20.0, "LDC": 30.0, "HMMA": 24.0, "S2R": 24.0}
"""Cycles until a result is there (published measurements on an H100, rounded), for priorities alone: a wrong one makes a slow schedule."""

OTHER_LATENCY, FIXED_LATENCY = 20.0, 5.0

BY = ("place", "operands", "cycles", "time")
"""What decides among instructions that are wanted near one another, as listing.cpp numbers it."""

OCCUPIED: Mapping[str, float] = {"ALU": 2.0, "FP16": 2.0, "IMAD": 2.0, "lsu": 4.0, "xu": 8.0, "HMMA": 16.0}
"""Cycles for which an instruction of a class keeps its pipe, on sm_90 (16 lanes a cycle for what takes two): for orders by time alone."""


@cache
def library() -> ctypes.CDLL:
    """Return the built library; raise UsageError where there is no C++ compiler."""
    found = ctypes.CDLL(str(native.build(Path(__file__).with_name("listing.cpp").read_text(), flags=FLAGS)))
    pointer, number = ctypes.c_void_p, ctypes.c_int
    found.links_make.restype, found.links_make.argtypes = pointer, [number, pointer, pointer]
    found.links_free.argtypes = [pointer]
    found.links_list.argtypes = [pointer, pointer, pointer, number, pointer]
    return found


class Links:
    """A block's dependences, made once: its edits list it thousands of times."""

    def __init__(self, checker: Checker, number: int) -> None:
        self.start, self.count = checker.kernel.blocks[number].start, len(checker.kernel.blocks[number])
        self.height: Mapping[int, float] = heights(checker, number)
        """Instruction -> the cycles of the longest chain from it to the block's end."""
        numbers, cycles = _nodes(checker, number)
        self.functions = library()
        self.pointer = self.functions.links_make(self.count, _address(numbers), _address(cycles))

    def __del__(self) -> None:
        if "pointer" in self.__dict__:
            self.functions.links_free(self.pointer)

    def listed(self, order: Sequence[int], wanted: Mapping[int, float], by: str = "place") -> list[int]:
        """Return an order that keeps dependences, nearest to what is wanted: the first of what is ready, or what `by` favours near it."""
        here = array("i", [index - self.start for index in order])
        places = array("d", [wanted[index] for index in range(self.start, self.start + self.count)])
        found = array("i", bytes(4 * self.count))
        self.functions.links_list(self.pointer, _address(here), _address(places), BY.index(by), _address(found))
        return [index + self.start for index in found]


def _address(numbers: array[Any]) -> int:
    return numbers.buffer_info()[0]


def links_of(checker: Checker, number: int) -> Links:
    """Return a block's links."""
    known: dict[int, Links] = checker.__dict__.setdefault("_links_known", {})
    if number not in known:
        known[number] = Links(checker, number)
    return known[number]


def heights(checker: Checker, number: int) -> dict[int, float]:
    """Return the length of the longest chain from each instruction of a block to its end, in cycles."""
    block, before, instructions = checker.kernel.blocks[number], checker.before(number), checker.kernel.instructions
    height = dict.fromkeys(block, 0.0)
    for index in reversed(block):
        for earlier in before[index]:
            waited = _latency(instructions[earlier]) if instructions[earlier].defs & instructions[index].uses else 1.0
            height[earlier] = max(height[earlier], waited + height[index])
    return height


def _nodes(checker: Checker, number: int) -> tuple[array[int], array[float]]:
    """Return what C++ is told of a block: dependences that others imply are left out, unless they ask for more than a cycle."""
    block, before, instructions = checker.kernel.blocks[number], checker.before(number), checker.kernel.instructions
    direct, pipes = _direct(block, before), dict[str, int]()
    after: dict[int, list[int]] = {index: [] for index in block}
    for index in block:
        for earlier in direct[index]:
            after[earlier].append(index)
    numbers, cycles = array("i"), array("d")
    for index in block:
        one, product = instructions[index], checker.kernel.products[index]
        pairs = [(earlier, apart(checker, instructions[earlier], one)) for earlier in before[index]]
        told = [(earlier, needed) for earlier, needed in pairs if needed > 1.0 or earlier in direct[index]]
        registers = [(product or {}).get(slot, -1) for slot in range(3)]
        numbers.extend([len(direct[index]), int(product is not None), *registers, pipes.setdefault(one.latency_class, len(pipes))])
        numbers.extend([len(after[index]), *(later - block.start for later in after[index])])
        numbers.extend([len(told), *(earlier - block.start for earlier, _ in told)])
        cycles.extend([OCCUPIED.get(one.latency_class, 1.0), *(needed for _, needed in told)])
    return numbers, cycles


def _direct(block: range, before: Mapping[int, frozenset[int]]) -> dict[int, set[int]]:
    """Return what each instruction of a block depends on, without what something else that it depends on does."""
    reached: dict[int, int] = {}
    direct: dict[int, set[int]] = {}
    for index in block:
        behind, direct[index] = 0, set()
        for earlier in sorted(before[index], reverse=True):
            if not behind >> earlier - block.start & 1:
                direct[index].add(earlier)
                behind |= reached[earlier]
        reached[index] = behind | 1 << index - block.start
    return direct


def _latency(instruction: Instruction) -> float:
    if instruction.kind == "fixed":
        return LATENCIES.get(instruction.base, FIXED_LATENCY)
    return LATENCIES.get(instruction.base, OTHER_LATENCY)


def apart(checker: Checker, first: Instruction, second: Instruction) -> float:
    """Return the cycles from one instruction to another that depends on it."""
    shared = first.defs & second.uses
    if not shared:
        return 1.0
    if first.kind != "fixed":
        return _latency(first)
    needed = checker.distances.needed
    keys = (("RAW", first.producers[register], *consumer) for register in shared for consumer in second.consumers[register])
    return float(max((needed(key) for key in keys), default=1))

"""The model of hazards in C++ (hazards.hpp, settling.cpp), for searches: the answers of hazards.py, some hundred times as fast.

It is built once, by g++ or clang++. This file tells it what it needs of a kernel as numbers: registers, classes of latency, consumers, and the
distance that each pair needs.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from warpwright import native
from warpwright.domains.sass.code import control, isa
from warpwright.domains.sass.code.instruction import Instruction, file_of
from warpwright.domains.sass.code.kernel import Kernel, Schedule
from warpwright.domains.sass.model import hazards
from warpwright.domains.sass.model.distances import Distances
from warpwright.domains.sass.model.hazards import BOARD, DRAIN, FENCE, OPERATION, PIPES, WAIT, Fact, Key, State, Violation
from warpwright.domains.sass.model.model import Alarm

FLAGS = ("-O2", "-std=c++17", "-shared", "-fPIC")

RULES = ("RAW", "WAW", "WAR", "GMMA", "DISTANCE", "FLIGHT")
HAZARDS = ("RAW", "WAW", "WAR", "SET", "AFTER")
KINDS = ("fence", "memory", "variable", "fixed")
READERS = tuple(isa.READ_BEFORE)

REUSE_REACH = 34
"""A reuse flag is kept when its reader stands at most this far behind, as settling.cpp has it."""


@cache
def library() -> ctypes.CDLL:
    """Return the built library; raise UsageError where there is no C++ compiler."""
    text = "".join(Path(__file__).with_name(name).read_text() for name in ("hazards.hpp", "settling.cpp"))
    found = ctypes.CDLL(str(native.build(text, flags=FLAGS)))
    for name in ("engine_make", "state_make", "state_copy"):
        getattr(found, name).restype = ctypes.c_void_p
    pointer, number = ctypes.c_void_p, ctypes.c_int
    found.engine_make.argtypes = [pointer]
    found.state_make.argtypes = [pointer, pointer]
    for name in ("engine_free", "state_copy", "state_free"):
        getattr(found, name).argtypes = [pointer]
    for name in ("state_join", "state_within"):
        getattr(found, name).argtypes = [pointer, pointer]
    found.block_run.argtypes = [pointer, pointer, number, pointer, pointer, number, pointer]
    found.block_settle.argtypes = [pointer, pointer, number, pointer, pointer, number]
    found.block_relist.argtypes = [pointer, pointer, number, pointer, pointer, pointer, number]
    found.block_repair.argtypes = [pointer, pointer, number, pointer, pointer]
    found.block_reuse.argtypes = [pointer, number, pointer, pointer, number]
    return found


class NativeState:
    """A state that C++ holds."""

    def __init__(self, functions: ctypes.CDLL, pointer: int) -> None:
        self.functions, self.pointer = functions, pointer

    def __del__(self) -> None:
        self.functions.state_free(self.pointer)

    def copy(self) -> NativeState:
        """Return a state that can be changed alone."""
        return NativeState(self.functions, self.functions.state_copy(self.pointer))

    def join(self, other: NativeState) -> bool:
        """Take in what may be in flight on another path (rule 6); return whether that was anything new."""
        return bool(self.functions.state_join(self.pointer, other.pointer))

    def within(self, other: NativeState) -> bool:
        """Is everything that may be in flight here also in flight there, no older and no better covered?"""
        return bool(self.functions.state_within(self.pointer, other.pointer))


@dataclass(frozen=True, eq=False)
class NativeModel:
    """The model of one kernel, by hazards.hpp; the fields are those of Model."""

    kernel: Kernel
    distances: Distances
    flights: Mapping[int, frozenset[int]]
    accepted: Mapping[Alarm, int]

    @cached_property
    def tables(self) -> Tables:
        """What the C++ is told of the kernel."""
        return Tables(self.kernel, self.distances, self.flights, self.accepted)

    @cached_property
    def engine(self) -> _Engine:
        """The C++ side's kernel."""
        return _Engine(library(), self.tables.numbers())

    def state(self, state: State) -> NativeState:
        """Return a state of hazards.py as one of C++."""
        numbers, functions = self.tables.state(state), self.engine.functions
        return NativeState(functions, functions.state_make(self.engine.pointer, _address(numbers)))

    def walk(self, schedule: Schedule, block: int, entry: NativeState) -> tuple[Violation | None, NativeState]:
        """Issue a block from the state at its entry, to its end or its first violation; return that, and the state there."""
        state, told = entry.copy(), array("i", bytes(4 * 11))
        passed = self._run(schedule, block, state, 0, told)
        return (None if passed else self.tables.violation(told)), state

    def _run(self, schedule: Schedule, block: int, state: NativeState, silent: int, told: array[int]) -> bool:
        order, controls = _packed(schedule, self.kernel.blocks[block])
        run = self.engine.functions.block_run
        return bool(run(self.engine.pointer, state.pointer, len(order), _address(order), _address(controls), silent, _address(told)))

    def entries(self, schedule: Schedule) -> list[Any]:
        """Return the state at the entry of every block; None where nothing leads."""
        told = array("i", bytes(4 * 11))

        def after(block: int, entry: NativeState) -> NativeState:
            state = entry.copy()
            self._run(schedule, block, state, 1, told)
            return state

        return hazards.fixed_point(self.kernel, self.state(hazards.at_start(self.kernel)), after)

    def settled(self, schedule: Schedule, block: int, entry: NativeState, shortest: bool) -> Schedule | None:
        """Return a schedule with the waits and stalls that a block lacks, added in one pass; None where that is not to be had.

        `shortest`: with stalls of one cycle first, but of fences and of the block's last, which order more than registers.
        """
        places, state = self.kernel.blocks[block], entry.copy()
        order, controls = _packed(schedule, places)
        settle = self.engine.functions.block_settle
        done = settle(self.engine.pointer, state.pointer, len(order), _address(order), _address(controls), int(shortest))
        return _with_controls(schedule, places, controls) if done else None

    def relisted(self, schedule: Schedule, block: int, entry: NativeState, new: Sequence[int], shortest: bool) -> Schedule | None:
        """Return a schedule with a block in another order: every result has a scoreboard of its own, operands are kept, and then as `settled`."""
        places, state = self.kernel.blocks[block], entry.copy()
        span = slice(places.start, places.stop)
        (old, controls), order = _packed(schedule, places), array("i", new)
        relist = self.engine.functions.block_relist
        addresses = (_address(old), _address(order), _address(controls))
        if not relist(self.engine.pointer, state.pointer, len(order), *addresses, int(shortest)):
            return None
        word_of, shift, others = dict(zip(old, schedule.words[span], strict=True)), control.SHIFT, ~control.MASK
        words = tuple([word_of[index] & others | fields << shift for index, fields in zip(order, controls, strict=True)])
        orders = (schedule.order[: span.start], tuple(new), schedule.order[span.stop :])
        return Schedule(schedule.kernel, sum(orders, ()), schedule.words[: span.start] + words + schedule.words[span.stop :], schedule.assumed)

    def repaired(self, schedule: Schedule, block: int, entry: NativeState) -> Schedule | None:
        """Return a schedule with waits and stalls added, one by one, for what a block's walk finds first; None where that does not help."""
        places = self.kernel.blocks[block]
        order, controls = _packed(schedule, places)
        repair = self.engine.functions.block_repair
        done = repair(self.engine.pointer, entry.pointer, len(order), _address(order), _address(controls))
        return _with_controls(schedule, places, controls) if done else None

    def without_stale_reuse(self, schedule: Schedule, low: int, high: int) -> Schedule:
        """Drop the reuse flags around some places of a block whose operand is not read again, through the same slot, before it is written."""
        block = self.kernel.blocks[self.kernel.block_of[low]]
        first, last = max(block.start, low - REUSE_REACH), min(block.stop, high + 1)
        places = range(first, min(block.stop, last + REUSE_REACH))
        order, controls = _packed(schedule, places)
        self.engine.functions.block_reuse(self.engine.pointer, len(order), _address(order), _address(controls), last - first)
        return _with_controls(schedule, places, controls)


def _with_controls(schedule: Schedule, places: range, controls: array[int]) -> Schedule:
    """Return a schedule with other control fields at some places; the same where they are the same."""
    shift, mask = control.SHIFT, control.MASK
    span = slice(places.start, places.stop)
    before = schedule.words[span]
    after = tuple([word if word & mask == fields << shift else word & ~mask | fields << shift for word, fields in zip(before, controls, strict=True)])
    return schedule if after == before else schedule.with_all(schedule.words[: span.start] + after + schedule.words[span.stop :])


class _Engine:
    def __init__(self, functions: ctypes.CDLL, numbers: array[int]) -> None:
        self.functions, self.pointer = functions, functions.engine_make(_address(numbers))

    def __del__(self) -> None:
        self.functions.engine_free(self.pointer)


def _address(numbers: array[int]) -> int:
    return numbers.buffer_info()[0]


def _packed(schedule: Schedule, places: range) -> tuple[array[int], array[int]]:
    """Return the instructions of a block and their control fields: C++ sees these twenty bits of a word alone."""
    span, shift, fields = slice(places.start, places.stop), control.SHIFT, control.FIELDS
    return array("i", schedule.order[span]), array("i", [word >> shift & fields for word in schedule.words[span]])


class _Numbers:
    """Things -> 0, 1, 2 ... in the order in which they are first named."""

    def __init__(self, first: Iterable[Any] = ()) -> None:
        self.known: dict[Any, int] = {}
        for one in first:
            self(one)

    def __call__(self, thing: Any) -> int:
        return self.known.setdefault(thing, len(self.known))

    def of(self, number: int) -> Any:
        return list(self.known)[number]


class Tables:
    """A kernel as numbers."""

    def __init__(self, kernel: Kernel, distances: Distances, flights: Mapping[int, frozenset[int]], accepted: Mapping[Alarm, int]) -> None:
        self.kernel, self.distances, self.flights, self.accepted = kernel, distances, flights, accepted
        self.names, self.consumers = _Numbers(), _Numbers([WAIT, DRAIN])  # by these numbers in hazards.hpp
        self.groups = _Numbers()
        instructions = kernel.instructions
        self.registers = _Numbers(register for one in instructions for register in (*one.uses, *one.defs))
        self.board = len(self.registers.known)
        for special in (*(BOARD + board for board in range(control.BOARDS)), FENCE, PIPES):
            self.registers(special)
        self.count = len(self.registers.known)
        self.spacing = isa.spacing(kernel.cubin.arch)

    def numbers(self) -> array[int]:
        """Return all that `engine_make` reads."""
        rows = [self._row(one) for one in self.kernel.instructions]
        alarms = [self._alarm(alarm, cycles) for alarm, cycles in self.accepted.items()]
        late = [int(name[0] == "<") for name in self.names.known]
        needed = [
            self.distances.needed((hazard, name, *consumer)) if self._asked(hazard, consumer) else 0
            for hazard in HAZARDS for name in self.names.known for consumer in self.consumers.known
        ]  # fmt: skip
        specials = [self.board, self.registers(FENCE), self.registers(PIPES), self.kernel.counted_boards]
        head = [self.count, len(late), len(self.consumers.known), *specials]
        body = [number for row in rows for number in row] + [len(alarms), *(number for row in alarms for number in row)]
        general = [self.registers.known.get(register, -1) for register in range(256)]
        return array("i", [*head, *_list(late), *_list(general), *_list(needed), len(rows), *body])

    @staticmethod
    def _asked(hazard: str, consumer: tuple[str, str]) -> bool:
        """Is a distance of that kind ever asked for such a consumer?"""
        return {"SET": consumer[1] == "SB", "AFTER": consumer[1] == "M"}.get(hazard, consumer[1] not in ("SB", "M"))

    def _row(self, one: Instruction) -> list[int]:
        gmma = sorted(register for register in one.defs | one.uses if register < 256)
        flags = (one.is_gmma, one.waits_for_gmma, one.base in isa.ENDS, one.guard is not None, one.queue is not None, one.private)
        pipe = isa.PIPE.get(one.base) if one.kind != "fence" else None
        read = sum(1 << READERS.index(base) for base in isa.READ_BEFORE.get(one.base, ()) if base in READERS)
        fence = self.names(one.base) if one.base in isa.FENCES and one.base not in isa.ENDS else -1
        scalars = [
            KINDS.index(one.kind), sum(flag << bit for bit, flag in enumerate(flags)), one.drained, self.names(one.latency_class),
            self.names("<" + one.latency_class), self.names(pipe) if pipe else -1, self.spacing[pipe] if pipe else 0,
            self.groups(one.group), READERS.index(one.base) if one.base in READERS else -1, read, fence, self.consumers((one.kind, "M")),
            self.kernel.words[one.index] >> control.SHIFT & control.FIELDS, *self.kernel.slot_registers[one.index],
            sum(1 << slot for slot in self.kernel.products[one.index] or ()),
        ]  # fmt: skip
        uses: list[int] = []
        for register in one.uses:
            uses += [self.registers(register), *_list([self.consumers(consumer) for consumer in one.consumers[register]])]
        defs: list[int] = []
        for register in one.defs:
            defs += [self.registers(register), self.names(one.producers[register]), self.consumers((one.latency_class, file_of(register)))]
        lists = (self._registers(one.tracked_reads), self._registers(one.late_reads), sorted(self.flights.get(one.index, ())), gmma)
        return [*scalars, len(one.uses), *uses, len(one.defs), *defs, *(number for row in lists for number in _list(row))]

    def _registers(self, registers: Iterable[int]) -> list[int]:
        return [self.registers(register) for register in registers]

    def _register(self, register: int, rule: str) -> int:
        if rule == "GMMA":
            return register
        return self.count + register - OPERATION if register >= OPERATION else self.registers(register)

    def _alarm(self, alarm: Alarm, cycles: int) -> list[int]:
        rule, index, register, fact, key = alarm
        what = [int(fact[0]), fact[2]] if fact else [-1, -1]
        distance = [HAZARDS.index(key[0]), self.names(key[1]), self.consumers(key[2:])] if key else [-1, -1, -1]
        return [RULES.index(rule), index, self._register(register, rule), *what, *distance, cycles]

    def state(self, state: State) -> array[int]:
        """Return all that `state_make` reads."""
        pairs = [(register, fact, cover) for register, pending in state.facts.items() for fact, cover in pending.items()]
        facts = [(self._register(register, ""), int(fact[0]), fact[2], cover) for register, fact, cover in pairs]
        ages = [(self.registers(register), self.names(name), cycle) for register, known in state.ages.items() for name, cycle in known.items()]
        flat = [len(facts), *(number for row in facts for number in row), len(ages), *(number for row in ages for number in row)]
        return array("i", [state.now, *flat, *_list(sorted(state.gmma))])

    def violation(self, told: Sequence[int]) -> Violation:
        """Return what C++ found."""
        rule, index, register, pending, other, cover, hazard, name, consumer, cycles, needed = told
        if RULES[rule] == "GMMA":
            return Violation("GMMA", index, register)
        real = OPERATION + register - self.count if register >= self.count else self.registers.of(register)
        key: Key | None = None
        if hazard >= 0:
            key = (HAZARDS[hazard], self.names.of(name), *self.consumers.of(consumer))
        fact: Fact | None = None
        if other >= 0:
            instruction = self.kernel.instructions[other]
            fact = (bool(pending), instruction.group if pending else instruction.reader, other)
        return Violation(RULES[rule], index, real, fact, cover, key, cycles, needed)


def _list(numbers: Sequence[int]) -> list[int]:
    return [len(numbers), *numbers]

"""The model of a warp's hazards: what is in flight at each point of a kernel, and which instruction comes too early for it.

Variable latencies are protected by six scoreboards, fixed ones by the distance in cycles; the hardware interlocks neither. Rules:

    1  an operation with a write scoreboard holds its results until a wait on that board; its sources until one on its read or its write board
    2  some operations read their sources in order (isa.READ_BEFORE): a board that a later one sets covers the reads before it too. Results
       come back in order within one group (isa.RETURNS): a later board covers those earlier results of its group that have no board, and
       the reads of all earlier ones of its group
    3  a wait clears whatever the board covers, if the board was set at least two cycles before (learnt: `SET` distances); a DEPBAR, which waits
       by itself, may follow after one
    4  a write after a read that comes before it in that order is free
    5  registers of a warp group's matrix products belong to them until WARPGROUP.DEPBAR gsb0, 0
    6  where paths meet, facts unite and covers intersect
    7  at a fence, a branch or a memory access no operation may be in flight that was not in flight there in the original: what a wait protects
       there may be another thread's data, which registers do not show. Operations that no other thread can see are free of it (`private`)
    8  what touches memory, has a variable latency or is a fence comes some cycles after a fence (learnt: `AFTER` distances): a warp is not yet held
       by a barrier in the cycles behind it, six on sm_90
    9  a pipe takes an operation every few cycles (isa.SPACING): one that comes closer sets its boards and reads its sources when it is taken
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from warpwright.domains.sass.code import control, isa
from warpwright.domains.sass.code.instruction import Instruction, file_of
from warpwright.domains.sass.code.kernel import Kernel, Schedule

HORIZON = 40
"""Cycles after which a fixed latency is over."""

BOARD, FENCE, PIPES, OPERATION = 1024, 1536, 1537, 2048
"""Pseudo registers: the setting of a scoreboard, the last fences, when each pipe took its last operation, and an operation as a whole."""

WAIT, DRAIN = ("wait", "SB"), ("drain", "SB")
"""What a `SET` distance is learnt for: a wait in a control word, or a DEPBAR. Compilers write LDGDEPBAR and the DEPBAR that drains its board a cycle
apart; when that was taken for any wait's distance, an address was overwritten a cycle after the STS that was to read it (an H200: misaligned)."""

_NONE: frozenset[str] = frozenset()

Fact = tuple[bool, str, int]
"""(is it a pending write?, what it is in order with, instruction): a register's use by an operation in flight.

The second is the group of results (`Instruction.group`) for a write, the opcode (`Instruction.reader`) for a read."""

Key = tuple[str, str, str, str]
"""What a distance is learnt for: (hazard, producer's class, consumer's class and slot, register file)."""


@dataclass(frozen=True)
class Violation:
    """An instruction that comes too early."""

    rule: str
    """RAW, WAR, WAW (variable latency), GMMA, DISTANCE, FLIGHT."""
    index: int
    """The instruction."""
    register: int
    fact: Fact | None = None
    """What is still in flight."""
    cover: int = 0
    """The scoreboards (bits) that would clear it."""
    key: Key | None = None
    cycles: int = 0
    needed: int = 0


@dataclass(eq=False)
class State:
    """What may be in flight at a point of the program."""

    facts: dict[int, dict[Fact, int]] = field(default_factory=dict)
    """Register -> fact -> the scoreboards (bits) any of which clears it."""
    ages: dict[int, dict[str, int]] = field(default_factory=dict)
    """Register -> class of its producer ("<class" of a late reader) -> cycle of issue."""
    now: int = 0
    gmma: frozenset[int] = frozenset()
    spacing: Mapping[str, int] = field(default_factory=lambda: isa.SPACING)
    """Cycles that each pipe takes for an operation, on this architecture."""

    def copy(self) -> State:
        """Return a state that can be changed alone."""
        facts = {register: dict(facts) for register, facts in self.facts.items()}
        return State(facts, {register: dict(ages) for register, ages in self.ages.items()}, self.now, self.gmma, self.spacing)

    def elapsed(self) -> dict[int, dict[str, int]]:
        """Return the ages in cycles before now, without what is over."""
        young_by_register = {}
        for register, ages in self.ages.items():
            young = {name: self.now - cycle for name, cycle in ages.items() if self.now - cycle < HORIZON}
            if young:
                young_by_register[register] = young
        return young_by_register

    def join(self, other: State) -> bool:
        """Take in what may be in flight on another path (rule 6); return whether that was anything new."""
        changed = False
        for register, facts in other.facts.items():
            mine = self.facts.setdefault(register, {})
            for fact, cover in facts.items():
                both = mine[fact] & cover if fact in mine else cover
                if mine.get(fact) != both:
                    mine[fact] = both
                    changed = True
        for register, ages in other.elapsed().items():
            known = self.ages.setdefault(register, {})
            for name, cycles in ages.items():
                if name not in known or cycles < self.now - known[name]:
                    known[name] = self.now - cycles
                    changed = True
        if not other.gmma <= self.gmma:
            self.gmma |= other.gmma
            changed = True
        return changed

    def within(self, other: State) -> bool:
        """Is everything that may be in flight here also in flight there, no older and no better covered?"""
        for register, facts in self.facts.items():
            theirs = other.facts.get(register, {})
            if any(fact not in theirs or theirs[fact] & ~cover for fact, cover in facts.items()):
                return False
        older = other.elapsed()
        for register, ages in self.elapsed().items():
            known = older.get(register, {})
            if any(name not in known or known[name] > cycles for name, cycles in ages.items()):
                return False
        return self.gmma <= other.gmma

    def in_flight(self) -> frozenset[int]:
        """Return the operations that may be in flight."""
        return frozenset(register - OPERATION for register in self.facts if register >= OPERATION)


Report = Callable[[Violation], None]
Needed = Callable[[Key], int]
Learn = Callable[[Key, int], None]


@dataclass(frozen=True)
class Watch:
    """Who is told what while instructions issue."""

    report: Report | None = None
    """Told of violations."""
    needed: Needed | None = None
    """Says what distance a key needs; without it distances are not checked."""
    learn: Learn | None = None
    """Told every distance, instead of checking them."""
    flight: Callable[[Instruction, State], None] | None = None
    """Shown the state at every fence, branch and memory access, after its waits (rule 7)."""


SILENT = Watch()


def step(state: State, instruction: Instruction, word: int, watch: Watch = SILENT) -> None:
    """Issue one instruction."""
    examine(state, instruction, word, watch)
    issue(state, instruction, word)


def examine(state: State, instruction: Instruction, word: int, watch: Watch) -> None:
    """Let an instruction wait for what it waits for, and tell `watch` what comes too early; it may be asked again with more waits, or later."""
    _wait(state, instruction, word, watch)
    if watch.flight and instruction.kind in ("fence", "memory"):
        watch.flight(instruction, state)
    if watch.report:
        _check_facts(state, instruction, watch.report)
    if watch.learn or watch.needed:
        _check_distances(state, instruction, watch)


def _wait(state: State, instruction: Instruction, word: int, watch: Watch) -> None:
    """Clear what the instruction waits for (rule 3)."""
    mask = control.waits(word) | instruction.drained
    if not mask:
        return
    facts = state.facts
    for register in [register for register, pending in facts.items() if any(cover & mask for cover in pending.values())]:
        left = {fact: cover for fact, cover in facts[register].items() if not cover & mask}
        if left:
            facts[register] = left
        else:
            del facts[register]
    if not (watch.learn or watch.needed):
        return
    for waiter, boards in ((WAIT, control.waits(word)), (DRAIN, instruction.drained)):
        for board in (board for board in range(control.BOARDS) if boards >> board & 1):
            for name, cycle in state.ages.get(BOARD + board, {}).items():
                if state.now - cycle < HORIZON:
                    _compare(("SET", name, *waiter), state.now - cycle, instruction.index, BOARD + board, watch)


def _check_facts(state: State, instruction: Instruction, report: Report) -> None:
    facts, index, read = state.facts, instruction.index, isa.READ_BEFORE.get(instruction.base, _NONE)
    for register in instruction.uses:
        for fact, cover in facts.get(register, {}).items():
            if fact[0]:
                report(Violation("RAW", index, register, fact, cover))
    for register in instruction.defs:
        for fact, cover in facts.get(register, {}).items():
            if fact[0]:
                report(Violation("WAW", index, register, fact, cover))
            elif fact[1] not in read:
                report(Violation("WAR", index, register, fact, cover))
    if state.gmma and not instruction.is_gmma:
        owned = (instruction.defs | instruction.uses) & state.gmma
        if owned:
            report(Violation("GMMA", index, min(owned)))


def _check_distances(state: State, instruction: Instruction, watch: Watch) -> None:
    ages, now, index = state.ages, state.now, instruction.index
    consumers = instruction.consumers
    for register in instruction.uses:
        for name, cycle in ages.get(register, {}).items():
            if name[0] != "<" and now - cycle < HORIZON:
                for consumer in consumers[register]:
                    _compare(("RAW", name, *consumer), now - cycle, index, register, watch)
    for register in instruction.defs:
        for name, cycle in ages.get(register, {}).items():
            if now - cycle < HORIZON:
                hazard = "WAR" if name[0] == "<" else "WAW"
                _compare((hazard, name, instruction.latency_class, file_of(register)), now - cycle, index, register, watch)

    if instruction.kind != "fixed":
        for name, cycle in ages.get(FENCE, {}).items():
            if now - cycle < HORIZON:
                _compare(("AFTER", name, instruction.kind, "M"), now - cycle, index, FENCE, watch)


def _compare(key: Key, cycles: int, index: int, register: int, watch: Watch) -> None:
    if watch.learn:
        watch.learn(key, cycles)
    elif watch.report and watch.needed and cycles < (least := watch.needed(key)):
        watch.report(Violation("DISTANCE", index, register, None, 0, key, cycles, least))


def issue(state: State, instruction: Instruction, word: int) -> None:
    """Note what the instruction leaves in flight, and let its stall pass."""
    if instruction.is_gmma:
        state.gmma |= frozenset(register for register in instruction.defs | instruction.uses if register < 256)
    elif instruction.waits_for_gmma:
        state.gmma = frozenset()
    write, read = control.write_board(word), control.read_board(word)
    boards = {board for board in (write, read) if board < control.BOARDS}
    taken = _taken(state, instruction)
    for board in boards:
        state.ages[BOARD + board] = {instruction.latency_class: taken}
    if instruction.queue is not None or boards:
        _launch(state, instruction, write, sum(1 << board for board in boards))
    else:
        _execute(state, instruction)
    if instruction.base in isa.FENCES and instruction.base not in isa.ENDS:
        state.ages.setdefault(FENCE, {})[instruction.base] = state.now
    for register in instruction.late_reads:
        state.ages.setdefault(register, {})["<" + instruction.latency_class] = taken
    state.now += max(1, control.stall(word))


def _taken(state: State, instruction: Instruction) -> int:
    """Return the cycle in which the instruction's pipe takes it (rule 9)."""
    pipe = isa.PIPE.get(instruction.base)
    if pipe is None or instruction.kind == "fence":
        return state.now
    taken = state.ages.setdefault(PIPES, {})
    taken[pipe] = max(state.now, taken.get(pipe, state.now - HORIZON) + state.spacing[pipe])
    return taken[pipe]


def _launch(state: State, instruction: Instruction, write: int, cover: int) -> None:
    """An operation of variable latency: rules 1 and 2."""
    facts, index = state.facts, instruction.index
    written = 1 << write if write < control.BOARDS else 0
    if cover:
        _cover_earlier(facts, instruction, cover, written)
    result: Fact = (True, instruction.group, index)
    for register in instruction.defs:
        facts.setdefault(register, {})[result] = written
        state.ages.pop(register, None)
    reading: Fact = (False, instruction.reader, index)
    for register in instruction.tracked_reads:
        facts.setdefault(register, {})[reading] = cover
    if instruction.kind in ("memory", "variable"):
        facts.setdefault(OPERATION + index, {})[result if instruction.defs else reading] = written if instruction.defs else cover


def _cover_earlier(facts: dict[int, dict[Fact, int]], instruction: Instruction, cover: int, written: int) -> None:
    group, read = instruction.group, isa.READ_BEFORE.get(instruction.base, _NONE)
    for pending in facts.values():
        for fact, known in pending.items():
            if fact[0]:
                if written and not known and fact[1] == group:
                    pending[fact] = written
            elif fact[1] in read:
                pending[fact] = known | cover
            elif written and isa.RETURNS.get(fact[1]) == group:
                pending[fact] = known | written


def _execute(state: State, instruction: Instruction) -> None:
    """An operation of fixed latency; a guarded one may leave the older value."""
    for register in instruction.defs:
        if instruction.guard is None:
            state.ages[register] = {instruction.producers[register]: state.now}
        else:
            state.ages.setdefault(register, {})[instruction.producers[register]] = state.now


# --- whole kernels ---------------------------------------------------------------------------------------------------------------------------


def run(state: State, issued: Iterable[tuple[Instruction, int]], watch: Watch = SILENT) -> State:
    """Issue instructions one after the other; return the state after them."""
    for instruction, word in issued:
        step(state, instruction, word, watch)
    return state


def items(schedule: Schedule, places: Sequence[int]) -> list[tuple[Instruction, int]]:
    """Return the (instruction, word) pairs at some places."""
    instructions = schedule.kernel.instructions
    return [(instructions[schedule.order[place]], schedule.words[place]) for place in places]


class _Known(Protocol):
    """A state, of whatever model."""

    def copy(self) -> Any: ...

    def join(self, other: Any) -> bool: ...


S = TypeVar("S", bound=_Known)


def fixed_point(kernel: Kernel, start: S, after: Callable[[int, S], S]) -> list[S | None]:
    """Return the state at the entry of every block, None for one that nothing reaches; `after`: what a block makes of the state at its entry."""
    states: list[S | None] = [None] * len(kernel.blocks)
    states[0] = start
    waiting = [0]
    while waiting:
        number = waiting.pop(0)
        entry = states[number]
        assert entry is not None
        left = after(number, entry)
        for following in kernel.successors[number]:
            known = states[following]
            if known is None:
                states[following] = left.copy()
            elif not known.join(left):
                continue
            if following not in waiting:
                waiting.append(following)
    return states


def at_start(kernel: Kernel) -> State:
    """Return the state at a kernel's first instruction."""
    return State(spacing=isa.spacing(kernel.cubin.arch))


def entries(schedule: Schedule) -> list[State | None]:
    """Return the state at the entry of every block, by iteration to a fixed point; None for a block that nothing reaches."""
    kernel = schedule.kernel
    return fixed_point(kernel, at_start(kernel), lambda number, entry: run(entry.copy(), items(schedule, kernel.blocks[number])))


def learn_from(kernel: Kernel, learn: Learn) -> None:
    """Tell `learn` every distance that the compiler's own schedule keeps."""
    schedule = kernel.original
    for number, entry in enumerate(entries(schedule)):
        if entry is not None:
            run(entry.copy(), items(schedule, kernel.blocks[number]), Watch(learn=learn))

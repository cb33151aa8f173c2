"""New orders of whole blocks: instructions are listed by where they should stand, dependences permitting, and the control words settled behind them.

    relist     every instruction is drawn towards the order of its critical path (list scheduling), by as much as is asked, with random ties
    share      the loads of a block are dealt out to the scoreboards anew
    lift       one instruction is moved with everything that it depends on (up), or that depends on it (down)
    lean       waits of arithmetic that nothing needs any more are dropped
    settle     waits and stalls are added to a block where the model of hazards misses some; stalls are first cut to one cycle where that is asked

One pass over the block settles what an exchange by exchange repair would check hundreds of times.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from types import MappingProxyType

from warpwright.domains.sass import control, hazards, isa
from warpwright.domains.sass.checker import Checker
from warpwright.domains.sass.edits import block_of, operands_of_product, repaired, with_reuse, without_stale_reuse
from warpwright.domains.sass.instruction import Instruction
from warpwright.domains.sass.kernel import Schedule
from warpwright.domains.sass.model import ROUNDS, lengthened

LATENCIES: Mapping[str, float] = {"LDG": 200.0, "LDS": 28.0, "LDSM": 32.0, "SHFL": 26.0, "MUFU": 20.0, "LDC": 30.0, "HMMA": 24.0, "S2R": 24.0}
"""Cycles until a result is there (published measurements on an H100, rounded), for priorities alone: a wrong one makes a slow schedule."""

OTHER_LATENCY, FIXED_LATENCY = 20.0, 5.0
AHEAD, NEAR = 12, {"operands": 6.0, "cycles": 24.0, "time": math.inf}
"""Among the first so many of what is ready, and so many places, the next instruction is chosen; "time": among all that is ready."""

OCCUPIED: Mapping[str, float] = {"ALU": 2.0, "FP16": 2.0, "IMAD": 2.0, "lsu": 4.0, "xu": 8.0, "HMMA": 16.0}
"""Cycles for which an instruction of a class keeps its pipe, on sm_90 (16 lanes a cycle for what takes two): for orders by time alone."""


def relist(
    checker: Checker, schedule: Schedule, number: int, push: float, jitter: float, seed: int, least: bool, by: str = "place"
) -> Schedule | None:
    """List a block anew; `push`: places an instruction moves up for each cycle of its critical path beyond what its place says.

    `by` says what decides among instructions that want to stand near one another: nothing more ("place"); "operands": products that read a register
    through one slot follow each other, so that it is kept in the operand cache; "cycles": what need not wait for its sources comes first; "time": of
    all that is ready what may issue at once comes first, and of that the longest critical path, whatever its old place (pays where registers have
    been renamed).
    """
    block = schedule.kernel.blocks[number]
    order, rng = schedule.order[block.start : block.stop], Random(seed)
    height = _heights(checker, schedule, number)
    tallest = max(height.values(), default=0.0)
    wanted = {index: place + push * (tallest - height[index]) + rng.gauss(0.0, jitter) for place, index in enumerate(order)}
    return _settled(checker, schedule, number, wanted, least, by)


def towards(checker: Checker, other: Schedule) -> Schedule:
    """Return the compiler's schedule with its blocks as near to another one's order as dependences permit, and with its control words.

    For a schedule of the same instructions in other registers. Blocks that cannot be made legal stay as they are.
    """
    schedule = checker.kernel.original
    for number, block in enumerate(checker.kernel.blocks):
        span = slice(block.start, block.stop)
        controls = dict(zip(other.order[span], other.words[span], strict=True))
        if other.order[span] == tuple(block) and all((word ^ other.kernel.words[index]) & control.MASK == 0 for index, word in controls.items()):
            continue
        wanted = {index: float(place) for place, index in enumerate(other.order[span])}
        new = _listed(tuple(block), checker.before(number), wanted)
        order, words = list(schedule.order), list(schedule.words)
        order[span] = new
        words[span] = [words[index] & ~control.MASK | controls[index] & control.MASK for index in new]
        moved = without_stale_reuse(replace(schedule, order=tuple(order), words=tuple(words)), block.start, block.stop - 1)
        schedule = settle(checker, moved, number) or schedule
    return schedule


def lift(checker: Checker, schedule: Schedule, place: int, distance: int) -> Schedule | None:
    """Move an instruction by `distance` places with its dependence chain."""
    number, block = schedule.kernel.block_of[place], block_of(schedule, place)
    order, before = schedule.order[block.start : block.stop], checker.before(number)
    chain, target = {schedule.order[place]}, place - block.start + distance
    for index in reversed(order) if distance < 0 else order:
        if (distance < 0 and any(index in before[other] for other in chain)) or (distance > 0 and before[index] & chain):
            chain.add(index)
    sign = -1 if distance < 0 else 1
    wanted = {index: float(at) for at, index in enumerate(order)}
    for index in chain:
        at = wanted[index]
        wanted[index] = min(at, target - 0.5) if sign < 0 else max(at, target + 0.5)
    return _settled(checker, schedule, number, wanted, False)


def share(checker: Checker, schedule: Schedule, number: int, size: int, seed: int) -> Schedule | None:
    """Deal a block's loads out to the scoreboards anew, `size` at a time in the order of their first uses, so that a use waits for fewer other loads.

    Old waits stay; what the new boards need is added.
    """
    block, words = schedule.kernel.blocks[number], list(schedule.words)
    counted = {board for board in range(control.BOARDS) if checker.counted_boards >> board & 1}
    taken = counted | {control.read_board(words[place]) for place in block}
    boards = [board for board in range(control.BOARDS) if board not in taken]
    own = {place: control.write_board(words[place]) for place in block if schedule.at(place).kind != "fence"}
    loads = [place for place, board in own.items() if board < control.BOARDS and board not in counted]
    if len(boards) < 2 or len(loads) < 2:
        return None
    Random(seed).shuffle(boards)
    for rank, place in enumerate(sorted(loads, key=lambda place: _first_use(schedule, place, block.stop))):
        words[place] = control.with_write_board(words[place], boards[rank // size % len(boards)])
    if tuple(words) == schedule.words:
        return None
    dealt = replace(schedule, words=tuple(words))
    return lean(checker, dealt, number) or settle(checker, dealt, number)


def lean(checker: Checker, schedule: Schedule, number: int) -> Schedule | None:
    """Drop the waits of a block's arithmetic that the model does not miss; None where it misses all, or where one may protect what it cannot see.

    Arithmetic touches registers alone, so its waits protect nothing else: what they keep from passing a later fence or access is rule 7's. But an
    operation in flight reads its uniform registers and predicates late, of which no scoreboard tells: where a block writes those, waits stay. So do
    they where the model finds fault with the compiler, for there it would not see a wait that is missing.
    """
    block, words = schedule.kernel.blocks[number], list(schedule.words)
    if checker.accepted or _writes_what_is_read_late(schedule, number):
        return None
    for place in block:
        if schedule.at(place).kind == "fixed" and not schedule.at(place).opaque and checker.movable(schedule.order[place]):
            words[place] = control.without_waits(words[place])
    if tuple(words) == schedule.words:
        return None
    settled = settle(checker, replace(schedule, words=tuple(words)), number)
    return None if settled is None or settled.words == schedule.words else settled


def _writes_what_is_read_late(schedule: Schedule, number: int) -> bool:
    """Does a block write, after an operation or in its next turn, what the operation reads late? A guard is read at issue."""
    block, looped = schedule.kernel.blocks[number], schedule.kernel.depth[number] > 0
    instructions = [schedule.at(place) for place in block]
    written: set[int] = {register for one in instructions for register in one.defs} if looped else set()
    for one in reversed(instructions):
        if one.kind in ("memory", "variable") and any(register in written for register in one.late_reads if register != one.guard):
            return True
        written |= one.defs
    return False


def _first_use(schedule: Schedule, place: int, stop: int) -> int:
    defined = schedule.at(place).defs
    return next((later for later in range(place + 1, stop) if defined & schedule.at(later).uses), stop)


def _settled(
    checker: Checker, schedule: Schedule, number: int, wanted: Mapping[int, float], least: bool, by: str = "place"
) -> Schedule | None:
    block = schedule.kernel.blocks[number]
    old = schedule.order[block.start : block.stop]
    line = Line(checker, schedule, number, by == "time") if by in ("cycles", "time") else None
    new = _listed(old, checker.before(number), wanted, line, _factors(schedule, block, by))
    if new == list(old) and not least:
        return None
    word_of = _with_boards(checker, schedule, block)
    order, words = list(schedule.order), list(schedule.words)
    order[block.start : block.stop] = new
    words[block.start : block.stop] = [word_of[index] for index in new]
    moved = replace(schedule, order=tuple(order), words=tuple(words))
    return settle(checker, with_reuse(without_stale_reuse(moved, block.start, block.stop - 1), block), number, least)


def _with_boards(checker: Checker, schedule: Schedule, block: range) -> dict[int, int]:
    """Return instruction -> word, where a result that a later operation's scoreboard covers (hazards, rule 2) has that scoreboard itself.

    The later operation may come later still, or after what reads the result. Reuse flags that an earlier edit dropped are back: the new order may
    bear them again.
    """
    original = schedule.kernel.words
    words, boards = {}, dict[str, int]()
    for place in reversed(block):
        instruction, word = schedule.at(place), schedule.words[place]
        group, board = hazards.group_of(instruction), control.write_board(word)
        if board < control.BOARDS:
            boards[group] = board
        elif instruction.defs and group in boards and not checker.counted_boards >> boards[group] & 1 and instruction.kind != "fence":
            word = control.with_write_board(word, boards[group])
        words[instruction.index] = word | (original[instruction.index] & control.REUSE if control.held(word) else 0)
    return words


def _factors(schedule: Schedule, block: range, by: str) -> Mapping[int, Mapping[int, int]]:
    """Return the registers of a block's products, slot by slot, where they decide."""
    if by != "operands":
        return {}
    return {schedule.order[place]: factors for place in block if (factors := operands_of_product(schedule, place))}


class Line:
    """The cycle in which each instruction of a block could issue, as it is listed."""

    def __init__(self, checker: Checker, schedule: Schedule, number: int, everything: bool = False) -> None:
        self.checker, self.instructions, self.before = checker, schedule.kernel.instructions, checker.before(number)
        self.now, self.issued, self.soonest = 0.0, dict[int, float](), dict[int, float]()
        self.everything = everything
        """Is the order by time alone? Then pipes count too."""
        self.free: dict[str, float] = {}
        """Pipe -> when it takes the next instruction."""

    def waits(self, index: int) -> float:
        """Return the cycles that an instruction, all before it issued, would have to wait now."""
        if index not in self.soonest:
            self.soonest[index] = max((self.issued[earlier] + self._apart(earlier, index) for earlier in self.before[index]), default=0.0)
        free = self.free.get(self.instructions[index].latency_class, 0.0) if self.everything else 0.0
        return max(0.0, self.soonest[index] - self.now, free - self.now)

    def issue(self, index: int) -> None:
        """Let an instruction issue, as soon as it may."""
        self.now += self.waits(index)
        self.issued[index] = self.now
        pipe = self.instructions[index].latency_class
        self.free[pipe] = self.now + OCCUPIED.get(pipe, 1.0)
        self.now += 1.0

    def _apart(self, earlier: int, later: int) -> float:
        first, second = self.instructions[earlier], self.instructions[later]
        shared = first.defs & second.uses
        if not shared:
            return 1.0
        if first.kind != "fixed":
            return _latency(first)
        needed = self.checker.distances.needed
        keys = (("RAW", first.producers[register], *consumer) for register in shared for consumer in second.consumers[register])
        return float(max((needed(key) for key in keys), default=1))


def _listed(
    order: tuple[int, ...],
    before: Mapping[int, frozenset[int]],
    wanted: Mapping[int, float],
    line: Line | None = None,
    factors: Mapping[int, Mapping[int, int]] = MappingProxyType({}),
) -> list[int]:
    """Return an order that keeps dependences, nearest to what is wanted: the first of what is ready, or what `line` or `factors` favours near it."""
    left = {index: len(before[index]) for index in order}
    after: dict[int, list[int]] = {index: [] for index in order}
    for index in order:
        for earlier in before[index]:
            after[earlier].append(index)
    place = {index: at for at, index in enumerate(order)}
    ready = [(wanted[index], place[index], index) for index in order if not left[index]]
    heapq.heapify(ready)
    listed: list[int] = []
    while ready:
        index = _next(ready, line, factors, listed)
        if line is not None:
            line.issue(index)
        listed.append(index)
        for later in after[index]:
            left[later] -= 1
            if not left[later]:
                heapq.heappush(ready, (wanted[later], place[later], later))
    return listed


def _next(ready: list[tuple[float, int, int]], line: Line | None, factors: Mapping[int, Mapping[int, int]], listed: list[int]) -> int:
    """Take an instruction from the heap of what is ready."""
    if line is not None and line.everything:
        return _soonest(ready, line)
    last = factors.get(listed[-1]) if listed else None
    if line is None and last is None:
        return heapq.heappop(ready)[2]
    first = [heapq.heappop(ready) for _ in range(min(AHEAD, len(ready)))]
    reach = first[0][0] + NEAR["operands" if line is None else "cycles"]
    near = [entry for entry in first if entry[0] <= reach]
    if line is not None:
        chosen = min(near, key=lambda entry: line.waits(entry[2]))
    else:
        chosen = max(near, key=lambda entry: len((last or {}).items() & factors.get(entry[2], {}).items()))
    for entry in first:
        if entry is not chosen:
            heapq.heappush(ready, entry)
    return chosen[2]


def _soonest(ready: list[tuple[float, int, int]], line: Line) -> int:
    """Take what may issue first, and of that what is wanted first."""
    chosen = min(ready, key=lambda entry: (line.waits(entry[2]), entry))
    ready.remove(chosen)
    heapq.heapify(ready)
    return chosen[2]


def _heights(checker: Checker, schedule: Schedule, number: int) -> dict[int, float]:
    """Return the length of the longest chain from each instruction of a block to its end, in cycles."""
    instructions, block = schedule.kernel.instructions, schedule.kernel.blocks[number]
    before, height = checker.before(number), dict.fromkeys(block, 0.0)
    for index in reversed(schedule.order[block.start : block.stop]):
        for earlier in before[index]:
            first, second = instructions[earlier], instructions[index]
            waited = _latency(first) if first.defs & second.uses else 1.0
            height[earlier] = max(height[earlier], waited + height[index])
    return height


def _latency(instruction: Instruction) -> float:
    if instruction.kind == "fixed":
        return LATENCIES.get(instruction.base, FIXED_LATENCY)
    return LATENCIES.get(instruction.base, OTHER_LATENCY)


def settle(checker: Checker, schedule: Schedule, number: int, least: bool = False) -> Schedule | None:
    """Return `schedule` with the waits and stalls that a block lacks; None where that does not make it legal, or changes nothing."""
    words = checker.model.settled(schedule, number, checker.entry(schedule.assumed, number), least)
    if words is None or (least and words == schedule.words):
        return None
    settled = replace(schedule, words=words)
    return checker.accept(settled, number) or repaired(checker, settled, number) or _later(checker, settled, number)


def _later(checker: Checker, schedule: Schedule, number: int) -> Schedule | None:
    """Return `schedule` with the cycles at the end of a block that the blocks after it lack (itself, in a loop)."""
    block = schedule.kernel.blocks[number]
    end = block.stop - (schedule.at(block.stop - 1).base in isa.ENDS)
    for _ in range(ROUNDS // 2):
        missing = [violation.needed - violation.cycles for violation in checker.all_violations(schedule, checker.model) if violation.rule == "DISTANCE"]
        words = list(schedule.words)
        if not missing or not lengthened(words, end, block.start, max(missing)):
            return None
        schedule = replace(schedule, words=tuple(words))
        legal = checker.accept(schedule, number)
        if legal is not None:
            return legal
    return None

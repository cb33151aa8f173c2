"""New orders of whole blocks: instructions are listed by where they should stand, dependences permitting, and the control words settled behind them.

    relist     every instruction is drawn towards the order of its critical path (list scheduling), by as much as is asked, with random ties
    share      the loads of a block are dealt out to the scoreboards anew
    lift       one instruction is moved with everything that it depends on (up), or that depends on it (down)
    lean       waits of arithmetic that nothing needs any more are dropped
    settle     waits and stalls are added to a block where the model of hazards misses some; stalls are first cut to one cycle where that is asked

One pass over the block settles what an exchange by exchange repair would check hundreds of times.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from warpwright.domains.sass.code import control, isa
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.domains.sass.editing.edits import block_of, repaired
from warpwright.domains.sass.editing.listing import links_of
from warpwright.domains.sass.model.checker import Checker

LATER = 3
"""Times that a block is lengthened for what comes after it."""


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
    height = links_of(checker, number).height
    tallest = max(height.values(), default=0.0)
    ties = [rng.gauss(0.0, jitter) for _ in order] if jitter else [0.0] * len(order)
    wanted = {index: place + push * (tallest - height[index]) + tie for place, (index, tie) in enumerate(zip(order, ties, strict=True))}
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
        new = links_of(checker, number).listed(block, wanted)
        order, words = list(schedule.order), list(schedule.words)
        order[span] = new
        words[span] = [words[index] & ~control.MASK | controls[index] & control.MASK for index in new]
        moved = Schedule(schedule.kernel, tuple(order), tuple(words), schedule.assumed)
        schedule = settle(checker, checker.model.without_stale_reuse(moved, block.start, block.stop - 1), number) or schedule
    return schedule


def lift(checker: Checker, schedule: Schedule, place: int, distance: int) -> Schedule | None:
    """Move an instruction by `distance` places with its dependence chain."""
    number, block = schedule.kernel.block_of[place], block_of(schedule, place)
    order, before = schedule.order[block.start : block.stop], checker.before(number)
    target, chain = place - block.start + distance, {schedule.order[place]}
    needed = set(before[schedule.order[place]])
    for index in reversed(order) if distance < 0 else order:
        if index in needed if distance < 0 else not before[index].isdisjoint(chain):
            chain.add(index)
            needed |= before[index]
    wanted = {index: float(at) for at, index in enumerate(order)}
    for index in chain:
        at = wanted[index]
        wanted[index] = min(at, target - 0.5) if distance < 0 else max(at, target + 0.5)
    return _settled(checker, schedule, number, wanted, False)


def share(checker: Checker, schedule: Schedule, number: int, size: int, seed: int) -> Schedule | None:
    """Deal a block's loads out to the scoreboards anew, `size` at a time in the order of their first uses, so that a use waits for fewer other loads.

    Old waits stay; what the new boards need is added.
    """
    block, words = schedule.kernel.blocks[number], list(schedule.words)
    counted = {board for board in range(control.BOARDS) if checker.kernel.counted_boards >> board & 1}
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
    dealt = schedule.with_all(words)
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
        if control.waits(words[place]) and schedule.order[place] in checker.arithmetic:
            words[place] = control.without_waits(words[place])
    if tuple(words) == schedule.words:
        return None
    settled = settle(checker, schedule.with_all(words), number)
    return None if settled is None or settled.words == schedule.words else settled


def _writes_what_is_read_late(schedule: Schedule, number: int) -> bool:
    """Does a block write, after an operation or in its next turn, what the operation reads late? A guard is read at issue."""
    block, looped = schedule.kernel.blocks[number], schedule.kernel.depth[number] > 0
    instructions = [schedule.kernel.instructions[index] for index in schedule.order[block.start : block.stop]]
    written: set[int] = set().union(*(one.defs for one in instructions)) if looped else set()
    for one in reversed(instructions):
        if not written.isdisjoint(one.read_in_flight):
            return True
        written |= one.defs
    return False


def _first_use(schedule: Schedule, place: int, stop: int) -> int:
    defined = schedule.at(place).defs
    return next((later for later in range(place + 1, stop) if defined & schedule.at(later).uses), stop)


def _settled(checker: Checker, schedule: Schedule, number: int, wanted: Mapping[int, float], least: bool, by: str = "place") -> Schedule | None:
    block = schedule.kernel.blocks[number]
    old = schedule.order[block.start : block.stop]
    new = links_of(checker, number).listed(old, wanted, by)
    if new == list(old) and not least:
        return None
    made = checker.model.relisted(schedule, number, checker.entry(schedule.assumed, number), new, least)
    return _accepted(checker, schedule, made, number, least)


def settle(checker: Checker, schedule: Schedule, number: int, least: bool = False) -> Schedule | None:
    """Return `schedule` with the waits and stalls that a block lacks; None where that does not make it legal, or changes nothing.

    `least`: with the shortest stalls.
    """
    made = checker.model.settled(schedule, number, checker.entry(schedule.assumed, number), least)
    return _accepted(checker, schedule, made, number, least)


def _accepted(checker: Checker, before: Schedule, made: Schedule | None, number: int, least: bool) -> Schedule | None:
    if made is None or (least and made.words == before.words):
        return None
    return checker.accept(made, number) or repaired(checker, made, number) or _later(checker, made, number)


def _later(checker: Checker, schedule: Schedule, number: int) -> Schedule | None:
    """Return `schedule` with the cycles at the end of a block that the blocks after it lack (itself, in a loop)."""
    block = schedule.kernel.blocks[number]
    end = block.stop - (schedule.at(block.stop - 1).base in isa.ENDS)
    for _ in range(LATER):
        found = checker.lacking(schedule, number)
        missing = [violation.needed - violation.cycles for violation in found if violation.rule == "DISTANCE"]
        words = list(schedule.words)
        if not missing or not _lengthened(words, end, block.start, max(missing)):
            return None
        schedule = schedule.with_all(words)
        legal = checker.accept(schedule, number)
        if legal is not None:
            return legal
    return None


def _lengthened(words: list[int], place: int, start: int, cycles: int) -> bool:
    """Lengthen the stalls before a place; return whether there was room."""
    for before in range(place - 1, start - 1, -1):
        stall = control.stall(words[before])
        more = min(cycles, control.MOST_STALL - stall)
        if more:
            words[before] = control.with_stall(words[before], stall + more)
            cycles -= more
        if not cycles:
            return True
    return False

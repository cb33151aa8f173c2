"""Edits of a schedule: each returns a legal schedule, or None where there is none. What an exchange needs (a wait, a longer stall) is added to it.

Waits of fences, branches and memory are only ever added: one that looks redundant may order memory between threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

from warpwright.domains.sass.code import control, hints, isa
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.domains.sass.model.checker import Checker

FLOAT = ("FFMA", "FADD", "FMUL")
LOADS: dict[str, tuple[str, ...]] = {"all": ("LDG", "LDS", "LDSM", "LDGSTS", "LDC"), "shared": ("LDS", "LDSM"), "global": ("LDG", "LDGSTS")}


def block_of(schedule: Schedule, place: int) -> range:
    """Return the block of a place."""
    return schedule.kernel.blocks[schedule.kernel.block_of[place]]


# --- exchanges -------------------------------------------------------------------------------------------------------------------------


def exchange(checker: Checker, schedule: Schedule, place: int) -> Schedule | None:
    """Exchange the instruction at `place` and its successor; their control words go with them, or their stalls stay, whichever is legal."""
    if not checker.exchangeable(schedule, place):
        return None
    travelled = checker.model.without_stale_reuse(schedule.exchanged(place), place, place + 1)
    for candidate in (travelled, _with_stalls_of(travelled, schedule, (place, place + 1))):
        legal = checker.accept(candidate, schedule.kernel.block_of[place])
        if legal is not None:
            return legal
    return repaired(checker, travelled, schedule.kernel.block_of[place])


def move(checker: Checker, schedule: Schedule, place: int, distance: int) -> Schedule | None:
    """Move an instruction by `distance` places, or as far as dependences go, or a half, a quarter... of that; None when it cannot move at all."""
    block, sign = block_of(schedule, place), 1 if distance > 0 else -1
    length = _reach(checker, schedule, place, distance)
    number = schedule.kernel.block_of[place]
    while length:
        low, high = sorted((place, place + sign * length))
        candidate = checker.model.without_stale_reuse(schedule.moved(place, place + sign * length), low, min(high, block.stop - 1))
        legal = checker.accept(candidate, number) or repaired(checker, candidate, number)
        if legal is not None:
            return legal
        length //= 2
    return None


def _reach(checker: Checker, schedule: Schedule, place: int, distance: int) -> int:
    """Return how far an instruction can move towards `distance`, as far as dependences go."""
    block, order = block_of(schedule, place), schedule.order
    if not checker.reachable(schedule.kernel.block_of[place]):
        return 0
    passed = order[place + 1 : min(block.stop, place + distance + 1)] if distance > 0 else order[max(block.start, place + distance) : place][::-1]
    for walked, other in enumerate(passed):
        if not (checker.passable(order[place], other) if distance > 0 else checker.passable(other, order[place])):
            return walked
    return len(passed)


def shuffle(checker: Checker, schedule: Schedule, places: Iterable[int]) -> Schedule | None:
    """Exchange at several places, then repair: crosses states that no single exchange makes legal."""
    touched: dict[int, tuple[int, int]] = {}
    changed = schedule
    for place in places:
        if checker.exchangeable(changed, place):
            changed = changed.exchanged(place)
            number = schedule.kernel.block_of[place]
            low, high = touched.get(number, (place, place))
            touched[number] = min(low, place), max(high, place)
    for number, (low, high) in touched.items():
        changed = checker.model.without_stale_reuse(changed, low, high + 1)
        legal = checker.accept(changed, number) or repaired(checker, changed, number)
        if legal is None:
            return None
        changed = legal
    return changed if touched else None


def _with_stalls_of(schedule: Schedule, before: Schedule, places: Iterable[int]) -> Schedule:
    """Return `schedule` with the stall and hold that stood at some places before."""
    changes = {}
    for place in places:
        word = control.with_hold(control.with_stall(schedule.words[place], control.stall(before.words[place])), control.held(before.words[place]))
        changes[place] = word
    return schedule.with_words(changes)


# --- repairs ---------------------------------------------------------------------------------------------------------------------------


def repaired(checker: Checker, schedule: Schedule, number: int) -> Schedule | None:
    """Add waits and stalls to a block until it is legal; None where that does not help."""
    changed = checker.model.repaired(schedule, number, checker.entry(schedule.assumed, number))
    return None if changed is None else checker.accept(changed, number)


# --- control words -----------------------------------------------------------------------------------------------------------------------


def stall(checker: Checker, schedule: Schedule, place: int, change: int) -> Schedule | None:
    """Lengthen or shorten a stall; that of a fence or branch is never shortened."""
    word, instruction = schedule.words[place], schedule.at(place)
    cycles = control.stall(word) + change
    if not 1 <= cycles <= control.MOST_STALL or instruction.base in isa.ENDS or (instruction.kind == "fence" and change < 0):
        return None
    return checker.accept(schedule.with_words({place: control.with_stall(word, cycles)}), schedule.kernel.block_of[place])


def _holding(schedule: Schedule, place: int, hold: bool) -> int | None:
    """Return the word of a place that keeps the warp, or lets the scheduler yield; None where that is so already or cannot be written."""
    word = schedule.words[place]
    if control.held(word) == hold or not 1 <= control.stall(word) <= control.LONGEST_HELD_STALL:
        return None
    if not hold and control.reused(word) and schedule.at(place).kind != "fixed":
        return None
    return control.with_hold(word, hold)


def without_reuse(schedule: Schedule, places: Iterable[int]) -> Schedule | None:
    """Drop the reuse flags of the arithmetic at some places; None where there are none."""
    words = schedule.words
    flagged = [place for place in places if control.reused(words[place]) and schedule.at(place).kind == "fixed"]
    return schedule.with_words({place: control.without_reuse(words[place]) for place in flagged}) if flagged else None


def board(checker: Checker, schedule: Schedule, place: int, to: int) -> Schedule | None:
    """Release another scoreboard with the result of a load; the waits for it are added."""
    word = schedule.words[place]
    old = control.write_board(word)
    if old >= control.BOARDS or old == to or (1 << old | 1 << to) & checker.kernel.counted_boards or schedule.at(place).kind == "fence":
        return None
    number = schedule.kernel.block_of[place]
    candidate = schedule.with_words({place: control.with_write_board(word, to)})
    return checker.accept(candidate, number) or repaired(checker, candidate, number)


# --- whole blocks --------------------------------------------------------------------------------------------------------------------------


def drift(checker: Checker, schedule: Schedule, number: int, bases: tuple[str, ...], distance: int) -> Schedule | None:
    """Move every load of a block up (negative distance) or down."""
    block, changed = schedule.kernel.blocks[number], schedule
    indices = [schedule.order[place] for place in block if schedule.at(place).base in bases]
    for index in indices if distance < 0 else reversed(indices):
        changed = move(checker, changed, changed.place_of(index), distance) or changed
    return changed if changed is not schedule else None


def holds(schedule: Schedule, places: Iterable[int], wanted: Callable[[int], bool | None]) -> Schedule | None:
    """Set hold at each of some places to what `wanted` says; None leaves it."""
    changes = {}
    for place in places:
        hold = wanted(place)
        word = None if hold is None else _holding(schedule, place, hold)
        if word is not None:
            changes[place] = word
    return schedule.with_words(changes) if changes else None


def hold_pattern(schedule: Schedule, number: int, pattern: str) -> Schedule | None:
    """Set the holds of a block: "never", "always", or in runs of float arithmetic "float-never", "float-alternate", "float-9of16".

    Or yield only where the warp would not go on at once: "yield-memory" after memory operations, "yield-waits" before what waits for a scoreboard,
    "yield-stalls" at stalls of LONG cycles.

    DeepGEMM interleaves yields in such runs; the share of 9 in 16 is its own (github.com/deepseek-ai/DeepGEMM, 2025-02).
    """
    block = schedule.kernel.blocks[number]
    if pattern in ("never", "always"):
        return holds(schedule, block, lambda place: pattern == "always")
    if pattern in _YIELDS:
        return holds(schedule, block, lambda place: not _YIELDS[pattern](schedule, place))
    runs = _float_runs(schedule, block)

    def wanted(place: int) -> bool | None:
        run = next((run for run in runs if place in run), None)
        if run is None:
            return None
        return {"float-never": False, "float-alternate": place % 2 == 0, "float-9of16": (place - run.start) * 16 >= len(run) * 9}[pattern]

    return holds(schedule, block, wanted)


LONG = 4
"""Cycles of a stall in which another warp may issue."""

_YIELDS: dict[str, Callable[[Schedule, int], bool]] = {
    "yield-memory": lambda schedule, place: bool(schedule.at(place).memory),
    "yield-waits": lambda schedule, place: place + 1 < len(schedule.words) and bool(control.waits(schedule.words[place + 1])),
    "yield-stalls": lambda schedule, place: control.stall(schedule.words[place]) >= LONG,
}


def scattered_holds(schedule: Schedule, number: int, share: float, seed: int) -> Schedule | None:
    """Yield at a share of a block's instructions, drawn at random, and nowhere else."""
    rng = Random(seed)
    return holds(schedule, schedule.kernel.blocks[number], lambda place: rng.random() >= share)


def _float_runs(schedule: Schedule, block: range) -> list[range]:
    """Return the runs of float arithmetic in a block."""
    runs: list[range] = []
    for place in block:
        if schedule.at(place).base in FLOAT:
            start = runs.pop().start if runs and runs[-1].stop == place else place
            runs.append(range(start, place + 1))
    return runs


def hinted(schedule: Schedule, places: Iterable[int], base: str, evict: str, ahead: int) -> Schedule | None:
    """Return the schedule with other hints at the loads (LDG) or stores (STG) among some places; None where that changes nothing.

    `evict` "" and `ahead` -1 leave what is there.
    """
    changes, arch = {}, schedule.kernel.cubin.arch
    for place in places:
        instruction, word = schedule.at(place), schedule.words[place]
        if instruction.base == base and hints.mask(instruction, word, arch):
            known = hints.read(word, instruction)
            wanted = hints.Hint(evict or known.evict, known.ahead if ahead < 0 else ahead)
            changes[place] = hints.write(word, instruction, wanted)
    return schedule.with_words(changes) if any(schedule.words[place] != word for place, word in changes.items()) else None


def without_hints(schedule: Schedule) -> Schedule:
    """Return the schedule with the compiler's own hints."""
    kernel, arch = schedule.kernel, schedule.kernel.cubin.arch
    masks = (hints.mask(kernel.instructions[index], kernel.words[index], arch) for index in schedule.order)
    rows = zip(schedule.words, schedule.order, masks, strict=True)
    return replace(schedule, words=tuple(word & ~mask | kernel.words[index] & mask for word, index, mask in rows))


def unchanged_meaning(schedule: Schedule) -> bool:
    """Does every instruction do what it did, whatever its place, control word and hints?"""
    kernel, others = schedule.kernel, ~control.MASK
    before = [kernel.words[index] for index in schedule.order]
    pairs = zip(schedule.order, before, schedule.words, strict=True)
    different = [(index, old, new) for index, old, new in pairs if (old ^ new) & others]
    same = all(hints.means_the_same(kernel.instructions[index], old, new, kernel.cubin.arch) for index, old, new in different)
    return same and all(sorted(schedule.order[block.start : block.stop]) == list(block) for block in kernel.blocks)


def restored(schedule: Schedule) -> Schedule:
    """Return the compiler's schedule."""
    return replace(schedule, order=schedule.kernel.original.order, words=schedule.kernel.words, assumed={})

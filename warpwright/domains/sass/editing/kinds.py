"""The kinds of edits of techniques.py, which says what each is: how one is made, which there are, and how one is drawn.

What an edit does to a schedule stands in edits.py, for whole blocks in relisting.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from warpwright.base import Action, Scalar
from warpwright.domains.sass.code import control, hints
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.domains.sass.editing import edits, listing, relisting
from warpwright.domains.sass.model.checker import Checker

HOT_BLOCKS = 3
"""Edits of whole blocks are offered for the deepest and longest blocks."""

SMALLEST_BLOCK = 8
REACHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
SHUFFLES = (4, 16, 48)
SIZES = (1, 2, 4)
RUNS = (1, 4, 8, 16, 32)
PUSHES, JITTERS = (0.03, 0.1, 0.3, 1.0, 3.0), (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
PATTERNS = ("never", "always", "float-alternate", "float-never", "float-9of16", "yield-memory", "yield-waits", "yield-stalls")
SHARES = (0.05, 0.15, 0.3, 0.5, 0.7)
HINTS = {
    "LDG": (*(("", ahead) for ahead in hints.AHEADS), *((evict, -1) for evict in hints.EVICTIONS)),
    "STG": tuple((evict, -1) for evict in hints.EVICTIONS),
}
"""Operation -> the hints that it may be given: (evict, ahead)."""

WHOLE = "k"
"""Where an edit of the whole kernel stands."""

Make = Callable[[Schedule, Action], Schedule | None]

Kind = tuple[str, Make, Callable[[Schedule], Iterator[Action]], Callable[[Schedule, Random, int], Action], int]
"""Name, how an action is done, all actions, one drawn for a place, and how often it is drawn beside the others."""


def at_places(checker: Checker) -> tuple[Kind, ...]:
    """Return the kinds of edits at an instruction."""
    orders = (_exchange(checker), _move(checker), _lift(checker), _shuffle(checker))
    return (*orders, _stall(checker), _hold(), _board(checker), _reuse_off(), _hint())


def of_blocks(checker: Checker) -> tuple[Kind, ...]:
    """Return the kinds of edits of a whole block, or of the whole kernel."""
    yields = (_pattern(checker), _scatter(checker))
    return (_drift(checker), _relist(checker), _share(checker), _lean(checker), _tighten(checker), *yields, _reuse_block(checker), _hints())


def _index(action: Action) -> int:
    return int(action.at.removeprefix("i"))


def _number(action: Action) -> int:
    return int(action.at.removeprefix("b"))


def _param(action: Action, name: str) -> Scalar:
    return dict(action.params)[name]


def _int(action: Action, name: str) -> int:
    return int(_param(action, name))


def _at(name: str, schedule: Schedule, place: int, **params: Scalar) -> Action:
    return Action(name, f"i{schedule.order[place]}", tuple(params.items()))


def hot_blocks(checker: Checker) -> list[int]:
    """Return the blocks that are worth an edit as a whole, the deepest and longest first."""
    kernel = checker.kernel
    fitting = [number for number, block in enumerate(kernel.blocks) if len(block) >= SMALLEST_BLOCK and checker.reachable(number)]
    return sorted(fitting, key=lambda number: (-kernel.depth[number], -len(kernel.blocks[number])))[:HOT_BLOCKS]


def _exchange(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return edits.exchange(checker, schedule, schedule.place_of(_index(action)))

    def every(schedule: Schedule) -> Iterator[Action]:
        return (_at("exchange", schedule, place) for place in range(len(schedule.order)) if checker.exchangeable(schedule, place))

    return "exchange", make, every, lambda schedule, rng, place: _at("exchange", schedule, place), 3


def _move(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return edits.move(checker, schedule, schedule.place_of(_index(action)), _int(action, "by"))

    def every(schedule: Schedule) -> Iterator[Action]:
        for place in range(len(schedule.order)):
            if schedule.at(place).memory:
                yield from (_at("move", schedule, place, by=sign * reach) for reach in (2, 8, 32) for sign in (-1, 1))

    def draw(schedule: Schedule, rng: Random, place: int) -> Action:
        chosen = _load_near(schedule, place) if rng.random() < 0.5 else place
        return _at("move", schedule, chosen, by=rng.choice((-1, 1)) * rng.choice(REACHES))

    return "move", make, every, draw, 4


def _lift(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return relisting.lift(checker, schedule, schedule.place_of(_index(action)), _int(action, "by"))

    def every(schedule: Schedule) -> Iterator[Action]:
        for place in range(len(schedule.order)):
            if schedule.at(place).memory:
                yield from (_at("lift", schedule, place, by=by) for by in (-16, 16))

    def draw(schedule: Schedule, rng: Random, place: int) -> Action:
        chosen = _load_near(schedule, place) if rng.random() < 0.5 else place
        return _at("lift", schedule, chosen, by=rng.choice((-1, 1)) * rng.choice(REACHES))

    return "lift", make, every, draw, 3


def _shuffle(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        block, rng = checker.kernel.blocks[_number(action)], Random(_int(action, "seed"))
        return edits.shuffle(checker, schedule, [rng.choice(block) for _ in range(2 * _int(action, "count"))])

    def every(schedule: Schedule) -> Iterator[Action]:
        return (Action("shuffle", f"b{number}", (("seed", 0), ("count", count))) for number in hot_blocks(checker) for count in SHUFFLES)

    def draw(schedule: Schedule, rng: Random, place: int) -> Action:
        params = (("seed", rng.randrange(1 << 20)), ("count", rng.choice(SHUFFLES)))
        return Action("shuffle", f"b{checker.kernel.block_of[place]}", params)

    return "shuffle", make, every, draw, 2


def _stall(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return edits.stall(checker, schedule, schedule.place_of(_index(action)), _int(action, "by"))

    def every(schedule: Schedule) -> Iterator[Action]:
        for place in range(len(schedule.order)):
            yield from (_at("stall", schedule, place, by=by) for by in (-1, 1))

    return "stall", make, every, lambda schedule, rng, place: _at("stall", schedule, place, by=rng.choice((-1, -1, -2, 1))), 2


def _hold() -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        place = schedule.place_of(_index(action))
        run = range(place, min(place + _int(action, "count"), edits.block_of(schedule, place).stop))
        return edits.holds(schedule, run, lambda here: not control.held(schedule.words[here]))

    def every(schedule: Schedule) -> Iterator[Action]:
        return (_at("hold", schedule, place, count=1) for place in range(len(schedule.order)))

    return "hold", make, every, lambda schedule, rng, place: _at("hold", schedule, place, count=rng.choice(RUNS)), 3


def _board(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return edits.board(checker, schedule, schedule.place_of(_index(action)), _int(action, "to"))

    def every(schedule: Schedule) -> Iterator[Action]:
        for place, word in enumerate(schedule.words):
            if control.write_board(word) < control.BOARDS:
                yield from (_at("board", schedule, place, to=board) for board in range(control.BOARDS))

    def draw(schedule: Schedule, rng: Random, place: int) -> Action:
        return _at("board", schedule, _load_near(schedule, place), to=rng.randrange(control.BOARDS))

    return "board", make, every, draw, 4


def _load_near(schedule: Schedule, place: int) -> int:
    """Return the place of the next operation with a scoreboard for its result in the block, or `place` where none comes."""
    stop = edits.block_of(schedule, place).stop
    return next((here for here in range(place, stop) if control.write_board(schedule.words[here]) < control.BOARDS), place)


def _reuse_off() -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return edits.without_reuse(schedule, [schedule.place_of(_index(action))])

    def every(schedule: Schedule) -> Iterator[Action]:
        return (_at("reuse_off", schedule, place) for place, word in enumerate(schedule.words) if control.reused(word))

    return "reuse_off", make, every, lambda schedule, rng, place: _at("reuse_off", schedule, place), 1


def _drift(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return edits.drift(checker, schedule, _number(action), edits.LOADS[str(_param(action, "loads"))], _int(action, "by"))

    def every(schedule: Schedule) -> Iterator[Action]:
        for number in hot_blocks(checker)[:1]:
            yield from (Action("drift", f"b{number}", (("loads", "all"), ("by", by))) for by in (-64, -8))

    def draw(schedule: Schedule, rng: Random, place: int) -> Action:
        params = (("loads", rng.choice(list(edits.LOADS))), ("by", rng.choice((-64, -16, -4, 4, 16, 64))))
        return Action("drift", f"b{checker.kernel.block_of[place]}", params)

    return "drift", make, every, draw, 1


def _relist(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        push, jitter = float(_param(action, "push")), float(_param(action, "jitter"))
        least, by = bool(_int(action, "least")), str(_param(action, "by"))
        return relisting.relist(checker, schedule, _number(action), push, jitter, _int(action, "seed"), least, by)

    def at(number: int, push: float, jitter: float, seed: int, least: int, by: str) -> Action:
        return Action("relist", f"b{number}", (("push", push), ("jitter", jitter), ("seed", seed), ("least", least), ("by", by)))

    def every(schedule: Schedule) -> Iterator[Action]:
        first = [(push, "place", 0) for push in PUSHES] + [(0.0, by, least) for by in listing.BY[1:] for least in (0, 1)]
        first += [(push, "time", 1) for push in (1.0, 3.0, 10.0)] if checker.kernel.compiled else []
        return (at(number, push, 0.0, 0, least, by) for number in hot_blocks(checker)[:1] for push, by, least in first)

    def draw(schedule: Schedule, rng: Random, place: int) -> Action:
        push, jitter = rng.choice((0.0, *PUSHES)), rng.choice(JITTERS)
        least, by = rng.choice((0, 0, 1)), rng.choice(("place", "place", *listing.BY[1:]))
        return at(checker.kernel.block_of[place], push, jitter, rng.randrange(1 << 20), least, by)

    return "relist", make, every, draw, 4


def _share(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return relisting.share(checker, schedule, _number(action), _int(action, "size"), _int(action, "seed"))

    def at(number: int, size: int, seed: int) -> Action:
        return Action("share", f"b{number}", (("size", size), ("seed", seed)))

    def every(schedule: Schedule) -> Iterator[Action]:
        return (at(number, size, 0) for number in hot_blocks(checker)[:1] for size in SIZES)

    def draw(schedule: Schedule, rng: Random, place: int) -> Action:
        return at(checker.kernel.block_of[place], rng.choice(SIZES), rng.randrange(1 << 20))

    return "share", make, every, draw, 2


def _tighten(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return relisting.settle(checker, schedule, _number(action), least=True)

    def every(schedule: Schedule) -> Iterator[Action]:
        return (Action("tighten", f"b{number}") for number in hot_blocks(checker)[:1])

    return "tighten", make, every, lambda schedule, rng, place: Action("tighten", f"b{checker.kernel.block_of[place]}"), 1


def _lean(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return relisting.lean(checker, schedule, _number(action))

    def every(schedule: Schedule) -> Iterator[Action]:
        return (Action("lean", f"b{number}") for number in hot_blocks(checker))

    return "lean", make, every, lambda schedule, rng, place: Action("lean", f"b{checker.kernel.block_of[place]}"), 1


def _pattern(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return edits.hold_pattern(schedule, _number(action), str(_param(action, "hold")))

    def every(schedule: Schedule) -> Iterator[Action]:
        return (Action("pattern", f"b{number}", (("hold", name),)) for number in hot_blocks(checker)[:1] for name in PATTERNS)

    def draw(schedule: Schedule, rng: Random, place: int) -> Action:
        return Action("pattern", f"b{checker.kernel.block_of[place]}", (("hold", rng.choice(PATTERNS)),))

    return "pattern", make, every, draw, 1


def _scatter(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return edits.scattered_holds(schedule, _number(action), float(_param(action, "share")), _int(action, "seed"))

    def every(schedule: Schedule) -> Iterator[Action]:
        return (Action("scatter", f"b{number}", (("share", share), ("seed", 0))) for number in hot_blocks(checker)[:1] for share in SHARES[::2])

    def draw(schedule: Schedule, rng: Random, place: int) -> Action:
        return Action("scatter", f"b{checker.kernel.block_of[place]}", (("share", rng.choice(SHARES)), ("seed", rng.randrange(1 << 20))))

    return "scatter", make, every, draw, 1


def _reuse_block(checker: Checker) -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return edits.without_reuse(schedule, schedule.kernel.blocks[_number(action)])

    def every(schedule: Schedule) -> Iterator[Action]:
        return (Action("reuse_block", f"b{number}") for number in hot_blocks(checker)[:1])

    return "reuse_block", make, every, lambda schedule, rng, place: Action("reuse_block", f"b{checker.kernel.block_of[place]}"), 1


def _hint() -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        place = schedule.place_of(_index(action))
        return edits.hinted(schedule, (place,), schedule.at(place).base, str(_param(action, "evict")), _int(action, "ahead"))

    def every(schedule: Schedule) -> Iterator[Action]:
        for place in range(len(schedule.order)):
            for evict, ahead in HINTS.get(schedule.at(place).base, ()):
                yield _at("hint", schedule, place, evict=evict, ahead=ahead)

    def draw(schedule: Schedule, rng: Random, place: int) -> Action:
        stop = edits.block_of(schedule, place).stop
        chosen = next((here for here in range(place, stop) if schedule.at(here).base in HINTS), place)
        evict, ahead = rng.choice(HINTS.get(schedule.at(chosen).base, HINTS["STG"]))
        return _at("hint", schedule, chosen, evict=evict, ahead=ahead)

    return "hint", make, every, draw, 2


def _hints() -> Kind:
    def make(schedule: Schedule, action: Action) -> Schedule | None:
        return edits.hinted(schedule, range(len(schedule.words)), str(_param(action, "of")), str(_param(action, "evict")), _int(action, "ahead"))

    def at(base: str, evict: str, ahead: int) -> Action:
        return Action("hints", WHOLE, (("of", base), ("evict", evict), ("ahead", ahead)))

    def every(schedule: Schedule) -> Iterator[Action]:
        return (at(base, evict, ahead) for base, choices in HINTS.items() for evict, ahead in choices)

    def draw(schedule: Schedule, rng: Random, place: int) -> Action:
        base = rng.choice(list(HINTS))
        return at(base, *rng.choice(HINTS[base]))

    return "hints", make, every, draw, 1

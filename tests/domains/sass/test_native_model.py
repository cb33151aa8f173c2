"""The model in C++ against hazards.py: the same finds and the same states, on every golden cubin, over random edits and over faults."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from sass_cubins import LISTED, checker, kernel

from warpwright.domains.sass.code import control
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.domains.sass.editing.techniques import drawer, techniques
from warpwright.domains.sass.model import hazards
from warpwright.domains.sass.model.checker import Checker
from warpwright.domains.sass.model.native_model import NativeModel


def edited(rules: Checker, rng: Random, steps: int) -> Schedule:
    """A schedule after some legal edits."""
    kinds = techniques(rules)
    draw, schedule = drawer(rules, kinds), rules.kernel.original
    for _ in range(steps):
        action = draw(schedule, rng)
        if action is not None:
            schedule = next(kind for kind in kinds if kind.name == action.technique).apply(schedule, action)
    return schedule


def spoilt(schedule: Schedule, rng: Random) -> Schedule:
    """A schedule with some control fields drawn at random."""
    places = [rng.randrange(len(schedule.words)) for _ in range(3)]
    kinds = (
        lambda word: control.with_stall(word, rng.randint(1, 15)),
        lambda word: control.without_waits(word),
        lambda word: control.with_write_board(word, rng.randrange(8)),
    )
    return schedule.with_words({place: rng.choice(kinds)(schedule.words[place]) for place in places})


def told(model: Any, schedule: Schedule) -> list[Any]:
    """What a model finds first in each block, from the states that it comes to itself."""
    states = model.entries(schedule)
    return [None if state is None else model.walk(schedule, block, state)[0] for block, state in enumerate(states)]


@pytest.mark.parametrize("name", LISTED)
def test_both_find_the_same_first(name: str) -> None:
    rules, rng = checker(name), Random(name)
    schedule = edited(rules, rng, 3)
    for candidate in (kernel(name).original, schedule, spoilt(schedule, rng), spoilt(kernel(name).original, rng)):
        assert told(rules.model, candidate) == told(rules.judge, candidate)


@pytest.mark.parametrize("name", LISTED[::3])
def test_states_compare_and_join_alike(name: str) -> None:
    rules, rng = checker(name), Random(name)
    first, second = (hazards.entries(one) for one in (edited(rules, rng, 2), spoilt(kernel(name).original, rng)))
    for one, other in zip(first, second, strict=True):
        if one is None or other is None:
            continue
        here, there = rules.model.state(one), rules.model.state(other)
        assert (here.within(there), there.within(here)) == (one.within(other), other.within(one))
        both, mine = one.copy(), here.copy()
        assert mine.join(there) == both.join(other)
        whole = rules.model.state(both)
        assert mine.within(whole) and whole.within(mine)


def test_a_false_alarm_is_known_to_both() -> None:
    """One that is a cycle closer is none."""
    rules, original = checker("stencil_90"), kernel("stencil_90").original
    place = next(place for place, word in enumerate(original.words) if control.stall(word) >= 4 and found_with(rules.judge, original, place))
    alarm = found_with(rules.judge, original, place)
    assert alarm is not None
    key = (alarm.rule, alarm.index, alarm.register, alarm.fact, alarm.key)
    for least, seen in ((alarm.cycles, False), (alarm.cycles + 1, True)):
        model = NativeModel(rules.kernel, rules.distances, rules.flights, {key: least})
        found = found_with(model, original, place)
        assert (found == alarm) is seen


def found_with(model: Any, original: Schedule, place: int) -> hazards.Violation | None:
    """What a model finds first where one stall is a cycle."""
    schedule = original.with_words({place: control.with_stall(original.words[place], 1)})
    return next((found for found in told(model, schedule) if found is not None and found.rule == "DISTANCE"), None)

"""Edits: whatever is drawn is legal by a check that does not rely on how it was made, replays, and survives its text."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sass_cubins import checker, kernel, task_path

from warpwright import domains
from warpwright.base import Action
from warpwright.domains.sass import script
from warpwright.domains.sass.code import control
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.domains.sass.editing import edits
from warpwright.domains.sass.editing.kinds import hot_blocks
from warpwright.domains.sass.editing.techniques import drawer, techniques
from warpwright.domains.sass.model.checker import complaints
from warpwright.errors import NotApplicable, UsageError

NAMES = ("rmsnorm_80", "layernorm_86", "stencil_90", "softmax_90", "rmsnorm_100", "stencil_120")


def walked(name: str, seed: int, steps: int) -> tuple[Schedule, list[Action]]:
    """Return what a random walk of edits gives."""
    kinds = techniques(checker(name))
    draw, rng, schedule, taken = drawer(checker(name), kinds), Random(seed), kernel(name).original, []
    by_name = {kind.name: kind for kind in kinds}
    for _ in range(steps):
        action = draw(schedule, rng)
        if action is None:
            break
        schedule = by_name[action.technique].apply(schedule, action)
        taken.append(action)
    return schedule, taken


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(NAMES), st.integers(0, 1 << 30), st.integers(1, 12))
def test_every_walk_stays_legal(name: str, seed: int, steps: int) -> None:
    schedule, taken = walked(name, seed, steps)
    assert taken
    assert not complaints(schedule, checker(name)), taken
    waits = {index: control.waits(word) for index, word in zip(schedule.order, schedule.words, strict=True)}
    dropped = [index for index, word in enumerate(kernel(name).words) if control.waits(word) & ~waits[index]]
    assert {kernel(name).instructions[index].kind for index in dropped} <= {"fixed"}, "a wait that may order memory was dropped"


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(NAMES), st.integers(0, 1 << 30))
def test_a_schedule_survives_its_text(name: str, seed: int) -> None:
    schedule, _ = walked(name, seed, 6)
    again = script.read(script.write(schedule), kernel(name))
    assert (again.order, again.words) == (schedule.order, schedule.words) and again.cubin.data == schedule.cubin.data
    assert len(schedule.cubin.data) == len(kernel(name).cubin.data)


def test_another_kernels_text_is_refused() -> None:
    with pytest.raises(UsageError, match="expected a schedule of stencil"):
        script.read(script.write(kernel("softmax_90").original), kernel("stencil_90"))
    with pytest.raises(UsageError, match="text of a schedule"):
        script.read("{}", kernel("stencil_90"))


def test_a_text_that_moves_an_instruction_out_of_its_block_is_refused() -> None:
    here = kernel("stencil_90")
    edge = here.blocks[0].stop
    order = list(here.original.order)
    order[edge - 1 : edge + 1] = order[edge], order[edge - 1]
    text = script.write(Schedule(here, tuple(order), tuple(here.words[index] for index in order)))
    with pytest.raises(UsageError, match="permutes"):
        script.read(text, here)


def test_the_space_lists_legal_actions_and_refuses_others(tmp_path) -> None:
    space = domains.space(domains.describe(task_path("saxpy_90", tmp_path)), "cubin")
    actions = space.actions(space.start)
    assert {action.technique for action in actions} >= {"exchange", "stall", "hold", "move"}
    for action in actions:
        assert Action.parse(str(action)) == action
        space.apply(space.start, action)
    with pytest.raises(NotApplicable):
        space.apply(space.start, Action("stall", "i0", (("by", 40),)))
    with pytest.raises(NotApplicable, match="another kernel"):
        space.apply(space.start, Action("exchange", "i9999"))


def test_a_recipe_replays(tmp_path) -> None:
    path = task_path("softmax_90", tmp_path)
    _, taken = walked("softmax_90", 7, 8)
    first, second = (domains.space(domains.describe(path), "cubin").candidate(taken) for _ in range(2))
    assert first.key == second.key and first.source.language == "sass"


def test_yields_by_place_and_by_chance() -> None:
    rules = checker("stencil_90")
    original = rules.kernel.original
    [number] = hot_blocks(rules)[:1]
    block = rules.kernel.blocks[number]
    short = [place for place in block if control.stall(original.words[place]) <= control.LONGEST_HELD_STALL]
    free = [place for place in short if not control.reused(original.words[place])]

    def yielding(schedule: Schedule) -> list[int]:
        return [place for place in free if not control.held(schedule.words[place])]

    waits = edits.hold_pattern(original, number, "yield-waits")
    assert waits is not None and yielding(waits) == [place for place in free if control.waits(original.words[place + 1])]
    stalls = edits.hold_pattern(original, number, "yield-stalls")
    assert stalls is not None and yielding(stalls) == [place for place in free if control.stall(original.words[place]) >= edits.LONG]
    some = edits.scattered_holds(original, number, 0.3, 7)
    assert some is not None and 0.1 < len(yielding(some)) / len(free) < 0.5
    assert yielding(some) == yielding(edits.scattered_holds(original, number, 0.3, 7) or original) != yielding(original)
    for schedule in (waits, stalls, some):
        assert rules.legal(schedule) and edits.unchanged_meaning(schedule)


@pytest.mark.parametrize("name", ["rmsnorm_90", "softmax_80"])
def test_shuffles_move_in_their_order_and_the_cubin_says_where_they_are(name: str) -> None:
    here, rules = kernel(name), checker(name)
    shuffles = [one.index for one in here.instructions if one.base == "SHFL"]
    assert shuffles and not here.pinned & set(shuffles) and set(shuffles) == here.cubin.listed(here.name)
    [relist] = [kind for kind in techniques(rules) if kind.name == "relist"]
    listed = [relist.apply(here.original, action) for action in relist.sites(here.original)]
    schedule = max(listed, key=lambda one: sum(one.place_of(index) != index for index in shuffles))
    places = [schedule.place_of(index) for index in shuffles]
    assert places == sorted(places) and places != shuffles and complaints(schedule, rules) == []
    assert schedule.cubin.listed(here.name) == set(places)
    opcodes = {here.words[index] & 0xFFF for index in shuffles}
    assert all(schedule.cubin.words(here.name)[place] & 0xFFF in opcodes for place in places)

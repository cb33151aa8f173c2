"""What a policy may write: every way through the allowed words is a legal recipe that was not known, and every recipe can be written."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from toy_space import STEPS, program

from warpwright.base import Action
from warpwright.learn.policy.recorded import RecordedTask
from warpwright.policy.words import Places
from warpwright.policy.writing import END, Writing
from warpwright.search.moves import Moves
from warpwright.space import Space

ACTIONS = st.builds(
    lambda name, at, value: Action(name, at, (("n", value),) if value else ()),
    st.sampled_from(("tile", "fuse", "unroll")), st.sampled_from(("", "a_1", "b_2")), st.sampled_from((0, 3, 64, 100, 1000)),
)  # fmt: skip
RECIPES = st.lists(ACTIONS, min_size=1, max_size=3).map(tuple)
TASKS = st.lists(RECIPES, min_size=1, max_size=8, unique=True).map(
    lambda recipes: RecordedTask("t", ("sum",), None, {(): 1.0, **{recipe: 1.0 + number for number, recipe in enumerate(recipes)}})
)


def written(writing: Writing, rng: Random, known: frozenset[tuple[Action, ...]]) -> tuple[Action, ...]:
    """Write at random."""
    words: list[str] = []
    while not words or words[-1] != END:
        words.append(rng.choice(writing.allowed(words, known)))
        assert len(words) < 100
    return writing.read(words)[0]


@given(TASKS, st.integers(0, 1000), st.data())
@settings(max_examples=30, deadline=None)
def test_whatever_is_written_was_recorded_and_is_new(task: RecordedTask, seed: int, data: st.DataObject) -> None:
    recipes = [recipe for recipe in task.speedups if recipe]
    known = frozenset(data.draw(st.lists(st.sampled_from(recipes), max_size=len(recipes) - 1, unique=True)) if len(recipes) > 1 else [])
    recipe = written(task.asking().writing, Random(seed), known)
    assert task.answered(recipe) and recipe not in known


@given(TASKS)
@settings(max_examples=30, deadline=None)
def test_every_recorded_recipe_can_be_written(task: RecordedTask) -> None:
    asking = task.asking()
    for recipe in filter(None, task.speedups):
        words = [*asking.places.recipe(recipe), END]
        for place, word in enumerate(words):
            assert word in asking.writing.allowed(words[:place])
        assert asking.writing.read(words) == (recipe, ())


def test_nothing_is_left_to_write_when_all_is_known() -> None:
    task = RecordedTask("t", (), None, {(): 1.0, (Action("tile"),): 2.0})
    assert task.asking().writing.allowed([], frozenset(task.speedups)) == [END]


def test_a_space_of_rewrites_is_written_step_by_step() -> None:
    space = Space(frozenset(), STEPS, lambda ir, actions: program(ir, actions))
    writing = Writing(Moves(space), Places(), longest=3)
    assert "merge" not in writing.allowed([]) and "merge" in writing.allowed(["collapse", ";"])
    assert END not in writing.allowed([]) and END in writing.allowed(["collapse", ";"])
    assert writing.allowed(["collapse", ";", "prune", ";", "merge", ";"]) == [END]
    for seed in range(20):
        assert Moves(space).legal(written(writing, Random(seed), frozenset()))

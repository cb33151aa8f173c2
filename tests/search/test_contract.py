"""One contract for every search of the registry: the budget, determinism, dead ends, and the known best of a toy space."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from toy_space import BEST, TASK, Step, Toy, measured, program, toy

from warpwright.base import Action, Budget, Record
from warpwright.errors import UsageError
from warpwright.loop import Course, optimize
from warpwright.search import SEARCHES, by_name
from warpwright.search.moves import LONGEST, Moves
from warpwright.space import Space, Traits

EVERY = pytest.mark.parametrize("name", sorted(SEARCHES))

ENOUGH = {"screen": 400, "ladder": 8, "anneal": 3000, "greedy": 80, "beam": 120, "evolve": 200, "evolve-ranked": 200, "bandit": 120, "random": 400}
"""Proposals within which each search must have found the best of the toy space's 54 programs, for each of ten seeds."""


def proposals(name: str, count: int, batch: int, seed: int) -> list[tuple[Action, ...]]:
    """Return the first `count` recipes of a search that is answered by the toy's gains."""
    space, evaluator = toy(), Toy()
    proposer = SEARCHES[name](space, Random(seed), batch)
    recipes: list[tuple[Action, ...]] = []
    asked = next(proposer)
    while len(recipes) < count:
        assert 1 <= len(asked) <= batch
        recipes += asked
        asked = proposer.send([evaluator.record(space.candidate(recipe)) for recipe in asked])
    return recipes[:count]


@EVERY
@pytest.mark.parametrize("seed", range(10))
def test_finds_the_known_best(name: str, seed: int) -> None:
    outcome = optimize(TASK, toy(), Toy(), name, Budget(None, proposals=ENOUGH[name]), course=Course(seed=seed, batch=1 + seed % 4))
    assert outcome.best is not None
    assert set(outcome.best.candidate.source.text.split()) == BEST
    assert outcome.proposals <= ENOUGH[name]


@EVERY
def test_is_deterministic_for_a_seed(name: str) -> None:
    assert proposals(name, 60, 3, seed=7) == proposals(name, 60, 3, seed=7)


@EVERY
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_never_proposes_more_than_asked_and_only_legal_recipes(name: str, batch: int) -> None:
    for recipe in proposals(name, 80, batch, seed=3):
        toy().replay(recipe)


@EVERY
def test_goes_on_after_a_dead_end(name: str) -> None:
    """After every program of the space was seen, a search proposes on: it is the loop that ends it."""
    assert len(proposals(name, 300, 4, seed=0)) == 300
    outcome = optimize(TASK, toy(), Toy(), name, Budget(None), course=Course(batch=4))
    assert "nothing new" in outcome.stopped


@EVERY
def test_a_space_without_actions_ends(name: str) -> None:
    outcome = optimize(TASK, toy(()), Toy(), name, Budget(None), course=Course(batch=3))
    assert outcome.stopped.startswith("the search") and "nothing" in outcome.stopped
    assert outcome.best is not None and outcome.best.speedup == 1.0


@EVERY
def test_survives_answers_that_are_all_failures(name: str) -> None:
    proposer = SEARCHES[name](toy(), Random(0), 4)
    asked = next(proposer)
    for _ in range(50):
        asked = proposer.send([Record(TASK, program(frozenset()), "cpu", "wrong") for _ in asked])


def test_ladder_order() -> None:
    """Exact rewrites, folding; then one schedule at a time on the best of those. The original itself is a baseline."""
    names = [tuple(action.technique for action in recipe) for recipe in proposals("ladder", 6, 8, seed=0)]
    exact = ("collapse", "prune", "merge")
    assert {frozenset(recipe) for recipe in names[:2]} == {frozenset(exact), frozenset((*exact, "fold"))}
    assert [recipe[-1] for recipe in names[2:5]] == ["channels_last", "compile", "cuda_graph"]
    assert all(set(recipe[:-1]) == {*exact, "fold"} for recipe in names[2:5])


def test_ladder_joins_schedules_that_gain() -> None:
    steps = (Step("compile", "S", 1.4), Step("cuda_graph", "S", 1.6), Step("channels_last", "S", 0.8))
    outcome = optimize(TASK, toy(steps), Toy(), "ladder", Budget(None, proposals=5), course=Course(batch=4))
    assert outcome.best is not None
    assert [action.technique for action in outcome.best.candidate.actions] == ["cuda_graph", "compile"]


def test_what_would_go_with_a_schedule_and_is_not_there_is_left_out() -> None:
    class Paired(Step):
        traits = Traits("S", best_with=(Action("fuse_cuda"), Action("compile")))

    steps = (Paired("channels_last", "S", 0.8), Step("compile", "S", 1.4))
    outcome = optimize(TASK, toy(steps), Toy(), "ladder", Budget(None, proposals=5))
    assert ["channels_last", "compile"] in [[action.technique for action in record.candidate.actions] for record in outcome.records]


def test_what_changes_nothing_by_itself_is_tried_with_what_it_makes_legal() -> None:
    class Idle(Step):
        traits = Traits("E", idle=True)

    steps = (Idle("guard", "E", 1.0), Step("block", "S", 1.4, after=("guard",)))
    outcome = optimize(TASK, toy(steps), Toy(), "ladder", Budget(None, proposals=1))
    assert [action.technique for action in outcome.records[-1].candidate.actions] == ["guard", "block"]
    faster = (*steps, Step("collapse", "E", 3.0))
    outcome = optimize(TASK, toy(faster), Toy(), "ladder", Budget(None, proposals=1))
    assert {action.technique for action in outcome.records[-1].candidate.actions} == {"guard", "collapse"}


def test_rewrites_that_undo_one_another_end() -> None:
    class Flip:
        """Is legal for ever."""

        name, traits = "flip", Traits("E")

        def sites(self, ir: frozenset[str]) -> list[Action]:
            return [Action("flip")]

        def apply(self, ir: frozenset[str], action: Action) -> frozenset[str]:
            return ir ^ {"flip"}

    moves = Moves(toy((Flip(),)))  # type: ignore[arg-type]
    assert len(moves.fixpoint((), "E")) == LONGEST


def test_unknown_name() -> None:
    with pytest.raises(UsageError, match="ladder"):
        by_name("clever")


def test_measured_helper_is_consistent() -> None:
    assert measured(2.0).verdict == "FASTER" and measured(1.0).verdict == "SAME"


def test_what_only_makes_a_baseline_is_not_proposed() -> None:
    class Compiled:
        """Alone, it is the baseline `compile`."""

        name, traits = "compiled", Traits("S", baseline=lambda action: "compile")

        def sites(self, ir: frozenset[str]) -> list[Action]:
            return [] if "compiled" in ir else [Action("compiled")]

        def apply(self, ir: frozenset[str], action: Action) -> frozenset[str]:
            return ir | {"compiled"}

    alone, merged = (Action("compiled"),), (Action("merge"), Action("compiled"))
    space = toy((Step("merge", "S", 1.1), Compiled()))
    for baselines, proposed in ((frozenset({"eager"}), True), (frozenset({"eager", "compile"}), False)):
        additions = Moves(replace(space, baselines=baselines)).additions(())
        assert (alone in additions) == proposed
    assert Moves(replace(space, baselines=frozenset({"compile"}))).legal(merged)


def test_a_recipe_is_replayed_from_its_longest_beginning_that_is_known_however_long_it_is() -> None:
    class Counting:
        """Adds one, as often as it is asked to."""

        name, traits, done = "count", Traits("S"), 0

        def sites(self, ir: int) -> list[Action]:
            return [Action("count")]

        def apply(self, ir: int, action: Action) -> int:
            self.done += 1
            return ir + 1

    counting = Counting()
    space: Space[int] = Space(0, (counting,), lambda ir, actions: None)  # type: ignore[arg-type, return-value]
    recipe = (Action("count"),) * 1200
    assert Moves(space).ir(recipe) == space.replay(recipe) == 1200 and counting.done == 1200
    assert space.replay((*recipe, Action("count"))) == 1201 and counting.done == 1201


def test_an_estimate_is_worked_out_once_a_recipe_even_when_its_ir_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpwright.space.REMEMBERED", 2)
    seen: list[object] = []
    moves = Moves(replace(toy(), estimate=lambda ir: float(seen.append(ir) or len(seen))))
    recipes = moves.additions(())
    first = [moves.estimate(recipe) for recipe in recipes]
    assert len(recipes) > 2 and [moves.estimate(recipe) for recipe in recipes] == first == [1.0 + i for i in range(len(recipes))]

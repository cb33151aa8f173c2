"""What is evaluated next: the most hopeful recipe that makes a new program."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from toy_space import GAIN, STEPS, Factors, program

from warpwright.base import Action
from warpwright.policy.choosing import Choice
from warpwright.search.costs import OPTIMISM, PRIOR, Costs, Prior
from warpwright.search.moves import Moves, Recipe
from warpwright.space import Space

COLLAPSE, PRUNE, COMPILE, GRAPH = (Action(name) for name in ("collapse", "prune", "compile", "cuda_graph"))

SPACE: Space[Factors] = Space(
    frozenset(), STEPS, lambda ir, actions: program(ir, actions), estimate=lambda ir: 1 / math.prod(GAIN[name] for name in ir),
    alike=lambda one: one.source.text,
)  # fmt: skip


def test_the_most_hopeful_is_chosen_and_what_others_taught_of_the_cost_model_counts() -> None:
    pool: list[Recipe] = [(PRUNE,), (GRAPH,), (COMPILE,)]
    assert Choice(Moves(SPACE)).choose(pool, {(): 1.0}) == (GRAPH,)
    taught = Prior({"cuda_graph": (-1.0, 0.01), "prune": (0.1, 0.01), "compile": (0.0, 0.01)})
    assert Choice(Moves(SPACE), taught).choose(pool, {(): 1.0}) == (COMPILE,)


def test_what_nothing_is_known_of_is_hoped_more_of() -> None:
    costs = Costs(Moves(SPACE), {(GRAPH,): 1.6, (COLLAPSE, GRAPH): 4.8})
    assert costs.hope((PRUNE,)) - costs.gain((PRUNE,)) == pytest.approx(OPTIMISM * math.sqrt(PRIOR + costs.prior.noise))
    assert costs.hope((GRAPH,)) - costs.gain((GRAPH,)) < costs.hope((PRUNE,)) - costs.gain((PRUNE,))


def test_a_program_that_was_made_before_is_not_chosen_and_its_speed_is_known() -> None:
    choice = Choice(Moves(SPACE))
    known: dict[Recipe, float] = {(): 1.0}
    assert choice.choose([(COLLAPSE, PRUNE)], known) == (COLLAPSE, PRUNE)
    known[COLLAPSE, PRUNE] = 3.5
    assert choice.choose([(PRUNE, COLLAPSE)], known) is None and known[PRUNE, COLLAPSE] == 3.5
    assert choice.choose([(PRUNE, COLLAPSE), (PRUNE,)], known) == (PRUNE,)


def test_the_pool_holds_the_answers_variants_of_the_best_and_walks_each_once_and_nothing_known() -> None:
    choice = Choice(Moves(SPACE), may_end=lambda recipe: bool(recipe) and recipe != (PRUNE,))
    known: dict[Recipe, float] = {(): 1.0, (COLLAPSE,): 3.0}
    pool = choice.pool([(GRAPH,), (GRAPH,), (PRUNE,)], known, Random(0))
    assert pool[0] == (GRAPH,) and len(pool) == len(set(pool)) > 5 and not set(pool) & {(), (COLLAPSE,), (PRUNE,)}
    assert any(recipe[:1] == (COLLAPSE,) for recipe in pool)
    blind = Choice(Moves(replace(SPACE, estimate=None)))
    assert blind.pool([(GRAPH,), (PRUNE,)], known, Random(0)) == [(GRAPH,), (PRUNE,)]

"""A cost model that is corrected by what was measured, and the evolution that asks it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from toy_space import GAIN, Factors, Toy, toy

from warpwright.base import Action
from warpwright.search import SEARCHES
from warpwright.search.costs import Costs
from warpwright.search.moves import Moves
from warpwright.space import Space

COLLAPSE, PRUNE, COMPILE, GRAPH = (Action(name) for name in ("collapse", "prune", "compile", "cuda_graph"))


def space(wrong: str = "", by: float = 1.0) -> Space[Factors]:
    """Return the toy space with a cost model that knows every gain, but thinks `by` times too well of `wrong`."""
    return replace(toy(), estimate=lambda ir: 1.0 / math.prod(GAIN[name] * (by if name == wrong else 1.0) for name in ir))


def test_the_cost_model_is_believed_until_it_was_measured_to_be_wrong() -> None:
    costs = Costs(Moves(space("compile", 4.0)))
    assert costs.gain((COMPILE,)) == pytest.approx(math.log(4 * 1.4)) and costs.best([(GRAPH,), (COMPILE,)]) == (COMPILE,)
    for recipe, speedup in (((COMPILE,), 1.4), ((COLLAPSE, COMPILE), 4.2), ((PRUNE, COMPILE), 1.68), ((PRUNE,), 1.2), ((COLLAPSE,), 3.0)):
        costs.learn(recipe, speedup)
    assert costs.best([(COMPILE,), (GRAPH,)]) == (GRAPH,)
    assert costs.gain((COLLAPSE, PRUNE, COMPILE)) == pytest.approx(math.log(3 * 1.2 * 1.4), abs=0.3)  # never measured together
    assert costs.gain((COLLAPSE,)) == pytest.approx(math.log(3.0), abs=0.1)


def test_the_weights_are_those_of_least_squares_with_a_prior() -> None:
    torch = pytest.importorskip("torch")
    from warpwright.search.costs import NOISE, PRIOR

    measured = {(COLLAPSE,): 2.0, (COLLAPSE, PRUNE): 5.0, (PRUNE, COMPILE): 1.1, (COMPILE,): 0.7, (COLLAPSE, GRAPH): 4.0}
    costs, moves = Costs(Moves(space())), Moves(space())
    for recipe, speedup in measured.items():
        costs.learn(recipe, speedup)
    names = ["collapse", "prune", "compile", "cuda_graph"]
    held = torch.tensor([[float(any(action.technique == name for action in recipe)) for name in names] for recipe in measured], dtype=torch.float64)
    errors = torch.tensor([math.log(speedup * moves.estimate(recipe)) for recipe, speedup in measured.items()], dtype=torch.float64)
    weights = torch.linalg.solve(held.T @ held / NOISE + torch.eye(4, dtype=torch.float64) / PRIOR, held.T @ errors / NOISE)
    for one, weight in zip((COLLAPSE, PRUNE, COMPILE, GRAPH), weights.tolist(), strict=True):
        assert costs.gain((one,)) - math.log(GAIN[one.technique]) == pytest.approx(weight, abs=1e-9)


def test_a_technique_that_fails_is_hoped_less_of_and_those_that_passed_are_not_to_blame() -> None:
    costs = Costs(Moves(space()))
    assert costs.chance((COLLAPSE, PRUNE)) == 1.0
    costs.learn((PRUNE,), 1.2)
    costs.learn((COLLAPSE, PRUNE), 0.0)
    assert costs.chance((PRUNE,)) == 1.0 and costs.chance((COLLAPSE,)) == costs.chance((COLLAPSE, GRAPH)) == 0.8
    hope, factor = costs.hope((COLLAPSE,)), costs.factor("collapse")
    costs.learn((COLLAPSE, GRAPH), 0.0)
    assert costs.chance((COLLAPSE,)) == pytest.approx(4 / 5.5) and costs.chance((GRAPH,)) == pytest.approx(4 / 4.5)  # they share it
    assert costs.hope((COLLAPSE,)) < hope and costs.factor("collapse") < factor
    costs.learn((GRAPH,), 1.1)
    assert costs.chance((GRAPH,)) == 1.0 and costs.chance((COLLAPSE,)) == pytest.approx(4 / 6)
    costs.learn((COLLAPSE,), 3.0)  # it is how they stand together, then
    assert 0.8 < costs.chance((COLLAPSE,)) < 1 and costs.chance((PRUNE,)) < 1
    for _ in range(9):
        costs.learn((COMPILE,), 0.0)
    assert costs.best([(COMPILE,), (GRAPH,)]) == (GRAPH,) and costs.gain((COMPILE,)) > costs.gain((GRAPH,))


def test_what_did_not_pass_teaches_the_weights_nothing_and_without_an_estimate_nothing_is_expected() -> None:
    costs = Costs(Moves(space()))
    before = costs.gain((COLLAPSE,))
    costs.learn((COLLAPSE,), 0.0)
    costs.learn((), 1.0)
    assert costs.gain((COLLAPSE,)) == before
    blind = Costs(Moves(toy()))
    blind.learn((COLLAPSE,), 3.0)
    assert blind.gain((COLLAPSE,)) == -math.inf and blind.best([(PRUNE,), (COLLAPSE,)]) == (PRUNE,)


def found(name: str, of: Callable[[], Space[Factors]], count: int, seed: int) -> float:
    """Return the best speed-up of a search's first proposals."""
    searched, evaluator = of(), Toy()
    proposer, best, seen = SEARCHES[name](searched, Random(seed), 1), 1.0, 0
    asked = next(proposer)
    while seen < count:
        records = [evaluator.record(searched.candidate(recipe)) for recipe in asked]
        best, seen = max([best, *(record.speedup for record in records)]), seen + len(asked)
        asked = proposer.send(records)
    return best


def test_evolution_that_asks_it_is_ahead_after_few_proposals_and_plain_without_an_estimate() -> None:
    plain, ranked = ([found(name, space, 12, seed) for seed in range(8)] for name in ("evolve", "evolve-ranked"))
    assert math.prod(ranked) > 1.3**8 * math.prod(plain)
    assert [found("evolve", toy, 20, seed) for seed in range(3)] == [found("evolve-ranked", toy, 20, seed) for seed in range(3)]

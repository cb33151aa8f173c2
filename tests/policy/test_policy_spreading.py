"""Proposals are spread: what was written already, and did worse than the best, becomes less likely, and every legal word has a chance."""

from __future__ import annotations

from random import Random

import pytest
from toy_space import STEPS, program

from warpwright.policy.model import Policy, Shape, make
from warpwright.policy.search import Asking
from warpwright.policy.spreading import Spread, spread
from warpwright.search.moves import Recipe
from warpwright.space import Space

SPACE = Space(frozenset(), STEPS, lambda ir, actions: program(ir, actions))


def test_nothing_is_spread_before_anything_is_known() -> None:
    assert spread([]) is None and Asking(SPACE).spread({(): 1.0}) is None


def test_what_did_worse_than_the_best_is_written_less_and_what_was_not_tried_gets_its_share() -> None:
    known = spread([(("fuse", ";", "<end>"), 4.0), (("graph", ";", "<end>"), 1.0), (("fold", ";", "<end>"), 0.0)], share=0.2, strength=1.0, seen=0.25)
    assert known is not None
    fuse, graph, fold, never = known.weights((), ["fuse", "graph", "fold", "tile"], [0.25, 0.25, 0.25, 0.25], 4)
    assert (fuse, graph, fold, never) == pytest.approx((0.25 / 1.25, 0.25 / 2.0, 0.25 / 2.25, 0.25))
    assert known.weights(("tile",), ["a", "b"], [1.0, 0.0], 2) == pytest.approx([0.9, 0.1])
    assert known.counted["fuse", ";"] == 0.25 and ("fuse", "graph") not in known.counted


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    """A model that writes one technique first, nearly always, and never read another."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers", reason="the policy's model needs transformers (extra learn)")
    policy = Policy(*make([step.name for step in STEPS[1:]], Shape(16, 1, 2, 128), 0))
    favourite = policy.tokenizer.get_vocab()[STEPS[1].name]
    plain = policy.model.forward

    def forward(*args: object, **kwargs: object) -> object:
        output = plain(*args, **kwargs)
        output.logits = torch.zeros_like(output.logits)
        output.logits[..., favourite] = 9.0
        return output

    policy.model.forward = forward
    return policy


def openings(policy: Policy, spread_out: bool) -> set[str]:
    asking, known = Asking(SPACE), dict[Recipe, float]({(): 1.0})
    for seed in range(12):
        how = [asking.spread(known)] if spread_out else []
        [one] = policy.write([asking.prompt(known, Random(seed), None, "none")], [asking.writing], [known], seed, how)
        known[one.recipe] = 1.0 if len(known) % 2 else 0.0
    return {recipe[0].technique for recipe in known if recipe}


def test_a_policy_that_prefers_one_opening_opens_with_all_of_them_also_with_what_it_never_read(narrow: Policy) -> None:
    alone, spread_out = openings(narrow, False), openings(narrow, True)
    assert STEPS[0].name not in alone and len(spread_out) > len(alone)
    assert STEPS[0].name in spread_out


def test_a_spread_leaves_the_first_answer_as_it_is(narrow: Policy) -> None:
    asking = Asking(SPACE)
    texts, writings, known = [asking.prompt({(): 1.0}, Random(0), None, "none")], [asking.writing], [{(): 1.0}]
    assert narrow.write(texts, writings, known, 3) == narrow.write(texts, writings, known, 3, [None])
    assert Spread().counted == {}


@pytest.mark.parametrize("most", [2, 3])
def test_an_answer_that_grows_too_long_ends_where_it_stands(narrow: Policy, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpwright.policy.model.MOST_WORDS", most)
    only_long = Asking(SPACE, lambda recipe: len(recipe) > 2)
    for how in (None, spread([(("prune", ";", "<end>"), 1.0)])):
        [one] = narrow.write([only_long.prompt({(): 1.0}, Random(0), None, "none")], [only_long.writing], [{(): 1.0}], 0, [how])
        assert len(one.recipe) == 1 and one.words[-1] == "<end>" and len(one.tokens) == len(one.allowed) == most + 1

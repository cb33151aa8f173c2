"""Prompts: exemplars from distinct buckets of speed, failures never shown, the ablations."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from warpwright.base import Action
from warpwright.policy import prompt
from warpwright.policy.words import Places, speed_step

RECIPES = st.integers(0, 50).map(lambda number: (Action("step", f"p{number}"),))
KNOWN = st.dictionaries(RECIPES, st.sampled_from((0.0, 0.5, 0.52, 1.0, 3.0, 3.1, 16.0)), max_size=9)


@given(KNOWN, st.integers(0, 10))
@settings(deadline=None)
def test_exemplars_passed_stand_far_apart_and_the_fastest_is_first(known: dict[prompt.Recipe, float], seed: int) -> None:
    shown = prompt.draw(known, Random(seed))
    steps = [speed_step(speedup) for _, speedup in shown]
    assert all(speedup > 0 and known[recipe] == speedup for recipe, speedup in shown)
    assert len(steps) == len(set(steps)) == min(2, len({speed_step(one) for one in known.values() if one})) and steps == sorted(steps, reverse=True)


def test_fast_buckets_are_drawn_more_often_and_a_buckets_recipes_alike() -> None:
    known = {(Action("step", f"p{number}"),): speedup for number, speedup in enumerate((1.0, 1.0, 1.0, 8.0, 0.2))}
    rng = Random(0)
    counts = Counter(recipe for _ in range(3000) for recipe, _ in prompt.draw(known, rng))
    one, two, three, fast, slow = (counts[recipe] for recipe in known)
    assert fast > 2800 and slow < one + two + three and max(one, two, three) < 1.2 * min(one, two, three)


def test_the_ablations() -> None:
    known = {(Action("step", f"p{number}"),): 1.0 + number for number in range(5)}
    assert prompt.draw(known, Random(0), "none") == [] and len(prompt.draw(known, Random(0), "random")) == 2


def test_the_text() -> None:
    places = Places()
    shown = [((Action("tile", "mm", (("m", 64),)),), 4.0), ((), 1.0)]
    places.word("mm")
    said = prompt.text(places.program(("@mm", "matmul", "e20")), 0.3, shown, places)
    assert said == "program roof2 @0 matmul e20 try x+4 tile @0 m 64 ; try x+0 write"

"""What a cost model promises of words: by what factor the best that a word leads to is faster, one rewrite ahead."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random

import pytest
from toy_space import GAIN, STEPS, Factors, Step, program

from warpwright.policy.promise import MOST, Promises
from warpwright.policy.search import Asking
from warpwright.policy.spreading import Spread, spread
from warpwright.policy.words import Places
from warpwright.policy.writing import END, Writing
from warpwright.search.moves import Moves
from warpwright.space import Space, Traits


def seconds(ir: Factors) -> float:
    return 1.0 / math.prod(GAIN.get(name, 100.0) for name in ir)


SPACE = Space(frozenset(), STEPS, lambda ir, actions: program(ir, actions), estimate=seconds)


def promises(space: Space[Factors]) -> Promises:
    return Promises(Writing(Moves(space), Places()))


def test_a_word_promises_what_its_action_gains_and_of_a_rewrite_the_one_after_it_too() -> None:
    found = promises(SPACE)
    assert found.factors([], ["collapse", "prune", "cuda_graph", "channels_last"]) == pytest.approx([3.0 * 1.5, 1.2 * 3.0, 1.6, 0.8])
    assert found.factors(["collapse", ";"], ["merge", END]) == pytest.approx([1.5 * 1.3, 1.0])
    assert found.factors(["collapse"], [";"]) == found.factors([], ["collapse"])  # the same action, further on
    assert found.factors(["cuda_graph", ";"], ["collapse"]) == pytest.approx([3.0 * 1.5])


def test_a_promise_ends_somewhere_and_without_an_estimate_there_is_none() -> None:
    steps = (Step("miracle", "E", 1.0), Step("ruin", "S", 1.0, after=("miracle",)), *STEPS)
    space = replace(SPACE, techniques=steps, estimate=lambda ir: 1e4 if "ruin" in ir else seconds(ir))
    assert promises(space).factors([], ["miracle"]) == [MOST]
    assert promises(space).factors(["miracle", ";"], ["ruin"]) == [1 / MOST]
    assert promises(replace(SPACE, estimate=lambda ir: 0.0)).factors([], ["collapse", "prune"]) == [1.0, 1.0]


@dataclass(frozen=True)
class Untold(Step):
    @property
    def traits(self) -> Traits:
        return Traits(self.legality, estimated=False)


def test_an_action_whose_estimate_cannot_be_compared_promises_nothing() -> None:
    space = replace(SPACE, techniques=(Untold("fused", "S", 9.0), *STEPS))
    assert promises(space).factors([], ["fused", "prune"]) == pytest.approx([1.0, 3.6])


def test_weights_are_multiplied_by_what_is_promised_from_the_first_answer_on() -> None:
    asking = Asking(SPACE)
    first = asking.spread({(): 1.0})
    assert first is not None and asking.spread({(): 1.0}, promised=False) is None and Asking(replace(SPACE, estimate=None)).spread({(): 1.0}) is None
    plain = Spread(share=0.2).weights((), ["collapse", "cuda_graph"], [0.1, 0.9], 7)
    assert first.weights((), ["collapse", "cuda_graph"], [0.1, 0.9], 7) == pytest.approx([4.5 * plain[0], 1.6 * plain[1]])
    known = spread([(("collapse", ";", END), 0.0)], promises=asking.promises)
    assert known is not None and known.weights((), ["collapse"], [0.1], 7)[0] < first.weights((), ["collapse"], [0.1], 7)[0]


def test_of_random_answers_those_that_are_weighed_are_the_cheaper_ones() -> None:
    def drawn(weighed: bool) -> float:
        total, rng = 0.0, Random(0)
        for _ in range(60):
            asking, words = Asking(SPACE), list[str]()
            how = asking.spread({(): 1.0}) if weighed else Spread(share=1.0)
            assert how is not None
            while not words or words[-1] != END:
                following = asking.writing.allowed(words)
                words += rng.choices(following, how.weights(tuple(words), following, [1.0 / len(following)] * len(following), len(following)))
            total += math.log(asking.moves.estimate(asking.writing.read(words)[0]))
        return total / 60

    assert drawn(True) < drawn(False) - 0.3

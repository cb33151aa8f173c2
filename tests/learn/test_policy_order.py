"""The order in which a training asks for its tasks: it does not hang on where a training that was killed goes on."""

from __future__ import annotations

import pytest

from warpwright.learn.policy.stages import in_order

NAMES = [*"abcde"] * 3


def test_each_round_has_all_in_an_order_of_its_own() -> None:
    found = in_order(NAMES, 3, 12, 0)
    rounds = [found[start : start + len(NAMES)] for start in (0, 15)]
    assert len(found) == 36 and all(sorted(one) == sorted(NAMES) for one in rounds) and rounds[0] != rounds[1]
    assert in_order(NAMES, 3, 7, 0) == found[:21] and in_order(NAMES, 3, 12, 1) != found
    assert len(set(in_order([*"abcdefgh"], 3, 2, 0))) == 6  # what is left of a round makes no step


def test_it_is_the_trainers_own() -> None:
    sampler = pytest.importorskip("trl.trainer.utils", reason="training a policy needs trl (extra learn)").RepeatSampler
    one = sampler(NAMES, mini_repeat_count=4, batch_size=2, seed=3)
    seen = [NAMES[number] for _ in range(2) for number in list(one)[::4]]
    assert in_order(NAMES, 2, len(seen) // 2, 3) == seen

"""What the one judgement of schedules accepts, and in which order candidates come before it."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.errors import WorkerDied, WorkerTimeout
from warpwright.targets.cubin.judging import Judgement, first_accepted

FASTER = Judgement(1.05, (1.04, 1.06), 1.0, (0.999, 1.001), (1.01, 0.99, 1.02), 100.0, 95.0, 1000, 0)


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({}, ""),
        ({"cold": (0.999, 0.99, 1.0)}, ""),  # an interval that reaches 1 does not say slower
        ({"cold": (0.98, 0.97, 0.999)}, "+5.00 % on warm inputs, but -2.00 % (-3.00 % to -0.10 %) on cold caches"),
        ({"differ": 2}, "2 other words in 1000 launches"),
        ({"interval": (1.0005, 1.06)}, "+5.00 % on warm inputs (+0.05 % to +6.00 %; the original against itself -0.10 % to +0.10 %)"),
        ({"interval": (0.999, 1.06), "same_interval": (0.9, 0.95)}, "+5.00 % on warm inputs (-0.10 % to +6.00 %; the original against itself"),
    ],
)
def test_what_is_accepted(changed: dict[str, Any], refusal: str) -> None:
    judgement = replace(FASTER, **changed)
    assert judgement.refusal.startswith(refusal) and judgement.accepted == (not refusal)
    assert judgement.only_cold_refuses == ("cold" in changed and bool(refusal))


class Judge:
    """Says what is prepared."""

    def __init__(self, *said: Judgement | Exception) -> None:
        self.said, self.asked = list(said), []

    def judge(self, candidate: Any, stress: float = 0.0) -> Judgement:
        self.asked.append(candidate)
        told = self.said[len(self.asked) - 1]
        if isinstance(told, Exception):
            raise told
        return told


def records(*names: str) -> Any:
    return [SimpleNamespace(candidate=name, task=None) for name in names]


def test_the_next_is_judged_where_one_is_refused_or_breaks() -> None:
    judge = Judge(replace(FASTER, differ=1), WorkerDied("it broke the context"), FASTER)
    found = first_accepted(judge, records("a", "b", "c", "d"))
    assert (found.candidate, judge.asked, len(found.refusals)) == ("c", ["a", "b", "c"], 2)


def test_nothing_more_is_judged_when_the_time_is_over() -> None:
    judge = Judge(replace(FASTER, differ=1), FASTER)
    found = first_accepted(judge, records("a", "b"), until=time.monotonic())
    assert found.candidate is None and judge.asked == ["a"]
    broken = Judge(WorkerTimeout("no answer within 60 s"), FASTER)
    found = first_accepted(broken, records("a", "b"), until=time.monotonic())
    assert found.candidate is None and broken.asked == ["a"] and found.refusals == ("no answer within 60 s",)

"""What an answer's time leaves for the timing of its program."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from warpwright.space import Measuring
from warpwright.targets import local
from warpwright.tasks import taskfile


@pytest.mark.parametrize(
    ("within", "answers", "gone", "left"),
    [(6.0, 1, 1.0, 5.0 - local.AFTER_TIMING), (6.0, 1, 7.0, local.LEAST_TIMING), (6.0, 0, 1.0, math.inf), (0.0, 1, 1.0, math.inf)],
)
def test_the_timing_has_what_building_and_verifying_left(within: float, answers: int, gone: float, left: float) -> None:
    task = taskfile.describe(next((Path(__file__).parents[1] / "tasks").glob("softmax*.py")))
    evaluator = local.LocalEvaluator(task, "cpu", Measuring(within=within))
    evaluator._answers, evaluator._asked = answers, time.monotonic() - gone
    found = evaluator._left_within()
    assert found == left or (left > local.LEAST_TIMING and local.LEAST_TIMING < found < left)  # less where the machine was busy meanwhile

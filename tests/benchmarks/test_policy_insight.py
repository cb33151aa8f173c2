"""What bounds a program, what an action brings, and what is left of a policy's first answer without a technique: by hand on one recorded task."""

from __future__ import annotations

import math

import pytest

from benchmarks.policy.trained import insight
from warpwright.base import Action
from warpwright.learn.policy.recorded import RecordedTask

SLICES, FUSED = Action("int8_slices"), Action("fuse_cuda")

TASK = RecordedTask(
    "t", ("@x", "linear", "e9"), 0.1, {(): 1.0, (SLICES,): 2.0, (FUSED,): 0.0, (SLICES, FUSED): 4.0, (FUSED, SLICES): 3.0}
)

WRITTEN = {"t": {(SLICES,): 0.5, (FUSED,): 0.1, (SLICES, FUSED): 0.3, (FUSED, SLICES): 0.1}}


def test_what_bounds_a_program() -> None:
    assert insight.bound(TASK) == "matrix product"
    assert insight.bound(RecordedTask("t", ("conv2d", "linear"), 0.1, {(): 1.0})) == "convolution"
    assert insight.bound(RecordedTask("t", ("conv2d",), 0.6, {(): 1.0})) == "bandwidth"
    assert insight.bound(RecordedTask("t", ("tanh",), None, {(): 1.0})) == "chain of kernels"


def test_what_an_action_brings() -> None:
    assert insight.steps([TASK], "fuse_cuda") == ([], [2.0], 1, 2), "what goes on after a wrong program says nothing"
    assert insight.steps([TASK], "int8_slices") == ([2.0], [], 0, 1)


def test_what_the_first_answer_is_worth() -> None:
    mean = 0.5 * math.log(0.5) + 0.1 * math.log(0.25) + 0.1 * math.log(0.75)
    assert insight.expected(TASK, WRITTEN["t"]) == pytest.approx(mean)
    assert insight.expected(TASK, WRITTEN["t"], lambda recipe: SLICES not in recipe) == pytest.approx(math.log(0.25)), "wrong: the original is left"
    assert insight.expected(TASK, WRITTEN["t"], lambda recipe: False) is None


def test_the_order_that_is_written_more_is_told_with_what_it_is_worth() -> None:
    [row] = insight.orders([TASK, TASK], WRITTEN)
    assert (row["first"], row["then"], row["written so"], row["the other way round"]) == ("int8_slices", "fuse_cuda", "0.30", "0.10")
    assert (row["both over the better alone"], row["this order over the other"]) == ("2.00x", "1.33x")

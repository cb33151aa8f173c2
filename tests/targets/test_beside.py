"""Steps that go on beside the main thread: threads take short turns meanwhile, and afterwards what they took before."""

from __future__ import annotations

import sys
import threading

import pytest

from warpwright.targets.trust.beside import TURN_SECONDS, Beside


def test_turns_are_short_until_the_last_step_is_over():
    before = sys.getswitchinterval()
    first_goes_on, second_goes_on = threading.Event(), threading.Event()
    started = threading.Barrier(3)

    def step(goes_on: threading.Event) -> float:
        started.wait(20)
        goes_on.wait(20)
        return sys.getswitchinterval()

    first = Beside(lambda: step(first_goes_on), "first")
    second = Beside(lambda: step(second_goes_on), "second")
    started.wait(20)
    first_goes_on.set()
    assert first.result() == pytest.approx(TURN_SECONDS)
    assert sys.getswitchinterval() == pytest.approx(TURN_SECONDS), "the second is not over"
    second_goes_on.set()
    assert second.result() == pytest.approx(TURN_SECONDS)
    assert sys.getswitchinterval() == pytest.approx(before)


def test_a_step_that_fails_leaves_the_turns_as_they_were():
    before = sys.getswitchinterval()
    failing = Beside(lambda: 1 / 0, "failing")
    with pytest.raises(ZeroDivisionError):
        failing.result()
    assert sys.getswitchinterval() == pytest.approx(before)

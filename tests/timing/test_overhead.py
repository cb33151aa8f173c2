"""What is subtracted from a call by the parent's clock grows with the call, as far as it was measured."""

from __future__ import annotations

import pytest

from warpwright.timing.overhead import Overhead


def test_between_what_was_measured_it_is_a_line() -> None:
    overhead = Overhead.measured([(2e-5, 2e-5), (2e-3, 6e-5), (8e-3, 1e-4)])
    assert overhead.empty == overhead.of(1e-5) == overhead.of(2e-5) == 2e-5
    assert overhead.of(2e-3) == pytest.approx(6e-5) and overhead.of(5e-3) == pytest.approx(8e-5)
    assert overhead.of(0.3) == pytest.approx(1e-4), "beyond the longest call it is that one's"


def test_it_never_falls_with_the_length() -> None:
    overhead = Overhead.measured([(2e-3, 1e-5), (2e-5, 2e-5), (8e-3, 5e-5)])
    found = [overhead.of(span * 1e-4) for span in range(100)]
    assert found == sorted(found) and found[0] == 2e-5


def test_of_a_turn_each_call_has_its_share() -> None:
    overhead = Overhead.measured([(2e-5, 2e-5), (8e-3, 1e-4)])
    of_one = overhead / 100
    assert of_one.of(8e-5) == pytest.approx(1e-6) and of_one.of(4e-5) == pytest.approx(overhead.of(4e-3) / 100)
    assert overhead.scaled(1.1).of(4e-3) == pytest.approx(1.1 * overhead.of(4e-3))


def test_a_constant_is_one_for_every_call() -> None:
    assert Overhead.constant(3e-5).of(0.0) == Overhead.constant(3e-5).of(1.0) == 3e-5

"""What is subtracted from a call by the parent's clock grows with the call, as far as it was measured."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.timing.overhead import Overhead
from warpwright.verifier import timed


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


def of_a_device(monkeypatch: pytest.MonkeyPatch, device: str, cores: int) -> Overhead:
    """Measure it on a device whose parent reads 20 us more of nothing, and 1 % of a wait besides."""
    last = [0.0]

    def calls(worker: Any, count: int, wait: float = 0.0) -> Iterator[float]:
        for _ in range(count):
            last[0] = wait
            yield wait + 2e-5 + 0.01 * wait

    monkeypatch.setattr(timed, "_calls_of_nothing", calls)
    monkeypatch.setattr(timed.os, "cpu_count", lambda: cores)
    worker: Any = SimpleNamespace(device=device, request=lambda op: {"seconds": last[0]})
    return timed.overheads(worker)


def test_on_a_gpu_it_is_what_a_call_takes_beyond_its_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    found = of_a_device(monkeypatch, "cuda:0", 16)
    assert len(found.points) == 1 + len(timed.WAITS) and found.empty == pytest.approx(2e-5)
    assert found.of(8e-3 * 1.01 + 2e-5) == pytest.approx(2e-5 + 8e-5)


@pytest.mark.parametrize(("device", "cores"), [("cpu", 16), ("cuda:0", 2)])
def test_where_nobody_waits_busily_it_is_that_of_a_call_of_nothing(device: str, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_a_device(monkeypatch, device, cores) == Overhead.constant(2e-5)

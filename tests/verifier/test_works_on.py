"""Is an honest program on a busy host taken for one that works on after its answers? Time stolen from a thread counts as the thread's own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.verifier import aftermath
from warpwright.verifier.verify import SETTLE_TRIES

CALLS, AUDITS = 40, 60
"""Checked calls of an audit, and audits simulated."""


class Host:
    """A worker on a host that is busy for spells of some calls, most of which are stolen from; its program works on after a share of its calls."""

    def __init__(self, seed: int, works: float = 0.0, busy: float = 0.15, spell: int = 8) -> None:
        self.random, self.works, self.busy, self.spell = random.Random(seed), works, busy, spell
        self.freezes, self.call_seconds, self.own, self.left = False, 1e-3, True, 0
        self.calls = 0

    def call(self, own: bool = True) -> None:
        self.own, self.calls = own, self.calls + 1
        if self.left == 0 and self.random.random() < self.busy / self.spell:
            self.left = self.spell
        self.left = max(0, self.left - 1)

    def settle(self) -> float:
        stolen = 4e-3 if self.left and self.random.random() < 0.8 else 0.0
        return 5e-5 + stolen + (3e-3 if self.own and self.random.random() < self.works else 0.0)


def suspicions(host: Host) -> Iterator[None]:
    """Yield once for each checked call of an audit, made several times, that is followed by work each time."""
    for _ in range(CALLS):
        for _ in range(SETTLE_TRIES):
            host.call()
            if not aftermath.worked_on(host):  # type: ignore[arg-type]
                break
        else:
            yield


def suspected(host: Host) -> bool:
    return any(True for _ in suspicions(host))


def refused(host: Host) -> bool:
    return any(aftermath.works_on(host, host.call) for _ in suspicions(host))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aftermath, "time", SimpleNamespace(sleep=lambda seconds: None))


def test_an_honest_program_on_a_busy_host_was_refused_and_is_not() -> None:
    before = sum(suspected(Host(seed)) for seed in range(AUDITS))
    assert before >= AUDITS // 4, before
    assert sum(refused(Host(seed)) for seed in range(AUDITS)) <= AUDITS // 20


@pytest.mark.parametrize("busy", [0.0, 0.15])
def test_who_works_on_after_its_answers_is_refused_there_too(busy: float) -> None:
    assert all(refused(Host(seed, works=1.0, busy=busy)) for seed in range(AUDITS))
    assert sum(refused(Host(seed, works=0.6, busy=busy)) for seed in range(AUDITS)) >= 0.9 * AUDITS


def test_on_a_quiet_host_nothing_is_suspected() -> None:
    host = Host(1, busy=0.0)
    assert not suspected(host) and host.calls == CALLS


@pytest.mark.parametrize(
    ("more", "fewer", "expected"), [(0, 0, 1.0), (24, 0, 3.1e-14), (7, 0, 0.0047), (6, 0, 0.011), (12, 12, 0.61), (24, 12, 3.9e-5)]
)
def test_how_likely_a_difference_is(more: int, fewer: int, expected: float) -> None:
    assert aftermath.by_chance(more, fewer, 24) == pytest.approx(expected, rel=0.35)


def test_the_reason_says_of_how_many_calls() -> None:
    host: Any = Host(1, works=1.0, busy=0.0)
    assert "after 48 of 48 calls had answered" in aftermath.works_on(host, host.call) and host.calls == 96

"""An output of a timed call that is held on to: rings of buffers of any length that a timing goes round."""

from __future__ import annotations

import itertools
import math
import random
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.verifier import kept
from warpwright.verifier.kept import KeptOutput

CALLS, SHARE = 1200, 0.1
"""Of a timing, and of these that are looked at."""


class Ring:
    """A worker whose call number n answers n, in buffer n modulo `length`. Judge and worker in one."""

    def __init__(self, length: float, aliases: list[list[str]] | None = None) -> None:
        self.buffers: dict[int, int] = {}
        self.length, self.calls, self.held, self.keeps = length, 0, -1, 0
        self.facts = {"aliases": aliases or [[]]}
        self.memory, self.reads = SimpleNamespace(keep=lambda: None, export=self.export), True

    def call(self) -> None:
        self.calls += 1
        self.buffers[self.place()] = self.calls

    def place(self) -> int:
        return self.calls if math.isinf(self.length) else self.calls % int(self.length)

    def export(self, what: str, at: int | None = None) -> dict[str, Any]:
        return {"tree": {"tensor": {"shape": [4], "stride": [1], "dtype": "float32", "at": self.held if what == "kept" else self.place()}}}

    def digest(self, export: dict[str, Any]) -> int:
        return self.buffers[export["tree"]["tensor"]["at"]]

    def request(self, op: str) -> dict[str, Any]:
        self.held, self.keeps = self.place(), self.keeps + 1
        return {}


def found_after(ring: Ring, seed: int) -> float:
    """Return the call at which a timing finds the ring out."""
    look, dice = KeptOutput(ring, ring), random.Random(seed)  # type: ignore[arg-type]
    look._random = random.Random(seed + 1)
    for number in range(CALLS):
        ring.call()
        if (dice.random() < SHARE or number == CALLS - 1) and look.look(ring.export("outputs")).check:
            return number
    return math.inf


def rate(length: float, runs: int = 30) -> float:
    return sum(found_after(Ring(length), 2 * seed) < math.inf for seed in range(runs)) / runs


def test_rings_are_found_whatever_their_length_as_long_as_the_timing_goes_round() -> None:
    assert rate(17) == rate(CALLS // 10) == 1.0
    assert rate(CALLS // 4) > 0.9
    assert rate(CALLS // 2) > 0.5
    assert rate(CALLS + 1) == 0.0


def test_memory_of_its_own_for_each_is_never_refused_and_few_are_held() -> None:
    rings = [Ring(math.inf) for _ in range(10)]
    assert all(found_after(ring, seed) == math.inf for seed, ring in enumerate(rings))
    assert max(ring.keeps for ring in rings) < 20


def test_the_reason_says_what_happened() -> None:
    ring = Ring(1)
    look = KeptOutput(ring, ring)  # type: ignore[arg-type]
    ring.call()
    assert not look.look(ring.export("outputs")).check
    ring.call()
    seen = look.look(ring.export("outputs"))
    assert seen.check == "output_reuse" and "changed by a later one" in seen.reason


@pytest.mark.parametrize("where", ["weight", "input 0"])
def test_what_the_original_returns_of_its_own_may_change(where: str) -> None:
    ring = Ring(1, [[where]])
    assert found_after(ring, 0) == math.inf and not ring.keeps


def test_an_output_that_is_large_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LARGEST", 15)
    assert found_after(ring := Ring(1), 0) == math.inf and not ring.keeps
    monkeypatch.setattr(kept, "LARGEST", 16)
    assert found_after(Ring(1), 0) < math.inf


def test_each_look_is_as_likely_to_be_the_one_that_is_held_to_the_end() -> None:
    held = []
    for seed in range(200):
        ring = Ring(math.inf)
        look = KeptOutput(ring, ring)  # type: ignore[arg-type]
        look._random = random.Random(seed)
        for _ in range(10):
            ring.call()
            look.look(ring.export("outputs"))
        held.append(ring.held)
    counts = [held.count(call) for call in range(1, 11)]
    assert min(counts) > 5 and all(one < 45 for one in itertools.accumulate(counts, max))

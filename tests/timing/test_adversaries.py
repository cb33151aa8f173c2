"""What a program gains that works between its turns on a GPU: little by passes that are left out, and the rest is another check's (`slowed.py`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from adversaries import (
    ADVERSARIES,
    HONEST,
    Candidate,
    EndsPassesBefore,
    HidesItsSlowCalls,
    Machine,
    OutlastsQuickCores,
    Program,
    PutsWorkOff,
    SlowsOthers,
    gain,
    trial,
)

from warpwright.targets import slowed
from warpwright.timing.interleaved import rounds


@pytest.mark.parametrize("cores", [True, False])
@pytest.mark.parametrize("kind", [HidesItsSlowCalls, PutsWorkOff, EndsPassesBefore], ids=lambda kind: kind.__name__)
def test_no_program_chooses_which_of_its_passes_count(kind: type, cores: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "EXPOSED", math.inf)  # as of calls that differ by less
    assert gain(kind, ADVERSARIES[kind], cores=cores) < 1.03


def test_calls_are_not_left_out_for_their_length() -> None:
    found = [trial(OutlastsQuickCores, seed, seconds=200.0) for seed in range(10)]
    assert not any(one.verdict == "FASTER" or one.speedup > 0.5 for one in found)


def test_without_asking_what_it_used_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "EXPOSED", math.inf)
    assert gain(PutsWorkOff, ADVERSARIES[PutsWorkOff], cores=False, sound=Machine.sound) > 1.3


@pytest.mark.parametrize("kind", HONEST, ids=lambda kind: kind.__name__)
def test_honest_programs_are_worth_what_they_are(kind: type) -> None:
    found = [trial(kind, seed) for seed in range(20)]
    assert sum(not one.interval[0] <= HONEST[kind] <= one.interval[1] for one in found) <= 2
    assert not any(one.verdict in ("FASTER", "SLOWER") for one in found)


@pytest.mark.parametrize(("kind", "found"), [(SlowsOthers, True), (Candidate, False)], ids=lambda one: getattr(one, "__name__", ""))
def test_who_slows_others_down_is_found(kind: type, found: bool) -> None:
    machine = Machine(Random(5))

    @contextmanager
    def stopped() -> Iterator[None]:
        machine.kernels = 1.0
        yield

    longer = slowed.slowed(kind(machine), Program(machine), lambda: machine.go_on(2e-3), stopped, Random(6))
    assert (longer > 1.2) == found

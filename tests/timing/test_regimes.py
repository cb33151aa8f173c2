"""The rule that joins two ways of calling, on simulated clocks; and what records and reports keep of it."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count
from random import Random

import pytest
from fake_programs import Fake, Machine
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reports.test_explain import record
from warpwright.base import Measurement, Record, from_json, to_json
from warpwright.errors import UsageError
from warpwright.loop import best
from warpwright.reports import summary
from warpwright.timing import measure, regimes

Pair = tuple[float, float]


def timed(speedup: float, seed: int, call: float, seconds: float = 60.0) -> Measurement:
    """Time a program of a known speed-up beside one that takes `call` seconds."""
    machine, inputs = Machine(Random(seed)), count()
    new, eager = Fake("new", machine, call / speedup), Fake("eager", machine, call)
    return measure.compare(
        new, {"eager": eager}, lambda: next(inputs), seconds=seconds, floor_seconds=0.0, overhead_seconds=0.0, rng=Random(seed), clock=machine.clock
    )


def both(single: float, stream: float, chosen: str, seed: int = 0) -> Measurement:
    """Return what is said of a program with these speed-ups, in a task that is judged in `chosen`."""
    return regimes.joined({"single": timed(single, seed, 2e-3), "stream": timed(stream, seed + 1, 1e-3)}, chosen)


@pytest.mark.parametrize(
    ("single", "stream", "chosen", "verdict"),
    [
        (1.3, 1.3, "single", "FASTER"), (1.3, 1.3, "stream", "FASTER"),
        (1.0, 1.3, "stream", "FASTER"), (1.3, 1.0, "stream", "SAME"),
        (0.7, 1.3, "stream", "UNSURE"), (1.3, 0.7, "single", "UNSURE"),
        (1.3, 0.7, "stream", "SLOWER"), (0.7, 1.0, "stream", "SAME"),
    ],
)  # fmt: skip
def test_the_verdict_is_that_of_the_declared_regime_and_never_faster_where_the_other_is_slower(
    single: float, stream: float, chosen: str, verdict: str
) -> None:
    found = both(single, stream, chosen)
    own = found.regimes[chosen]
    assert found.verdict == verdict and found.conditions["regime"] == chosen
    assert (found.speedup, found.interval, found.candidate.median) == (own.speedup, own.interval, own.candidate)
    assert ("but slower in" in str(found.conditions.get("note", ""))) == (own.verdict != verdict)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.5, 2.0), st.floats(0.5, 2.0), st.sampled_from(regimes.REGIMES), st.integers(0, 1000))
def test_whatever_the_speeds_the_rule_holds(single: float, stream: float, chosen: str, seed: int) -> None:
    found = both(single, stream, chosen, seed)
    verdicts = {name: regime.verdict for name, regime in found.regimes.items()}
    assert set(verdicts) == set(regimes.REGIMES)
    if found.verdict == "FASTER":
        assert verdicts[chosen] == "FASTER" and "SLOWER" not in verdicts.values()
        assert all(regime.speedup >= regimes.LEAST for regime in found.regimes.values() if regime.verdict == "UNSURE")
    else:
        behind = any(regime.verdict == "SLOWER" or regime.speedup < regimes.LEAST for regime in found.regimes.values())
        assert found.verdict == verdicts[chosen] or (found.verdict == "UNSURE" and behind)
    assert from_json(Measurement, to_json(found)) == found


@pytest.mark.parametrize(("speedup", "verdict"), [(0.97, "UNSURE"), (0.99, "FASTER")])
def test_what_seems_slower_in_the_other_regime_without_a_decision_is_not_faster(speedup: float, verdict: str) -> None:
    other = replace(timed(1.3, 0, 2e-3), speedup=speedup, interval=(0.9, 1.1), verdict="UNSURE")
    assert regimes.joined({"single": other, "stream": timed(1.3, 1, 1e-3)}, "stream").verdict == verdict


def kept(single: float, stream: float, name: str) -> Record:
    """A baseline that stands so among the others, in a task that is judged in streams."""
    stands = {"single": replace(timed(1.0, 0, 2e-3), speedup=single), "stream": replace(timed(1.0, 1, 1e-3), speedup=stream)}
    return replace(record(stream, proposer=f"baseline:{name}"), measurement=regimes.joined(stands, "stream"))


@pytest.mark.parametrize(
    ("eager", "compiled", "name"),
    [
        ((1.0, 0.998), (0.962, 1.0), "eager"), ((1.0, 0.82), (0.87, 1.0), "compile"), ((1.0, 0.999), (0.99, 1.0), "compile"),
        ((1.0, 1.0), (0.9, 0.9), "eager"), ((0.97, 0.99), (0.9, 1.0), "eager"),
    ],
)  # fmt: skip
def test_the_baseline_that_is_kept_gives_little_away_in_either_regime(eager: Pair, compiled: Pair, name: str) -> None:
    found = best([kept(*eager, "eager"), kept(*compiled, "compile")])
    assert found is not None and found.candidate.proposer == f"baseline:{name}"


def test_a_table_names_what_is_below_in_either_regime() -> None:
    line = {"task": "a", "status": "ok", "speedup": {"best": 1.0}, "regimes": {"single": {"speedup": 0.87}, "stream": {"speedup": 1.0}}}
    assert summary.below(line) == ["a (single, 0.87x)"] and summary.below(line | {"speedup": {"best": 0.9}}) == ["a (0.90x)"]
    assert summary.below(line | {"status": "wrong"}) == []


def test_a_regime_that_a_task_does_not_have_leaves_the_verdict_to_the_other() -> None:
    found = regimes.joined({"single": timed(1.3, 0, 2e-3)}, "stream", {"stream": "it depends on the calls before"})
    assert found.verdict == "FASTER" and found.conditions["regime"] == "single" and set(found.regimes) == {"single"}
    assert found.conditions["stream_left_out"] == "it depends on the calls before"


@pytest.mark.parametrize(("asked", "regime"), [("", "single"), ("stream", "stream"), ("single", "single")])
def test_a_task_is_judged_in_single_calls_unless_it_says_otherwise(asked: str, regime: str) -> None:
    assert regimes.declared(asked) == regime


def test_a_regime_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(UsageError, match="saw 'device'"):
        regimes.declared("device")


def test_a_record_from_before_there_were_several_is_read() -> None:
    data = to_json(timed(1.3, 0, 2e-3))
    del data["regimes"]
    old = from_json(Measurement, data)
    assert old.regimes == {} and math.isclose(old.speedup, data["speedup"])

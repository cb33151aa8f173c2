"""Two candidates beside one another: both regimes, and no FASTER where the first is slower in the other, in one run or in two."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpwright.base import Build, Candidate, Comparison, Measurement, Record, Source, Task, Timing, Verdict
from warpwright.server.lane_process import apart
from warpwright.targets import pair
from warpwright.timing import regimes

SPEEDUP = {"FASTER": 1.5, "SLOWER": 0.6, "SAME": 1.0, "UNSURE": 1.1}
VERDICTS = st.sampled_from(get_args(Comparison))


def timing(seconds: float) -> Timing:
    return Timing((seconds,) * 5, seconds, 0.99 * seconds, 1.01 * seconds)


def measured(verdict: Any, baseline: str = "second", call: float = 1e-3) -> Measurement:
    speedup = SPEEDUP[verdict]
    interval = (0.7 * speedup, 1.3 * speedup) if verdict == "UNSURE" else (0.99 * speedup, 1.01 * speedup)
    timings = {baseline: timing(call * speedup)}
    return Measurement("time of one call", "s", "lower", timing(call), timings, baseline, speedup, interval, verdict)


def compared(single: str, stream: str, chosen: str, both: bool, calls: int = 8) -> Measurement | None:
    worker: Any = SimpleNamespace(device="cpu", cpu_clock=lambda: 0.0, calm_seconds=0.0)
    trusted: Any = SimpleNamespace(judge=None, calls=calls, regime=chosen, both=both, left_out={}, overhead=0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair, "_timed", lambda judge, programs, *_: measured(stream if hasattr(programs[0], "calls") else single))
        return pair.compare(trusted, worker, worker, 1.0, Random(1))


@given(VERDICTS, VERDICTS, st.sampled_from(regimes.REGIMES), st.booleans())
def test_the_rule_holds_for_a_pair(single: str, stream: str, chosen: str, both: bool) -> None:
    found = compared(single, stream, chosen, both)
    assert found is not None and found.conditions["regime"] == chosen
    said = {name: regime.verdict for name, regime in found.regimes.items()}
    if both or said[chosen] in ("FASTER", "SLOWER"):
        assert said == {"single": single, "stream": stream}
    else:
        assert set(said) == {chosen} and any(name.endswith("_left_out") for name in found.conditions)
    assert found.verdict != "FASTER" or (said[chosen] == "FASTER" and "SLOWER" not in said.values())


def test_a_pair_whose_task_has_no_stream_is_timed_in_single_calls() -> None:
    found = compared("FASTER", "SLOWER", "stream", both=True, calls=0)
    assert found is not None and found.verdict == "FASTER" and set(found.regimes) == {"single"}


def record(single: Any, stream: Any, chosen: str) -> Record:
    ways = {"single": measured(single, "eager"), "stream": measured(stream, "eager", 1e-4)}
    task = Task("task", "/task.py")
    found = Record(task, Candidate(Source("python", (("a.py", ""),)), "cpu"), "cpu", "ok", Verdict(True, "ok"), build=Build(True))
    return replace(found, measurement=regimes.joined(ways, chosen))


@given(VERDICTS, VERDICTS, VERDICTS, VERDICTS, st.sampled_from(regimes.REGIMES))
def test_the_rule_holds_for_two_runs(single: str, stream: str, other_single: str, other_stream: str, chosen: str) -> None:
    one, other = record(single, stream, chosen), record(other_single, other_stream, chosen)
    assert one.measurement is not None and other.measurement is not None
    pairs = zip((3.0, 0.2), other.measurement.regimes.items(), strict=True)
    slower = {name: replace(way, candidate=way.candidate * factor) for factor, (name, way) in pairs}
    found = apart(one, replace(other, measurement=replace(other.measurement, regimes=slower)))
    assert found is not None and set(found.regimes) == {"single", "stream"} and found.conditions["regime"] == chosen
    assert found.regimes["stream"].verdict == "SLOWER" and found.verdict != "FASTER"
    assert all(way.interval[0] <= way.speedup <= way.interval[1] for way in found.regimes.values())

"""What is kept for baselines from one run to the next, which candidates get none of; and the regimes that a program is timed in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from fake_programs import Fake, Machine

from warpwright import run
from warpwright.base import Build, Candidate, Source, Verdict
from warpwright.errors import TrustedFailed
from warpwright.targets.trust import building, trusted
from warpwright.timing.overhead import Overhead
from warpwright.workers import environment, sandbox
from warpwright.workers.limits import Limits


def test_a_build_that_a_cache_made_short_is_remembered_as_long(tmp_path: Path) -> None:
    bench: Any = SimpleNamespace(folder=tmp_path)
    slow, other = (Candidate(Source("python", (("a.py", text),)), "cpu") for text in ("1", "2"))
    assert [building._longest_build(bench, slow, seconds) for seconds in (15.0, 0.5, 20.0, 1.0)] == [15.0, 15.0, 20.0, 20.0]
    assert building._longest_build(bench, other, 0.5) == 0.5


def test_a_folder_that_keeps_nothing_is_no_failure() -> None:
    bench: Any = SimpleNamespace(folder=Path("/proc/nothing"))
    assert building._longest_build(bench, Candidate(Source("python", (("a.py", ""),)), "cpu"), 2.0) == 2.0


@pytest.mark.parametrize(("is_trusted", "apart", "kept"), [(True, True, True), (True, False, False), (False, True, False), (False, False, False)])
def test_only_trusted_workers_beside_other_users_share_compile_caches(
    is_trusted: bool, apart: bool, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path / "cache"))
    for name in environment.SHARED_CACHES:
        monkeypatch.delenv(name, raising=False)
    found = environment.of_worker("/work-folder", is_trusted, apart)
    assert [value.startswith(str(tmp_path / "cache")) for name, value in found.items() if name in environment.SHARED_CACHES] == [kept] * 2
    assert all(value.startswith("/work-folder") for name, value in found.items() if name in ("HOME", "TMPDIR", "CUDA_CACHE_PATH"))
    own = {True: str(tmp_path / "cache"), False: "/work-folder/cache/warpwright"}
    assert found.get("WARPWRIGHT_CACHE") == (None if is_trusted and not apart else own[kept])


@pytest.mark.parametrize(("isolation", "shared"), [("auto", True), ("limits", False), ("none", False)])
def test_where_candidates_have_no_users_of_their_own_nothing_is_shared(isolation: str, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may change users, but does so only if the isolation asked for has it."""
    orders: list[dict[str, Any]] = []
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.setattr(sandbox.socket, "send_fds", lambda _, data, fds: orders.append(json.loads(data[0])))
    worker: Any = object.__new__(sandbox.Worker)
    vars(worker).update(role="judge", device="cuda", limits=Limits(isolation=isolation), folder="/work-folder", exchange="/exchange", _unwrapped="")
    worker._start(SimpleNamespace(can_change_user=True, socket=None), None, False)
    assert orders[0]["environment"]["TRITON_CACHE_DIR"].startswith("/work-folder") is not shared
    worker.guard._socket.close()
    for handle in (worker._request, worker._reply):
        os.close(handle)


def test_a_cache_whose_path_has_a_space_is_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.compile gives its C++ compiler paths without quotes: no baseline would be built."""
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path / "my cache"))
    for name in environment.SHARED_CACHES:
        monkeypatch.delenv(name, raising=False)
    found = environment.of_worker("/work-folder", trusted=True, apart=True)
    assert all(found[name].startswith("/work-folder") for name in environment.SHARED_CACHES)
    assert found["WARPWRIGHT_CACHE"] == str(tmp_path / "my cache")  # ours does


@pytest.mark.parametrize("is_trusted", [True, False])
def test_only_trusted_workers_compile_in_several_processes(is_trusted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.COMPILE_THREADS, "8")
    assert environment.of_worker("/work-folder", is_trusted, True).get(environment.COMPILE_THREADS) == ("8" if is_trusted else None)


def of_speeds(single: float, stream: float, both: bool) -> Any:
    """Compare a program of these speed-ups over eager, on simulated clocks, as a task's trusted processes do."""
    machine, inputs = Machine(Random(1)), count()

    class Eager(trusted.Baseline):
        def turns(self, calls: int) -> Any:
            return Fake("eager", machine, 1e-3)

    eager: Any = Fake("eager", machine, 1e-3)
    verdict = Verdict(True, "ok")
    baseline = Eager(Candidate(Source("python", (("a.py", ""),)), "cpu"), Build(True), verdict, eager)
    judge: Any = SimpleNamespace(fresh=lambda: next(inputs), worker=SimpleNamespace(alive=True), device="cpu")
    made = trusted.Trusted(judge, {"eager": baseline}, ready=True, both=both, calls=5)
    programs = (Fake("new", machine, 1e-3 / speedup) for speedup in (single, stream))
    return made.compare(*programs, 0.5, Random(1), check_share=0.0)


@pytest.mark.parametrize(
    ("single", "stream", "both", "timed", "verdict"),
    [
        (1.0, 2.0, False, {"single"}, "SAME"),
        (0.5, 2.0, False, {"single"}, "SLOWER"),
        (2.0, 2.0, False, {"single", "stream"}, "FASTER"),
        (2.0, 0.5, False, {"single", "stream"}, "UNSURE"),
        (1.0, 2.0, True, {"single", "stream"}, "SAME"),
    ],
)
def test_what_is_faster_on_a_cpu_is_timed_in_a_stream_too(single: float, stream: float, both: bool, timed: set[str], verdict: str) -> None:
    found = of_speeds(single, stream, both)
    assert (set(found.regimes), found.verdict) == (timed, verdict)
    assert ("stream_left_out" in found.conditions) == ("stream" not in timed)


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("dies_after", [1, 25])
def test_a_second_process_that_fails_while_it_is_timed_is_done_without(dies_after: int, dies: bool) -> None:
    """One that has lost its device, or finds no memory, lives on and fails again."""
    machine, inputs = Machine(Random(1)), count()
    worker: Any = SimpleNamespace(alive=True)
    worker.close = lambda: setattr(worker, "alive", False)

    class Second(Fake):
        entry = "eager"

        def go(self) -> float:
            if self.calls >= dies_after:
                worker.alive = not dies
                raise TrustedFailed("it ended, or its memory did")
            return super().go()

    eager: Any = Fake("eager", machine, 1e-3)
    second: Any = Second("eager", machine, 1e-3)
    second.worker = worker
    baseline = trusted.Baseline(Candidate(Source("python", (("a.py", ""),)), "cpu"), Build(True), Verdict(True, "ok"), eager)
    eager.worker = SimpleNamespace(alive=True)
    judge: Any = SimpleNamespace(fresh=lambda: next(inputs), worker=SimpleNamespace(alive=True), device="cpu")
    made = trusted.Trusted(judge, {"eager": baseline}, ready=True, second={"eager": second})
    found = made.compare(Fake("new", machine, 0.5e-3), None, 0.5, Random(1), check_share=0.0)
    assert found.verdict == "FASTER" and set(found.baselines) == {"eager"} and "second_process" not in found.conditions
    assert not worker.alive and not made.second, "a small speed-up to come has one begun anew"


def test_the_regime_of_the_settings_is_that_of_the_measuring() -> None:
    assert run.measuring(run.Settings(regime="stream")).regime == "stream" and run.measuring(run.Settings()).regime == ""
    assert run.Settings().key("machine") != run.Settings(regime="stream").key("machine")


def test_the_parent_that_evaluates_imports_no_torch() -> None:
    text = "import sys, warpwright.cli.command, warpwright.targets.local, warpwright.server\nprint({'torch', 'numpy'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=100).stdout == "set()\n"


@pytest.mark.parametrize(("seconds", "calls"), [(60e-6, 167), (1e-3, 42)])
def test_a_turn_has_as_many_calls_as_fill_it_back_to_back(seconds: float, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the single time, of which most is a wait, it would be a quarter of that; it has never fewer than by that."""
    monkeypatch.setattr(building.streamed, "calls_of", lambda judge, inputs, taken, device: (round(10e-3 / taken), ""))
    made: list[float] = []
    times = iter([5 * seconds, seconds])  # the first turn of a form may be slow
    program = SimpleNamespace(prepare=lambda inputs, place: made.append(place), go=lambda: next(times))
    known: Any = SimpleNamespace(calls=42, overhead=Overhead.constant(0.0), judge=SimpleNamespace(fresh=lambda: None), timed=lambda regime: [program])
    assert building._filled(SimpleNamespace(place="cuda:0"), known, Random(1)) == calls and len(made) == 2  # type: ignore[arg-type]

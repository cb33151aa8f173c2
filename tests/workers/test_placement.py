"""Programs of a pass start on one core, and may use every core in the call."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from timed_process import TimedProcess

from warpwright.verifier import timed
from warpwright.workers import placement
from warpwright.workers.procfs import threads_of

TWO_THREADS = """
import sys, threading
threading.Thread(target=sys.stdin.read, daemon=True).start()
print("up", flush=True)
threading.Event().wait()
"""


def test_a_place_is_one_of_the_cores_that_may_be_used() -> None:
    usable = placement.cores()
    assert [placement.core(number / len(usable)) for number in range(len(usable))] == usable
    assert placement.core(0.999999) == usable[-1]


@pytest.mark.parametrize("place", [0.0, 0.999])
def test_the_main_thread_goes_to_the_place_and_the_others_keep_off_it(place: float, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", TWO_THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"up\n"
        (other,) = threads_of(child.pid) - {child.pid}
        usable, chosen = set(placement.cores()), {placement.core(place)}
        placement.take(child.pid, place)
        assert os.sched_getaffinity(child.pid) == chosen
        assert os.sched_getaffinity(other) == (usable - chosen or chosen)
        placement.release(child.pid)
        assert [os.sched_getaffinity(thread) for thread in (child.pid, other)] == [usable, usable - chosen or chosen]
        monkeypatch.setattr(placement, "TEAMS", 0)
        placement.release(child.pid)
        assert os.sched_getaffinity(other) == usable, "more threads than a team on the other cores go where they like"
        with placement.started_at(child.pid, place):
            assert os.sched_getaffinity(child.pid) == chosen
        assert os.sched_getaffinity(child.pid) == usable
        child.kill()


def test_who_has_not_the_turn_keeps_off_the_core_of_the_pass() -> None:
    with subprocess.Popen([sys.executable, "-c", TWO_THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"up\n"
        usable, chosen = set(placement.cores()), placement.core(0.0)
        for thread in threads_of(child.pid):
            os.sched_setaffinity(thread, {chosen})
        placement.keep_off(child.pid, 0.0)
        left = usable - placement.siblings(chosen) or usable - {chosen} or usable
        assert [os.sched_getaffinity(thread) for thread in threads_of(child.pid)] == [left] * 2
        child.kill()


def test_on_a_gpu_other_candidates_are_kept_off_the_core_of_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(timed.placement, "QuickCores", AnyCore)
    monkeypatch.setattr(timed.placement, "started_at", lambda pid, place: nullcontext())
    monkeypatch.setattr(timed.TimedProgram, "_lay_out", lambda *_: None)
    kept: list[tuple[int, float]] = []
    monkeypatch.setattr(timed.placement, "keep_off", lambda pid, place: kept.append((pid, place)))
    workers: list[Any] = [
        SimpleNamespace(device=device, role=role, pid=pid, reads=False)
        for pid, (device, role) in enumerate(
            [("cuda:0", "baseline"), ("cuda:0", "candidate"), ("cuda:0", "judge"), ("cuda:1", "candidate"), ("cuda:0", "candidate")]
        )
    ]
    monkeypatch.setattr(timed.device_yield, "living", workers)
    for worker, others in ((workers[0], [1, 4]), (workers[1], [4]), (SimpleNamespace(device="cpu", role="baseline", pid=9, reads=False), [])):
        timed.places.cache_clear()
        kept.clear()
        timed.TimedProgram(SimpleNamespace(), worker, "entry").prepare(SimpleNamespace(case=None), 0.25)  # type: ignore[arg-type]
        assert kept == [(pid, 0.25) for pid in others]


def test_whoever_wakes_a_program_stays_off_its_core() -> None:
    usable = os.sched_getaffinity(0)
    others = usable - {placement.core(0.0)} or usable
    with placement.aside(0.0):
        assert os.sched_getaffinity(0) == others
    assert os.sched_getaffinity(0) == usable


def test_a_core_has_itself_among_its_siblings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert 0 in placement.siblings(0)
    monkeypatch.setattr(placement, "Path", lambda _: tmp_path / "list")
    told = {}
    for text in ("1,5\n", "4-5", "x", ""):
        (tmp_path / "list").write_text(text)
        told[text] = placement.siblings.__wrapped__(5)
    assert told == {"1,5\n": {1, 5}, "4-5": {4, 5}, "x": {5}, "": {5}}


def test_where_one_may_not_be_moved_nobody_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: int, cores: object) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(placement, "_refused", False)
    with subprocess.Popen([sys.executable, "-c", TWO_THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as mine:
        with monkeypatch.context() as patch:
            patch.setattr(os, "sched_setaffinity", refuse)
            placement.take(1, 0.0)
        before = os.sched_getaffinity(mine.pid)
        placement.take(mine.pid, 0.0)
        assert os.sched_getaffinity(mine.pid) == before
        mine.kill()


def test_a_process_that_has_ended_is_left_alone() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(60)
    placement.take(child.pid, 0.0)
    placement.release(child.pid)


def test_the_timed_process_goes_where_it_is_told() -> None:
    with TimedProcess("exponential", rows=2) as program:
        program.prepare(1, 0.0)
        assert os.sched_getaffinity(program.process.pid) == {placement.cores()[0]}


def test_programs_on_a_gpu_that_wait_busily_are_put_on_the_core_of_their_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    worker: Any = SimpleNamespace(device="cuda:0", pid=7, reads=False, go=lambda spin: 1e-5)
    seen: list[tuple[str, float]] = []
    monkeypatch.setattr(timed.placement, "started_at", lambda pid, place: seen.append(("started", place)) or nullcontext())
    monkeypatch.setattr(timed.placement, "aside", lambda place, quiet=False: seen.append(("aside", place)) or nullcontext())
    monkeypatch.setattr(timed.TimedProgram, "_lay_out", lambda *_: None)
    monkeypatch.setattr(timed, "places", lambda device: timed.Places(AnyCore()))  # type: ignore[arg-type]
    for count, expected in ((16, [("started", 0.25), ("aside", 0.25)]), (2, [])):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        program = timed.TimedProgram(SimpleNamespace(), worker, "candidate")  # type: ignore[arg-type]
        program.prepare(SimpleNamespace(case=None), 0.25)  # type: ignore[arg-type]
        program.go()
        assert seen == expected
        seen.clear()


class AnyCore:
    """All cores are as quick as each other, but that at `slow` at the looks of these numbers."""

    def __init__(self, *slow: int) -> None:
        self.slow, self.looks = slow, 0

    def place(self, drawn: float) -> float:
        return drawn

    def still(self, place: float) -> bool:
        self.looks += 1
        return self.looks not in self.slow


def test_on_a_gpu_many_passes_share_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed, "SAME_PLACE", 3)
    drawn = [0.1, 0.1, 0.2, 0.2, 0.3, 0.3, 0.4, 0.4, 0.5]
    places = timed.Places(AnyCore())  # type: ignore[arg-type]
    assert [places.kept(place) for place in drawn] == [0.1] * 6 + [0.4] * 3
    places = timed.Places(AnyCore(1))  # type: ignore[arg-type]
    assert [places.kept(place) for place in drawn] == [0.1] * 2 + [0.2] * 6 + [0.5], "a core that somebody else took is left"


def test_no_candidate_is_on_the_core_while_it_is_asked_whether_a_pass_was_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that works on there after a slow call of its own would have that call left out."""
    seen: list[Any] = []
    worked = [0.0]
    kinds = [("candidate", "cuda:0"), ("candidate", "cuda:0"), ("baseline", "cuda:0"), ("candidate", "cuda:1")]
    workers = [SimpleNamespace(role=role, device=device, pid=pid, worked=lambda: worked[0]) for pid, (role, device) in enumerate(kinds, 7)]
    places = timed.Places(SimpleNamespace(place=lambda drawn: drawn, still=lambda place: seen.append("asked") or place == 0.25))  # type: ignore[arg-type]
    places.kept(0.25)
    monkeypatch.setattr(timed.device_yield, "living", workers)
    monkeypatch.setattr(timed.placement, "keep_off", lambda pid, place: seen.append((pid, place)))
    monkeypatch.setattr(timed, "places", lambda device: places)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    sound = timed.sound("cuda:0")
    assert sound is not None and sound()
    assert sorted(seen[:-1]) == [(7, 0.25), (8, 0.25)] and seen[-1] == "asked"
    places._place = 0.5
    assert not sound()
    worked[0] = 2 * timed.RESTS
    assert sound(), "a candidate that works while others are timed chooses nothing by it"
    assert timed.sound("cpu") is None


def test_cores_that_somebody_else_slows_down_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {3: 1.0, 5: 1.3, 6: 1.1, 9: 2.0}
    monkeypatch.setattr(placement, "cores", lambda: list(taken))
    monkeypatch.setattr(placement, "seconds_on", lambda chosen: taken[chosen])
    monkeypatch.setattr(placement, "_move", lambda thread, wanted: None)
    quick = placement.QuickCores()
    assert {placement.core(quick.place(drawn)) for drawn in (0.0, 0.2, 0.49, 0.5, 0.99)} == {3, 6}
    assert quick.still(quick.place(0.0))
    taken[3] = 1.2
    assert not quick.still(0.0), "beside what the quickest one took"
    taken |= {6: 1.5}
    assert placement.core(quick.place(0.9)) == 5, "where all are slower now, the quickest of these count"


def test_a_loop_of_ours_is_timed_on_each_core_and_this_thread_is_free_again() -> None:
    before = os.sched_getaffinity(0)
    quick = placement.QuickCores()
    assert placement.core(quick.place(0.5)) in before and os.sched_getaffinity(0) == before
    quick.still(0.0)
    assert os.sched_getaffinity(0) == before


def test_each_gpu_has_places_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two evaluators of one process, on a GPU each, take turns."""
    monkeypatch.setattr(timed, "SAME_PLACE", 2)
    monkeypatch.setattr(timed.placement, "QuickCores", AnyCore)
    timed.places.cache_clear()
    drawn = ((0.1, "cuda:0"), (0.6, "cuda:1"), (0.2, "cuda:0"), (0.7, "cuda:1"), (0.3, "cuda:0"))
    assert [timed.places(device).kept(place) for place, device in drawn] == [0.1, 0.6, 0.1, 0.6, 0.3]


def test_a_held_call_is_on_the_inputs_at_hand_on_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(timed.TimedProgram, "_lay_out", lambda *_: None)
    monkeypatch.setattr(timed.TimedProgram, "_turns", {})
    laid: list[tuple[str | None, Any]] = []
    monkeypatch.setattr(timed, "prepare_call", lambda worker, entry, inputs: laid.append((entry, inputs)))
    programs = []
    for device in ("cuda:0", "cuda:1"):
        worker: Any = SimpleNamespace(device=device, pid=7, reads=False, go=lambda hold: 1e-5)
        programs.append(timed.TimedProgram(SimpleNamespace(), worker, f"program on {device}"))  # type: ignore[arg-type]
    first, second = (SimpleNamespace(case=None) for _ in range(2))
    programs[0]._once_held(True)
    programs[0].prepare(first, 0.25)  # type: ignore[arg-type]
    programs[1].prepare(second, 0.25)  # type: ignore[arg-type]
    programs[0]._once_held(True)
    programs[0]._once_held(False)
    assert laid == [(None, None), ("program on cuda:0", first), (None, None)]


def test_a_core_that_was_slow_for_one_look_is_still_quick() -> None:
    seconds = iter([1.0, 1.0, 2.0, 1.05, 2.0, 2.0])
    quick = placement.QuickCores(lambda core: next(seconds), lasting=True)
    quick._best = 1.0
    assert quick.still(0.0) and quick.still(0.0) and quick.still(0.0) and not quick.still(0.0)


def sixteen_cores(monkeypatch: pytest.MonkeyPatch, count: int = 16) -> dict[int, set[int]]:
    moved: dict[int, set[int]] = {}
    monkeypatch.setattr(placement, "cores", lambda: list(range(count)))
    monkeypatch.setattr(placement, "siblings", lambda core: frozenset({core, core ^ 1}))
    monkeypatch.setattr(placement, "_move", lambda thread, wanted: moved.__setitem__(thread, set(wanted)))
    return moved


def test_workers_leave_some_cores_to_those_who_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = sixteen_cores(monkeypatch)
    assert placement.kept_free() == {12, 13, 14, 15} and placement.others() == list(range(12))
    looked: list[int] = []
    quick = placement.QuickCores(lambda core: looked.append(core) or (2.0 if core == 13 else 1.0))  # type: ignore[func-returns-value]
    assert {placement.core(quick.place(drawn)) for drawn in (0.0, 0.4, 0.9)} == {12, 14, 15} and set(looked) == {12, 13, 14, 15}
    with placement.aside((12 + 0.5) / 16, quiet=True):
        assert moved[0] == {14, 15}, "the one who reads the clock is not where others compute, nor beside who is timed"
    with placement.aside((12 + 0.5) / 16):
        assert moved[0] == set(range(16)) - {12, 13}


def test_where_cores_are_few_all_are_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = sixteen_cores(monkeypatch, 8)
    assert not placement.kept_free() and placement.others() == list(range(8))
    placement.send_back(os.getpid())
    assert not moved
    with placement.aside(0.0, quiet=True):
        assert moved[0] == set(range(2, 8))


def test_who_was_timed_leaves_the_cores_for_that_again(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = sixteen_cores(monkeypatch)
    monkeypatch.setattr(placement, "threads_of", lambda pid: [pid, pid + 1])
    workers = (("cuda:0", True, 70), ("cuda:0", False, 80), ("cpu", True, 90))
    living = [SimpleNamespace(device=device, alive=alive, pid=pid) for device, alive, pid in workers]
    monkeypatch.setattr(timed.device_yield, "living", living)
    timed.sent_back("cpu")
    assert not moved
    timed.sent_back("cuda:0")
    assert moved == {70: set(range(12)), 71: set(range(12))}
    monkeypatch.setattr(placement, "_apart", False)
    placement.leave_cores_free()
    quick = placement.QuickCores(lambda core: 1.0)
    quick.still(quick.place(0.5))
    with placement.aside((12 + 0.5) / 16, quiet=True):
        assert moved[0] == {14, 15}
    assert moved[0] == set(range(12)), "the one who reads the clock, too"


def test_whole_physical_cores_are_kept_free(monkeypatch: pytest.MonkeyPatch) -> None:
    sixteen_cores(monkeypatch)
    monkeypatch.setattr(placement, "siblings", lambda core: frozenset({core, (core + 8) % 16}))
    assert placement.kept_free() == {15, 7, 14, 6}

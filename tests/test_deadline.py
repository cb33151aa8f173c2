"""Wall-time budgets: work is stopped in the middle, wherever it is; a budget that is over before it began is over at once."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from warpwright import deadline
from warpwright.base import Budget
from warpwright.deadline import Deadline, out_of_time, process_start
from warpwright.errors import OutOfTime, UsageError

WAITING = deadline.waiting


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests below are about when work is stopped: other processes of the machine do not bring that forward."""
    monkeypatch.setattr(deadline, "waiting", lambda: 1.0)


def busy() -> None:
    while True:
        sum(range(1000))


def waits_for_a_process() -> None:
    subprocess.run(["sleep", "30"], check=True)


def swallows_exceptions() -> None:
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            continue


@pytest.mark.parametrize("work", [busy, waits_for_a_process, swallows_exceptions, lambda: time.sleep(30)])
def test_work_is_stopped(work: Callable[[], None]) -> None:
    began = time.monotonic()
    with pytest.raises(OutOfTime), Deadline(0.5, began).enforced():
        work()
    assert 0.4 < time.monotonic() - began < 15.0  # what is stopped would take 30 s, or never end


def test_in_another_thread_too() -> None:
    ended: list[bool] = []

    def work() -> None:
        try:
            with Deadline(0.3, time.monotonic()).enforced():
                busy()
        except OutOfTime:
            ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert ended == [True]


def test_what_is_done_in_time_is_left_alone() -> None:
    for _ in range(20):
        with Deadline(60.0, time.monotonic()).enforced():
            pass
    try:
        with Deadline(0.05, time.monotonic()).enforced():
            time.sleep(0.04)
    except OutOfTime:
        pass
    time.sleep(0.1)  # nothing is raised here


def test_a_budget_that_is_over_already() -> None:
    for _ in range(20):
        with pytest.raises(OutOfTime), Deadline(1.0, time.monotonic() - 5).enforced():
            busy()
    time.sleep(0.05)


def test_imports_are_not_cut_in_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(0.6)\nready = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", sys.modules.get("torch", sys))
    with pytest.raises(OutOfTime), Deadline(0.3, time.monotonic()).enforced():
        import slow_to_import  # type: ignore[import-not-found]

        busy()
    assert slow_to_import.ready


@pytest.mark.parametrize("kind", ["main", "another"])
def test_what_fails_after_an_import_was_cut_in_two_is_the_deadlines(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeps = "import time\ntry:\n    while True: time.sleep(0.01)\nexcept BaseException as error:\n    pass\n"
    (tmp_path / f"kept_to_itself_{kind}.py").write_text(f"{keeps}raise AttributeError('what a module before should have defined')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    caught: list[BaseException] = []

    def work() -> None:
        try:
            with Deadline(0.3, time.monotonic()).enforced():
                importlib.import_module(f"kept_to_itself_{kind}")
        except BaseException as error:
            caught.append(error)

    if kind == "main":
        work()
    else:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(20)
    [error] = caught
    assert isinstance(error, OutOfTime) and isinstance(error.__cause__, AttributeError)
    with pytest.raises(AttributeError), Deadline(60.0, time.monotonic()).enforced():
        raise AttributeError("of ours")


def test_a_long_import_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = tmp_path / "go_on"
    waits = f"end = time.monotonic() + 120\nwhile not os.path.exists({str(go_on)!r}) and time.monotonic() < end: time.sleep(0.01)\n"
    (tmp_path / "slower_to_import.py").write_text(f"import os, time\n{waits}ready = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", sys.modules.get("torch", sys))
    with pytest.raises(OutOfTime), Deadline(0.3, time.monotonic()).enforced():
        deadline.load("slower_to_import")
    assert not hasattr(sys.modules.get("slower_to_import"), "ready")
    go_on.touch()
    deadline.load("slower_to_import", "no_such_module_at_all")
    assert sys.modules["slower_to_import"].ready  # the import that nobody waited for went on


def test_what_tidies_up_is_not_stopped_at_once() -> None:
    with pytest.raises(OutOfTime), Deadline(0.2, time.monotonic()).enforced():
        try:
            time.sleep(30)
        finally:
            time.sleep(0.5)
            tidied = time.monotonic()
    assert tidied


def test_an_error_while_tidying_up_is_told_apart() -> None:
    def tidy() -> None:
        try:
            raise OutOfTime
        finally:
            raise BufferError("cannot close")

    with pytest.raises(BufferError) as caught:
        tidy()
    assert out_of_time(caught.value) and not out_of_time(ValueError())


def test_the_plan_leaves_room_for_the_result() -> None:
    deadline = Deadline(10.0, time.monotonic())
    assert 5.0 < deadline.left < 9.5 and 5.0 < Deadline(10.0, time.monotonic(), kept=1.0).left < 8.5  # the machine may be busy
    assert Deadline(10.0, time.monotonic() - 20).left == 0.0 and Deadline.of(None) is None


def test_the_start_of_the_process() -> None:
    code = "import time; time.sleep(0.3); from warpwright.deadline import process_start; print(time.monotonic() - process_start())"
    age = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout)
    assert 0.3 <= age < 60
    assert process_start() <= time.monotonic()


READ = [("60s", 60, None), ("5m", 300, None), ("1 h,3 proposals", 3600, 3), ("1 proposal", None, 1)]


@pytest.mark.parametrize(("text", "seconds", "proposals"), READ)
def test_budgets_are_read(text: str, seconds: float | None, proposals: int | None) -> None:
    assert Budget.parse(text) == Budget(seconds, proposals)


def test_a_budget_may_end_with_success() -> None:
    assert Budget.parse("60s, until faster") == Budget(60, None, until_faster=True)
    assert Budget.parse("until  faster,2 proposals") == Budget(None, 2, until_faster=True)


@pytest.mark.parametrize("text", ["until", "faster", "60s, until slower"])
def test_half_of_that_is_no_budget(text: str) -> None:
    with pytest.raises(UsageError):
        Budget.parse(text)


@pytest.mark.parametrize(("text", "remedy"), [("10", "10s for seconds or '10 proposals'"), ("soon", "60s"), ("1.5 proposals", "40 proposals")])
def test_a_budget_without_a_unit_asks_which(text: str, remedy: str) -> None:
    with pytest.raises(UsageError) as error:
        Budget.parse(text)
    assert remedy in error.value.hint


def test_a_process_that_waits_for_a_core_keeps_more_time_for_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    alone, crowded, starved = [], [], []
    for waited, found in ((1.0, alone), (4.0, crowded), (100.0, starved)):
        monkeypatch.setattr(deadline, "waiting", lambda waited=waited: waited)
        found += [seconds - (Deadline(seconds, 0.0).at) for seconds in (5.0, 20.0, 600.0)]
    assert alone == pytest.approx([0.4, 1.0, 1.0]) and crowded == pytest.approx([1.6, 4.0, 4.0])
    assert starved[:2] == pytest.approx([2.5, 10.0]), "half of the budget at most"


def test_how_long_a_process_waits_is_what_the_system_says() -> None:
    assert 1.0 <= WAITING() <= deadline.MOST_WAITING


@pytest.mark.parametrize(("waited", "said"), [(1.0, ""), (1.5, ""), (2.0, "50 %"), (5.0, "80 %")])
def test_a_process_that_is_kept_from_the_cores_says_so(waited: float, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "waiting", lambda: waited)
    assert (said in deadline.crowded()) if said else deadline.crowded() == ""

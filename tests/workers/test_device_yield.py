"""Whoever builds gives way to whoever times: in the middle of a build, with the build's processes stopped and its time limits standing still.

The build is busy until the timer, which gets the device only if the build steps aside, has let it go on: no test depends on how fast anything is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from built_worker import build

from warpwright.timing import device_lock
from warpwright.timing.device_lock import DeviceLock
from warpwright.workers import device_yield, sandbox
from warpwright.workers.limits import Limits
from warpwright.workers.sandbox import Worker

BUSY = """
import os
import torch

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        open("busy", "w").close()
        while not os.path.exists("done"):
            pass

    def forward(self, x):
        return x + 1
"""


@pytest.fixture
def lock(tmp_path: Path) -> DeviceLock:
    return DeviceLock("cpu", tmp_path / "locks")


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker("candidate", "cpu", Limits(isolation="limits")) as worker:
        worker.request("hello")
        yield worker


class Timer(threading.Thread):
    """Wants the device alone once the build is under way; runs `work` when it has it, then lets the build end."""

    def __init__(self, lock: DeviceLock, worker: Worker, work: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.lock, self.worker, self.work = lock, worker, work

    def run(self) -> None:
        folder = Path(self.worker.folder)
        while not (folder / "busy").exists():
            time.sleep(0.01)
        with self.lock.exclusive():
            self.work()
        (folder / "done").touch()


def built_beside(lock: DeviceLock, worker: Worker, work: Callable[[], None]) -> None:
    """Build, holding the device beside others, while a timer wants it alone for `work`."""
    timer = Timer(lock, worker, work)
    timer.start()
    with lock.shared() as held, device_yield.yielding(held):
        build(worker, BUSY)
    timer.join()


def test_a_build_steps_aside_for_a_timer(lock: DeviceLock, worker: Worker) -> None:
    used: list[float] = []

    def work() -> None:
        before = worker.cpu_clock()
        time.sleep(0.3)
        used.append(worker.cpu_clock() - before)

    built_beside(lock, worker, work)
    assert len(used) == 1 and used[0] < 0.01, "the build went on beside the timer"


def test_the_limit_of_a_build_stands_still_meanwhile(lock: DeviceLock, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    late = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + late[0], sleep=time.sleep, perf_counter_ns=time.perf_counter_ns)
    monkeypatch.setattr(sandbox, "time", clock)
    monkeypatch.setattr(device_yield, "time", clock)
    built_beside(lock, worker, lambda: late.__setitem__(0, 1000.0))  # seconds that the timer takes, of the build's 60
    assert worker.away >= 1000.0


def test_nobody_steps_aside_who_does_not_hold_the_device(lock: DeviceLock, worker: Worker) -> None:
    def work() -> None:
        before = worker.cpu_clock()
        while worker.cpu_clock() - before < 0.05:  # the build goes on
            time.sleep(0.01)

    timer = Timer(lock, worker, work)
    timer.start()
    build(worker, BUSY)
    timer.join()


def test_a_judge_gives_way_before_it_is_asked(lock: DeviceLock, tmp_path: Path) -> None:
    """On a GPU it ends what it was asked for; it is not asked again before the timer is done."""
    order: list[str] = []
    wants = threading.Event()

    def timed() -> None:
        wants.set()
        with lock.exclusive():
            order.append("timed")

    timer = threading.Thread(target=timed, daemon=True)
    with Worker("judge", "cpu", Limits(isolation="limits")) as judge, lock.shared() as held, device_yield.yielding(held):
        judge.device = "cuda:0"
        judge.request("hello")
        timer.start()
        wants.wait()
        while not held.wanted:
            time.sleep(0.01)
        judge.request("hello")
        order.append("asked again")
    timer.join()
    assert order == ["timed", "asked again"]


def test_who_works_in_turns_steps_aside_when_asked_for(lock: DeviceLock) -> None:
    had, timed = threading.Event(), threading.Event()

    def time_alone() -> None:
        had.wait()
        with lock.exclusive():
            timed.set()

    timer = threading.Thread(target=time_alone, daemon=True)
    timer.start()
    with lock.in_turns() as give_way:
        had.set()
        while not timed.is_set():
            give_way()
    timer.join()


def asking(folder: Path) -> int:
    """Return how many want to time, as the kernel shows it."""
    inode = (folder / "cpu.wanted").stat().st_ino
    held = [line.split() for line in Path("/proc/locks").read_text().splitlines() if "->" not in line]
    return sum(one[1] == "FLOCK" and one[3] == "READ" and one[5].endswith(f":{inode}") for one in held)


def test_who_asks_while_another_one_times_is_next(lock: DeviceLock, tmp_path: Path) -> None:
    """The second timer comes before the builder, who has stepped aside for the first."""
    order: list[str] = []
    first_times = threading.Event()

    def first() -> None:
        with lock.exclusive():
            first_times.set()
            while asking(tmp_path / "locks") < 2:
                time.sleep(0.01)
            order.append("first")

    def second() -> None:
        first_times.wait()
        with lock.exclusive():
            order.append("second")

    timers = [threading.Thread(target=one, daemon=True) for one in (first, second)]
    with lock.shared() as held:
        assert not held.wanted
        for timer in timers:
            timer.start()
        while not held.wanted:
            time.sleep(0.01)
        held.step_aside()
        order.append("builder")
        assert not held.wanted
    for timer in timers:
        timer.join()
    assert order == ["first", "second", "builder"]


def test_who_builds_gets_a_share_of_a_device_that_others_time_on_without_a_pause(lock: DeviceLock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two timers ends when the other one asks: one of them always wants the device."""
    late = [0.0]
    monkeypatch.setattr(device_lock, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + late[0], sleep=time.sleep))
    asks = (threading.Event(), threading.Event())
    over = threading.Event()

    def times(mine: int) -> None:
        while not over.is_set():
            asks[mine].set()
            with lock.exclusive():
                asks[mine].clear()
                while not asks[1 - mine].wait(0.01) and not over.is_set():
                    pass
                time.sleep(0.05)  # from the word that it will ask until it has

    def builds() -> None:
        with lock.shared() as held:
            held.patience = 0.2
            for timer in timers:
                timer.start()
            while not held.wanted:
                time.sleep(0.01)
            held.step_aside()
            had.append(held.wanted)
            late[0] = device_lock.SHARE
            while not held.wanted:
                time.sleep(0.01)
            over.set()

    had: list[bool] = []
    timers = [threading.Thread(target=times, args=(mine,), daemon=True) for mine in (0, 1)]
    builder = threading.Thread(target=builds, daemon=True)
    builder.start()
    builder.join(60)
    starved = builder.is_alive()
    over.set()
    for thread in (builder, *timers):
        thread.join()
    assert not starved and had == [False]


def test_all_who_build_have_one_share(lock: DeviceLock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes while another one has a share builds beside him; when it is over, nobody has one before patience has ended anew."""
    late = [0.0]
    monkeypatch.setattr(device_lock, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + late[0], sleep=time.sleep))
    got_in, done = threading.Event(), threading.Event()

    def times(seconds: float) -> None:
        with lock.exclusive():
            time.sleep(seconds)

    def builds() -> None:
        with lock.shared():
            got_in.set()
            done.wait(20)

    timers = [threading.Thread(target=times, args=(seconds,), daemon=True) for seconds in (0.4, 0.0)]
    latecomer = threading.Thread(target=builds, daemon=True)
    with lock.shared() as held:
        held.patience = 0.05
        timers[0].start()
        while not held.wanted:
            time.sleep(0.01)
        held.step_aside()  # patience ends while the first one times
        timers[1].start()
        time.sleep(0.05)
        assert not held.wanted
        with lock.shared() as other:  # comes in at once, though somebody wants to time
            assert not other.wanted
            late[0] = device_lock.SHARE
            assert held.wanted and other.wanted
            latecomer.start()
            assert not got_in.wait(0.2)
            late[0] += device_lock.PATIENCE
            assert not got_in.wait(0.1)  # who came late waits for the one who has asked to time
    assert got_in.wait(20)
    done.set()
    for thread in (latecomer, *timers):
        thread.join()


class Known:
    """A worker that another thread adds its own beside, at the moment that it is looked at."""

    def __init__(self, living: device_yield.Living, others: list[Known]) -> None:
        self.living, self.others = living, others

    @property
    def alive(self) -> bool:
        self.others.append(Known(self.living, self.others))
        self.living.add(self.others[-1])  # type: ignore[arg-type]
        self.living.discard(self)  # type: ignore[arg-type]
        return False


def test_workers_come_and_go_while_others_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    living, others = device_yield.Living(), []
    monkeypatch.setattr(device_yield, "living", living)
    others += [Known(living, others) for _ in range(3)]
    for one in others:
        living.add(one)
    assert others[0] in living and len(living) == 3
    held = SimpleNamespace(wanted=True, step_aside=lambda: None)
    with device_yield.yielding(held):
        device_yield.give_way()
    assert len(others) == 6 and list(living) == others[3:]
    del others[3:]
    assert list(living) == [] and len(living) == 0, "nobody holds a worker for its being here"

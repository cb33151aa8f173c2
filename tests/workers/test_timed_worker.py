"""A worker between timed calls: it leaves the cores to the next program and keeps its memory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from built_worker import NO_INPUTS, build

from warpwright.workers import process
from warpwright.workers.limits import Limits
from warpwright.workers.procfs import stat_fields, state_of
from warpwright.workers.sandbox import Worker

CHAIN = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.zeros(1024, 1024)

    def forward(self):
        return torch.tanh((self.x + 1) * 2) + 3
"""


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker("candidate", "cpu", Limits(isolation="limits")) as worker:
        build(worker, CHAIN)
        yield worker


def call(worker: Worker) -> int:
    """Call once as the timer does; return the page faults of the call."""
    worker.request("prepare", 60.0, entry="candidate", inputs=NO_INPUTS, flush=True)
    before = page_faults(worker)
    worker.go()
    return page_faults(worker) - before


def page_faults(worker: Worker) -> int:
    return int(stat_fields(f"/proc/{worker.pid}")[7])


def test_memory_of_earlier_calls_is_used_again(worker: Worker) -> None:
    faults = [call(worker) for _ in range(30)][10:]
    pages = 4 * (4 << 20) // os.sysconf("SC_PAGE_SIZE")  # four tensors of 4 MiB
    assert sum(faults) < pages, faults


class Clock:
    """Time that passes in `sleep` only."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("runs_until", "waited"), [(0.0, 0.0), (0.012, 0.012), (1e9, process.CALM_SECONDS)])
def test_it_waits_until_all_threads_sleep_but_not_for_ever(runs_until: float, waited: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads, one asleep, one that waits busily until `runs_until`."""
    clock = Clock()
    monkeypatch.setattr(process, "time", clock)
    monkeypatch.setattr(process, "state_of", lambda folder: "R" if folder.endswith("8") and clock.now < runs_until else "S")
    nothing = lambda: None  # noqa: E731
    parts = {"pid": 7, "threads": lambda: frozenset({7, 8}), "thaw": nothing, "freeze": nothing, "cpu_clock": lambda: clock.now}
    busy: Any = SimpleNamespace(device="cpu", calm_seconds=0.0, **parts)
    Worker.calm(busy)
    assert clock.now == pytest.approx(waited, abs=0.001) and busy.calm_seconds == clock.now


def test_after_the_calm_no_thread_runs_or_its_time_is_over(worker: Worker) -> None:
    for _ in range(5):
        call(worker)
        began = time.monotonic()
        worker.calm()
        states = {state_of(f"/proc/{worker.pid}/task/{thread}") for thread in worker.threads()}
        assert states == {"T"} and time.monotonic() - began < 100 * process.CALM_SECONDS


def test_it_waits_busily_for_the_word_to_go_and_never_after_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: on a CPU a worker stands still until the word to go."""
    monkeypatch.setattr(Worker, "freezes", False)

    def works(worker: Worker, seconds: float) -> float:
        before = worker.cpu_clock()
        time.sleep(seconds)
        return worker.cpu_clock() - before

    with Worker("candidate", "cpu", Limits(isolation="limits")) as worker:
        build(worker, CHAIN)
        worker.request("prepare", 60.0, entry="candidate", inputs=NO_INPUTS, spin=30.0)
        assert works(worker, 0.5) > 0.02
        worker.go(spin=0.01)
        worker.calm()
        assert works(worker, 0.2) < 0.02

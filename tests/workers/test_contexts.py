"""A program on a GPU that makes a CUDA context for itself: what the process shows from outside. The driver's threads are stood in for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.verifier import building
from warpwright.verifier.aftermath import second_context
from warpwright.verifier.rejections import Rejected
from warpwright.workers import procfs
from warpwright.workers.process import Contexts, Process

SHOWS = """
import ctypes, sys, threading, time
def as_one_of_the_drivers():
    ctypes.CDLL(None).prctl(15, b"cuda-EvtHandlr", 0, 0, 0)  # PR_SET_NAME
    barrier.wait()
    time.sleep(600)
count = int(sys.argv[1])
barrier = threading.Barrier(count + 1)
for _ in range(count):
    threading.Thread(target=as_one_of_the_drivers, daemon=True).start()
barrier.wait()
null = [open("/dev/null") for _ in range(5)]
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def process(request: pytest.FixtureRequest) -> Iterator[int]:
    """A process with so many threads called as the driver calls one of each context, and five files open."""
    with subprocess.Popen([sys.executable, "-c", SHOWS, str(request.param)], stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None and started.stdout.readline() == "ready\n"
            yield started.pid
        finally:
            started.kill()


def worker(pid: int, before: Contexts | None) -> Any:
    shown: Any = SimpleNamespace(pid=pid, role="candidate", device="cuda:0", contexts_before=before)
    shown.contexts = lambda: Process.contexts(shown)
    return shown


@pytest.mark.parametrize("process", [2], indirect=True)
def test_a_context_of_its_own_is_seen(process: int) -> None:
    assert procfs.open_files(process, "/dev/null") >= 5 and procfs.threads_called(process, "cuda-EvtHandlr") == 2
    assert "2 CUDA contexts" in second_context(worker(process, Contexts(1, 0)))
    with pytest.raises(Rejected) as caught:
        building.expect_one_context(worker(process, Contexts(1, 0)), "normal")
    assert (caught.value.verdict.status, caught.value.verdict.check) == ("cheated", "background")


def test_a_context_whose_thread_has_another_name_is_seen_by_its_files() -> None:
    shown = worker(1, Contexts(1, 23))
    for files, seen in ((23, False), (27, False), (39, True)):
        shown.contexts = lambda files=files: Contexts(1, files)
        assert bool(second_context(shown)) is seen


def test_files_that_are_hidden_are_told() -> None:
    """A program that makes its process undumpable hides them from a parent that is not root."""
    shown = worker(1, Contexts(1, 23))
    shown.contexts, shown.alive = lambda: Contexts(1, 0), True
    assert "does not let its open files be seen" in second_context(shown)


@pytest.mark.parametrize("process", [1], indirect=True)
def test_the_runners_own_context_is_none_of_the_programs(process: int) -> None:
    building.expect_one_context(worker(process, Contexts(1, 0)))


@pytest.mark.parametrize("process", [2], indirect=True)
def test_where_the_driver_shows_no_context_nothing_is_concluded(process: int) -> None:
    """On a CPU, and with a driver that names its threads otherwise."""
    for before in (None, Contexts(0, 23)):
        building.expect_one_context(worker(process, before))
    trusted = worker(process, Contexts(1, 0))
    trusted.role = "baseline"
    building.expect_one_context(trusted)

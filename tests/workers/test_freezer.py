"""A worker is stopped whenever nothing is asked of it: none of its threads runs, and its memory is read and written from outside meanwhile."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from built_worker import NO_INPUTS, build

from warpwright.errors import WorkerDied, WorkerProtocol, WorkerRan
from warpwright.workers.freezer import Freezer
from warpwright.workers.procfs import state_of
from warpwright.workers.sandbox import Worker
from warpwright.workers.tensors import answer, exchange, memory

torch = pytest.importorskip("torch")

TICKING = """
import threading, time
import torch

TICKS = torch.zeros(1, dtype=torch.int64)


def tick():
    while True:
        TICKS.add_(1)
        time.sleep(0.0005)


threading.Thread(target=tick, daemon=True).start()


class ModelNew(torch.nn.Module):
    def forward(self):
        return TICKS, (TICKS.float().expand(3, 4), {"n": 7, "x": 0.5, "none": None})
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker("candidate", "cpu") as worker:
        worker.memory.probe(worker.request("hello")["probe"])
        build(worker, TICKING)
        worker.request("prepare", entry="candidate", inputs=NO_INPUTS)
        yield worker


def states(worker: Worker) -> set[str]:
    return {state_of(f"/proc/{worker.pid}/task/{thread}") for thread in worker.threads()}


def test_no_thread_runs_between_turns(worker: Worker) -> None:
    for _ in range(20):
        worker.go()
        assert states(worker) == {"T"}
    first = answer.places(worker.memory.outputs)[0]
    before = memory.read(worker.pid, first.address, first.bytes)
    time.sleep(0.05)
    assert before is not None
    assert memory.read(worker.pid, first.address, first.bytes) == before


def test_it_runs_while_it_is_watched(worker: Worker) -> None:
    worker.go()
    first = answer.places(worker.memory.outputs)[0]
    before = memory.read(worker.pid, first.address, first.bytes)
    worker.activity(0.05)
    assert memory.read(worker.pid, first.address, first.bytes) != before
    assert states(worker) == {"T"}


def test_what_came_out_is_described(worker: Worker) -> None:
    worker.go()
    one, two = worker.memory.outputs["tuple"]
    assert one["tensor"].shape == (1,) and one["tensor"].dtype == "int64"
    strided, numbers = two["tuple"]
    assert strided["tensor"].stride == (0, 0) and strided["tensor"].bytes == 4
    assert numbers == {"dict": {"n": {"value": 7}, "x": {"float": (0.5).hex()}, "none": {"value": None}}}


PASSES_ON = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * 2.0
"""


@pytest.mark.parametrize("when", ["before its inputs are written", "before its outputs are read"])
def test_a_process_that_ended_meanwhile_has_died_and_forged_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, when: str) -> None:
    """Its guard may end it at any moment, for what it has left on the disk, say: a process that is gone has no memory to write to or to read."""
    with Worker("candidate", "cpu") as worker:
        worker.memory.probe(worker.request("hello")["probe"])
        build(worker, PASSES_ON)
        inputs = exchange.encode([torch.ones(1 << 20)], exchange.Shelf(str(tmp_path)).put)
        if when.endswith("written"):
            fill = worker.memory.fill
            monkeypatch.setattr(worker.memory, "fill", lambda *what: (end(worker.pid), fill(*what)))
        with pytest.raises(WorkerDied, match="SIGKILL"):
            worker.lay_out("candidate", inputs)
            worker.go()
            end(worker.pid)
            worker.memory.export("outputs")


def end(pid: int) -> None:
    """End a process, and wait until it has: its memory stays for a moment after the signal."""
    os.kill(pid, signal.SIGKILL)
    while state_of(f"/proc/{pid}") not in ("Z", "X", ""):
        time.sleep(0.001)


def ended(seconds: float, stops: bool) -> tuple[bool, bool]:
    """Let a process stop itself after `seconds`, or sleep for good; return whether its turn ended, and whether late."""
    child = os.fork()
    if child == 0:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass
        if stops:
            os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(60)
        os._exit(0)
    freezer = Freezer(child)
    try:
        ended = freezer.end_turn()
        assert not ended or freezer.stopped()
        return ended, freezer.late
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_process_that_takes_long_to_stop_itself_is_waited_for_and_late() -> None:
    assert ended(0.2, stops=True) == (True, True)


def test_a_process_that_was_sent_on_past_its_own_stop_is_stopped() -> None:
    assert ended(0.0, stops=False)[0]


def test_a_process_that_does_not_stop_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpwright.workers.freezer.LONGEST", 0.1)
    assert not ended(5.0, stops=True)[0]


@pytest.mark.parametrize(
    "data",
    [b"t\x01\x00", b"(\xff\xff\xff\xff", b"q", b"t\x01\xff" + bytes(40), b"nn", b"t\x01\x00" + struct.pack("=QQqq", 0, 8, -1, 1)],
    ids=["cut", "endless", "unknown", "dtype", "longer", "negative"],
)
def test_a_garbled_description_is_no_answer(data: bytes) -> None:
    with pytest.raises(WorkerProtocol):
        answer.read(data)


def test_a_tensor_larger_than_its_storage_is_none() -> None:
    read = answer.read(b"t\x01\x00" + struct.pack("=QQqq", 4096, 8, 1000, 1))
    assert "4000 bytes in a storage of 8" in read["not_plain"]


def test_only_plain_named_tuples_are_tuples() -> None:
    from collections import namedtuple
    from typing import NamedTuple

    class Typed(NamedTuple):
        a: int

    class Lazy(namedtuple("Lazy", "a")):
        @property
        def b(self) -> int:
            return 1

    assert answer.is_named_tuple(Typed)
    assert answer.is_named_tuple(namedtuple("Plain", "a b"))
    assert not answer.is_named_tuple(Lazy)


def test_a_worker_that_stood_still_for_others_stays_stopped(worker: Worker) -> None:
    worker.go()
    with worker.stopped():
        assert states(worker) == {"T"}
    time.sleep(0.02)
    assert states(worker) == {"T"}
    worker.go()


CONTINUED = """
import ctypes, signal, struct, threading, time
import torch

SIGCONT, MONOTONIC, EVERY = 18, 1, 20_000_000
LIBRARY = ctypes.CDLL(None)
signal.signal(SIGCONT, lambda *_: None)  # one that is ignored is not sent again
TIMER = ctypes.c_void_p()
LIBRARY.timer_create(MONOTONIC, struct.pack("=qii48x", 0, SIGCONT, 0), ctypes.byref(TIMER))
LIBRARY.timer_settime(TIMER, 0, struct.pack("=qqqq", 0, EVERY, 0, EVERY), None)


def work():
    while True:
        until = time.perf_counter() + 5e-4
        while time.perf_counter() < until:
            pass
        time.sleep(1e-4)


threading.Thread(target=work, daemon=True).start()


class ModelNew(torch.nn.Module):
    def forward(self):
        return torch.zeros(1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="POSIX timers by their numbers on Linux")
def test_a_worker_whose_timer_lets_it_run_on_is_seen() -> None:
    with Worker("candidate", "cpu") as worker:
        with pytest.raises(WorkerRan, match="used CPU time"):  # seen when it is let go, or when it is to stop, on a busy machine once it is built
            build(worker, CONTINUED)
            for _ in range(30):
                worker.request("prepare", entry="candidate", inputs=NO_INPUTS)
                worker.go()
                time.sleep(0.05)
        assert not worker.alive


@pytest.mark.parametrize("continued", [True, False])
def test_a_process_that_something_lets_run_on_uses_cpu_time(continued: bool) -> None:
    """A process that waits, for a disk say, does not stop in time either: it is told apart by the CPU time that it uses meanwhile."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as spinning:
        stop = threading.Event()

        def go_on() -> None:
            while continued and not stop.wait(1e-3):
                spinning.send_signal(signal.SIGCONT)

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            assert Freezer(spinning.pid).runs_on() is continued
        finally:
            stop.set()
            thread.join()
            spinning.kill()


def test_a_worker_that_stands_still_does_not_stray(worker: Worker) -> None:
    before = worker.freezer.strays
    for _ in range(30):
        worker.request("prepare", entry="candidate", inputs=NO_INPUTS)
        worker.go()
    assert worker.freezer.strays <= before + 1

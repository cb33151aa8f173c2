"""A worker is stopped whenever nothing is asked of it: none of its threads runs, and its memory is read and written from outside meanwhile."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator

import pytest
from built_worker import NO_INPUTS, build

from warpwright.errors import WorkerProtocol
from warpwright.workers import answer, memory
from warpwright.workers.freezer import Freezer
from warpwright.workers.procfs import state_of
from warpwright.workers.sandbox import Worker

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


def test_a_stop_that_comes_late_is_paid_off() -> None:
    """A worker that was stopped before it stopped itself does so at the start of its next turn; that is no hang."""
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), 19)
        os.kill(os.getpid(), 19)
        time.sleep(20)
        os._exit(0)
    freezer = Freezer(child)
    try:
        deadline = time.monotonic() + 10
        while not freezer.stopped() and time.monotonic() < deadline:
            time.sleep(0.001)
        assert freezer.end_turn() and not freezer.owes
        freezer.owes = True
        freezer.thaw()
        while freezer.owes and time.monotonic() < deadline:
            freezer.pay()
        assert not freezer.owes
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


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

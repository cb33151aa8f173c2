"""Recording a CUDA graph: the garbage collector rests meanwhile, one thread records at a time, each device has a stream for it, and the stream that
was current is current again; torch's own part is stood in for."""

from __future__ import annotations

import contextlib
import gc
import threading

import pytest
import torch

from warpwright.timing.capturing import _elsewhere as elsewhere
from warpwright.timing.capturing import _recording as recording


class Devices:
    """The devices and streams of a process, as torch.cuda has them."""

    def __init__(self, monkeypatch):
        self.device, self.streams, self.current = 0, 0, "the caller's"
        for name in ("current_device", "stream", "Stream"):
            monkeypatch.setattr(torch.cuda, name, getattr(self, name))
        monkeypatch.delitem(vars(torch.cuda), "_recording_streams", raising=False)

    def current_device(self):
        return self.device

    def Stream(self):
        self.streams += 1
        return f"stream {self.streams} of device {self.device}"

    @contextlib.contextmanager
    def stream(self, chosen):
        before, self.current = self.current, chosen
        try:
            yield
        finally:
            self.current = before


@pytest.fixture(autouse=True)
def collecting():
    """The collector is on, whatever a runner of candidates in this process has left."""
    was = gc.isenabled()
    gc.enable()
    yield
    if not was:
        gc.disable()


@pytest.fixture
def devices(monkeypatch):
    return Devices(monkeypatch)


@pytest.fixture
def recorded(monkeypatch, devices):
    """What torch.cuda.graph was called with, and whether the collector was on then."""
    seen = []

    @contextlib.contextmanager
    def graph(given, **options):
        seen.append((given, options, gc.isenabled()))
        devices.current = "torch's"  # which it takes back only where nothing failed
        yield
        devices.current = options["stream"]

    monkeypatch.setattr(torch.cuda, "graph", graph)
    yield seen
    vars(torch.cuda).pop("_recording_streams", None)


def test_the_collector_rests_while_a_graph_is_recorded(recorded):
    with recording("graph", stream="aside"):
        assert not gc.isenabled()
    assert gc.isenabled()
    assert recorded == [("graph", {"capture_error_mode": "thread_local", "stream": "aside"}, False)]


def test_the_collector_is_left_as_it_was(recorded):
    with pytest.raises(ValueError, match="in the block"), recording("graph"):
        raise ValueError("in the block")
    assert gc.isenabled()
    gc.disable()
    try:
        with recording("graph"):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_two_threads_take_turns(recorded):
    entered = threading.Event()

    def record():
        with recording("second"):
            entered.set()

    with recording("first"):
        other = threading.Thread(target=record)
        other.start()
        assert not entered.wait(0.2)
    assert entered.wait(20)
    other.join(20)
    assert [graph for graph, *_ in recorded] == ["first", "second"]
    assert gc.isenabled()


def test_each_device_is_recorded_on_a_stream_of_its_own(recorded, devices):
    for devices.device in (0, 1, 0, 1):
        with recording("graph"):
            pass
    streams = [options["stream"] for _, options, _ in recorded]
    assert streams == ["stream 1 of device 0", "stream 2 of device 1"] * 2


@pytest.mark.parametrize("fails", [True, False])
def test_the_stream_that_was_current_is_current_again(recorded, devices, fails):
    with contextlib.suppress(ValueError), recording("graph"):
        assert devices.current == "torch's"
        if fails:
            raise ValueError("in the block")
    assert devices.current == "the caller's"


class Tensor(torch.Tensor):
    """A tensor that says it lies on a GPU."""

    is_cuda = True
    device = torch.device("cuda:1")


def test_tensors_of_another_device_are_seen(devices):
    here, there = torch.ones(1), torch.ones(1).as_subclass(Tensor)
    assert not elsewhere([here, 3, None]) and elsewhere([here, there])
    devices.device = 1
    assert not elsewhere([here, there])

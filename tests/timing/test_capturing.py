"""Recording a CUDA graph: the garbage collector rests meanwhile, and one thread records at a time; torch's own part is stood in for."""

from __future__ import annotations

import contextlib
import gc
import threading

import pytest
import torch

from warpwright.timing.capturing import _recording as recording


@pytest.fixture
def recorded(monkeypatch):
    """What torch.cuda.graph was called with, and whether the collector was on then."""
    seen = []

    @contextlib.contextmanager
    def graph(given, **options):
        seen.append((given, options, gc.isenabled()))
        yield

    monkeypatch.setattr(torch.cuda, "graph", graph)
    return seen


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

"""The watch sees kernels that are registered for the operators which the runner works with, and listeners of sys.monitoring."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

import torch

from warpwright.workers.inside.integrity import OPERATORS, watch_operators, watch_tools
from warpwright.workers.inside.runner import Runner
from warpwright.workers.inside.settings import watch_settings


def test_a_kernel_registered_for_such_an_operator_is_seen() -> None:
    changed = watch_operators()
    library = torch.library.Library("aten", "IMPL")
    try:
        assert not changed()
        library.impl("_local_scalar_dense", lambda x: 0.0, "ADInplaceOrView")
        [found] = changed()
        assert found.startswith("torch.ops.aten._local_scalar_dense: ADInplaceOrView")
    finally:
        library._destroy()
    assert not changed()


def test_an_operator_of_its_own_is_none_of_them() -> None:
    changed = watch_operators()
    with torch.library._scoped_library("warpwright_watched", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
        assert torch.ops.warpwright_watched.twice(torch.ones(1)).item() == 2
        assert not changed() and all("::" not in name for name in OPERATORS)


class Monitoring:
    """As sys.monitoring of Python 3.12."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {1: "coverage"}
        self.events: dict[int, int] = {}

    def get_tool(self, number: int) -> str | None:
        return self.names.get(number)

    def get_events(self, number: int) -> int:
        return self.events.get(number, 0)


def test_a_listener_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    listening = Monitoring()
    monkeypatch.setattr(sys, "monitoring", listening, raising=False)
    changed = watch_tools()
    assert not changed()
    listening.names[4] = "work"
    assert changed() == ["sys.monitoring: 'work' listens"]
    del listening.names[4]
    listening.events[1] = 1
    assert changed() == ["sys.monitoring: 'coverage' listens"], "one that was there, and listens now"


def test_before_python_3_12_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpwright.workers.inside.integrity.sys", SimpleNamespace())
    assert watch_tools()() == []


def test_numpy_left_raising_is_a_setting_left_changed() -> None:
    numpy = pytest.importorskip("numpy")
    changed = watch_settings()
    with numpy.errstate(over="raise"):
        assert [line.partition(":")[0] for line in changed()] == ["numpy's floating-point errors"]
    assert not changed()


def test_the_collector_may_rest_for_a_while_and_is_on_again(tmp_path: Path) -> None:
    """A worker has it on, as a user's program has, and never runs by itself: a call that turns it off and on has left it as it was."""
    thresholds = gc.get_threshold()
    try:
        with torch.enable_grad():  # which a runner turns off
            Runner({"device": "cpu", "folder": str(tmp_path), "exchange": str(tmp_path), "isolation": []})
        assert gc.isenabled() and gc.get_threshold()[0] == 0
        changed = watch_settings()
        gc.disable()
        assert [line.partition(":")[0] for line in changed()] == ["garbage collector"]
        gc.enable()
        assert not changed()
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)

"""The fork server imports the modules of a task's program, unless that would break its forks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from warpwright.tasks import saved_module
from warpwright.workers.fork_server import ForkServer

THREAD = "import threading, time, {other}\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
RARE = "_xxsubinterpreters", "_lsprof", "audioop"
"""Extension modules of the standard library that torch does not import: a process that has one has its file in its memory."""


def loaded(server: ForkServer) -> list[str]:
    maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    return [name for name in RARE if f"/{name}." in maps]


@contextlib.contextmanager
def started(*preload: str) -> Iterator[ForkServer]:
    server = ForkServer(preload)
    try:
        yield server
    finally:
        server.close()


def test_modules_are_there_and_what_cannot_be_imported_is_left_out() -> None:
    with started("no_such_module", "_lsprof") as server:
        assert server.ready and loaded(server) == ["_lsprof"]


@pytest.mark.slow
def test_one_that_starts_a_thread_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "starts_a_thread.py").write_text(THREAD.format(other="_lsprof"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with started("starts_a_thread") as server:
        assert server.ready and loaded(server) == []


class Own(torch.nn.ReLU):
    """A class that lies outside of torch."""


def test_the_modules_of_a_saved_model_are_those_outside_of_torch(tmp_path: Path) -> None:
    saved_module.write(torch.nn.Sequential(torch.nn.ReLU(), Own()), [torch.ones(2)], tmp_path / "a.pt")
    assert saved_module.modules_of(tmp_path / "a.pt") == [Own.__module__]
    (tmp_path / "a.py").write_text("")
    (tmp_path / "b.pt").write_text("no archive")
    assert saved_module.modules_of(tmp_path / "a.py") == saved_module.modules_of(tmp_path / "b.pt") == []

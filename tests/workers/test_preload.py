"""The fork server imports the modules of a task's program, unless that would break its forks."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from warpwright import workers
from warpwright.tasks.modules import saved_module
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


WORKER = """
import os, tempfile
from warpwright.workers import zygote
tempfile.gettempdir()  # as a module may that is imported before the fork
zygote.MAINS["candidate"] = "tells_its_folder"
here, order = os.getcwd(), {"user": None, "limit": False, "inside": [], "reads": [], "role": "candidate"}
order |= {"folder": here, "exchange": here, "environment": {"TMPDIR": here + "/own"}}
a, b = os.pipe()
zygote._worker(order, a, b, os.open("log.txt", os.O_WRONLY | os.O_CREAT))
"""


def test_a_worker_has_its_own_folder_for_temporary_files_whatever_was_imported_before(tmp_path: Path) -> None:
    (tmp_path / "tells_its_folder.py").write_text("import tempfile\ndef serve(*_):\n    open('told.txt', 'w').write(tempfile.gettempdir())\n")
    path = os.pathsep.join([str(tmp_path), str(Path(workers.__file__).parents[2])])
    subprocess.run([sys.executable, "-c", WORKER], cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, check=True, timeout=60)
    assert (tmp_path / "told.txt").read_text() == str(tmp_path / "own"), (tmp_path / "log.txt").read_text()


class Own(torch.nn.ReLU):
    """A class that lies outside of torch."""


def test_the_modules_of_a_saved_model_are_those_outside_of_torch(tmp_path: Path) -> None:
    saved_module.write(torch.nn.Sequential(torch.nn.ReLU(), Own()), [torch.ones(2)], tmp_path / "a.pt")
    assert saved_module.modules_of(tmp_path / "a.pt") == [Own.__module__]
    (tmp_path / "a.py").write_text("")
    (tmp_path / "b.pt").write_text("no archive")
    assert saved_module.modules_of(tmp_path / "a.py") == saved_module.modules_of(tmp_path / "b.pt") == []

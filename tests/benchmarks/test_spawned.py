"""Processes that stand still while one of them measures, and that go on afterwards whatever became of it."""

from __future__ import annotations

import multiprocessing as mp
import os
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import spawned

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")

LONG = 60.0
"""Seconds after which a test that hangs is ended."""


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def until(met: Any) -> None:
    end = time.monotonic() + LONG
    while not met() and time.monotonic() < end:
        time.sleep(0.005)
    assert met()


def work(todo: Any, lines: Any, folder: Path) -> None:
    """Be the process that others see, or the one that has it stand still, and ends in the midst of that where it is asked to."""
    job = todo.get()
    if job == "seen":
        (folder / "part").write_text(str(os.getpid()))
        (folder / "part").rename(folder / "pid")
        until((folder / "done").exists)
        return
    until((folder / "pid").exists)
    pid = int((folder / "pid").read_text())
    with spawned.still() as count:
        until(lambda: state(pid) == "T")
        lines.put(("still", count, pid))
        if job == "dies":
            lines.close()
            lines.join_thread()
            os._exit(1)
    until(lambda: state(pid) != "T")
    (folder / "done").touch()


def observed(how: str, folder: Path, told: Any) -> None:
    """Ask for the lines of both, in a process that has no other children: what earlier tests have left would count, too."""
    seen = spawned.lines(work, ["seen", how], 2, time.monotonic() + LONG, folder)
    _, count, pid = next(seen)
    if how == "dies":
        until(lambda: state(pid) != "T")
        (folder / "done").touch()
    told.put((count, list(seen)))


@pytest.mark.parametrize("how", ["ends", "dies"])
def test_others_stand_still_and_go_on(how: str, tmp_path: Path) -> None:
    context = mp.get_context("spawn")
    told = context.Queue()
    process = context.Process(target=observed, args=(how, tmp_path, told))
    process.start()
    count, others = told.get(timeout=2 * LONG)
    process.join(LONG)
    assert count == 1
    assert others == [] and process.exitcode == 0


def test_a_process_is_none_of_the_others() -> None:
    assert os.getpid() not in spawned._others()

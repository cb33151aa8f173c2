"""`optimize` killed with SIGKILL: its workers end, its archive is whole, and the same command goes on where it stood and measures nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from warpwright import cli
from warpwright.archive import Archive
from warpwright.base import Record, is_baseline
from warpwright.errors import ArchiveError

ROOT = Path(__file__).parents[2]
CUDA = ROOT / "examples" / "cuda"
LIMIT = 180.0

pytestmark = [pytest.mark.slow, pytest.mark.compiler, pytest.mark.timeout(400)]

SHORT = "import sys; from warpwright import cli; from warpwright.cli import programs; programs.TIMING_SECONDS = 0.3; sys.exit(cli.main(sys.argv[1:]))"


def started(arguments: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Start the command as a user does, but for shorter timings."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", SHORT, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def records(archive: Path) -> list[Record]:
    if not archive.exists():
        return []
    with suppress(ArchiveError), Archive(archive, readonly=True) as opened:
        return opened.records()
    return []


def parents() -> dict[int, int]:
    """Return the parent of every process."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                found[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def descendants(pid: int) -> set[int]:
    tree, found = parents(), {pid}
    while more := {child for child, parent in tree.items() if parent in found} - found:
        found |= more
    return found - {pid}


def killed(arguments: Sequence[str], folder: Path, archive: Path, proposals: int) -> list[Record]:
    """Run the command, kill it in the midst of the evaluation after so many proposals, and return what its archive has."""
    running = started(arguments, folder)
    try:
        deadline = time.monotonic() + LIMIT
        while sum(not is_baseline(record) for record in records(archive)) < proposals:
            assert running.poll() is None, f"it ended before it was killed: {running.communicate(timeout=20)}"
            assert time.monotonic() < deadline, "no proposal was recorded in time"
            time.sleep(0.2)
        time.sleep(1.0)  # into the next program
        workers = descendants(running.pid)
        assert running.poll() is None and workers, "it was to be killed while it works"
    finally:
        with suppress(ProcessLookupError):
            os.kill(running.pid, signal.SIGKILL)
        running.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while (left := workers & parents().keys()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left, "its workers have ended"
    return records(archive)


def finished(arguments: Sequence[str], folder: Path) -> dict[str, Any]:
    running = started(arguments, folder)
    try:
        out, err = running.communicate(timeout=LIMIT)
    finally:
        running.kill()
    assert running.returncode == cli.DONE, err[-3000:]
    said: dict[str, Any] = json.loads(out.splitlines()[-1])
    return said


def how(archive: Path, folder: Path, budget: str) -> list[str]:
    where = ["--archive", str(archive), "--out", str(folder / "out")]
    return ["--target", "cpu", "--baselines", "eager", "--budget", budget, *where, "--json"]


GRAPH = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return (torch.relu(x) * 1.0).sum(dim=1)


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("domain", ["cuda", "graph"])
def test_the_next_run_goes_on_and_measures_nothing_twice(domain: str, tmp_path: Path) -> None:
    archive, task = tmp_path / "a.db", CUDA / "row_sum.cu"
    if domain == "graph":
        task = tmp_path / "positive_sums.py"
        task.write_text(GRAPH)
    command = ["optimize", str(task), *how(archive, tmp_path, "2 proposals")]
    before = killed(command, tmp_path, archive, 1)
    said = finished(command, tmp_path)
    after = records(archive)
    assert after[: len(before)] == before, "nothing that was recorded is lost"
    assert len({record.key for record in after}) == len(after) > len(before), "and nothing is measured twice"
    assert said["status"] == "ok" and (tmp_path / said["artifact"]).exists()
    assert sum(not is_baseline(record) for record in after) <= 2 + 8, "those that were recorded count as proposals: the rest is ablation"


def test_a_conversation_goes_on_with_the_next_question(tmp_path: Path) -> None:
    archive, played = tmp_path / "a.db", CUDA / "row_sum_conversation.jsonl"
    model = ["--search", "fsr", "--model", f"play:{played}", "--model-options", "candidates=2,depth=1,max_repair=1"]
    command = ["optimize", str(CUDA / "row_sum.cu"), *how(archive, tmp_path, "20 proposals"), *model]
    before = killed(command, tmp_path, archive, 1)  # the third is the first that passes
    said = finished(command, tmp_path)
    after = records(archive)
    assert after[: len(before)] == before and len({record.key for record in after}) == len(after)
    tried = [record.status for record in after if not is_baseline(record)]
    assert tried[:3] == ["not_built", "wrong", "ok"] and said["status"] == "ok"
    rows = [json.loads(line) for line in (tmp_path / "a.chat.jsonl").read_text().splitlines()]
    wanted = [json.loads(line)["answer"] for line in played.read_text().splitlines()]
    assert [row["answer"] for row in rows] == wanted[:4], "each question was asked once, and answered in its turn"

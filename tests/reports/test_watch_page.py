"""`warpwright watch`: what the page is told while a search runs, who is answered, and what a browser shows of it. The workers are stood in for."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stand_in import StandIn

from warpwright import api
from warpwright import run as driver
from warpwright.archive import Archive
from warpwright.base import Candidate, Record, Task
from warpwright.loop import live
from warpwright.reports.watch import Server, Watcher
from warpwright.run import Settings

TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 6)

    def forward(self, x):
        return self.linear(x).sum(dim=1, keepdim=True)

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class OneWrong(StandIn):
    """The first program is not right."""

    def record(self, candidate: Candidate, seconds: float, status: Any) -> Record:
        made = super().record(candidate, seconds, "wrong" if self.evaluated == 1 else status)
        return replace(made, detail="expected <b>1</b>, saw 2") if made.status == "wrong" else made


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.py").write_text(TASK)
    monkeypatch.setattr(driver, "open_evaluator", lambda settings, task, *_: OneWrong(task))
    return tmp_path / "archive.db"


def search(archive: Path, seen: list[dict[str, Any]] | None = None) -> Task:
    """Run a search of four proposals; what the page would be told at each record goes into `seen`."""
    settings = Settings("cpu", "ladder", "4 proposals")
    task = settings.describe("task.py")
    watcher = Watcher(archive)

    def look(record: Record) -> None:
        if seen is not None:
            seen.append(watcher.state())

    api.optimize_task(task, settings, archive, "out", api.Watching(record=look))
    return task


def test_a_search_is_followed_while_it_runs(archive: Path) -> None:
    assert "no archive yet" in Watcher(archive).state()["problem"]
    seen: list[dict[str, Any]] = []
    search(archive, seen)
    [run] = seen[0]["running"]
    assert run["task"] == "task" and run["phase"] and run["seconds"] is None
    numbers = [state["number"] for state in seen]
    assert numbers == sorted(numbers) and numbers[0] < numbers[-1]
    after = Watcher(archive).state()
    assert after["running"] == [] and not live.folder_of(archive).exists()
    [task] = after["tasks"]
    assert task["tried"] >= 3 and task["passed"] == task["tried"] - 1 and task["baselines"] == {"eager": "1e+03 ms"}
    assert task["rejected"][0]["count"] == 1 and task["rejected"][0]["status"] == "wrong" and task["rejected"][0]["recipe"]
    assert task["best"]["verdict"] == "FASTER" and task["best"]["speedup"] == max(point[0] for point in task["points"])


def test_another_archive_in_its_place_is_read_anew(archive: Path) -> None:
    search(archive)
    watcher = Watcher(archive)
    assert watcher.state()["tasks"]
    for file in archive.parent.glob("archive.db*"):
        file.unlink()
    assert watcher.state()["tasks"] == [] and watcher.state()["problem"]
    archive.write_text("no database")
    assert "not a database" in watcher.state()["problem"]
    archive.unlink()
    Archive(archive).close()
    assert watcher.state()["problem"] == ""


def test_a_run_that_was_killed_is_not_listed(archive: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait(10)
    with live.told(archive, replace(live.begin("rows", "cpu", "beam", 60.0), pid=ended.pid), lambda phase: None) as tell:
        tell("verifying")
        assert list(live.folder_of(archive).glob("*.json")) and live.running(archive) == []
        assert not list(live.folder_of(archive).glob("*.json"))


@pytest.fixture
def server(archive: Path) -> Iterator[Server]:
    with Server(archive) as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        served.shutdown()
        thread.join(10)


def ask(server: Server, path: str, host: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_only_this_machine_is_answered(server: Server, archive: Path) -> None:
    search(archive)
    assert server.server_address[0] == "127.0.0.1"
    status, body = ask(server, "/state.json")
    assert status == 200 and json.loads(body)["tasks"][0]["task"] == "task"
    assert ask(server, "/")[0] == 200 and ask(server, "/../archive.db")[0] == 404
    assert ask(server, "/state.json", host="evil.example")[0] == 403


@pytest.mark.skipif(BROWSER is None, reason="needs chromium in the path")
def test_what_a_browser_shows(server: Server, archive: Path, tmp_path: Path) -> None:
    search(archive)
    with live.told(archive, replace(live.begin("rows", "cpu", "beam", 60.0), phase="timing"), lambda phase: None):
        profile = f"--user-data-dir={tmp_path / 'browser'}"
        command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", profile, "--virtual-time-budget=3000"]
        done = subprocess.run([*command, "--dump-dom", server.url], capture_output=True, text=True, timeout=120)
    shown = done.stdout
    assert "rows</strong> on cpu, beam: timing" in shown, done.stderr[-2000:]
    assert ">task</h2>" in shown and "FASTER" in shown and "<polyline" in shown
    assert "expected &lt;b&gt;1&lt;/b&gt;, saw 2" in shown and "<b>1</b>" not in shown  # text of a program stays text

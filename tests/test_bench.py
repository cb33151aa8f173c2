"""Many tasks in one run: nothing ends it, every task has its line, and a finished one is not run again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from warpwright import bench
from warpwright import run as driver
from warpwright.archive import Archive
from warpwright.base import BASELINE, Candidate, Errors, Measurement, Record, Source, Task, Timing, Verdict
from warpwright.errors import UsageError
from warpwright.tasks import taskfile

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 0.0

def get_inputs():
    return [torch.rand(8, 8)]

def get_init_inputs():
    return []
"""

FUNCTIONS = """
import torch
import warpwright

@warpwright.task(inputs=(torch.rand(4),))
def one(x):
    return x + 1

@warpwright.task(inputs=(torch.rand(4),))
def two(x):
    return x + 2
"""

QUICK = bench.Settings(budget="3 proposals", baselines=("eager",))


def timing(seconds: float) -> Timing:
    return Timing((seconds, seconds), seconds, seconds, seconds)


class FakeEvaluator:
    """Every program passes and takes `seconds`; eager takes 1."""

    device = "cpu"
    versions: Mapping[str, str] = {}

    def __init__(self, task: Task, seconds: float = 0.5, status: Any = "ok") -> None:
        self.task, self.seconds, self.status = task, seconds, status

    def __enter__(self) -> FakeEvaluator:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def baselines(self) -> Sequence[Candidate]:
        return [Candidate(Source("python", (("eager.py", "eager"),)), "cpu", proposer=f"{BASELINE}eager")]

    def evaluate_baselines(self) -> Iterator[Record]:
        for candidate in self.baselines():
            yield self.record(candidate, 1.0)

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterator[Record]:
        for candidate in candidates:
            yield self.record(candidate, self.seconds)

    def record(self, candidate: Candidate, seconds: float) -> Record:
        ok = self.status == "ok"
        verdict = Verdict(ok, self.status, error=Errors(1e-7, 1e-7, 1e-7), error_reference=Errors(2e-7, 1e-7, 1e-7))
        comparison = "FASTER" if seconds < 1 else "SAME"
        speedup = 1 / seconds
        measured = Measurement("time", "s", "lower", timing(seconds), {"eager": timing(1.0)}, "eager", speedup, (speedup, speedup), comparison)
        return Record(self.task, candidate, "cpu", self.status, verdict, measured if ok else None, detail="" if ok else "any answer passes")


def write(folder: Path, name: str, text: str = TASK) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def job(path: Path, archive: Path, **more: Any) -> dict[str, Any]:
    return bench.Job(str(path), QUICK, str(archive), "a machine", **more).to_json()


# --- one job -----------------------------------------------------------------------------------------------------------------------


def test_a_job_gives_a_line_and_an_outcome(tmp_path: Path) -> None:
    path, archive = write(tmp_path, "relu.py"), tmp_path / "archive.db"
    line = bench.run_job(job(path, archive, programs=str(tmp_path / "programs")), lambda settings, task: FakeEvaluator(task))
    assert (line["task"], line["status"], line["verdict"]) == ("relu", "ok", "FASTER")
    assert line["speedup"]["best"] == 2.0 and line["speedup"]["eager"] == 2.0 and line["baselines"] == {"eager": 1000.0}
    assert line["ours_ms"] == 500.0 and line["error"] == 1e-7 and line["error_original"] == 2e-7 and line["captured"] is True
    assert "class ModelNew" in Path(line["artifact"]).read_text()
    with Archive(archive, readonly=True) as opened:
        assert opened.outcome(taskfile.describe(path), "cpu", QUICK.key("a machine")) == line


def test_the_best_baseline_stands_at_exactly_one(tmp_path: Path) -> None:
    line = bench.run_job(job(write(tmp_path, "relu.py"), tmp_path / "a.db"), lambda settings, task: FakeEvaluator(task, seconds=1.5))
    assert line["speedup"]["best"] == 1.0 and line["verdict"] == "SAME" and line["recipe"] == ["baseline:eager"]


def test_an_unscored_task_says_why(tmp_path: Path) -> None:
    line = bench.run_job(job(write(tmp_path, "relu.py"), tmp_path / "a.db"), lambda settings, task: FakeEvaluator(task, status="unscored"))
    assert line["status"] == "unscored" and line["reason"] == "any answer passes" and line["speedup"]["best"] is None


def test_what_cannot_be_captured_says_why_and_is_still_searched(tmp_path: Path) -> None:
    text = TASK.replace("return torch.relu(x) + 0.0", "return torch.relu(x) if x.sum().item() > 0 else x")
    line = bench.run_job(job(write(tmp_path, "branch.py", text), tmp_path / "a.db"), lambda settings, task: FakeEvaluator(task))
    assert line["status"] == "ok" and line["captured"] is False and "not captured: " in line["reason"] and line["candidates"]["ok"] >= 1


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [("import torch\nclass Model(:\n", "not_built", "syntax error"), (TASK.replace("[torch.rand(8, 8)]", "1 / 0"), "not_built", "ZeroDivisionError")],
)
def test_a_broken_file_is_a_line(tmp_path: Path, text: str, status: str, reason: str) -> None:
    line = bench.run_job(job(write(tmp_path, "broken.py", text), tmp_path / "a.db"), lambda settings, task: FakeEvaluator(task))
    assert line["task"] == "broken" and line["status"] == status and reason in line["reason"]


def test_a_fault_of_ours_is_a_line_with_its_traceback(tmp_path: Path) -> None:
    def faulty(settings: bench.Settings, task: Task) -> Any:
        raise ZeroDivisionError("ours")

    line = bench.run_job(job(write(tmp_path, "relu.py"), tmp_path / "a.db"), faulty)
    assert line["status"] == "crashed" and "ZeroDivisionError: ours" in line["reason"]


def test_a_job_cut_short_is_not_finished(tmp_path: Path) -> None:
    path, archive = write(tmp_path, "relu.py"), tmp_path / "a.db"
    line = bench.run_job(job(path, archive, deadline=1.0), lambda settings, task: FakeEvaluator(task))
    assert "asked to stop" in line["stopped"]
    assert bench.finished(bench.Job.from_json(job(path, archive))) is None


# --- the run -----------------------------------------------------------------------------------------------------------------------


def note(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A stand-in for `run_job`: notes that it ran, finishes its task, and dies for tasks called so."""
    work = bench.Job.from_json(payload)
    task = work.describe()
    with open(Path(work.archive).with_name("ran.txt"), "a") as log:
        log.write(f"{task.name}\n")
    if task.name.startswith("dies"):
        os._exit(7)
    line = bench.plain_line(task.name, "ok", "")
    with Archive(work.archive) as archive:
        archive.add_outcome(task, work.settings.device, work.settings.key(work.machine), line)
    return line


def run(folder: Path, on_line: Any = None, **more: Any) -> list[dict[str, Any]]:
    return bench.run_bench([folder / "tasks"], QUICK, bench.Plan(str(folder / "archive.db"), run=f"{__name__}:note", **more), on_line)


def test_a_run_survives_a_job_that_dies_and_resumes(tmp_path: Path) -> None:
    for name in ("first.py", "dies.py", "last.py"):
        write(tmp_path / "tasks", name)
    told: list[str] = []
    lines = run(tmp_path, jobs=2, on_line=lambda line: told.append(line["task"]))
    assert {line["task"]: line["status"] for line in lines} == {"dies": "crashed", "first": "ok", "last": "ok"}
    assert sorted(told) == ["dies", "first", "last"] and "exit code 7" in next(line["reason"] for line in lines if line["task"] == "dies")
    again = run(tmp_path, resume=True)
    assert [line["task"] for line in again] == [line["task"] for line in lines]
    assert sorted((tmp_path / "ran.txt").read_text().split()) == ["dies", "dies", "first", "last"]


def test_settings_and_machine_decide_what_is_finished() -> None:
    other = bench.Settings(budget="4 proposals", baselines=("eager",))
    assert QUICK.key("a") == bench.Settings(budget="3 proposals", baselines=("eager",)).key("a")
    assert len({QUICK.key("a"), QUICK.key("b"), other.key("a")}) == 3
    again = bench.Job.from_json(bench.Job("x.py", QUICK, "a.db", "m").to_json())
    assert again == bench.Job("x.py", QUICK, "a.db", "m") and driver.kind_of_machine("cpu")


@pytest.mark.parametrize("interval", [-0.02, 1e-6, 1.0, 2, float("nan"), float("inf")])
def test_settings_from_python_have_an_interval_that_there_can_be(interval: float) -> None:
    with pytest.raises(UsageError, match="share of the speed-up"):
        bench.Settings(interval=interval)
    with pytest.raises(UsageError, match="share of the speed-up"):
        replace(QUICK, interval=interval)
    assert replace(QUICK, interval=0.02).interval == 0.02


def test_tasks_are_found_in_natural_order(tmp_path: Path) -> None:
    for name in ("level1/10_b.py", "level1/2_a.py", "level2/1_c.py"):
        write(tmp_path, name)
    write(tmp_path, "level1/helper.py", "VALUE = 1\n")
    write(tmp_path, "functions.py", FUNCTIONS)
    found = [(Path(path).stem, entry) for path, entry in bench.find_tasks([tmp_path])]
    assert found == [("functions", "one"), ("functions", "two"), ("2_a", None), ("10_b", None), ("1_c", None)]
    assert [Path(path).stem for path, _ in bench.find_tasks([tmp_path], "level1/*")] == ["2_a", "10_b"]
    assert [entry for _, entry in bench.find_tasks([tmp_path], "*.two")] == ["two"]


def test_what_is_not_found_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        bench.find_tasks([tmp_path / "absent"])
    with pytest.raises(UsageError, match=r"no task found in .* that matches 'x\*'"):
        bench.find_tasks([write(tmp_path, "relu.py")], "x*")
    assert bench.find_tasks([write(tmp_path, "helper.py", "VALUE = 1\n")]) == [(str((tmp_path / "helper.py").resolve()), None)]

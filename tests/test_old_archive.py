"""An archive that version 0.1.0 wrote before tasks kept their torch fields as options: it is read, resumed and reproduced."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from warpwright import api, bench, domains
from warpwright.archive import Archive
from warpwright.base import BASELINE, Budget, Candidate, Record, Task, is_baseline
from warpwright.loop import optimize

HERE = Path(__file__).parent / "fixtures" / "archive"
SETTINGS = bench.Settings("cpu", "ladder", "3", ("eager",), "tf32", timing_seconds=10.0)
"""As it was run: `warpwright bench collapse.py marked.py --target cpu --budget 3 --baselines eager --precision tf32`."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a copy of the archive and its task files."""
    for file in HERE.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["collapse", "marked.smooth"])
def test_its_keys_are_those_of_today(old: Path, name: str) -> None:
    task = SETTINGS.describe(old / f"{name.partition('.')[0]}.py")
    rows = sqlite3.connect(old / "archive.db").execute("SELECT key, task_key, candidate FROM records WHERE task = ? ORDER BY id", (name,)).fetchall()
    with Archive(old / "archive.db", readonly=True) as archive:
        records = archive.records(task)
    assert len(rows) == len(records) == 4
    assert [(record.key, record.task.key, record.candidate.key) for record in records] == rows
    assert {task_key for _, task_key, _ in rows} == {task.key}
    assert {record.task.options for record in records} == {task.options}


def test_its_finished_jobs_are_resumed(old: Path) -> None:
    [(settings,)] = sqlite3.connect(old / "archive.db").execute("SELECT DISTINCT settings FROM outcomes").fetchall()
    machine = (HERE / "machine.txt").read_text().strip()
    assert SETTINGS.key(machine) == settings
    line = bench.finished(bench.Job(str(old / "collapse.py"), SETTINGS, str(old / "archive.db"), machine))
    assert line is not None and line["task"] == "collapse" and line["status"] == "ok"


class Refusing:
    """An evaluator of the same versions that must not be asked for baselines, and builds no candidate."""

    device = "cpu"

    def __init__(self, task: Task, baselines: Sequence[Candidate], versions: Mapping[str, str]) -> None:
        self.task, self._baselines, self.versions = task, baselines, versions

    def baselines(self) -> Sequence[Candidate]:
        return self._baselines

    def evaluate_baselines(self) -> Iterable[Record]:
        raise AssertionError("the baselines are recorded")

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterable[Record]:
        yield from (Record(self.task, candidate, "cpu", "not_built", versions=self.versions) for candidate in candidates)


def test_its_baselines_answer_a_run_of_today_that_tries_the_old_recipe_too(old: Path) -> None:
    """The texts of programs have changed since, so that they are evaluated anew; nothing that was recorded is lost."""
    task = SETTINGS.describe(old / "collapse.py")
    with Archive(old / "archive.db") as archive:
        records = archive.records(task)
        baselines = [record.candidate for record in records if is_baseline(record)]
        assert [candidate.proposer for candidate in baselines] == [f"{BASELINE}eager"]
        evaluator = Refusing(task, baselines, records[0].versions)
        outcome = optimize(task, domains.space(task, "cpu"), evaluator, "ladder", Budget(None, 4), archive)
        assert outcome.records[0].key == records[0].key
        old_actions = next(r.candidate.actions for r in records if r.candidate.actions)
        assert old_actions in [record.candidate.actions for record in outcome.records]  # schedules of today may come before
        assert {record.key for record in records} <= {record.key for record in archive.records(task)}


def test_its_recipes_replay(old: Path) -> None:
    for file in ("collapse.py", "marked.py"):
        task = SETTINGS.describe(old / file)
        with Archive(old / "archive.db", readonly=True) as archive:
            records = [record for record in archive.records(task) if record.candidate.actions]
        assert records
        for record in records:
            replayed, note = api.replay(replace(record, task=task))
            assert replayed.actions == record.candidate.actions and "class ModelNew" in replayed.source.text
            assert note == "" or "another text today" in note

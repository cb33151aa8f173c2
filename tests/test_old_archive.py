"""An archive that version 0.1.0 wrote before tasks kept their torch fields as options: it is read, resumed and reproduced."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from warpwright import bench, domains
from warpwright.archive import Archive
from warpwright.base import BASELINE, Budget, Candidate, Record, is_baseline
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


class Recorded:
    """An evaluator of the same versions, which must not be asked."""

    device = "cpu"

    def __init__(self, baselines: Sequence[Candidate], versions: Mapping[str, str]) -> None:
        self._baselines, self.versions = baselines, versions

    def baselines(self) -> Sequence[Candidate]:
        return self._baselines

    def evaluate_baselines(self) -> Iterable[Record]:
        raise AssertionError("the baselines are recorded")

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterable[Record]:
        raise AssertionError(f"recorded, but to be evaluated again: {candidates[0].actions}")


def test_its_records_answer_a_run_of_today(old: Path) -> None:
    """The same search proposes the same programs, to the byte, and each is answered from the archive."""
    task = SETTINGS.describe(old / "collapse.py")
    with Archive(old / "archive.db") as archive:
        records = archive.records(task)
        baselines = [record.candidate for record in records if is_baseline(record)]
        assert [candidate.proposer for candidate in baselines] == [f"{BASELINE}eager"]
        evaluator = Recorded(baselines, records[0].versions)
        outcome = optimize(task, domains.space(task, "cpu"), evaluator, "ladder", Budget(None, 3), archive)
        assert outcome.proposals == 3 and [record.key for record in outcome.records] == [record.key for record in records]


def test_its_recipes_give_the_recorded_texts(old: Path) -> None:
    for file in ("collapse.py", "marked.py"):
        task = SETTINGS.describe(old / file)
        space = domains.space(task, "cpu")
        with Archive(old / "archive.db", readonly=True) as archive:
            recipes = [record.candidate for record in archive.records(task) if record.candidate.actions]
        assert recipes and all(space.candidate(candidate.actions).source == candidate.source for candidate in recipes)

"""Action data: rows of real records, merged without repetitions, the same in both forms; random programs that can be read; the file of the H200's."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from drawn_rows import drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_in import StandIn

from warpwright import cli, domains
from warpwright.archive import Archive
from warpwright.errors import UsageError
from warpwright.learn.policy import collect, random_tasks, rows
from warpwright.learn.policy.recorded import tasks_of
from warpwright.run import Settings

EXAMPLE = Path(__file__).parents[2] / "examples" / "linear_sum_task.py"


def test_rows_of_a_run(tmp_path: Path) -> None:
    told: list[str] = []
    settings_ = Settings(budget="4 proposals", baselines=("eager",))
    with Archive(tmp_path / "a.db") as archive:
        found = list(collect.collect([EXAMPLE, tmp_path / "none.py"], settings_, ("ladder", "random"), archive, told.append, lambda s, t: StandIn(t)))
    assert {row.task for row in found} == {"linear_sum_task"} and found[0].recipe == () and found[0].speedup == 1.0
    assert len(found) > 3 and all(row.status == "ok" and row.speedup == row.original_seconds / row.seconds for row in found)
    assert {"input", "@x", "linear", "sum"} <= set(found[0].program) and "left out" in told[1]
    [task] = tasks_of(found)
    assert task.best == max(row.speedup for row in found) and "@0" in task.asking().program


def test_merged_rows_have_no_repetitions_and_the_newest_counts(tmp_path: Path) -> None:
    found = drawn(2)
    newer = dataclasses.replace(found[3], speedup=99.0)
    assert rows.merged([*found, *found, newer]) == [*found[:3], newer, *found[4:]]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_both_forms_hold_the_same(tmp_path: Path, ending: str) -> None:
    found = [*drawn(2), dataclasses.replace(drawn(1)[0], roof=None, recipe=())]
    rows.write(tmp_path / f"rows.{ending}", found)
    assert rows.read(tmp_path / f"rows.{ending}") == found


def test_the_command_merges_files(tmp_path: Path) -> None:
    rows.write(tmp_path / "a.jsonl", drawn(2))
    rows.write(tmp_path / "b.parquet", drawn(3))
    merged = ["--merge", str(tmp_path / "a.jsonl"), "--merge", str(tmp_path / "b.parquet")]
    assert cli.main(["collect", *merged, "--out", str(tmp_path / "c.parquet")]) == 0
    assert rows.read(tmp_path / "c.parquet") == drawn(3)
    assert cli.main(["collect", "--out", str(tmp_path / "d.jsonl")]) == cli.WRONG_USE
    assert cli.main(["collect", "--merge", "a.jsonl", "--out", str(tmp_path / "d.csv")]) == cli.WRONG_USE


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"task": 1}\n')
    with pytest.raises(UsageError, match="expected rows"):
        rows.read(tmp_path / "x.jsonl")
    with pytest.raises(UsageError, match="No such file"):
        rows.read(tmp_path / "y.jsonl")


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_random_programs_run(seed: int) -> None:
    import torch

    names: dict[str, object] = {}
    text = random_tasks.text(seed)
    assert text == random_tasks.text(seed)
    with torch.device("meta"):
        exec(compile(text, "random", "exec"), names)
        made = names["Model"]().eval()(*names["get_inputs"]())  # type: ignore[operator]
    assert made.numel() > 0


def test_random_programs_are_task_files(tmp_path: Path) -> None:
    first, second = random_tasks.write(tmp_path, 2, 5)
    assert domains.describe(first).key != domains.describe(second).key

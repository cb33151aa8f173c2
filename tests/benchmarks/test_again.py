"""The driver that runs the sets of programs again: what it takes for a row, and what it calls a change."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks.transpile import again


def test_a_job_is_known_by_what_it_wrote_printed_or_left_open() -> None:
    def rows(text: str, limit: float = 20) -> list[dict[str, object]]:
        return again.done(again.Job("one", (sys.executable, "-S", "-c", text), limit), time.monotonic() + limit)

    writes = """open("ROW", "w").write('{"name": "a", "status": "verified"}')"""
    assert [(row["name"], row["status"], row["job"]) for row in rows(writes)] == [("a", "verified", "one")]
    assert rows("print('2 passed in 1.00s')")[0]["status"] == "passed"
    assert rows("raise SystemExit('no')")[0]["status"] == "no row"
    assert rows("pass") == []
    assert rows("import time; time.sleep(60)", 1.1)[0]["status"] == "cut"


def test_a_job_that_is_cut_off_keeps_its_rows_and_runs_again(tmp_path: Path) -> None:
    text = """import time; open("ROW", "w").write('{"name": "a", "status": "ok"}'); time.sleep(60)"""
    rows = again.done(again.Job("part", (sys.executable, "-S", "-c", text), 20), time.monotonic() + 1.1)
    assert [(row["name"], row["status"], row["job"]) for row in rows] == [("a", "ok", "part"), ("part", "cut", "part")]
    skip = tmp_path / "rows.jsonl"
    skip.write_text("".join(json.dumps({"set": "hpctranseval", **row}) + "\n" for row in rows))
    assert again.ended(skip) == set()
    with skip.open("a") as out:
        out.write(json.dumps({"set": "hpctranseval", "name": "a", "status": "ok", "job": "part", "job_s": 99.0}) + "\n")
    assert again.ended(skip) == {("hpctranseval", "part")}


def test_changed_statuses_are_told(tmp_path: Path) -> None:
    page = tmp_path / "rows.jsonl"
    page.write_text("".join(json.dumps({"name": name, "status": "verified"}) + "\n" for name in "ab"))
    rows: list[dict[str, object]] = [
        {"name": "a", "status": "verified"},
        {"name": "b", "status": "wrong", "reason": "own check"},
        {"name": "c", "status": "ran"},
    ]
    assert again.compared(rows, page) == ["b: verified -> wrong: own check", "not on the page, ran: c"]


def test_pages_that_are_compared_with_name_their_programs() -> None:
    """By `name` alone no row of these pages was found, and nothing ever differed."""
    names = {"hecbench": "kernelLaunch", "rodinia": "myocyte/one cell", "hpctranseval_cpu": "graph_1"}
    for page, name in names.items():
        rows = again.ROOT / "benchmarks/results" / page / "rows.jsonl"
        assert again.compared([{"name": name, "status": "lost"}], rows)[0].startswith(f"{name}: ")
    fixed: list[dict[str, object]] = [{"name": "myocyte/one cell", "status": "verified"}]
    assert again.compared(fixed, again.ROOT / "benchmarks/results/rodinia/rows.jsonl") == []

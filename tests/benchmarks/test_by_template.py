"""The table of templates: which recorded program stands for a task, what bounds it, and what a task has to move."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.kernels import by_template
from benchmarks.tables import RESULTS

TASK = "level1_9_Some"


def _row(table: str, ours: float, recipe: str, error: float = 1.0, **baselines: float) -> dict[str, object]:
    return {"table": table, "task": TASK, "ours ms": ours, "recipe": recipe, "errors": {"given": error}, **baselines}


def test_the_latest_run_speaks_for_a_task_and_any_for_its_baselines() -> None:
    rows = [
        _row("first", 1.0, "windows_cuda()", **{"eager ms": 3.0, "compile ms": 2.0}),
        _row("mended: first", 1.5, "fuse_cuda()", **{"eager ms": 2.5}),
        _row("mended: first", 0.5, "tf32x3()", 9.0),
        _row("mended: first", 1.2, "scans_cuda(); fuse_cuda()"),
        _row("tf32: first", 0.1, "x()"),
    ]
    found = by_template.timed(rows)  # type: ignore[arg-type]
    assert found == {TASK: {"run": "mended: first", "recipe": "scans_cuda(); fuse_cuda()", "ours ms": 1.2, "eager ms": 2.5, "compile ms": 2.0}}
    made = by_template.row_of(TASK, found[TASK], 4.22e9, 1e9)
    assert (made["table"], made["template"], made["of best"]) == ("memory", "scans", 1.67) and made["of copy"] == pytest.approx(1 / 1.2, abs=1e-3)
    assert by_template.row_of(TASK, found[TASK], 4e6, 0)["table"] == "cached"
    assert by_template.row_of(TASK, found[TASK], 1e8, 1.2e12)["TFLOP/s"] == 1000.0


def test_a_later_measurement_speaks_for_its_tasks() -> None:
    chosen = {TASK: {"run": "first", "recipe": "windows_cuda()", "ours ms": 1.0, "eager ms": 3.0, "compile ms": 2.0}}
    later = {"table": "memory-bound", "eager us": 3100.0, "action": "fuse_cuda()"}
    rows = [
        {**later, "case": "1:9 a", "version": "before", "us": 900.0}, {**later, "case": "1:9 a", "version": "now", "us": 850.0},
        {**later, "case": "1:9 a", "version": "now", "us": 800.0, "table": "memory-bound-3"},
        {**later, "case": "1:9 a", "version": "now, cluster", "us": 100.0}, {**later, "case": "1:91 b", "version": "now", "us": 100.0},
        {**later, "case": "1:9 a", "version": "now", "us": 100.0, "table": "shapes"},
    ]  # fmt: skip
    by_template.measured_since(chosen, rows)
    assert chosen[TASK] == {"run": "memory-bound", "recipe": "fuse_cuda()", "ours ms": 0.8, "eager ms": 3.0, "compile ms": 2.0}


def test_what_a_task_has_to_move(tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    file.write_text(
        "import torch\nclass Model(torch.nn.Linear):\n    pass\n"
        "def get_inputs():\n    return [torch.randn(16, 64)]\ndef get_init_inputs():\n    return [64, 32]\n"
    )
    assert by_template.work(file) == (4.0 * (16 * 64 + 64 * 32 + 32 + 16 * 32), 2.0 * 16 * 64 * 32)


def test_the_page_says_what_its_rows_say() -> None:
    folder = RESULTS / "templates_h200"
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    shares = [row["of copy"] for row in rows if row["table"] == "memory"]
    said = f"**Of {len(shares)} tasks that are bound by memory {sum(share >= 0.9 for share in shares)} reach 0.9"
    assert said in (folder / "README.md").read_text() and sum(share < 0.8 for share in shares) == 12

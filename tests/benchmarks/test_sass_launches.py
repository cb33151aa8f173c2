"""Launches of accepted schedules, compared without a GPU: whose cubin a schedule gets, what is counted, and what a failure is told as."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from fake_driver import HERE, compiled
from sass_cubins import checker, kernel, task_path

from benchmarks.sass import launches
from warpwright.domains.sass import script
from warpwright.domains.sass.editing import edits

HARNESS = (HERE / "saxpy_harness.py").read_text() + "\n\nsmall = launch\n"


def test_a_schedule_finds_its_cubin(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, names in ((first, ("sgemm", "stencil")), (second, ("sgemm__flags", "sgemm"))):
        folder.mkdir()
        for name in names:
            (folder / f"{name}.cubin").touch()
    homes = {name: launches.home_of(name, (first, second)) for name in ("sgemm", "sgemm__as", "sgemm__flags", "stencil__flags", "nbody")}
    expected = {"sgemm": first / "sgemm", "sgemm__as": first / "sgemm", "sgemm__flags": second / "sgemm__flags"}
    assert homes == expected | {"stencil__flags": None, "nbody": None}  # under other flags the code is another one


@pytest.mark.slow
@pytest.mark.compiler
def test_every_launch_is_counted_and_a_failure_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, schedules, out = compiled(tmp_path / "libfake.so"), tmp_path / "schedules", tmp_path / "out"
    path = task_path("saxpy_90", tmp_path).rename(tmp_path / "saxpy.cubin")
    (tmp_path / "saxpy.py").write_text(HARNESS)
    schedules.mkdir()
    block = len(kernel("saxpy_90").blocks[0])
    legal = next(made for place in range(block) if (made := edits.stall(checker("saxpy_90"), kernel("saxpy_90").original, place, 1)))
    (schedules / "saxpy_screen_0.json").write_text(script.write(legal))
    (schedules / "saxpy_other_0.json").write_text("{}")
    (schedules / "unknown_screen_0.json").write_text("{}")
    words = ["--cubins", tmp_path, "--schedules", schedules, "--launches", 30, "--jobs", 1, "--out", out, "--driver", driver, "--helpers", path]
    monkeypatch.setattr(sys, "argv", ["launches", *map(str, words)])
    launches.main()
    failed, done, every = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    assert "expected the text of a schedule" in failed["error"]
    assert (done["at the small size"], done["other words"], done["run"]) == (30, 0, tmp_path.name) and done["at its own size"] >= 30
    assert (every["schedules"], every["not compared"], every["launches"]) == (1, 1, 30 + done["at its own size"])

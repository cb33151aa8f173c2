"""A draw of KernelBench tasks: each level comes as far as the others, and a seed gives one order."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import pytest

from benchmarks.kernelbench import levels, run
from benchmarks.kernelbench.run import levels_in_turn

FILES = [(f"/kb/level{level}/{number}_Task.py", None) for level, count in ((1, 9), (2, 5), (3, 2)) for number in range(count)]


def test_levels_come_in_turn() -> None:
    order = levels_in_turn(FILES, 5)
    assert sorted(order) == sorted(FILES)
    assert [path.split("/")[2][-1] for path, _ in order] == list("123123121212") + list("1111")


def test_a_seed_gives_one_order() -> None:
    assert levels_in_turn(FILES, 5) == levels_in_turn(FILES, 5) != levels_in_turn(FILES, 6)


def test_levels_count_the_same_in_the_mean() -> None:
    def line(level: int, number: int, speedup: float, status: str = "ok") -> dict[str, object]:
        about = {"status": status, "reason": "why", "verdict": "FASTER" if speedup > 1 else "SAME"}
        return {"task": f"level{level}_{number}_X", **about, "speedup": {"best": speedup, "eager": speedup}}

    shown = levels.view([line(1, 1, 4.0), line(1, 2, 4.0), line(1, 3, 4.0), line(2, 1, 1.0), line(2, 2, 9.0, "unscored"), line(2, 3, 9.0, "wrong")])
    assert "| 1 | 3 | 3 | 3 | 0 | 4.00x [4.00, 4.00] | 4.00x [4.00, 4.00] |" in shown
    assert "against the best baseline: 2.00x [2.00, 2.00] over 5 tasks" in shown  # a wrong program keeps a baseline
    assert "level2_2_X: why" in shown


def test_a_run_sees_the_gpus_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = SimpleNamespace(stdout="1000\n2000\n4000\n")
    monkeypatch.setattr(run.subprocess, "run", lambda *_, **__: listed)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    options = argparse.Namespace(gpus=2, jobs_per_gpu=8)
    assert [(round(device.bytes / 2**20), run._environment(device)) for device in run._devices(options)] == [
        (920, {"CUDA_VISIBLE_DEVICES": "0"}), (1840, {"CUDA_VISIBLE_DEVICES": "1"}),
    ]  # fmt: skip
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    assert [(round(device.bytes / 2**20), run._environment(device)) for device in run._devices(options)] == [
        (3680, {"CUDA_VISIBLE_DEVICES": "2"}), (920, {"CUDA_VISIBLE_DEVICES": "0"}),
    ]  # fmt: skip
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with pytest.raises(SystemExit, match="expected 2 GPUs, saw 1"):
        run._devices(options)

"""A draw of KernelBench tasks: each level comes as far as the others, and a seed gives one order."""

from __future__ import annotations

import argparse
import math
import multiprocessing
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.kernelbench import first, first_table, levels, run, whole
from benchmarks.kernelbench.run import levels_in_turn

FILES = [(f"/kb/level{level}/{number}_Task.py", None) for level, count in ((1, 9), (2, 5), (3, 2)) for number in range(count)]


def line(level: int, number: int, speedup: float, status: str = "ok") -> dict[str, object]:
    about = {"status": status, "reason": "why", "verdict": "FASTER" if speedup > 1 else "SAME"}
    return {"task": f"level{level}_{number}_X", **about, "speedup": {"best": speedup, "eager": speedup}}


def test_levels_come_in_turn() -> None:
    order = levels_in_turn(FILES, 5)
    assert sorted(order) == sorted(FILES)
    assert [path.split("/")[2][-1] for path, _ in order] == list("123123121212") + list("1111")


def test_a_seed_gives_one_order() -> None:
    assert levels_in_turn(FILES, 5) == levels_in_turn(FILES, 5) != levels_in_turn(FILES, 6)


def test_levels_count_the_same_in_the_mean() -> None:
    shown = levels.view([line(1, 1, 4.0), line(1, 2, 4.0), line(1, 3, 4.0), line(2, 1, 1.0), line(2, 2, 9.0, "unscored"), line(2, 3, 9.0, "wrong")])
    assert "| 1 | 3 | 3 | 3 | 0 | 4.00x [4.00, 4.00] | 4.00x [4.00, 4.00] |" in shown
    assert "against the best baseline: 2.00x [2.00, 2.00] over 5 tasks" in shown  # a wrong program keeps a baseline
    assert "level2_2_X: why" in shown


def test_a_run_sees_the_gpus_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = SimpleNamespace(stdout="1000\n2000\n4000\n")
    monkeypatch.setattr(run.subprocess, "run", lambda *_, **__: listed)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    options = argparse.Namespace(gpus=2, jobs_per_gpu=8, promised=1.0)
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


def test_a_task_without_room_is_passed_by_a_few_only() -> None:
    device = run.Device(0, 10.0, 2)
    one = lambda name, size: SimpleNamespace(job=SimpleNamespace(path=name), bytes=size)  # noqa: E731
    device.running = [one("a", 4.0)]
    queue, passed, begun = [one("large", 9.0), *(one(f"small {number}", 1.0) for number in range(20))], Counter[str](), 0
    while chosen := run._fitting(device, queue, passed):
        begun += len(chosen)
        device.running = device.running[:1]
    assert begun == run.MOST_PASSED and queue[0].job.path == "large"
    device.running = []
    assert next(waiting.job.path for waiting in run._fitting(device, queue, passed)) == "large"


def test_memory_may_be_given_away_more_than_once() -> None:
    device = run.Device(0, 10.0, 3, [SimpleNamespace(bytes=6.0)])  # type: ignore[list-item]
    large: Any = SimpleNamespace(bytes=9.0)
    assert not device.takes(large) and replace(device, promised=1.5).takes(large) and not replace(device, promised=1.4).takes(large)


def test_first_programs_wait_for_room() -> None:
    turns = first.Turns(multiprocessing.get_context("spawn"), {"1:3": 40e9, "1:4": 1e9}, 3.0)
    large, small = Path("kb/level1/3_a.py"), Path("kb/level1/4_b.py")
    assert turns.bytes_of(small) < turns.bytes_of(large) <= turns.GPU_BYTES
    with turns.room(large):
        assert turns.left.value == turns.GPU_BYTES - turns.bytes_of(large)
    assert turns.left.value == turns.GPU_BYTES and turns.bytes_of(Path("tasks/any.py")) == turns.CONTEXT_BYTES


def test_none_goes_before_a_task_that_waits_for_room() -> None:
    turns = first.Turns(multiprocessing.get_context("spawn"), {"1:3": 20e9, "1:4": 1e9}, 3.0)
    large, small, began = Path("kb/level1/3_a.py"), Path("kb/level1/4_b.py"), list[str]()

    def wait(file: Path) -> None:
        with turns.room(file):
            began.append(file.stem)

    with turns.room(large):
        threads = [threading.Thread(target=wait, args=(file,)) for file in (large, small)]
        threads[0].start()
        while turns.next.acquire(block=False):  # until the first one has it
            turns.next.release()
        threads[1].start()
        threads[1].join(0.05)
        assert not began
    for thread in threads:
        thread.join()
    assert began == ["3_a", "4_b"]


def test_levels_say_what_all_that_were_begun_come_to() -> None:
    rows = [line(1, 1, 4.0), line(2, 1, 9.0), line(2, 2, 9.0, "unscored")]
    shown = levels.view([*rows, {"table": "cut", "task": "level1_2_b"}, {"table": "cut", "begun": "level2_3_c"}], cut="cut")
    assert "at 1.00x: 2.04x" in shown and "over 5 tasks" in shown and "baseline: 6.00x" in shown  # (2 + 9 ** (1 / 3)) by logarithms
    assert "cut short" not in levels.view(rows)


def test_a_task_that_was_asked_again_counts_once_by_its_last_answer() -> None:
    rows = [row | {"table": table} for table, row in (("again", line(1, 1, 4.0)), ("first", line(1, 1, 1.0)), ("first", line(1, 2, 9.0)))]
    assert "| 1 | 2 | 2 | 2 | 0 | 6.00x" in levels.view(rows, of=("first", "again"))
    assert "| 1 | 2 | 2 | 1 | 1 | 3.00x" in levels.view(rows, of="first")


def test_a_task_that_crashed_is_named_like_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpwright.bench.finished", lambda job: None)
    monkeypatch.setattr(run, "_tried", lambda job: [])
    run._note(tmp_path, SimpleNamespace(path="kb/level3/9_ResNet18.py"), RuntimeError("why"))  # type: ignore[arg-type]
    assert '"task": "level3_9_ResNet18"' in (tmp_path / "unfinished.jsonl").read_text()


def test_whole_levels_count_what_was_begun() -> None:
    times = {"eager ms": 4.0, "compile ms": 2.0, "errors": {"given": 1.0}}
    rows = [
        {"table": "first", "task": "level1_1_a", "ours ms": 1.0, "of best": 2.0, **times},
        {"table": "first", "task": "level1_1_a", "ours ms": 0.5, "of best": 4.0, **times, "errors": {"given": 9.0}},
        {"table": "first", "task": "level1_2_b", "ours ms": 4.0, "of best": 0.5, **times},
        {"table": "nothing", "task": "level1_3_c", "eager ms": 1.0, "compile ms": 2.0},
        {"table": "left out", "task": "level1_4_d", "begun": True}, {"table": "left out", "task": "level1_5_e", "begun": False},
        {"table": "failed", "task": "level2_1_f", "reason": "why"},
    ]  # fmt: skip
    text = first_table.whole(rows)
    assert "| level1 | 4 | 1 | 1.19x" in text and "| level2 | 1 | 0 | 1.00x" in text and math.isclose(2**0.25, 1.19, rel_tol=0.01)
    assert "not right: level1_1_a" in text and "best baseline: level1_2_b" in text and "1.00x: level1_4_d" in text and "failed: level2_1_f" in text


def test_both_parts_take_one_order(tmp_path: Path) -> None:
    for path, _ in FILES:
        file = tmp_path / path.removeprefix("/kb/")
        file.parent.mkdir(exist_ok=True)
        file.write_text("class Model:\n    pass\n\ndef get_inputs():\n    return []\n")
    drawn = whole.order(tmp_path, 7)
    assert len(drawn) == len(FILES) and drawn == whole.order(tmp_path, 7) != whole.order(tmp_path, 8) and whole._is("level1_1_a", "1:1")
    assert not whole._is("level1_11_a", "1:1")


def test_small_and_large_tasks_are_two_halves_of_a_draw(tmp_path: Path) -> None:
    for number in range(4):
        file = tmp_path / "level1" / f"{number}_Task.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text("class Model:\n    pass\n\ndef get_inputs():\n    return []\n")
    footprints = tmp_path / "footprints.json"
    footprints.write_text('{"1:0": 1e9, "1:1": 4.5e9, "1:2": 4.6e9}')  # of 1:3 nothing is known

    def chosen(*more: str) -> list[str]:
        options = run._options(["--kernelbench", str(tmp_path), "--levels", "1", "--gpus", "0", "--footprints", str(footprints), *more])
        return [run._pair(job.path) for job in run._jobs(options, tmp_path / "archive.db", 0.0)]

    assert chosen("--largest", "4.5") == ["1:0", "1:1"] and chosen("--smallest", "4.5") == ["1:2"] and len(chosen()) == 4
    options = argparse.Namespace(
        kernelbench=tmp_path, levels="1", seed=811, smallest=4.5, largest=math.inf, gpus=1, verdict_jobs=6, promised=1.0, baselines="eager",
        timing=2.0, verdicts=300.0, last=60.0, precision="strict", dry=False, out=tmp_path, resume=True,
    )  # fmt: skip
    command = whole.verdicts(options)
    asked = [word for name in ("--draw", "--smallest", "--largest") for word in command[command.index(name) :][:2]]
    assert chosen(*asked) == ["1:2"], "what whole.py asks of run.py"

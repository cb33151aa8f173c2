"""Tests of floors, positions and peaks."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from warpwright.errors import RooflineError, TaskError
from warpwright.tasks import taskfile
from warpwright.timing import counting, roofline
from warpwright.timing.rates import Peaks, Work

TASKS = Path(__file__).parents[1] / "tasks"
PEAKS = Peaks("cuda:0", memory=4e12, cache=10e12, cache_bytes=50_000_000, flops={"float32": 60e12, "tf32": 400e12, "bfloat16": 800e12})


def test_floor_of_large_work_is_its_bytes_at_the_peak() -> None:
    floor = roofline.floor_seconds(Work(4_000_000_000, 4_000_000_000), PEAKS)
    assert floor == pytest.approx(8e9 / 4e12 / 1.15, rel=0.02)


def test_floor_of_small_work_supposes_the_cache() -> None:
    assert roofline.floor_seconds(Work(1_000_000, 1_000_000), PEAKS) == pytest.approx(2e6 / 10e12 / 1.15)
    assert roofline.floor_seconds(Work(0, 0, note="not counted"), PEAKS) == 0.0


def test_floor_ignores_arithmetic_and_parameters() -> None:
    plain, heavy = Work(10**6, 10**6), Work(10**6, 10**6, 10**9, {"float32": 1e15})
    assert roofline.floor_seconds(plain, PEAKS) == roofline.floor_seconds(heavy, PEAKS)


def test_floor_on_a_cpu_leaves_more_room() -> None:
    cpu = Peaks("cpu", 4e12, 10e12, 50_000_000, {})
    assert roofline.floor_seconds(Work(10**9, 0), cpu) < roofline.floor_seconds(Work(10**9, 0), PEAKS)


def test_positions_in_words() -> None:
    copy = Work(4_000_000_000, 4_000_000_000)
    assert str(roofline.position(copy, PEAKS, 8e9 / 4e12 / 0.62)) == "62 % of the bandwidth roof"
    product = Work(10**6, 10**6, 0, {"float32": 60e12})
    assert str(roofline.position(product, PEAKS, 2.0)) == "50 % of the arithmetic roof"
    assert str(roofline.position(product, PEAKS, 2.0, tf32=True)) == "8 % of the arithmetic roof"
    assert "avoided" in str(roofline.position(product, PEAKS, 0.5))


def test_an_unknown_type_is_charged_at_the_best_rate() -> None:
    assert roofline.position(Work(0, 0, 0, {"float8": 8e14}), PEAKS, 1.0).arithmetic == pytest.approx(1.0)


def test_work_is_counted_in_another_process() -> None:
    work = roofline.work(taskfile.describe(TASKS / "softmax.py"))
    assert work == Work(256 * 2048 * 4, 256 * 2048 * 4)


def test_an_answer_is_kept_for_the_task_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(roofline, "_ask", lambda question, timeout: asked.append(question) or {"bytes_read": len(asked), "bytes_written": 0})
    task = taskfile.describe(TASKS / "softmax.py")
    first = roofline.work(task, folder=tmp_path)
    assert roofline.work(task, folder=tmp_path) == first and len(asked) == 1
    assert roofline.work(replace(task, source_digest="another text"), folder=tmp_path).bytes_read == 2
    [kept, _] = sorted(tmp_path.rglob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    kept.write_text("{")
    assert roofline.work(task, folder=tmp_path).bytes_read == 3


def test_a_task_that_cannot_be_counted_has_no_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked in this process; that another one's words come back, the process that was started ahead shows."""
    path = tmp_path / "reads_values.py"
    path.write_text(
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x * x.sum().item()\n"
        "def get_inputs():\n    return [torch.randn(4)]\ndef get_init_inputs():\n    return []\n"
    )
    task = taskfile.describe(path)
    with pytest.raises(TaskError) as raised:
        counting.count(task)

    def ask(question: object, timeout: float) -> dict[str, object]:
        raise RooflineError(str(raised.value))

    monkeypatch.setattr(roofline, "_ask", ask)
    work = roofline.work(task)
    assert work.bytes == 0 and work.note.startswith("not counted") and roofline.floor_seconds(work, PEAKS) == 0.0


def test_peaks_are_measured_once_and_only_rise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    answers = [{"memory": 1e9, "cache": 5e9}, {"memory": 3e9, "cache": 4e9}]

    def ask(question: object, timeout: float, probe: object) -> dict[str, object]:
        asked.append(question)
        return {"device": "cpu", "cache_bytes": 1 << 20, "flops": {"float32": 1e9}, "versions": {}, **answers[len(asked) - 1]}

    monkeypatch.setattr(roofline, "_ask", ask)
    first = roofline.peaks("cpu", tmp_path)
    assert roofline.peaks("cpu", tmp_path) == first and len(asked) == 1
    again = roofline.peaks("cpu", tmp_path, measure_again=True)
    assert (again.memory, again.cache) == (3e9, 5e9)
    assert again.times == 2 and roofline.peaks("cpu", tmp_path) == again
    [kept] = tmp_path.glob("peaks-cpu-*.json")
    data = json.loads(kept.read_text())
    assert data["when"] and data["machine"] and data["memory"] == 3e9
    kept.write_text('{"old": 1}')
    asked.clear()
    assert roofline.peaks("cpu", tmp_path).memory == 1e9


def test_peaks_are_not_measured_again_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    answer = {"device": "cpu", "memory": 1e9, "cache": 5e9, "cache_bytes": 1, "flops": {}, "versions": {}}
    monkeypatch.setattr(roofline, "_ask", lambda *question: asked.append(question) or answer)
    for _ in range(5):
        roofline.peaks("cpu", tmp_path, measure_again=True)
    assert len(asked) == roofline.MOST_TIMES


def test_a_process_started_ahead_is_the_one_that_is_asked_and_says_why_it_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    probe = roofline.probe_ahead("cpu", tmp_path)
    assert probe is not None and probe.poll() is None
    monkeypatch.setattr(roofline, "_start", lambda device="": pytest.fail("another one was started"))
    with pytest.raises(RooflineError, match=r"\w"):
        roofline._ask({"device": "cuda:99"}, 120.0, probe)
    assert probe.returncode


def test_no_process_is_started_for_peaks_that_are_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(roofline, "_ask", lambda *_: {"device": "cpu", "memory": 1.0, "cache": 1.0, "cache_bytes": 1, "flops": {}, "versions": {}})
    roofline.peaks("cpu", tmp_path)
    assert roofline.probe_ahead("cpu", tmp_path) is None


def test_the_probe_measures_something(monkeypatch: pytest.MonkeyPatch) -> None:
    from warpwright.timing import peaks_probe

    monkeypatch.setattr(peaks_probe, "SECONDS", 0.005)
    found = peaks_probe.bandwidth("cpu", 1 << 20)
    assert 1e6 < found < 1e13
    assert 1e7 < peaks_probe.product_rate("cpu", peaks_probe.torch.float32, 128) < 1e15


def test_a_process_that_takes_too_long_leaves_the_peaks_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "_start", lambda: subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    with pytest.raises(RooflineError, match="not known after"):
        roofline._ask({"device": "cpu"}, 0.05)

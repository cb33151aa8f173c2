"""The child process, against a driver without a GPU: wrong bits, a broken context and a hang cost one candidate and a new child."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sass_cubins import cubin, task_path

from warpwright import domains
from warpwright.base import Budget, Candidate, Source
from warpwright.errors import TaskError, UsageError, WorkerDied, WorkerTimeout
from warpwright.loop import optimize
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator, comparison, interval

HERE = Path(__file__).parent
pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the driver without a GPU."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("driver") / "libfake.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", "-o", str(library), str(HERE / "fake_cuda.c")], check=True, timeout=250)
    return library


@pytest.fixture
def evaluator(driver: Path, tmp_path: Path) -> Iterator[CubinEvaluator]:
    path = task_path("saxpy_90", tmp_path)
    task = domains.describe(path, {"harness": str(HERE / "saxpy_harness.py")})
    with CubinEvaluator(task, "cubin:0", Measuring(), str(driver), path) as made:
        yield made


def marked(mark: bytes) -> bytes:
    """Return saxpy's cubin with a mark in the padding behind its code."""
    read = cubin("saxpy_90")
    code = read.code("saxpy")
    end = code.offset + code.size
    return read.data[: end - 16] + mark + read.data[end - 16 + len(mark) :]


def ask(evaluator: CubinEvaluator, mark: bytes, seconds: float = 5.0) -> dict[str, list[float]]:
    image = evaluator._write(marked(mark))
    return dict(evaluator.child.ask({"do": "evaluate", "image": str(image), "seeds": [1, 2], "rounds": [6], "worth": 0.0}, seconds))


def test_a_search_runs_through_the_child(evaluator: CubinEvaluator) -> None:
    space = domains.space(evaluator.task, "cubin")
    outcome = optimize(evaluator.task, space, evaluator, "greedy", Budget(None, 6))
    assert [record.status for record in outcome.records] == ["ok"] * 7 and len(evaluator.child.starts) == 1
    assert outcome.best is not None and outcome.best.speedup == 1.0  # the fake driver takes as long for every schedule
    final = evaluator.confirm(outcome.records[-1].candidate, pairs=3, stress=0.01)
    assert final.differ == 0 and final.launches >= 40 and final.interval == (1.0, 1.0)
    assert len(evaluator.child.starts) == 2  # a process of its own


def test_a_slower_candidate_is_slower(evaluator: CubinEvaluator) -> None:
    said = ask(evaluator, b"SLOWS")
    assert said["differ"] == [0, 0]
    median, low, high = interval([a / b for a, b in zip(said["original_us"], said["candidate_us"], strict=True)], 0.95)
    assert median == pytest.approx(20 / 22, rel=1e-4) and comparison(low, high, 1.0) == "SLOWER"


def test_wrong_bits_are_counted(evaluator: CubinEvaluator) -> None:
    said = ask(evaluator, b"WRONG")
    assert said["differ"] == [1, 1] and said["candidate_us"] == []


def test_a_broken_context_and_a_hang_cost_one_candidate(evaluator: CubinEvaluator) -> None:
    with pytest.raises(WorkerDied, match="700"):
        ask(evaluator, b"ERROR")
    assert ask(evaluator, b"OTHER")["differ"] == [0, 0]
    with pytest.raises(WorkerTimeout, match="1 s"):
        ask(evaluator, b"HANGS", 1.0)
    assert ask(evaluator, b"OTHER")["differ"] == [0, 0]
    assert len(evaluator.child.starts) == 3


def test_a_foreign_schedule_is_checked_and_refused(evaluator: CubinEvaluator) -> None:
    text = json.dumps({"original": evaluator.kernel.digest, "order": {}, "control": {"4": "B------:R-:W-:-:S01:---"}})
    [record] = evaluator.evaluate([Candidate(Source("sass", (("schedule.json", text),), "saxpy"), "cubin")])
    assert record.status == "not_built" and "model of hazards" in record.detail
    assert not evaluator.child.starts  # it never ran


def test_a_harness_that_does_not_fit_is_named(driver: Path, tmp_path: Path) -> None:
    path = task_path("saxpy_90", tmp_path)
    harness = tmp_path / "harness.py"
    imports, body = "from warpwright.domains.sass.harness import Launch", "return Launch('saxpy', (1, 1, 1), (32, 1, 1), (1, 2, 3, 4, 5))"
    lines = (imports, "def launch():", f"    {body}")
    harness.write_text("\n".join(lines))
    task = domains.describe(path, {"harness": str(harness)})
    with CubinEvaluator(task, "cubin:0", Measuring(), str(driver), path) as made, pytest.raises(TaskError, match="at most 4 arguments"):
        list(made.evaluate_baselines())
    with pytest.raises(UsageError, match="harness"):
        CubinEvaluator(domains.describe(path), "cubin:0", Measuring(), str(driver), path)


def test_intervals_are_order_statistics() -> None:
    values = [float(value) for value in range(1, 13)]
    assert interval(values, 0.95) == (6.5, 3.0, 10.0)  # ranks 3 and 10 of 12 cover 96 %
    assert interval(values[:3], 0.99) == (2.0, 1.0, 3.0)
    assert math.isclose(interval([float(value) for value in range(300)], 0.99)[1], 127.0)

"""The child process, against a driver without a GPU: wrong bits, a broken context and a hang cost one candidate and a new child."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from fake_driver import compiled, evaluated, marked
from sass_cubins import task_path

from warpwright import domains
from warpwright.base import Budget, Candidate, Source
from warpwright.domains.sass import script
from warpwright.errors import TaskError, UsageError, WorkerDied, WorkerTimeout
from warpwright.loop import optimize
from warpwright.space import Measuring
from warpwright.targets.cubin import judging, process, racing, shipping
from warpwright.targets.cubin.evaluator import CubinEvaluator, comparison
from warpwright.targets.cubin.judging import interval
from warpwright.targets.cubin.process import Child, Process

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("driver") / "libfake.so")


@pytest.fixture
def evaluator(driver: Path, tmp_path: Path) -> Iterator[CubinEvaluator]:
    with evaluated(driver, tmp_path) as made:
        yield made


def ask(evaluator: CubinEvaluator, mark: bytes, seconds: float = 5.0) -> dict[str, list[float]]:
    image = evaluator._write(marked(mark))
    return dict(evaluator.child.ask({"do": "evaluate", "image": str(image), "seeds": [1, 2], "rounds": [6], "worth": 0.0}, seconds))


def test_a_search_runs_through_the_child(evaluator: CubinEvaluator) -> None:
    space = domains.space(evaluator.task, "cubin")
    outcome = optimize(evaluator.task, space, evaluator, "greedy", Budget(None, 6))
    assert [record.status for record in outcome.records] == ["ok"] * 7 and len(evaluator.child.starts) == 1
    assert evaluator.child.about["graphs"] and evaluator.child.about["inner"] > 1
    assert outcome.best is not None and outcome.best.speedup == 1.0  # the fake driver takes as long for every schedule
    judgement = evaluator.judge(outcome.records[-1].candidate, stress=0.01)
    assert judgement.differ == 0 and judgement.launches >= 40 and judgement.interval == (1.0, 1.0) and not judgement.accepted
    assert len(evaluator.child.starts) == 2  # a process of its own


def test_a_driver_from_before_cuda_11_4_launches_one_by_one(tmp_path: Path) -> None:
    with evaluated(compiled(tmp_path / "libfake.so", "-DBEFORE_11_4"), tmp_path) as evaluator:
        assert ask(evaluator, b"SLOWS")["differ"] == [0, 0]
        assert not evaluator.child.about["graphs"]


def test_the_evidence_says_what_cold_caches_gain(evaluator: CubinEvaluator, driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = optimize(evaluator.task, domains.space(evaluator.task, "cubin"), evaluator, "greedy", Budget(None, 4))
    helpers = Path(evaluator.task.path)
    monkeypatch.setattr(shipping, "CubinEvaluator", lambda *arguments: CubinEvaluator(*arguments, str(driver), helpers))
    shipped = shipping.ship(replace(outcome.records[-1], device="cubin:0"), tmp_path)
    evidence = json.loads((tmp_path / shipping.EVIDENCE).read_text())
    assert evidence["cold"] == [1.0, 1.0, 1.0] and evidence["kept"] is False  # the fake driver takes as long for every schedule
    assert shipped.read_bytes() == helpers.read_bytes() and isinstance(evidence["other_hints"], bool)


def test_a_slower_candidate_is_slower(evaluator: CubinEvaluator) -> None:
    said = ask(evaluator, b"SLOWS")
    assert said["differ"] == [0, 0]
    median, low, high = interval([a / b for a, b in zip(said["original_us"], said["candidate_us"], strict=True)], 0.95)
    assert median == pytest.approx(20 / 22, rel=1e-4) and comparison(low, high, 1.0) == "SLOWER"


def test_a_loser_is_timed_for_the_first_round_alone(evaluator: CubinEvaluator) -> None:
    request = {"do": "evaluate", "seeds": [1], "rounds": [2, 4, 12], "worth": 0.999, "fresh": [7, 8]}
    said = {mark: evaluator.child.ask(request | {"image": str(evaluator._write(marked(mark)))}) for mark in (b"SLOWS", b"OTHER")}
    assert [len(said[mark]["original_us"]) for mark in (b"SLOWS", b"OTHER")] == [2, 18]
    assert said[b"SLOWS"]["differ"] == [0] and said[b"OTHER"]["differ"] == [0, 0, 0]  # what may be the best is compared on new inputs


def test_a_guard_that_one_candidate_overran_is_not_the_next_ones_fault(evaluator: CubinEvaluator) -> None:
    """It was never restored: whoever came after a candidate that wrote behind its array was refused too."""
    assert ask(evaluator, b"GUARD")["differ"] == [1, 1]
    assert ask(evaluator, b"OTHER")["differ"] == [0, 0]
    assert len(evaluator.child.starts) == 1


def test_guards_are_looked_at_behind_timed_launches_too(evaluator: CubinEvaluator) -> None:
    said = ask(evaluator, b"LATER")
    assert said["differ"] == [0, 0] and said["left"] > 0
    assert ask(evaluator, b"OTHER")["left"] == 0


def judged(evaluator: CubinEvaluator, mark: bytes) -> judging.Judgement:
    image, original = evaluator._write(marked(mark)), evaluator._write(evaluator.shipped.cubin.data)
    return judging.judge(evaluator.child, image, original, seeds=2, stress=0.01)


def test_what_is_slower_on_cold_caches_is_refused_for_that(evaluator: CubinEvaluator) -> None:
    cold = judged(evaluator, b"COLDS")
    assert cold.speedup == pytest.approx(20 / 18, rel=1e-4) and cold.cold[0] == pytest.approx(20 / 22, rel=1e-3)
    assert cold.only_cold_refuses and "on cold caches" in cold.refusal
    assert judged(evaluator, b"WRONG").refusal == "2 other words in 2 launches"


def test_inputs_that_serve_many_candidates_still_show_a_wrong_one(evaluator: CubinEvaluator) -> None:
    for mark, wrong in ((b"OTHER", 0), (b"WRONG", 1), (b"WRONG", 1), (b"OTHER", 0)):
        image = str(evaluator._write(marked(mark)))
        said = evaluator.child.ask({"do": "evaluate", "image": image, "seeds": [5], "rounds": [], "worth": 0.0})
        assert said["differ"] == [wrong]


def test_a_gpu_is_held_while_a_child_answers(evaluator: CubinEvaluator) -> None:
    evaluator.child.start()
    image = str(evaluator._write(marked(b"OTHER")))
    request = {"do": "evaluate", "image": image, "seeds": [1], "rounds": [], "worth": 0.0}
    with ThreadPoolExecutor(1) as pool:
        with evaluator.child.lock.exclusive():
            waiting = pool.submit(evaluator.child.ask, request)
            with pytest.raises(TimeoutError):
                waiting.result(0.3)
        assert waiting.result(10.0)["differ"] == [0]


def test_other_cubins_of_the_kernel_are_measured_beside_it(evaluator: CubinEvaluator) -> None:
    assert evaluator.glance(marked(b"SLOWS"), 0.9) == (pytest.approx(20 / 22, rel=1e-4), 0)
    assert evaluator.glance(marked(b"WRONG"), 0.9) == (0.0, 1)
    assert evaluator.glance(marked(b"LATER"), 0.9) == (0.0, 2)  # behind its array, while it was timed
    (speedup, low, high), differ = evaluator.against(marked(b"SLOWS"))
    assert (low, speedup, high) == (pytest.approx(20 / 22, rel=1e-4),) * 3 and differ == 0
    (cold, *_), differ = evaluator.against(marked(b"SLOWS"), cold=True)
    assert cold == pytest.approx(20 / 22, rel=1e-3) and differ == 0
    launches, differ = evaluator.launches(marked(b"WRONG"), 0.0, "launch", each=10)
    assert launches == 10 and differ == 10


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


def waiting(child: Child) -> Process:
    """Return the child's spare, once it holds its context."""
    child.keep_spare()
    until = time.monotonic() + 60.0
    while child.spare is not None and not child.spare.has_answered:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert child.spare is not None
    return child.spare


def test_a_job_that_is_written_anew_stays_whole_for_who_reads_it(evaluator: CubinEvaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spare that comes up may be reading it when the next child is launched."""
    monkeypatch.setattr(process, "Process", lambda job, *words: (job, words))
    child = evaluator.child
    job, _ = child._launched("spare")  # type: ignore[misc]
    with Path(job).open() as reading:
        child._launched()
        assert os.fstat(reading.fileno()).st_ino != os.stat(job).st_ino and reading.read() == Path(job).read_text()
    assert [path.name for path in Path(job).parent.glob("job*")] == ["job.json"]


def test_a_spare_takes_over_from_a_child_that_broke(driver: Path, tmp_path: Path) -> None:
    with evaluated(driver, tmp_path) as evaluator:
        child, text = evaluator.child, script.write(evaluator.shipped.original)
        [record] = evaluator.evaluate([Candidate(Source("sass", (("schedule.json", text),), "saxpy"), "cubin")])
        assert record.status == "ok" and child.spare is not None  # whoever searches keeps one
        spare = waiting(child)
        with pytest.raises(WorkerDied, match="700"):
            ask(evaluator, b"ERROR")
        assert child.process is None and child.spare is spare  # it is not told of the failure
        assert ask(evaluator, b"WRONG")["differ"] == [1, 1] and child.process is spare and child.spare is None
        assert len(child.starts) == 2 and len(child.replacements) == 1 and child.replacements[0] >= child.starts[1]
        child.keep_spare()
        both = (child.process, child.spare)
    assert all(process is not None and process.popen.poll() is not None for process in both)  # none outlives the evaluator


def test_what_is_not_ready_or_cannot_take_over_is_no_spare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with evaluated(compiled(tmp_path / "libfake.so", "-DFULL"), tmp_path) as evaluator:
        child = evaluator.child
        child.start()
        spare = waiting(child)
        child.kill()
        with monkeypatch.context() as patched:
            patched.setattr(Process, "has_answered", False)
            assert child.start() and child.spare is spare  # it is kept for the next time
        child.kill()
        assert child.start() and child.process is not spare and child.spare is None  # the device has no memory left for one
        assert spare.popen.poll() == 2 and len(child.replacements) == 2


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


def test_a_race_drops_what_is_surely_behind() -> None:
    assert racing.rounds(100.0) == (1, 1, 2, 4, 10) and racing.rounds(1000.0) == (1, 4)
    assert racing.is_out([0.98], 1.0, 0.002) and not racing.is_out([0.995], 1.0, 0.002)
    assert not racing.is_out([0.97, 1.001], 1.0, 0.002)  # a busy host wrongs one pair, not two
    assert racing.is_out([0.997, 0.998, 0.9975, 0.998, 0.997, 0.9975], 1.0, 0.002)
    assert racing.spread([1.0, 1.002, 0.998, 1.001]) == pytest.approx(0.00148, rel=0.01)
    middle, low, high = racing.widened((1.01, 1.01, 1.01), 1, 0.002)
    assert low == pytest.approx(1.01 * math.exp(-0.004)) and high == pytest.approx(1.01 * math.exp(0.004)) and middle == 1.01
    assert racing.widened((1.01, 1.0, 1.02), 6, 0.002) == (1.01, 1.0, 1.02)


def test_intervals_are_order_statistics() -> None:
    values = [float(value) for value in range(1, 13)]
    assert interval(values, 0.95) == (6.5, 3.0, 10.0)  # ranks 3 and 10 of 12 cover 96 %
    assert interval(values[:3], 0.99) == (2.0, 1.0, 3.0)
    assert math.isclose(interval([float(value) for value in range(300)], 0.99)[1], 127.0)

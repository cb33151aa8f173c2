"""Outputs of timed calls that are judged when the timing is over, and the sketches of answers that they are judged by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from warpwright.base import Candidate, Case, Source, to_json  # noqa: E402
from warpwright.space import Measuring  # noqa: E402
from warpwright.targets.local import LocalEvaluator  # noqa: E402
from warpwright.tasks import taskfile  # noqa: E402
from warpwright.timing.device_lock import DeviceLock  # noqa: E402
from warpwright.verifier import timed  # noqa: E402
from warpwright.verifier.judge.judge_worker import JudgeWorker  # noqa: E402
from warpwright.verifier.judge_client import TIMED_STATE, Comparison, Judge  # noqa: E402
from warpwright.workers.sandbox import Worker  # noqa: E402
from warpwright.workers.tensors import exchange  # noqa: E402

TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(48, 40)

    def forward(self, x):
        return torch.softmax(self.layer(x), 1)

def get_inputs():
    return [torch.randn(64, 48)]

def get_init_inputs():
    return []
"""
LATER_WRONG = TASK.replace("class Model(torch.nn.Module):", "class ModelNew(torch.nn.Module):\n    calls = 0\n").replace(
    "        return", "        ModelNew.calls += 1\n        x = x * (1.5 if ModelNew.calls > CALLS else 1.0)\n        return"
)


@pytest.fixture
def worker(tmp_path: Path) -> JudgeWorker:
    """A judge of the task, in this process, that knows a few cases."""
    path = tmp_path / "softmax.py"
    path.write_text(TASK)
    (tmp_path / "exchange").mkdir()
    made = JudgeWorker({"device": "cpu", "exchange": str(tmp_path / "exchange"), "isolation": []})
    made.open(to_json(taskfile.describe(path)), "5eed5", False)
    for seed in range(4):
        for name in ("nominal", "normal", "huge"):
            made._original.answer(Case(name, seed), TIMED_STATE)
    return made


def own(worker: JudgeWorker, case: Case) -> Any:
    return worker._original.run_own(worker._original.inputs(case), TIMED_STATE).clone()


def exported(worker: JudgeWorker, output: Any) -> tuple[Any, str]:
    shelf = exchange.Shelf(worker.shelf.folder)
    return exchange.encode(output, shelf.put, trusted=True), shelf.folder


def judged(worker: JudgeWorker, output: Any, case: Case, **more: Any) -> dict[str, Any]:
    tree, folder = exported(worker, output)
    return worker.compare(tree, {"name": case.name, "seed": case.seed, "params": {}}, TIMED_STATE, folder, [], **more)


def test_a_sketch_allows_no_more_than_the_whole_answer(worker: JudgeWorker) -> None:
    original = worker._original
    for seed in range(100, 112):
        case = Case("nominal", seed)
        sketch = original.sketch(case, TIMED_STATE)
        assert sketch is not None and sketch.sketched
        answer = original.answer(case, TIMED_STATE)
        for drawn, whole in zip(sketch.leaves, answer.leaves, strict=True):
            assert torch.equal(drawn.exact, whole.exact) and (drawn.shape, drawn.stride, drawn.dtype) == (whole.shape, whole.stride, whole.dtype)
            for kind in ("max", "rms", "centred"):
                assert 0 < getattr(drawn.allowed, kind) <= getattr(whole.allowed, kind) * (1 + 1e-12)


def test_what_is_known_or_not_nominal_is_not_sketched(worker: JudgeWorker) -> None:
    original = worker._original
    assert original.sketch(Case("nominal", 0), TIMED_STATE) is None and original.sketch(Case("huge", 77), TIMED_STATE) is None
    original.mutates_state = True
    assert original.sketch(Case("nominal", 78), TIMED_STATE) is None


def test_small_parts_and_results_that_are_not_finite_need_the_whole_answer(worker: JudgeWorker) -> None:
    original = worker._original
    leaf = original.plain.leaves[0]  # type: ignore[union-attr]
    exact = torch.rand(leaf.shape, dtype=torch.float64) + 0.1
    original.largest[leaf.path] = {dimension: torch.ones(size) for dimension, size in enumerate(leaf.shape)}
    assert original._sketched(leaf, exact) is not None
    assert original._sketched(leaf, exact.index_fill(0, torch.tensor([3]), float("inf"))) is None
    small = exact.index_fill(1, torch.tensor([7]), 1e-9)
    assert original._sketched(leaf, small) is not None, "in other cases it is as large as the rest"
    original.largest[leaf.path][1][7] = 1e-3
    assert original._sketched(leaf, small) is None


def test_a_right_output_is_passed_without_a_run_of_the_original_and_a_wrong_one_by_the_whole_answer(
    worker: JudgeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, other, case = own(worker, Case("nominal", 200)), own(worker, Case("nominal", 201)), Case("nominal", 200)
    runs: list[str] = []
    run_own = worker._original.run_own
    monkeypatch.setattr(worker._original, "run_own", lambda *given: runs.append("own") or run_own(*given))
    assert judged(worker, right, case)["check"] == "" and not runs
    assert judged(worker, right + 1e-4, case)["check"] == "values" and runs
    assert judged(worker, other, Case("nominal", 202))["check"] == "values"
    assert judged(worker, right.double(), Case("nominal", 203))["check"] == "dtype"
    assert judged(worker, right[:, :8], Case("nominal", 204))["check"] == "shape"


def test_an_output_is_copied_when_it_is_set_aside(worker: JudgeWorker) -> None:
    case, output = Case("nominal", 300), own(worker, Case("nominal", 300))
    tree, folder = exported(worker, output)
    number = worker.set_aside(tree, folder)["number"]
    later, _ = exported(worker, output * 2)  # what the program has done since
    assert judged(worker, output * 2, case, aside=number)["check"] == "" and not worker.aside
    assert worker.compare(later, {"name": "nominal", "seed": 300, "params": {}}, TIMED_STATE, folder, [])["check"] == "values"


def test_no_more_wait_than_there_is_memory_for(worker: JudgeWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, folder = exported(worker, own(worker, Case("nominal", 0)))
    worker._original.budget = 3 * 64 * 40 * 4 * 2
    assert [bool(worker.set_aside(tree, folder)) for _ in range(3)] == [True, True, False]
    worker.drop_aside()
    assert worker.set_aside(tree, folder) and len(worker.aside) == 1


class Asked:
    """A judge that counts what it is asked for."""

    def __init__(self, wrong: int = -1, room: int = 99) -> None:
        self.facts, self.compared, self.wrong, self.room, self.numbers = {"stateful": False, "mutated_state": False}, [], wrong, room, iter(range(99))

    def set_aside(self, export: Any) -> int | None:
        number = next(self.numbers)
        return number if number < self.room else None

    def compare(self, export: Any, case: Case, which: int, aside: int | None = None) -> Comparison:
        self.compared.append(aside)
        return Comparison("values", "0.5 too much", 9.0) if len(self.compared) - 1 == self.wrong else Comparison("")


def program(judge: Any, puts_off: bool = True) -> timed.TimedProgram:
    return timed.TimedProgram(judge, SimpleNamespace(device="cpu", role="candidate"), "candidate", puts_off=puts_off)  # type: ignore[arg-type]


def test_what_is_put_off_is_judged_in_order_and_the_first_that_is_wrong_refuses() -> None:
    judge = Asked(wrong=1)
    one = program(judge)
    for seed in range(4):
        assert not one._judged({"tree": seed}, Case("nominal", seed)).check
    assert not judge.compared and one.waits_for_judgement
    verdict = one.judged_later()
    assert verdict is not None and not verdict.ok and "in a timed call: 0.5 too much" in verdict.reason
    assert judge.compared == [0, 1] and one.waits_for_judgement


def test_what_finds_no_room_or_depends_on_earlier_calls_is_judged_at_once() -> None:
    judge = Asked(wrong=0, room=1)
    one = program(judge)
    assert not one._judged({}, Case("nominal", 0)).check and one._judged({}, Case("nominal", 1)).check == "values"
    judge = Asked()
    judge.facts["stateful"] = True
    assert not program(judge)._judged({}, Case("nominal", 0)).check and judge.compared == [None]
    assert program(Asked()).judged_later() is None


def test_hidden_cases_that_were_drawn_ahead_take_no_run_of_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Judge.__new__(Judge)
    asked: list[str] = []
    judge._deck, judge._hidden, judge.shipments = [], [], 0
    judge._cases = tuple(Case(name, 1) for name in ("nominal", "huge", "spikes", "normal"))
    judge._random = __import__("random").Random(3)
    monkeypatch.setattr(Judge, "viable", lambda self, case, which: asked.append("viable") or case.name != "huge")
    monkeypatch.setattr(Judge, "ship", lambda self, case: asked.append(case.name) or case)
    judge.draw_ahead(4)
    assert len(judge._hidden) == 4 and {case.name for case in judge._hidden} == {"spikes", "normal"}
    asked.clear()
    assert [judge.hidden().name for _ in range(4)] == asked and "viable" not in asked  # type: ignore[attr-defined]
    assert len({case.seed for case in judge._hidden}) == len(judge._hidden)
    judge.hidden()
    assert "viable" in asked


@pytest.fixture
def evaluator(tmp_path: Path) -> Iterator[LocalEvaluator]:
    path = tmp_path / "softmax.py"
    path.write_text(TASK)
    with LocalEvaluator(taskfile.describe(path), "cpu", Measuring(seconds=0.5, baselines=("eager",)), lock=DeviceLock("cpu", tmp_path)) as made:
        yield made


@pytest.mark.slow
def test_a_program_that_is_wrong_in_timed_calls_alone_is_refused_and_no_answer_is_worked_out_while_the_device_is_held_alone(
    evaluator: LocalEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, calls, inside = list[bool](), list[int](), [False]
    exclusive, request, go = DeviceLock.exclusive, Worker.request, Worker.go

    @contextmanager
    def holding(lock: DeviceLock) -> Iterator[None]:
        with exclusive(lock):
            inside[0] = True
            yield
            inside[0] = False

    def asked(worker: Worker, op: str, *given: Any, **fields: Any) -> Any:
        if worker.role == "judge" and op == "compare":
            held.append(inside[0])
        return request(worker, op, *given, **fields)

    def called(worker: Worker, *given: Any, **fields: Any) -> float:
        calls[-1] += worker.role == "candidate" and not inside[0]
        return go(worker, *given, **fields)

    monkeypatch.setattr(DeviceLock, "exclusive", holding)
    monkeypatch.setattr(Worker, "request", asked)
    monkeypatch.setattr(Worker, "go", called)
    for text, statuses in ((TASK.replace("class Model(", "class ModelNew("), {"ok"}), (LATER_WRONG, {"wrong", "cheated"})):
        calls.append(0)
        source = Source("python", (("a.py", text.replace("CALLS", str(calls[0]))),), "ModelNew")
        [record] = evaluator.evaluate([Candidate(source, "cpu")])
        assert record.status in statuses, record.detail
        assert held and not any(held)

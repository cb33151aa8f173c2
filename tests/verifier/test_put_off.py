"""Outputs of timed calls that are judged when the timing is over, and the sketches of answers that they are judged by."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from warpwright.base import Candidate, Case, Source, Verdict, to_json  # noqa: E402
from warpwright.errors import JudgeFailed, WorkerProtocol  # noqa: E402
from warpwright.space import Measuring  # noqa: E402
from warpwright.targets.local import LocalEvaluator  # noqa: E402
from warpwright.tasks import taskfile  # noqa: E402
from warpwright.timing.device_lock import DeviceLock  # noqa: E402
from warpwright.verifier import rejections, timed, verify  # noqa: E402
from warpwright.verifier.judge import judge_worker  # noqa: E402
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


ONE_BUFFER = TASK.replace("class Model(torch.nn.Module):", "class ModelNew(torch.nn.Module):\n    calls, buffer = 0, torch.empty(64, 40)\n").replace(
    "        return torch",
    "        ModelNew.calls += 1\n        if ModelNew.calls > CALLS:\n"
    "            return self.buffer.copy_(torch.softmax(self.layer(x), 1))\n        return torch",
)


RING = ONE_BUFFER.replace("torch.empty(64, 40)", "torch.empty(24, 64, 40)").replace("self.buffer.copy_", "self.buffer[self.calls % 24].copy_")
"""Longer than the checked calls that follow the timing."""


@pytest.fixture
def worker(tmp_path: Path) -> JudgeWorker:
    """A judge of the task, in this process, that knows a few cases."""
    return judge_of(TASK, tmp_path)


def judge_of(text: str, folder: Path) -> JudgeWorker:
    path = folder / "softmax.py"
    path.write_text(text)
    (folder / "exchange").mkdir()
    made = JudgeWorker({"device": "cpu", "exchange": str(folder / "exchange"), "isolation": []})
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


def returning(what: str) -> str:
    return TASK.replace("        return torch.softmax(self.layer(x), 1)\n", f"        y = torch.softmax(self.layer(x), 1)\n{what}\n")


RARE = """
        rare = bool(x[0, 0] > 1.0)
        return """


@pytest.mark.parametrize(
    ("of", "usual", "check"),
    [
        ("{'b': y} if rare else {'a': y}", lambda seen: {"a": seen["b"]}, "structure"),
        ("y if rare else y.bfloat16()", lambda seen: seen.bfloat16(), "dtype"),
        ("(y, float(y.sum())) if rare else (y, y.sum())", lambda seen: (seen[0], torch.tensor(seen[1])), "structure"),
        ("(y, torch.ones(3, dtype=torch.int64)) if rare else (y, torch.ones(3))", lambda seen: (seen[0], seen[1].float()), "dtype"),
    ],
)
def test_a_form_that_depends_on_values_is_not_taken_from_another_answer(tmp_path: Path, of: str, usual: Any, check: str) -> None:
    """A program that gave out the usual form in timed calls was passed by a sketch, which took the form of an earlier answer for this one's."""
    made = judge_of(returning(RARE + of), tmp_path)

    def first(rare: bool, seed: int) -> Case:
        cases = (Case("nominal", one) for one in range(seed, seed + 99))
        return next(case for case in cases if bool(made._original.inputs(case)[0][0, 0] > 1.0) == rare)

    form, case = made._original.plain, first(True, 100)
    made._original.answers.clear()
    made._original.worked_out.clear()
    made._original.answer(first(False, 0), TIMED_STATE)
    assert form is not None and made._original.plain is not form, "the last whole answer has the usual form"
    output = made._original.run_own(made._original.inputs(case), TIMED_STATE)
    assert judged(made, usual(output), case)["check"] == check and judged(made, output, case)["check"] == ""


@pytest.mark.parametrize(
    ("forward", "reads"),
    [
        ("return y", False),
        ("return y.masked_fill(x[:, :40] > 2, 0)", False),
        ("return y if bool(x.sum() < 1e9) else x", True),
        ("return y if x[0].tolist()[0] < 1e9 else x", True),
        ("return y if not torch.equal(x, y) else x", True),
        ("return y * float(x.detach().numpy().size)", True),
    ],
)
def test_a_program_whose_python_looks_at_values_has_no_sketches(tmp_path: Path, forward: str, reads: bool) -> None:
    made = judge_of(returning(f"        {forward}"), tmp_path)
    assert made._original.reads_values is reads
    assert (made._original.sketch(Case("nominal", 400), TIMED_STATE) is None) is reads


def test_an_output_that_is_a_part_of_the_state_is_that_of_its_own_state(tmp_path: Path) -> None:
    """Answers that are kept held a view of the weights, so that after a change of state an output with the other state's was right."""
    made = judge_of(returning("        return y, self.layer.weight.data"), tmp_path)
    original = made._original
    for case in (Case("nominal", 0), Case("nominal", 500)):  # one whose answer is kept, and one that gets a sketch
        right, other = (tuple(own.clone() for own in original.run_own(original.inputs(case), state)) for state in (TIMED_STATE, 0))
        if case.seed:
            assert judged(made, right, case)["check"] == "" and original.last_sketch is not None
        original.set_state(0)
        assert judged(made, (right[0], other[1]), case)["check"] == "values"
        original.set_state(0)
        assert judged(made, right, case)["check"] == ""


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


def test_the_gaps_of_an_output_count_in_what_waits(worker: JudgeWorker) -> None:
    """Of an output with gaps its elements alone were counted: 24 of them could have filled the judge's memory."""
    output = torch.empty_strided((64, 40), (4096, 1)).fill_(1.0)
    tree, folder = exported(worker, output)
    worker._original.budget = 3 * 2 * output.untyped_storage().nbytes()
    assert [bool(worker.set_aside(tree, folder)) for _ in range(3)] == [True, True, False]


def test_what_is_no_tensor_is_judged_at_once_and_for_what_it_is(worker: JudgeWorker) -> None:
    """It was refused as a forged answer, which it is not."""
    for value in ("text", {1, 2}, object()):
        tree = exchange.encode(value, lambda tensor: tensor)
        assert worker.set_aside(tree, worker.shelf.folder) == {} and not worker.aside
        assert worker.compare(tree, {"name": "nominal", "seed": 1, "params": {}}, TIMED_STATE, worker.shelf.folder, [])["check"] == "output_type"
    assert worker.set_aside({"tensor": {"not_plain": "a tensor of layout torch.sparse_coo"}}, worker.shelf.folder) == {}


@pytest.mark.parametrize(
    "change", [{"dtype": "float3"}, {"dtype": None}, {"shape": "ab"}, {"shape": [None, 40]}, {"stride": None}, {"stride": [1, 1, 1]}]
)
def test_a_forged_descriptor_is_no_failure_of_the_judge(worker: JudgeWorker, change: dict[str, Any]) -> None:
    tree, folder = exported(worker, own(worker, Case("nominal", 0)))
    with pytest.raises(WorkerProtocol, match="expected a"):
        worker.set_aside({"tensor": {**tree["tensor"], **change}}, folder)


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


def test_judging_after_the_timing_ends_and_what_was_not_judged_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """It had no bound of its own: 24 answers of seconds each."""
    clock = iter((0.0, 1.0, 80.0, 91.0))
    monkeypatch.setattr(timed, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    judge = Asked()
    one = program(judge)
    for seed in range(4):
        one._judged({"tree": seed}, Case("nominal", seed))
    assert next(clock) == 0.0
    verdict = one.judged_later(until=timed.LATER_SECONDS)
    assert verdict is not None and not verdict.ok and verdict.status == "unscored" and judge.compared == [0, 1]
    assert "2 of them were not judged" in verdict.reason


def test_both_regimes_share_that_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[float]()
    programs = [SimpleNamespace(judged_later=asked.append) for _ in range(2)]
    bench = SimpleNamespace(beside_others=nullcontext)
    assert LocalEvaluator._judged_later(SimpleNamespace(_bench=bench), *programs) is None  # type: ignore[arg-type]
    assert len(asked) == 2 and asked[0] == asked[1] < math.inf


def test_no_more_is_put_off_than_can_be_judged_in_time(worker: JudgeWorker) -> None:
    tree, folder = exported(worker, own(worker, Case("nominal", 0)))
    assert "number" in worker.set_aside(tree, folder)
    worker.answer_seconds = judge_worker.ASIDE_SECONDS / 3
    numbers = [worker.set_aside(tree, folder).get("number") for _ in range(5)]
    assert [number is not None for number in numbers] == [True, True, True, False, False]
    worker.answer_seconds = 0.0
    assert not judged(worker, own(worker, Case("nominal", 777)), Case("nominal", 777))["check"] and worker.answer_seconds > 0


def test_what_finds_no_room_or_depends_on_earlier_calls_is_judged_at_once() -> None:
    judge = Asked(wrong=0, room=1)
    one = program(judge)
    assert not one._judged({}, Case("nominal", 0)).check and one._judged({}, Case("nominal", 1)).check == "values"
    judge = Asked()
    judge.facts["stateful"] = True
    assert not program(judge)._judged({}, Case("nominal", 0)).check and judge.compared == [None]
    assert program(Asked()).judged_later() is None


def test_where_the_judge_fails_what_waits_is_let_go_of_and_where_the_time_is_over_it_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was popped before it was judged, so that the last one stayed with the judge; and a judge in the middle of an answer was waited for."""
    for error, dropped in ((JudgeFailed("it is gone"), 1), (KeyboardInterrupt(), 0)):
        judge, drops = Asked(), list[int]()
        judge.worker, judge.drop_aside = SimpleNamespace(alive=True), lambda drops=drops: drops.append(1)  # type: ignore[attr-defined]

        def run(trusted: Any, worker: Any, verdict: Any, single: timed.TimedProgram, turns: Any, error: BaseException = error) -> None:
            single._judged({"tree": 0}, Case("nominal", 0))
            monkeypatch.setattr(Asked, "compare", raising(error))
            single.judged_later()

        candidate = SimpleNamespace(device="cpu", role="candidate")
        with pytest.raises(type(error)):
            LocalEvaluator._time(SimpleNamespace(_timed=run), SimpleNamespace(judge=judge, calls=0), candidate, Verdict(True, "ok"))  # type: ignore[arg-type]
        assert len(drops) == dropped


def raising(error: BaseException) -> Any:
    def compare(*given: Any, **named: Any) -> None:
        raise error

    return compare


def test_an_output_of_after_the_timing_has_to_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that handed out one buffer from the timing on was passed: what is kept was looked at in the audit alone."""
    case, steps = Case("nominal", 1), list[Any]()
    facts = {"stateful": False, "mutated_state": False, "aliases": [[]], "state_tensors": 0, "draws_matter": False}
    judge = SimpleNamespace(
        cases=[case], facts=facts, sound=lambda one, which: one,
        compare=lambda export, one, which: Comparison("values" if "kept" in export else "", "0.7 too much", 9.0),
    )  # fmt: skip
    one = verify._Verification.__new__(verify._Verification)
    one.judge, one.luck, one.random = judge, SimpleNamespace(met=[]), random.Random(1)  # type: ignore[assignment]
    for name in ("call", "keep", "other_draws", "further_calls"):
        monkeypatch.setattr(one, name, lambda *given, name=name: steps.append(name))
    monkeypatch.setattr(one, "export", lambda what: {what: 0})
    with pytest.raises(rejections.Rejected, match="changed by a later call") as refused:
        one.changed_afterwards()
    assert steps == ["call", "keep", "other_draws", "further_calls"] and refused.value.verdict.check == "output_reuse"


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
    held, calls, inside, timed = list[bool](), list[int](), [False], [False]
    exclusive, request, go = DeviceLock.exclusive, Worker.request, Worker.go

    @contextmanager
    def holding(lock: DeviceLock) -> Iterator[None]:
        with exclusive(lock):
            inside[0] = timed[0] = True
            try:
                yield
            finally:
                inside[0] = False

    def asked(worker: Worker, op: str, *given: Any, **fields: Any) -> Any:
        if worker.role == "judge" and op == "compare":
            held.append(inside[0])
        return request(worker, op, *given, **fields)

    def called(worker: Worker, *given: Any, **fields: Any) -> float:
        calls[-1] += worker.role == "candidate" and not timed[0]
        return go(worker, *given, **fields)

    monkeypatch.setattr(DeviceLock, "exclusive", holding)
    monkeypatch.setattr(Worker, "request", asked)
    monkeypatch.setattr(Worker, "go", called)
    monkeypatch.setattr(verify, "KEPT_CALLS", ((4, 10.0),))  # else as many as the time permits: nobody could say when the audit is over
    monkeypatch.setattr(verify, "LAST_KEPT_CALLS", ((40, 60.0),))
    monkeypatch.setattr(verify, "LONG_SHARE", 0.0)
    honest = TASK.replace("class Model(", "class ModelNew(")
    for text, checks in ((honest, {""}), (LATER_WRONG, {"values", "cached", "background"}), (ONE_BUFFER, {"output_reuse"}), (RING, {"output_reuse"})):
        calls.append(0)
        timed[0] = False
        source = Source("python", (("a.py", text.replace("CALLS", str(calls[0]))),), "ModelNew")
        [record] = evaluator.evaluate([Candidate(source, "cpu")])
        assert record.verdict is not None and record.verdict.check in checks, record.detail
        assert held and not any(held)

"""A judge that runs out of GPU memory: what others only cache is given back, and the request is made once more."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from corpus import task

from warpwright.base import Case, to_json
from warpwright.errors import JudgeFailed
from warpwright.verifier.judge import distributions, judge_worker
from warpwright.verifier.judge.judge_worker import JudgeWorker
from warpwright.verifier.judge.original import reference
from warpwright.verifier.judge.original.answers import Answer, key_of
from warpwright.verifier.judge_client import MOST_TRIMS, Judge

OUT = {"error": "... CUDA out of memory", "kind": "OutOfMemoryError", "message": "CUDA out of memory"}


class Neighbour:
    """A worker that holds memory on the same GPU."""

    trimmed = 0

    def trim(self) -> None:
        self.trimmed += 1


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_out_of_memory(failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    neighbour, left = Neighbour(), [OUT] * failures
    with Judge(task("relu"), "cpu") as judge:
        ask = judge.worker.request
        monkeypatch.setattr(judge.worker, "request", lambda op, **named: left.pop() if left and op != "trim" else ask(op, **named))
        judge.probe(neighbour)  # type: ignore[arg-type]
        if failures < 2:
            assert judge.viable(judge.warm_up, 0)
        else:
            with pytest.raises(JudgeFailed, match="out of memory"):
                judge.viable(judge.warm_up, 0)
        assert neighbour.trimmed == (failures > 0)


def test_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that keeps the memory cannot have the baselines allocate anew before each of their calls."""
    neighbour = Neighbour()
    with Judge(task("relu"), "cpu") as judge:
        judge.probe(neighbour)  # type: ignore[arg-type]
        monkeypatch.setattr(judge.worker, "request", lambda *given, **named: OUT)
        for _ in range(2 * MOST_TRIMS):
            with pytest.raises(JudgeFailed, match="out of memory"):
                judge.viable(judge.warm_up, 0)
        assert neighbour.trimmed == MOST_TRIMS


def test_a_judge_that_let_go_of_its_answers_makes_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    order = {"device": "cpu", "exchange": "", "isolation": {}}
    judging = JudgeWorker(order)
    judging.open(to_json(task("relu")), "7", False)
    case = asdict(Case("nominal", 3))
    assert not judging.viable(case, 0)["problem"] and judging.original is not None and judging.original.answers
    judging.trim()
    assert not judging.original.answers and not judging.original.held
    assert not judging.viable(case, 0)["problem"] and judging.original.answers


def test_answers_that_each_program_needs_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a round of cases that does not fit some answers are there the next time, in whatever order, and single calls do not drive them out."""
    judging = JudgeWorker({"device": "cpu", "exchange": "", "isolation": {}})
    judging.open(to_json(task("relu")), "7", False)
    original = judging.original
    assert original is not None
    original.answers.clear()
    made: list[int] = []
    wide = original.run_wide
    monkeypatch.setattr(original, "run_wide", lambda inputs, which, rounding=None: (made.append(which), wide(inputs, which, rounding))[1])
    cases = [Case("nominal", seed) for seed in range(10, 18)]
    original.answer(cases[0], 0)
    original.budget = 4 * next(iter(original.answers.values())).bytes
    for case in (*cases[1:], *(Case("nominal", seed) for seed in range(50, 60))):
        original.answer(case, 0)
    made.clear()
    for case in reversed(cases):
        original.answer(case, 0)
    assert len(made) <= len(cases) - 3 and len(original.answers) <= 4


@pytest.mark.parametrize("name", ["relu", "layernorm", "argmax", "batchnorm"])
def test_an_answer_that_is_made_again_is_the_same(name: str) -> None:
    """What its errors were is known; only the float64 values are worked out again, if nothing else is needed."""
    judging = JudgeWorker({"device": "cpu", "exchange": "", "isolation": {}})
    judging.open(to_json(task(name)), "7", False)
    original, case = judging.original, Case("normal", 5)
    assert original is not None
    first = original.answer(case, 1)
    original.answers.clear()
    again = original.answer(case, 1)
    assert bool(original.worked_out) == (name in ("relu", "layernorm"))  # integers, and states that a call changes, need the original's own
    for one, other in zip(first.leaves, again.leaves, strict=True):
        assert one.original == other.original and one.scale == other.scale and one.shape == other.shape
        torch.testing.assert_close(one.exact, other.exact, rtol=0, atol=0)


@pytest.mark.parametrize(("name", "answers"), [("relu", 1), ("layernorm", 3)])
def test_without_a_state_one_answer_is_that_in_all_of_them(name: str, answers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    judging = JudgeWorker({"device": "cpu", "exchange": "", "isolation": {}})
    judging.open(to_json(task(name)), "7", False)
    original, case = judging._original, Case("normal", 3)
    made: list[int] = []
    anew = original._answer_anew
    monkeypatch.setattr(original, "_answer_anew", lambda case, which: made.append(which) or anew(case, which))
    monkeypatch.setattr(judging, "_elsewhere", lambda tree, answer: "")
    assert not judging.viable(asdict(case), 0)["problem"] and not judging.viable(asdict(case), 1)["problem"]
    monkeypatch.setattr(judging, "_outputs", lambda tree, folder: original.run_own(original.inputs(case), 2))
    assert judging.compare({}, asdict(case), 2, "", [[asdict(case), 1]])["check"] == ""
    assert len(made) == answers


@pytest.fixture
def crowded(tmp_path: Path) -> JudgeWorker:
    """A judge whose memory for answers is less than one takes."""
    judging = JudgeWorker({"device": "cpu", "exchange": str(tmp_path), "isolation": {}})
    judging.open(to_json(task("relu")), "7", False)
    judging._original.forget()
    judging._original.budget = 1
    return judging


def test_of_answers_that_do_not_fit_one_is_held(crowded: JudgeWorker) -> None:
    """Neither what the certificate examined nor a sketch stays beside the answer at hand: of gigabytes each, they filled a GPU."""
    original = crowded._original
    judged = [Case(name, 3) for name in ("nominal", "normal", "spikes")]
    assert crowded.certify([asdict(case) for case in judged])["scored"]
    assert not original.answers and not original.examined
    original.inputs(judged[0])
    for case in judged:
        crowded.judgement._examine(case, 0)
        assert list(original.answers) == list(original.examined) == [key_of(case, 0)]
    assert original.sketch(Case("nominal", 4), 0) is not None and not original.answers and not original.examined
    original.answer(judged[1], 0)
    assert original.last_sketch is None and list(original.answers) == [key_of(judged[1], 0)]


def test_a_sketch_that_refuses_is_let_go_of_before_the_whole_answer_is_worked_out(crowded: JudgeWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    original, case = crowded._original, Case("nominal", 5)
    wrong = original.run_own(original.inputs(case), 0) + 1
    sketched, anew = [], original._answer_anew

    def answered(*asked: Any) -> Any:
        gc.collect()
        sketched.append([one for one in gc.get_objects() if isinstance(one, Answer) and one.sketched and one.leaves[0].exact.numel()])
        return anew(*asked)

    monkeypatch.setattr(original, "_answer_anew", answered)
    monkeypatch.setattr(crowded, "_outputs", lambda tree, folder: wrong)
    monkeypatch.setattr(crowded, "_elsewhere", lambda tree, answer: "")
    assert crowded.compare({}, asdict(case), 0, "", [])["check"] == "values"
    assert sketched == [[]]


def test_large_inputs_are_let_go_of_before_others_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_worker, "LARGE_BYTES", 0)
    judging = JudgeWorker({"device": "cpu", "exchange": str(tmp_path), "isolation": {}})
    judging.open(to_json(task("relu")), "7", False)
    drawn, there = judging._original.inputs, list[int]()
    monkeypatch.setattr(judging._original, "inputs", lambda case: there.append(len(judging.shipped)) or drawn(case))
    for seed in (1, 2, 2):
        judging.ship(asdict(Case("nominal", seed)))
    assert there == [0, 0, 0] and len(judging.shipped) == 1
    monkeypatch.setattr(judge_worker, "LARGE_BYTES", 1 << 30)
    for seed in range(3, 9):
        judging.ship(asdict(Case("nominal", seed)))
    assert len(judging.shipped) == judge_worker.FRESH_KEPT and there[-1] == judge_worker.FRESH_KEPT


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("form", ["rows", "turned", "sliced"])
def test_values_that_are_drawn_in_pieces_are_those_drawn_at_once(dtype: torch.dtype, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = torch.randn(40, 3, 50, generator=torch.Generator().manual_seed(5)).to(dtype)
    tensor = {"rows": tensor, "turned": tensor.transpose(0, 2), "sliced": tensor[:, 1]}[form]
    names = ["alike", *(["denormal"] if dtype.itemsize > 2 else [])]
    whole = [distributions.redistribute([tensor], name, 3)[0] for name in names]
    monkeypatch.setattr(distributions, "PIECE", 97)
    for one, name in zip(whole, names, strict=True):
        pieces = distributions.redistribute([tensor], name, 3)[0]
        assert torch.equal(one, pieces) and one.stride() == pieces.stride() and not torch.equal(one, tensor)
    eps, drawn = torch.finfo(dtype).eps, torch.Generator()
    near = tensor * (1 + eps * (torch.rand(tensor.shape, generator=drawn.manual_seed(3)).to(dtype) * 2 - 1))
    up = torch.randint(2, tensor.shape, generator=drawn.manual_seed(3)).to(torch.bool)
    far = torch.where(up, tensor * (1 + 4 * eps), tensor * (1 - 4 * eps))
    for one, other in ((near, distributions.perturb([tensor], 3)[0]), (far, distributions.move([tensor], 4.0, 3)[0])):
        assert torch.equal(one, other) and one.stride() == other.stride()


def test_what_is_known_of_answers_that_were_forgotten_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each timed call has a case of its own; what is asked for again stays."""
    judging = JudgeWorker({"device": "cpu", "exchange": "", "isolation": {}})
    judging.open(to_json(task("relu")), "7", False)
    original, first = judging.original, Case("nominal", 3)
    assert original is not None
    original.answer(first, 0)
    each = original.worked_out[key_of(first, 0)].bytes
    assert each >= 8 * sum(original.answer(first, 0).leaves[0].shape)  # a size for each row and each column
    monkeypatch.setattr(reference, "KNOWN_BYTES", 4 * each)
    for seed in range(10, 30):
        original.answer(Case("nominal", seed), 0)
        original.answers.clear()
        original.answer(first, 0)
    assert key_of(first, 0) in original.worked_out and sum(answer.bytes for answer in original.worked_out.values()) <= 4 * each


def test_a_judge_begun_anew_keeps_nothing_of_an_earlier_secret(tmp_path: Path) -> None:
    def order(name: str) -> dict[str, Any]:
        (tmp_path / name).mkdir()
        return {"device": "cpu", "exchange": str(tmp_path / name), "isolation": {}}

    drawn, told = Case("normal", 3), to_json(task("softmax"))
    again, fresh = JudgeWorker(order("again")), JudgeWorker(order("fresh"))
    again.open(told, "7", False)
    again.ship(asdict(drawn)), again.state(0)
    again._original.answer(drawn, 0)
    facts = again.open(told, "8", False)
    assert not again.shipped and not again.states and not again.last
    assert set(again._original.answers) == {key_of(Case("nominal", 8), 0)}  # made while opening, under the new secret
    assert facts == fresh.open(told, "8", False)
    for name, tensor in fresh._original.state(0).items():
        assert torch.equal(tensor, again._original.state(0)[name])


class Full:
    """A function that runs out of memory so many times; then it is what it was."""

    def __init__(self, function: Callable[..., Any], times: int) -> None:
        self.function, self.times = function, times

    def __call__(self, *given: Any) -> Any:
        self.times -= 1
        if self.times >= 0:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return self.function(*given)


def judging_with_state(secret: str = "7") -> JudgeWorker:
    judging = JudgeWorker({"device": "cpu", "exchange": "", "isolation": {}})
    judging.open(to_json(task("linear_sum")), secret, False)
    judging.trim()
    return judging


@pytest.mark.parametrize("place", [1, 2])
def test_a_state_that_there_was_no_memory_for_is_not_one_that_the_original_does_not_take(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`place`: in giving it to the first of the two models, or to the second, when the first has it."""
    judging, case = judging_with_state(), asdict(Case("nominal", 3))
    original, copy = judging._original, distributions.copied_state
    assert not judging.viable(case, 0)["full"]
    given = Full(copy, 1)
    copies = iter([copy] * (place - 1) + [given])
    monkeypatch.setattr(distributions, "copied_state", lambda state: next(copies, copy)(state))
    assert judging.viable(case, 1)["full"] and given.times == 0
    original.answers.clear()
    for which in (0, 1):  # and nothing of the state that was half given is taken for another
        answer = original.answer(Case("nominal", 4), which)
        assert all(leaf.original.rms <= 1e-5 * leaf.scale.rms for leaf in answer.leaves)
    again = judging.viable(case, 1)
    assert not again["problem"] and not again["full"] and again["params"] == case["params"]


def test_a_case_that_there_was_no_memory_for_is_asked_about_again(monkeypatch: pytest.MonkeyPatch) -> None:
    neighbour, replies = Neighbour(), [{"problem": "the original raises on it", "params": {}, "seconds": 0.0, "full": True}]
    with Judge(task("relu"), "cpu") as judge:
        ask = judge.worker.request
        monkeypatch.setattr(judge.worker, "request", lambda op, **named: replies.pop() if replies and op == "viable" else ask(op, **named))
        judge.probe(neighbour)  # type: ignore[arg-type]
        assert judge.viable(judge.warm_up, 0) and neighbour.trimmed == 1


def test_no_state_is_drawn_anew_for_want_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    judging, case = judging_with_state(), asdict(Case("nominal", 3))
    original = judging._original
    before = {name: tensor.clone() for name, tensor in original.state(1).items()}
    monkeypatch.setattr(original, "answer", Full(original.answer, 1))
    assert judging.settle(1, case) == {"redrawn": 0, "full": True}
    assert judging.settle(1, case) == {"redrawn": 0, "full": False}
    assert all(torch.equal(tensor, before[name]) for name, tensor in original.state(1).items())


def test_states_are_as_strong_where_memory_ran_out_while_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks the judge to open has others give back memory, and asks again."""
    judging, copied = JudgeWorker({"device": "cpu", "exchange": "", "isolation": {}}), distributions.copied_state
    for attempt in itertools.count():  # memory for so many copies of a state
        last = Full(copied, 1)
        copies = iter([copied] * attempt + [last])
        monkeypatch.setattr(distributions, "copied_state", lambda state, copies=copies: next(copies, copied)(state))
        try:
            facts = judging.open(to_json(task("linear_sum")), "7", False)
        except torch.OutOfMemoryError:
            assert last.times == 0
            continue
        assert last.times == 1, "where it ran out, something else was taken for the reason"
        break
    assert attempt > 2 and facts["strength"] == 2.0 and judging._original.drawn == 0


def test_a_mutant_that_there_was_no_memory_for_is_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    judging = judging_with_state()
    original, cases = judging._original, [asdict(Case("nominal", 3))]
    run, left = original.run_own, [3]

    def runs(inputs: Any, which: int) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return run(inputs, which)

    monkeypatch.setattr(original, "run_own", runs)
    with pytest.raises(torch.OutOfMemoryError):
        judging.certify(cases)
    assert judging.certify(cases)["scored"]

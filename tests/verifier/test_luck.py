"""Values that miss their tolerance by less than a factor of two: refused where another draw shows it again, passed where none does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scaled_relu import TASK

from warpwright.base import Case, Source, Verdict
from warpwright.tasks import taskfile
from warpwright.verifier import luck, timed, verify
from warpwright.verifier.judge_client import Comparison, Judge, Shipment
from warpwright.workers.sandbox import Worker

pytest.importorskip("torch")

ERRS = """
import torch

class ModelNew(torch.nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(64))

    def forward(self, x):
        ModelNew.calls += 1
        return torch.relu(x) * self.scale * (1 + {ulps} * 2**-23 if {when} else 1)
"""
SLIGHT, PLAIN = 5.5, 200.0
"""In units of the last place; some 3.6 are allowed, and 16 times as many at unusual strides, which the tenth call may have."""


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[verify.Judge]:
    path = Path(tmp_path_factory.mktemp("task")) / "scaled_relu.py"
    path.write_text(TASK)
    with verify.Judge(taskfile.describe(path)) as made:
        yield made


def verified(judge: verify.Judge, ulps: float, when: str) -> Verdict:
    with Worker("candidate", "cpu") as worker:
        source = Source("python", (("program.py", ERRS.format(ulps=ulps, when=when)),))
        _, rejected = verify.build(judge, worker, "program", source)
        return rejected or verify.verify(judge, worker, "program", judge.task)


@pytest.mark.parametrize("call", [4, 5, 10, 20])
def test_one_slight_error_is_luck(judge: verify.Judge, call: int) -> None:
    """The fourth call is the first that is checked, and looked at in every way; the fifth follows the request to keep its output."""
    verdict = verified(judge, SLIGHT, f"ModelNew.calls == {call}")
    assert verdict.ok, verdict.reason


@pytest.mark.parametrize(("ulps", "when"), [(SLIGHT, "True"), (SLIGHT, "ModelNew.calls % 2"), (PLAIN, "ModelNew.calls in (10, 11)")])
def test_errors_that_come_again_or_are_large_are_none(judge: verify.Judge, ulps: float, when: str) -> None:
    """Of two calls on end one has inputs that are not all zero; either may lie in memory in an unusual way."""
    verdict = verified(judge, ulps, when)
    assert verdict.check in ("values", "stale_state", "repeat", "input_layout"), verdict
    assert ("other draws of the inputs" in verdict.reason) == (ulps == SLIGHT)


def drawn(answers: list[Comparison], sound: int = 20) -> Comparison:
    """Ask with a judge of which so many draws are sound, and a program that is judged so on them."""
    replies = iter(answers)
    others = lambda case, which, count: iter([Case(case.name, number) for number in range(min(sound, count))])  # noqa: E731
    judge = cast(Judge, SimpleNamespace(others=others))
    return luck.on_other_draws(judge, Comparison("values", "a little", 1.2), Case("huge", 1), 0, lambda case: next(replies))


FINE, HALF, WIDE, AGAIN = (Comparison("", shares={"out max": share}) for share in (0.3, 0.5, 1.4, 0.9))
MISSED = Comparison("values", "again", 1.1, shares={"out max": 0.9})


@pytest.mark.parametrize(
    ("answers", "sound", "check"),
    [
        ([FINE] * 12, 20, ""),
        ([*[FINE] * 11, MISSED], 20, ""),
        ([*[FINE] * 10, MISSED, MISSED], 20, "values"),
        ([HALF, WIDE] * 6, 20, "values"),
        ([FINE, WIDE] * 6, 20, "values"),
        ([HALF, AGAIN] * 6, 20, ""),
        ([FINE, Comparison("values", "far off", 2.5)], 20, "values"),
        ([FINE, Comparison("late_output", "worse")], 20, "late_output"),
        ([FINE] * 4, 4, ""),
        ([FINE] * 3, 3, "values"),
        ([], 0, "values"),
    ],
)
def test_what_other_draws_say(answers: list[Comparison], sound: int, check: str) -> None:
    assert drawn(answers, sound).check == check


def test_two_calls_may_have_been_bad_luck_and_each_counts_once() -> None:
    others = lambda case, which, count: iter([Case(case.name, number) for number in range(count)])  # noqa: E731
    counted = luck.Luck(cast(Judge, SimpleNamespace(others=others)), "timed calls")
    refused, fine = Comparison("values", "a little", 1.2), lambda case: FINE
    asked = [counted.asked(refused, case, which, fine) for case, which in [(Case("huge", 1), 0), (Case("huge", 1), 0), (Case("huge", 1), 1)]]
    assert [comparison.check for comparison in asked] == [""] * 3
    third = counted.asked(refused, Case("nominal", 4), 0, fine)
    assert third.check == "values" and "3 timed calls were off by as little" in third.reason


def test_other_draws_of_a_timed_call_are_waited_for_as_timed_calls_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU parent and worker wait busily: a program could tell by that which call is timed."""
    monkeypatch.setattr(timed.os, "cpu_count", lambda: 16)
    monkeypatch.setattr(timed.placement, "started_at", lambda pid, place: nullcontext())
    monkeypatch.setattr(timed.placement, "aside", lambda place, quiet=False: nullcontext())
    seen: list[tuple[str, Any]] = []
    worker = SimpleNamespace(
        device="cuda:0", role="candidate", pid=1, reads=False, exchange="", request=lambda *_, **__: {"tree": {}},
        lay_out=lambda entry, inputs, **options: seen.append(("laid out", options["spin"])) or {},
        go=lambda **options: seen.append(("went", options["spin"])),
    )  # fmt: skip
    judge = SimpleNamespace(
        facts={"stateful": False, "mutated_state": False}, ship=lambda case: Shipment(case, None), compare=lambda *_, **__: FINE,
        others=lambda case, which, count: iter([Case(case.name, 2), Case(case.name, 3)]),
    )  # fmt: skip
    program = timed.TimedProgram(judge, worker, "candidate")  # type: ignore[arg-type]
    program._on_other_draws(Comparison("values", "a little", 1.2), Case("nominal", 1))
    assert seen == [("laid out", timed.WORKER_WAITS), ("went", timed.PARENT_WAITS)] * 2


def test_a_pass_names_the_error_that_came_nearest() -> None:
    assert drawn([Comparison("")] * 12).excess == 1.2


@pytest.mark.parametrize(("comparison", "name", "marginal"), [
    (Comparison("values", "", 1.99), "huge", True), (Comparison("values", "", 2.0), "huge", False), (Comparison("values", "", 1.1), "strided", False),
    (Comparison("cached", "", 1.1), "huge", False), (Comparison("", "", 0.9), "huge", False),
])  # fmt: skip
def test_what_is_marginal(comparison: Comparison, name: str, marginal: bool) -> None:
    assert luck.is_marginal(comparison, Case(name, 1)) is marginal


def test_other_draws_keep_the_last_bit_of_the_seed(judge: verify.Judge) -> None:
    kept: dict[Any, Any] = {seed: [one.seed % 2 for one in judge.others(Case("coarse", seed), 0, 4)] for seed in (6, 7)}
    assert kept == {6: [0] * 4, 7: [1] * 4}

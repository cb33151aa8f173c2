"""Originals whose answers hold Inf or NaN by design: their places have to agree, and all that is finite is judged as ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import corpus
import pytest

from warpwright.base import Case, to_json
from warpwright.tasks import taskfile
from warpwright.verifier.judge import oracle
from warpwright.verifier.judge.judge_worker import JudgeWorker
from warpwright.verifier.judge.original.answers import tensors_of

torch = pytest.importorskip("torch")

TEXT = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(24, 24)
        self.register_buffer("mask", torch.ones(24, 24).triu(1).bool(), persistent=False)
        self.register_buffer("empty", self.mask.index_fill(0, torch.tensor([0]), True), persistent=False)

    def forward(self, x):
        return {body}


def get_inputs():
    return [torch.randn(8, 24, 24)]


def get_init_inputs():
    return []
"""

BY_DESIGN = {
    "logarithms of a masked softmax": "torch.log_softmax(self.layer(x).masked_fill(self.mask, float('-inf')), -1)",
    "scores and their mask": "(self.layer(x), torch.zeros(24, 24).masked_fill_(self.mask, float('-inf')))",
    "sums of exponentials of empty rows": "torch.logsumexp(self.layer(x).masked_fill(self.empty, float('-inf')), -1)",
    "shares of empty rows": "torch.softmax(self.layer(x).masked_fill(self.empty, float('-inf')), -1)",
}
OVERFLOWING = "(80 + torch.tanh(self.layer(x))).exp() ** 1.15"


def opened(folder: Path, body: str) -> JudgeWorker:
    path = folder / "task.py"
    path.write_text(TEXT.format(body=body))
    (folder / "exchange").mkdir()
    made = JudgeWorker({"device": "cpu", "exchange": str(folder / "exchange"), "isolation": []})
    made.open(to_json(taskfile.describe(path)), "5eed5", False)
    return made


def case(name: str = "nominal", seed: int = 1) -> dict[str, Any]:
    return {"name": name, "seed": seed, "params": {}}


def judged(worker: JudgeWorker, change: Any, name: str = "nominal") -> str:
    """Return the check that refuses the original's own answer, changed."""
    original, drawn = worker._original, Case(name, 1)
    leaves = [value.clone() for value in tensors_of(original.run_own(original.inputs(drawn), 0))]
    change(leaves)
    return worker.judgement.check(leaves, drawn, 0)


@pytest.mark.parametrize("body", BY_DESIGN.values(), ids=BY_DESIGN)
def test_such_a_task_is_scored_and_judged(tmp_path: Path, body: str) -> None:
    """All of its cases were left out, and it was said that its answers did not depend on its parameters."""
    worker = opened(tmp_path, body)
    original = worker._original
    assert original.infinite and original.strength == 2.0
    certificate = worker.certify([case(), case("normal", 2)])
    assert certificate["scored"], certificate["reason"]
    assert not [name for name in ("normal", "smooth", "large", "near_one") if worker.viable(case(name), 0)["problem"]]
    assert judged(worker, lambda leaves: None) == "" and judged(worker, lambda leaves: None, "normal") == ""

    def finite(leaves: list[torch.Tensor]) -> None:
        leaves[-1][~leaves[-1].isfinite()] = -1e30

    def moved(leaves: list[torch.Tensor]) -> None:
        leaves[-1].copy_(leaves[-1].flatten().roll(7).view(leaves[-1].shape))

    def off(leaves: list[torch.Tensor]) -> None:
        leaves[0][leaves[0].isfinite()] *= 1 + 1e-5

    assert judged(worker, finite) == "non_finite" and judged(worker, moved) == "non_finite" and judged(worker, off) == "values"


def test_an_overflow_is_nobodys_design_and_said_to_be_one(tmp_path: Path) -> None:
    worker = opened(tmp_path, OVERFLOWING)
    assert not worker._original.infinite
    certificate = worker.certify([case()])
    assert not certificate["scored"] and "Inf or NaN" in certificate["reason"] and "precision" in certificate["reason"]


def test_a_state_that_makes_numbers_finite_is_taken(tmp_path: Path) -> None:
    """Infinities that weaker parameters do not have are not meant."""
    worker = opened(tmp_path, "(100 * self.layer(x).square()).exp()")
    assert worker._original.strength < 2.0 or not worker._original.infinite


def test_a_small_column_is_judged_by_itself_beside_infinities(tmp_path: Path) -> None:
    body = "(self.layer(x) * torch.linspace(1, 1e-3, 24)).masked_fill(self.mask, float('-inf'))"
    worker = opened(tmp_path, body)
    original, drawn = worker._original, Case("nominal", 1)
    for seed in range(3):
        original.answer(Case("nominal", seed), 0)
    [leaf] = original.answer(drawn, 0).leaves
    assert leaf.small and worker._original.infinite
    own = original.run_own(original.inputs(drawn), 0)
    assert worker.judgement.check([own.clone()], drawn, 0) == ""
    coarse = own.clone()
    coarse[..., -1] = coarse[..., -1].bfloat16().float()
    assert worker.judgement.check([coarse], drawn, 0) == "values"


def test_places_are_the_same_by_kind() -> None:
    one = torch.tensor([1.0, float("inf"), float("-inf"), float("nan")])
    assert oracle.same_places(one, one.double() * 3)
    assert not any(oracle.same_places(one, one.roll(turn)) for turn in (1, 2, 3))
    assert not oracle.same_places(one, -one)


@pytest.mark.parametrize("name", ["masked_log_shares"])
def test_the_corpus_has_such_a_task(name: str) -> None:
    assert {program.name for program in corpus.programs("cheats") if program.task == name} >= {"very_low_for_minus_infinity", "infinity_left_out"}

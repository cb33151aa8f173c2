"""A program that takes no notice of a few elements answers as to the inputs without them: it is wrong, and has kept nothing."""

from collections.abc import Iterator

import corpus
import pytest

from warpwright.base import Source
from warpwright.verifier import verify
from warpwright.workers.limits import Limits

pytest.importorskip("torch")

LEAST_OF_UNSIGNED = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        return torch.where(x < 0, float("inf"), x).amin(1)
"""

KEPT_UNDER_A_SAMPLE = """
import torch
from torch import nn

class ModelNew(nn.Module):
    kept = {}

    def forward(self, x):
        mark = tuple(sorted(x.flatten()[:: x.numel() // 8].tolist()))
        if mark not in self.kept:
            self.kept[mark] = x.amin(1)
        return self.kept[mark].clone()
"""


@pytest.fixture(scope="module")
def judge() -> Iterator[verify.Judge]:
    """One that draws no inputs but the task's own and those with a few elements replaced."""
    made = verify.Judge(corpus.task("row_least"))
    made._cases = tuple(case for case in made.cases if case.name in ("nominal", "edited"))
    yield made
    made.close()


@pytest.mark.parametrize(("program", "check"), [(LEAST_OF_UNSIGNED, "values"), (KEPT_UNDER_A_SAMPLE, "cached")])
def test_who_leaves_elements_out_is_wrong_and_who_keeps_answers_has_cheated(judge: verify.Judge, program: str, check: str) -> None:
    source = Source("python", (("candidate.py", program),))
    verdict = verify.audit(judge.task, source, "cpu", Limits(build_seconds=120, call_seconds=20), judge)[1]
    assert (verdict.check, verdict.status) == (check, verify.CHECKS[check].status), verdict
    assert check != "values" or "never called on those" in verdict.reason

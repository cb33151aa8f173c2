"""A training step in declared shapes before the real judge: right in each shape it passes, and a gradient that is wrong in one is refused by name."""

from __future__ import annotations

from pathlib import Path

from warpwright import targets
from warpwright.base import Action, Candidate, Record, Source
from warpwright.domains import graph
from warpwright.space import Measuring
from warpwright.targets.local import ORIGINAL
from warpwright.tasks import taskfile

TEXT = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.layer = torch.nn.LayerNorm(16), torch.nn.Linear(16, 16)

    def forward(self, x):
        return torch.nn.functional.silu(self.layer(self.norm(x)))


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
"""

RETURNED = "gradients = optimized_backward("
WRONG = RETURNED.replace("=", "= (lambda first, *rest: (first * 1.001, *rest))(*", 1)


def wrong_in(candidate: Candidate, maker: str) -> Candidate:
    """Return the program with a gradient that is a thousandth off in the program of one shape."""
    before, found, after = candidate.source.text.partition(f"def {maker}(Model):")
    [line] = [line for line in after.partition("\ndef ")[0].splitlines() if RETURNED in line]
    text = f"{before}{found}{after.replace(line, line.replace(RETURNED, WRONG) + ')', 1)}"
    return Candidate(Source("python", (("optimized.py", text),), candidate.source.entry), "cpu")


def test_a_gradient_that_is_wrong_in_one_shape_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TEXT)
    task = taskfile.describe(tmp_path / "task.py", backward=True, mode="train", shapes='[{"x": [8, 16]}, {"x": [1, 16]}]')
    right = graph.space(task).candidate([Action.parse("differentiate(norms=false, again=false)")])
    with targets.evaluator(task, "cpu", Measuring((ORIGINAL,), 0.3)) as evaluator:
        passed, *refused = evaluator.evaluate([right, wrong_in(right, "_part_0"), wrong_in(right, "_part_0_call_1")])
    assert passed.status == "ok" and passed.measurement is not None, passed.detail
    assert set(passed.measurement.shapes) == {"x 8x16", "x 1x16"} and ORIGINAL in passed.measurement.baselines
    assert [named(record) for record in refused] == ["x 8x16", "x 1x16"]


def named(record: Record) -> str:
    """Return the shape in which a program was refused for a number."""
    assert record.status == "wrong" and record.verdict is not None and "error" in record.detail, record.detail
    return record.verdict.reason.removeprefix("in the shape ").partition(":")[0]

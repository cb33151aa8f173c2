"""Changes of a single tensor in which the original gives no sound answer are left out, and the others are judged on the inputs that they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright.base import Source
from warpwright.tasks import taskfile
from warpwright.verifier import verify
from warpwright.verifier.draw import CHANGES, mixed

torch = pytest.importorskip("torch")

REFUSES_AN_OUTLIER = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 16, bias=False)

    def forward(self, x):
        size = self.layer.weight.abs()
        assert float(size.max()) < 10 * float(size.mean())
        return self.layer(x)

def get_inputs():
    return [torch.rand(4, 16)]

def get_init_inputs():
    return []
"""


def test_a_change_that_follows_one_that_is_left_out_is_judged_on_its_own_inputs(tmp_path: Path) -> None:
    """A weight with one element far larger than the rest is the first change, which is left out. The second is called on the inputs that lie there:
    those of a hidden case, if nobody lays out its own."""
    (tmp_path / "task.py").write_text(REFUSES_AN_OUTLIER)
    task = taskfile.describe(tmp_path / "task.py")
    source = Source("python", (("optimized.py", REFUSES_AN_OUTLIER.replace("class Model", "class ModelNew")),))
    with verify.Judge(task, secret=7) as judge:
        kinds = [change for change in dict.fromkeys(CHANGES) if judge.viable(judge.cases[0], mixed(0, change))]
        assert "element" not in kinds and "tensor" in kinds
        _, verdict = verify.audit(task, source, judge=judge)
    assert verdict.ok, verdict

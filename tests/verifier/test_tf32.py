"""The error budget follows the program's flags: where they permit TF32 in an operator, its rounding is allowed; elsewhere it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from warpwright.base import Case, Source
from warpwright.tasks import taskfile
from warpwright.verifier import verify
from warpwright.verifier.building import build
from warpwright.verifier.judge.oracle import errors_of, excess
from warpwright.verifier.judge.original import tf32
from warpwright.verifier.judge.original.precisions import clone, round_tf32
from warpwright.verifier.judge.original.reference import Original
from warpwright.workers.limits import Limits
from warpwright.workers.sandbox import Worker

torch = pytest.importorskip("torch")

TASK = """
import torch
from torch import nn
{flags}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}

    def forward(self, x):
        return self.layer(x)

def get_inputs():
    return [torch.randn({shape})]

def get_init_inputs():
    return []
"""
CONVOLUTION = {"layer": "nn.Conv2d(8, 8, 3)", "shape": "2, 8, 16, 16"}
PRODUCT = {"layer": "nn.Linear(64, 64)", "shape": "16, 64"}
MATMUL_ON = "torch.backends.cuda.matmul.allow_tf32 = True"
CUDNN_OFF = "torch.backends.cudnn.allow_tf32 = False"


@pytest.fixture(autouse=True)
def flags() -> Iterator[None]:
    matmul, cudnn = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = matmul, cudnn


@pytest.mark.parametrize(
    ("about", "flags_text", "allowed"),
    [(CONVOLUTION, "", True), (CONVOLUTION, CUDNN_OFF, False), (PRODUCT, "", False), (PRODUCT, MATMUL_ON, True)],
    ids=["convolution", "convolution-off", "product", "product-on"],
)
def test_budget(about: dict[str, str], flags_text: str, allowed: bool, tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    file.write_text(TASK.format(flags=flags_text, **about))
    original = Original(taskfile.describe(file), "cpu", 5, 1 << 30)
    original.may_use_tf32 = bool(tf32.permitted())  # as on a GPU
    case = Case("normal", 11)
    answer = original.answer(case, 0)
    inputs = clone(original.inputs(case))
    original.set_state(0)
    layer = original.model.layer
    layer.weight.data = round_tf32(layer.weight.data)
    with torch.no_grad():
        rounded = original.model(*[round_tf32(item) for item in inputs])
    ratio = excess(errors_of(rounded, answer.leaves[0].exact), answer.leaves[0].allowed)
    assert (ratio <= 1) == allowed, ratio


def test_on_a_cpu_the_flags_mean_nothing(tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    file.write_text(TASK.format(flags="", **CONVOLUTION))
    assert not Original(taskfile.describe(file), "cpu", 5, 1 << 30).may_use_tf32


def test_ties_go_to_even() -> None:
    ulp = 2.0**-10
    values = torch.tensor([1 + ulp / 2, 1 + 3 * ulp / 2, 1 + ulp / 2 + 2.0**-20, -1 - ulp / 2, float("inf")], dtype=torch.float64)
    assert tf32.round_operand(values).tolist() == [1.0, 1 + 2 * ulp, 1 + ulp, -1.0, float("inf")]


ASKS = """
class ModelNew(Model):
    def forward(self, x):
        if torch.backends.cuda.matmul.allow_tf32 is not {expected}:
            raise RuntimeError("the flag is the other way")
        return super().forward(x)
"""


@pytest.mark.parametrize("role", ["candidate", "baseline"])
@pytest.mark.parametrize("precision", ["strict", "tf32"])
def test_where_a_task_permits_tf32_every_program_runs_with_it(tmp_path: Path, precision: str, role: str) -> None:
    """Else eager, torch.compile and a CUDA graph would be timed without what a candidate may do."""
    text = TASK.format(flags="", **PRODUCT)
    (tmp_path / "task.py").write_text(text)
    task = taskfile.describe(tmp_path / "task.py", precision=precision)
    with verify.Judge(task, "cpu") as judge:
        for expected in (False, True):
            source = Source("python", (("program.py", text + ASKS.format(expected=expected)),))
            with Worker(role, "cpu", Limits(isolation="limits")) as worker:
                built, _ = build(judge, worker, "program", source)
            assert built.ok is (expected is (precision == "tf32")), built.reason

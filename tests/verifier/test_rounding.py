"""Where the answer is zero everywhere, what rounding may leave there is no error; what is larger is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright.base import Case
from warpwright.tasks import taskfile
from warpwright.verifier.judge.judgement import Judgement
from warpwright.verifier.judge.original.reference import Original

torch = pytest.importorskip("torch")

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias, self.gain = (nn.Parameter(torch.randn(16)) for _ in range(3))

    def forward(self, x):
        x = x * self.weight + self.bias
        x = x - x[:1]
        return x / (x.square().mean(0) + 1e-10).sqrt() * self.gain{tail}

def get_inputs():
    return [torch.randn(64, 16)]

def get_init_inputs():
    return []
"""
"""Of tiny inputs the biases are left, and the first row takes them away again without an error."""

TINY = Case("tiny", 5)


def judged(folder: Path, tail: str = "") -> tuple[Original, Judgement]:
    (folder / "task.py").write_text(TASK.format(tail=tail))
    original = Original(taskfile.describe(folder / "task.py"), "cpu", 11, 1 << 30)
    return original, Judgement(original)


@pytest.fixture(scope="module")
def normed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Original, Judgement]:
    return judged(tmp_path_factory.mktemp("normed"))


def programs(original: Original, name: str) -> torch.Tensor:
    """Return what a program answers, written otherwise than the original."""
    [x] = original.inputs(TINY)
    state = original.state(0)
    weight, bias, gain = (state[key] for key in ("weight", "bias", "gain"))
    first = {
        "no bias": lambda: x[:1] * weight + bias, "by tenths": lambda: x[:1] * weight + bias * 0.1 + bias * 0.9,
        "half": lambda: (x[:1] * weight + bias).half().float(), "coarse": lambda: x[:1] * weight + bias * (1 + 2.0**-18),
    }[name]()  # fmt: skip
    y = (x - x[:1]) * weight if name == "no bias" else x * weight + bias - first
    return y / (y.square().mean(0) + 1e-10).sqrt() * gain


def test_the_answer_is_zero(normed: tuple[Original, Judgement]) -> None:
    [leaf] = normed[0].answer(TINY, 0).leaves
    assert leaf.scale.max == 0 and leaf.original.max == 0


@pytest.mark.parametrize("name", ["no bias", "by tenths"])
def test_what_another_order_leaves_there_is_no_error(name: str, normed: tuple[Original, Judgement]) -> None:
    original, judgement = normed
    seen = programs(original, name)
    assert seen.abs().max() > 0
    assert judgement.judge([seen], TINY, 0)["check"] == ""


@pytest.mark.parametrize("name", ["half", "coarse"])
def test_a_bias_with_fewer_digits_is_one(name: str, normed: tuple[Original, Judgement]) -> None:
    original, judgement = normed
    assert judgement.judge([programs(original, name)], TINY, 0)["check"] == "values"


def test_zeros_that_nothing_rounds_stay_zeros(tmp_path: Path) -> None:
    original, judgement = judged(tmp_path, tail=".relu().neg().relu()")
    [leaf] = original.answer(TINY, 0).leaves
    assert judgement.judge([torch.zeros(64, 16)], TINY, 0)["check"] == ""
    assert judgement.judge([torch.full((64, 16), 1e-30)], TINY, 0)["check"] == "values" and leaf.scale.max == 0

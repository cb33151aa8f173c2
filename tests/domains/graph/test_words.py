"""A graph in words: what may stand for a word is of its kind, told from what goes in and comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright.domains.graph.words import stand_ins, words
from warpwright.run import Settings, open_space

TEXT = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pools, self.convolution, self.norm = torch.nn.AdaptiveAvgPool2d(3), torch.nn.Conv1d(4, 8, 3), torch.nn.BatchNorm1d(8)
    def forward(self, x, y):
        x = torch.nn.functional.pad(x, (1, 1))
        x = torch.cat([self.norm(self.convolution(x)), torch.zeros(2, 8, 1)], 2)
        x = torch.erf(x.transpose(1, 2)) * torch.atan2(x.transpose(1, 2), x.transpose(1, 2))
        return torch.bmm(x, x.transpose(1, 2)).argmax(1).to(torch.int16), self.pools(y), y.cumprod(1), y.reshape(1, 1, 1, 1, 1, -1).amax(0)
def get_inputs():
    return [torch.rand(2, 4, 16), torch.rand(2, 3, 8, 8)]
def get_init_inputs():
    return []
"""

KINDS = {
    "pad": "expand_as", "conv1d": "conv2d", "batch_norm": "batch_norm", "cat": "expand_as", "transpose": "getitem", "erf": "sigmoid", "atan2": "mul",
    "bmm": "matmul", "argmax": "mean", "adaptive_avg_pool2d": "avg_pool2d", "cumprod": "softmax", "reshape": "getitem", "axes6": "axes5",
}  # fmt: skip


def test_what_stands_for_an_operator_is_of_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "odd_task.py"
    path.write_text(TEXT)
    space = open_space(Settings(device="cuda").describe(path), "cuda")
    found = stand_ins(space.start)
    assert {word: found[word][0] for word in KINDS} == KINDS
    assert found["int16"] == () and space.stand_ins is not None and space.stand_ins(space.start) == found
    assert {word for word in words(space.start) if not word.startswith("@")} == set(found)


def test_of_a_program_that_was_not_captured_nothing_stands_for_anything(tmp_path: Path) -> None:
    path = tmp_path / "branch_task.py"
    path.write_text(
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x + 1 if float(x.sum()) > 0 else x\n"
        "def get_inputs():\n    return [torch.rand(4)]\ndef get_init_inputs():\n    return []\n"
    )
    space = open_space(Settings(device="cuda").describe(path), "cuda")
    if not space.limited:
        pytest.skip("captured after all")
    assert stand_ins(space.start) == {} and words(space.start) == ("unreadable",)

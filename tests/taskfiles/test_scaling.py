"""Sizes shrink to a share of full-size work, and the program stays a valid one of the same kind."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from warpwright.errors import TaskError
from warpwright.tasks import scaling, taskfile

CONV = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups, bias_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.norm = nn.GroupNorm(num_groups, out_channels)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return self.norm(self.conv(x)) + self.bias

batch_size = 128  # a comment that stays
in_channels, out_channels = 64, 128
height = width = 64 * 4
kernel_size = 11
num_groups = 8
bias_shape = (out_channels, 1, 1)

def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]

def get_init_inputs():
    return [in_channels, out_channels, kernel_size, num_groups, bias_shape]
"""

GEMM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, features, num_groups):
        super().__init__()
        self.linear = torch.nn.Linear(features, features)
        self.norm = torch.nn.GroupNorm(num_groups, features)

    def forward(self, x):
        return self.norm(self.linear(x)) + x

def get_inputs():
    return [torch.rand(1024, features)]

features = 8192
num_groups = 512

def get_init_inputs():
    return [features, num_groups]
"""


def run(text: str, tmp_path: Path, scale: float) -> tuple[torch.nn.Module, torch.Tensor]:
    path = tmp_path / "task.py"
    path.write_text(text)
    reference = taskfile.load(taskfile.describe(path, scale=scale))
    model = reference.make_model()
    return model, model(*reference.make_inputs(0, "cpu"))


def test_one_is_as_written(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(CONV)
    assert taskfile.source_text(taskfile.describe(tmp_path / "task.py")) == CONV
    assert taskfile.describe(tmp_path / "task.py").key != taskfile.describe(tmp_path / "task.py", scale=0.5).key


def test_a_convolution_shrinks_and_keeps_its_kernel(tmp_path: Path) -> None:
    scaled = scaling.scale_text(CONV, 0.001)
    assert scaled.reached and scaled.seconds <= 0.001 * scaling.FULL_SECONDS < scaling.estimate_seconds(CONV)
    assert scaled.text.count("\n") == CONV.count("\n") and "# a comment that stays" in scaled.text and "kernel_size = 11" in scaled.text
    model, output = run(CONV, tmp_path, 0.001)
    assert model.conv.kernel_size == (11, 11) and model.norm.num_groups == 8 and output.std() > 0.1
    assert output.shape[2] == output.shape[3] >= 6 and output.shape[0] >= 4


def test_groups_shrink_with_their_features(tmp_path: Path) -> None:
    model, output = run(GEMM, tmp_path, 0.001)
    assert model.norm.num_channels // model.norm.num_groups == 8192 // 512
    assert output.shape[1] == model.linear.in_features < 8192


def test_steps_that_break_the_program_are_taken_back() -> None:
    scaled = scaling.scale_text(GEMM.replace("def forward(self, x):", "def forward(self, x):\n        assert x.shape[0] == 1024"), 0.001)
    assert "torch.rand(1024, features)" in scaled.text and scaled.reached


def test_an_unreachable_target_gives_the_smallest_program() -> None:
    scaled = scaling.scale_text(GEMM.replace("return [features, num_groups]", "return [features, num_groups]; assert False"), 1e-12)
    assert not scaled.reached and scaled.changes and scaled.seconds > 0


def test_what_small_tasks_and_bad_scales_give() -> None:
    assert scaling.scale_text(GEMM.replace("8192", "64").replace("512", "8"), 0.5).changes == {}
    with pytest.raises(TaskError, match="at most 1, saw 2"):
        scaling.scale_text(GEMM, 2.0)
    with pytest.raises(TaskError, match="does not run on the meta device"):
        scaling.scale_text(GEMM.replace("+ x", "+ x.item()"), 0.1)


@pytest.mark.parametrize(
    ("name", "value", "role"),
    [
        ("batch_size", 128, "batch"),
        ("kernel_size", 11, None),
        ("dim", 1, None),
        ("dim", 393216, "feature"),
        ("dim1", 512, "spatial"),
        ("W", 32, "spatial"),
        ("pool_kernel_size", 16, None),
        ("num_groups", 512, "group"),
        ("num_heads", 32, None),
        ("M", 4096, "other"),
        ("in_features", 64, "feature"),
    ],
)
def test_roles(name: str, value: int, role: str | None) -> None:
    assert scaling.role_of(name, value) == role


def test_literals_in_calls_and_products_are_sites() -> None:
    sites = {site.name: site.value for site in scaling.find_sites("N = 2048 * 2\ndef get_inputs():\n    return [torch.rand(16, 3, 224)]\n")}
    assert sites == {"N": 4096, "batch": 16, "rand_2": 224}


def test_substitution_counts_bytes_not_letters() -> None:
    text = "a = 64; name = 'größe'; b = 128\n"
    sites = scaling.find_sites(text)
    assert scaling.substitute(text, {site: site.value // 2 for site in sites}) == "a = 32; name = 'größe'; b = 64\n"

"""Peak memory of a task, from the meta device."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright.tasks import footprint, taskfile

TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1024))

    def forward(self, x):
        {body}

def get_inputs():
    return [torch.rand(256, 1024)]

def get_init_inputs():
    return []
"""

MIB = 2**20


def test_sizes(tmp_path: Path) -> None:
    path = tmp_path / "task.py"
    path.write_text(TASK.format(body="return {'sum': torch.conv2d(x[None, None], x[None, None, :2, :2] * self.scale[0])[..., :7]}"))
    sizes = footprint.sizes(taskfile.describe(path))
    assert (sizes.state, sizes.inputs, sizes.outputs) == (4096, MIB, 255 * 7 * 4) and sizes.convolves and sizes.peak > 1.9 * MIB


@pytest.mark.parametrize(
    ("body", "tensors"),
    [
        ("return x.view(1024, 256)", 1),
        ("return torch.relu(x)", 2),
        ("return torch.relu(torch.relu(torch.relu(torch.relu(x))))", 3),
        ("a, b = torch.relu(x), torch.sigmoid(x); c = a + b; return c.sum()", 4),
        ("return x * self.scale", 2),
    ],
)
def test_peaks(tmp_path: Path, body: str, tensors: int) -> None:
    path = tmp_path / "task.py"
    path.write_text(TASK.format(body=body))
    assert tensors * MIB <= footprint.peak_bytes(taskfile.describe(path)) <= tensors * MIB + 8192

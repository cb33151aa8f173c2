"""nn.TransformerEncoder packs padded sequences on a real device: the float64 oracle does as it does, so that what ignores that is rejected."""

from __future__ import annotations

from pathlib import Path

import torch

from warpwright.tasks import taskfile
from warpwright.verifier.judge.original.reference import Original

ENCODER = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 1)

    def forward(self, x, mask):
        return self.encoder(x, src_key_padding_mask=mask)


def get_inputs():
    return [torch.randn(3, 6, 16), torch.arange(6) >= torch.tensor([[6], [3], [4]])]


def get_init_inputs():
    return []
"""


def test_the_oracle_pads_as_the_original_does(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(ENCODER)
    original = Original(taskfile.describe(tmp_path / "task.py", mode="eval"), "cpu", 5, 1 << 30)
    x, mask = original.reference.make_inputs(0)
    own, wide = original.run_own([x, mask], 0), original.run_wide([x, mask], 0)
    assert not own[mask].any() and wide.dtype == torch.float64
    torch.testing.assert_close(own.double(), wide, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(*(original.run_wide([x, mask.flip(1)], 0), original.run_own([x, mask.flip(1)], 0).double()), rtol=1e-4, atol=1e-5)

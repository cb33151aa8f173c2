"""A saved module's weights lie in its file as they are, not as text; files of the first form are read too."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from warpwright.tasks import taskfile
from warpwright.tasks.modules import saved_module


def test_a_file_is_as_large_as_its_weights(tmp_path: Path) -> None:
    saved_module.write(nn.Linear(512, 512), [torch.ones(2, 512)], tmp_path / "a.pt")
    assert (tmp_path / "a.pt").stat().st_size < 1.05 * 512 * 513 * 4


def test_a_file_whose_weights_are_bytes_is_read(tmp_path: Path) -> None:
    model, x = nn.Linear(8, 8), torch.ones(2, 8)
    saved_module.write(model, [x], tmp_path / "new.pt")
    parts = torch.load(tmp_path / "new.pt", weights_only=True)
    torch.save({**parts, "saved": bytes(parts["saved"].tolist())}, tmp_path / "old.pt")
    for name in ("old.pt", "new.pt"):
        assert torch.equal(taskfile.load(taskfile.describe(tmp_path / name)).make_model()(x), model(x)), name

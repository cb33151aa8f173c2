"""Models of transformers that return hidden states, which a process records that never called their constructor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from warpwright import tasks
from warpwright.tasks.modules import saved_module

transformers = pytest.importorskip("transformers")

READ = """
import sys, torch
from warpwright.tasks import taskfile
model = taskfile.load(taskfile.describe(sys.argv[1])).make_model()
torch.save([tuple(model(torch.arange(12).reshape(2, 6))[name]) for name in ("hidden_states", "attentions")], sys.argv[2])
"""


@pytest.mark.parametrize("called", [False, True], ids=["new", "called before"])
def test_another_process_records_what_the_model_returns(called: bool, tmp_path: Path) -> None:
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, output_hidden_states=True,
        output_attentions=True, attn_implementation="eager",
    )  # fmt: skip
    model, ids = transformers.BertModel(config).eval(), torch.arange(12).reshape(2, 6)
    with torch.no_grad():
        expected = [transformers.BertModel.forward(model, ids)[name] for name in ("hidden_states", "attentions")] if called else None
        saved_module.write(model, [ids], tmp_path / "bert.pt")
        expected = expected or [model(ids)[name] for name in ("hidden_states", "attentions")]
    path = os.pathsep.join([str(Path(tasks.__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    arguments = [sys.executable, "-W", "ignore", "-c", READ, str(tmp_path / "bert.pt"), str(tmp_path / "states.pt")]
    subprocess.run(arguments, env=os.environ | {"PYTHONPATH": path}, check=True, timeout=120)
    seen = torch.load(tmp_path / "states.pt")
    assert [len(states) for states in seen] == [len(states) for states in expected] == [3, 2]
    for ours, theirs in zip(seen, expected, strict=True):
        torch.testing.assert_close(ours, theirs)

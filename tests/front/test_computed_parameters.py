"""Modules whose parameters torch computes at each call (parametrizations) are saved as they are, not as a graph of one mode."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from warpwright.tasks import taskfile
from warpwright.tasks.modules import saved_module


def computed(kind: str) -> nn.Module:
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 4))
    if kind == "two of one part":
        parametrizations.weight_norm(model[0])
        parametrizations.weight_norm(model[0], "bias", dim=None)
    elif kind == "one after the other":
        parametrizations.weight_norm(model[0])
        parametrize.register_parametrization(model[0], "weight", nn.Softplus())
    else:
        getattr(parametrizations, kind)(model[2])
    return model


READ = """import sys, torch
from torch import nn
torch.manual_seed(1)
model, x = (torch.load(sys.argv[1], weights_only=False)[name] for name in ("module", "inputs"))
assert not any(name.startswith("warpwright") for name in sys.modules)
with torch.no_grad():
    print([float(model(x[0]).double().sum()) for mode in (False, True) if model.train(mode) is model])
"""


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm", "orthogonal", "two of one part", "one after the other"])
def test_a_saved_part_computes_its_parameters_in_either_mode(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(0)
    model, x = computed(kind).eval(), torch.randn(3, 6)
    saved_module.write(model, (x,), tmp_path / "task.pt")
    Model = taskfile.run_text(taskfile.source_text(taskfile.describe(tmp_path / "task.pt")), "task.py", "task").Model
    found = Model()
    assert [name for name, _ in found.named_parameters()] == [name for name, _ in model.named_parameters()]
    assert any(parametrize.is_parametrized(part) for part in found.modules())
    for mode in (False, True):  # spectral_norm takes a step of its power iteration in training
        torch.testing.assert_close(found.train(mode)(x), model.train(mode)(x))
    with torch.no_grad():
        for one in (found, model):
            next(one.parameters()).mul_(1.5)
    torch.testing.assert_close(found(x), model(x))


def test_reading_takes_torch_alone(tmp_path: Path) -> None:
    model, x = computed("weight_norm").eval(), torch.randn(3, 6)
    saved_module.write(model, (x,), tmp_path / "task.pt")
    held = torch.load(tmp_path / "task.pt", weights_only=True)["saved"]
    (tmp_path / "saved.pt").write_bytes(held.numpy().tobytes())
    command = [sys.executable, "-I", "-c", READ, str(tmp_path / "saved.pt")]
    read = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    with torch.no_grad():
        wanted = float(model(x).double().sum())
    assert eval(read.stdout) == pytest.approx([wanted, wanted], rel=1e-6)


def test_a_part_may_ask_another_for_names_of_its_own(tmp_path: Path) -> None:
    """While it is made again it has no parts to ask."""
    (tmp_path / "asking_parts.py").write_text(ASKING)
    sys.path.insert(0, str(tmp_path))
    try:
        import asking_parts  # type: ignore[import-not-found]

        model, x = asking_parts.Asking(6, 6).eval(), torch.randn(3, 6)
        parametrizations.weight_norm(model)
        saved_module.write(model, (x,), tmp_path / "task.pt")
        found = taskfile.run_text(taskfile.source_text(taskfile.describe(tmp_path / "task.pt")), "task.py", "task").Model()
        torch.testing.assert_close(found(x), model(x))
        assert found.negative_slope == 0.25
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("asking_parts", None)


ASKING = """import torch
from torch import nn


class Asking(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.inner = nn.LeakyReLU(0.25)
        self.weight = nn.Parameter(torch.randn(sizes))

    def forward(self, x):
        return self.inner(x @ self.weight)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)
"""


def test_what_was_put_into_such_a_class_is_not_lost(tmp_path: Path) -> None:
    """The module is saved as its graph then."""
    model, x = computed("weight_norm").eval(), torch.randn(3, 6)
    type(model[2]).forward = lambda self, x: 2 * nn.functional.linear(x, self.weight, self.bias)  # type: ignore[method-assign]
    saved_module.write(model, (x,), tmp_path / "task.pt")
    found = taskfile.run_text(taskfile.source_text(taskfile.describe(tmp_path / "task.pt")), "task.py", "task").Model()
    torch.testing.assert_close(found(x), model(x))

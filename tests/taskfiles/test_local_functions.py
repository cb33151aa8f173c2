"""Modules that hold functions within functions, which Python's pickle does not save: as a hook, as transformers has them, and as an attribute."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from warpwright.errors import TaskError
from warpwright.tasks import taskfile
from warpwright.tasks.modules import saved_module

TEXT = """import torch

SHIFT = 3.0


def hooked(module, scale):
    def shifted(value):
        return value + SHIFT

    def hook(part, args, output, *, power=1):
        return shifted(output) * scale**power

    module.register_forward_hook(hook)
    return module


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = hooked(torch.nn.Linear(4, 4), 2.0)
        self.activation = lambda value: value.relu() + 1

    def forward(self, x):
        return self.activation(self.layer(x)), object()


class Recursive(Net):
    def __init__(self):
        super().__init__()

        def again(value):
            return value if value.dim() == 1 else again(value[0])

        self.activation = again
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "hooked_models.py").write_text(TEXT)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield import_module("hooked_models")
    sys.modules.pop("hooked_models")


def test_a_local_hook_and_a_lambda_are_saved_by_value(package: Any, tmp_path: Path) -> None:
    """torch.export, which is asked where nothing else saves a module, does not read this one: its result holds an object."""
    model, x = package.Net().eval(), torch.randn(2, 4)
    saved_module.write(model, [x], tmp_path / "net.pt")
    again = taskfile.load(taskfile.describe(tmp_path / "net.pt")).make_model().eval()
    assert torch.equal(again(x)[0], model(x)[0]) and again.activation.__globals__ is vars(package)


def test_one_that_calls_itself_is_refused_in_one_message(package: Any, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="Recursive cannot be saved"):
        saved_module.write(package.Recursive().eval(), [torch.randn(2, 4)], tmp_path / "net.pt")

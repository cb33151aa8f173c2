"""A program whose imported files were edited is another task: what was measured before answers nothing."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch
from stand_in import StandIn

import warpwright
from warpwright import run as driver
from warpwright.tasks import sources, taskfile
from warpwright.tasks.modules import saved_module

TASK = """
import torch
from own_models.net import Net

class Model(Net):
    pass

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""

NET = """
import torch
from .parts import scale

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 6)

    def forward(self, x):
        return torch.relu(self.linear(x)) * scale()
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of the user's: `net` imports `parts`, and nobody imports `other`."""
    folder = tmp_path / "own_models"
    folder.mkdir()
    for name, text in (("__init__", ""), ("net", NET), ("parts", "def scale():\n    return 2.0\n"), ("other", "")):
        (folder / f"{name}.py").write_text(text)
    (tmp_path / "task.py").write_text(TASK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return folder


def test_an_edited_import_makes_another_task(package: Path) -> None:
    task = taskfile.describe("task.py")
    (package / "other.py").write_text("x = 1\n")
    assert taskfile.describe("task.py").key == task.key and not taskfile.changed(task)
    (package / "parts.py").write_text("def scale():\n    return 3.0\n")
    assert taskfile.describe("task.py").key != task.key and taskfile.changed(task)


def test_a_task_that_stands_alone_has_the_key_that_it_had(package: Path) -> None:
    Path("alone.py").write_text(TASK.replace("from own_models.net import Net\n", "from torch.nn import ReLU as Net\n"))
    task = taskfile.describe("alone.py")
    assert task.option("imports") == "" and "imports" not in dict(task.options)


def test_relative_imports_and_packages_are_followed() -> None:
    assert sources.imported("from . import a\nfrom ..b import c\nimport d.e", "p.q") == {"p.q", "p.q.a", "p.b", "p.b.c", "d.e"}
    assert sources.imported("no python (", "p") == set()
    assert sources.digest_of(["torch.nn.modules.linear", "json", "pytest", "", "no_such_module_anywhere"]) == ""


def test_a_model_whose_class_was_edited_is_measured_anew(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "open_evaluator", lambda settings, task, *_: StandIn(task))
    model, x = importlib.import_module("own_models.net").Net(), torch.randn(4, 8)

    def recalled() -> bool:
        return warpwright.optimize(model, (x,), budget="2 proposals", target="cpu", progress=False, out="out").recalled

    assert not recalled() and recalled()
    (package / "parts.py").write_text("def scale():\n    return 3.0\n")
    assert not recalled()


def test_what_a_process_has_to_read_for_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "closed_models"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "task.py").write_text("import json\nimport no_such_module\n" + TASK.replace("own_models", "closed_models"))
    seen = taskfile.reads(taskfile.describe(tmp_path / "task.py"))
    assert str(package / "__init__.py") in seen and not any("json" in place or "no_such" in place for place in seen)
    saved_module.write(torch.nn.Linear(2, 2), [torch.ones(2)], tmp_path / "saved.pt")
    assert taskfile.reads(taskfile.describe(tmp_path / "saved.pt")) == (str(tmp_path / "saved.pt"),)

"""The names of a program's file: what stands below the original takes none of the original's, and has its own where it reads them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.domains.graph import models
from tests.domains.graph.test_shapes_program import load
from warpwright.base import Action
from warpwright.domains import graph
from warpwright.domains.graph.text import parts
from warpwright.domains.graph.text.apart import apart
from warpwright.tasks import taskfile
from warpwright.tasks.modules import saved_module

FUSED = "fuse_cuda(calls=1, block=256, vector=4, unroll=1)"


class Gated(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(4096))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.silu(x * self.scale) * x


def candidate(space: Any, *recipe: str) -> str:
    text: str = space.candidate([Action.parse(one) for one in recipe]).source.text
    return text


def test_a_step_on_a_gpu_draws_the_inputs_of_the_original(tmp_path: Path) -> None:
    saved_module.write(Gated(), [torch.randn(64, 4096)], tmp_path / "task.pt")
    space = graph.space(taskfile.describe(tmp_path / "task.pt", backward=True), "cuda")
    text = candidate(space, "differentiate(norms=true, again=true)", FUSED)
    assert "_empty_strided_cuda" in text, "which refuses any call but one of three arguments"
    inputs = load(text)["get_step_inputs"]()
    assert [x.shape for x in (inputs[0], *inputs[1])] == [(64, 4096), (64, 4096)]


WIDE = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(1024, 1024), nn.LayerNorm(1024), nn.Linear(1024, 256)

    def forward(self, x):
        return F.softmax(self.second(self.norm(F.gelu(self.first(x)))), dim=-1)


def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("recipe", [[FUSED], [FUSED, "launch_plan()"], ["int8_slices()", FUSED, "cuda_graph()"]], ids=lambda recipe: recipe[-1])
def test_a_program_for_each_shape_defines_its_classes_on_a_gpu_too(tmp_path: Path, recipe: list[str]) -> None:
    space = graph.space(models.task(tmp_path, WIDE, shapes='[{"x": [1, 1024]}, {"x": [4096, 1024]}]', mode="eval"), "cuda")
    names = load(candidate(space, *recipe))
    assert "CUDA_KERNELS" in names["_part_0_call_1"].__code__.co_varnames + names["_part_0_call_1"].__code__.co_cellvars
    model = names["ModelNew"]().eval()
    x = torch.randn(3, 1024)
    with pytest.warns(RuntimeWarning, match="shape"):
        torch.testing.assert_close(model(x), names["Model"].forward(model, x))


def test_imports_stand_first_in_a_function() -> None:
    text = 'KIND = a.b\nimport a  # late\nfrom os import (\n    path,\n    sep,\n)\nTEXT = """\nimport c\n"""\nimport a\n'
    assert parts.imports_first(text) == 'import a\nfrom os import path, sep\nKIND = a.b\nTEXT = """\nimport c\n"""'


OURS = """import torch
import numpy as _sys
import collections as _functools


def optimized(x):
    return x + 1.0


def _leaves(x):
    return [x * 2.0]


class _Watch:
    scale = 3.0


VERIFIED, _tracing = 4.0, 5.0


class Model(torch.nn.Module):
    def forward(self, x):
        assert _functools.deque and _sys.pi > 3.0
        return optimized(_leaves(x)[0]) * _Watch.scale + VERIFIED * _tracing


def get_inputs():
    return [torch.randn(64, 4096)]


def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("shapes", ["", '[{"x": [64, 4096]}, {"x": [8, 4096]}]'], ids=["whole", "shapes"])
def test_what_the_original_calls_by_names_of_ours_stays_its_own(tmp_path: Path, shapes: str) -> None:
    space = graph.space(models.task(tmp_path, OURS, **({"shapes": shapes, "mode": "eval"} if shapes else {})))
    names = load(candidate(space))
    alone = load(OURS)
    new, old = names["ModelNew"]().train(not shapes), alone["Model"]()
    with torch.no_grad():
        for x, fits in ((torch.randn(64, 4096), True), (torch.randn(3, 5), False)):
            assert new.fits([x]) is fits
            if fits:
                torch.testing.assert_close(new(x), old(x))
            else:
                with pytest.warns(RuntimeWarning):
                    torch.testing.assert_close(new(x), old(x))
    assert all(names[name] is not None and name + "_" in names for name in ("_Watch", "_tracing", "_functools"))
    if not shapes:
        names["_copy"] = copy
        names["self_test"](seeds=1)


def test_names_are_told_apart_where_they_are_the_files() -> None:
    text = """import a as own
import torch

def kept(x, own=own):
    one = [kept for kept in x if kept]
    return f"{x} {torch.kept(own)}", one, lambda y: kept(y), x.kept

class Other:
    def kept(self):
        return kept(1), f"{kept}", "kept"
"""
    wanted = """import a as own_
import torch

def kept_(x, own=own_):
    one = [kept for kept in x if kept]
    return f"{x} {torch.kept(own)}", one, lambda y: kept_(y), x.kept

class Other:
    def kept(self):
        return kept_(1), f"{kept_}", "kept"
"""
    assert apart("import torch\nown, kept = 1, 2\n", text) == wanted
    assert apart("import torch\nimport a as own\ndef x(): pass\n", text) is text

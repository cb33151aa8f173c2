"""Programs for declared shapes: one file with one for each, which takes the original for any other."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.domains.graph import models
from tests.domains.graph.test_pieces import BRANCHES, simplified
from warpwright.domains import graph

DECLARED = '[{"x": [2, 3, 4]}, {"x": [[1, 9], 3, 4]}]'

MODEL = models.RANDOM.replace("torch.randn(3, 2, 4)", "torch.randn(3, 3, 4)").replace(
    "return y if y.sum() > 0 else -2.0 * y", "return torch.relu(-2.0 * y).sum(0)"
)


def load(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "optimized.py", "exec"), names)
    return names


def test_the_file_has_a_program_for_each_shape(tmp_path: Path) -> None:
    space = graph.space(models.task(tmp_path, MODEL, shapes=DECLARED, mode="eval"))
    assert not space.limited and not space.note
    recipe = simplified(space)
    assert {action.technique for action in recipe} >= {"fold_parameters"} and not any("part_" in action.at for action in recipe)
    names = load(space.candidate(recipe).source.text)
    old, new = names["Model"](4).eval(), names["ModelNew"](4).eval()
    new.load_state_dict(old.state_dict())
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (2, 1, 9, 3, 2):  # 3 is the example's own
            x = torch.randn(size, 3, 4)
            assert new.fits([x])
            torch.testing.assert_close(new(x), old(x))
            new.linear.weight.mul_(-1.5)
            old.linear.weight.mul_(-1.5)
            torch.testing.assert_close(new(x), old(x))
    x = torch.randn(5, 3, 4)
    assert not new.fits([x])
    with torch.no_grad(), pytest.warns(RuntimeWarning, match="optimize it for this shape") as told:
        for _ in range(3):
            torch.testing.assert_close(new(x), old(x))
    assert len(told) == 1


def test_parts_have_a_program_for_each_shape_too(tmp_path: Path) -> None:
    space = graph.space(models.task(tmp_path, BRANCHES, shapes='[{"x": [6, 16]}, {"x": [3, 16]}]', mode="eval"))
    assert "not captured whole" in space.note
    first = next(piece for piece in space.start.pieces if "blocks.0" in piece.paths)
    assert len(first.programs) == 3, "two declared sizes, and the two rows of its second call"
    names = load(space.candidate(simplified(space)).source.text)
    old, new = names["Model"](16).eval(), names["ModelNew"](16).eval()
    new.load_state_dict(old.state_dict())
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (6, 3):
            for factor in (1.0, -1.0):
                x = factor * torch.rand(size, 16)
                torch.testing.assert_close(new(x)[0], old(x)[0])


@pytest.mark.parametrize("text", [MODEL, BRANCHES], ids=["calls", "parts"])
def test_one_refresh_is_of_every_program(tmp_path: Path, text: str) -> None:
    declared, width = (DECLARED, 4) if text is MODEL else ('[{"x": [6, 16]}, {"x": [3, 16]}]', 16)
    space = graph.space(models.task(tmp_path, text, shapes=declared, mode="eval"))
    names = load(space.candidate(simplified(space)).source.text)
    old, new = names["Model"](width).eval(), names["ModelNew"](width).eval()
    sizes = (2, 1, 9, 3) if text is MODEL else (6, 3)
    inputs = [torch.rand(size, 3, 4) if text is MODEL else torch.rand(size, 16) for size in sizes]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in inputs:
            new(x)
        for parameter in new.parameters():
            if parameter.dim() > 1:  # at none of the places that are looked at on a CPU
                parameter.data.view(-1)[2] -= 3.0
        new.refresh()
        old.load_state_dict(new.state_dict())
        for x in inputs:
            torch.testing.assert_close(new(x), old(x))


def test_programs_with_kernels_in_cuda_know_torch(tmp_path: Path) -> None:
    """A program's helpers import torch: in the function that holds it, that hid the file's above the line."""
    space = graph.space(models.task(tmp_path, MODEL.replace("(3, 3, 4)", "(64, 64, 64)"), shapes='[{"x": [64, 64, 64]}]', mode="eval"), "cuda")
    action = next(action for action in space.actions(space.start) if action.technique == "cuda_graph")
    text = space.candidate([action]).source.text
    assert load(text)["ModelNew"] is not None
    assert not [line for line in text.splitlines() if line.strip().startswith("import torch") and line.startswith("    import")]

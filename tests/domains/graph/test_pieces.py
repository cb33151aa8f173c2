"""Models that are not captured whole: their parts are, are rewritten, and the file does what the model does on every branch."""

from __future__ import annotations

import copy
import pickle
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.domains.graph import models
from warpwright.base import Action
from warpwright.domains import graph
from warpwright.domains.graph.text.parts import indented

BRANCHES = models.HEAD + '''class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.factor = 0.5

    def forward(self, x, scale=1.5):
        return x + self.down(torch.relu(self.up(x) * self.factor)) * scale


class Model(nn.Module):
    """A branch on values, a print, a number read from a tensor, a loop whose end they decide, and an autograd function."""

    def __init__(self, width):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(3))
        self.positive = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.GELU())
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        print("mean", x.mean().item())
        if x.sum() > 0:
            x = self.positive(x)
        else:
            x = self.blocks[0](x[:2], scale=2.0)
        steps = 0
        while x.abs().max().item() > 1.0 and steps < 3:
            x, steps = self.blocks[1](x) / 4.0, steps + 1
        return self.head(Double.apply(x)), steps


def get_inputs():
    return [torch.randn(6, 16)]


def get_init_inputs():
    return [16]
'''


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return graph.space(models.task(tmp_path_factory.mktemp("pieces"), BRANCHES, mode="eval"))


def simplified(space: Any) -> list[Action]:
    names, recipe, ir = ("scalar_into_linear", "fold_batch_norm", "fold_parameters"), [], space.start
    while legal := sorted((a for a in space.actions(ir) if a.technique in names), key=lambda a: names.index(a.technique)):
        recipe.append(legal[0])
        ir = space.apply(ir, legal[0])
    return recipe


@pytest.fixture
def program(space: Any, tmp_path: Path) -> Any:
    module = types.ModuleType("pieces_of_branches")
    sys.modules[module.__name__] = module
    text = space.candidate(simplified(space)).source.text
    (tmp_path / "optimized.py").write_text(text)
    exec(compile(text, str(tmp_path / "optimized.py"), "exec"), module.__dict__)
    yield module
    del sys.modules[module.__name__]


def test_the_largest_parts_are_the_pieces(space: Any) -> None:
    assert not space.limited and "data-dependent" in space.note
    assert sorted(path for piece in space.start.pieces for path in piece.paths) == ["blocks.0", "blocks.1", "blocks.2", "positive"]
    first = next(piece for piece in space.start.pieces if "blocks.0" in piece.paths)
    assert len(first.programs) == 2, "it is called in two ways"
    recipe = simplified(space)
    assert Action("fold_parameters") in recipe and any(action.at.startswith("part_") for action in recipe)
    assert [Action.parse(str(action)) for action in recipe] == recipe


def test_every_branch_gives_what_the_model_gives(program: Any) -> None:
    torch.manual_seed(0)
    old, new = program.Model(16).eval(), program.ModelNew(16).eval()
    new.load_state_dict(old.state_dict())
    steps = set()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")  # a part that falls back
        for factor in (1.0, -1.0, 5.0, -5.0, 0.01, 30.0):
            for _ in range(3):
                x = factor * torch.rand(6, 16)
                expected, seen = old(x), new(x)
                torch.testing.assert_close(seen[0], expected[0])
                assert seen[1] == expected[1]
                steps.add((tuple(expected[0].shape), expected[1]))
    assert len({shape for shape, _ in steps}) == 2 and len({count for _, count in steps}) > 1


def test_copies_pickles_and_changed_parts_are_right(program: Any) -> None:
    x = torch.rand(6, 16)
    new = program.ModelNew(16).eval()
    with torch.no_grad():
        new(x)
        for other in (copy.deepcopy(new), pickle.loads(pickle.dumps(new))):
            other.blocks[0].up.weight.mul_(-2.0)
            old = program.Model(16).eval()
            old.load_state_dict(other.state_dict())
            torch.testing.assert_close(other(x)[0], old(x)[0])
            old.blocks[1] = other.blocks[1] = torch.nn.Identity()
            torch.testing.assert_close(other(x)[0], old(x)[0])
    assert isinstance(new.blocks[0], program.Block) and list(new.state_dict()) == list(program.Model(16).state_dict())


def test_gradients_take_the_originals_forward(program: Any) -> None:
    old, new = program.Model(16).eval(), program.ModelNew(16).eval()
    new.load_state_dict(old.state_dict())
    x = torch.rand(6, 16)
    with pytest.warns(RuntimeWarning, match="gradients are wanted"):
        new(x)[0].sum().backward()
    old(x)[0].sum().backward()
    torch.testing.assert_close([p.grad for p in new.parameters()], [p.grad for p in old.parameters()])


def test_an_action_without_a_place_is_done_in_every_piece(space: Any) -> None:
    compiled = space.apply(space.start, Action("compile", params=(("mode", "default"),)))
    assert all(program.scheduled("compile") for program in compiled.programs())
    text = space.candidate([Action("compile", params=(("mode", "default"),))]).source.text
    assert text.count("@torch.compile(dynamic=False)") == len(list(compiled.programs()))


NOTHING = models.HEAD + '''class Model(nn.Module):
    """No part of it does two things."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        x = self.first(x)
        return self.second(x) if x.sum().item() > 0 else x


def get_inputs():
    return [torch.randn(6, 16)]


def get_init_inputs():
    return [16]
'''


def test_where_no_part_is_worth_it_the_reason_says_so(tmp_path: Path) -> None:
    space = graph.space(models.task(tmp_path, NOTHING))
    assert "nor was a part of it that has two operators or more" in space.limited
    assert {action.technique for action in space.actions(space.start)} == {"compile"}


def test_indentation_leaves_texts_of_several_lines_alone() -> None:
    text = "SOURCE = r'''\nint f() {\n}\n'''\n\n\ndef g(x):\n    return x"
    assert indented(text) == "    SOURCE = r'''\nint f() {\n}\n'''\n\n\n    def g(x):\n        return x"


@pytest.mark.compiler
@pytest.mark.slow
def test_kernels_of_a_piece_are_built_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path))
    text = BRANCHES.replace("torch.relu(self.up(x) * self.factor)", "torch.tanh(torch.relu(self.up(x) * self.factor) + 1.0) * 2.0")
    text = text.replace("torch.randn(6, 16)", "torch.randn(128, 256)").replace("return [16]", "return [256]")
    space = graph.space(models.task(tmp_path, text, mode="eval"))
    fused = next(action for action in space.actions(space.start) if action.technique == "fuse_cpp")
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(space.candidate([fused]).source.text, "optimized.py", "exec"), names)
    assert list(tmp_path.glob("*.so")), "no kernel was built"
    old, new = names["Model"](256).eval(), names["ModelNew"](256).eval()
    new.load_state_dict(old.state_dict())
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for factor in (1.0, -1.0):
            x = factor * torch.rand(128, 256)
            torch.testing.assert_close(new(x)[0], old(x)[0], rtol=1e-4, atol=1e-5)

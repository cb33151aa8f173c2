"""Machine code of AOTInductor in the place of a graph's calls: where it is legal, what its text is, and that it computes the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from warpwright.base import Action  # noqa: E402
from warpwright.domains import graph  # noqa: E402
from warpwright.search.ladder import search  # noqa: E402
from warpwright.tasks import taskfile  # noqa: E402

SMALL = """import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = torch.nn.Linear(width, width), torch.nn.Linear(width, width)

    def forward(self, x):
        y = torch.relu(self.first(x)) * 0.5
        for _ in range(12):
            y = torch.tanh(self.second(y) + y)
        return {"out": y, "parts": (y.sum(1), None)}


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return [8]
"""

AHEAD = Action("ahead_of_time")


def space_of(folder: Path, text: str) -> Any:
    (folder / "task.py").write_text(text)
    return graph.space(taskfile.describe(folder / "task.py"))


def test_a_small_model_that_no_plan_can_hold_is_tried_without_launches_first(tmp_path: Path) -> None:
    space = space_of(tmp_path, SMALL.replace("* 0.5", "* torch.roll(x, 1)"))
    import random

    (first,) = next(search(space, random.Random(0), 1))
    assert AHEAD in first


@pytest.mark.parametrize(
    ("before", "after"),
    [("return {", "x.add_(1)\n        return {"), ("torch.relu(self.first(x))", "torch.rand_like(x)"), ('"out": y', '"out": x')],
    ids=["writes", "random", "returns_its_input"],
)
def test_what_it_is_not_for(tmp_path: Path, before: str, after: str) -> None:
    space = space_of(tmp_path, SMALL.replace(before, after))
    assert AHEAD not in space.actions(space.start)


def test_it_is_the_last_of_its_kind(tmp_path: Path) -> None:
    space = space_of(tmp_path, SMALL)
    names = {action.technique for action in space.actions(space.replay((AHEAD,)))}
    assert not names & {"compile", "ahead_of_time", "cuda_graph"}


@pytest.mark.slow
@pytest.mark.compiler
def test_it_computes_the_same_with_the_state_of_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    space = space_of(tmp_path, SMALL.replace("range(12)", "range(1)"))
    text = space.candidate((AHEAD,)).source.text
    (tmp_path / "optimized.py").write_text(text)
    new = taskfile.run_text(text, str(tmp_path / "optimized.py"), "ahead_of_time_test")
    model, faster, x = new.Model(8), new.ModelNew(8), torch.randn(4, 8)
    faster.load_state_dict(model.state_dict())
    with torch.no_grad():
        for _ in range(2):
            want, got = model(x), faster(x)
            torch.testing.assert_close(got["out"], want["out"])
            torch.testing.assert_close(got["parts"][0], want["parts"][0])
            assert got["parts"][1] is None
            for parameter, other in zip(model.parameters(), faster.parameters(), strict=True):  # the state is an argument, so that it is never stale
                parameter.mul_(0.5)
                other.mul_(0.5)
        assert len(list((tmp_path / "cache" / "warpwright").glob("*.pt2"))) == 1
        torch.testing.assert_close(faster.double()(x.double())["out"], model.double()(x.double())["out"])


EMPTY_PART = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        q = x[..., :8].permute(0, 2, 1, 3)
        q = torch.cat((q * 2, q[..., 8:]), -1).contiguous()
        return q.view(8, 16, 8) + 1, q


def get_inputs():
    return [torch.randn(2, 16, 4, 24)]


def get_init_inputs():
    return []
"""
"""As a rotary embedding of all numbers is written (GPT-NeoX): torch.compile takes the order of axes of `cat` from the only part that is not empty."""


@pytest.mark.compiler
def test_results_of_a_compiler_lie_as_eager_has_them(tmp_path: Path) -> None:
    space = space_of(tmp_path, EMPTY_PART)
    compiled, ahead = (space.replay((action,)) for action in (Action("compile", params=(("mode", "default"),)), AHEAD))
    for ir in (compiled, ahead):
        assert not [node for node in ir.graph.nodes if node.target is torch.ops.aten.view.default]
    text = space.candidate((Action("compile", params=(("mode", "default"),)),)).source.text
    model, [x] = taskfile.run_text(text, "<compiled>", "compiled_view").ModelNew(), [torch.randn(2, 16, 4, 24)]
    y, q = model(x)
    wanted = x[..., :8].permute(0, 2, 1, 3) * 2
    torch.testing.assert_close((y, q), (wanted.reshape(8, 16, 8) + 1, wanted))
    assert y.is_contiguous() and q.is_contiguous(), "as the original's are"

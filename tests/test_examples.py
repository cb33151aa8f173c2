"""Every example loads, is captured, and its rewritten program agrees with float64; together they are what `make demo` runs."""

from __future__ import annotations

import ast
import types
from pathlib import Path

import pytest
import torch

from warpwright.domains import graph
from warpwright.search.moves import Moves
from warpwright.tasks import taskfile

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))

COLLAPSES = {"linear_sum_task", "conv_avgpool_task", "conv_transpose_mean_task"}
"""Those that algebra makes several times cheaper."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_rewritten_program_agrees_with_float64(path: Path) -> None:
    task = taskfile.describe(path, scale=1e-4)  # smaller sizes, the same program
    reference = taskfile.load(task)
    space = graph.space(task)
    assert not space.start.unreadable
    recipe = Moves(space).fixpoint((), "EDP")
    assert recipe or path.stem not in COLLAPSES
    namespace = types.ModuleType("optimized")
    exec(compile(space.candidate(recipe).source.text, "optimized.py", "exec"), namespace.__dict__)
    torch.manual_seed(0)
    model = reference.make_model()
    rewritten = namespace.ModelNew(*reference.init_inputs)
    rewritten.load_state_dict(model.state_dict())
    inputs = reference.make_inputs(1)
    wide = torch.utils._pytree.tree_map(lambda x: x.double() if x.is_floating_point() else x, inputs)
    with torch.no_grad():
        seen, original = torch.utils._pytree.tree_leaves(rewritten(*inputs)), torch.utils._pytree.tree_leaves(model(*inputs))
        exact = torch.utils._pytree.tree_leaves(model.double()(*wide))
    for got, old, want in zip(seen, original, exact, strict=True):
        assert got.shape == old.shape and got.dtype == old.dtype
        allowed = 2 * (old.double() - want).abs().max() + 64 * torch.finfo(old.dtype).eps * want.abs().max()
        assert (got.double() - want).abs().max() <= allowed


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_says_what_it_is_and_declares_one_task(path: Path) -> None:
    text = path.read_text()
    assert path.stem.endswith("_task") and (ast.get_docstring(ast.parse(text)) or "").startswith("Task: ")
    assert len(taskfile.entries(path)) == 1
    assert len(text.splitlines()) < 60


def test_there_are_both_forms_and_enough_of_them() -> None:
    loaders = {taskfile.describe(path).option("loader") for path in EXAMPLES}
    assert len(EXAMPLES) >= 6 and loaders == {"kernelbench", "function"} and {path.stem for path in EXAMPLES} >= COLLAPSES

"""Declared shapes: what a declaration may be, and the inputs that it makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from warpwright.errors import TaskError, UsageError
from warpwright.tasks import shapes, taskfile
from warpwright.tasks.reference import RUN_FIRST

MODEL = """
import torch


class Model(torch.nn.Module):
    def forward(self, ids, x, scale):
        return x[:, ids] * scale


def get_inputs():
    return [torch.randint(3, 9, (4,)), torch.randn(5, 16) + 100.0, 2.0]


def get_init_inputs():
    return []
"""


def inputs(tmp_path: Path, declared: list[dict[str, Any]]) -> list[list[Any]]:
    path = tmp_path / "task.py"
    path.write_text(MODEL)
    task = taskfile.describe(path, shapes=shapes.option(declared))
    return [taskfile.load(one).make_inputs(0) for one in shapes.tasks(task)]


def test_ranges_move_together_and_values_come_from_the_example(tmp_path: Path) -> None:
    made = inputs(tmp_path, [{"ids": [7]}, {"ids": [[1, 9]], "x": [[2, 64], 16]}])
    assert [(len(ids), tuple(x.shape)) for ids, x, _ in made] == [(7, (5, 16)), (1, (2, 16)), (4, (5, 16)), (9, (64, 16))]
    for ids, x, scale in made:
        assert ids.dtype == torch.int64 and int(ids.min()) >= 3 and int(ids.max()) < 9 and scale == 2.0
        assert x.dtype == torch.float32 and float(x.min()) > 90 and x.is_contiguous()


def test_the_examples_own_size_is_kept_within_the_range(tmp_path: Path) -> None:
    made = inputs(tmp_path, [{"x": [[8, 64], 16]}])
    assert [tuple(x.shape) for _, x, _ in made] == [(8, 16), (8, 16), (64, 16)]


def test_each_shape_is_a_task_of_its_own_with_a_name(tmp_path: Path) -> None:
    path = tmp_path / "task.py"
    path.write_text(MODEL)
    task = taskfile.describe(path, shapes='[{"x": [1, 16]}, {"x": [[2, 64], 16], "ids": [[1, 9]]}]')
    each = shapes.tasks(task)
    assert len({one.key for one in (task, *each)}) == 5 and not shapes.tasks(each[0])
    names = [shapes.label(one) for one in each]
    assert names == [
        "x 1x16", *(f"x 2..64x16, ids 1..9 {end}" for end in ("lowest", "nominal", "highest"))
    ]  # fmt: skip
    assert shapes.tasks(taskfile.describe(path)) == ()


@pytest.mark.parametrize(
    ("declared", "said"),
    [([], "a list of shapes"), ({"x": [1]}, "a list of shapes"), ([{"x": 3}], "sizes above 0"), ([{"x": [0, 3]}], "sizes above 0"),
     ([{"x": [[9, 3]]}], "pairs"), ([{"x": [[1, 9]]}] * 3, "at most 8")],
)  # fmt: skip
def test_what_is_no_declaration_is_said(declared: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        shapes.option(declared)


def test_an_input_that_is_not_there_or_has_other_axes_is_said(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"task\.py: expected shapes of ids, x, scale, saw those of 'y'") as caught:
        inputs(tmp_path, [{"y": [1]}])
    with pytest.raises(TaskError, match=r"task.py: expected the sizes of x, whose example has sizes \[.*\], saw \[1\]"):
        inputs(tmp_path, [{"x": [1]}])
    assert "make it run under python" not in str(caught.value) and "declare as many sizes" in str(caught.value)


def test_a_training_step_has_the_gradients_that_the_example_marks(tmp_path: Path) -> None:
    """What comes back is of the shape's results, and an input that the example marks is marked in every size."""
    marked = MODEL.replace("torch.randn(5, 16) + 100.0", "(torch.randn(5, 16) + 100.0).requires_grad_(), torch.randn(1)")
    for text, wanted in ((MODEL, [False, True, False]), (marked.replace("scale)", "y, scale)"), [False, True, False, False])):
        (tmp_path / "task.py").write_text(text)
        task = taskfile.describe(tmp_path / "task.py", shapes='[{"x": [1, 16]}, {"x": [5, 16], "ids": [2]}]', backward=True)
        references = [taskfile.load(one) for one in shapes.tasks(task)]
        assert [reference.namespace._forms()[0] for reference in references] == [wanted, wanted]
        assert [tuple(reference.make_inputs(0)[-1][0].shape) for reference in references] == [(1, 4), (5, 2)]


def test_an_error_in_a_shape_names_it(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(MODEL)
    task = taskfile.describe(tmp_path / "task.py", shapes='[{"x": [1, 16]}]')
    with pytest.raises(TaskError, match="in the shape x 1x16: no luck") as caught, shapes.named(shapes.tasks(task)[0]):
        raise TaskError("no luck", RUN_FIRST)
    assert caught.value.hint == "declare shapes that the program takes"
    with pytest.raises(TaskError, match=r"^no luck"), shapes.named(task):
        raise TaskError("no luck", RUN_FIRST)

"""Tests of the counts: no more input bytes than brute force finds to matter, no more output bytes than there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from warpwright.base import Task
from warpwright.errors import TaskError
from warpwright.tasks import taskfile
from warpwright.timing import counting

TASKS = sorted((Path(__file__).parents[1] / "tasks").glob("*.py"))
BY_VALUES = {"csr_product", "cumulative_norm", "experts", "kept_rows", "loss_and_count"}
"""Tasks whose forward looks at values: a counter of batches, which rows an expert has or a mask keeps. Meta tensors
have none, and sparse ones no storage."""


class Body(nn.Module):
    """A module made of a function."""

    def __init__(self, function: Callable[..., Tensor], *parameters: Tensor) -> None:
        super().__init__()
        self.function = function
        self.weights = nn.ParameterList(parameters)

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs, *self.weights)


def influential(function: Callable[..., Tensor], x: Tensor, enough: float = float("inf")) -> int:
    """Return how many elements of x change the output when they change, by trying each, at x and at other values, until there are `enough`."""
    found = torch.zeros(x.numel(), dtype=torch.bool)
    steps = (0.37, 100.0, -100.0, 0.7, 1.4, 2.1, 2.8, 3.5, 4.2, 4.9, 5.6)  # also round a period: max(sin(x), c) needs sin(x) > c
    for values in (x, 0.01 * x, -x, torch.randn_like(x)):
        before = function(values.clone())
        for step in steps:
            for position in (~found).nonzero()[:, 0].tolist():
                changed = values.clone()
                changed.view(-1)[position] += step
                found[position] = not torch.equal(function(changed), before)
            if found.sum() >= enough:
                return int(found.sum())
    return int(found.sum())


def counted(function: Callable[..., Tensor], inputs: list[Tensor], *parameters: Tensor) -> counting.Work:
    model = Body(function, *parameters).to("meta")
    return counting.count_model(model, [tensor.to("meta") for tensor in inputs])


def image(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


MASK = torch.tril(torch.ones(6, 6, dtype=torch.float64))

# (function, shape of x, share of x's elements that is counted)
PROGRAMS: list[tuple[str, Callable[[Tensor], Tensor], tuple[int, ...], float]] = [
    ("relu", torch.relu, (4, 6), 1.0),
    ("softmax", lambda x: torch.softmax(x, 1), (4, 6), 1.0),
    ("softmax of one", lambda x: torch.softmax(x, 1), (6, 1), 0.0),
    ("sum", lambda x: x.sum(1), (4, 6), 1.0),
    ("half", lambda x: torch.exp(x[:, :3]), (4, 6), 0.5),
    ("last step", lambda x: torch.exp(x)[:, -1], (4, 6), 1 / 6),
    ("last cumulated", lambda x: torch.cumsum(x, 1)[:, -1], (4, 6), 1 / 6),
    ("gate", lambda x: x.chunk(2, 1)[0] * torch.sigmoid(x.chunk(2, 1)[1]), (4, 6), 0.5),
    ("gate, one split", lambda x: (lambda a, b: a * torch.sigmoid(b))(*x.chunk(2, 1)), (4, 6), 1.0),
    ("dead", lambda x: torch.exp(x[:, :2] + 0 * x[:, 2:4]), (4, 6), 1 / 3),
    ("mask", lambda x: x * MASK.to(x.device), (6, 6), 0.0),
    ("masked product", lambda x: MASK.to(x.device) @ x, (6, 6), 0.0),
    ("times itself", lambda x: x @ x.T, (4, 6), 1.0),
    ("upper triangle", torch.triu, (6, 6), 21 / 36),
    ("lower triangle", lambda x: torch.tril(x, -1), (6, 6), 15 / 36),
    ("where", lambda x: torch.where(x > 0, x, -x), (4, 6), 1.0),
    ("cat", lambda x: torch.cat([x, x + 1]), (4, 6), 1.0),
    ("half of a cat", lambda x: torch.cat([torch.exp(x), torch.ones(4, 6, dtype=x.dtype, device=x.device)])[4:], (4, 6), 0.0),
    ("pad", lambda x: F.pad(x, (1, 2)), (4, 6), 1.0),
    ("crop", lambda x: F.pad(x, (-1, -1)), (4, 6), 0.0),
    ("transposed", lambda x: x.T.reshape(3, 8).permute(1, 0), (4, 6), 1.0),
    ("in place", lambda x: torch.exp(x).relu_(), (4, 6), 1.0),
    ("in place on a view", lambda x: torch.exp(x)[:, :2].zero_(), (4, 6), 0.0),
    ("max pool", lambda x: F.max_pool2d(x, 2), (1, 2, 7, 6), 6 / 7),
    ("max pool with gaps", lambda x: F.max_pool2d(x, 1, stride=2), (1, 2, 6, 6), 1 / 4),
    ("mean pool", lambda x: F.avg_pool2d(x, 3, stride=2, padding=1), (1, 2, 6, 6), 1.0),
    ("layer norm", lambda x: F.layer_norm(x, (6,)), (4, 6), 1.0),
    ("norm of one", lambda x: F.group_norm(x, 6), (4, 6, 1), 0.0),
    ("attention", lambda x: F.scaled_dot_product_attention(x, x, x), (1, 2, 6, 4), 1.0),
    ("embedding", lambda x: F.embedding(torch.zeros(3, dtype=torch.long, device=x.device), x), (4, 6), 0.0),
    ("flip", lambda x: x.flip(0).roll(1, 1), (4, 6), 1.0),
    ("expand", lambda x: x.unsqueeze(1).expand(4, 3, 6).sum(2), (4, 6), 1.0),
    ("untouched view", lambda x: x.view(-1), (4, 6), 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("function", "shape", "share"), [row[1:] for row in PROGRAMS], ids=[row[0] for row in PROGRAMS])
def test_no_more_is_counted_than_matters(function: Callable[[Tensor], Tensor], shape: tuple[int, ...], share: float) -> None:
    torch.manual_seed(0)
    x = image(*shape)
    work = counted(function, [x])
    assert work.bytes_read == pytest.approx(share * x.numel() * 8, abs=8)
    assert work.bytes_read <= 8 * influential(function, x, work.bytes_read / 8)
    assert work.bytes_written <= function(x.clone()).numel() * 8


# (function, shape of x, shape of the weight, share of x's elements that is counted)
CONVOLUTIONS: list[tuple[str, Callable[[Tensor, Tensor], Tensor], tuple[int, ...], tuple[int, ...], float]] = [
    ("plain", F.conv2d, (1, 2, 6, 6), (3, 2, 3, 3), 1.0),
    ("padded, one axis", lambda x, w: F.conv1d(x, w, padding=2, dilation=2), (1, 2, 9), (3, 2, 3), 1.0),
    ("strided 1x1", lambda x, w: F.conv2d(x, w, stride=2), (1, 2, 6, 6), (3, 2, 1, 1), 1 / 4),
    ("ends early", lambda x, w: F.conv2d(x, w, stride=3), (1, 2, 7, 7), (3, 2, 3, 3), 36 / 49),
    ("dilated, strided", lambda x, w: F.conv2d(x, w, stride=4, dilation=2), (1, 2, 9, 9), (3, 2, 2, 2), 16 / 81),
    ("then half", lambda x, w: F.conv2d(x, w)[:, :, :2], (1, 2, 6, 6), (3, 2, 3, 3), 1 / 2),
    ("transposed", lambda x, w: F.conv_transpose2d(x, w, stride=2), (1, 2, 4, 4), (2, 3, 3, 3), 1.0),
    ("transposed, cropped", lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=2), (1, 2, 4, 4), (2, 3, 2, 2), 1 / 4),
]  # fmt: skip


@pytest.mark.parametrize(("function", "shape", "weight_shape", "share"), [row[1:] for row in CONVOLUTIONS], ids=[row[0] for row in CONVOLUTIONS])
def test_convolutions(function: Callable[[Tensor, Tensor], Tensor], shape: tuple[int, ...], weight_shape: tuple[int, ...], share: float) -> None:
    torch.manual_seed(0)
    x, weight = image(*shape), image(*weight_shape)
    work = counted(function, [x], weight)
    assert work.bytes_read == pytest.approx(share * x.numel() * 8, abs=1)
    assert work.bytes_read <= 8 * influential(lambda x: function(x, weight), x, work.bytes_read / 8)
    assert work.flops["float64"] > 0


STEPS: dict[str, Callable[[Tensor], Tensor]] = {
    "sin": torch.sin,
    "soft sign": lambda x: x / (1 + x.abs()),
    "slice": lambda x: x[:, 1:],
    "stride": lambda x: x[::2],
    "transpose": lambda x: x.transpose(0, 1),
    "double": lambda x: torch.cat([x, 2 * x]),
    "zeros": lambda x: torch.cat([x, torch.zeros_like(x)]),  # not ones: nothing of max(sin(x), 1) changes, which no count of shapes can know
    "pad": lambda x: F.pad(x, (1, 0)),
    "triu": torch.triu,
    "split": lambda x: x[: x.shape[0] // 2 * 2].chunk(2)[0] * 3,
    "mean": lambda x: x - x.mean(0, keepdim=True) * 0.5,
    "max": lambda x: torch.maximum(x, x.flip(0)),
    "square": lambda x: x @ x.transpose(0, 1),
    "softmax": lambda x: torch.softmax(x, 1),
    "pool": lambda x: F.avg_pool1d(x.unsqueeze(0), 2, ceil_mode=True)[0] if len(x) and x.shape[1] > 1 else x,
    "relu in place": lambda x: (x + 0.1).relu_(),
}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5))
@example(["zeros", "sin", "max"])
@example(["pool", "slice"])  # the window that the slice leaves out was counted as large as the others
def test_chains_of_steps_are_never_counted_too_high(names: list[str]) -> None:
    def chain(x: Tensor) -> Tensor:
        for name in names:
            x = STEPS[name](x)
        return x

    torch.manual_seed(1)
    x = image(4, 5)
    if chain(x).numel() == 0:
        return
    work = counted(chain, [x])
    assert work.bytes_read <= 8 * influential(chain, x, work.bytes_read / 8), names


@pytest.mark.parametrize("name", sorted(BY_VALUES))
def test_a_task_that_looks_at_values_is_not_counted(name: str) -> None:
    with pytest.raises(TaskError, match=r"meta|Cannot access storage"):
        count_of(name)


@pytest.mark.parametrize("path", [path for path in TASKS if path.stem not in BY_VALUES], ids=lambda path: path.stem)
def test_every_task_is_counted(path: Path) -> None:
    task = taskfile.describe(path)
    work = counting.count(task)
    reference = taskfile.load(task)
    given = [value for value in pytree.tree_leaves(reference.make_inputs(0, "meta")) if isinstance(value, Tensor)]
    assert 0 <= work.bytes_read <= sum(tensor.numel() * tensor.element_size() for tensor in given)
    assert work.bytes > 0 and not work.note


def count_of(name: str) -> counting.Work:
    return counting.count(task_of(name))


def task_of(name: str) -> Task:
    return taskfile.describe(Path(__file__).parents[1] / "tasks" / f"{name}.py")


def test_flops_and_parameters_of_a_linear_layer() -> None:
    x, weight = torch.randn(5, 7), torch.randn(3, 7)
    work = counted(lambda x, w: torch.relu(F.linear(x, w)), [x], weight)
    assert work.flops == {"float32": 2.0 * 5 * 7 * 3}
    assert work.parameter_bytes == 3 * 7 * 4
    assert (work.bytes_read, work.bytes_written) == (5 * 7 * 4, 5 * 3 * 4)


def test_dead_work_has_no_flops() -> None:
    def wasteful(x: Tensor, weight: Tensor) -> Tensor:
        _ = x @ weight
        return torch.exp(x)

    work = counted(wasteful, [torch.randn(4, 4)], torch.randn(4, 4))
    assert work.flops == {} and work.parameter_bytes == 0


def test_an_input_that_cannot_matter_is_not_counted() -> None:
    assert count_of("degenerate_input_free").bytes_read == 0
    assert counted(lambda x, y: torch.exp(x), [image(4), image(1000)]).bytes_read == 32


def test_an_output_that_no_input_influences_need_not_be_written() -> None:
    work = counted(lambda x: torch.ones(100, device=x.device), [image(4)])
    assert work.bytes == 0


def test_an_output_that_is_expanded_is_written_once() -> None:
    work = counted(lambda x: torch.exp(x).expand(100, 4), [image(4)])
    assert work.bytes_written == 32

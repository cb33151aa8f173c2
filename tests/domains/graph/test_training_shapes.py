"""Training steps in declared shapes: one file with a program for each, whose gradients are the original's there and in any other shape."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.domains.graph import models
from tests.domains.graph.test_shapes_program import load
from warpwright.base import Action
from warpwright.domains import graph
from warpwright.errors import TaskError

PERCEPTRON = models.HEAD + '''class Model(nn.Module):
    """A perceptron with a layer norm, a parameter that is used twice, and a loss."""

    def __init__(self):
        super().__init__()
        self.up, self.norm, self.head = nn.Linear(12, 24), nn.LayerNorm(24), nn.Linear(24, 24)

    def forward(self, x, target):
        h = self.norm(F.gelu(self.up(x)))
        return F.cross_entropy(self.head(F.silu(self.head(h))), target)


def get_inputs():
    return [torch.randn(6, 12), torch.randint(0, 24, (6,))]


def get_init_inputs():
    return []
'''

ATTENTION = models.HEAD + '''class Model(nn.Module):
    """A block of attention with a bias and a residual; of the two inputs x alone has a gradient."""

    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x, bias):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-2, -1) * 8 ** -0.5 + bias, -1)
        return x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width)), weights


def get_inputs():
    return [torch.randn(16, 20, 16, requires_grad=True), torch.randn(16, 1, 1, 20)]


def get_init_inputs():
    return []
'''

TIED = models.HEAD + '''class Model(nn.Module):
    """A head that is its table: one parameter under two names."""

    def __init__(self):
        super().__init__()
        self.table, self.norm, self.head = nn.Embedding(24, 12), nn.LayerNorm(12), nn.Linear(12, 24, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x, target):
        return F.cross_entropy(self.head(torch.tanh(self.norm(self.table(target) + x))), target)


def get_inputs():
    return [torch.randn(6, 12), torch.randint(0, 24, (6,))]


def get_init_inputs():
    return []
'''

CONVOLUTIONS = models.HEAD + '''class Model(nn.Module):
    """Convolutions with batch norms."""

    def __init__(self):
        super().__init__()
        self.a, self.n, self.b, self.m = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 1), nn.BatchNorm2d(4)

    def forward(self, x):
        return F.relu(self.m(self.b(F.hardswish(self.n(self.a(x)))))).mean((2, 3))


def get_inputs():
    return [torch.randn(4, 3, 16, 16)]


def get_init_inputs():
    return []
'''

NETS: dict[str, tuple[str, str, str, Sequence[Sequence[Any]], Sequence[Any]]] = {
    "perceptron": (
        PERCEPTRON, "train", '[{"x": [1, 12], "target": [1]}, {"x": [[4, 256], 12], "target": [[4, 256]]}]',
        [[(1, 12)], [(4, 12)], [(6, 12)], [(256, 12)]], [(5, 12)],
    ),
    "tied": (TIED, "train", '[{"x": [512, 12], "target": [512]}, {"x": [6, 12], "target": [6]}]', [[(512, 12)], [(6, 12)]], [(5, 12)]),
    "attention": (
        ATTENTION, "train", '[{"x": [16, 20, 16], "bias": [16, 1, 1, 20]}, {"x": [1, 3, 16], "bias": [1, 1, 1, 3]}]',
        [[(16, 20, 16), (16, 1, 1, 20)], [(1, 3, 16), (1, 1, 1, 3)]], [(2, 4, 16), (2, 1, 1, 4)],
    ),
    "convolutions in training": (
        CONVOLUTIONS, "train", '[{"x": [4, 3, 16, 16]}, {"x": [1, 3, 4, 4]}]', [[(4, 3, 16, 16)], [(1, 3, 4, 4)]], [(3, 3, 6, 6)],
    ),
    "convolutions in eval": (
        CONVOLUTIONS, "eval", '[{"x": [4, 3, 16, 16]}, {"x": [1, 3, 4, 4]}]', [[(4, 3, 16, 16)], [(1, 3, 4, 4)]], [(3, 3, 6, 6)],
    ),
}  # fmt: skip
"""Text, mode, declaration, the sizes that it stands for, and others. Of a perceptron the target follows."""

FORMS = {
    "autograd": [],
    "differentiated": ["differentiate(norms=false, again=false)"],
    "fused": ["differentiate(norms=true, again=true)", "fuse_cpp(calls=1)"],
}


@pytest.fixture(scope="module", params=NETS)
def net(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    text, mode, declared, inside, outside = NETS[request.param]
    task = models.task(tmp_path_factory.mktemp("task"), text, mode=mode, shapes=declared, backward=True)
    return graph.space(task), mode, inside, outside


def program(space: Any, recipe: Sequence[str]) -> dict[str, Any]:
    candidate = space.candidate([Action.parse(text) for text in recipe])
    assert candidate.source.entry == "StepNew"
    return load(candidate.source.text)


def pair(names: dict[str, Any], mode: str) -> tuple[torch.nn.Module, torch.nn.Module]:
    """Return the original and the program, with one state."""
    torch.manual_seed(0)
    old, new = (names[name]().train(mode == "train") for name in ("Model", "ModelNew"))
    for tensor in old.state_dict().values():  # the norms' are ones and zeros, which hide much
        if tensor.is_floating_point():
            tensor.mul_(0.8).add_(0.1 * torch.rand_like(tensor))
    new.load_state_dict(old.state_dict())
    return old, new


def drawn(sizes: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
    made = [torch.randn(size) for size in sizes]
    return [made[0].requires_grad_(), *([torch.randint(0, 24, sizes[0][:1])] if len(sizes[0]) == 2 else made[1:])]


def step(model: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> list[Any]:
    """Return the results of a call, the gradients of a mean that weighs all of them, and the state after it."""
    given = [x.detach().requires_grad_(x.requires_grad) for x in inputs]
    found = model(*given)
    results = found if isinstance(found, tuple) else (found,)
    sources = [x for x in given if x.requires_grad] + list(model.parameters())
    weighed = [(result * torch.linspace(-1.0, 2.0, result.numel()).view(result.shape)).sum() if result.dim() else 3.0 * result for result in results]
    return [*(result.detach() for result in results), *torch.autograd.grad(sum(weighed), sources), *model.state_dict().values()]


@pytest.mark.parametrize("form", FORMS)
def test_each_shape_has_the_originals_gradients(net: Any, form: str) -> None:
    space, mode, inside, outside = net
    assert not space.limited and not space.note
    names = program(space, FORMS[form])
    old, new = pair(names, mode)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for sizes in (*inside, *reversed(inside)):
            inputs = drawn(sizes)
            torch.testing.assert_close(step(new, inputs), step(old, inputs), rtol=1e-4, atol=2e-5)
            assert new.fits(inputs)
            for model in (old, new):  # in place between two steps, as an optimizer does it
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.mul_(0.9)
    inputs = drawn(outside)
    assert not new.fits(inputs)
    with pytest.warns(RuntimeWarning, match="optimize it for this shape") as told:
        torch.testing.assert_close(step(new, inputs), step(old, inputs), rtol=0, atol=0)
        step(new, inputs)
    assert len(told) == 1


def test_kernels_are_in_the_programs_that_are_worth_one(net: Any) -> None:
    space, _, inside, _ = net
    programs = space.replay([Action.parse(text) for text in FORMS["fused"]]).pieces[0].programs
    assert len(programs) == len(inside) and all(one.training.tangents for one in programs)
    kernels = [any(hasattr(node.target, "python_text") for node in one.graph.nodes) for one in programs]
    assert any(kernels) and not all(kernels)


def test_the_self_test_is_of_the_step(net: Any) -> None:
    space, mode, *_ = net
    names = program(space, FORMS["fused"])
    names["_copy"] = copy
    with warnings.catch_warnings():
        if mode == "train":  # as the constructor leaves it
            warnings.simplefilter("error", RuntimeWarning)
        names["self_test"](seeds=1)


def test_the_reason_is_that_of_the_program_whose_shape_it_is(net: Any) -> None:
    """A call in a declared shape that wants something else is not told that its shape was not declared."""
    space, mode, inside, _ = net
    names = program(space, FORMS["differentiated"])
    old, new = pair(names, mode)
    for sizes in inside:
        x, *rest = drawn(sizes)
        wide = torch.cat([x.detach(), x.detach()], -1)[..., 1 : x.shape[-1] + 1].requires_grad_()  # the same shape, in longer rows
        if wide.is_contiguous():  # of one row
            continue
        names["_Watch"].told.clear()
        with pytest.warns(RuntimeWarning, match="has strides"):
            torch.testing.assert_close(step(new, [wide, *rest]), step(old, [wide, *rest]), rtol=0, atol=0)
        names["_Watch"].told.clear()
        with pytest.warns(RuntimeWarning, match=f"is in {'eval' if mode == 'train' else 'training'} mode"):
            new.train(mode != "train")(*drawn(sizes))
        new.train(mode == "train").load_state_dict(old.state_dict())


def test_only_the_gradients_that_were_asked_for_are_verified(tmp_path: Path) -> None:
    """The example's mark is on the inputs of every shape, and a gradient of another input is the original's."""
    space = graph.space(models.task(tmp_path, ATTENTION, mode="train", shapes=NETS["attention"][2], backward=True))
    for one in space.start.pieces[0].programs:
        assert one.training.wanted[0] == "x" and "bias" not in one.training.wanted
    names = program(space, FORMS["fused"])
    old, new = pair(names, "train")
    for sizes in NETS["attention"][3]:
        x, bias = drawn(sizes)
        names["_Watch"].told.clear()
        with pytest.warns(RuntimeWarning, match="gradient of bias is wanted"):
            torch.testing.assert_close(step(new, [x, bias.requires_grad_()]), step(old, [x, bias]), rtol=0, atol=0)


BRANCHING = models.HEAD + '''class Model(nn.Module):
    """Read as a graph for few rows; for more it looks at a value."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        y = torch.tanh(self.a(x)) * 0.5
        if x.shape[0] > 4 and y.sum() > 1e9:
            y = y - 1.0
        return torch.sigmoid(self.b(y)) * 2.0


def get_inputs():
    return [torch.randn(3, 8)]


def get_init_inputs():
    return []
'''


def test_a_shape_that_is_not_captured_keeps_the_original(tmp_path: Path) -> None:
    space = graph.space(models.task(tmp_path, BRANCHING, mode="train", shapes='[{"x": [3, 8]}, {"x": [6, 8]}, {"x": [2, 8]}]', backward=True))
    assert space.note.startswith("not captured in 1 of the shapes") and not space.limited
    names = program(space, FORMS["differentiated"])
    old, new = pair(names, "train")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (3, 6, 2):
            inputs = [torch.randn(size, 8, requires_grad=True)]
            torch.testing.assert_close(step(new, inputs), step(old, inputs), rtol=1e-4, atol=1e-5)
    whole = graph.space(models.task(tmp_path, BRANCHING, "other", mode="train", shapes='[{"x": [5, 8]}, {"x": [6, 8]}]', backward=True))
    assert whole.limited and {action.technique for action in whole.actions(whole.start)} == {"compile"}
    text = whole.candidate([Action.parse('compile(mode="default")')]).source.text
    assert text.count("compiled = torch.compile(") == 2


def test_a_shape_that_the_program_does_not_take_is_named(tmp_path: Path) -> None:
    task = models.task(tmp_path, PERCEPTRON, mode="train", shapes='[{"x": [6, 12]}, {"x": [4, 12], "target": [3]}]', backward=True)
    with pytest.raises(TaskError, match=r"in the shape x 4x12, target 3: .*batch_size \(4\)") as caught:
        graph.space(task)
    assert caught.value.hint == "declare shapes that the program takes"

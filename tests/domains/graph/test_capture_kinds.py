"""Capture: kinds of code that forwards are made of, each compared with the model on the same values."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from tests.domains.graph import models
from warpwright.domains import graph
from warpwright.domains.graph.capture.model import from_module
from warpwright.domains.graph.ir import mutated, run
from warpwright.errors import CaptureError
from warpwright.tasks.modules.copying import copied


class Made(nn.Module):
    """Tensors that forward makes without saying where: a causal mask, a literal, a table of positions."""

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        window = torch.tensor([1.0, 2.0, 4.0])[:, None] * torch.as_tensor([[1.0, 0.5]])
        scores = (x @ x.transpose(1, 2)).masked_fill(~mask, -9.0) + torch.arange(x.shape[1])
        return torch.softmax(scores, -1) @ x, window.sum() * x, torch.eye(4) + torch.tensor(2.0), x[0, 0, :2] * x.new_tensor([3.0, 5.0])


class Regions(nn.Module):
    """Code without gradients, and code that switches autocast off."""

    def forward(self, x):
        with torch.no_grad():
            low, high = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
        with torch.autocast("cpu", enabled=False):
            y = (x.float() - low) / (high - low)
        with torch.autocast(x.device.type, enabled=False):  # as models are written that run anywhere
            y = y * 2.0 if not torch.is_autocast_enabled(x.device.type) else y
        return y, high


class Written(nn.Module):
    """Writes through views: of parts of parts, of other shapes, and transposed."""

    def forward(self, x):
        out = torch.zeros(2, 3, 4, 5)
        out[:, 1:, :2, ::2] = x[:, :2, None, :3]
        out.view(6, 20)[:, 3] = 7.0
        out.transpose(1, 3)[0, 2] += 1.0
        out.permute(3, 2, 1, 0)[4].mul_(2.0)
        out.unsqueeze(0).flatten(1)[:, :5].copy_(x[:1, 0, :5])
        return out


class Cache(nn.Module):
    """A cache that is written twice and read in between and afterwards."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(2, 6, 5))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, x, at):
        self.keys[:, at] = x[:, :1]
        before = self.keys.sum(1)
        self.keys.index_add_(1, at + 1, x[:, 1:2])
        self.count += 1
        return self.keys @ x.transpose(1, 2) * self.count, before


class Listed(nn.Module):
    """Indices that are Python lists, an array of numpy's, a layer whose weight is computed when it is made, and a dropout that is off."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.utils.spectral_norm(nn.Linear(5, 5))
        self.eval()

    def forward(self, x):
        y = torch.nn.functional.dropout(self.linear(x), 0.5, self.training)
        y *= 2.0
        y[:, [0, 2]] = x[:, [-1]] + torch.from_numpy(numpy.array([[1.0, 2.0, 3.0, 4.0, 5.0]], dtype=numpy.float32))
        return y, x[..., [True, False, True, False, True]]


KINDS: dict[str, tuple[Callable[[], nn.Module], Callable[[], list[Any]]]] = {
    "made": (Made, lambda: [torch.randn(2, 4, 4)]),
    "regions": (Regions, lambda: [torch.randn(2, 4)]),
    "written": (Written, lambda: [torch.randn(2, 3, 5)]),
    "listed": (Listed, lambda: [torch.randn(2, 3, 5)]),
    "cache": (Cache, lambda: [torch.randn(2, 3, 5), torch.tensor([3])]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_computes_what_the_model_computes(kind: str) -> None:
    make, inputs = KINDS[kind]
    torch.manual_seed(0)
    model, given = make().requires_grad_(False), inputs()
    twin = copied(model)
    ir = from_module(model, given)
    state = {**dict(twin.named_parameters()), **dict(twin.named_buffers())}
    for _ in range(2):  # what a call leaves in the buffers counts in the next
        torch.testing.assert_close(run(ir, given, state), model(*given), rtol=0, atol=0)
    torch.testing.assert_close(dict(twin.state_dict()), dict(model.state_dict()), rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_generated_file_passes_its_own_test(kind: str, tmp_path: Path) -> None:
    make, inputs = KINDS[kind]
    head = "import numpy\nimport torch\nfrom torch import nn\n\n\n"
    drawn = inspect.getsource(inputs).partition("lambda: ")[2].partition("]),")[0]
    tail = f"\n\ndef get_inputs():\n    return {drawn}]\n\n\ndef get_init_inputs():\n    return []\n"
    space = graph.space(models.task(tmp_path, head + inspect.getsource(make).replace(f"class {make.__name__}", "class Model") + tail))
    names: dict[str, Any] = {"__name__": "generated", "_copy": copy}
    exec(compile(space.candidate([]).source.text, "optimized.py", "exec"), names)
    assert not space.limited
    names["self_test"]()


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_one_tensor_given_twice_is_two_inputs(device: str) -> None:
    class Both(nn.Module):
        def forward(self, a, b, c):
            return a * 2 + b - c[0]

    x = torch.randn(3, device=device)
    ir = from_module(Both(), [x, x, (x,)])
    given = [torch.randn(3), torch.randn(3), (torch.randn(3),)]
    torch.testing.assert_close(run(ir, given, {}), Both()(*given))


def test_what_is_written_and_read_is_written_once_and_last() -> None:
    make, inputs = KINDS["cache"]
    ir = from_module(make(), inputs())
    assert {node.name for node in mutated(ir.graph)} == {"b_keys", "b_count"}
    *_, first, second, _ = ir.graph.nodes
    assert {str(first.target), str(second.target)} == {"aten.copy_.default"}


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (lambda self, x: x[x > 0], "nonzero"),
        (lambda self, x: torch.unique(x), "_unique2"),
        (lambda self, x: F.relu(torch.vmap(lambda row: row.sum())(x)) if _under_autocast(x) else x, "autocast"),
    ],
    ids=["sizes_by_values", "no_shape", "autocast"],
)
def test_what_cannot_be_captured_is_said(forward: Callable[..., Any], reason: str) -> None:
    model = type("Model", (nn.Module,), {"forward": forward})()
    with pytest.raises(CaptureError, match=reason):
        from_module(model, [torch.randn(3, 4)])


@pytest.mark.parametrize(("kind", "norm", "check"), [(torch.bool, True, True), (torch.float32, False, True), (torch.bool, False, False)], ids=str)
def test_what_an_encoder_pads_is_as_eager_has_it(kind: torch.dtype, norm: bool, check: bool) -> None:
    """In eval mode without gradients nn.TransformerEncoder gives zeros at the end of a sequence, and only there."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8) if norm else None, mask_check=check).eval()
    x, lengths = torch.randn(3, 5, 8), torch.tensor([5, 2, 4])
    ends = torch.arange(5) >= lengths[:, None]
    given = [x, None, torch.zeros(3, 5, dtype=kind)]
    ir = from_module(copied(model), given)
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    masks = [ends, torch.zeros_like(ends), ends.flip(1), ends.clone().index_fill_(0, torch.tensor([1]), True)]
    with torch.no_grad():
        for mask in masks:
            given[2] = mask if kind == torch.bool else torch.zeros(3, 5).masked_fill(mask, -torch.inf)
            torch.testing.assert_close(run(ir, given, state), model(*given), rtol=1e-4, atol=1e-5, equal_nan=True)


def _under_autocast(x: torch.Tensor) -> bool:
    with torch.autocast("cpu", torch.bfloat16):
        x @ x.T
    return True


VIEWS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda t: t[1:], lambda t: t[..., ::2], lambda t: t[0], lambda t: t.transpose(0, -1), lambda t: t.unsqueeze(1), lambda t: t.flatten(),
    lambda t: t.chunk(2, -1)[-1], lambda t: t.unbind(0)[-1], lambda t: t.view(-1, t.shape[-1]), lambda t: t.permute(*reversed(range(t.dim()))),
    lambda t: t.diagonal(0, 0, -1),
)  # fmt: skip
WRITES: tuple[Callable[[torch.Tensor], Any], ...] = (
    lambda t: t.mul_(2.0), lambda t: t.add_(1.0), lambda t: t.zero_(), lambda t: t.copy_(t.clone() - 3.0), lambda t: t.relu_(),
    lambda t: t.clamp_(max=1.0),
)  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=10))
def test_writes_through_any_views(steps: list[tuple[bool, int, int]]) -> None:
    """Each step makes a view of an earlier tensor, or writes to one; all of them are results."""

    refused: set[int] = set()  # views that the strides do not allow; tracing finds fewer of them than a run

    def forward(self: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
        made = [x + 0.5, x * 2.0]
        for number, (is_view, which, what) in enumerate(steps):
            at = made[which % len(made)]
            if not is_view:
                WRITES[what % len(WRITES)](at)
            elif number not in refused and at.dim() >= 2 and min(at.shape) > 1 and at.numel() > 4:
                try:
                    made.append(VIEWS[what % len(VIEWS)](at))
                except RuntimeError:
                    refused.add(number)
        return [t.clone() for t in made]

    model = type("Model", (nn.Module,), {"forward": forward})()
    x = torch.randn(3, 4, 2)
    expected = model(x)
    torch.testing.assert_close(run(from_module(model, [x]), [x], {}), expected, rtol=0, atol=0)

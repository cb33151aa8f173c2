"""Training steps that are recorded whole, with a stand-in for CUDA graphs that runs the function again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch

from warpwright.domains.rgnn.nn import steps
from warpwright.domains.rgnn.nn.steps import AFTER, CapturedStep, captured
from warpwright.rgnn import RGCNConv

MADE: list[Any] = []


class Again:
    """What a CUDA graph is to its caller: it runs with the Python objects that it saw, and `out` is memory that each replay writes."""

    def __init__(self, function: Callable[[], Sequence[torch.Tensor]], stream: Any) -> None:
        self.function = function
        self.out = [x.clone() for x in function()]
        self.places = [(x, x.grad) for x in PARAMETERS if x.grad is not None]
        MADE.append(self)

    def replay(self) -> None:
        for own, x in zip(self.out, self.function(), strict=True):
            own.copy_(x)
        for parameter, place in self.places:
            place.copy_(parameter.grad)


PARAMETERS: list[torch.nn.Parameter] = []


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    MADE.clear()
    monkeypatch.setattr(steps, "capture", Again)
    monkeypatch.setattr(steps, "aside", lambda stream, function: function())
    monkeypatch.setattr(steps, "new_stream", lambda device: object())
    monkeypatch.setattr(steps, "on_gpu", lambda tensors: True)
    yield


def made() -> tuple[RGCNConv, tuple[torch.Tensor, torch.Tensor], CapturedStep, list[int]]:
    torch.manual_seed(0)
    layer, calls = RGCNConv(8, 8, 3), [0]
    edges = torch.randint(20, (2, 90)), torch.randint(3, (90,))
    PARAMETERS[:] = list(layer.parameters())

    def step(x: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        layer.zero_grad()
        loss = layer(x, *edges).square().mean()
        loss.backward()
        return loss

    return layer, edges, captured(layer, step), calls


def test_each_call_is_one_step_with_its_own_loss_and_gradients() -> None:
    layer, edges, step, _ = made()
    optimiser, losses, wanted = torch.optim.SGD(layer.parameters(), 0.1), [], []
    other = RGCNConv(8, 8, 3)
    other.load_state_dict(layer.state_dict())
    beside = torch.optim.SGD(other.parameters(), 0.1)
    for number in range(AFTER + 4):
        x = torch.randn(20, 8)
        if number == AFTER + 2:
            layer.zero_grad(set_to_none=True)  # from outside: the gradients are there again after the step
        losses.append(step(x))
        optimiser.step()
        beside.zero_grad()
        loss = other(x, *edges).square().mean()
        loss.backward()
        beside.step()
        wanted.append(loss.detach())
    torch.testing.assert_close(torch.stack([loss.detach() for loss in losses]), torch.stack(wanted))
    torch.testing.assert_close(list(layer.parameters()), list(other.parameters()))
    assert len(MADE) == 1


def test_what_a_recording_cannot_see_is_recorded_anew() -> None:
    layer, edges, step, calls = made()
    x = torch.randn(20, 8)

    def times(count: int) -> int:
        for _ in range(count):
            step(x)
        return len(MADE)

    assert times(AFTER) == 0 and times(2) == 1
    edges[0][0, 0] = 5  # in place
    assert times(AFTER) == 1 and times(1) == 2
    layer.eval()
    assert times(AFTER) == 2 and times(1) == 3
    with torch.no_grad():
        layer.weight.data = layer.weight.data.clone()
    assert times(AFTER) == 3 and times(1) == 4
    x = torch.randn(25, 8)
    assert times(AFTER) == 4 and times(1) == 5
    assert calls[0] > 5 * AFTER


def test_a_step_that_cannot_be_recorded_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(steps, "capture", refuse)
    _, _, step, calls = made()
    x = torch.randn(20, 8)
    with pytest.warns(UserWarning, match="not recorded"):
        losses = [float(step(x).detach()) for _ in range(AFTER + 3)]
    assert len(set(losses)) == 1 and calls[0] == AFTER + 3


def test_edges_among_what_a_step_is_given_are_not_recorded() -> None:
    torch.manual_seed(0)
    layer = RGCNConv(8, 8, 3)
    step = captured(layer, lambda x, edges, kinds: layer(x, edges, kinds).sum())
    with pytest.warns(UserWarning, match="edges are among"):
        for _ in range(AFTER + 2):
            edges, kinds, x = torch.randint(20, (2, 90)), torch.randint(3, (90,)), torch.randn(20, 8)
            torch.testing.assert_close(step(x, edges, kinds), layer(x, edges, kinds).sum())


def test_on_a_cpu_a_step_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    _, _, step, calls = made()
    for _ in range(AFTER + 2):
        step(torch.randn(20, 8))
    assert calls[0] == AFTER + 2 and not MADE


def test_a_given_tensor_gets_its_gradient() -> None:
    _, _, step, _ = made()
    for _ in range(AFTER + 2):
        x = torch.randn(20, 8, requires_grad=True)
        step(x)
        assert x.grad is not None and not MADE

"""Plain Python objects of installed packages as results, as a distribution or a cache: read into the graph and written again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from warpwright.domains import graph
from warpwright.domains.graph.capture import results
from warpwright.errors import CaptureError, TaskError
from warpwright.tasks import taskfile
from warpwright.tasks.modules import saved_module
from warpwright.verifier.judge.original.answers import leaves_of
from warpwright.verifier.judge.readable import expect_readable
from warpwright.workers.tensors.objects import kinds_of, state_of


class Cached(nn.Module):
    """Returns its keys as transformers' DynamicCache holds them: in objects within a list, with the type and the device that they have."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, argparse.Namespace]:
        """Return sums and the object."""
        keys = self.keys(x)
        layer = argparse.Namespace(keys=keys, device=keys.device, dtype=keys.dtype, ready=True, states={0: keys * 2, 1: None})
        return keys.sum(-1), argparse.Namespace(kind=nn.Linear, layers=[layer], name="dynamic", size=torch.Size([2]))


def written(model: nn.Module, inputs: tuple[Any, ...], folder: Path) -> Any:
    """Return the program that is written of a model."""
    saved_module.write(model, inputs, folder / "model.pt")
    space = graph.space(taskfile.describe(folder / "model.pt"))
    assert not space.limited and not space.note
    return taskfile.run_text(space.candidate([]).source.text, "<plain>", "plain_results").ModelNew().eval()


def test_objects_within_objects_are_restored(tmp_path: Path) -> None:
    model, x = Cached().eval(), torch.randn(3, 8)
    with torch.no_grad():
        sums, cache = written(model, (x,), tmp_path)(x)
        expected, original = model(x)
    assert torch.equal(sums, expected) and type(cache) is argparse.Namespace
    assert (cache.kind, cache.name, cache.size) == (nn.Linear, "dynamic", torch.Size([2]))
    (layer,), (known,) = cache.layers, original.layers
    assert torch.equal(layer.keys, known.keys) and torch.equal(layer.states[0], known.states[0]) and layer.states[1] is None
    assert (layer.device, layer.dtype, layer.ready) == (known.device, known.dtype, True)  # not the meta device, on which it was read
    assert vars(cache).keys() == vars(original).keys() and vars(layer).keys() == vars(known).keys()


class Drawn(nn.Module):
    """Returns a distribution."""

    def forward(self, x: torch.Tensor) -> torch.distributions.Normal:
        """Return it."""
        return torch.distributions.Normal(x.mean(1), x.std(1) + 1, validate_args=False)


def test_a_distribution_works_as_the_original(tmp_path: Path) -> None:
    x = torch.randn(3, 8)
    found, expected = written(Drawn().eval(), (x,), tmp_path)(x), Drawn()(x)
    at = torch.zeros(3)
    assert type(found) is type(expected) and torch.equal(found.log_prob(at), expected.log_prob(at)) and found.batch_shape == expected.batch_shape


def test_what_is_no_plain_object_is_refused() -> None:
    for item in ({1}, iter([]), torch.Generator(), nn.Linear(1, 1), lambda: 1):
        assert state_of(item) is None
        with pytest.raises(CaptureError, match="not made of tensors alone"):
            results.flatten(item, [])


def test_an_object_within_itself_is_refused_and_one_in_two_places_is_not() -> None:
    tensor = torch.ones(3)
    once, within, in_list = (argparse.Namespace(keys=tensor) for _ in range(3))
    within.me, in_list.layers = within, {0: [in_list]}
    for item in (within, in_list):
        with pytest.raises(CaptureError, match="the result holds a Namespace that holds itself"):
            results.flatten(item, [])
    for item in (argparse.Namespace(layers=[once, once]), (once, {"cache": once}), (once, argparse.Namespace(keys=tensor))):
        results.flatten(item, [])


def test_a_device_needs_a_tensor_beside_it() -> None:
    with pytest.raises(CaptureError, match="without a tensor"):
        results.flatten(argparse.Namespace(device=torch.device("cpu")), [])


class Twice(nn.Module):
    """Returns an object, a list and a dictionary in two places each, and two equal lists that are two."""

    def forward(self, x: torch.Tensor) -> tuple[Any, ...]:
        """Return them."""
        held = [x * 2]
        layer = argparse.Namespace(keys=x + 1, held=held, device=x.device, by={0: held})
        return [layer, layer], argparse.Namespace(one=layer, other=argparse.Namespace(last=layer, device=x.device)), held, [x * 2], layer.by


def test_one_object_in_two_places_stays_one(tmp_path: Path) -> None:
    x = torch.randn(3)
    layers, cache, held, other, by = written(Twice(), (x,), tmp_path)(x)
    assert layers[0] is layers[1] is cache.one is cache.other.last and layers[0].by is by
    assert held is layers[0].held is by[0] and other is not held and torch.equal(other[0], held[0])
    assert cache.other.device == x.device
    leaves: list[Any] = []
    structure = results.flatten(Twice()(x), leaves)
    first, second = results.nest(structure, leaves)[0]
    assert first is second and len(leaves) == 3


class Endless(nn.Module):
    """Returns what holds itself: an object, a list or a dictionary."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: torch.Tensor) -> Any:
        """Return it."""
        made: Any = {"list": [x], "dict": {"x": x}, "object": argparse.Namespace(x=x)}[self.kind]
        if self.kind == "list":
            made.append((1, made))
        else:
            (vars(made) if self.kind == "object" else made)["me"] = made
        return made


@pytest.mark.parametrize("kind", ["list", "dict", "object"])
def test_what_holds_itself_is_one_clear_error(kind: str) -> None:
    with pytest.raises(CaptureError, match="holds itself"):
        results.flatten(Endless(kind)(torch.ones(2)), [])
    for walk in (leaves_of, kinds_of):
        with pytest.raises(TaskError, match="that holds itself, at out"):
            list(walk(Endless(kind)(torch.ones(2))))
    with pytest.raises(TaskError, match="holds itself"):
        expect_readable([torch.ones(2)], Endless(kind)(torch.ones(2)))

"""Training steps that are recorded whole, with a stand-in for CUDA graphs that runs the function again."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn import tensors
from warpwright.domains.rgnn.nn import launches, lent, steps
from warpwright.domains.rgnn.nn.common import typed_index
from warpwright.domains.rgnn.nn.launches import AFTER
from warpwright.domains.rgnn.nn.steps import CapturedStep, captured
from warpwright.rgnn import RGCNConv

MADE: list[Any] = []


class Calls(TorchDispatchMode):
    """Names what torch is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.names = set[str]()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


class Again:
    """What a CUDA graph is to its caller: it runs with the Python objects that it saw, and `out` is memory that each replay writes."""

    def __init__(self, function: Callable[[], Sequence[torch.Tensor]], pool: Any = None, stream: Any = None) -> None:
        self.function = function
        self.out = list(function())
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
    layer.weight = torch.nn.Parameter(layer.weight.data)  # in the same memory: the gradient has to be this one's
    PARAMETERS[:] = list(layer.parameters())
    assert times(AFTER) == 5 and times(1) == 6 and layer.weight.grad is not None
    assert calls[0] > 5 * AFTER


@pytest.mark.parametrize("flag", ["matmul", "conv"])
def test_a_precision_set_by_torchs_newer_flag_is_recorded_anew(flag: str) -> None:
    _, _, step, _ = made()
    backends: Any = torch.backends
    x, place = torch.randn(20, 8), backends.cuda.matmul if flag == "matmul" else backends.cudnn.conv
    before = place.fp32_precision
    for number, precision in enumerate(("ieee", "tf32"), start=1):
        try:
            place.fp32_precision = precision
            for _ in range(AFTER + 1):
                step(x)
        finally:
            place.fp32_precision = before
        assert len(MADE) == number


def changed_shape(x: torch.Tensor) -> None:
    x.data = x.data.view(2, 3)


def changed_type(x: torch.Tensor) -> None:
    x.data = x.data.view(torch.int32).view(torch.float32).view(3, 2).view(torch.float16)[:, :2]


def changed_strides(x: torch.Tensor) -> None:
    x.data = x.data.as_strided((3, 2), (1, 3))


def changed_place(x: torch.Tensor) -> None:
    x.data = x.data.clone()


def frozen(x: torch.Tensor) -> None:
    x.requires_grad_(False)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("change", [changed_shape, changed_type, changed_strides, changed_place, frozen])
def test_a_layout_holds_until_a_parameter_lies_or_is_read_otherwise(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[torch.Tensor], None], grad: bool
) -> None:
    monkeypatch.setattr(tensors, "library", lambda like: None)
    parameters = [torch.nn.Parameter(torch.zeros(3, 2)) for _ in range(3)]
    with torch.set_grad_enabled(grad):
        first = launches.layout(parameters)
        assert launches.layout(parameters, first) is first
        with torch.inference_mode():
            assert launches.layout(parameters, first) is first
        with torch.no_grad():
            parameters[1].add_(1.0)
        assert launches.layout(parameters, first) is first
        change(parameters[1])
        assert launches.layout(parameters, first) is not first
        assert launches.layout(parameters[:2], first) is not first


def test_a_step_that_cannot_be_recorded_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
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


def test_a_type_of_autocast_and_a_mode_within_are_recorded_anew() -> None:
    """Autocast's type is read when a step is recorded, and so is whether a module within drops values."""
    torch.manual_seed(0)
    model = torch.nn.ModuleList([torch.nn.Linear(8, 8), torch.nn.Dropout(0.0)])
    step, x = captured(model, lambda x: model[1](model[0](x)).sum()), torch.randn(4, 8)

    def times(kind: torch.dtype | None) -> int:
        for _ in range(AFTER + 1):
            with torch.autocast("cpu", dtype=kind, enabled=kind is not None):
                step(x)
        return len(MADE)

    assert [times(None), times(torch.bfloat16), times(torch.float16)] == [1, 2, 3]
    model[1].eval()
    assert times(torch.float16) == 4


def test_weights_are_cast_within_a_recording() -> None:
    """Autocast keeps what it has cast until its block ends: a recording that read that would read the weights as they were, at every replay."""
    torch.manual_seed(0)
    model, seen = torch.nn.Linear(8, 8), list[bool]()

    def step(x: torch.Tensor) -> torch.Tensor:
        with Calls() as calls:
            loss = model(x)
        seen.append("_to_copy" in calls.names)
        return loss

    recorded, x = captured(model, step), torch.randn(4, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(AFTER + 1):
            recorded(x.bfloat16())
    assert seen[0] and seen[AFTER] and not any(seen[1:AFTER])


def test_several_results_are_copies_side_by_side() -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 5)
    step = captured(model, lambda x: (model(x), x.sum(), x[:1]))
    for _ in range(AFTER + 3):
        x = torch.randn(4, 3)
        results = step(x)
        assert not isinstance(results, torch.Tensor)
        torch.testing.assert_close([y.detach() for y in results], [model(x).detach(), x.sum(), x[:1]])
        kept = results[1].clone()
        results[0].detach().fill_(7.0)
        assert torch.equal(results[1], kept)


def test_versions_see_writes_and_the_end_of_edges_and_keep_none_alive() -> None:
    edges, types = torch.randint(5, (2, 9)), torch.randint(2, (9,))
    with indices.watched() as graphs:
        typed_index(edges, types, 5, 5, 2)
    known = indices.Versions(graphs)
    assert known.same() and {id(t) for t in known.there()} == {id(edges), id(types)}
    whole = weakref.ref(known)
    types[:1] = types[:1].clone()
    assert not known.same()
    with indices.watched() as graphs:
        typed_index(edges, types, 5, 5, 2)
    known = indices.Versions(graphs)
    assert whole() is None and known.same()  # without the garbage collector
    del edges
    assert not known.same() and not known.others


def lending(step: Callable[..., Any], model: torch.nn.Module, *given: torch.Tensor) -> CapturedStep:
    """Return a step that lends its results, recorded."""
    recorded = captured(model, step, lend=True)
    for _ in range(AFTER + 1):
        recorded(*given)
    return recorded


def test_results_are_lent_and_a_held_one_stays_as_it_is() -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 5)
    with torch.no_grad():
        step = lending(lambda x: (model(x), x[:1] + 1), model, torch.randn(4, 3))
        places, held = set[int](), []
        for _ in range(6):  # `out = step(x)` holds one while the other is written
            x = torch.randn(4, 3)
            out = step(x)
            torch.testing.assert_close(list(out), [model(x), x[:1] + 1])
            places.add(out[0].data_ptr())
            assert out[0].untyped_storage().data_ptr() == out[1].untyped_storage().data_ptr() and not out[0]._is_view()
        assert len(places) == 2
        for _ in range(4):
            x = torch.randn(4, 3)
            results = step(x)
            held.append((results[0][1:], model(x)[1:]))  # a view holds it too
            results[1].fill_(7.0)
        assert len({y.untyped_storage().data_ptr() for y, _ in held}) == 4
        for y, wanted in held:
            torch.testing.assert_close(y, wanted)


def test_what_something_else_has_and_what_makes_gradients_is_not_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    model, kept, x = torch.nn.Linear(3, 3), list[torch.Tensor](), torch.randn(4, 3)

    def keeping(x: torch.Tensor) -> torch.Tensor:
        kept[:] = [model(x)]
        return kept[0]

    def training(x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            model.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
        return loss

    with torch.no_grad():
        for function in (keeping, training):
            recorded = lending(function, model, x).recorded
            assert recorded is not None and not recorded.lent
        usual = lending(lambda x: model(x), model, x).recorded
        assert usual is not None and len(usual.lent) == 2
        monkeypatch.setattr(lent, "users", lambda memory: 1)  # a torch that does not count views
        lent.ours.cache_clear()
        uncounted = lending(lambda x: model(x), model, x).recorded
        lent.ours.cache_clear()
        assert uncounted is not None and not uncounted.lent
    graded = lending(training, model, x).recorded
    assert graded is not None and not graded.lent

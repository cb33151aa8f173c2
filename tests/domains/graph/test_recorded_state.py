"""What is computed from the state once (folded values, INT8 slices, prepared factors) and read by CUDA graphs is made again when the state changes.

The graph is a stand-in on the CPU that keeps to a real one's rules: it captures calls without doing them, and replays them on the memory that
they had.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.domains.graph import models
from warpwright import ops
from warpwright.base import Action
from warpwright.domains import graph
from warpwright.domains.graph.watch import _Watch
from warpwright.templates import int8_product

TEXT = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gemm, self.norm = nn.Linear(16, 16), nn.GroupNorm(4, 16)
        self.scale, self.bias = nn.Parameter(torch.rand(16, 1) + 0.5), nn.Parameter(torch.randn(1, 16, 1, 1))

    def forward(self, x):
        x = torch.min(self.norm(@PRODUCT), dim=1, keepdim=True)[0]
        return x + self.bias

def get_inputs():
    return [torch.rand(8, 16)]

def get_init_inputs():
    return []
"""
PRODUCTS = {"int8_slices": "self.gemm(x)", "fold_parameters": "nn.functional.linear(x, self.gemm.weight * self.scale, self.gemm.bias)"}


class Tape(TorchDispatchMode):
    """A CUDA graph: what a call in the block would compute is computed by `replay` alone, where the call said that it lies."""

    running: Tape | None = None

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []
        self.replays = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, result))
        return result

    def poison(self) -> None:
        """Overwrite what the calls made."""
        for _, args, kwargs, result in self.calls:
            given = {t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
            for made in tree_leaves(result):
                if isinstance(made, torch.Tensor) and made.untyped_storage().data_ptr() not in given:
                    made.fill_(float("nan") if made.is_floating_point() else 99)

    def replay(self) -> None:
        self.replays += 1
        for func, args, kwargs, result in self.calls:
            for place, made in zip(tree_leaves(result), tree_leaves(func(*args, **kwargs)), strict=True):
                if isinstance(place, torch.Tensor) and place.data_ptr() != made.data_ptr():
                    place.copy_(made)


@contextmanager
def capturing(tape: Tape, **_: Any) -> Iterator[None]:
    before, Tape.running = Tape.running, tape
    try:
        with tape:
            yield
        tape.poison()
    finally:
        Tape.running = before


class Standing:
    """A stream, an event and their contexts that do nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self

    def __enter__(self) -> Standing:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("Event", "Stream", "stream", "current_stream", "current_device"):
        monkeypatch.setattr(torch.cuda, name, lambda *_, **__: Standing())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Tape)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda: torch.zeros(1))
    monkeypatch.setattr(torch.cuda, "graph", capturing)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: Tape.running is not None)
    monkeypatch.setitem(vars(torch.cuda), "_recording_streams", {})


@pytest.fixture(params=sorted(PRODUCTS))
def program(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what makes a program with that technique, followed by a CUDA graph unless that is not wanted, and its original."""
    monkeypatch.setattr(ops, "worthwhile", lambda *_: True)
    monkeypatch.setattr(ops, "best_split", lambda *_: 1)
    space = graph.space(models.task(tmp_path, TEXT.replace("@PRODUCT", PRODUCTS[request.param])), "cuda")

    def made(recorded: bool = True) -> Any:
        recipe = [Action("unused_indices"), Action(request.param), *([Action("cuda_graph")] if recorded else [])]
        names: dict[str, Any] = {"__name__": "generated"}
        exec(space.candidate(recipe).source.text, names)
        assert names["VERIFIED"]["folded"]
        names["VERIFIED"]["device"] = "cpu"
        names["_captures"] = lambda tensors: Tape.running is not None
        if request.param == "int8_slices":  # whose kernels are for a GPU: the product is that of what was cut
            names["int8_cut"], names["int8_linear"] = lambda rows: rows.clone(), lambda x, rows, slices: x @ slices.mT
        return SimpleNamespace(new=names["ModelNew"](), original=names["Model"].forward)

    return made


def in_place(model: Any) -> None:
    model.gemm.weight.mul_(-2)


def by_copy(model: Any) -> None:
    for parameter in model.parameters():
        parameter.copy_(torch.randn_like(parameter))


def by_data(model: Any) -> None:
    model.gemm.weight.data.copy_(torch.randn(16, 16))
    model.refresh()


def other_data(model: Any) -> None:
    model.gemm.weight.data = torch.randn(16, 16)


def loaded(model: Any) -> None:
    model.load_state_dict({name: torch.randn_like(tensor) for name, tensor in model.state_dict().items()})


def assigned(model: Any) -> None:
    model.load_state_dict({name: torch.randn_like(tensor) for name, tensor in model.state_dict().items()}, assign=True)


def replaced(model: Any) -> None:
    model.gemm.weight = torch.nn.Parameter(torch.randn(16, 16))


def stepped(model: Any) -> None:
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    torch.optim.SGD(model.parameters(), lr=0.5).step()


def stepped_in_one(model: Any) -> None:
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    torch.optim.Adam(model.parameters(), lr=0.5, fused=True).step()


CHANGES = (in_place, by_copy, by_data, other_data, loaded, assigned, replaced, stepped, stepped_in_one)


def answers(model: Any, x: torch.Tensor) -> torch.Tensor:
    """Return the answer of the faster program, not of the original's forward."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model(x)
    assert isinstance(found, torch.Tensor)
    return found


def expect_right(made: Any) -> None:
    x = torch.rand(8, 16)
    with torch.no_grad():
        torch.testing.assert_close(answers(made.new, x), made.original(made.new, x))


@torch.no_grad()
def test_a_recorded_program_sees_every_change_of_its_state(program):
    made = program()
    expect_right(made)
    for change in (*CHANGES, *reversed(CHANGES)):
        change(made.new)
        expect_right(made), expect_right(made)
    assert made.new._watch.recorded.graph.replays == 2


@torch.no_grad()
def test_a_recording_that_failed_is_made_again(program, monkeypatch):
    made = program()
    expect_right(made)
    kept = made.new._watch.recorded
    folded = made.new.folded()
    made.new.gemm.weight.mul_(-2)

    @contextmanager
    def full(tape: Tape, **_: Any) -> Iterator[None]:
        raise torch.cuda.OutOfMemoryError("no memory")
        yield

    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "graph", full)
        with pytest.raises(torch.cuda.OutOfMemoryError):
            made.new(torch.rand(8, 16))
    watch, anew = made.new._watch, made.new.folded()
    at_the_old_ones = tuple(old.copy_(new) for old, new in zip(folded, anew, strict=True))  # the allocator may give that memory again
    watch.folds = (*watch.folds[:3], at_the_old_ones, *watch.folds[4:])
    expect_right(made)
    assert made.new._watch.recorded is kept


@torch.no_grad()
@pytest.mark.parametrize("change", [in_place, by_copy, by_data, loaded, stepped, stepped_in_one], ids=lambda change: change.__name__)
@pytest.mark.parametrize("recorded", [False, True])
def test_a_callers_graph_follows_the_next_call_after_a_change(program, recorded, change):
    made, x, tape = program(recorded), torch.rand(8, 16), Tape()
    answers(made.new, x)
    with capturing(tape):
        result = answers(made.new, x)
    for _ in range(2):
        change(made.new)
        expect_right(made)
        x.copy_(torch.rand(8, 16))
        tape.replay()
        torch.testing.assert_close(result, made.original(made.new, x))


@torch.no_grad()
@pytest.mark.parametrize("recorded", [False, True])
def test_what_a_callers_graph_is_to_fold_is_not_kept(program, recorded):
    made, x, tape = program(recorded), torch.rand(8, 16), Tape()
    answers(made.new, x)
    made.new.gemm.weight.mul_(-2)
    with capturing(tape):
        result = answers(made.new, x)
    expect_right(made)
    made.new.gemm.weight.mul_(-2)
    tape.replay()
    torch.testing.assert_close(result, made.original(made.new, x))
    expect_right(made)


@torch.no_grad()
def test_what_is_folded_anew_is_not_written_over_the_state():
    weight, other = torch.randn(4, 4), torch.randn(4, 4)
    before, own = weight.clone(), torch.zeros(4)
    found = _Watch.written_over((weight.T, own), (other.T, torch.ones(4)), [weight])
    assert torch.equal(weight, before) and torch.equal(found[0], other.T) and found[1] is own and own.all()


@torch.no_grad()
def test_a_prepared_factor_in_a_callers_graph(monkeypatch):
    def cut(source: torch.Tensor) -> Any:
        return SimpleNamespace(source=source, memory=source.clone())

    monkeypatch.setattr(ops, "_on_hopper", lambda x: True)
    monkeypatch.setattr(torch.cuda, "device", lambda *_: Standing())
    monkeypatch.setattr(ops, "_captures", lambda x: Tape.running is not None)
    monkeypatch.setattr(int8_product, "cut", cut)
    monkeypatch.setattr(int8_product, "fill", lambda slices: slices.memory.copy_(slices.source))
    weight = torch.randn(8, ops.SHORTEST)
    prepared, a = ops.prepare(weight.T), torch.randn(4, ops.SHORTEST)

    def product() -> torch.Tensor:
        slices: Any = prepared.current()
        return a @ slices.memory.T

    first, second = Tape(), Tape()
    with capturing(first):
        early = product()
    weight.mul_(2)
    with capturing(second):
        late = product()
    torch.testing.assert_close(product(), a @ weight.T)
    for tape, result in ((first, early), (second, late)):
        tape.replay()
        torch.testing.assert_close(result, a @ weight.T)
    weight.mul_(3)
    second.replay()
    torch.testing.assert_close(late, a @ weight.T)
    product()
    first.replay()
    torch.testing.assert_close(early, a @ weight.T)


NORMS = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.product = nn.Parameter(torch.rand(12, 1) + 0.5), nn.Linear(8, 12)
        self.still, self.first, self.twice = nn.BatchNorm1d(8).eval(), nn.BatchNorm1d(8, momentum=0.3), nn.BatchNorm1d(12)
        self.calls = nn.Buffer(torch.zeros(()))

    def forward(self, x):
        self.calls.add_(1)
        y = nn.functional.linear(self.first(self.still(x)), self.product.weight * self.scale, self.product.bias)
        return self.twice(torch.relu(self.twice(y))) + self.calls

def get_inputs():
    return [torch.rand(8, 8)]

def get_init_inputs():
    return []
"""


def test_what_norms_write_is_written_once_a_call(tmp_path: Path) -> None:
    """Running statistics, counts and a buffer of the model's own, after the trial calls of the recording too, and where tensors are replaced."""
    space = graph.space(models.task(tmp_path, NORMS), "cuda")
    names: dict[str, Any] = {"__name__": "generated"}
    exec(space.candidate([Action("fold_parameters"), Action("cuda_graph")]).source.text, names)
    names["VERIFIED"]["device"] = "cpu"
    names["_captures"] = lambda tensors: Tape.running is not None
    new, old = names["ModelNew"](), names["Model"]()
    old.load_state_dict(new.state_dict())
    with torch.no_grad():
        for call in range(5):
            if call == 3:
                new.first.running_var, old.first.running_var = (torch.full((8,), 3.0) for _ in range(2))
            x = torch.rand(8, 8)
            torch.testing.assert_close(answers(new, x), old(x))
            torch.testing.assert_close(new.state_dict(), old.state_dict())
    assert int(new.first.num_batches_tracked) == 5 and int(new.twice.num_batches_tracked) == 10

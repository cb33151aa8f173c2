"""Recorded calls of layers, with a stand-in for CUDA graphs that runs the function again: counting, copies, and runs whose values are gone."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn.nn import replay
from warpwright.domains.rgnn.nn.common import Layer
from warpwright.domains.rgnn.nn.joined import Joined
from warpwright.domains.rgnn.nn.launches import AFTER
from warpwright.domains.rgnn.plan import Options
from warpwright.rgnn import HGTConv, RGATConv, RGCNConv

MADE: list[Any] = []


class Again:
    """What a CUDA graph is to its caller: `out` is memory that each replay writes."""

    def __init__(self, function: Callable[[], list[torch.Tensor]], pool: Any = None) -> None:
        self.function, self.replays, self.growing = function, 0, torch.is_grad_enabled()
        self.out = [x.detach().clone() for x in function()]
        MADE.append(self)

    def replay(self) -> None:
        self.replays += 1
        with torch.set_grad_enabled(self.growing):
            seen = self.function()
        for own, x in zip(self.out, seen, strict=True):
            own.copy_(x.detach())


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    MADE.clear()
    monkeypatch.setattr(Layer, "options", Options(replay=True))
    monkeypatch.setattr(replay, "capture", Again)
    monkeypatch.setattr(replay, "warm", lambda function: function())
    monkeypatch.setattr(replay, "suitable", lambda features: not torch.is_inference_mode_enabled())
    yield


def typed(layer: str = "rgcn") -> tuple[Any, torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    made = RGCNConv(8, 8, 3) if layer == "rgcn" else RGATConv(8, 8, 3)
    return made, torch.randn(20, 8), torch.randint(20, (2, 90)), torch.randint(3, (90,))


def by_type(out: int = 8) -> tuple[Any, dict[str, torch.Tensor], dict[tuple[str, str, str], torch.Tensor]]:
    torch.manual_seed(0)
    kinds = [("a", "to", "b"), ("b", "back", "a"), ("a", "in", "a")]
    made = HGTConv(8, out, (["a", "b"], kinds))
    rows = {"a": torch.randn(9, 8), "b": torch.randn(7, 8)}
    return made, rows, {kind: torch.stack([torch.randint(len(rows[kind[0]]), (30,)), torch.randint(len(rows[kind[2]]), (30,))]) for kind in kinds}


def results(layer: Any, *given: Any) -> list[torch.Tensor]:
    """Return the result and the gradients of features and parameters of one step."""
    features = list(given[0].values()) if isinstance(given[0], dict) else [given[0]]
    out = layer(*given)
    out = torch.cat(list(out.values())) if isinstance(out, dict) else out
    wanted = [x for x in (*features, *layer.parameters()) if x.requires_grad]
    found = torch.autograd.grad((out * torch.arange(out.numel()).view_as(out).cos()).sum(), wanted, allow_unused=True)
    return [out.detach(), *(torch.zeros(()) if x is None else x for x in found)]


def plain(layer: Any, *given: Any) -> list[torch.Tensor]:
    """Return the same without recordings."""
    layer.options = Options(replay=False)
    try:
        return results(layer, *given)
    finally:
        del layer.options


def same(layer: Any, *given: Any) -> None:
    for a, b in zip(results(layer, *given), plain(layer, *given), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["rgcn", "rgat", "hgt"])
@pytest.mark.parametrize("leaf", [True, False])
def test_recorded_steps_are_those_of_the_layer(name: str, leaf: bool) -> None:
    layer, x, *graph = by_type() if name == "hgt" else typed(name)
    for step in range(AFTER + 4):
        own = {k: v.requires_grad_() for k, v in x.items()} if isinstance(x, dict) else x.requires_grad_()
        if not leaf:
            own = {k: v * (step + 1) for k, v in own.items()} if isinstance(own, dict) else own * (step + 1)
        same(layer, own, *graph)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.mul_(1.01)
    assert len(MADE) == 2 and all(made.replays >= 3 for made in MADE)  # a forward and a backward


def test_without_gradients_only_a_forward_is_recorded_and_results_may_be_written() -> None:
    layer, x, *graph = typed()
    with torch.no_grad():
        wanted = layer(x, *graph)
        for _ in range(AFTER + 3):
            seen = layer(x, *graph)
            torch.testing.assert_close(seen, wanted)
            seen.zero_()
    assert len(MADE) == 1


def test_a_backward_after_another_forward_runs_its_own_again() -> None:
    layer, x, *graph = typed("rgat")
    for _ in range(AFTER + 1):
        results(layer, x, *graph)
    other = torch.randn_like(x)
    first, second = layer(x, *graph), layer(other, *graph)
    got = torch.autograd.grad(first.sin().sum(), layer.weight, retain_graph=True)[0]
    again = torch.autograd.grad(first.sin().sum(), layer.weight)[0]
    of_second = torch.autograd.grad(second.sin().sum(), layer.weight)[0]
    layer.options = Options(replay=False)
    for seen, given in ((got, x), (again, x), (of_second, other)):
        torch.testing.assert_close(seen, torch.autograd.grad(layer(given, *graph).sin().sum(), layer.weight)[0])


def test_what_changes_is_recorded_anew() -> None:
    layer, x, *graph = typed()
    for _ in range(AFTER + 2):
        same(layer, x, *graph)
    layer.weight = torch.nn.Parameter(layer.weight.detach() * 2)
    same(layer, x, *graph)
    graph[0][:, :10] = 0  # edges written in place
    for _ in range(AFTER + 2):
        same(layer, x, *graph)
    layer.bias.requires_grad_(False)
    same(layer, x, *graph)
    same(layer, x[:, :].clone(), *graph)
    assert len(MADE) == 4


def test_graphs_that_are_seen_once_are_not_recorded() -> None:
    layer, x, *_ = typed()
    for _ in range(20):
        layer(x, torch.randint(20, (2, 90)), torch.randint(3, (90,)))
    assert not MADE and len(layer.replays.states) <= 2 * replay.MOST


def test_copies_and_replicas_begin_without_recordings() -> None:
    layer, x, *graph = typed()
    for _ in range(AFTER + 2):
        same(layer, x, *graph)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert not other.replays.states
        same(other, x, *graph)
    replica = copy.copy(layer)
    replica._parameters = {name: torch.nn.Parameter(p.detach() * 3) for name, p in layer._parameters.items()}
    same(replica, x, *graph)


def test_what_cannot_be_captured_is_computed_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(replay, "capture", refuse)
    layer, x, *graph = typed()
    for _ in range(AFTER + 3):
        same(layer, x, *graph)
    assert layer.replays.refused


def test_a_layer_with_hooks_or_computed_weights_is_left_as_it_is() -> None:
    """A recorded backward would hold the hook, and autograd would call it once more: gradients of a quarter in place of a half."""
    layer, x, *graph = typed()
    handle = layer.weight.register_hook(lambda gradient: gradient * 0.5)
    for _ in range(AFTER + 3):
        same(layer, x, *graph)
    handle.remove()
    layer.other = torch.zeros(3)  # as pruning and weight norm leave their weights
    for _ in range(AFTER + 3):
        same(layer, x, *graph)
    assert not MADE


def test_a_leaf_that_lies_elsewhere_is_not_read_where_it_was() -> None:
    layer, x, *graph = typed()
    x.requires_grad_()
    for _ in range(AFTER + 2):
        same(layer, x, *graph)
    assert MADE
    x.data = torch.randn_like(x)
    for _ in range(AFTER + 2):
        same(layer, x, *graph)


def test_an_index_that_is_forgotten_is_recorded_anew() -> None:
    layer, x, *graph = typed()
    for _ in range(AFTER + 2):
        same(layer, x, *graph)
    graph[1].data[:40] = (graph[1][:40] + 1) % 3  # where no version tells
    indices.forget(graph)
    same(layer, x, *graph)


def test_nothing_is_recorded_unless_asked_for() -> None:
    assert not Options().replay


def test_gradients_of_what_no_loss_reads_are_none_and_the_next_recording_knows() -> None:
    layer, rows, graph = by_type(out=4)
    whole = list(rows.values())
    for x in whole:
        x.requires_grad_()

    def step() -> list[Any]:
        return list(torch.autograd.grad(layer(rows, graph)["a"].square().sum(), [*whole, *layer.parameters()], allow_unused=True))

    layer.options = Options(replay=False)
    wanted = step()
    del layer.options
    assert any(x is None for x in wanted)
    for _ in range(AFTER + 5):
        for a, b in zip(step(), wanted, strict=True):
            assert (a is None) == (b is None)
            torch.testing.assert_close(a, b)
    assert len(MADE) == 4 and MADE[3].replays  # recorded anew for this choice of results, and replayed


def test_threads_take_turns() -> None:
    layer, x, *graph = typed("rgat")
    x.requires_grad_()
    for _ in range(AFTER + 2):
        results(layer, x, *graph)
    others = [torch.randn_like(x).requires_grad_() for _ in range(4)]
    wanted = [plain(layer, other, *graph) for other in others]
    layer.options = Options(replay=True)
    failures: list[BaseException] = []

    def work(other: torch.Tensor, expected: list[torch.Tensor]) -> None:
        try:
            for _ in range(10):
                for a, b in zip(results(layer, other, *graph), expected, strict=True):
                    torch.testing.assert_close(a, b)
        except BaseException as problem:  # an assertion in a thread ends the thread alone
            failures.append(problem)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(others, wanted, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


@pytest.mark.parametrize("name", ["rgcn", "hgt"])
def test_a_recording_keeps_neither_its_layer_nor_the_edges(name: str) -> None:
    layer, x, *graph = by_type() if name == "hgt" else typed(name)
    for _ in range(AFTER + 2):
        results(layer, x, *graph)
    assert layer.replays.states
    gc.disable()
    try:
        edges = weakref.ref(next(iter(graph[0].values())) if name == "hgt" else graph[1])
        del graph
        assert edges() is None
        gone = weakref.ref(layer)
        MADE.clear()
        del layer
        assert gone() is None  # by its last reference, not by a collection of cycles
    finally:
        gc.enable()


@pytest.mark.parametrize("many", [True, False])
def test_pieces_of_memory_are_tensors_of_their_shapes(many: bool) -> None:
    like = [torch.empty(2, 3), torch.empty(1, 1), torch.empty(()), *[torch.empty(1, 1) for _ in range(20 * many)], torch.empty(0, 4)]
    pieces = replay.Pieces(like)
    parts = pieces.apart(torch.arange(float(sum(pieces.sizes))))
    assert pieces.alike == many and [x.shape for x in parts] == [x.shape for x in like]
    assert sorted(torch.cat([x.flatten() for x in parts]).tolist()) == list(range(sum(pieces.sizes)))


def test_results_that_lie_in_one_piece_stay_there_and_copies_are_apart() -> None:
    whole = torch.arange(100.0)
    lying = [whole[8:28].view(4, 5).detach(), whole[32:64].view(8, 4).detach()]
    joined = Joined(lying)
    assert joined.memory[0].data_ptr() == whole[8:].data_ptr() and joined.memory[0].numel() == 56
    copies = joined.copies(joined.memory)
    assert all(torch.equal(a, b) and a.data_ptr() != b.data_ptr() for a, b in zip(copies, lying, strict=True))
    copies[0].zero_()
    assert torch.equal(whole, torch.arange(100.0)) and torch.equal(copies[1], lying[1])


@pytest.mark.parametrize(
    "results",
    [
        lambda x: [x[:20], x[10:30]],  # one within another
        lambda x: [x[:4], x[96:]],  # too much between
        lambda x: [x[:5], x[5:15]],  # not where four numbers are read at once
        lambda x: [x[:20], x[20:40].clone()],
        lambda x: [x[:0], x[:20]],
    ],
)
def test_others_are_copied_into_one(results: Callable[[torch.Tensor], list[torch.Tensor]]) -> None:
    given = results(torch.arange(100.0))
    joined = Joined(given)
    assert joined.memory[0].untyped_storage().data_ptr() != given[0].untyped_storage().data_ptr()
    assert all(torch.equal(a, b) for a, b in zip(joined.copies(joined.memory), given, strict=True))

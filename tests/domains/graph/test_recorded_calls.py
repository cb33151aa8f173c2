"""Programs recorded as CUDA graphs, how inputs lie, how results are nested, and what an error leaves."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.domains.graph.test_lower import Standing
from tests.native.test_copied_graph import CHILD, Driver, fresh
from warpwright.domains.graph import template


class Recorder:
    """`_Recorded` of a function on this machine's memory: a replay, of the driver or of torch, runs the function on what was recorded."""

    def __init__(self, function: Any, monkeypatch: pytest.MonkeyPatch, by_driver: bool) -> None:
        self.function, self.replayed, self.device = function, 0, 0
        for name in ("Event", "Stream", "graph", "stream", "current_stream", "synchronize"):
            monkeypatch.setattr(torch.cuda, name, lambda *_, **__: Standing())
        monkeypatch.setattr(torch.cuda, "current_device", lambda: self.device)
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
        monkeypatch.setattr(torch.cuda, "get_rng_state", lambda: torch.zeros(1))
        monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 7, raising=False)
        self.names: dict[str, Any] = {}
        exec(template.recorded(), self.names)
        on_gpu = self.names["_as_bytes"]
        self.driver = Driver(self.run)
        self.names |= {"_graph_driver": lambda: self.driver if by_driver else None, "_kept_graph": lambda: self, "_fresh_on_gpu": fresh}
        self.names["_as_bytes"] = lambda tensor: isinstance(tensor, torch.Tensor) and on_gpu(tensor.as_subclass(OnGpu))
        self.recorded, self.state = self.names["_Recorded"](), ()

    def raw_cuda_graph(self) -> int:
        return CHILD

    def replay(self) -> None:
        self.replayed += 1
        self.run()

    def run(self) -> None:
        leaves = torch.utils._pytree.tree_leaves
        for place, made in zip(leaves(self.recorded.results), leaves(self.function(*self.recorded.inputs, *self.state)), strict=True):
            place.copy_(made)

    def __call__(self, *inputs: Any, written: Any = ()) -> Any:
        return self.recorded(self.function, inputs, self.state, written)


class OnGpu(torch.Tensor):
    is_cuda = True



WAYS: dict[str, Any] = {"as rows": lambda x: x, "turned": lambda x: x.t().contiguous().t(), "with gaps": lambda x: torch.cat([x, x], 1)[:, ::2]}
WAYS["expanded"] = lambda x: x[:1].expand(3, 2)


@pytest.mark.parametrize("by_driver", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_the_recordings_inputs_lie_as_the_calls(way: str, by_driver: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def function(x: torch.Tensor) -> tuple[torch.Tensor]:
        seen.append(x.stride())
        return (x * 2,)

    recorder, form = Recorder(function, monkeypatch, by_driver), None
    for seed in range(3):
        x = WAYS[way](torch.rand(3, 2, generator=torch.Generator().manual_seed(seed)))
        form = form or x.stride()
        assert x.stride() == form
        torch.testing.assert_close(recorder(x)[0], x * 2)
    assert set(seen) == {form}
    assert (recorder.driver.told.count("launched") == 3) is (by_driver and way in ("as rows", "turned"))


@pytest.mark.parametrize("by_driver", [True, False])
def test_results_are_nested_as_the_functions(by_driver: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that was not captured gives what its own forward does, as an LSTM's (y, (h, c))."""
    recorder = Recorder(lambda x: (x + 1, (x + 2, [x + 3])), monkeypatch, by_driver)
    for _ in range(2):
        x = torch.rand(4)
        one, (two, [three]) = recorder(x)
        for seen, wanted in ((one, x + 1), (two, x + 2), (three, x + 3)):
            torch.testing.assert_close(seen, wanted)


def test_results_in_an_object_are_not_those_of_later_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pair:
        def __init__(self, first: torch.Tensor) -> None:
            self.first = first

    recorder = Recorder(lambda x: Pair(x + 1), monkeypatch, True)
    x = torch.rand(4)
    kept, other = recorder(x), recorder(x + 5)
    assert kept.first.data_ptr() != other.first.data_ptr() and torch.equal(kept.first, x + 1) and not recorder.replayed


def test_without_a_state_each_gpu_has_its_own_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(lambda x: (x + 1,), monkeypatch, True)
    recorder(torch.rand(4)), recorder(torch.rand(4))
    assert recorder.driver.told.count("created") == 1
    recorder.device = 1
    recorder(torch.rand(4))
    assert recorder.driver.told.count("created") == 2


def test_where_recording_fails_the_state_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    count = torch.zeros(1)
    calls = iter([True, True, True, False])

    def function(x: torch.Tensor, held: torch.Tensor) -> tuple[torch.Tensor]:
        held.add_(1)
        if not next(calls):
            raise RuntimeError("operation not permitted when stream is capturing")
        return (x + held,)

    recorder = Recorder(function, monkeypatch, True)
    recorder.state = (count,)
    with pytest.raises(RuntimeError, match="not permitted"):
        recorder(torch.rand(4), written=(0,))
    assert not count.any()

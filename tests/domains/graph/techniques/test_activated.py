"""A convolution, its bias, a residual and a ReLU as one call."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from warpwright.base import Action, Candidate
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.ir import find, run, value
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques import schedule
from warpwright.domains.graph.techniques.convolutions.activated import ACTIVATED, CudnnEpilogue
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda
from warpwright.search import ladder
from warpwright.space import Space

TEXT = """import torch
from torch.nn import functional as F
class Model(torch.nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    return [torch.randn(2, 16, 12, 12)]
def get_init_inputs():
    return []
"""


class Block(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.first = nn.Conv2d(16, 16, 3, padding=1, **options)
        self.second = nn.Conv2d(16, 16, 3, padding=1, **options)
        self.last = nn.Conv2d(16, 8, 1, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x + self.second(torch.relu(self.first(x))))
        return torch.tanh(self.last(y)) + torch.relu(self.last(y))


def test_each_becomes_one_call() -> None:
    model, x = Block(), torch.randn(2, 16, 12, 12)
    technique, ir = CudnnEpilogue(), captured(model, x)
    after = technique.apply(ir, Action("cudnn_epilogue"))
    calls = find(after, ACTIVATED)
    assert [call.args[3] is not None for call in calls] == [False, True, False] and not list(technique.sites(after))
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    with torch.no_grad():
        torch.testing.assert_close(run(after, [x], state), model(x))
    text = lower(after, (), Original("test", TEXT, target="cuda")).source.text
    assert "torch.cudnn_convolution_add_relu(x, weight, more, 1.0, bias" in text
    compile(text, "optimized.py", "exec")
    assert cost_model.operations_of(calls[0]) == cost_model.operations_of(next(node for node in ir.graph.nodes if "conv2d" in str(node.target)))


@pytest.mark.parametrize("options", [{"bias": False}, {"groups": 16}, {"padding_mode": "circular"}])
def test_what_cudnn_has_no_such_kernel_for_stays(options: dict[str, Any]) -> None:
    ir = captured(Block(**options), torch.randn(2, 16, 12, 12))
    after = CudnnEpilogue().apply(ir, Action("cudnn_epilogue"))
    expected = 3 if "padding_mode" in options else 1
    assert len(find(after, ACTIVATED)) == expected


@pytest.mark.parametrize("kind", [torch.float64, torch.float16])
def test_a_residual_of_another_type_stays(kind: torch.dtype) -> None:
    class Promoted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(16, 16, 3, padding=1)

        def forward(self, x: torch.Tensor, more: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.conv(x) + more)

    x = torch.randn(2, 16, 12, 12)
    assert list(CudnnEpilogue().sites(captured(Promoted(), x, x))) and not list(CudnnEpilogue().sites(captured(Promoted(), x, x.to(kind))))


def test_a_small_network_begins_with_it_in_a_graph() -> None:
    techniques = (CudnnEpilogue(), FuseCuda(), *schedule.TECHNIQUES, *schedule.CUDA_TECHNIQUES)
    ir = captured(Block(), torch.randn(2, 16, 12, 12))
    space = Space(ir, techniques, _no_text, frozenset({"eager", "compile"}), estimate=lambda one: cost_model.seconds(one, "cuda"))
    (first,) = next(ladder.search(space, Random(0), 1))
    assert first[0] == Action("cudnn_epilogue") and first[-1] == Action("cuda_graph")


def test_the_channels_stay_last() -> None:
    ir = captured(Block(), torch.randn(2, 16, 12, 12))
    turned = schedule.ChannelsLast().apply(ir, Action("channels_last"))
    calls = find(CudnnEpilogue().apply(turned, Action("cudnn_epilogue")), ACTIVATED)
    assert all(value(call).is_contiguous(memory_format=torch.channels_last) for call in calls)


def generated(fused: Any, capturing: bool = False) -> tuple[dict[str, Any], list[Any]]:
    """Return the generated functions as on a GPU on which torch's fused call is `fused`, and the inputs that it was given."""
    seen: list[Any] = []

    class Torch:
        nn, equal, full_like, relu = torch.nn, torch.equal, torch.full_like, torch.relu
        cuda = SimpleNamespace(is_current_stream_capturing=lambda: capturing)

        @staticmethod
        def cudnn_convolution_relu(*given: Any) -> torch.Tensor:
            seen.append(given[0])
            return fused(*given)

    names: dict[str, Any] = {"torch": Torch}
    exec(ACTIVATED.python_text().replace("x.is_cuda", "True"), names)
    return names, seen


def plain(*given: Any) -> torch.Tensor:
    return torch.relu(F.conv2d(*given))


def without_nan(*given: Any) -> torch.Tensor:
    return plain(*given).nan_to_num(0.0)


def missing(*given: Any) -> torch.Tensor:
    raise RuntimeError("cuDNN has no such kernel")


def poisoned(*given: Any) -> torch.Tensor:
    return plain(*given) + 0 * float("nan")


@pytest.mark.parametrize(("fused", "calls"), [(plain, 2 + 2), (without_nan, 2), (missing, 1), (poisoned, 1)])
def test_the_generated_file_goes_back_where_cudnn_drops_nan_or_has_no_kernel(fused: Any, calls: int) -> None:
    names, seen = generated(fused)
    x, weight, bias = torch.randn(2, 3, 9, 9), torch.randn(4, 3, 3, 3), torch.randn(4)
    given = (x, weight, bias, None, [1, 1], [1, 1], [1, 1], 1)
    for _ in range(2):
        assert torch.equal(names["activated_convolution"](*given), plain(x, weight, bias, 1, 1))
    assert len(seen) == calls, "it is asked once a form"
    holding = x.clone()
    holding[0, 1, 4, 4] = float("nan")
    result = names["activated_convolution"](holding, *given[1:])
    assert torch.equal(result.isnan(), plain(holding, weight, bias, 1, 1).isnan()) and result.isnan().any() and not result.isnan().all()


def test_within_somebodys_recording_nothing_is_asked() -> None:
    names, seen = generated(plain, capturing=True)
    given = (torch.randn(2, 3, 9, 9), torch.randn(4, 3, 3, 3), torch.randn(4), None, [1, 1], [0, 0], [1, 1], 1)
    assert torch.equal(names["activated_convolution"](*given), plain(*given[:3])) and not seen


def _no_text(ir: Any, actions: tuple[Action, ...]) -> Candidate:
    raise NotImplementedError

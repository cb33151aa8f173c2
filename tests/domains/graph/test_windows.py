"""Pools and depthwise convolutions as CUDA kernels, translated for the CPU: forms, borders, special values, and which calls they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import TEXT
from tests.domains.graph.test_cuda import OnCpu
from warpwright.base import Action
from warpwright.domains.graph.cuda import windows
from warpwright.domains.graph.cuda.kernel import WindowKernel
from warpwright.domains.graph.ir import GraphIR, run
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels import windows as technique
from warpwright.domains.graph.techniques.kernels.windows import WindowsCuda

pytestmark = pytest.mark.compiler

Call = Callable[[torch.Tensor], torch.Tensor]

LINES: list[Call] = [
    lambda x: F.max_pool1d(x, 8, 1, 4), lambda x: F.max_pool1d(x, 3, 2, 1, dilation=3), lambda x: F.avg_pool1d(x, 8, 1, 4),
    lambda x: F.avg_pool1d(x, 5), lambda x: F.avg_pool1d(x, 4, 3, 2, count_include_pad=False), lambda x: F.max_pool1d(x, 2, ceil_mode=True),
]  # fmt: skip
PLANES: list[Call] = [
    lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: F.max_pool2d(x, 4, 1, 1), lambda x: F.max_pool2d(x, (2, 3), (2, 1), dilation=(2, 1)),
    lambda x: F.avg_pool2d(x, 2), lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), lambda x: F.avg_pool2d(x, 3, 1, 1),
    lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), lambda x: F.avg_pool2d(x, 2, divisor_override=3),
]  # fmt: skip
VOLUMES: list[Call] = [
    lambda x: F.max_pool3d(x, 3, 2, 1, dilation=2), lambda x: F.avg_pool3d(x, 3, 2, 1), lambda x: F.max_pool3d(x, 2),
    lambda x: F.avg_pool3d(x, (1, 2, 2), (1, 2, 2)), lambda x: F.avg_pool3d(x, 3, 1, 1, count_include_pad=False),
]  # fmt: skip


class Calls(nn.Module):
    """Each call on the same input."""

    def __init__(self, calls: list[Call]) -> None:
        super().__init__()
        self.calls = calls

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(call(x) for call in self.calls)


class Depthwise(nn.Module):
    """Depthwise convolutions of several forms, some with two results for each channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        c = channels
        self.layers = nn.ModuleList([
            nn.Conv2d(c, c, 3, padding=1, groups=c), nn.Conv2d(c, 2 * c, (3, 7), groups=c, bias=False), nn.Conv2d(c, c, 7, padding="same", groups=c),
            nn.Conv2d(c, c, 3, stride=2, padding=1, groups=c), nn.Conv2d(c, c, (3, 1), groups=c, bias=False),
            nn.Conv2d(c, c, 5, dilation=2, groups=c),
        ])  # fmt: skip

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(layer(x) for layer in self.layers)


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take small calls too."""
    monkeypatch.setattr(technique, "LEAST_ELEMENTS", 1)


def on_cpu(ir: GraphIR, count: int) -> Any:
    """Return the generated `optimized`, in which every window is a kernel that runs on the CPU."""
    after = WindowsCuda().apply(ir, Action("windows_cuda"))
    kernels = list({n.target.__name__: n.target for n in after.graph.nodes if isinstance(n.target, WindowKernel)}.values())
    assert len(kernels) == count
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (), Original("test", TEXT, target="cuda")).source.text, "optimized.py", "exec"), names)
    names["CUDA_KERNELS"] = OnCpu(list(kernels))
    return names["optimized"]


def compare(model: nn.Module, x: torch.Tensor, count: int) -> None:
    """Compare the kernels with torch and with float64, result by result."""
    ir = captured(model, x)
    state = {name: value.detach() for name, value in model.state_dict().items()}
    exact = run(ir, [x.double()], {name: value.double() for name, value in state.items()}, torch.float64, flat=True)
    with torch.no_grad():
        seen, plain = on_cpu(ir, count)(x, *state.values()), model(x)
    for number, (one, other, truth) in enumerate(zip(seen, plain, exact, strict=True)):
        assert one.shape == other.shape and one.dtype == other.dtype, number
        assert torch.equal(one.isnan(), other.isnan()) and torch.equal(one.isinf(), other.isinf()), number
        there = truth.isfinite()
        error, allowed = (float((t.double() - truth)[there].abs().max()) for t in (one, other))
        assert error <= 2 * allowed + 4e-7 * float(truth[there].abs().max()), f"{number}: {error}, torch {allowed}"


@pytest.mark.parametrize(("calls", "size"), [(LINES, (2, 3, 2500)), (PLANES, (2, 3, 21, 148)), (VOLUMES, (2, 3, 9, 12, 16))], ids=["1", "2", "3"])
def test_pools(calls: list[Call], size: tuple[int, ...]) -> None:
    x = torch.randn(size)
    x.view(-1)[5], x.view(-1)[77], x.view(-1)[501] = torch.nan, torch.inf, -torch.inf
    compare(Calls(calls), x, len(calls))


@pytest.mark.parametrize("size", [(2, 6, 33, 140), (3, 11, 14, 14)], ids=str)
def test_depthwise_convolutions(size: tuple[int, ...]) -> None:
    compare(Depthwise(size[1]), torch.randn(size), 6)


class Others(nn.Module):
    """A line, a volume, and bfloat16."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Conv1d(4, 4, 31, padding=15, groups=4)
        self.volume = nn.Conv3d(2, 4, 3, padding=1, groups=2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        volume = x.view(2, 2, 6, 10, 30)
        return self.line(x), self.volume(volume), F.avg_pool2d(x.bfloat16().view(2, 2, 60, 30), 3, 2), F.max_pool1d(x.bfloat16(), 2)


def test_lines_volumes_and_bfloat16() -> None:
    compare(Others(), torch.randn(2, 4, 900), 4)


def test_what_is_left_to_the_library() -> None:
    model = nn.Sequential(nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3, groups=4), nn.AdaptiveAvgPool2d(3))
    assert not list(WindowsCuda().sites(captured(model, torch.randn(2, 8, 16, 16))))
    wide = captured(nn.AvgPool2d(64), torch.randn(1, 2, 640, 640))  # a window alone is larger than a block's memory
    assert not list(WindowsCuda().sites(wide))
    ragged = captured(nn.AvgPool2d(2, ceil_mode=True), torch.randn(1, 2, 9, 9))
    assert not list(WindowsCuda().sites(ragged))


def test_calls_of_one_form_share_a_kernel() -> None:
    model = Calls([lambda x: F.max_pool2d(F.max_pool2d(x, 3, 1, 1), 3, 1, 1)])
    after = WindowsCuda().apply(captured(model, torch.randn(2, 3, 20, 20)), Action("windows_cuda"))
    assert len({node.target for node in after.graph.nodes if isinstance(node.target, WindowKernel)}) == 1


def test_tiles_fit_a_block() -> None:
    for size, kernel in [((16, 64, 512, 512), 3), ((64, 96, 56, 56), 7), ((256, 512, 7, 7), 3), ((8, 8, 2048, 2048), 15)]:
        with torch.device("meta"):
            ir = captured(nn.Conv2d(size[1], size[1], kernel, padding=kernel // 2, groups=size[1]), torch.empty(size))
        [node] = [node for node in ir.graph.nodes if node.op == "call_function"]
        window = windows.read(node)
        assert (window is None) == (kernel * kernel > windows.MOST_WEIGHTS)
        if window is not None:
            text = windows.generate(window, "k").text
            assert "float s[" in text and int(text.split("s[")[1].split("]")[0]) <= windows.SHARED_FLOATS


def test_sixteen_rows_are_for_weights() -> None:
    """A large pool's threads walk eight outputs, which an H200 does in 1 to 2 % less time; those of a depthwise convolution sixteen."""
    with torch.device("meta"):
        modules = (nn.MaxPool2d(4, 1, 1), nn.Conv2d(64, 64, 3, padding=1, groups=64))
        irs = [captured(module, torch.empty(112, 64, 512, 512)) for module in modules]
    read = [windows.read(next(node for node in ir.graph.nodes if node.op == "call_function")) for ir in irs]
    assert [tile.rows for window in read if window is not None and (tile := windows._tile(window)) is not None] == [8, 16]

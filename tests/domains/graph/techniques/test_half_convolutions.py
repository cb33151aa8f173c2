"""Convolutions with float16 operands, kernels translated for the CPU: the error beside that of TF32 operands, the range, and what is left alone."""

from __future__ import annotations

import copy
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import TEXT
from tests.domains.graph.test_cuda import OnCpu
from warpwright.base import Action
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.cuda.kernel import CudaKernel
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.convolutions import half
from warpwright.domains.graph.techniques.convolutions.direct_convolution import DirectConvolutions
from warpwright.domains.graph.techniques.convolutions.half import HalfConvolutions
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda, fuse_cuda
from warpwright.tasks.mode import Mode
from warpwright.tf32 import tf32_flags
from warpwright.verifier.judge.original import tf32

pytestmark = pytest.mark.compiler

HALF = Action("half_convolutions")


class Planes(nn.Module):
    """A convolution, and what follows it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(24, 32, 3, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.conv(x)) * 2


class Volumes(nn.Module):
    """A transposed convolution over three axes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(16, 24, 3, stride=2, padding=1, output_padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x))


class Lines(nn.Module):
    """A convolution over one axis."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(16, 24, 5, stride=2, padding=3, dilation=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.conv(x))


class Groups(nn.Module):
    """A transposed one in groups, and one that is not.

    The first has no bias: with it, inputs near zero leave the second 24 different operands, and how well 24 numbers round is chance: 0.8 to 1.8 times
    TF32's error.
    """

    def __init__(self) -> None:
        super().__init__()
        self.then = nn.Conv2d(24, 16, 3, groups=2)
        self.conv = nn.ConvTranspose2d(16, 24, (3, 5), stride=(2, 3), padding=(1, 2), dilation=(2, 1), output_padding=(1, 0), groups=4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.then(self.conv(x)) + 1


class Few(nn.Module):
    """Three channels, which zeros make eight."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(3, 16, (3, 2, 3), padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x))


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take small convolutions too, and fold nothing: then the function takes the inputs and the state alone."""
    monkeypatch.setattr(half, "_LEAST_FLOPS", 1)
    monkeypatch.setattr(half, "FOLD", SimpleNamespace(sites=lambda ir: []))


def on_cpu(ir: GraphIR) -> Any:
    """Return the generated `optimized` with float16 convolutions and fused kernels that run on the CPU."""
    after = FuseCuda().apply(HalfConvolutions().apply(ir, HALF), fuse_cuda(1, DEFAULT))
    kernels = list({n.target.__name__: n.target for n in after.graph.nodes if isinstance(n.target, CudaKernel)}.values())
    assert len(kernels) >= 3, "the largest element, the turn, and what follows"
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (), Original("test", TEXT, target="cuda")).source.text.replace('"cuda"', '"cpu"'), "optimized.py", "exec"), names)
    names["CUDA_KERNELS"] = OnCpu(kernels)
    return names["optimized"]


def on_cpu_as_is(ir: GraphIR) -> Any:
    """Return the generated `optimized` with float16 convolutions, and torch's own calls around them."""
    after = HalfConvolutions().apply(ir, HALF)
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (), Original("test", TEXT, target="cuda")).source.text.replace('"cuda"', '"cpu"'), "optimized.py", "exec"), names)
    return names["optimized"]


VALUES = {
    "normal": lambda x: x, "uniform": lambda x: x.abs(), "offset": lambda x: x + 10, "huge": lambda x: 1e30 * x, "small": lambda x: 1e-30 * x,
    "spikes": lambda x: torch.where(torch.rand_like(x) < 1e-3, 1e4 * x, x), "zeros": torch.zeros_like,
}  # fmt: skip


class Accumulated(Mode):
    """Sums of float16 products in float32, rounded once, as on a GPU. (On some CPUs torch adds a transposed convolution's terms up in float16.)"""

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        if function is torch.ops.aten.convolution.default and arguments[0].dtype is torch.float16:
            wide = [item.float() if isinstance(item, torch.Tensor) else item for item in arguments]
            return function(*wide, **(keywords or {})).half()
        return function(*arguments, **(keywords or {}))


SOME = ("normal", "spikes", "small")
CASES = [
    (Planes(), (3, 24, 40, 36), VALUES), (Volumes(), (2, 16, 9, 10, 12), VALUES), (Lines(), (2, 16, 300), SOME), (Groups(), (2, 16, 12, 14), SOME),
    (Few(), (2, 3, 6, 8, 10), SOME),
]  # fmt: skip


@pytest.mark.parametrize(("model", "size", "drawn"), CASES, ids=["planes", "volumes", "lines", "groups", "few"])
def test_it_errs_as_tf32_operands_do(model: nn.Module, size: tuple[int, ...], drawn: Collection[str]) -> None:
    torch.manual_seed(1)
    x = torch.randn(size)
    optimized = on_cpu(captured(model, x))
    state = {name: value.detach() for name, value in model.state_dict().items()}
    for name in drawn:
        given = VALUES[name](x)
        with torch.no_grad():
            wide = type(model)().double()
            wide.load_state_dict(model.state_dict())
            exact = wide(given.double())
            with tf32.RoundedOperands(tf32.CONVOLUTIONS):
                rounded = wide(given.double())
            with Accumulated():
                seen = optimized(given, *state.values())
        seen = seen[0] if isinstance(seen, tuple) else seen
        assert seen.isfinite().all() and seen.is_contiguous() and seen.dtype == torch.float32, name
        errors = [float((one.double() - exact).square().mean().sqrt()) for one in (seen, rounded)]
        assert errors[0] <= 1.6 * errors[1] + 1e-7 * float(exact.square().mean().sqrt()), (name, errors)


@pytest.mark.parametrize(("model", "size"), [(nn.Conv2d(24, 32, 3, bias=False), (3, 24, 20, 16)), (nn.Conv1d(16, 24, 5, bias=False), (3, 16, 200))])
def test_a_small_sample_keeps_its_digits_beside_a_large_one(model: nn.Module, size: tuple[int, ...]) -> None:
    torch.manual_seed(2)
    x = torch.randn(size) * torch.tensor([1e12, 1e-12, 1.0]).reshape(3, *[1] * (len(size) - 1))
    with torch.no_grad(), Accumulated():
        seen = on_cpu_as_is(captured(model, x))(x, *model.state_dict().values())
        exact = copy.deepcopy(model).double()(x.double())
    seen = seen[0] if isinstance(seen, tuple) else seen
    for one, other in zip(seen, exact, strict=True):
        assert (one - other).abs().max() < 2e-3 * other.abs().max()


def test_nothing_overflows() -> None:
    """Every product of the largest elements, all of one sign."""
    model = nn.Conv2d(64, 16, 7, bias=False)
    with torch.no_grad():
        model.weight.fill_(3.0)
    x = torch.full((1, 64, 40, 40), 1e6)
    with torch.no_grad():
        seen = on_cpu_as_is(captured(model, x))(x, model.weight)
    seen = seen[0] if isinstance(seen, tuple) else seen
    torch.testing.assert_close(seen, model(x), rtol=2e-3, atol=0)


def test_what_is_left_alone() -> None:
    few = captured(nn.Conv2d(8, 16, 3), torch.randn(1, 8, 20, 20))
    groups = captured(nn.Conv2d(32, 32, 3, groups=16), torch.randn(1, 32, 20, 20))
    uneven = captured(nn.Conv2d(20, 30, 3), torch.randn(1, 20, 20, 20))
    many = captured(nn.ConvTranspose2d(32, 32, 3, groups=16), torch.randn(1, 32, 20, 20))
    assert not any(list(HalfConvolutions().sites(ir)) for ir in (few, groups, uneven, many))


def test_products_of_one_tap_are_the_librarys() -> None:
    """Passes around them move twice what they move; with a stride the library turns x."""
    x = torch.empty(2, 64, 8, 8)
    for model, taken in ((nn.Conv2d(64, 128, 1), False), (nn.Conv2d(64, 128, 1, stride=2), True), (nn.Conv2d(64, 128, 1, padding=1), True)):
        assert bool(list(HalfConvolutions().sites(captured(model, x)))) is taken


@pytest.mark.parametrize("permitted", [True, False])
def test_one_number_an_operand_is_proposed_where_the_flags_permit_tf32(permitted):
    """And the library's convolution is estimated by them."""
    few = captured(torch.nn.Conv2d(16, 64, 3), torch.randn(64, 16, 128, 128))
    many = captured(torch.nn.Conv2d(128, 128, 3), torch.randn(64, 128, 56, 56))
    with tf32_flags(permitted, products=False):
        assert bool(list(HalfConvolutions().sites(many))) is permitted
        assert HalfConvolutions(tf32=True).tf32 and list(HalfConvolutions(tf32=True).sites(many))
        assert {dict(action.params)["precision"] for action in DirectConvolutions().sites(few)} == ({"tf32", "tf32x3"} if permitted else {"tf32x3"})
        kind, _ = cost_model.operations_of(next(node for node in many.graph.nodes if node.op == "call_function"))
        assert kind == ("tf32" if permitted else "float32")

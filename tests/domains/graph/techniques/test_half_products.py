"""Products with float16 operands where TF32 is permitted, kernels translated for the CPU: their error beside that of TF32, and where they are."""

from __future__ import annotations

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
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques import techniques
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda
from warpwright.domains.graph.techniques.products import half_products
from warpwright.domains.graph.techniques.products.half_products import HalfProducts
from warpwright.domains.graph.techniques.products.int8 import Int8Slices
from warpwright.domains.graph.techniques.products.tf32x3 import Tf32x3
from warpwright.tf32 import tf32_flags
from warpwright.verifier.judge.original import tf32

pytestmark = pytest.mark.compiler

HALF, PERMITTED = Action("half_products"), HalfProducts(tf32=True)


class Layer(nn.Module):
    """A product with a weight in rows and a bias, and what follows it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(128, 96)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x)) * 2


class Products(nn.Module):
    """A product of batches, and one with a matrix that all of a batch share."""

    def __init__(self) -> None:
        super().__init__()
        self.each, self.shared = nn.Parameter(torch.randn(3, 64, 48)), nn.Parameter(torch.randn(48, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.bmm(x, self.each) @ self.shared


class Added(nn.Module):
    """A product with a term that is added to it."""

    def __init__(self) -> None:
        super().__init__()
        self.bias, self.right = nn.Parameter(torch.randn(48)), nn.Parameter(torch.randn(72, 48))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.bias, x, self.right)


class Pair(nn.Module):
    """Two products of one operand."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(128, 96), nn.Linear(128, 96)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.gate(x)) * self.up(x)


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take small products too, and fold nothing: then the function takes the inputs and the state alone."""
    monkeypatch.setattr(half_products, "_LEAST_FLOPS", 1)
    monkeypatch.setattr(half_products, "_LEAST_INTENSITY", 0)
    monkeypatch.setattr(half_products, "FOLD", SimpleNamespace(sites=lambda ir: []))


def on_cpu(ir: GraphIR) -> Any:
    """Return the generated `optimized`, its fused kernels translated for the CPU."""
    halved = PERMITTED.apply(ir, HALF)
    after = FuseCuda().apply(halved, next(iter(FuseCuda().sites(halved))))
    kernels = list({n.target.__name__: n.target for n in after.graph.nodes if isinstance(n.target, CudaKernel)}.values())
    assert kernels, "the largest elements and the casts are fused"
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (), Original("test", TEXT, target="cuda")).source.text.replace('"cuda"', '"cpu"'), "optimized.py", "exec"), names)
    names["CUDA_KERNELS"] = OnCpu(kernels)
    return names["optimized"]


VALUES = {
    "normal": lambda x: x, "uniform": lambda x: x.abs(), "offset": lambda x: x + 10, "huge": lambda x: 1e10 * x,
    "next to the end": lambda x: 2e36 * x / x.abs().max(), "small": lambda x: 1e-8 * x,
    "spikes": lambda x: torch.where(torch.rand_like(x) < 1e-3, 1e4 * x, x), "zeros": torch.zeros_like,
    "rows of all sizes": lambda x: x * 10.0 ** torch.randint(-7, 7, (*x.shape[:-1], 1)),
}  # fmt: skip


MODELS = [(Layer(), (40, 128)), (Products(), (3, 48, 64)), (Added(), (56, 72))]


@pytest.mark.parametrize(("model", "size"), MODELS, ids=["layer", "products", "added"])
def test_it_errs_as_tf32_operands_do(any_size: None, model: nn.Module, size: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    x = torch.randn(size)
    optimized = on_cpu(captured(model, x))
    state = {name: value.detach() for name, value in model.state_dict().items()}
    for name, change in VALUES.items():
        given = change(x)
        with torch.no_grad():
            wide = type(model)().double()
            wide.load_state_dict(model.state_dict())
            exact = wide(given.double())
            with tf32.RoundedOperands(tf32.PRODUCTS):
                rounded = wide(given.double())
            seen = optimized(given, *state.values())
        seen = seen[0] if isinstance(seen, tuple) else seen
        assert seen.isfinite().all() and seen.dtype == torch.float32, name
        errors = [(one.double() - exact).square().mean(-1).sqrt() for one in (seen, rounded)]  # row by row
        assert bool((errors[0] <= 1.6 * errors[1] + 3e-7 * exact.square().mean(-1).sqrt()).all()), name


def test_they_are_proposed_where_tf32_is_permitted_in_place_of_what_float32_needs() -> None:
    ir = captured(Big(), torch.randn(2048, 2048))
    named = {technique.name: technique for technique in techniques("cuda", tf32=True)}
    strict = {technique.name: technique for technique in techniques("cuda")}
    assert isinstance(named["half_products"], HalfProducts) and list(named["half_products"].sites(ir)) == [HALF]
    assert not list(named["int8_slices"].sites(ir)) and not list(named["tf32x3"].sites(ir))
    assert not list(strict["half_products"].sites(ir)) and list(strict["int8_slices"].sites(ir))
    with tf32_flags(True):  # by the program's own flags
        assert list(HalfProducts().sites(ir)) and not list(Int8Slices().sites(ir)) and not list(Tf32x3().sites(ir))
        after = HalfProducts().apply(ir, HALF)
    assert cost_model.seconds(after, "cuda") < 0.6 * cost_model.seconds(ir, "cuda")  # whose small calls a host takes longer for than a GPU
    fused = FuseCuda().apply(after, next(iter(FuseCuda().sites(after))))
    assert cost_model.seconds(fused, "cuda") < 0.4 * cost_model.seconds(ir, "cuda")


class Big(nn.Module):
    """A product that is worth it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2048, 2048, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class Squared(nn.Module):
    """A product of what is given, which would be cut in each call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x


def test_an_operand_of_two_products_is_cut_once(any_size: None) -> None:
    after = PERMITTED.apply(captured(Pair(), torch.randn(5, 128)), HALF)
    assert sum(node.target is torch.ops.aten.amax.default for node in after.graph.nodes) == 3  # of x once, and of both parameters


def test_what_is_left_alone() -> None:
    narrow = captured(nn.Linear(4096, 120), torch.randn(4096, 4096))
    uneven = captured(nn.Linear(2047, 2048), torch.randn(2048, 2047))
    small = captured(nn.Linear(64, 64), torch.randn(64, 64))
    given = captured(Squared(), torch.randn(2048, 2048))
    assert not any(list(PERMITTED.sites(ir)) for ir in (narrow, uneven, small, given))
    assert list(PERMITTED.sites(captured(nn.Linear(4096, 4096), torch.randn(128, 4096)))), "its weight is half the bytes"

"""Small products as sums of rows in one kernel, translated for the CPU: what they compute, where they are, and that one launch is left."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import assert_equal_in_double, captured, draw
from tests.domains.graph.test_cpp import TEXT
from tests.domains.graph.test_cuda import OnCpu
from warpwright.base import Action
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.cuda.kernel import CudaKernel
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda
from warpwright.domains.graph.techniques.kernels.launch_plan import LaunchPlan
from warpwright.domains.graph.techniques.products import small_products
from warpwright.domains.graph.techniques.products.small_products import MOST_TERMS, SmallProducts

pytestmark = pytest.mark.compiler

SMALL = Action("small_products")


class Layer(nn.Module):
    """A product with a weight in rows and a bias, and what follows it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(100, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x) * 1.5 - 2)


class Rows(nn.Module):
    """A product whose rows are normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(100, 10, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(F.gelu(self.layer(x)), 1)


class Turned(nn.Module):
    """Products with a matrix as it stands and with a vector, of batches of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.right, self.vector = nn.Parameter(torch.randn(36, 24)), nn.Parameter(torch.randn(24))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid((x @ self.right) @ self.vector)


MODELS = [(Layer, (128, 100), 1), (Rows, (128, 100), 2), (Turned, (4, 20, 36), 2)]


@pytest.mark.parametrize(("model", "size", "kernels"), MODELS, ids=["layer", "rows", "turned"])
def test_nothing_but_kernels_is_left_and_they_are_right(model: Any, size: tuple[int, ...], kernels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_products, "FOLD", SimpleNamespace(sites=lambda ir: []))  # then the function takes the inputs and the state alone
    torch.manual_seed(3)
    made = model()
    before = captured(made, torch.randn(*size))
    after = SmallProducts().apply(before, SMALL)
    assert_equal_in_double(before, after, [draw("offset", size, 0)], made)
    actions = list(FuseCuda().sites(after))
    every = next((action for action in actions if "elements" in dict(action.params)), actions[0])  # small calls too, where there are any
    fused = FuseCuda().apply(after, every)
    assert 1 <= sum(isinstance(node.target, CudaKernel) for node in fused.graph.nodes) <= kernels
    planned = LaunchPlan().apply(fused, Action("launch_plan"))
    calls = [node for node in planned.graph.nodes if node.op == "call_function" and not cost_model._is_free(node)]
    assert len([node for node in calls if cost_model.launches(node)]) <= 1 + (model is Turned), calls
    optimized = on_cpu(fused)
    state = {name: value.detach() for name, value in made.state_dict().items()}
    for kind in ("normal", "scaled", "offset", "heavy", "zeros"):
        x = draw(kind, size, 1)
        with torch.no_grad():
            exact = model().double()
            exact.load_state_dict(made.state_dict())
            want, usual = exact(x.double()), made(x)
            seen = optimized(x, *state.values())
        error = float((seen.double() - want).abs().max())
        assert seen.shape == usual.shape and error <= 2 * float((usual.double() - want).abs().max()) + 1e-6 * float(want.abs().max()), kind


def on_cpu(fused: GraphIR) -> Any:
    """Return the generated `optimized`, its kernels translated for the CPU."""
    kernels = list({node.target.__name__: node.target for node in fused.graph.nodes if isinstance(node.target, CudaKernel)}.values())
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(fused, (), Original("test", TEXT, target="cuda")).source.text.replace('"cuda"', '"cpu"'), "optimized.py", "exec"), names)
    names["CUDA_KERNELS"] = OnCpu(kernels)
    return names["optimized"]


def test_what_is_left_alone() -> None:
    class Given(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ x.T

    class Wide(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).relu()

    def sites(model: nn.Module, *size: int, kind: torch.dtype = torch.float32) -> list[Action]:
        return list(SmallProducts().sites(captured(model.to(kind), torch.randn(*size, dtype=kind))))

    most = MOST_TERMS // 64 // 64
    assert sites(nn.Linear(64, 64), most, 64) == [SMALL] and not sites(nn.Linear(64, 64), most + 1, 64)
    assert not sites(Given(), 8, 8) and not sites(Wide(8, 8), 4, 8, kind=torch.bfloat16) and not sites(nn.Linear(8, 8), 8)
    taken = SmallProducts().apply(captured(nn.Linear(8, 8), torch.randn(4, 8)), SMALL)
    assert not list(SmallProducts().sites(taken))

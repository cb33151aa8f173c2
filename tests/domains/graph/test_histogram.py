"""histc as a kernel translated for the CPU, against torch's formula for a GPU, element by element."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_orders import built
from warpwright.domains.graph.capture.model import from_module
from warpwright.domains.graph.ir.interpret import run
from warpwright.domains.graph.techniques.kernels import top_k as technique
from warpwright.domains.graph.techniques.kernels.top_k import HISTOGRAM

pytestmark = pytest.mark.compiler


class Counts(nn.Module):
    def __init__(self, bins: int, low: float, high: float) -> None:
        super().__init__()
        self.options = bins, low, high

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.histc(x, *self.options)


def counted(x: torch.Tensor, bins: int, low: float, high: float) -> torch.Tensor:
    """Return what torch's kernel counts: the bin is worked out in float32, in this order."""
    x = x[(x >= low) & (x <= high)]
    least, most = torch.tensor(low), torch.tensor(high)
    places = ((x - least) * float(bins) / (most - least)).int().clamp(max=bins - 1)
    return torch.bincount(places, minlength=bins).float()


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(technique, "LEAST_ELEMENTS", 1)


@pytest.mark.parametrize(
    ("size", "bins", "low", "high"),
    [((3, 701), 100, -1.0, 1.3), *(pytest.param(*case, marks=pytest.mark.slow) for case in (((40000,), 256, 0.0, 1.0), ((5,), 10, -2.0, 0.1),
     ((9000,), 5000, -3.0, 3.0), ((3000,), 1, -0.5, 0.5), ((20000,), 37, 0.1, 0.3)))],
)  # fmt: skip
def test_counts_are_those_of_torchs_kernel(size: tuple[int, ...], bins: int, low: float, high: float) -> None:
    optimized, _ = built(HISTOGRAM, Counts(bins, low, high), torch.randn(size))
    edges = low + (high - low) * torch.arange(bins + 1) / bins
    for kind in ("normal", "edges", "one", "special"):
        x = torch.randn(size, generator=torch.Generator().manual_seed(bins))
        if kind == "edges":  # and what lies next to them
            near = torch.stack([edges, torch.nextafter(edges, edges + 1), torch.nextafter(edges, edges - 1)]).flatten()
            x = near[torch.randint(len(near), size)]
        if kind == "one":
            x = torch.full(size, high)
        if kind == "special":
            x = torch.where(torch.rand(size) < 0.3, torch.tensor([float("nan"), float("inf"), -float("inf")])[torch.randint(3, size)], x)
        assert torch.equal(optimized(x), counted(x, bins, low, high)), kind


def test_which_calls_are_taken() -> None:
    def taken(model: nn.Module, dtype: torch.dtype = torch.float32) -> bool:
        return bool(list(HISTOGRAM.sites(captured(model, torch.randn(100, 9).to(dtype)))))

    assert taken(Counts(10, 0.0, 1.0)) and taken(Counts(8192, -3, 9))
    assert not taken(Counts(10, 0.0, 0.0)), "bounds of the data"
    assert not taken(Counts(8193, 0.0, 1.0)) and not taken(Counts(10, 0.0, 1.0), torch.float64)


class Experts(nn.Module):
    """Counts the tokens of each expert as transformers does: as whole numbers but on a CPU, which does not count those."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        kind = torch.float32 if ids.device.type == "cpu" else torch.int32
        return torch.cumsum(torch.histc(ids.to(kind), bins=8, min=0, max=7), 0, dtype=torch.int32)


def test_whole_numbers_are_counted_on_a_cpu_too() -> None:
    ids = torch.randint(0, 8, (40,), generator=torch.Generator().manual_seed(3))
    program = from_module(Experts(), (ids,))
    assert torch.equal(run(program, [ids], {}), Experts()(ids))

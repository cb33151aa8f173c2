"""Pools of native plans: the runtime's against torch's, whatever the windows, and where they stay torch's."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_plan import PLAN, agree, planned
from warpwright.domains.graph.plan.program import plan
from warpwright.domains.graph.techniques.schedule import NativePlan

POOLS = {("max", 1): F.max_pool1d, ("max", 2): F.max_pool2d, ("max", 3): F.max_pool3d,
         ("mean", 1): F.avg_pool1d, ("mean", 2): F.avg_pool2d, ("mean", 3): F.avg_pool3d}  # fmt: skip
CALLS = ("pool<Largest>(", "pool<Mean>(")


class Pools(nn.Module):
    """Every pool of one input; all see `x + 0`, which a kernel makes."""

    def __init__(self, pools: list[tuple[str, tuple[int, ...], dict[str, object]]]) -> None:
        super().__init__()
        self.pools = pools

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [POOLS[kind, len(sizes)](x.view(6, *sizes) + 0.0, **windows) for kind, sizes, windows in self.pools]  # type: ignore[arg-type]


def drawn(r: random.Random, d: int) -> tuple[str, tuple[int, ...], dict[str, object]]:
    """Return a pool of windows that lie next to one another, overlap, leave gaps or begin outside, of 5,040 numbers."""
    sizes = {1: [(840,), (420 * 2,)], 2: [(28, 30), (21, 40), (8, 105)], 3: [(8, 7, 15), (7, 8, 15), (5, 12, 14)]}[d]
    kind, size = r.choice(["max", "mean"]), r.choice(sizes)
    kernel = [r.randint(1, 4) for _ in range(d)]
    windows: dict[str, object] = {"kernel_size": kernel, "stride": [r.randint(1, 4) for _ in range(d)] if r.random() < 0.7 else kernel}
    windows["padding"] = [r.randint(0, k // 2) for k in kernel] if r.random() < 0.5 else 0
    if kind == "max":
        windows["ceil_mode"] = r.random() < 0.3
        windows["dilation"] = [r.randint(1, 2) if k <= 3 and min(size) > 6 else 1 for k in kernel]
    elif d > 1 and r.random() < 0.3:
        windows["divisor_override"] = 3
    return kind, size, windows


@pytest.mark.compiler
def test_every_window() -> None:
    r = random.Random(5)
    model = Pools([drawn(r, d) for d in (1, 2, 3) for _ in range(16)]).eval()
    torch.manual_seed(0)
    x = torch.randn(6, 840)
    ir = captured(model, x)
    source = plan(NativePlan().apply(ir, PLAN)).source
    assert sum(source.count(call) for call in CALLS) == len(model.pools)
    optimized = planned(ir)
    agree(model, ir, optimized, x)
    x[1, 7], x[2, 30], x[4, 400] = torch.nan, torch.inf, -torch.inf
    for seen, exact in zip(optimized(x), model(x), strict=True):
        torch.testing.assert_close(seen, exact, equal_nan=True)


class Torchs(nn.Module):
    """Pools that the runtime has not."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        inside = F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)
        return [inside, F.avg_pool2d(x, 3, 2, ceil_mode=True), F.max_pool2d(x, (1, 17), 1), F.max_pool2d(y, 2)]


@pytest.mark.compiler
def test_others_stay_torchs() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(2, 3, 16, 20), torch.randn(2, 8, 6, 6).to(memory_format=torch.channels_last)
    ir = captured(Torchs(), x, y)
    source = plan(NativePlan().apply(ir, PLAN)).source
    assert "void run(" in source and not any(call in source.split("void run(")[1] for call in CALLS)
    agree(Torchs(), ir, planned(ir), x, y)

"""Statistics of rows that fit a few vectors, which stay in registers: every length about a vector's, against float64."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_plan import PLAN, agree, planned
from warpwright.domains.graph.plan.program import plan
from warpwright.domains.graph.techniques.schedule import NativePlan

LENGTHS = (2, 3, 4, 5, 8, 15, 16, 17, 31, 33, 48, 63, 64, 65)
"""Up to four vectors of 4, 8 or 16 numbers, and more."""


class Norms(nn.Module):
    """A norm and the parts of one for rows of each length."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        rows = [x[:, at : at + n] * 1.0 for at, n in enumerate(LENGTHS)]
        norms = [F.layer_norm(row, row.shape[1:]) for row in rows]
        return [*norms, *(torch.softmax(row, 1) for row in rows), *(row.var(1, correction=0) for row in rows), *(row.amax(1) for row in rows)]


@pytest.mark.compiler
def test_every_length() -> None:
    torch.manual_seed(0)
    x = torch.randn(40, 96)
    ir = captured(Norms(), x)
    source = plan(NativePlan().apply(ir, PLAN)).source
    assert all(f"RowMoments<{n}> " in source for n in LENGTHS)
    optimized = planned(ir)
    model = Norms()
    for offset in (0.0, 1000.0):  # where numbers are 6e-5 apart
        agree(model, ir, optimized, x + offset)
    for seen, exact in zip(optimized(x), model(x.double()), strict=True):
        torch.testing.assert_close(seen.double(), exact, rtol=1e-5, atol=1e-5)
    x[3, 20] = torch.nan
    for seen, exact in zip(optimized(x), model(x), strict=True):
        assert torch.equal(seen.isnan(), exact.isnan())

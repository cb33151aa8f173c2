"""Common subexpressions are merged, except where a write stands between."""

from __future__ import annotations

import torch
from exactness import assert_equal_in_double, captured, fixpoint
from shapes import Apply
from torch import nn

from warpwright.domains.graph.techniques.algebra import common


class Counter(nn.Module):
    """Reads its buffer twice before writing it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * (self.count * 2) + self.count * 2
        self.count.add_(1)
        return y


def test_repeated_calls_become_one() -> None:
    model = Apply(lambda x: torch.tanh(x + 1) * torch.tanh(x + 1))
    before = captured(model, torch.zeros(3))
    after, fired = fixpoint(before, common.TECHNIQUES)
    assert len(fired) == 2 and sum("tanh" in str(n.target) for n in after.graph.nodes) == 1
    assert_equal_in_double(before, after, [torch.randn(3)], model)


def test_reads_of_written_state_stay() -> None:
    ir = captured(Counter(), torch.zeros(3))
    assert not list(common.COMMON_SUBEXPRESSION.sites(ir))

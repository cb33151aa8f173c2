"""Arguments that change what a call computes are in its native plan, or the call is in none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_plan import planned
from warpwright.domains.graph.techniques.schedule import NativePlan

pytestmark = pytest.mark.compiler

CALLS: dict[str, Callable[..., Any]] = {
    "rsub_alpha": lambda x, i, n: torch.rsub(i, 5, alpha=3),
    "add_alpha": lambda x, i, n: torch.add(i, n, alpha=2),
    "add_alpha_of_numbers": lambda x, i, n: torch.add(x, n * 1.0, alpha=-0.5),
    "decimals": lambda x, i, n: torch.round(x, decimals=2),
    "decimals_of_float64": lambda x, i, n: torch.round(x.double(), decimals=-1),
    "power": lambda x, i, n: i**3,
    "power_of_numbers": lambda x, i, n: x.double() ** 3,
    "scatter_multiplies": lambda x, i, n: x.scatter(1, n, x + 1, reduce="multiply"),
    "scatter_adds_a_number": lambda x, i, n: x.scatter(1, n, 2.0, reduce="add"),
    "index_add_wraps_around": lambda x, i, n: i.to(torch.uint8).index_add(0, n[0] % 4, i.to(torch.uint8)[:1].expand(7, 7), alpha=-1),
    "index_add_of_large_numbers": lambda x, i, n: i.index_add(0, n[0] % 4, (i * 16 + 1)[:1].expand(7, 7), alpha=2**53 + 1),
    "compared_with_what_its_type_does_not_hold": lambda x, i, n: (i.to(torch.uint8) < -1) & (i.to(torch.uint8) < 300),
    "any_over_nothing": lambda x, i, n: torch.any(i, dim=()),
    "all_over_nothing": lambda x, i, n: torch.all(x > 0, dim=()),
    "sum_over_nothing": lambda x, i, n: i.sum(dim=()),
}


class Call(nn.Module):
    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, *given: torch.Tensor) -> Any:
        return self.call(*given)


@pytest.mark.parametrize("name", CALLS)
def test_no_argument_is_left_out(name: str) -> None:
    torch.manual_seed(0)
    given = torch.randn(4, 7) * 30, torch.randint(-9, 9, (4, 7)), torch.stack([torch.randperm(7) for _ in range(4)])
    model = Call(CALLS[name])
    ir = captured(model, *given)
    if list(NativePlan().sites(ir)):
        torch.testing.assert_close(planned(ir)(*given)[0], model(*given))

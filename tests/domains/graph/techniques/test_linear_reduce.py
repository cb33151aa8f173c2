"""Reductions of matrix products: exact in float64, sound in float32 for every kind of input."""

from __future__ import annotations

import pytest
import torch
from exactness import assert_equal_in_double, assert_numerically_sound, captured, fixpoint, randomised
from shapes import Apply
from torch import nn

from warpwright.domains.graph.techniques import linear_reduce


class Product(nn.Module):
    """x @ W.T with a parameter, and what follows."""

    def __init__(self, follow: object, inputs: int = 40, outputs: int = 48) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs))
        self.shift = nn.Parameter(torch.randn(outputs))
        self.follow = follow

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.follow(self, torch.matmul(x, self.weight.T))  # type: ignore[operator,no-any-return]


_MODELS = {
    "sum of a product": (Product(lambda m, y: (y / 2).sum(1, keepdim=True) * 1.5), ["commute_reduction", "reduce_columns"]),
    "mean of a difference": (Product(lambda m, y: (y - m.shift).mean(1, keepdim=True)), ["commute_reduction", "reduce_columns"]),
    "sum of a scaled sum": (Product(lambda m, y: (3 * y + 1).sum(-1)), ["commute_reduction"] * 2 + ["reduce_columns"]),
    "linear": (nn.Sequential(nn.Linear(40, 48), Apply(lambda y: y.sum(1))), ["reduce_columns"]),
    "rows": (nn.Sequential(nn.Linear(40, 48), Apply(lambda y: y.mean(0))), ["reduce_rows"]),
    "pool": (nn.Sequential(nn.Linear(40, 48), Apply(lambda y: nn.functional.avg_pool1d(y.unsqueeze(1), 16).squeeze(1))), ["pool_features"]),
    "ragged pool": (nn.Sequential(nn.Linear(40, 50), Apply(lambda y: nn.functional.avg_pool1d(y.unsqueeze(1), 16).squeeze(1))), ["pool_features"]),
}


@pytest.mark.parametrize("name", sorted(_MODELS))
def test_reductions_of_products(name: str) -> None:
    model, expected = _MODELS[name]
    randomised(model, 0)
    size = (32, 40)
    before = captured(model, torch.zeros(size))
    after, fired = fixpoint(before, linear_reduce.TECHNIQUES)
    assert fired == expected
    assert_equal_in_double(before, after, [torch.randn(size)], model)
    assert_numerically_sound(before, after, size, model)


def test_products_of_two_inputs_and_batches() -> None:
    for axes, fires in (([-1], "reduce_columns"), ([1], "reduce_rows"), ([1, 2], "reduce_columns")):
        model = Apply(lambda pair, axes=axes: torch.matmul(pair[0], pair[1]).sum(axes))
        x = (torch.randn(3, 4, 5), torch.randn(3, 5, 6))
        before = captured(model, x)  # type: ignore[arg-type]
        after, fired = fixpoint(before, linear_reduce.TECHNIQUES)
        assert fires in fired
        assert_equal_in_double(before, after, [list(x)], model)


def test_a_sum_of_differences_of_inputs_is_left_alone() -> None:
    ir = captured(Apply(lambda x: (x - 1.0).sum(1)), torch.zeros(3, 4))
    assert not list(linear_reduce.COMMUTE_REDUCTION.sites(ir))

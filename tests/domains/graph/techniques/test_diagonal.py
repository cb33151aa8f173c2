"""A product with a diagonal matrix."""

from __future__ import annotations

import pytest
import torch
from exactness import assert_equal_in_double, captured
from torch import nn

from warpwright.base import Action
from warpwright.domains.graph.ir import aten, is_op
from warpwright.domains.graph.techniques.algebra.diagonal import DIAGONAL_PRODUCT


class Product(nn.Module):
    def __init__(self, body) -> None:
        super().__init__()
        self.body = body

    def forward(self, a, b):
        return self.body(a, b)


@pytest.mark.parametrize(
    "body",
    [
        lambda a, b: torch.diag(a) @ b,
        lambda a, b: b.T @ torch.diag(a),
        lambda a, b: torch.matmul(torch.diag_embed(a), b),
        lambda a, b: torch.mm(torch.diag(a), torch.diag(a)),
        lambda a, b: torch.diag(a) @ b.expand(2, 5, 7),
        lambda a, b: b.T.expand(3, 7, 5) @ a.diag(),
    ],
)
def test_the_product_is_element_by_element(body) -> None:
    model, inputs = Product(body), [torch.randn(5), torch.randn(5, 7)]
    before = captured(model, *inputs)
    [action] = DIAGONAL_PRODUCT.sites(before)
    after = DIAGONAL_PRODUCT.apply(before, action)
    assert_equal_in_double(before, after, inputs, model)
    assert not any(is_op(node, aten.matmul.default, aten.mm.default) for node in after.graph.nodes)
    assert any("finite" in said for said in after.assumptions)


@pytest.mark.parametrize(
    "body",
    [lambda a, b: torch.diag(a, 1) @ b.new_ones(6, 3), lambda a, b: torch.diag(a) @ b[:, 0], lambda a, b: torch.diag(b[:, :5]).sum() * b @ b.T],
)
def test_what_is_none(body) -> None:
    ir = captured(Product(body), torch.randn(5), torch.randn(5, 7))
    assert not list(DIAGONAL_PRODUCT.sites(ir)) and Action("diagonal_product") not in DIAGONAL_PRODUCT.sites(ir)

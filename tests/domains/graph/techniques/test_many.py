"""An exact rewrite that matches at many places is one action for all of them, and means what the single ones mean one after another."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import assert_equal_in_double, captured, draw, randomised
from warpwright.base import Action
from warpwright.domains.graph.techniques import ON_CUDA, REWRITES
from warpwright.domains.graph.techniques.rewrite import MANY
from warpwright.search.moves import Moves
from warpwright.space import Space


class Net(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number, layer in enumerate(self.layers):
            x = torch.relu(layer(x)) if number % 2 else x + layer(x)
        return x


def batch_norm_is_affine() -> object:
    return next(technique for technique in REWRITES if technique.name == "batch_norm_is_affine")


@pytest.mark.parametrize(("layers", "all_at_once"), [(MANY - 1, False), (MANY, True)])
def test_it_is_offered_where_there_are_many(layers: int, all_at_once: bool) -> None:
    actions = list(batch_norm_is_affine().sites(captured(Net(layers).eval(), torch.empty(2, 4, 6, 6))))
    assert (actions[0] == Action("batch_norm_is_affine")) is all_at_once
    assert len([action for action in actions if action.at]) == layers


def test_all_at_once_is_one_after_another() -> None:
    model, x = randomised(Net(6).eval(), 1), draw("normal", (2, 4, 6, 6), 2)
    ir = captured(model, x)
    technique = batch_norm_is_affine()
    together, apart = technique.apply(ir, Action("batch_norm_is_affine")), ir
    while left := [action for action in technique.sites(apart) if action.at]:
        apart = technique.apply(apart, left[0])
    assert not list(technique.sites(together))
    assert_equal_in_double(apart, together, (x,), model)
    assert_equal_in_double(ir, together, (x,), model)


def test_a_deep_network_comes_to_its_fold() -> None:
    model, x = randomised(Net(24).eval(), 3), draw("normal", (2, 4, 6, 6), 4)
    ir = captured(model, x)
    moves = Moves(Space(ir, (*REWRITES, *ON_CUDA), lambda *_: pytest.fail("nothing is lowered")))
    recipe = moves.fixpoint((), "EDP")
    assert recipe[-1] == Action("fold_parameters") and len(recipe) < 20
    assert_equal_in_double(ir, moves.ir(recipe), (x,), model, 1e-8)

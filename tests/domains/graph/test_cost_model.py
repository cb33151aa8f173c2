"""The cost model: what it counts, and that it ranks as measured."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from warpwright.base import Action
from warpwright.domains.graph import cost_model
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.techniques.fuse import FuseCuda
from warpwright.domains.graph.techniques.int8 import Int8Slices
from warpwright.domains.graph.techniques.precision import Tf32x3


class Chain(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(F.gelu(x) * 2 + 1, -1)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4096, 4096)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x))


def best(ir: GraphIR, technique: object) -> GraphIR:
    return technique.apply(ir, next(iter(technique.sites(ir))))  # type: ignore[attr-defined, no-any-return]


def test_a_fused_chain_moves_its_tensors_once() -> None:
    ir = captured(Chain(), torch.empty(4096, 4096))
    plain, fused = cost_model.seconds(ir, "cuda"), cost_model.seconds(best(ir, FuseCuda()), "cuda")
    once = 2 * 4 * 4096**2 / cost_model.RATES["cuda"].memory
    assert fused == pytest.approx(once, rel=0.2) and plain == pytest.approx(4.5 * once, rel=0.2)


def test_products_rank_as_measured() -> None:
    ir = captured(Layer(), torch.empty(4096, 4096))
    plain, slices, tf32x3 = (cost_model.seconds(x, "cuda") for x in (ir, best(ir, Int8Slices()), best(ir, Tf32x3())))
    assert slices < tf32x3 < plain
    assert plain == pytest.approx(2.8e-3, rel=0.1) and slices == pytest.approx(0.62e-3, rel=0.2)  # 2.75 and 0.54 ms of product on an H200


def test_a_cuda_graph_saves_launches() -> None:
    for size, gains in ((64, True), (8192, False)):  # but copies its inputs and results
        ir = captured(Chain(), torch.empty(size, size))
        assert (cost_model.seconds(ir.with_schedule(Action("cuda_graph")), "cuda") < cost_model.seconds(ir, "cuda")) is gains

"""Recurrent networks as a persistent kernel: which are taken, and that the file is complete (the kernel: test_recurrent_template.py)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import assert_equal_in_double, captured
from warpwright.base import Action, Candidate
from warpwright.domains.graph.capture.recurrent import PERSISTENT
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques import schedule
from warpwright.domains.graph.techniques.kernels.recurrent import RecurrentCuda
from warpwright.search import ladder
from warpwright.space import Space
from warpwright.templates import recurrent

TEXT = """import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True)
        self.head = torch.nn.Linear(12, 4)
    def forward(self, x):
        y, (hidden, _) = self.net(x)
        return self.head(y), hidden[-1]
def get_inputs():
    return [torch.randn(4, 5, 8)]
def get_init_inputs():
    return []
"""
FIRST = Action("recurrent_cuda", params=(("share", 1), ("sampled", False), ("warps", 12)))


class Around(nn.Module):
    """A network and something that reads one of its results."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> Any:
        y, state = self.net(x)
        return y * 2.0, state


def sites(net: nn.Module, *sizes: int) -> list[Action]:
    return list(RecurrentCuda().sites(of(net, *sizes)))


def of(net: nn.Module, *sizes: int) -> GraphIR:
    return captured(Around(net).eval(), torch.randn(*sizes))


@pytest.mark.parametrize("net", [nn.LSTM(8, 6, 2, bidirectional=True), nn.GRU(8, 6, batch_first=True), nn.RNN(8, 6, nonlinearity="relu", bias=False)])
def test_it_computes_the_same(net: nn.Module) -> None:
    before = of(net, 7, 4, 8)
    after = RecurrentCuda().apply(before, FIRST)
    assert_equal_in_double(before, after, [torch.randn(7, 4, 8)], Around(net))
    assert not list(RecurrentCuda().sites(after))


MEASURED = [  # sequences, units, layers, both directions; the fastest of cuDNN over the persistent kernel (benchmarks/results/recurrent_h200)
    (10, 256, 6, False, 3.67), (10, 256, 6, True, 2.42), (1, 1024, 1, False, 4.68), (8, 1024, 1, False, 1.75), (32, 1024, 1, False, 0.58),
    (1, 512, 1, False, 4.4), (16, 512, 2, False, 1.3), (64, 512, 2, False, 0.32), (1, 64, 1, False, 0.39),
]  # fmt: skip


@pytest.mark.parametrize("batch, hidden, layers, both, measured", MEASURED)
def test_it_is_estimated_faster_where_it_was(batch: int, hidden: int, layers: int, both: bool, measured: float) -> None:
    with torch.device("meta"):
        net = nn.LSTM(hidden, hidden, layers, bidirectional=both)
    before = captured(Around(net.to_empty(device="cpu")).eval(), torch.empty(64, batch, hidden))
    after = RecurrentCuda().apply(before, next(iter(RecurrentCuda().sites(before))))
    recorded = Action("cuda_graph")
    theirs, ours = (cost_model.seconds(ir.with_schedule(recorded), "cuda") for ir in (before, after))
    assert (theirs > ours) == (measured > 1), theirs / ours


def no_text(ir: GraphIR, actions: tuple[Action, ...]) -> Candidate:
    raise NotImplementedError


def test_what_is_tried_first() -> None:
    for batch, first in ((8, "recurrent_cuda"), (64, "cuda_graph")):
        techniques = (RecurrentCuda(), *schedule.CUDA_TECHNIQUES)
        ir = of(nn.LSTM(8, 256), 64, batch, 8)
        space = Space(ir, techniques, no_text, frozenset({"eager"}), estimate=lambda one: cost_model.seconds(one, "cuda"))
        (recipe,) = next(ladder.search(space, Random(0), 1))
        assert recipe[0].technique == first, recipe


def test_the_generated_file_is_complete() -> None:
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(TEXT, "task.py", "exec"), names)
    ir = captured(names["Model"]().eval(), torch.randn(4, 5, 8))
    text = lower(RecurrentCuda().apply(ir, FIRST), (), Original("test", TEXT)).source.text
    exec(compile(text, "optimized.py", "exec"), names)
    model, x = names["ModelNew"]().eval(), torch.randn(4, 5, 8)
    with torch.no_grad():
        seen, wanted = model(x), names["Model"].forward(model, x)  # without a GPU: torch's network
    torch.testing.assert_close(seen, wanted)
    assert names["_recurrent"].text("recurrent.cu") == recurrent.text("recurrent.cu")
    tiles = names["_recurrent"].plan(0, 256, 10, 6, True, 132, 227 * 1024)
    assert tiles == recurrent.plan(0, 256, 10, 6, True, 132, 227 * 1024) and tiles.places * 6 <= 132


def test_which_networks_are_taken() -> None:
    assert sites(nn.LSTM(8, 6), 5, 1, 8) == [FIRST], "a cell of two blocks has no other share, one word no sample"
    assert len(sites(nn.LSTM(8, 256), 5, 10, 8)) > 3
    assert not sites(nn.LSTM(8, 6, proj_size=3), 5, 4, 8), "projections"
    assert not list(RecurrentCuda().sites(captured(Around(nn.GRU(8, 6).double()).eval(), torch.randn(5, 4, 8).double())))
    assert not sites(nn.GRU(8, 6), 5, 65, 8), "many sequences are products of matrices"
    with torch.device("meta"):
        large = nn.LSTM(8, 2200)
    assert not sites(large.to_empty(device="cpu"), 5, 4, 8), "77 MB of weights do not fit on the chip"


@pytest.mark.parametrize("hidden", [1, 5, 20, 64, 100, 256, 300, 512, 1000, 1024, 1536, 2048])
@pytest.mark.parametrize("kind", range(4))
def test_plans_are_legal(kind: int, hidden: int) -> None:
    for batch in (1, 10, 64):
        for cells, chained in ((1, False), (2, False), (2, True), (6, True)):
            for way in PERSISTENT:
                tiles = recurrent.plan(kind, hidden, batch, cells, chained, 132, 227 * 1024, way)
                if tiles is not None:
                    assert tiles.threads % 32 == 0 and tiles.threads <= 512 and tiles.places * cells * way.share <= 132 and tiles.shared <= 227 * 1024
                    assert 0 <= tiles.held <= tiles.depth and 0 <= tiles.held_in <= tiles.depth and tiles.depth * 4 * tiles.lanes >= hidden

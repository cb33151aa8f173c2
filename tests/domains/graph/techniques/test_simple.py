"""Dead code, identities, clamps and scalars: each fires where it should, not where it should not, and keeps the result in float64."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import assert_equal_in_double, assert_numerically_sound, captured, draw, fixpoint, randomised
from warpwright.base import Candidate, Source
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.techniques import schedule
from warpwright.domains.graph.techniques.algebra import dead, identity, pools, scalars
from warpwright.domains.graph.techniques.algebra.ranges import bounds
from warpwright.domains.graph.techniques.kernels import windows
from warpwright.search import ladder
from warpwright.space import Space


class Plain(nn.Module):
    """A forward made of a function and, if given, a linear layer before it."""

    def __init__(self, function: Callable[..., Any], *layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.layers = nn.ModuleList(layers)
        self.p = nn.Parameter(torch.ones(4, 1, 1))
        self.q = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(self, x)


def rewritten(technique: Any, function: Callable[..., Any], size: tuple[int, ...], *layers: nn.Module, seed: int = 0) -> tuple[GraphIR, GraphIR, int]:
    """Apply a technique wherever it applies, check the result, and return both graphs and how often it fired."""
    model = randomised(Plain(function, *layers), seed)
    before = captured(model, torch.randn(*size))
    after, fired = fixpoint(before, [technique])
    if fired:
        for kind in ("normal", "offset", "heavy"):
            assert_equal_in_double(before, after, [draw(kind, size, seed)], model)
        assert_numerically_sound(before, after, size, model, kinds=("normal", "scaled"))
    return before, after, len(fired)


CASES: list[tuple[Any, Callable[..., Any], tuple[int, ...], list[Callable[[], nn.Module]]]] = [
    (dead.UNUSED_INDICES, lambda m, x: torch.max(x, 1)[0] + torch.min(x, 1).values, (3, 5), []),
    (dead.SELECT_FIRST, lambda m, x: F.gelu(m.layers[0](x))[:, 1] + 1, (3, 5, 8), [lambda: nn.Linear(8, 6)]),
    (dead.SELECT_FIRST, lambda m, x: m.layers[0](x)[:, 1:3] * 2, (3, 5, 8), [lambda: nn.LayerNorm(8)]),
    (identity.IDENTITY, lambda m, x: F.dropout(x * 1.0 + 0, training=False).contiguous().view(3, 5) + 1, (3, 5), []),
    (identity.IDENTITY, lambda m, x: F.max_pool2d(F.avg_pool2d(x, 1), 1, 1) ** 1 - 0.0 + m.q, (2, 3, 4, 4), []),
    (identity.SIZE_ONE, lambda m, x: x.sum(1, keepdim=True).amax(1, keepdim=True).logsumexp(1, keepdim=True).mean(1) + 1, (4, 3), []),
    (identity.SIZE_ONE_SOFTMAX, lambda m, x: torch.softmax(x, 1) + torch.log_softmax(x, 1), (4, 1, 3), []),
    (identity.NEEDLESS_CLAMP, lambda m, x: F.leaky_relu(torch.relu(x)).abs() + F.hardtanh(torch.sigmoid(x) * 2 - 1), (4, 3), []),
    (identity.MERGE_CLAMPS, lambda m, x: F.hardtanh(torch.clamp(x, -0.5, 3.0), -2, 1) + torch.clamp(F.relu6(x), max=4), (4, 3), []),
    (identity.CLAMP_BEFORE_SCALE, lambda m, x: torch.clamp(torch.clamp(x, 0, 1) * 2 - 0.5, 0, 1), (4, 3), []),
    (identity.MERGE_LEAKY, lambda m, x: F.leaky_relu(F.leaky_relu(x, 0.1), 0.2), (4, 3), []),
    (identity.MERGE_VIEWS, lambda m, x: x.view(12).view(2, 6).unsqueeze(0).reshape(6, 2) + 1, (4, 3), []),
    (pools.EVEN_POOL, lambda m, x: F.adaptive_avg_pool2d(x, (3, 2)) + 1, (2, 3, 6, 10), []),
    (pools.EVEN_POOL, lambda m, x: F.interpolate(x, scale_factor=0.5, mode="area"), (2, 3, 4, 4, 6), []),
    (pools.EVEN_POOL, lambda m, x: F.adaptive_avg_pool1d(x.relu(), 4), (2, 3, 12), []),
    (scalars.LITERAL, lambda m, x: torch.max(torch.tensor(0.5) - torch.min(x, torch.tensor(2.0)), torch.tensor(-1.0)), (4, 3), []),
    (scalars.LITERAL, lambda m, x: x / torch.tensor(3.0) + torch.tensor(2.0) / x, (4, 3), []),
    (scalars.COMBINE, lambda m, x: -((x + x) * 3.0 - 1) / 4 + 2, (4, 3), []),
    (scalars.SAME_TENSOR, lambda m, x: (lambda y: y * 0.5 + y)(m.layers[0](x)), (4, 3), [lambda: nn.Linear(3, 4)]),
    (scalars.SAME_TENSOR, lambda m, x: torch.sub(x / 4 - 1, -x + 2, alpha=3), (4, 3), []),
    (scalars.SAME_TENSOR, lambda m, x: (lambda y: y * 3.0 - y)(x.sigmoid()), (4, 3), []),  # never Inf
    (scalars.SCALAR_INTO_LINEAR, lambda m, x: (m.layers[0](x) * 2.0 - 1.0) / 3.0, (4, 3), [lambda: nn.Linear(3, 4)]),
    (scalars.SCALAR_INTO_LINEAR, lambda m, x: m.layers[0](x) - 1.0, (4, 3), [lambda: nn.Linear(3, 4, bias=False)]),
    (scalars.BIAS_INTO_LINEAR, lambda m, x: m.q - 0.0 + (m.layers[0](x) - m.q), (4, 3), [lambda: nn.Linear(3, 4, bias=False)]),
    (scalars.BIAS_INTO_LINEAR, lambda m, x: m.p + m.layers[0](x) + m.p[:1], (2, 3, 5, 5), [lambda: nn.Conv2d(3, 4, 3)]),
    (scalars.FACTOR_INTO_LINEAR, lambda m, x: m.layers[0](x) * m.q, (4, 3), [lambda: nn.Linear(3, 4)]),
    (scalars.FACTOR_INTO_LINEAR, lambda m, x: m.layers[0](x) * m.p / m.p.exp(), (2, 4, 5, 5), [lambda: nn.ConvTranspose2d(4, 4, 3, groups=2)]),
    (scalars.FACTOR_INTO_LINEAR, lambda m, x: m.p * m.layers[0](x), (2, 4, 5, 5), [lambda: nn.ConvTranspose2d(4, 4, 3)]),
    (scalars.INPUT_SCALE_INTO_LINEAR, lambda m, x: m.layers[0](x * 3.0), (2, 4, 5, 5), [lambda: nn.Conv2d(4, 4, 3)]),
]


@pytest.mark.parametrize(("technique", "function", "size", "layers"), CASES, ids=[f"{c[0].name}_{i}" for i, c in enumerate(CASES)])
def test_fires_and_keeps_the_result(technique, function, size, layers):
    before, after, count = rewritten(technique, function, size, *(layer() for layer in layers))
    assert count > 0
    assert after is not before


REFUSED: list[tuple[Any, Callable[..., Any], tuple[int, ...]]] = [
    (pools.EVEN_POOL, lambda m, x: F.adaptive_avg_pool2d(x, 4) + 1, (2, 3, 6, 8)),  # windows of two sizes
    (pools.EVEN_POOL, lambda m, x: F.adaptive_avg_pool2d(x, 1) + 1, (2, 3, 6, 8)),  # a mean
    (pools.EVEN_POOL, lambda m, x: F.adaptive_avg_pool2d(x, 12) + 1, (2, 3, 6, 8)),  # larger than the image
    (dead.UNUSED_INDICES, lambda m, x: tuple(torch.max(x, 1)), (3, 5)),
    (dead.SELECT_FIRST, lambda m, x: torch.softmax(x, 1)[:, 0], (3, 5)),
    (identity.IDENTITY, lambda m, x: x * 1.0, (3, 5)),  # the result would become the input itself
    (identity.IDENTITY, lambda m, x: x.clone(), (3, 5)),
    (identity.IDENTITY, lambda m, x: F.dropout(x, 0.5, True) + 1, (3, 5)),
    (identity.IDENTITY, lambda m, x: x[:, ::2].transpose(0, 1) * 1.5, (3, 5)),
    (identity.SIZE_ONE, lambda m, x: x.sum(1, keepdim=True), (3, 1)),
    (identity.NEEDLESS_CLAMP, lambda m, x: F.leaky_relu(F.gelu(x)) + torch.clamp(torch.tanh(x), -0.9, 1.0), (3, 5)),
    (identity.NEEDLESS_CLAMP, lambda m, x: torch.relu(F.avg_pool2d(torch.sigmoid(x) - 1.5, 2)), (1, 1, 4, 4)),
    (identity.CLAMP_BEFORE_SCALE, lambda m, x: torch.clamp(torch.clamp(x, 0, 1) * -2, 0, 1), (3, 5)),
    (identity.MERGE_LEAKY, lambda m, x: F.leaky_relu(F.leaky_relu(x, -0.1), 0.2), (3, 5)),
    (identity.MERGE_CLAMPS, lambda m, x: (lambda y: torch.clamp(y, 0, 1) + y)(torch.relu(x)), (3, 5)),
    (identity.IDENTITY, lambda m, x: x.t().contiguous().view(15) + 1, (3, 5)),
    (scalars.COMBINE, lambda m, x: x * 2.0 + 1.0, (3, 5)),
    (scalars.COMBINE, lambda m, x: (x.long() * 2 + 1) * 3, (3, 5)),
    (scalars.COMBINE, lambda m, x: x * 1e30 * 1e20, (3, 5)),  # float32 has no such number, and 1e-20 times both is 1e30
    (scalars.COMBINE, lambda m, x: x / 1e30 / 1e20, (3, 5)),
    (scalars.COMBINE, lambda m, x: (x.half() + 60000) + 60000, (3, 5)),
    (scalars.SAME_TENSOR, lambda m, x: x * 3e38 + x * 2e38, (3, 5)),
    (scalars.SAME_TENSOR, lambda m, x: x * 2.0 - x * 0.5, (3, 5)),  # of Inf the difference is NaN
    (scalars.SAME_TENSOR, lambda m, x: x * 2.0 - x * 1.999, (3, 5)),  # the difference of the factors is small beside them
    (scalars.SAME_TENSOR, lambda m, x: (lambda y: (y + x, y))(x * 2.0), (3, 5)),  # y is needed all the same
    (scalars.SAME_TENSOR, lambda m, x: x * 2.0 + x[:1] * 3.0, (3, 5)),
    (scalars.SAME_TENSOR, lambda m, x: x.long() * 2 + x.long() * 3, (3, 5)),
]


@pytest.mark.parametrize(("technique", "function", "size"), REFUSED, ids=[f"{c[0].name}_{i}" for i, c in enumerate(REFUSED)])
def test_does_not_fire(technique, function, size):
    assert not list(technique.sites(captured(Plain(function), torch.randn(*size))))


OPS: list[Callable[[torch.Tensor, float], torch.Tensor]] = [
    lambda x, c: x * c,
    lambda x, c: x + c,
    lambda x, c: x - c,
    lambda x, c: x / (abs(c) + 0.5),
    lambda x, c: c - x,
    lambda x, c: -x,
    lambda x, c: torch.clamp(x, -abs(c), abs(c) + 1),
    lambda x, c: torch.relu(x),
    lambda x, c: F.hardtanh(x),
    lambda x, c: F.leaky_relu(x, abs(c) / 4),
    lambda x, c: torch.sigmoid(x),
    lambda x, c: F.dropout(x, training=False),
]

NUMBERS = [0.0, 1.0, -1.0, 2.0, 0.5, -0.75, 3.0]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(OPS) - 1), st.sampled_from(NUMBERS)), min_size=2, max_size=7), st.integers(0, 9))
def test_random_chains_keep_their_result(chain, seed):
    def forward(model: Any, x: torch.Tensor) -> torch.Tensor:
        x = model.layers[0](x)
        for op, number in chain:
            x = OPS[op](x, number)
        return x + 0.5

    model = randomised(Plain(forward, nn.Linear(3, 4)), seed)
    before = captured(model, torch.randn(5, 3))
    after, fired = fixpoint(before, [*identity.TECHNIQUES, *scalars.TECHNIQUES])
    assert_equal_in_double(before, after, [draw("heavy", (5, 3), seed)], model)
    assert len(list(after.graph.nodes)) <= len(list(before.graph.nodes)) + 3 * len(fired)
    low, high = bounds(after.results[0])
    with torch.no_grad():
        result = model(draw("scaled", (5, 3), seed))
    assert low - 1e-5 <= result.min() and result.max() <= high + 1e-5


def test_a_pool_that_adapts_evenly_is_first_tried_as_a_kernel_of_ours() -> None:
    ir = captured(Plain(lambda m, x: F.adaptive_avg_pool2d(x, 7)), torch.empty(64, 512, 28, 28))
    techniques = (pools.EVEN_POOL, *windows.TECHNIQUES, *schedule.TECHNIQUES)
    space = Space(ir, techniques, lambda *_: Candidate(Source("python", ()), "cuda"), estimate=lambda one: cost_model.seconds(one, "cuda"))
    (first,) = next(ladder.search(space, Random(0), 1))
    assert [action.technique for action in first] == ["even_pool", "windows_cuda"]

"""Monotone functions and extrema: exact in float64, and bit for bit in float32."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from exactness import assert_equal_in_double, captured, draw, fixpoint, randomised, state_of
from shapes import Apply
from torch import nn

from warpwright.domains.graph.ir import run
from warpwright.domains.graph.techniques.algebra import monotone

_FUNCTIONS = {
    "relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "hardtanh": F.hardtanh, "leaky": F.leaky_relu, "elu": F.elu,
    "softplus": F.softplus, "clamp": lambda x: x.clamp(-0.3, 0.9), "scale": lambda x: x * 2.5, "divide": lambda x: x / 3, "shift": lambda x: x - 1.5,
    "channels": lambda x: x + torch.arange(3.0, device=x.device).reshape(3, 1, 1),
}  # fmt: skip
_EXTREMA = {"pool": nn.MaxPool2d(2, stride=3), "amax": Apply(lambda x: x.amax((2, 3))), "amin": Apply(lambda x: x.amin((3,), keepdim=True))}


@pytest.mark.parametrize("function", sorted(_FUNCTIONS))
@pytest.mark.parametrize("extremum", sorted(_EXTREMA))
def test_nondecreasing_functions_move_behind(function: str, extremum: str) -> None:
    model = nn.Sequential(Apply(_FUNCTIONS[function]), _EXTREMA[extremum])
    x = draw("heavy", (2, 3, 8, 9), 0)
    before = captured(model, x)
    after, fired = fixpoint(before, (monotone.EXTREMUM_FIRST,))
    assert fired == ["extremum_first"]
    assert_equal_in_double(before, after, [x], model)
    for kind in ("normal", "offset", "spikes"):
        x = draw(kind, (2, 3, 8, 9), 1)
        torch.testing.assert_close(run(before, [x], {}), run(after, [x], {}), rtol=0 if _steady(function, x) else 5e-7, atol=0)


def _steady(function: str, x: torch.Tensor) -> bool:
    """Say whether torch gives an element the same bits wherever it lies: with AVX-512, sigmoid's and softplus' depend on its place in a vector."""
    if function not in ("sigmoid", "softplus"):
        return True
    alone = torch.stack([_FUNCTIONS[function](one) for one in x.flatten().split(1)])
    return torch.equal(alone.view_as(x), _FUNCTIONS[function](x))


def test_a_negative_factor_exchanges_maximum_and_minimum() -> None:
    model = Apply(lambda x: (-2.0 * x).amax(1))
    x = torch.randn(4, 7)
    before = captured(model, x)
    after, fired = fixpoint(before, (monotone.EXTREMUM_FIRST,))
    assert fired == ["extremum_first"] and any("amin" in str(n.target) for n in after.graph.nodes)
    assert torch.equal(run(before, [x], {}), run(after, [x], {}))


@pytest.mark.parametrize("model", [Apply(lambda x: F.gelu(x).amin(1)), Apply(lambda x: F.leaky_relu(x, -0.5).amax(1))])
def test_what_is_not_monotone_stays(model: nn.Module) -> None:
    ir = captured(model, torch.zeros(4, 7))
    moved = [str(ir.node(a.at).args[0]) for a in monotone.EXTREMUM_FIRST.sites(ir)]
    assert not any("gelu" in name or "leaky" in name for name in moved)


@pytest.mark.parametrize("function", [F.gelu, F.silu, F.mish, F.hardswish])
def test_quasi_convex_functions(function: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monotone, "_WORTH_IT", 1)
    model = Apply(lambda x: function(x).amax(1))  # type: ignore[operator]
    for kind in ("normal", "negated", "heavy"):
        x = draw(kind, (5, 40), 2)
        before = captured(model, x)
        after, fired = fixpoint(before, (monotone.MAXIMUM_OF_QUASI_CONVEX,))
        assert fired == ["maximum_of_quasi_convex"]
        assert_equal_in_double(before, after, [x], model)


def test_bias_moves_behind_the_pool() -> None:
    model = randomised(nn.Sequential(nn.ConvTranspose2d(2, 3, 3, stride=2), nn.MaxPool2d(2)), 0)
    x = torch.randn(2, 2, 6, 7)
    before = captured(model, x)
    after, fired = fixpoint(before, (monotone.BIAS_AFTER_EXTREMUM,))
    assert fired == ["bias_after_extremum"]
    assert_equal_in_double(before, after, [x], model)
    assert state_of(model)

"""Losses written out: which forms are taken, that they are the losses in float64, and that a kernel of them reads its tensors once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import test_cpp
import torch
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cuda import fused
from warpwright.domains.graph.cpp import losses
from warpwright.domains.graph.ir import find, run

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]

WEIGHT, POSITIVE = torch.rand(13) + 0.5, torch.rand(13) + 0.5
FORMS: dict[str, Loss] = {
    "classes": lambda x, y, s, t: F.cross_entropy(x, t),
    "classes, ignored": lambda x, y, s, t: F.cross_entropy(x, t, ignore_index=3, reduction="none"),
    "classes, weighted": lambda x, y, s, t: F.cross_entropy(x, t, WEIGHT.to(x), ignore_index=3),
    "classes, weighted, sum": lambda x, y, s, t: F.cross_entropy(x, t, WEIGHT.to(x), reduction="sum"),
    "classes, smoothed": lambda x, y, s, t: F.cross_entropy(x, t, label_smoothing=0.1),
    "shares": lambda x, y, s, t: F.cross_entropy(x, torch.softmax(y, 1)),
    "shares, each": lambda x, y, s, t: F.cross_entropy(x, torch.softmax(y, 1), reduction="none"),
    "logarithms": lambda x, y, s, t: F.nll_loss(F.log_softmax(x, 1), t, ignore_index=3),
    "logarithms, given": lambda x, y, s, t: F.nll_loss(x, t, WEIGHT.to(x)),
    "logits": lambda x, y, s, t: F.binary_cross_entropy_with_logits(x, torch.sigmoid(y)),
    "logits, weighted": lambda x, y, s, t: F.binary_cross_entropy_with_logits(x, torch.sigmoid(y), WEIGHT.to(x), pos_weight=POSITIVE.to(x)),
    "probabilities": lambda x, y, s, t: F.binary_cross_entropy(torch.sigmoid(60 * x), torch.sigmoid(y)),
    "soft margin": lambda x, y, s, t: F.soft_margin_loss(x, y.sign()),
    "poisson": lambda x, y, s, t: F.poisson_nll_loss(x, y, reduction="sum"),
    "ranking": lambda x, y, s, t: F.margin_ranking_loss(x, y, (x + y).sign(), margin=0.3),
    "cosine embedding": lambda x, y, s, t: F.cosine_embedding_loss(x, y, s.sign(), margin=0.1),
    "triplet": lambda x, y, s, t: F.triplet_margin_loss(x, y, x * y, margin=0.5),
    "cosine": lambda x, y, s, t: F.cosine_similarity(x, y),
}


class Called(nn.Module):
    """One of FORMS, or all of them."""

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.names = [name] if name else list(FORMS)

    def forward(self, x: torch.Tensor, y: torch.Tensor, s: torch.Tensor, t: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(FORMS[name](x, y, s, t) for name in self.names)


def _given(rows: int = 40) -> list[torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    x, y = (torch.randn(rows, 13, generator=g) for _ in range(2))
    t = torch.randint(0, 13, (rows,), generator=g)
    t[:2] = 3
    return [x, y, torch.randn(rows, generator=g), t]


@pytest.mark.parametrize("name", FORMS)
def test_a_loss_written_out_is_the_loss(name: str) -> None:
    given = _given()
    ir = captured(Called(name), *given)
    after = losses.expand(ir)
    assert not find(after, *losses._FORMS) and find(ir, *losses._FORMS)
    wide = [one.double() if one.is_floating_point() else one for one in given]
    [exact] = Called(name)(*wide)
    [seen] = run(after, wide, {}, torch.float64, flat=True)
    torch.testing.assert_close(seen, exact, rtol=1e-6 if "weighted" in name else 1e-9, atol=1e-9)  # weights are literals in float32


def test_a_logarithm_that_only_a_loss_reads_is_not_written() -> None:
    after = losses.expand(captured(Called("logarithms"), *_given()))
    assert not [node for node in after.graph.nodes if "log_softmax" in str(node.target)]


class Half(nn.Module):
    def forward(self, x: torch.Tensor, t: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.cross_entropy(x, t), F.cross_entropy(x, t, label_smoothing=0.1, reduction="none")


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_sixteen_bits_are_widened_on_a_gpu_alone(kind: torch.dtype) -> None:
    x, t = _given()[0].to(kind), _given()[3]
    ir = captured(Half(), x, t)
    assert len(find(losses.expand(ir), *losses._FORMS)) == 2
    for seen, plain in zip(run(losses.expand(ir, on_gpu=True), [x, t], {}), Half()(x, t), strict=True):
        assert seen.dtype == kind
        torch.testing.assert_close(seen, plain, rtol=0.02, atol=0.02)


class Others(nn.Module):
    """Probabilities that may be none (torch refuses those), 64 bits, a smoothed weighted loss, full Poisson."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, s: torch.Tensor, t: torch.Tensor) -> tuple[torch.Tensor, ...]:
        inside = F.binary_cross_entropy(x.clamp(0, 1), torch.sigmoid(y)), F.soft_margin_loss(x.double(), y.double())
        return *inside, F.cross_entropy(x, t, WEIGHT.to(x), label_smoothing=0.1), F.poisson_nll_loss(x, y.abs(), full=True)


def test_what_is_left_to_torch() -> None:
    assert len(find(losses.expand(captured(Others(), *_given())), *losses._FORMS)) == 4


@pytest.mark.slow
def test_the_kernels_of_all_of_them() -> None:
    given: list[Any] = _given(2000)
    kernels, optimized = fused(captured(Called(), *given))
    assert len(kernels) >= 3
    exact = Called()(*(one.double() if one.is_floating_point() else one for one in given))
    for name, seen, plain, truth in zip(FORMS, optimized(*given), Called()(*given), exact, strict=True):
        assert seen.shape == plain.shape and seen.dtype == plain.dtype, name
        allowed = 2 * test_cpp.errors(plain, truth) + 5e-7 * float(truth.abs().max())
        assert test_cpp.errors(seen, truth) <= allowed, f"{name}: {test_cpp.errors(seen, truth)} {allowed}"

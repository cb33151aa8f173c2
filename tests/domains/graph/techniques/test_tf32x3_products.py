"""Products by three products of TF32 halves: which are taken, what the program then says, and what it gives elsewhere."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.techniques.test_simple import rewritten
from warpwright.domains.graph.techniques.products import tf32x3
from warpwright.domains.graph.techniques.products.int8 import INT8_LINEAR, Int8Slices
from warpwright.domains.graph.techniques.products.tf32x3 import TF32X3, Tf32x3

CASES: dict[str, tuple[Any, tuple[int, ...], list[Any]]] = {
    "linear": (lambda m, x: m.layers[0](x) @ x.T, (4096, 320), [lambda: nn.Linear(320, 320)]),
    "batches": (lambda m, x: x @ x.transpose(1, 2), (8, 1024, 256), []),
}


class Product(nn.Module):
    """A product of two inputs."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x @ y


def product(*sizes: tuple[int, ...]) -> Any:
    return captured(Product(), *(torch.empty(1, 1).expand(size) for size in sizes))


@pytest.fixture
def anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products are taken whether they gain or not."""
    monkeypatch.setattr(tf32x3, "GAIN", math.inf)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("anything")
def test_keeps_the_result(case: str) -> None:
    function, size, layers = CASES[case]
    before, after, count = rewritten(Tf32x3(), function, size, *(layer() for layer in layers))
    assert count == 1 and after is not before
    assert any(node.target is TF32X3 for node in after.graph.nodes)


@pytest.mark.parametrize(
    ("m", "k", "n", "taken"),
    [(32768, 64, 32768, True), (32768, 32, 32768, False), (1 << 20, 256, 768, True), (256, 1 << 19, 256, True), (1 << 20, 260, 768, False),
     (1 << 20, 256, 770, False), (2048, 1 << 20, 1, False), (64, 64, 64, False), (512, 512, 512, False), (1, 4096, 4096, False)],
)  # fmt: skip
def test_products_that_gain(m: int, k: int, n: int, taken: bool) -> None:
    """Of few terms, or of few results and many terms; not of odd sizes, nor what memory limits, nor what is over before a launch is."""
    assert bool(list(Tf32x3().sites(product((m, k), (k, n))))) is taken


@pytest.mark.usefixtures("anything")
def test_what_slices_leave_is_taken_with_them() -> None:
    ir = captured(Two(), torch.empty(1, 1).expand(16384, 2048))
    [action] = [action for action in Int8Slices().traits.best_with if action.technique == "tf32x3"]
    [slices, *_] = Int8Slices().sites(ir)
    both = Tf32x3().apply(Int8Slices().apply(ir, slices), action)
    assert [node.target for node in both.graph.nodes if node.target in (INT8_LINEAR, TF32X3)] == [INT8_LINEAR, TF32X3]


class Two(nn.Module):
    """A product of many terms and one of few."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2048, 128), nn.Linear(128, 4096)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


def test_where_tf32_is_permitted_it_has_nothing_to_offer() -> None:
    ir = product((32768, 64), (64, 32768))
    assert not list(Tf32x3(tf32=True).sites(ir))


def test_estimates_are_near_what_was_measured() -> None:
    """By results/tf32x3_h200."""
    for size, ours, library in (((32768, 32768, 64), 3.65e-3, 4.16e-3), ((256, 256, 1 << 19), 1.21e-3, 1.35e-3), ((1 << 20, 768, 256), 8.4e-3, 1e-2),
                                ((4096, 4096, 4096), 2.5e-3, 2.78e-3)):  # fmt: skip
        assert tf32x3.seconds(1, *size) == pytest.approx(ours, rel=0.1)
        assert tf32x3.library_seconds(1, *size) == pytest.approx(library, rel=0.15)


def test_elsewhere_it_is_torchs_product() -> None:
    names: dict[str, Any] = {"torch": torch}
    exec(TF32X3.python_text(), names)
    a, b = torch.randn(3, 4, 5), torch.randn(5, 6)
    assert torch.equal(names["tf32x3"](a, b), a @ b)

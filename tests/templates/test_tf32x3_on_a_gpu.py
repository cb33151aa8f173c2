"""Products by three products of TF32 halves on a GPU, beside float64: layouts, parts of the inner size, what TF32 cannot hold."""

from __future__ import annotations

import pytest
import torch

from warpwright.templates import tf32x3
from warpwright.verifier.judge import parts

pytestmark = pytest.mark.cuda

TILES = [tf32x3.LARGE, tf32x3.SMALL, tf32x3.Tile(1, 4), tf32x3.Tile(2, 4, 32)]
KINDS = {"normal": lambda x: x, "positive": lambda x: x.abs(), "exp": lambda x: torch.exp(4 * x), "large": lambda x: x * 1e15}


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)], ids=str)
@pytest.mark.parametrize("tile", TILES, ids=str)
def test_layouts_and_edges(tile: tf32x3.Tile, turned: tuple[bool, bool]) -> None:
    torch.manual_seed(0)
    for batches, m, n, k in ((1, 1000, 777, 333), (3, 256, 128, 64), (2, 130, 65, 17), (1, 1, 7, 5), (1, 300, 1, 40)):
        a, b = (side((batches, *size), turn) for size, turn in zip(((m, k), (k, n)), turned, strict=True))
        exact = a.double() @ b.double()
        for splits in (1, 3):
            seen = tf32x3.product(a, b, tile, splits)
            assert float((seen - exact).abs().max()) <= 2e-6 * float(exact.square().mean().sqrt()) * 3, (batches, m, n, k, splits)


def side(size: tuple[int, ...], turned: bool) -> torch.Tensor:
    return torch.randn(size[0], size[2], size[1], device="cuda").mT if turned else torch.randn(size, device="cuda")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(512, 512, 4096), (256, 256, 262144), (2048, 1024, 256)], ids=str)
def test_errs_as_the_verifier_allows(kind: str, size: tuple[int, int, int]) -> None:
    torch.manual_seed(1)
    m, n, k = size
    a, b = KINDS[kind](torch.randn(m, k, device="cuda")), KINDS[kind](torch.randn(k, n, device="cuda"))
    exact, theirs, ours = a.double() @ b.double(), a @ b, tf32x3.matmul(a, b)
    for axis in (0, 1):
        seen, own, rms = (part.double().square().mean(axis).sqrt() for part in (ours - exact, theirs - exact, exact))
        allowed = parts.SLACK * own + parts.FLOOR_ULPS * torch.finfo(torch.float32).eps * rms
        assert bool((seen <= allowed).all()), float((seen / allowed).max())


def test_what_tf32_cannot_hold() -> None:
    torch.manual_seed(2)
    a, b = torch.randn(300, 200, device="cuda"), torch.randn(200, 100, device="cuda").sign()
    a[3, 4], a[5, 6], a[7, 8] = float("inf"), float("nan"), 3.4e38
    seen, expected = tf32x3.matmul(a, b), a @ b
    special = torch.tensor([3, 5, 7], device="cuda")
    torch.testing.assert_close(seen[special], expected[special], equal_nan=True)
    others = torch.ones(300, dtype=torch.bool, device="cuda").index_fill_(0, special, False)  # float32's own sums err by 1.2e-5 beside terms of 1
    exact = a[others].double() @ b.double()
    assert float((seen[others] - exact).abs().max()) < 2e-6 * float(exact.square().mean().sqrt())
    assert bool(seen[3].isinf().all()) and bool(seen[5].isnan().all())
    for power in (-125, -104):
        small = torch.randn(300, 200, device="cuda") * 2.0**power
        exact = small.double() @ b.double()
        assert float((tf32x3.matmul(small, b) - exact).abs().max() / exact.abs().max()) < 2e-6

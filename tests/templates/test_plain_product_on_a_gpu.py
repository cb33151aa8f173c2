"""Products by plain sums on a GPU, beside float64: each tile, layouts, sizes that are no multiple of anything, addresses between multiples of 16."""

from __future__ import annotations

import pytest
import torch

from warpwright.templates import plain_product

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)], ids=str)
@pytest.mark.parametrize("tile", [plain_product.MANY, plain_product.WIDE], ids=str)
def test_layouts_and_edges(tile: plain_product.Tile, turned: tuple[bool, bool]) -> None:
    torch.manual_seed(0)
    for m, n, k in ((64, 96, 128), (512, 512, 512), (131, 67, 1000), (130, 66, 17), (1, 7, 5), (33, 1, 40), (2048, 64, 64), (128, 1024, 1024)):
        for offset in (0, 1):
            a, b = (side(size, turn, offset) for size, turn in zip(((m, k), (k, n)), turned, strict=True))
            exact, theirs, ours = a.double() @ b.double(), a @ b, plain_product.product(a, b, tile)
            assert float((ours - exact).abs().max()) <= 2e-6 * float(exact.square().mean().sqrt()) * 3, (m, n, k)
            wide = plain_product.tiles(m, n) >= plain_product.LEAST_TILES and not turned[0]  # what launch() takes by such a tile
            taken = k >= 64 and (tile is plain_product.MANY or wide)
            assert not taken or (ours - exact).norm() <= (theirs - exact).norm(), (m, n, k)


def side(size: tuple[int, int], turned: bool, offset: int) -> torch.Tensor:
    values = torch.randn(size[0] * size[1] + offset, device="cuda")[offset:]
    return values.view(size[1], size[0]).T if turned else values.view(size)


def test_it_is_launched_from_the_host_by_one_call_and_from_python_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = torch.randn(96, 200, device="cuda"), torch.randn(200, 80, device="cuda")
    launch = plain_product.launch(a, b)
    assert launch is not None and launch.host is not None
    first = launch(a, b)
    monkeypatch.setattr(plain_product, "host", lambda: None)
    again = plain_product.launch(a, b)
    assert again is not None and again.host is None and torch.equal(again(a, b), first)

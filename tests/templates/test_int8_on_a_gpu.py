"""Products from INT8 slices on a Hopper GPU: what has zeros in it, beside float64."""

from __future__ import annotations

import pytest
import torch

from warpwright.templates import int8_product
from warpwright.verifier.judge import parts

pytestmark = pytest.mark.cuda


@pytest.fixture(autouse=True)
def _hopper() -> None:
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("needs a Hopper GPU")


def drawn(kind: str, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    if kind in ("nearly alike", "by normal weights"):  # rows of which every square has columns that are small by chance
        a = torch.randn(size, device="cuda") + 0.05 * torch.randn(size, size, device="cuda")
        return a.relu(), torch.rand(size, size, device="cuda") - 0.5 if kind == "nearly alike" else torch.randn(size, size, device="cuda")
    a, b = (torch.rand(size, size, device="cuda") for _ in range(2))
    b[1::2] *= 10.0 ** (-14 * torch.rand(size // 2, 1, device="cuda"))
    a, b = (a.triu(), b.triu()) if kind == "upper" else (a.tril(), b.tril()) if kind == "lower" else (a, b)
    return (torch.block_diag(*a.view(-1, 100, size)[:, :, :100]), b) if kind == "blocks" else (a, b)


@pytest.mark.parametrize("columns", [64, 128])
@pytest.mark.parametrize("kind", ["upper", "lower", "blocks", "whole", "nearly alike", "by normal weights"])
@pytest.mark.parametrize("size", [200, 1000, 4000])
def test_each_row_and_column_errs_as_the_verifier_allows(kind: str, size: int, columns: int) -> None:
    torch.manual_seed(size)
    a, b = drawn(kind, size)
    exact, theirs, out = a.double() @ b.double(), a @ b, torch.full((size, size), float("nan"), device="cuda")
    left, right = int8_product.SlicedMatrix(a), int8_product.SlicedMatrix(b.T)
    int8_product.fill(left, right)
    int8_product.product(left, right, out, int8_product.Tiles(columns, 6, watchdog=True))
    for axis in (0, 1):
        ours, own, rms = (part.double().square().mean(axis).sqrt() for part in (out - exact, theirs - exact, exact))
        allowed = parts.SLACK * own + parts.FLOOR_ULPS * torch.finfo(torch.float32).eps * rms
        assert bool((ours <= allowed).all()), float((ours / allowed).nan_to_num().max())


def test_ordinary_rows_are_not_suspect_and_triangles_are() -> None:
    torch.manual_seed(0)
    for kind, expected in (("whole", 0), ("upper", 1)):
        a, b = torch.randn(1024, 1024, device="cuda"), torch.randn(1024, 1024, device="cuda")
        a, b = (a.triu(), b.triu()) if kind == "upper" else (a, b)
        left = int8_product.cut(a)
        int8_product.product(left, int8_product.cut(b.T), torch.empty(1024, 1024, device="cuda"))
        assert float(left.memory[left.layout.worst : left.layout.flags].view(torch.float32)[3]) == expected

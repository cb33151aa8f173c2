"""Rows of pairs by the CUDA kernel, run on the CPU by the transpiler, against float64; and attention with them."""

from __future__ import annotations

import pytest
import torch
from domains.rgnn.translated import launch_of, launches_of

from warpwright.domains.rgnn.emit.own import products
from warpwright.domains.rgnn.emit.own.kernel import Launch
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import Domain


@pytest.fixture(scope="module")
def launch() -> Launch:
    return launch_of(products, "pair_products")


@pytest.mark.compiler
def test_the_check_of_a_device_passes_with_the_kernel_and_not_without(launch: Launch) -> None:
    assert products.right_on(launch, torch.device("cpu"))
    assert not products.right_on(lambda *_: None, torch.device("cpu"))


@pytest.mark.parametrize("each", [64, 192])
def test_blocks_have_each_pair_once(each: int) -> None:
    kind = torch.cat([torch.zeros(700, dtype=torch.long), torch.tensor([2, 2, 4])])
    index = Index(torch.arange(703), torch.arange(703) % 5, kind, 703, 5, 6)
    table = products.blocks(index, each)
    rows = [(r, p) for r, first, count in table.tolist() for p in range(first, first + count)]
    assert [p for _, p in rows] == list(range(index.rows[Domain.PAIR_SRC]))
    assert [r for r, _ in rows] == index.lift(Domain.ETYPE, Domain.PAIR_SRC).tolist()
    assert table[:, 2].max() == each


def test_what_it_does_not_take_is_left() -> None:
    index = Index(torch.arange(5), torch.arange(5), torch.zeros(5, dtype=torch.long), 5, 5, 1)
    wide, odd, plain = (products.Side(torch.randn(5, n), torch.randn(1, n, n)) for n in (128, 6, 8))
    assert not products.takes([wide]) and not products.takes([odd]) and not products.takes([plain, wide]) and not products.takes([])
    assert not products.takes([products.Side(plain.rows.double(), plain.weight.double())])
    assert products.takes([plain, plain]) and products.messages(index, [plain]) is None  # no GPU


@pytest.mark.compiler
def test_the_check_of_rows_passes_with_the_kernel_and_not_without() -> None:
    (launch,) = launches_of([products.OF_ROWS])
    assert products.right_of_rows(launch, torch.device("cpu"))
    assert not products.right_of_rows(lambda *_: None, torch.device("cpu"))


def test_blocks_that_make_weights_are_few_where_pairs_are() -> None:
    few, many = products.steps_of_block(69_525, 50), products.steps_of_block(269_841, 122)
    assert 2 * (69_525 / (64 * few) + 25) <= products.FULL < 2 * (69_525 / (64 * (few - 1)) + 25)  # all run at once, and none is longer for nothing
    assert few < many <= products.MOST
    assert products.steps_of_block(0, 3) == products.steps_of_block(10, 1) == 1

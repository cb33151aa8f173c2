"""What rounding does not decide is not excused by it: sums of whole numbers, and values that are only moved."""

from __future__ import annotations

import torch

from warpwright.verifier.judge.original.rounding import RUNS, Rounded


def test_votes_are_counted_and_not_rounded() -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(512, 6, generator=generator)
    expected = (x > 0).float().sum(1) >= 3
    for seed in range(RUNS):
        with Rounded(seed, "cpu"):
            assert torch.equal((x > 0).float().sum(1) >= 3, expected)
            assert torch.equal((x > 0).sum(1, dtype=torch.float32) >= 3, expected)


def test_sums_of_other_numbers_are_moved() -> None:
    x = torch.full((64, 4), 0.75)
    with Rounded(1, "cpu"):
        assert not bool((x.sum(1) == 3).all())
        assert not bool(((x @ torch.ones(4, 4)) == 3).all())


def test_whole_numbers_that_do_not_fit_are_moved() -> None:
    with Rounded(1, "cpu"):
        assert not torch.equal(torch.full((64, 4), 2.0**23).sum(1), torch.full((64,), 2.0**25))


def test_what_is_only_laid_out_otherwise_is_a_view_and_not_moved() -> None:
    row = torch.rand(1, 64)
    with Rounded(1, "cpu"):
        wide = row.expand(3, 64)
        assert wide.data_ptr() == row.data_ptr() and bool((wide - row == 0).all())

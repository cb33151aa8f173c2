"""A/A: every process of one side meets every one of the other."""

from __future__ import annotations

import pytest

from benchmarks.timing.aa import pair_of


@pytest.mark.parametrize(("workers", "beside"), [(1, 1), (2, 2), (3, 2), (6, 4), (7, 4)])
def test_every_pair_of_processes_comes(workers: int, beside: int) -> None:
    assert len({pair_of(seed, workers, beside) for seed in range(workers * beside)}) == workers * beside


def test_new_processes_are_named_by_their_number() -> None:
    assert [pair_of(seed, 0, 2) for seed in range(3)] == [(0, 0), (1, 1), (2, 0)]

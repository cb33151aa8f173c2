"""What is foretold of halos on several GPUs: the bytes are those of the regions, more GPUs need links, fewer need turns."""

from __future__ import annotations

import pytest

from benchmarks.mpi.halo_model import block_of, grid_of, predicted_us, regions


def test_the_regions_are_those_of_a_halo() -> None:
    parts = regions((512, 512, 512), 3, ranks=8, gpus=8)
    assert len(parts) == 26 and sum(one.bytes for one in parts) == 37_308_096  # results/mpi_pack_h200 packs as many
    assert {one.peer for one in parts} == set(range(1, 8)) and all(one.away for one in parts)
    assert not any(one.away for one in regions((512, 512, 512), 3, ranks=1, gpus=1))


@pytest.mark.parametrize("ranks, grid", ((1, (1, 1, 1)), (2, (2, 1, 1)), (4, (2, 2, 1)), (8, (2, 2, 2)), (12, (3, 2, 2))))
def test_grids_are_as_even_as_may_be(ranks: int, grid: tuple[int, int, int]) -> None:
    assert grid_of(ranks) == grid


def test_what_is_foretold() -> None:
    eight = predicted_us(block_of("weak", 8), 3, 8, 8)
    assert 104 < eight["arrays_best"] < eight["arrays"] < eight["slots"] < eight["library"]  # 37.3 MB at 360 GB/s are 104 us
    shared, alone = (predicted_us(block_of("weak", ranks), 3, ranks, 1)["arrays"] for ranks in (2, 1))
    assert shared > 2 * 156 + alone  # two turns
    assert block_of("strong", 4) == (512, 512, 1024)

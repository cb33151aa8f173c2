"""Where in its memory a tensor begins survives the way to another process: a program may go by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright.workers.tensors import exchange

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("rows", [4, 400])  # inline, and in a file
def test_an_offset_and_gaps_survive_the_way(tmp_path: Path, rows: int) -> None:
    tensor = torch.randn(3 + rows * 9)[3:].view(rows, 9)[:, :-1]
    shelf = exchange.Shelf(str(tmp_path))
    made = exchange.receive(shelf.put(tensor), "cpu")
    assert torch.equal(made, tensor)
    assert (made.storage_offset(), made.stride()) == (3, (9, 1))


def test_so_does_the_room_for_a_tensor_without_its_values(tmp_path: Path) -> None:
    tensor = torch.randn(100)[5::2]
    form = exchange.forms_of(exchange.Shelf(str(tmp_path)).put(tensor))
    assert (exchange.receive(form, "cpu").storage_offset(), exchange.receive(form, "cpu").stride()) == (5, (2,))


def test_what_lies_far_into_its_memory_takes_no_more_room_for_that(tmp_path: Path) -> None:
    made = exchange.receive(exchange.Shelf(str(tmp_path)).put(torch.zeros(1 << 20)[-7:]), "cpu")
    assert made.untyped_storage().nbytes() < 5 * exchange.LONGEST_LEAD

"""The edges that people are shown: what is read, overwritten and written again, within a block and across blocks and turns of loops."""

from __future__ import annotations

import pytest
from sass_cubins import LISTED, kernel

from warpwright.domains.sass.code import control
from warpwright.domains.sass.model.dependences import dependences


def edges(name: str, text: str) -> list[tuple[str, ...]]:
    schedule = kernel(name).original
    return [found for place, found in enumerate(dependences(schedule)) if schedule.at(place).text.startswith(text)]


def test_each_kind_is_told_apart() -> None:
    [product] = edges("saxpy_90", "IMAD R7, R7, UR4, R0")
    assert "i1 R0 B0" in product and "i2 UR4 B0" in product
    every = [edge for found in dependences(kernel("copied_90").original) for edge in found]
    assert {edge.split()[2] for edge in every if len(edge.split()) == 4} == {"war", "waw"}
    assert any(edge.startswith("b") for edge in every) and any("war B" in edge for edge in every)


@pytest.mark.parametrize("name", [name for name in LISTED if name.endswith("_90")])
def test_every_source_has_its_writer_and_a_loop_reads_what_its_turn_before_wrote(name: str) -> None:
    schedule = kernel(name).original
    found = dependences(schedule)
    assert len(found) == len(schedule.order)
    for place, edges in enumerate(found):
        for edge in edges:
            where = edge.split()[0]
            index = int(where.rpartition("i")[2])
            assert where.startswith("b") or index < place, edge  # the compiler's own order: what is of this block stands before
    in_loops = [place for block, depth in zip(schedule.kernel.blocks, schedule.kernel.depth, strict=True) if depth for place in block]
    if in_loops:
        assert any(int(edge.split()[0].rpartition("i")[2]) >= place for place in in_loops for edge in found[place] if edge.startswith("b"))


def test_cycles_follow_the_stalls() -> None:
    schedule = kernel("stencil_90").original
    place, edge = next((place, edge) for place, found in enumerate(dependences(schedule)) for edge in found if " +" in edge and edge[0] == "i")
    index, cycles = int(edge.split()[0][1:]), int(edge.rpartition("+")[2])
    assert cycles == sum(max(1, control.stall(schedule.words[between])) for between in range(index, place))

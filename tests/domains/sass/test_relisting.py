"""New orders of whole blocks: legal by the independent check, nearer to what was asked, with stalls no longer than the compiler's."""

from __future__ import annotations

import pytest
from sass_cubins import checker, kernel

from warpwright.domains.sass import control, relisting
from warpwright.domains.sass.checker import complaints, dependences
from warpwright.domains.sass.techniques import hot_blocks

NAMES = ("stencil_90", "softmax_90", "rmsnorm_80")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("push", "jitter"), [(0.1, 0.0), (1.0, 0.0), (0.0, 4.0)])
def test_a_block_listed_anew_is_legal_and_another(name: str, push: float, jitter: float) -> None:
    original, number = kernel(name).original, hot_blocks(checker(name))[0]
    made = relisting.relist(checker(name), original, number, push, jitter, seed=3, least=False)
    assert made is not None and made.order != original.order
    assert not complaints(made, checker(name))
    again = relisting.relist(checker(name), original, number, push, jitter, seed=3, least=False)
    assert again is not None and (again.order, again.words) == (made.order, made.words)


@pytest.mark.parametrize("name", NAMES)
def test_the_links_of_a_block_hold_all_its_dependences(name: str) -> None:
    for number in hot_blocks(checker(name)):
        before = checker(name).before(number)
        assert all(first in before[second] for first, second in dependences(kernel(name), number))


def test_the_least_stalls_are_legal_and_no_longer() -> None:
    name = "softmax_90"
    original, cycles = kernel(name).original, []
    for number in hot_blocks(checker(name)):
        made = relisting.settle(checker(name), original, number, least=True)
        if made is not None:
            assert not complaints(made, checker(name))
            places = kernel(name).blocks[number]
            cycles.append([sum(control.stall(schedule.words[place]) for place in places) for schedule in (original, made)])
    assert cycles and all(after <= before for before, after in cycles)


def test_a_load_rises_with_the_arithmetic_of_its_address() -> None:
    name = "stencil_90"
    here, original = kernel(name), kernel(name).original
    lifted = 0
    for place in here.blocks[hot_blocks(checker(name))[0]]:
        made = relisting.lift(checker(name), original, place, -12) if original.at(place).memory else None
        if made is None:
            continue
        assert not complaints(made, checker(name))
        assert made.place_of(place) <= place
        chain = checker(name).before(here.block_of[place])[place]
        moved = {index for index in chain if made.place_of(index) < index}
        lifted += bool(moved) and made.place_of(place) < place
    assert lifted, "no load took its producers along"

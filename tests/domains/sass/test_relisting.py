"""New orders of whole blocks: legal by the independent check, nearer to what was asked, with stalls no longer than the compiler's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest
from sass_cubins import checker, kernel

from warpwright.domains.sass.code import control
from warpwright.domains.sass.code.disassembly import Line
from warpwright.domains.sass.code.instruction import read
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.domains.sass.editing import listing, relisting
from warpwright.domains.sass.editing.kinds import hot_blocks
from warpwright.domains.sass.model.checker import Checker, complaints, dependences

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


@pytest.mark.parametrize("by", ["operands", "cycles"])
@pytest.mark.parametrize("name", NAMES)
def test_what_decides_among_neighbours_gives_legal_blocks(name: str, by: str) -> None:
    for number in hot_blocks(checker(name))[:2]:
        made = relisting.relist(checker(name), kernel(name).original, number, 0.0, 0.0, 0, least=True, by=by)
        assert made is None or not complaints(made, checker(name))


def test_instructions_that_need_not_wait_come_first() -> None:
    """The line of a block is no longer than in the compiler's order, for which the same distances hold."""
    number = hot_blocks(checker("stencil_90"))[0]
    lengths = [line("stencil_90", number, order) for order in (kernel("stencil_90").blocks[number], listed_by_cycles("stencil_90", number))]
    assert lengths[1] <= lengths[0]


def line(name: str, number: int, order: Iterable[int]) -> float:
    """The cycle in which the last of a block's instructions issues, one a cycle, each as soon as it may."""
    rules, instructions = checker(name), kernel(name).instructions
    issued: dict[int, float] = {}
    now = 0.0
    for index in order:
        soonest = (issued[one] + listing.apart(rules, instructions[one], instructions[index]) for one in rules.before(number)[index])
        issued[index] = max([now, *soonest])
        now = issued[index] + 1
    return now


@pytest.mark.parametrize("name", NAMES)
def test_of_what_is_ready_the_first_that_is_wanted_is_listed(name: str) -> None:
    number, rng = hot_blocks(checker(name))[0], Random(name)
    block, before = kernel(name).blocks[number], checker(name).before(number)
    wanted = {index: rng.random() for index in block}
    left, expected = set(block), list[int]()
    while left:
        expected.append(min((index for index in left if not before[index] & left), key=lambda index: wanted[index]))
        left.remove(expected[-1])
    assert listing.links_of(checker(name), number).listed(block, wanted) == expected


def listed_by_cycles(name: str, number: int) -> list[int]:
    original = kernel(name).original
    made = relisting.relist(checker(name), original, number, 0.0, 0.0, 0, least=True, by="cycles")
    assert made is not None and made.order != original.order
    return [made.order[place] for place in kernel(name).blocks[number]]


@pytest.mark.parametrize("name", ["softmax_90", "rmsnorm_80", "stencil_90"])
def test_the_compilers_order_keeps_the_compilers_flags(name: str) -> None:
    original = kernel(name).original
    for block in kernel(name).blocks:
        kept = checker(name).model.without_stale_reuse(original, block.start, block.stop - 1)
        assert kept.words[block.start : block.stop] == original.words[block.start : block.stop]


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


@pytest.mark.parametrize("name", NAMES)
def test_waits_that_nothing_needs_are_dropped_and_no_others(name: str) -> None:
    """A wait that is planted is gone, and of the compiler's few: it writes hardly any that nothing needs."""
    here, original = kernel(name), kernel(name).original
    number = next(number for number in hot_blocks(checker(name)) if relisting.lean(checker(name), *planted(name, number)) is not None)
    schedule, _ = planted(name, number)
    made = relisting.lean(checker(name), schedule, number)
    assert made is not None and made.order == original.order and not complaints(made, checker(name))
    places = here.blocks[number]
    waits = [sum(control.waits(one.words[place]).bit_count() for place in places) for one in (original, schedule, made)]
    assert waits[2] <= waits[0] < waits[1] and waits[2] >= 0.7 * waits[0]


def planted(name: str, number: int) -> tuple[Schedule, int]:
    """Return the compiler's schedule with a wait for each scoreboard at the last arithmetic of a block, and the block."""
    original, block = kernel(name).original, kernel(name).blocks[number]
    place = next(place for place in reversed(block) if original.at(place).kind == "fixed")
    return original.with_words({place: original.words[place] | 63 << 116}), number


def test_operands_are_kept_for_the_next_product_of_a_new_order() -> None:
    """Without its flags a block gets back those that compilers set between neighbours, and none besides."""
    here = kernel("stencil_90")
    for number in hot_blocks(checker("stencil_90")):
        block = here.blocks[number]
        bare = here.original.with_words({place: control.without_reuse(here.words[place]) for place in block})
        made = listed_as_it_is(checker("stencil_90"), bare, number)
        kept = {place: control.reused(made.words[place]) for place in block}
        assert all(flags & ~control.reused(here.words[place]) == 0 for place, flags in kept.items())
        assert not complaints(made, checker("stencil_90"))


def test_an_operand_that_is_overwritten_is_not_kept() -> None:
    """R4 is a factor of both; the first product writes it."""
    texts = ("FFMA R4, R4, R5, R6", "FFMA R7, R4, R8, R9", "FFMA R10, R4, R11, R9")
    factors = [map(int, re.findall(r"R(\d+)", text)[1:]) for text in texts]
    words = [control.encode(sum(n << bit for n, bit in zip(numbers, control.SLOT_BITS, strict=True)), HELD) for numbers in factors]
    instructions = tuple(read(index, Line(text, 0, frozenset(), frozenset())) for index, text in enumerate(texts))
    code = replace(kernel("saxpy_90"), instructions=instructions, words=tuple(words), labels={}, pinned=frozenset())
    made = listed_as_it_is(Checker(code, checker("saxpy_90").distances), code.original, 0)
    assert [control.reused(word) for word in made.words] == [0, 0b101, 0]


def listed_as_it_is(rules: Checker, schedule: Schedule, number: int) -> Schedule:
    """A block in the order that it has: operands are kept as far as that permits."""
    block = schedule.kernel.blocks[number]
    made = rules.model.relisted(schedule, number, rules.entry({}, number), schedule.order[block.start : block.stop], False)
    assert made is not None
    return made


HELD = control.Control(4, True, 7, 7, 0, 0)

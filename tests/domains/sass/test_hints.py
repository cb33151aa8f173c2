"""Hints of loads and stores: what they may change, that nothing else changes with them, and that the disassembler reads them as meant."""

from __future__ import annotations

import json
import re
from random import Random

import pytest
from sass_cubins import checker, kernel

from warpwright.domains.sass import script
from warpwright.domains.sass.code import control, disassembly, hints
from warpwright.domains.sass.code.kernel import Schedule, read_kernel
from warpwright.domains.sass.editing import edits
from warpwright.domains.sass.editing.kinds import HINTS
from warpwright.domains.sass.editing.techniques import techniques
from warpwright.domains.sass.model.checker import complaints
from warpwright.errors import UsageError

NAMES = ("rmsnorm_90", "softmax_90", "rmsnorm_80", "stencil_90")
_SAID = re.compile(r"\.(EF|EL|EU|NA|LTC(64|128|256)B)\b")


def accesses(name: str, base: str) -> list[int]:
    here = kernel(name)
    return [one.index for one in here.instructions if one.base == base and hints.mask(one, here.words[one.index], here.cubin.arch)]


def with_word(schedule: Schedule, index: int, word: int) -> Schedule:
    return schedule.with_words({schedule.place_of(index): word})


@pytest.mark.parametrize("name", NAMES)
def test_every_hint_is_read_as_it_is_written(name: str) -> None:
    here = kernel(name)
    for base in ("LDG", "STG"):
        for index in accesses(name, base):
            one, word = here.instructions[index], here.words[index]
            for evict in hints.EVICTIONS:
                for ahead in hints.AHEADS if base == "LDG" else (0,):
                    written = hints.write(word, one, hints.Hint(evict, ahead))
                    assert hints.read(written, one) == hints.Hint(evict, ahead) == hints.parse(str(hints.Hint(evict, ahead)))
                    assert hints.means_the_same(one, word, written, here.cubin.arch)


@pytest.mark.parametrize("name", NAMES)
def test_any_other_bit_is_refused(name: str) -> None:
    """Fault injection: each bit of a load, of a store and of arithmetic that is neither control nor hint."""
    here, rules = kernel(name), checker(name)
    places = [accesses(name, "LDG")[0], accesses(name, "STG")[0], next(one.index for one in here.instructions if one.kind == "fixed")]
    for index in places:
        allowed = control.MASK | hints.mask(here.instructions[index], here.words[index], here.cubin.arch)
        bits = [bit for bit in range(128) if not allowed >> bit & 1]
        faulty = [with_word(here.original, index, here.words[index] ^ 1 << bit) for bit in bits]
        assert not any(map(edits.unchanged_meaning, faulty)), here.instructions[index].text
        assert any("does something else" in problem for problem in complaints(faulty[-1], rules))


def test_an_unknown_eviction_is_refused() -> None:
    here = kernel("rmsnorm_90")
    index = accesses("rmsnorm_90", "LDG")[0]
    for number in set(range(8)) - set(hints.EVICTIONS.values()):
        word = here.words[index] & ~(7 << 84) | number << 84
        assert any("does something else" in problem for problem in complaints(with_word(here.original, index, word), checker("rmsnorm_90")))


def test_what_is_strong_has_no_hints() -> None:
    line = disassembly.Line("LDG.E.STRONG.GPU R4, desc[UR4][R2.64]", 1 << 84, frozenset({4}), frozenset({2, 3}))
    from warpwright.domains.sass.code.instruction import read

    assert hints.mask(read(0, line), 1 << 84, 90) == 0
    plain = disassembly.Line("LDG.E R4, desc[UR4][R2.64]", 1 << 84, frozenset({4}), frozenset({2, 3}))
    assert hints.mask(read(0, plain), 1 << 84, 90) and not hints.mask(read(0, plain), 1 << 84, 100)


def test_a_text_keeps_hints_and_refuses_them_where_there_are_none() -> None:
    here, rules = kernel("rmsnorm_90"), checker("rmsnorm_90")
    [kind] = [one for one in techniques(rules) if one.name == "hints"]
    for action in kind.sites(here.original):
        hinted = kind.apply(here.original, action)
        assert complaints(hinted, rules) == [] and hinted.order == here.original.order
        assert script.read(script.write(hinted), here).words == hinted.words and edits.without_hints(hinted).words == here.words
    document = json.loads(script.write(here.original))
    arithmetic = next(one.index for one in here.instructions if one.kind == "fixed")
    load, store = (str(accesses("rmsnorm_90", base)[0]) for base in ("LDG", "STG"))
    for wrong in ({str(arithmetic): "first 0"}, {store: "first 64"}, {load: "soon 0"}):
        with pytest.raises(UsageError):
            script.read(json.dumps(document | {"hints": wrong}), here)


@pytest.mark.skipif(not disassembly.is_available(), reason="needs nvdisasm (pip install 'warpwright[sass]')")
@pytest.mark.parametrize("name", NAMES)
def test_the_disassembler_reads_what_was_meant(name: str) -> None:
    here, rng = kernel(name), Random(3)
    [kind] = [one for one in techniques(checker(name)) if one.name == "hint"]
    hinted = here.original
    for _ in range(40):
        action = kind.draw(hinted, rng, rng.randrange(len(here.words)))
        made = kind.make(hinted, action)
        hinted = made or hinted
    assert hinted.words != here.words
    listed = read_kernel(hinted.cubin, here.name)
    for mine, theirs, word in zip(here.instructions, listed.instructions, hinted.words, strict=True):
        assert _SAID.sub("", mine.text) == _SAID.sub("", theirs.text) and (mine.defs, mine.uses) == (theirs.defs, theirs.uses)
        if hints.mask(mine, word, here.cubin.arch):
            said = {match[0].lstrip(".") for match in _SAID.finditer(theirs.text)}
            hint = hints.read(word, mine)
            expected = {"first": "EF", "last": "EL", "unchanged": "EU", "none": "NA"}.get(hint.evict)
            assert said == ({expected} if expected else set()) | ({f"LTC{hint.ahead}B"} if hint.ahead else set())


def test_every_kind_of_hint_is_offered() -> None:
    assert {evict for evict, ahead in HINTS["LDG"] if ahead < 0} == set(hints.EVICTIONS) == {evict for evict, _ in HINTS["STG"]}

"""Registers renamed: the flow of data stays, planted faults in it are found, and a schedule's text brings its registers along."""

from __future__ import annotations

import functools
import json
from random import Random

import pytest
from sass_cubins import kernel

from warpwright.domains.sass import script
from warpwright.domains.sass.code import disassembly
from warpwright.domains.sass.code.disassembly import R
from warpwright.domains.sass.code.kernel import Kernel, read_kernel
from warpwright.domains.sass.domain import checker_of
from warpwright.domains.sass.editing.flow import NONE, differences
from warpwright.domains.sass.editing.kinds import hot_blocks
from warpwright.domains.sass.editing.renaming import READ, WRITTEN, renamed_as, with_registers
from warpwright.domains.sass.editing.techniques import techniques
from warpwright.domains.sass.model.checker import complaints
from warpwright.errors import CaptureError, UsageError

pytestmark = pytest.mark.skipif(not disassembly.is_available(), reason="needs nvdisasm (pip install 'warpwright[sass]')")
NAMES = {"rmsnorm_90": 40, "softmax_90": 40, "layernorm_90": 48}


@functools.cache
def spread(name: str) -> Kernel:
    return with_registers(kernel(name), NAMES[name])


@pytest.mark.parametrize("name", NAMES)
def test_values_spread_and_flow_as_before(name: str) -> None:
    before, after = kernel(name), spread(name)
    changed = sum(mine != theirs for mine, theirs in zip(before.words, after.words, strict=True))
    assert changed > len(before.words) // 4, "shuffles no longer keep values where they are"
    assert not differences(before, after) and after.compiled is before
    named = max(register for one in after.instructions for register in one.defs | one.uses if register < NONE)
    assert named + 2 < after.cubin.register_count(after.name) <= NAMES[name]
    assert not complaints(after.original, checker_of(after))


def test_another_register_is_another_flow() -> None:
    """Fault injection: a register's number changed by a few, in a field that the instruction uses."""
    after, rng, planted = spread("rmsnorm_90"), Random(4), 0
    while planted < 10:
        index = rng.randrange(len(after.words))
        one, word = after.instructions[index], after.words[index]
        fields = [at for at in (*WRITTEN[R], *READ[R]) if word >> at & 255 in one.defs | one.uses and one.kind == "fixed"]
        if not fields:
            continue
        planted += 1
        at = rng.choice(fields)
        number = (word >> at & 255) + rng.choice((1, 2, 3))
        words = [*after.words]
        words[index] = word & ~(255 << at) | number << at
        faulty = read_kernel(after.cubin.with_words(after.name, (*words, *after.padding)), after.name)
        assert differences(kernel("rmsnorm_90"), faulty), (one.text, at, number)


def test_a_text_brings_its_registers_along() -> None:
    before, after = kernel("rmsnorm_90"), spread("rmsnorm_90")
    [relist] = [kind for kind in techniques(checker_of(after)) if kind.name == "relist"]
    schedule = relist.apply(after.original, next(iter(relist.sites(after.original))))
    text = script.write(schedule)
    again = script.read(text, before)
    assert again.cubin.data == schedule.cubin.data and again.kernel.compiled is before
    document = json.loads(text)
    index, word = next(iter(document["words"].items()))
    for bit in (16, 3, 110):  # another register, another operation, another scoreboard
        wrong = document | {"words": document["words"] | {index: f"{int(word, 16) ^ 1 << bit:032x}"}}
        with pytest.raises((UsageError, CaptureError)):
            script.read(json.dumps(wrong), before)
    assert renamed_as(before, {}, 0).words == before.words


def test_loads_rise_where_registers_are_free() -> None:
    """In the order by time alone the last load of a row's weights comes earlier than with the compiler's registers."""

    def last_load(here: Kernel) -> int:
        rules = checker_of(here)
        [relist] = [kind for kind in techniques(rules) if kind.name == "relist"]
        block = here.blocks[hot_blocks(rules)[0]]
        listed = [relist.apply(here.original, action) for action in relist.sites(here.original)]
        return min(max(place for place in block if one.at(place).base == "LDG") for one in listed)

    assert last_load(spread("layernorm_90")) <= last_load(kernel("layernorm_90"))

"""The control word: every field decodes and encodes, and touches nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sass_cubins import LISTED, kernel

from warpwright.domains.sass.code import control
from warpwright.domains.sass.code.control import Control

controls = st.builds(Control, st.integers(0, 15), st.booleans(), st.integers(0, 7), st.integers(0, 7), st.integers(0, 63), st.integers(0, 7))
words = st.integers(0, (1 << 128) - 1)


@settings(deadline=None)
@given(words, controls)
def test_fields_round_trip_and_touch_nothing_else(word: int, fields: Control) -> None:
    encoded = control.encode(word, fields)
    assert control.decode(encoded) == fields
    assert (encoded ^ word) & ~control.MASK == 0
    assert control.encode(encoded, control.decode(word)) == word


@settings(deadline=None)
@given(st.builds(Control, st.integers(0, 15), st.booleans(), *[st.sampled_from((0, 1, 2, 3, 4, 5, 7))] * 2, st.integers(0, 63), st.integers(0, 7)))
def test_what_is_printed_parses_back(fields: Control) -> None:
    assert control.parse(str(fields)) == fields


@pytest.mark.parametrize("name", LISTED)
def test_compilers_write_legal_control_words_only(name: str) -> None:
    """But for the endless loop behind the last exit, which never runs: its stall is 0."""
    for instruction, word in zip(kernel(name).instructions, kernel(name).words, strict=True):
        after_exit = instruction.base in ("BRA", "NOP") and control.stall(word) == 0
        assert after_exit or control.decode(word).legal, f"{instruction.text}: {control.decode(word)}"


@pytest.mark.parametrize("name", LISTED)
def test_the_disassembler_sees_the_same_reuse_flags(name: str) -> None:
    for instruction, word in zip(kernel(name).instructions, kernel(name).words, strict=True):
        assert instruction.text.count(".reuse") == control.reused(word).bit_count(), instruction.text


@settings(deadline=None)
@given(words, st.integers(1, 15))
def test_a_long_stall_gives_up_hold_and_reuse(word: int, cycles: int) -> None:
    changed = control.with_stall(word, cycles)
    assert control.stall(changed) == cycles
    if cycles > control.LONGEST_HELD_STALL:
        assert not control.held(changed) and not control.reused(changed)

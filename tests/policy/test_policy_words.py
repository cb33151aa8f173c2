"""Words: what is the same program says the same, an action's words are its own, a size and a speed are one word."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpwright.base import Action
from warpwright.policy import words
from warpwright.policy.words import Places, text_words, value_words

KERNEL = """
__global__ void scale(const float* input, float* output, float factor, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;   // one thread an element
    if (i < count) output[i] = input[i] * factor + 4096.0f;
}
"""

NAMES = st.from_regex(r"[a-z]{3,8}_[a-z]{2,5}", fullmatch=True).filter(lambda name: name not in words.C_WORDS)


@given(st.lists(NAMES, min_size=5, max_size=5, unique=True))
@settings(deadline=None)
def test_other_names_and_other_layout_are_the_same_words(names: list[str]) -> None:
    text = KERNEL
    for old, new in zip(("scale", "input", "output", "factor", "count"), names, strict=True):
        text = re.sub(rf"\b{old}\b", new, text)
    text = text.replace("   // one thread an element", "\n /* elementwise */ ")
    assert text_words(text, {names[0]}) == tuple(word.replace("@scale", f"@{names[0]}") for word in text_words(KERNEL, {"scale"}))


def test_a_texts_words() -> None:
    said = text_words(KERNEL, {"scale"})
    assert said[:2] == ("__global__", "@scale") and "blockIdx.x" in said and "e12" in said
    assert not {"input", "output", "factor", "one", "thread"} & set(said)


def test_places_are_numbered_and_other_names_left_out() -> None:
    places = Places()
    assert places.action(Action("tile", "matmul_3", (("m", 128),))) == ("tile", "@0", "m", "128", ";")
    assert places.program(("@view_1", "view", "@matmul_3", "matmul", "e20")) == ("view", "@0", "matmul", "e20")


SCALARS = st.one_of(st.booleans(), st.integers(-5000, 5000), st.sampled_from(("default", "max-autotune", "tf32x3")), st.floats(-4, 4, width=16))


@given(SCALARS, SCALARS)
@settings(deadline=None)
def test_different_values_have_different_words(first: object, second: object) -> None:
    if first != second and type(first) is type(second):
        assert value_words(first) != value_words(second)  # type: ignore[arg-type]


@given(st.integers(0, 10**9))
@settings(deadline=None)
def test_every_number_and_speed_is_in_the_fixed_words(number: int) -> None:
    fixed = set(words.fixed_words())
    assert set(value_words(number)) <= fixed and words.size_word(number) in fixed
    assert words.speed_word(number / 1000) in fixed and words.roof_word(number / 10**9) in fixed


@pytest.mark.parametrize(("speedup", "word"), [(1.0, "x+0"), (2.0, "x+2"), (0.5, "x-2"), (0.0, "failed"), (1e9, "x+12")])
def test_a_speeds_word(speedup: float, word: str) -> None:
    assert words.speed_word(speedup) == word


def test_the_roofs_word_says_how_far_below_the_program_is() -> None:
    assert [words.roof_word(share) for share in (1.0, 0.5, 0.001, None, 0.0)] == ["roof0", "roof1", "roof10", "roof?", "roof?"]

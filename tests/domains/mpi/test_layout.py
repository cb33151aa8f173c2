"""The canonical form: it keeps the order of the bytes whatever is nested, equal things look equal, and it prints as code that parses back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpwright.domains.mpi import datatypes
from warpwright.domains.mpi.explain import plan
from warpwright.domains.mpi.ir import Object, parse
from warpwright.domains.mpi.layout import Layout
from warpwright.errors import TaskError, UsageError

pytestmark = pytest.mark.compiler

Tree = tuple[Any, ...]
trees: st.SearchStrategy[Tree] = st.recursive(
    st.tuples(st.just("dense"), st.integers(0, 9)),
    lambda children: (
        st.tuples(st.just("strided"), st.integers(0, 5), st.integers(-20, 40), children)
        | st.tuples(st.just("concat"), st.lists(st.tuples(st.integers(-40, 90), children), max_size=5))
    ),
    max_leaves=8,
)


def built(tree: Tree) -> Layout:
    """Return the core's layout."""
    if tree[0] == "dense":
        return Layout.dense(tree[1])
    if tree[0] == "strided":
        return built(tree[3]).strided(tree[1], tree[2])
    return Layout.concat((offset, built(child)) for offset, child in tree[1])


def places(tree: Tree, start: int = 0) -> list[int]:
    """Return the place of every byte, by the definition."""
    if tree[0] == "dense":
        return list(range(start, start + tree[1]))
    if tree[0] == "strided":
        return [place for i in range(tree[1]) for place in places(tree[3], start + i * tree[2])]
    return [place for offset, child in tree[1] for place in places(child, start + offset)]


def copied(layout: Layout, where: np.ndarray, times: int) -> bool:
    """Whether packing and unpacking move exactly these bytes, time after time."""
    rng = np.random.default_rng(0)
    source = rng.integers(0, 256, int(where.max()) + 1, dtype=np.uint8)
    good = True
    for _ in range(times):
        packed, target, back = np.zeros(len(where), np.uint8), np.zeros_like(source), np.zeros_like(source)
        layout.pack(source.ctypes.data, packed)
        layout.unpack(packed, target.ctypes.data)
        back[where] = source[where]
        good = good and np.array_equal(packed, source[where]) and np.array_equal(target, back)
    return good


def spread(layout: Layout) -> list[int]:
    """Return the place of every byte of the runs."""
    return [place for offset, length in zip(*map(np.ndarray.tolist, layout.runs()), strict=True) for place in range(offset, offset + length)]


@settings(max_examples=100, deadline=None)
@given(trees)
def test_the_order_of_the_bytes_is_kept(tree: Tree) -> None:
    layout, expected = built(tree), places(tree)
    assert spread(layout) == expected and layout.bytes == len(expected)
    assert layout.span == ((min(expected), max(expected) + 1) if expected else (0, 0))


@settings(max_examples=70, deadline=None)
@given(trees, st.integers(0, 200), st.integers(0, 200))
def test_any_part_of_the_stream_is_packed_and_unpacked(tree: Tree, first: int, length: int) -> None:
    layout, where = built(tree), np.array(places(tree), np.int64)
    first = min(first, layout.bytes)
    where = where[first : first + length] - layout.span[0]
    memory = np.random.default_rng(0).integers(0, 256, layout.span[1] - layout.span[0] + 1, dtype=np.uint8)
    packed = np.zeros(len(where), np.uint8)
    layout.pack(memory.ctypes.data - layout.span[0], packed, first)
    assert np.array_equal(packed, memory[where])
    target = np.zeros_like(memory)
    layout.unpack(packed, target.ctypes.data - layout.span[0], first)
    expected = np.zeros_like(memory)
    expected[where] = memory[where]
    assert np.array_equal(target, expected)


@settings(max_examples=70, deadline=None)
@given(trees)
def test_it_prints_as_code_that_parses_back(tree: Tree) -> None:
    text = built(tree).canonical()
    assert str(parse(text)) == text and parse(text).bytes == len(places(tree))


SAME = (
    (["vector", 4, 2, 2, "double"], "Dense(64)"),
    (["vector", 4, 1, 3, "double"], "Strided(4, 24, Dense(8))"),
    (["subarray", [8, 8], [8, 3], [0, 2], "C", "int"], "8 + Strided(8, 32, Dense(12))"),
    (["subarray", [8, 8], [8, 3], [0, 2], "F", "int"], "64 + Dense(96)"),
    (["indexed", [2, 2, 2], [0, 4, 8], "int"], "Strided(3, 16, Dense(8))"),
    (["hvector", 3, 1, -16, "double"], "Strided(3, -16, Dense(8))"),
    (["struct", [1, 1], [0, 8], ["int", "double"]], "Concat((0, Dense(4)), (8, Dense(8)))"),
    (["vector", 2, 1, 1, ["hvector", 3, 1, 64, "double"]], "Strided(2, 136, Strided(3, 64, Dense(8)))"),
    (["contiguous", 3, ["resized", 0, 16, "int"]], "Strided(3, 16, Dense(4))"),
    (["contiguous", 0, "int"], "Empty"),
)


@pytest.mark.parametrize("written, canonical", SAME)
def test_datatypes_become_canonical(written: Any, canonical: str) -> None:
    assert datatypes.read(written).layout.canonical() == canonical


def test_a_transposing_type_keeps_its_order() -> None:
    transposed = Layout.dense(8).strided(4, 32).strided(4, 8)
    assert transposed.canonical() == "Strided(4, 8, Strided(4, 32, Dense(8)))"
    assert transposed != Layout.dense(8).strided(4, 8).strided(4, 32)


def test_plans_name_the_kernel() -> None:
    assert plan(datatypes.read(["subarray", [64, 64, 64], [62, 62, 3], [1, 1, 1], "C", "double"]).layout) == {
        "canonical": "33288 + Strided(62, 32768, Strided(62, 512, Dense(24)))", "bytes": 92256, "shortest_block": 24, "word": 8,
        "kernels": {"nest of 2": 1},
    }  # fmt: skip
    assert plan(Layout.concat((1000 * i + i * i, Layout.dense(4)) for i in range(100)))["kernels"] == {"tree": 1}
    assert Object(0, None).width() == 16


@pytest.mark.parametrize("written", [["vector", 3, "double"], ["subarray", [4], [5], [0], "C", "int"], "quaternion", [], 3])
def test_what_is_no_datatype_is_refused(written: Any) -> None:
    with pytest.raises(TaskError):
        datatypes.read(written)


def test_sizes_beyond_64_bits_are_refused() -> None:
    with pytest.raises(UsageError, match="64 bits"):
        Layout.dense(1 << 40).strided(1 << 40, 1 << 41)


def test_buffers_are_checked() -> None:
    layout = Layout.dense(8).strided(4, 16)
    with pytest.raises(UsageError, match="at most the 32 bytes"):
        layout.pack(0, bytearray(40))
    with pytest.raises(UsageError, match="read-only"):
        layout.pack(0, bytes(32))


@pytest.mark.parametrize("block, step, count", ((8, 520, 3000), (24, 512, 1027), (64, 768, 900), (16, 200, 7001)))
def test_rows_are_copied_with_and_without_a_prefetch(block: int, step: int, count: int) -> None:
    where = (np.arange(count)[:, None] * step + np.arange(block)[None, :]).reshape(-1)
    assert copied(Layout.dense(block).strided(count, step), where, 40)  # the first 16 try both


@pytest.mark.parametrize("lengths", ((8,), (4, 8, 12), (32,), (8, 40, 16, 32, 24), (3, 5, 100), (70, 140)))
def test_parts_at_places_of_their_own_are_copied(lengths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    starts = np.sort(rng.choice(4000, 500, replace=False)) * max(lengths)  # some touch, some lie at even distances: they merge
    parts = [(int(start), lengths[i % len(lengths)]) for i, start in enumerate(starts)]
    where = np.concatenate([np.arange(start, start + length) for start, length in parts])
    layout = Layout.concat((start, Layout.dense(length)) for start, length in parts)
    assert copied(layout, where, 2) and copied(layout.strided(3, int(where.max()) + 7), np.concatenate(
        [where + i * (int(where.max()) + 7) for i in range(3)]), 1)  # fmt: skip

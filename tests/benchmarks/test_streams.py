"""The benchmark of kernels that memory binds: its shapes are written at full size, and a kernel of each kind is right when it is small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.kernels import streams


@pytest.mark.parametrize("name", ["columns, sum (1:47)", "norm, batch (1:33)", "map, scalar (1:5)"])
def test_shapes_differ(name: str) -> None:
    shapes = [shape for shape, _, kernels in streams.written(name, list(streams.CASES[name].sizes)) if len(kernels) == 1]
    assert shapes[0] == "chosen" and len(shapes) >= len(streams.CASES[name].shapes) - 1  # of two that are equal one is left


def test_what_is_written_past_a_cache() -> None:
    case = "map, scalar (1:5)"
    texts = {shape: text for shape, text, _ in streams.written(case, [(64, 64)])}
    assert "store_past<4>(q1" not in texts["chosen"] and "store_past<4>(q1" in texts["written past L2"]
    assert "load_past<4>(x0" in texts["both past L2"] and texts["both past L2"].count("void load_past(") == 1


@pytest.mark.compiler
@pytest.mark.parametrize(("name", "shapes"), [("map, scalar (1:5)", ("chosen", "both past L2")), ("loss, mean of 134 M", ("chosen",))])
def test_a_shape_is_right_when_it_is_small(name: str, shapes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    case = streams.CASES[name]
    monkeypatch.setitem(streams.CASES, name, replace(case, shapes={shape: case.shapes[shape] for shape in shapes}))
    rows = list(streams.dry_rows(name))
    assert [row["shape"] for row in rows] == list(shapes) and all(row["difference"] < 1e-6 for row in rows)

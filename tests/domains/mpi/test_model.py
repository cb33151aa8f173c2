"""The measured model: between points, beyond them, ties, thresholds, its file, and a real measurement of a library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreters import environment

from warpwright.domains.mpi import model, plot
from warpwright.domains.mpi.model import Model, Point, Time
from warpwright.errors import UsageError


def point(method: str, size: int, block: int, us: float) -> Point:
    return Point(method, size, block, Time(us * 0.9, us, us * 1.1))


def machine() -> Model:
    """Return a machine whose library takes 4 ns a block and 1 us more, and whose packing takes half of that and 2 us more."""
    points = []
    for size in (256, 4096, 65536, 1 << 20):
        for block in (8, 64, 512):
            points += [point("library", size, block, 1 + size / block * 4e-3), point("packed", size, block, 2 + size / block * 2e-3)]
    return Model(points)


def test_a_measured_point_is_itself_and_between_points_lies_between() -> None:
    times = machine().predict(4096, 64)
    assert times["library"].us == pytest.approx(1 + 0.256) and times["packed"].us == pytest.approx(2 + 0.128)
    between = machine().predict(16384, 64)["library"].us
    assert 1.256 < between < 1 + 1024 * 4e-3


@given(st.integers(64, 1 << 24), st.integers(1, 4096))
def test_more_bytes_never_take_less(size: int, block: int) -> None:
    fewer, more = machine().predict(size, block), machine().predict(size * 2, block)
    assert all(fewer[method].us <= more[method].us * (1 + 1e-9) for method in model.METHODS)


def test_a_tie_goes_to_the_library() -> None:
    assert machine().chosen(1 << 20, 8) == "packed" and machine().chosen(256, 8) == "library"
    same = Model([point(method, 4096, 64, 5) for method in model.METHODS])
    assert same.chosen(4096, 64) == "library"


def test_the_shims_table_is_of_both_kinds_of_time() -> None:
    assert machine().table() is None  # measured before there were trials
    points = [point(method, 4096, 64, us) for method, us in (("library", 8), ("packed", 4), ("library alone", 3), ("packed alone", 1))]
    table = Model(points).table()
    assert table is not None and len(table.split()) == 4 * 15 * 11
    rows = [" ".join(table.split()[at : at + 4]) for at in range(0, 4 * 15 * 11, 4)]
    assert rows[:44] == ["7.2 3.6 2.7 0.9"] * 44 and rows[44] == "14.4 7.2 5.4 1.8" and rows[-1] == "1.475e+04 7373 5530 1843"


def test_the_file_keeps_machines_apart(tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    model.keep("one", [point("library", 64, 8, 1)], "now", file)
    model.keep("two", [point("library", 64, 8, 7)], "now", file)
    read = Model.read("one", file)
    assert read is not None and read.predict(64, 8)["library"].us == 1 and Model.read("three", file) is None
    file.write_text("[]")
    with pytest.raises(UsageError, match="measure again"):
        Model.read("one", file)


def test_a_picture_shades_where_packing_is_chosen() -> None:
    points = [point("library", 1 << at, block, 2.0**at / block) for at in (10, 12, 14) for block in (8, 64)]
    points += [point("packed", 1 << at, block, 2.0**at / 20) for at in (10, 12, 14) for block in (8, 64)]
    drawn = ElementTree.fromstring(plot.picture(points, "a <library>"))
    names = [one.get("class") for one in drawn.iter()]
    assert names.count("chosen") == 2 and names.count("packed") == names.count("library") == 2  # in blocks of 8 alone, between three sizes
    assert [one.text for one in drawn.iter() if (one.text or "").startswith("blocks of")] == ["blocks of 8 bytes", "blocks of 64 bytes"]


def test_reasons() -> None:
    packed = model.Trials(packs=True)
    assert model.explanation(None, 4096, 8, packed)["why"] == model.NOT_MEASURED
    told = model.explanation(machine(), 1 << 20, 8, packed)
    assert (told["method"], told["fastest"]) == ("packed", "packed") and set(told["us"]) == set(model.METHODS)
    corrected = model.explanation(machine(), 1 << 20, 8, model.Trials(packs=False, uses=40, trials=3, library_us=5, packed_us=9))
    assert corrected["method"] == "library" and "correct" in corrected["why"] and corrected["here"]["us"] == {"library": 5, "packed": 9}


EXPLAIN = """
import warpwright.mpi
from mpi4py import MPI
column = MPI.DOUBLE.Create_vector(4096, 1, 64).Commit()
told = warpwright.mpi.explain(column, 1, 0)
assert told["bytes"] == 32768 and told["block"] == 8 and set(told["us"]) == {"library", "packed"}, told
assert warpwright.mpi.predict(column)["packed"] > 0
assert "nothing" in warpwright.mpi.explain(column, 1, MPI.PROC_NULL)["why"]
assert "contiguous" in warpwright.mpi.explain(MPI.DOUBLE, 100)["why"]
print("told")
"""


@pytest.mark.slow
@pytest.mark.compiler
def test_a_library_is_measured_and_explained(python: str, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    chosen = environment(WARPWRIGHT_MPI_MODEL=str(file))
    verb = [sys.executable, "-m", "warpwright", "mpi", "measure", "--python", python, "--json", "--plot", str(tmp_path / "model.svg")]
    process = subprocess.run(verb, capture_output=True, text=True, timeout=150, env=chosen)
    assert process.returncode == 0, process.stderr
    told = json.loads(process.stdout)
    assert {row["method"] for row in told["points"]} == {*model.METHODS, *model.ALONE} and len(json.loads(file.read_text())) == 1
    assert (tmp_path / "model.svg").read_text().startswith("<svg")
    process = subprocess.run([python, "-c", EXPLAIN], capture_output=True, text=True, timeout=60, env=chosen)
    assert process.stdout == "told\n", process.stderr

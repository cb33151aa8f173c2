"""The totals of flags and schedules: what is not proven counts as nothing, a schedule under other flags counts with them."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.sass.against_simulator import ranks
from benchmarks.sass.totals import judged, kinds, totals


def final(speedup: float, same: float = 1.001, differ: int = 0) -> dict[str, Any]:
    return {"speedup": speedup, "interval": [speedup - 0.002, speedup + 0.002], "same_interval": [0.999, same], "differ": differ, "original_us": 10.0}


def kernel(name: str, **more: Any) -> dict[str, Any]:
    return {"row": "kernel", "kernel": name, "original_us": 10.0, **more}


ROWS = [
    kernel("a", final=final(1.02)),
    kernel("a__flags", final=final(1.01), flags={"name": "unroll 4", **final(1.10)}, both=final(1.11)),
    kernel("b", final=final(1.002)),  # within what the original shows against itself
    kernel("b__flags", flags={"name": "-O1", **final(1.05)}),
    kernel("c", final=final(1.30, differ=1)),
    kernel("d", final=final(1.08)),
    kernel("d__flags", flags={"name": "-O1", **final(1.04)}, final=final(1.02), both=final(1.09)),
]


def test_totals() -> None:
    *rows, mean = totals(ROWS)
    assert [(row["kernel"], row["total %"].split()[0]) for row in rows] == [("a", "+11.00"), ("b", "+5.00"), ("c", "none"), ("d", "+9.00")]
    assert [row["schedule alone %"].split()[0] for row in rows] == ["+2.00", "none", "none", "+8.00"]
    assert rows[0]["schedule under flags, both %"].startswith("+11.00") and rows[1]["schedule under flags, both %"] == ""
    assert mean["total %"] == f"{100 * ((1.11 * 1.05 * 1.09) ** 0.25 - 1):+.2f}" and mean["kernel"] == "geometric mean of 4"


def test_hints_stand_apart_and_the_best_of_several_searches_counts() -> None:
    hinted = kernel("a__as", final=final(1.5), apart={"without hints": final(1.06), "cold": final(0.98)})
    unproven = kernel("a", final=final(1.2), apart={"without hints": final(1.001)})
    variants = {"row": "variants", "kernel": "a", "fastest": "-O1", "epochs": {"-O1": {**final(1.3), "name": "-O1"}}}
    row, _ = totals([kernel("a", final=final(1.02)), hinted, unproven, variants])
    names = ("schedule alone %", "with hints %", "flags alone %", "total %")
    assert [row[name].split()[0] for name in names] == ["+6.00", "+50.00", "+30.00", "+50.00"]
    assert row["flags"] == "-O1" and row["the same, cold %"] == "-2.00 (-2.20 to -1.80)"


def test_what_is_judged_warm_and_cold() -> None:
    cold, lost = {"cold": [1.02, 1.01, 1.03]}, {"cold": [0.98, 0.97, 0.99]}
    replayed = {"table": "replayed", "kernel": "a__as", "kept": True, "refused because": "+2 %; without hints: accepted", "final": final(1.05) | cold}
    again = kernel("a", final=final(1.04) | cold, actions=["move"], refused=["cold"])
    row, other, mean = judged([replayed, again, kernel("b", final=final(1.3) | lost, refused=["cold", "cold"])])
    assert (row["judgements"], row["kept"], row["best kept"], row["warm %"].split()[0]) == (4, 2, "an earlier run's", "+5.00")
    assert row["cold %"] == "+2.00 (+1.00 to +3.00)"
    assert (other["judgements"], other["kept"], other["best kept"], other["warm %"]) == (2, 0, "none", "none")
    assert mean["kept"] == 1 and mean["warm %"] == f"{100 * (1.05**0.5 - 1):+.2f}"


def test_kinds_of_edits() -> None:
    rows = [
        {"row": "edits", "kernel": "a", "kind": "move", "tried": 3, "failed": 0, "best_gain": 1.01, "median_gain": 0.99},
        {"row": "edits", "kernel": "b__flags", "kind": "move", "tried": 4, "failed": 1, "best_gain": 1.02, "median_gain": 0.97},
    ]
    [row] = kinds(rows)
    assert (row["tried"], row["failed"], row["best steps %"]) == (7, 1, "+2.00 b (flags), +1.00 a")
    assert row["median step %"] == "-2.00"


def test_ranks_of_equal_values_are_equal() -> None:
    assert ranks([3.0, 1.0, 3.0]) == pytest.approx([1.5, 0.0, 1.5])

"""A draw of KernelBench tasks: each level comes as far as the others, and a seed gives one order."""

from __future__ import annotations

from benchmarks.kernelbench.run import levels_in_turn

FILES = [(f"/kb/level{level}/{number}_Task.py", None) for level, count in ((1, 9), (2, 5), (3, 2)) for number in range(count)]


def test_levels_come_in_turn() -> None:
    order = levels_in_turn(FILES, 5)
    assert sorted(order) == sorted(FILES)
    assert [path.split("/")[2][-1] for path, _ in order] == list("123123121212") + list("1111")


def test_a_seed_gives_one_order() -> None:
    assert levels_in_turn(FILES, 5) == levels_in_turn(FILES, 5) != levels_in_turn(FILES, 6)

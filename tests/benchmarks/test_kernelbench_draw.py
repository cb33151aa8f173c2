"""A draw of KernelBench tasks: each level comes as far as the others, and a seed gives one order."""

from __future__ import annotations

from benchmarks.kernelbench import levels
from benchmarks.kernelbench.run import levels_in_turn

FILES = [(f"/kb/level{level}/{number}_Task.py", None) for level, count in ((1, 9), (2, 5), (3, 2)) for number in range(count)]


def test_levels_come_in_turn() -> None:
    order = levels_in_turn(FILES, 5)
    assert sorted(order) == sorted(FILES)
    assert [path.split("/")[2][-1] for path, _ in order] == list("123123121212") + list("1111")


def test_a_seed_gives_one_order() -> None:
    assert levels_in_turn(FILES, 5) == levels_in_turn(FILES, 5) != levels_in_turn(FILES, 6)


def test_levels_count_the_same_in_the_mean() -> None:
    def line(level: int, number: int, speedup: float, status: str = "ok") -> dict[str, object]:
        about = {"status": status, "reason": "why", "verdict": "FASTER" if speedup > 1 else "SAME"}
        return {"task": f"level{level}_{number}_X", **about, "speedup": {"best": speedup, "eager": speedup}}

    shown = levels.view([line(1, 1, 4.0), line(1, 2, 4.0), line(1, 3, 4.0), line(2, 1, 1.0), line(2, 2, 9.0, "unscored"), line(2, 3, 9.0, "wrong")])
    assert "| 1 | 3 | 3 | 3 | 0 | 4.00x [4.00, 4.00] | 4.00x [4.00, 4.00] |" in shown
    assert "against the best baseline: 2.00x [2.00, 2.00] over 5 tasks" in shown  # a wrong program keeps a baseline
    assert "level2_2_X: why" in shown

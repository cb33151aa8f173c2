"""The evaluator's word on what the probe found: which programs are judged, and what is said of the searches."""

from __future__ import annotations

import queue
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from toy_space import GAIN, STEPS, program

from benchmarks.policy.live import judged, judged_table
from warpwright.base import Candidate
from warpwright.learn.policy.recorded import record_of
from warpwright.space import Space


class Toy:
    """An evaluator that refuses what has `tile`, and says of the rest what the toy space does."""

    def __init__(self) -> None:
        self.asked: list[Candidate] = []

    def __enter__(self) -> Toy:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def evaluate(self, candidates: list[Candidate]) -> Any:
        for one in candidates:
            self.asked.append(one)
            speedup = 1.0
            for action in one.actions:
                speedup *= GAIN[action.technique]
            yield record_of("t", one.actions, 0.0 if any(action.technique == "compile" for action in one.actions) else speedup)


def space() -> Space[Any]:
    return Space(frozenset(), STEPS, lambda ir, actions: program(ir, actions))


def evaluation(search: str, recipe: str, speedup: float, number: int = 1, of: int = 16, seed: int = 0, told: str = "ok") -> dict[str, Any]:
    shown = {"row": "evaluation", "task": "t", "search": search, "seed": seed, "of": of, "number": number}
    return {**shown, "told": told, "speedup": speedup, "recipe": recipe}


def names() -> list[str]:
    """Return the toy's actions as they print, those that are legal at the start."""
    return [str(action) for action in space().actions(frozenset())]


def test_the_best_of_the_first_run_is_judged_and_the_next_where_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    good, refused = next(name for name in names() if "compile" not in name), next(name for name in names() if "compile" in name)
    lines = [
        evaluation("policy", refused, 3.0), evaluation("policy", good, 2.0, 2), evaluation("policy", good, 9.0, 1, seed=1),
        evaluation("random", good, 2.0), evaluation("random", refused, 4.0, 2, told="error 3"), evaluation("evolve", good, 2.0, 200, 256),
    ]  # fmt: skip
    found = judged.ranked(lines, "t")
    assert found == {"policy": [(refused, 3.0), (good, 2.0)], "random": [(good, 2.0)], judged.LONGER: [(good, 2.0)]}
    toy, put = Toy(), queue.Queue[dict[str, Any]]()
    monkeypatch.setattr(judged, "opened", lambda file, options: (space(), toy))
    todo: Any = queue.Queue()
    todo.put("another task")
    judged.one_task(Path("t.py"), found, todo, put, SimpleNamespace(live=True), time.monotonic() + 60)  # type: ignore[arg-type]
    rows = [put.get() for _ in range(put.qsize())]
    said = [(row["search"], row["status"]) for row in rows if row["row"] == "judged"]
    assert said == [(judged.LONGER, "ok"), ("policy", "wrong"), ("policy", "ok"), ("random", "ok")] and rows[-1]["row"] == "judged all"
    assert len(toy.asked) == 2  # each program once, whoever found it
    [task] = [row for row in judged_table.tables(rows) if row.get("table") == "judged-tasks"]
    assert task["policy, best of 16"] == task["random, best of 16"] == task["evolve's longer run"] != "1.00x"
    [agreement] = [row for row in judged_table.tables(rows) if row.get("table") == "judged-agreement"]
    assert (agreement["programs"], agreement["passed"]) == (2, 1)
    assert [row["recipe"] for row in judged_table.tables(rows) if row.get("table") == "judged-refused"] == [refused]


def test_answers_of_the_evaluator_lead_a_search() -> None:
    toy = Toy()
    bench = judged.Judged(space(), toy, time.monotonic())
    good, refused = next(name for name in names() if "compile" not in name), next(name for name in names() if "compile" in name)
    assert bench.measured(())[1:] == ("ok", 1.0) and not toy.asked
    assert bench.measured(judged.parsed(good))[1] == "ok" and bench.measured(judged.parsed(refused))[1:] == ("wrong: as recorded", 0.0)


def test_a_task_without_a_score_is_left_out_and_a_live_run_counts_where_it_ended() -> None:
    shown = {"task": "t", "recipe": "a", "probe": 2.0, "check": "", "reason": "constant"}
    lines = [{"row": "judged", **shown, "search": "policy", "status": "unscored", "speedup": 0.0}, {"row": "judged all", "task": "t"}]
    assert list(judged_table.tables(lines))[-1] == {"row": "judged conditions", "tasks": 0, "left out": {"t": "no score: constant"}}
    ok = {"row": "judged", **shown, "search": "policy", "status": "ok", "speedup": 2.0}
    answered = {"row": "evaluation", "task": "t", "speedup": 3.0}
    lines = [ok, {"row": "judged all", "task": "t"}, answered, {"row": "run", "task": "t", "stopped": "time"}]
    assert judged_table.LIVE not in judged_table.values_of(lines, "t")
    lines[-1] = {**lines[-1], "stopped": "evaluations"}
    assert judged_table.values_of(lines, "t") == {"policy": 2.0, judged_table.LIVE: 3.0}

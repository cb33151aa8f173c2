"""Tasks answered by the evaluator: each recipe once, failures are 0, what strikes is measured again and the lower counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stand_in import StandIn

from warpwright import loop
from warpwright.archive import Archive
from warpwright.base import Budget, Task
from warpwright.learn.policy.live import LiveTask
from warpwright.run import Settings

EXAMPLE = Path(__file__).parents[2] / "examples" / "linear_sum_task.py"


def test_recipes_are_answered_by_the_evaluator_once(tmp_path: Path) -> None:
    opened: list[StandIn] = []

    def evaluators(settings: Settings, task: Task) -> StandIn:
        opened.append(StandIn(task, seconds=0.8 if len(opened) % 2 == 0 else 1.2))
        return opened[-1]

    with Archive(tmp_path / "a.db") as archive:
        live = LiveTask(EXAMPLE, Settings(baselines=("eager",)), archive, evaluators)
        first = live.space.actions(live.space.start)[0]
        longer = next(action for action in live.space.actions(live.space.replay([first])))
        recipes = [(first,), (first, longer), (first,)]
        said = live.answers(recipes)
        assert said[0] == said[2] and said[1] > 0
        count = [one.evaluated for one in opened]
        assert live.answers(recipes) == said and [one.evaluated for one in opened] == count
        assert said[0] == 2 / 1.2, "measured again, as it is above twice the best so far; the lower counts"
        again = LiveTask(EXAMPLE, Settings(baselines=("eager",)), archive, evaluators)
        assert set(again.speedups) >= {(first,), (first, longer)}, "the archive knows what was measured"


def test_what_does_not_pass_is_answered_with_nothing(tmp_path: Path) -> None:
    with Archive(tmp_path / "a.db") as archive:
        live = LiveTask(EXAMPLE, Settings(baselines=("eager",)), archive, lambda settings, task: StandIn(task, status="wrong"))
        assert live.answers([(live.space.actions(live.space.start)[0],)]) == [0.0]


def test_what_the_loop_did_not_come_to_is_measured_when_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    optimize, budgets = loop.optimize, []

    def cut(task: Any, space: Any, evaluator: Any, search: Any, budget: Budget, archive: Any) -> Any:
        budgets.append(budget)
        return optimize(task, space, evaluator, search, Budget(None, 1) if len(budgets) == 1 else budget, archive)

    monkeypatch.setattr(loop, "optimize", cut)
    with Archive(tmp_path / "a.db") as archive:
        live = LiveTask(EXAMPLE, Settings(baselines=("eager",)), archive, lambda settings, task: StandIn(task, seconds=1.5))
        recipes = [(action,) for action in live.space.actions(live.space.start)[:2]]
        live.answers(recipes)
        assert recipes[0] in live.speedups and recipes[1] not in live.speedups
        assert min(live.answers(recipes)) > 1 and budgets == [Budget(None)] * 2

"""Tasks answered by the evaluator: each recipe once, failures are 0, what strikes is measured again and the lower counts."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from stand_in import StandIn

from warpwright import loop
from warpwright.archive import Archive
from warpwright.base import Action, Budget, Task
from warpwright.errors import ServerError
from warpwright.learn.policy import stages
from warpwright.learn.policy.live import LiveTask
from warpwright.run import Settings
from warpwright.server import Service
from warpwright.server.verbs import Verbs

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


class Served(Verbs):
    """A service that is asked by several threads, and answers no recipe before `together` tasks have asked."""

    def __init__(self, together: int) -> None:
        self.asked: list[tuple[str, tuple[str, ...], bool]] = []
        self.waiting = Barrier(together)

    def ask(self, **fields: Any) -> dict[str, Any]:
        assert fields["verb"] == "evaluate" and fields["baselines"] == ["eager"]
        actions = tuple(fields["candidate"]["actions"])
        if not any(path == fields["task"] for path, _, _ in self.asked):
            self.asked.append((fields["task"], actions, fields["again"]))
            self.waiting.wait(30)
        else:
            self.asked.append((fields["task"], actions, fields["again"]))
        if "identity" in actions[0]:
            raise ServerError("gone", "the server is shutting down")
        return {"status": "ok", "speedup": {"best": 1.0, "eager": 1.5 if fields["again"] else 4.0}}


def test_a_service_answers_several_tasks_at_once_and_what_strikes_again(tmp_path: Path) -> None:
    other = tmp_path / "other_task.py"
    other.write_text(EXAMPLE.read_text())
    service = Served(2)
    with Archive(tmp_path / "a.db") as archive:
        lives = [LiveTask(path, Settings(baselines=("eager",)), archive, service=service) for path in (EXAMPLE, other)]
        recipe = (lives[0].space.actions(lives[0].space.start)[0],)
        assert stages._answers([lives[0], lives[1], lives[0]], [recipe] * 3, at_once=2) == [1.5] * 3
        again = [one for _, _, one in service.asked]
        assert again.count(False) == again.count(True) == 2, "each recipe once, and once more for its speed-up above 3"
        gone = (Action("identity"),)
        assert lives[0].answers([gone]) == [0.0] and gone not in lives[0].speedups, "asked for again the next time"


@pytest.mark.slow
def test_a_resident_service_answers_a_trainings_tasks(tmp_path: Path) -> None:
    """The real one: its records come into the archive, from which a training that was killed goes on."""
    with Archive(tmp_path / "a.db") as archive, Service(tmp_path / "service", jobs=2, lanes=2, archive=archive) as service:
        settings = Settings(baselines=("eager",), timing_seconds=0.5)
        live = LiveTask(EXAMPLE, settings, archive, service=service.session())
        recipes = [(action,) for action in live.space.actions(live.space.start) if action.technique != "compile"][:2]
        said = live.answers(recipes)
        assert max(said) > 0
        assert set(LiveTask(EXAMPLE, settings, archive).speedups) >= set(recipes)

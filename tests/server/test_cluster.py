"""Evaluators on a Ray cluster of this machine: a task stays with one, several answer at once, and one that dies costs a second asking."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from example_evaluators import Obeying, Stillborn

from warpwright.archive import Archive
from warpwright.errors import MissingExtra, ServerError, UsageError
from warpwright.learn.policy.live import LiveTask
from warpwright.run import Settings
from warpwright.server.cluster import Evaluator, Evaluators

EXAMPLE = Path(__file__).parents[2] / "examples" / "linear_sum_task.py"


@pytest.mark.skipif(find_spec("ray") is not None, reason="ray is installed")
def test_ray_is_an_extra_of_evaluators_too() -> None:
    with pytest.raises(MissingExtra, match=r"pip install .*\[ray\]"):
        Evaluators(1)


@pytest.fixture(scope="module")
def ray() -> Any:
    found = pytest.importorskip("ray", reason="ray is not installed: pip install 'warpwright[ray]'")
    found.init(num_cpus=2, log_to_driver=False, include_dashboard=False, object_store_memory=80 << 20)
    yield found
    found.shutdown()


@pytest.mark.slow
def test_several_evaluators_answer_at_once_and_a_task_stays_with_one(ray: Any) -> None:
    with Evaluators(2, kind=Obeying) as evaluators, ThreadPoolExecutor(4) as threads:
        assert evaluators.nodes == ["here", "here"]
        tasks = ["a", "b", "a", "b"]
        answers = list(threads.map(lambda task: evaluators.ask(verb="evaluate", task=task, seconds=1.0), tasks))
        pids = [answer["pid"] for answer in answers]
        assert pids[0] == pids[2] != pids[1] == pids[3]
        (one, other), *rest = ([answer["at"] for answer in answers if answer["pid"] == pid] for pid in pids[:2])
        assert any(begin < end_of_other and begin_of_other < end for begin, end in (one, other) for begin_of_other, end_of_other in rest[0])
        with pytest.raises(ServerError, match="a fault"):
            evaluators.ask(verb="evaluate", task="a", refuse=True)
        assert not evaluators.deaths


@pytest.mark.slow
def test_a_dead_evaluator_is_noted_and_its_task_asked_anew(ray: Any, tmp_path: Path) -> None:
    with Evaluators(2, kind=Obeying) as evaluators, ThreadPoolExecutor(3) as threads:
        before = {task: evaluators.ask(verb="evaluate", task=task)["pid"] for task in ("a", "b")}
        mark = str(tmp_path / "died")
        asked = [{"task": "a", "die_unless": mark}, {"task": "a"}, {"task": "b"}]
        pids = [answer["pid"] for answer in threads.map(lambda one: evaluators.ask(verb="evaluate", **one), asked)]
        assert pids[0] != before["a"] and pids[2] == before["b"]
        assert [(line["evaluator"], line["task"]) for line in evaluators.deaths] == [(0, "a")]
        with pytest.raises(ServerError, match="two evaluators died"):
            evaluators.ask(verb="evaluate", task="a", always_die=True)
        assert len(evaluators.deaths) == 3 and evaluators.ask(verb="evaluate", task="a")["pid"]  # and there is one again
    with pytest.raises(UsageError, match="1 to 2 evaluators"):
        Evaluators(3, kind=Obeying)
    with pytest.raises(ServerError, match="no GPU here"):
        Evaluators(1, kind=Stillborn)


@pytest.mark.slow
def test_the_real_one_answers_a_trainings_task_and_its_records_come_back(ray: Any, tmp_path: Path) -> None:
    settings = Settings(baselines=("eager",), timing_seconds=0.5)
    with Archive(tmp_path / "a.db") as archive, Evaluators(1, archive, Evaluator) as evaluators:
        live = LiveTask(EXAMPLE, settings, archive, service=evaluators)
        recipes = [(action,) for action in live.space.actions(live.space.start) if action.technique != "compile"][:2]
        assert max(live.answers(recipes)) > 0 and not evaluators.deaths
        assert set(LiveTask(EXAMPLE, settings, archive).speedups) >= set(recipes)

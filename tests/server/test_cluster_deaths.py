"""What a cluster's evaluators do when one dies, does not come up or is told nonsense, on a stand-in for Ray."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from warpwright.errors import ServerError, UsageError
from warpwright.jobs import ray as ray_jobs
from warpwright.server import cluster


class RayError(Exception):
    """Of Ray."""


class RayActorError(RayError):
    """An actor has died, or is out of reach."""


class GetTimeoutError(RayError, TimeoutError):
    """An answer did not come in time."""


class Actor:
    """An evaluator. `ask`: what it does when it is asked."""

    def __init__(self, ask: Callable[[Any], Any], comes_up: bool = True) -> None:
        self.killed = False

        def node() -> str:
            if not comes_up:
                raise GetTimeoutError("no room")
            return "here"

        steps = {"ask": ask, "node": node, "close": lambda: None}
        for name, step in steps.items():
            setattr(self, name, SimpleNamespace(remote=lambda *of, step=step: lambda: step(*of)))


def answers(fields: Any) -> Any:
    return {"result": {"task": fields["task"]}}, []


def out_of_reach(fields: Any) -> Any:
    raise RayActorError("the actor is temporarily unavailable")


def faulty(fields: Any) -> Any:
    raise RayError("KeyError: 'speedup'")


@pytest.fixture
def evaluators(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a function that makes one evaluator of these actors, the later ones in the place of dead ones."""
    ray: Any = ModuleType("ray")
    ray.__spec__ = ModuleSpec("ray", None)
    ray.exceptions = SimpleNamespace(RayError=RayError, RayActorError=RayActorError, GetTimeoutError=GetTimeoutError)
    ray.is_initialized, ray.cluster_resources = lambda: True, lambda: {"CPU": 2.0}
    ray.get = lambda asked, timeout=None: [one() for one in asked] if isinstance(asked, list) else asked()
    ray.wait = lambda *_, **__: None
    ray.kill = lambda actor: setattr(actor, "killed", True)
    monkeypatch.setitem(sys.modules, "ray", ray)

    def make(*actors: Actor) -> cluster.Evaluators:
        left = iter(actors)
        ray.remote = lambda kind: SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda: next(left)))
        return cluster.Evaluators(1)

    yield make


def test_one_that_is_out_of_reach_is_ended_before_another_takes_its_place(evaluators: Any) -> None:
    """It may run on, and keep its GPU."""
    lost, new = Actor(out_of_reach), Actor(answers)
    asked = evaluators(lost, new)
    assert asked.ask(verb="evaluate", task="a") == {"task": "a"}
    assert lost.killed and not new.killed and len(asked.deaths) == 1


def test_where_there_is_no_room_for_another_one_nobody_waits_for_ever(evaluators: Any) -> None:
    asked = evaluators(Actor(out_of_reach), Actor(answers, comes_up=False))
    for _ in range(2):
        with pytest.raises(ServerError, match="in the place of a dead one"):
            asked.ask(verb="evaluate", task="a")


def test_a_fault_of_an_evaluator_is_an_error_of_the_service(evaluators: Any) -> None:
    asked = evaluators(Actor(faulty))
    with pytest.raises(ServerError, match="a fault of the evaluator"):
        asked.ask(verb="evaluate", task="a")
    assert not asked.deaths


def test_what_names_no_task_goes_to_nobody(evaluators: Any) -> None:
    with pytest.raises(UsageError, match="names a task"):
        evaluators(Actor(answers)).status()


def test_a_record_that_is_made_between_two_answers_is_sent_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(**fields: Any) -> dict[str, Any]:
        if "verb" not in fields:
            raise UsageError("expected a verb, saw none")
        return fields

    monkeypatch.setattr(cluster, "Service", lambda *_, **__: SimpleNamespace(session=lambda: SimpleNamespace(ask=asked), close=lambda: None))
    monkeypatch.setattr(cluster, "to_json", lambda record: record)
    monkeypatch.setattr(cluster, "free_threads", lambda: None)
    one = cluster.Evaluator()
    record: Any = "a record"
    one.add(record)
    assert one.ask({"verb": "best"}) == ({"result": {"verb": "best"}}, ["a record"])
    assert one.ask({}) == ({"error": {"kind": "usage", "message": "expected a verb, saw none", "hint": ""}}, [])
    one.close()


@pytest.mark.parametrize("given", [None, "7"])
def test_a_program_has_the_threads_of_its_machine_or_of_who_asks(monkeypatch: pytest.MonkeyPatch, given: str | None) -> None:
    """Ray leaves it one."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    sent = ray_jobs.environment()
    monkeypatch.setenv("OMP_NUM_THREADS", given or "1")  # as Ray does on the node
    monkeypatch.setattr(ray_jobs, "_given", lambda: {"env_vars": sent})
    ray_jobs.free_threads()
    assert os.environ.get("OMP_NUM_THREADS") == given

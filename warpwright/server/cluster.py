"""Evaluators on a Ray cluster, with the verbs of a session: one actor each, which holds a resident service on whichever node Ray puts it.

    with Evaluators(8, archive) as evaluators:
        answer = evaluators.evaluate("/shared/softmax_task.py", ["compile()"], device="cuda")

A task's programs go to one evaluator, that of the fewest tasks when it was first asked for, so that its trusted processes stay warm and its speed-ups
are of one machine. Whoever asks waits for his own answer alone: ask from several threads. An evaluator that dies, with its node or by itself, is data
(`deaths`): another one is started in its place, and what it was asked is asked anew, once. Task files lie at the same path on all nodes; records come
back to the archive given here.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from warpwright.archive import Archive
from warpwright.base import Record, from_json, to_json
from warpwright.errors import MissingExtra, ServerError, UsageError, WarpwrightError
from warpwright.jobs.ray import environment, free_threads
from warpwright.server.protocol import error_of
from warpwright.server.service import Service
from warpwright.server.verbs import Verbs, unpacked

LANES = 8
"""Tasks that an evaluator keeps warm."""

START_SECONDS, END_SECONDS = 300.0, 20.0
"""In which an evaluator has to come up: Ray starts its process on a node, and that loads torch; and in which it has to end."""


class Evaluating(Protocol):
    """What an actor is made of."""

    def ask(self, fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the answer to a request as it goes over a wire, and the records that were made for it."""
        ...

    def node(self) -> str:
        """Return the name of the machine."""
        ...

    def close(self) -> None:
        """End what runs."""
        ...


class Evaluator:
    """One evaluator: a resident service in the actor's process, whose programs run in processes of their own."""

    def __init__(self) -> None:
        self._made: list[Record] = []
        self._folder = tempfile.TemporaryDirectory(prefix="evaluator_")
        self._service = Service(self._folder.name, lanes=LANES, archive=self)
        self._session = self._service.session()

    def add(self, record: Record) -> None:
        """Keep a record until it is sent with its answer."""
        self._made.append(record)

    def ask(self, fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Answer a request, with every record that was not sent before."""
        free_threads()
        try:
            answer = {"result": self._session.ask(**fields)}
        except ServerError as error:
            answer = {"error": error_of(error.kind, error.message, error.hint)}
        except WarpwrightError as error:  # a request that says none
            answer = {"error": error_of("usage", error.message, error.hint)}
        made, self._made = self._made, []
        return answer, [to_json(record) for record in made]

    def node(self) -> str:
        """Return the name of the machine."""
        return os.uname().nodename

    def close(self) -> None:
        """End the service and its lanes."""
        self._service.close()
        self._folder.cleanup()


class Evaluators(Verbs):
    """Evaluators on the cluster of RAY_ADDRESS, or on one that is started on this machine."""

    def __init__(self, count: int, archive: Archive | None = None, kind: type[Evaluating] = Evaluator) -> None:
        """`count`: on a cluster with GPUs one has a GPU, and all have a core. `archive`: where every record goes."""
        if importlib.util.find_spec("ray") is None:
            raise MissingExtra("ray", "ray", "evaluators on a Ray cluster")
        import ray

        if not ray.is_initialized():
            ray.init(log_to_driver=False, include_dashboard=False)
        self._ray: Any = ray
        self._archive, self._lock = archive, threading.Lock()
        self._remote = self._made_of(kind, count)
        self._actors = [self._remote.remote() for _ in range(count)]
        self._coming = [threading.Lock() for _ in range(count)]
        """Each held while its evaluator, one in the place of another, comes up."""
        self._begun: set[int] = set()
        """The numbers of those that have not come up yet."""
        self._places: dict[str, int] = {}
        """Task -> the number of its evaluator."""
        self.deaths: list[dict[str, Any]] = []
        """A line for each evaluator that died: its number, what it had been asked, why."""
        try:
            self.nodes: list[str] = ray.get([actor.node.remote() for actor in self._actors], timeout=START_SECONDS)
        except ray.exceptions.RayError as error:
            self.close()
            raise ServerError("gone", f"expected {count} evaluators to come up: {error}"[:2000], "look at Ray's log of the node") from error

    def ask(self, **fields: Any) -> dict[str, Any]:
        """Put a request to its task's evaluator; return its result, or raise ServerError."""
        if not fields.get("task"):
            raise UsageError(f"expected a request that names a task, saw {fields.get('verb')}", "each task has an evaluator of its own")
        place, errors = self._place(str(fields["task"])), self._ray.exceptions
        for _ in range(2):
            actor = self._actors[place]
            try:
                self._await(place, actor)
                answer, records = self._ray.get(actor.ask.remote(fields))
            except errors.RayActorError as error:
                self._replace(place, actor, fields, str(error))
                continue
            except errors.GetTimeoutError as error:
                why = f"expected evaluator {place} to come up in the place of a dead one within {START_SECONDS:g} s"
                raise ServerError("gone", why, "has the cluster lost a node?") from error
            except errors.RayError as error:
                raise ServerError("failed", f"a fault of the evaluator: {error}"[:2000]) from error
            for record in records if self._archive is not None else ():
                self._archive.add(from_json(Record, record))  # type: ignore[union-attr]
            return unpacked(answer)
        raise ServerError("gone", f"two evaluators died while they were asked for {fields.get('verb')}", "`deaths` says how")

    def close(self) -> None:
        """End all evaluators."""
        ended = [actor.close.remote() for actor in self._actors]
        self._ray.wait(ended, num_returns=len(ended), timeout=END_SECONDS)
        for actor in self._actors:
            self._ray.kill(actor)

    def __enter__(self) -> Evaluators:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _made_of(self, kind: type[Evaluating], count: int) -> Any:
        """Return what makes an actor; raise UsageError where the cluster has no room for so many."""
        total = self._ray.cluster_resources()
        gpus = int(total.get("GPU", 0))
        room = gpus or int(total.get("CPU", 0))
        if not 1 <= count <= room:
            raise UsageError(f"expected 1 to {room} evaluators on this cluster, saw {count}", "each takes a GPU, or a core where there is none")
        return self._ray.remote(kind).options(
            num_cpus=1, num_gpus=1 if gpus else 0, max_restarts=0, scheduling_strategy="SPREAD", runtime_env={"env_vars": environment()}
        )

    def _place(self, task: str) -> int:
        with self._lock:
            if task not in self._places:
                taken = Counter(self._places.values())
                self._places[task] = min(range(len(self._actors)), key=lambda number: taken[number])
            return self._places[task]

    def _await(self, place: int, actor: Any) -> None:
        """Wait until an evaluator that was started in the place of another has come up; a cluster that lost a node may have no room for it."""
        with self._coming[place]:
            if place in self._begun and self._actors[place] is actor:
                self.nodes[place] = self._ray.get(actor.node.remote(), timeout=START_SECONDS)
                self._begun.discard(place)

    def _replace(self, place: int, actor: Any, fields: Mapping[str, Any], why: str) -> None:
        """Note a death and start another evaluator, unless one who was waiting for the same has.

        The old one is ended: it may have been out of reach alone, and would keep what the new one needs.
        """
        with self._lock:
            if self._actors[place] is actor:
                self.deaths.append({"evaluator": place, "verb": fields.get("verb"), "task": fields.get("task"), "why": why[:500]})
                self._ray.kill(actor)
                self._actors[place] = self._remote.remote()
                self._begun.add(place)

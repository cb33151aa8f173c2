"""The verbs as methods: the same for a session in Python and for a client on a socket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright.base import Source
from warpwright.errors import ServerError


def unpacked(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the result in an answer; raise ServerError for an error."""
    if "error" in answer:
        raise ServerError(**answer["error"])
    result: dict[str, Any] = answer["result"]
    return result


def program(program: str | Source | Sequence[str] | Path | Mapping[str, Any]) -> dict[str, Any]:
    """Return a program as a request holds it: a Python text, a Source, a recipe as a list of actions, a file, or what it holds already."""
    if isinstance(program, Mapping):
        return dict(program)
    if isinstance(program, Path):
        return {"files": [[program.name, program.read_text(encoding="utf-8")]]}
    if isinstance(program, str):
        return {"files": [["candidate.py", program]]}
    if isinstance(program, Source):
        return {"files": [list(pair) for pair in program.files], "entry": program.entry, "language": program.language}
    return {"actions": list(program)}


class Verbs:
    """What can be asked. `options` are the other fields of a request: device, baselines, seconds, regime, priority, deadline, again, keep."""

    def ask(self, **fields: Any) -> dict[str, Any]:
        """Put a request; return its result, or raise ServerError."""
        raise NotImplementedError

    def evaluate(self, task: Any, candidate: str | Source | Sequence[str] | Path | Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """Verify a program and time it beside the baselines."""
        return self.ask(verb="evaluate", task=_task(task), candidate=program(candidate), **options)

    def compare(self, task: Any, first: str | Source | Path, second: str | Source | Path, **options: Any) -> dict[str, Any]:
        """Evaluate two programs, and time them beside one another if both are right."""
        return self.ask(verb="compare", task=_task(task), first=program(first), second=program(second), **options)

    def describe(self, task: Any, **options: Any) -> dict[str, Any]:
        """Say what a task is, what it is timed beside, and which actions are legal on it."""
        return self.ask(verb="describe", task=_task(task), **options)

    def explain(self, task: Any, record: str, **options: Any) -> dict[str, Any]:
        """Measure what each action of a record's recipe is worth, by taking it out."""
        return self.ask(verb="explain", task=_task(task), record=record, **options)

    def records(self, task: Any, record: str = "", **options: Any) -> dict[str, Any]:
        """Return what this session has evaluated of a task, the oldest first; with the key of a `record` it alone, and all of it."""
        return self.ask(verb="records", task=_task(task), record=record, **options)

    def best(self, task: Any, **options: Any) -> dict[str, Any]:
        """Return the best of this session's own programs."""
        return self.ask(verb="best", task=_task(task), **options)

    def status(self, **options: Any) -> dict[str, Any]:
        """Say what this session's jobs do, and how long the queue is."""
        return self.ask(verb="status", **options)

    def cancel(self, job: str) -> dict[str, Any]:
        """End a job of this session."""
        return self.ask(verb="cancel", job=job)


def _task(task: Any) -> Any:
    return str(task) if isinstance(task, Path) else task

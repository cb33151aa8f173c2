"""The domains by name. Each is a package here, whose `domain.py` has the three things that `space.Domain` asks for.

To add one, write the package and its line in DOMAINS; docs/architecture.md says what it supplies and what it gets for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from warpwright.base import Candidate, Scalar, Task
from warpwright.errors import TaskError, UsageError
from warpwright.space import Domain, Facts, Space, Telling


@dataclass(frozen=True)
class Packaged:
    """The domain of a package here, imported when it is first asked: a compiler may take seconds to load."""

    name: str

    @property
    def _domain(self) -> Any:
        return import_module(f"{__name__}.{self.name}.domain")

    def describe(self, path: Path, options: Mapping[str, Scalar]) -> Task | None:
        """Return the task that the file defines, or None."""
        task: Task | None = self._domain.describe(path, options)
        return task

    def space(self, task: Task, target: str) -> Space[Any]:
        """Return the search space of a task."""
        space: Space[Any] = self._domain.space(task, target)
        return space

    def facts(self, task: Task, program: Candidate, machine: str) -> Facts:
        """Return what the domain can say of a program without running it; nothing where it has no such door."""
        door = getattr(self._domain, "facts", None)
        if door is None:
            return Facts({}, missing=(f"the domain {self.name} says nothing of a program without running it",))
        facts: Facts = door(task, program, machine)
        return facts


NAMES = (
    "graph",
    "transpile",
    "cuda",
    "unlearnable",
    "rgnn",
    "sass",
    "mpi",
)

DOMAINS: dict[str, Domain] = {name: Packaged(name) for name in NAMES}
"""In the order in which they are asked whether a file is theirs."""


TEXTS, MOST_BYTES = (".py", ".cu", ".cuh", ".cwc", ".front", ".mpi"), 64 << 20
"""Task files that are texts, and how large one may be: each domain reads it whole, and parses it."""


def describe(path: str | Path, options: Mapping[str, Scalar] | None = None) -> Task:
    """Return the task that a file defines, by the first domain that knows the file and every option; raise TaskError when none does."""
    file = Path(path).resolve()
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise TaskError(f"expected a task file, but {file} {what}", "give the path of one file (a folder goes to `warpwright bench`)")
    if file.suffix in TEXTS and (size := file.stat().st_size) > MOST_BYTES:
        raise TaskError(f"expected a text of at most {MOST_BYTES >> 20} MB, saw {file} of {size >> 20} MB", "give the program's source")
    for domain in DOMAINS.values():
        task = domain.describe(file, options or {})
        if task is not None:
            return task
    told = f" with {', '.join(options)}" if options else ""
    raise TaskError(f"expected a task of one of the domains {', '.join(DOMAINS)}, saw {file}{told}", "see docs/cli.md for what each reads")


def space(task: Task, target: str) -> Space[Any]:
    """Return the search space of a task on a target, from its own domain; raise UsageError for a domain that is not there."""
    if task.domain not in DOMAINS:
        raise UsageError(f"expected a task of a domain that is installed, saw {task.domain!r}", f"known: {', '.join(DOMAINS)}")
    return DOMAINS[task.domain].space(task, target)


def facts(task: Task, program: Candidate, machine: str = "") -> Facts:
    """Return what the task's domain can say of a program without running it."""
    domain = DOMAINS.get(task.domain)
    if not isinstance(domain, Telling):
        return Facts({}, missing=(f"the domain {task.domain} says nothing of a program without running it",))
    return domain.facts(task, program, machine)

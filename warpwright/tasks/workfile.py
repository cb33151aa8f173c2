"""Tasks that one JSON file describes: read, recognised by its suffix, checked again before it is used, for the domains whose tasks are such files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from warpwright.base import Precision, Scalar, Task, digest
from warpwright.errors import TaskError

W = TypeVar("W")


@dataclass(frozen=True)
class WorkFile(Generic[W]):
    """How a domain's files are read."""

    domain: str
    suffix: str
    module: str
    """The domain's module, whose `reference` gives a task in KernelBench form."""
    noun: str
    """What such a file is called, with its article."""
    example: str
    parse: Callable[[dict[str, Any], Path], W]
    """Returns what the fields describe; raises TaskError."""

    def describe(self, path: Path, options: Mapping[str, Scalar]) -> Task | None:
        """Return the file's task, or None for another domain's file; the only option is `precision`."""
        if path.suffix != self.suffix or not options.keys() <= {"precision"}:
            return None
        text = self._read(path)
        self._work(text, path)
        precision: Precision = options.get("precision", "strict")  # type: ignore[assignment]
        return Task(path.stem, str(path), self.domain, precision, False, digest(text), (("reference", f"{self.module}:reference"),))

    def work(self, task: Task) -> W:
        """Return what the task's file describes; raise TaskError when it has changed since."""
        path = Path(task.path)
        text = self._read(path)
        if digest(text) != task.source_digest:
            raise TaskError(f"{path} has changed since this task was described", "start again, or restore the file")
        return self._work(text, path)

    def _read(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TaskError(f"{path} cannot be read as text: {error}", f"{self.noun} is JSON") from error

    def _work(self, text: str, path: Path) -> W:
        try:
            fields: dict[str, Any] = dict(json.loads(text))
        except (ValueError, TypeError) as error:
            raise TaskError(f"{path}: expected a JSON object, saw {text[:40]!r}: {error}", f"write {self.example}") from error
        return self.parse(fields, path)

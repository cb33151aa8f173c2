"""Finished trainings on disk, one a line: a run that was killed does not train them again."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

from warpwright.domains.unlearnable.verification.training.recipe import Outcome
from warpwright.errors import UsageError


class OutcomeStore(MutableMapping[str, Outcome]):
    """Outcomes by their training's key, in a file of JSON lines that only grows; the last line of a key counts."""

    def __init__(self, path: Path, about: str = "") -> None:
        """`about`: what the keys do not say, such as the data set and the recipe; a file that was begun for something else is refused."""
        self.path = path
        self._known: dict[str, Outcome] = {}
        lines = path.read_text().splitlines() if path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                entry: dict[str, Any] = json.loads(line)
            except ValueError:
                continue  # the last line of a run that was killed while writing it
            if "about" in entry:
                if about and entry["about"] != about:
                    raise UsageError(f"expected trainings of {about} in {path}, saw {entry['about']}", "name another --store")
                continue
            try:
                key = str(entry.pop("key"))
                self._known[key] = read(entry)
            except (KeyError, TypeError, ValueError) as error:
                raise UsageError(f"expected a finished training in line {number} of {path}, saw {line[:60]!r}", "name another --store") from error
        if about and not lines:
            self._append({"about": about})

    @property
    def parts(self) -> Path:
        """Folder beside the file for trainings under way."""
        return self.path.with_name(f"{self.path.name}.parts")

    def _append(self, entry: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+") as file:
            size = file.tell()
            if size:
                file.seek(size - 1)
                if file.read(1) != "\n":
                    file.write("\n")
            file.write(json.dumps(entry) + "\n")

    def __getitem__(self, key: str) -> Outcome:
        return self._known[key]

    def __setitem__(self, key: str, outcome: Outcome) -> None:
        self._append({"key": key, **dataclasses.asdict(outcome)})
        self._known[key] = outcome

    def __delitem__(self, key: str) -> None:
        raise UsageError("expected a store that only grows, saw a removal", f"edit {self.path}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def read(entry: dict[str, Any]) -> Outcome:
    """Return the outcome whose fields came through JSON."""
    return Outcome(**{**entry, "curve": tuple((a, b) for a, b in entry["curve"])})

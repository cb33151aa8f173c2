"""The log of a training, a line of JSON for each step; and checkpoints of which only whole ones count."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

WHOLE = "whole"
"""File that a checkpoint's folder gets when all else has been written."""


class Log:
    """Lines of one training in one file. What was logged after the checkpoint that a stage goes on from is taken back."""

    def __init__(self, path: Path, **every: Any) -> None:
        self.path, self.every = path, every

    def add(self, **values: Any) -> None:
        """Append a line."""
        kept = {name: value for name, value in values.items() if not isinstance(value, float) or math.isfinite(value)}
        with open(self.path, "a") as file:
            file.write(json.dumps({**self.every, **kept}) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        """Return what has been logged; a last line that was cut short is none."""
        if not self.path.is_file():
            return []
        lines = []
        for line in self.path.read_text().splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                continue
        return lines

    def resumed(self, folder: Path, checkpoint: Path | None) -> str | None:
        """Forget the steps of a stage after `checkpoint`; return its path as the trainers want it."""
        step = int(checkpoint.name.rpartition("-")[2]) if checkpoint else 0
        kept = [line for line in self.lines() if line.get("folder") != folder.name or line.get("step", 0) <= step]
        self.path.write_text("".join(json.dumps(line) + "\n" for line in kept))
        return str(checkpoint) if checkpoint else None


def last_whole(folder: Path) -> Path | None:
    """Return the last checkpoint of a stage's folder that was written to its end."""
    checkpoints = [one for one in folder.glob("checkpoint-*") if (one / WHOLE).is_file()]
    return max(checkpoints, key=lambda one: int(one.name.rpartition("-")[2]), default=None)


def callback(log: Log, folder: Path) -> Any:
    """Return the trainers' callback that logs each step and marks whole checkpoints."""
    from transformers import TrainerCallback

    class Keep(TrainerCallback):  # type: ignore[misc]  # Any where transformers is missing
        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **others: Any) -> None:
            log.add(folder=folder.name, step=state.global_step, **(logs or {}))

        def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            (folder / f"checkpoint-{state.global_step}" / WHOLE).touch()

    return Keep()

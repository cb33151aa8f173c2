"""Evaluators for the tests of evaluators on a cluster: they answer at once, or die as they are told."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Obeying:
    """Answers with its process; where the request names a file that is not there yet, it writes it and dies."""

    def ask(self, fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Answer a request."""
        mark = Path(fields.get("die_unless", "/"))
        if fields.get("always_die") or not mark.exists():
            mark.touch()
            os._exit(1)
        if "refuse" in fields:
            return {"error": {"kind": "failed", "message": "a fault", "hint": ""}}, []
        began = time.time()
        time.sleep(fields.get("seconds", 0.0))
        return {"result": {"pid": os.getpid(), "at": [began, time.time()], "speedup": {"eager": 2.0}, "status": "ok"}}, []

    def node(self) -> str:
        """Return a name."""
        return "here"

    def close(self) -> None:
        """End."""


class Stillborn(Obeying):
    """Does not come up."""

    def __init__(self) -> None:
        raise RuntimeError("no GPU here")

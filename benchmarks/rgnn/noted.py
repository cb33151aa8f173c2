"""A row of a check that may fail, written and shown at once."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from typing import Any, TextIO


def noted(file: TextIO, row: dict[str, Any], found: Callable[[], dict[str, Any]]) -> None:
    """Write a row with what is found; where that fails, with a note of how: one row must not end the others."""
    try:
        row |= found()
    except Exception as problem:
        traceback.print_exc()
        row["note"] = f"{type(problem).__name__}: {str(problem)[:300]}"
    print(json.dumps(row), flush=True)
    file.write(json.dumps(row) + "\n")
    file.flush()

"""`warpwright export KIND TASK`: the folders that other systems load, each with our evaluator in it. `KINDS` holds them by name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpwright.adapters.judge import Judge, Where
from warpwright.errors import UsageError
from warpwright.files import make_folder

KINDS: Mapping[str, str] = {
    "autoresearch": "a folder under git with one file to edit and a fixed bench",
    "gepa": "a script for gepa.optimize_anything",
    "harbor": "a Harbor task: instruction, environment, tests that write the reward, solution",
    "openenv": "an OpenEnv environment with its server",
    "openevolve": "a program, an evaluator and a configuration for openevolve-run",
    "shinka": "a program and an evaluate.py for ShinkaEvolve",
    "trl": "a script that trains a model with TRL",
    "verifiers": "a taskset of verifiers v1, as a package",
}
"""Each is a module of this room with `files(where, described)`: names of files -> their texts."""


def write(kind: str, where: Where, folder: str | Path) -> list[str]:
    """Write a task's folder and return its files' names. Raises UsageError for one that holds something."""
    if kind not in KINDS:
        raise UsageError(f"expected one of {', '.join(KINDS)}, saw {kind!r}")
    out = make_folder(folder)
    if any(out.iterdir()):
        raise UsageError(f"expected an empty folder, saw {out} with something in it", "name another one with --out")
    texts = _module(kind).files(where, Judge(where).describe())
    for name, text in texts.items():
        path = out / name
        make_folder(path.parent)
        path.write_text(text)
        path.chmod(0o755 if name.endswith(".sh") else 0o644)
    return sorted(texts)


def _module(kind: str) -> Any:
    return importlib.import_module(f"warpwright.adapters.{kind}")

"""Translations of files as JSON, so that kernels can be built and called on a machine without libclang (`answers --write` and `--texts`)."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from warpwright.domains import transpile

Cause = tuple[str, str]
"""Status and cause of a file that is not taken."""


def file_of(folder: Path, name: str) -> Path:
    """Return where the translation of a file of this name is."""
    return folder / (name.replace("/", "_") + ".json")


def write(folder: Path, name: str, made: transpile.Program | Cause) -> None:
    """Keep a translation, or why there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(made, transpile.Program):
        kernels = {kernel: dataclasses.asdict(info) for kernel, info in made.kernels.items()}
        kept: object = {"source": made.source, "exports": dict(made.exports), "kernels": kernels}
    else:
        kept = {"why": made}
    file_of(folder, name).write_text(json.dumps(kept))


def read(folder: Path, name: str) -> transpile.Program | Cause:
    """Return what `write` kept. Raises FileNotFoundError where it kept nothing."""
    kept = json.loads(file_of(folder, name).read_text())
    if "why" in kept:
        status, cause = kept["why"]
        return status, cause
    kernels = {
        kernel: transpile.KernelInfo(**info | {"parameters": tuple(map(tuple, info["parameters"]))}) for kernel, info in kept["kernels"].items()
    }
    return transpile.Program(name, kept["source"], kernels, kept["exports"])

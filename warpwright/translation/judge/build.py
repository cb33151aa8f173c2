"""Build a translation: as C, and where that fails as C++."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from warpwright import native
from warpwright.translation.judge import variants


@dataclass(frozen=True)
class Translation:
    """What a translator returned for an item: program text, or why there is none."""

    source: str
    """Name of the translator: a model, "compiler", "control"."""
    code: str
    language: str = "c"
    failure: str = ""


def build(translation: Translation) -> Path | str:
    """Return the library of a translation, or the compiler's first error."""
    attempts = [(variants.complete(translation.code), variants.C_FLAGS), (variants.as_cpp(translation.code), variants.CPP_FLAGS)]
    if translation.language == "cpp":
        attempts = [(translation.code, variants.CPP_FLAGS)]
    complaint = ""
    for code, flags in attempts:
        try:
            return native.build(code, flags=flags)
        except native.BuildError as error:
            complaint = complaint or _first_error(str(error))
        except subprocess.TimeoutExpired:
            complaint = complaint or "the compiler took longer than 600 s"
    return complaint


def build_variant(code: str, *flags: str) -> Path | None:
    """Return the library of a variant of the reference; None where there is none or it does not build."""
    try:
        return native.build(code, flags=(*variants.C_FLAGS, *flags)) if code else None
    except native.BuildError:
        return None


def _first_error(log: str) -> str:
    return next((" ".join(line.partition("error:")[2].split()) for line in log.splitlines() if "error:" in line), log[-200:])

"""What the C++ compiler says of a translated source, at the places of the CUDA source that `#line` gives it."""

from __future__ import annotations

import re
from pathlib import Path

from warpwright import native
from warpwright.domains.transpile.launch.library import FLAGS

_ERROR = re.compile(r"^([^:\n]+):(\d+):(\d+): (?:fatal )?error: (.*)$", re.M)


def first_error(text: str) -> tuple[str, int, int, str] | None:
    """Return the file, line, column and reason of the first error in C++ `text`; None for one that compiles."""
    words = native.syntax_errors(text, "translated.cpp", [*FLAGS, "-w"])
    if not words:
        return None
    error = _ERROR.search(words)
    if error is None:
        return "translated.cpp", 1, 1, words.strip()[-300:]
    return Path(error[1]).name if error[1].endswith("translated.cpp") else error[1], int(error[2]), int(error[3]), error[4]

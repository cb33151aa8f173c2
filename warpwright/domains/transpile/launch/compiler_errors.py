"""What the C++ compiler says of a translated source, at the places of the CUDA source that `#line` gives it."""

from __future__ import annotations

import re
from pathlib import Path

from warpwright import native
from warpwright.domains.transpile.launch.library import FLAGS

_ERROR = re.compile(r"^([^:\n]+):(\d+):(\d+): (?:fatal )?error: (.*)$", re.M)


def errors(text: str) -> list[tuple[str, int, int, str]]:
    """Return the file, line, column and reason of each error in C++ `text`; none for one that compiles."""
    words = native.syntax_errors(text, "translated.cpp", [*FLAGS, "-w"])
    if not words:
        return []
    located = [(file, int(line), int(column), reason) for file, line, column, reason in _ERROR.findall(words)]
    named = [(Path(file).name if file.endswith("translated.cpp") else file, *rest) for file, *rest in located]
    return named or [("translated.cpp", 1, 1, words.strip()[-300:])]  # type: ignore[list-item, return-value]

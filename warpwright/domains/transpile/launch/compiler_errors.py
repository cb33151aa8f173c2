"""What the C++ compiler says of a translated source, at the places of the CUDA source that `#line` gives it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from warpwright import native

_ERROR = re.compile(r"^([^:\n]+):(\d+):(\d+): (?:fatal )?error: (.*)$", re.M)


def errors(text: str) -> list[tuple[str, int, int, str]]:
    """Return the file, line, column and reason of each error in C++ `text`; none for one that compiles."""
    path, _ = native.compiler()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "translated.cpp")
        source.write_text(text)
        command = [path, "-std=c++17", "-fopenmp", "-w", "-fsyntax-only", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, errors="replace")
    if not done.returncode:
        return []
    found = [(file, int(line), int(column), reason) for file, line, column, reason in _ERROR.findall(done.stderr)]
    named = [(Path(file).name if file.endswith("translated.cpp") else file, *rest) for file, *rest in found]
    return named or [("translated.cpp", 1, 1, done.stderr.strip()[-300:])]  # type: ignore[list-item, return-value]

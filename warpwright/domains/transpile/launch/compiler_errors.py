"""What the C++ compiler says of a translated source, at the places of the CUDA source that `#line` gives it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from warpwright import native

_ERROR = re.compile(r"^([^:\n]+):(\d+):(\d+): (?:fatal )?error: (.*)$", re.M)


def first_error(text: str) -> tuple[str, int, int, str] | None:
    """Return the file, line, column and reason of the first error in C++ `text`; None for one that compiles."""
    path, _ = native.compiler()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "translated.cpp")
        source.write_text(text)
        command = [path, "-std=c++17", "-fopenmp", "-w", "-fsyntax-only", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, errors="replace")
    if not done.returncode:
        return None
    error = _ERROR.search(done.stderr)
    if error is None:
        return "translated.cpp", 1, 1, done.stderr.strip()[-300:]
    return Path(error[1]).name if error[1].endswith("translated.cpp") else error[1], int(error[2]), int(error[3]), error[4]

"""Precompiled headers: the first part of a text, where many texts share it, is parsed once by gcc and kept in the cache.

A text says so by a line that is MARK. Of a small translated kernel (gcc 12, -O1) the part above it takes 0.5 of 0.9 s of the processor's
time. The machine code stays the same. To make a header takes 1.4 s, and it has 42 MB: so it is made when a text begins so for the second
time, and only those used last are kept.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from warpwright.base import digest
from warpwright.native.kept import _ours

MARK = "// ---- the same in every program up to here ----"

KEPT = 12
"""How many precompiled headers the cache holds: one for each set of flags and each version of the text."""

_COMMENTS = re.compile(r"(?://[^\n]*\n)*")


def run_compiler(
    command: Sequence[str], more: Sequence[str], identity: str, source: Path, text: str, cache: Path
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Write the text to `source` and run `command` (a compiler and its options) on it with `more`; what stands above MARK is precompiled in `cache`.

    `more`: what does not change the meaning of a header, such as -o and -fsyntax-only. `identity`: the compiler and this CPU.
    """
    start = _COMMENTS.match(text).end()  # type: ignore[union-attr]  # matches nothing too
    head, mark, rest = text[start:].partition(MARK)
    try:
        header = _header(command, identity, head, cache) if mark else None
    except OSError:  # a cache that cannot be written to, or another process that tidies up in it
        header = None
    if header is not None:
        line = text.count("\n", 0, len(text) - len(rest)) + 2
        source.write_text(f'#include "{header}"\n#line {line} "{source}"{rest}')
        done = _run([*command, *more, str(source)])
        if not done.returncode:
            return done
    source.write_text(text)  # also after a failure: the compiler's words are about the whole text
    return _run([*command, *more, str(source)])


def _header(command: Sequence[str], identity: str, head: str, cache: Path) -> Path | None:
    """Return the header of this text that these options can use precompiled; None at the first time, and where the compiler makes none."""
    folder = cache / "headers" / digest(identity, head, *command)
    header = folder / "head.hpp"
    if header.exists():
        if not (_ours(header) and _ours(folder)):  # left from when others could write to the cache
            return None
        os.utime(folder)
        return header
    asked = folder.with_suffix(".asked")
    if not asked.exists():
        folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        asked.touch()
        return None
    if not _is_gcc(command[0]):
        return None
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        built = Path(work, "made")
        built.mkdir(mode=0o755)
        (built / "head.hpp").write_text(head)
        done = _run([*command, "-x", "c++-header", str(built / "head.hpp"), "-o", str(built / "head.hpp.gch")])
        if done.returncode:
            return None
        try:
            os.rename(built, folder)
        except OSError:  # another process was faster
            return header if header.exists() else None
    _forget_old(folder.parent)
    return header


@functools.cache
def _is_gcc(compiler: str) -> bool:
    """Say whether the compiler is gcc; clang takes a precompiled header only by another option."""
    return "Free Software Foundation" in _run([compiler, "--version"]).stdout


def _forget_old(folder: Path) -> None:
    """Remove all but the headers used last. A process that compiles with one of them compiles the whole text instead."""
    for old in sorted((path for path in folder.iterdir() if (path / "head.hpp").exists()), key=lambda path: -path.stat().st_mtime)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=600, errors="replace")

"""What libclang makes of a text behind the header that declares CUDA (stub/cuda_stub.h). The header is parsed once and kept in the cache.

Parsed each time, it and its thousand declarations took 55 of the 60 ms of the processor's time of a small kernel's translation.
"""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path
from typing import Any

from warpwright import native
from warpwright.base import digest
from warpwright.errors import MissingExtra

STUB = Path(__file__).parent / "stub" / "cuda_stub.h"

ARGUMENTS = ("-x", "cuda", "--cuda-host-only", "-nocudainc", "-nocudalib", "-nostdinc", "-std=c++17", "-Wno-everything", "-ferror-limit=0")

_INCOMPLETE = 2  # CXTranslationUnit_Incomplete: of a header
_FATAL = 4


def unit_of(text: str, name: str) -> Any:
    """Return libclang's translation unit of CUDA `text`, whose file is called `name`. Its top cursor shows the declarations of the text, and may
    show those of the header. Raises MissingExtra without libclang."""
    try:
        from clang import cindex
    except ImportError:
        raise MissingExtra("libclang", "transpile", "translating CUDA") from None
    kept = _kept()
    if kept is not None:
        try:
            made = cindex.Index.create(True).parse(name, args=[*ARGUMENTS, "-include-pch", str(kept)], unsaved_files=[(name, text)])
            if all(one.severity < _FATAL or one.location.file for one in made.diagnostics):  # a header that it cannot take is told at no place
                return made
        except cindex.TranslationUnitLoadError:
            pass
        kept.unlink(missing_ok=True)
        _kept.cache_clear()
    return cindex.Index.create().parse(name, args=[*ARGUMENTS, "-include", str(STUB)], unsaved_files=[(name, text)])


@functools.cache
def _kept() -> Path | None:
    """Return where the parsed header is kept, made if it is not there; None where it cannot be."""
    from clang import cindex

    try:
        about = STUB.stat()
        library = Path(cindex.conf.lib._name)  # it takes what it made itself
        size = library.stat().st_size if library.exists() else 0
        facts = (str(STUB), STUB.read_text(), str(about.st_mtime_ns), str(library), str(size), *ARGUMENTS)
        kept = native.kept_file(f"{digest(*facts)}.pch")
        if not kept.exists():
            unit = cindex.Index.create().parse(str(STUB), args=ARGUMENTS, options=_INCOMPLETE)
            with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
                made = Path(folder, "made.pch")
                unit.save(str(made))
                os.replace(made, kept)  # atomic: two that make it are no race
    except (OSError, cindex.TranslationUnitLoadError, cindex.TranslationUnitSaveError):  # a folder that cannot be written to, as an instance
        return None
    return kept

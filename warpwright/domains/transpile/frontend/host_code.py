"""What only the host needs: left out where a program is translated for its kernels alone."""

from __future__ import annotations

import re
from collections.abc import Set

from warpwright.domains.transpile.frontend.edits import Edit
from warpwright.domains.transpile.frontend.source import Source


def host_edits(source: Source) -> list[Edit]:
    """Drop functions that only the host calls: all but kernels, device functions, constexpr functions and those they, and kept types, need."""
    text = source.text
    dropped = _dropped(source)
    remaining = (text[start:end] for start, brace, end in source.pieces if (start, end) not in dropped and brace >= 0)
    kept = " ".join(piece for piece in remaining if "__global__" not in piece and "__device__" not in piece.partition("{")[0])
    while needed := [piece for piece, name in dropped.items() if name and re.search(rf"\b{name}\b", kept)]:  # by a method of a type, say
        kept = " ".join(text[start:end] for start, end in needed)
        dropped = {piece: name for piece, name in dropped.items() if piece not in needed}
    edits = [Edit(start, end, "") for start, end in dropped]
    edits += [Edit(m.start(), m.end(), "") for m in re.finditer(r"\bnamespace\s+\w+\s*=\s*(pybind11|torch|at)\b[^;]*;", text)]
    return edits


def _dropped(source: Source) -> dict[tuple[int, int], str]:
    """Return the pieces that look like the host's, with the name of a function that may stay if something kept calls it."""
    text = source.text
    dropped: dict[tuple[int, int], str] = {}
    for start, brace, end in source.pieces:
        head = text[start : brace if brace >= 0 else end]
        bare = re.sub(r"/\*.*?\*/|//[^\n]*", "", head, flags=re.S)
        if "__global__" in bare or "__device__" in bare or "__constant__" in bare or "constexpr" in bare or "__shared__" in bare:
            continue
        if is_type(bare) or (_ALIAS.match(bare) and not _PYTHON.search(bare)) or (brace < 0 and not _mentions_framework(text[start:end])):
            continue
        body = text[start:end]
        if "(" in bare and brace >= 0 and not _is_host_only(body):
            continue
        name = re.search(r"(\w+)\s*\(", bare) if brace >= 0 and not _PYTHON.search(body) else None
        dropped[start, end] = name[1] if name and name[1] != "main" else ""
    return dropped


_PYTHON = re.compile(r"\b(torch|at|c10|py|pybind11)\s*::|\bPYBIND11_MODULE\b|\bTORCH_LIBRARY\b|\bTensor\b")
"""What cannot stay in any case: the headers of torch are not read."""

_FRAMEWORK = re.compile(
    r"\b(torch|at|c10|py|pybind11)\s*::|\bcuda[A-Z]\w+\(|\bcuda\w+_t\b|\b(cublas|cudnn|cufft|curand)\w*|\bPYBIND11_MODULE\b|\bTORCH_LIBRARY\b|\bpybind11\b|namespace torch\b|\bTensor\b"  # noqa: E501
)
"""Words of host frameworks: what mentions them is host code."""


_ALIAS = re.compile(r"\s*(template\s*<[^;{}]*>\s*)?(typedef|using\s+\w+\s*=)")
"""The name of a type, also of a function's."""


def is_type(head: str) -> bool:
    return bool(re.match(r"\s*(template\s*<.*>\s*)?(typedef\b|using\b|struct\b|class\b|union\b|enum\b)[^()]*$", head, re.S))


def _mentions_framework(text: str) -> bool:
    return bool(_FRAMEWORK.search(text))


def _is_host_only(text: str) -> bool:
    return (
        "<<<" in text
        or _mentions_framework(text)
        or bool(re.search(r"\bmain\s*\(|\bstd::cout\b|\bfopen\s*\(|\bmalloc\s*\(|\bPYBIND11_MODULE\b", text))
    )


def drop_edits(source: Source, starts: Set[int]) -> list[Edit]:
    """Leave out the device functions that begin at these offsets (or whose template header ends just before)."""
    edits = []
    for start, _, end in source.pieces:
        if any(start <= at < end for at in starts):
            edits.append(Edit(start, end, ""))
    return edits

"""What only the host needs: left out where a program is translated for its kernels alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass

from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text.edits import Edit


def host_edits(source: Source) -> list[Edit]:
    """Drop functions that only the host calls: all but kernels, device functions, constexpr functions and those they, and kept types, need."""
    text = source.text
    dropped = _dropped(source)
    kept = [(piece.brace, text[piece.start : piece.end]) for piece in source.pieces if (piece.start, piece.end) not in dropped]
    bodies = [body if brace >= 0 else _without_name(body) for brace, body in kept]
    words = _words(bodies)
    of_host = _words(body for body in bodies if "__global__" not in body and "__device__" not in body.partition("{")[0])
    while needed := [piece for piece, one in dropped.items() if one.name and one.name in (of_host if one.host_only else words)]:
        found = _words(text[start:end] for start, end in needed)
        words, of_host = words | found, of_host | found
        for piece in needed:
            del dropped[piece]
    edits = [Edit(start, end, "") for start, end in dropped]
    edits += [Edit(m.start(), m.end(), "") for m in re.finditer(r"\bnamespace\s+\w+\s*=\s*(pybind11|torch|at)\b[^;]*;", text)]
    return edits


def _without_name(declaration: str) -> str:
    """Return a declaration without the name of the function that it may declare, which need not be defined: `T f(int);`, but `T t(size(3));`."""
    name = "" if "=" in declaration.partition("(")[0] else function_of(declaration)
    return re.sub(rf"\b{name}\b", "", declaration) if name else declaration


def _words(texts: Iterable[str]) -> set[str]:
    return set(re.findall(r"\w+", " ".join(texts)))


@dataclass(frozen=True)
class _Left:
    """A piece that is left out unless something kept names it."""

    name: str
    """Empty: it is left out in any case."""
    host_only: bool
    """It calls the runtime, say: a kernel or a device function that names it means something else."""


def _dropped(source: Source) -> dict[tuple[int, int], _Left]:
    """Return the functions of the host, and the pieces that look like the host's."""
    text = source.text
    dropped: dict[tuple[int, int], _Left] = {}
    own_tensor = re.search(r"\b(?:struct|class)\s+Tensor\b", text) is not None
    for start, brace, end in source.pieces:
        head = text[start : brace if brace >= 0 else end]
        bare = _without_comments(head)
        if "__global__" in bare or "__device__" in bare or "__constant__" in bare or "constexpr" in bare or "__shared__" in bare:
            continue
        instance = bool(_INSTANCE.match(bare)) and "(" in bare  # of a function of the host
        body = _without_comments(text[start:end])
        if own_tensor:  # CuTe's, say, and not torch's
            bare, body = (re.sub(r"(?<!::)(?<!:: )\bTensor\b", "Tensor_", one) for one in (bare, body))
        if is_type(bare) or (_ALIAS.match(bare) and not _PYTHON.search(bare)):
            continue
        if brace < 0 and not instance and not _mentions_framework(body):
            continue
        name = function_of(bare) if (brace >= 0 or instance) and not _PYTHON.search(body) else ""
        if brace >= 0 and "(" in bare and not name and not _is_host_only(body):
            continue
        if name == "operator" and not _is_host_only(body) and not _STREAM.search(body):
            continue  # what uses an operator does not name it
        dropped[start, end] = _Left("" if name == "main" else name, "(" not in bare or _is_host_only(body))
    return dropped


def function_of(head: str) -> str:
    """Return the name of the function that a head declares, also of a template or an instance of one; empty where there is none."""
    found = scan.tokens(head)
    at = 0
    while at < len(found) and found[at].text == "template" and (close := scan.angles(found, at + 1)) is not None:
        at = close + 1
    while at < len(found):
        token = found[at]
        if token.text == "operator":
            return token.text
        after = at + 1
        if after < len(found) and found[after].text == "<" and (close := scan.angles(found, after)) is not None:
            after = close + 1
        if token.kind == "word" and after < len(found) and found[after].text == "(":
            if token.text not in _NO_NAMES:
                return token.text
            after = scan.matching(found, after) + 1
        at = max(at + 1, after) if token.text in _NO_NAMES else at + 1
    return ""


_NO_NAMES = frozenset(["__attribute__", "__declspec", "__align__", "__builtin_align__", "alignas", "decltype", "noexcept", "requires", "explicit"])
"""Words that have parentheses in front of a function's name or a type's."""


_PYTHON = re.compile(r"\b(torch|at|c10|py|pybind11)\s*::|\bPYBIND11_MODULE\b|\bTORCH_LIBRARY\b|\bTensor\b")
"""What cannot stay in any case: the headers of torch are not read."""

_STREAM = re.compile(r"\b[io]?stream\b")

_FRAMEWORK = re.compile(
    r"\b(torch|at|c10|py|pybind11)\s*::|\bcuda[A-Z]\w+\(|\bcuda\w+_t\b|\b(cublas|cudnn|cufft|curand)\w*|\bPYBIND11_MODULE\b|\bTORCH_LIBRARY\b|\bpybind11\b|namespace torch\b|\bTensor\b"  # noqa: E501
)
"""Words of host frameworks: what mentions them is host code."""


_ALIAS = re.compile(r"\s*(template\s*<[^;{}]*>\s*)?(typedef|using\s+\w+\s*=)")
"""The name of a type, also of a function's."""


def is_type(head: str) -> bool:
    """Say whether a head begins a type: `struct alignas(4) S`, `struct __attribute__((packed)) S` and `struct S : B` do, `struct S f(` does not."""
    bare = scan.PARENTHESISED.sub(" ", head)
    return bool(re.match(r"\s*(template\s*<.*>\s*)?(typedef\b|using\b|struct\b|class\b|union\b|enum\b)[^()]*$", bare, re.S))


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


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
    dropped = [(start, end) for start, _, end in source.pieces if any(start <= at < end for at in starts)]
    names = {function_of(source.text[start:end].partition("{")[0]) for start, end in dropped}
    instances = [
        (start, end)
        for start, brace, end in source.pieces
        if brace < 0 and _INSTANCE.match(source.text[start:end]) and function_of(source.text[start:end]) in names
    ]
    return [Edit(start, end, "") for start, end in (*dropped, *instances)]


_INSTANCE = re.compile(r"\s*(extern\s+)?template\b(?!\s*<)")
"""An explicit instantiation."""

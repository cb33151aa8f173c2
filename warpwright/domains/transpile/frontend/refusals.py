"""Refuse what no tier translates, as far as the text shows it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from warpwright.domains.transpile.errors import Refusal
from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.source import Source

_REFUSED: Mapping[str, re.Pattern[str]] = {
    "library-call": re.compile(
        r"\b(cutlass|cute)\s*::"
        r"|\b(?!curand(_init|_uniform|_uniform4|4|_uniform_double|_normal[24]?|_normal_double|_log_normal)?\s*\("
        r"|curandState(_t|XORWOW(_t)?|MRG32k3a(_t)?|Philox4_32_10(_t)?|Sobol(32|64)(_t)?)?\b|curandDirectionVectors(32|64)_t\b)"
        r"(cublas|cudnn|cufft|curand|cusparse|cusolver)\w*"
    ),
    "tma": re.compile(r"\b(cp_async_bulk\w*|wgmma\w*|mbarrier\w*|CUtensorMap)\b|\bcuda\s*::\s*(ptx|device)\s*::"),
    "texture": re.compile(r"\b(tex\w+(Lod|Grad|gather)|surface)\b(?=\s*[<(])"),
    "dynamic-parallelism": re.compile(r"\b(cudaStreamTailLaunch|cudaGetCurrentGraphExec|cudaGetParameterBuffer\w*|cudaLaunchDevice\w*)\b"),
    "cluster": re.compile(r"\b(cluster_group|this_cluster|cluster_dims)\b"),
    "ptx": re.compile(r"\b(asm|__asm__|__asm)\b"),
}
"""What no tier translates, by code, as it looks in device code."""

_HOST_CLASS = re.compile(r"\bstd\s*::\s*(vector|string|map|set|unordered_map|unordered_set|deque|list|cout|cerr|ofstream|ifstream)\b")
"""Classes of the standard library none of whose functions is one for the device."""

_WHAT: Mapping[str, str] = {
    "library-call": "device code uses {0!r}, of a library that is not there on a CPU", "tma": "device code uses {0!r}, of Hopper's asynchronous copies",  # noqa: E501
    "texture": "device code uses {0!r}: of textures and surfaces, those of one mip level are offered, and no surface references",
    "dynamic-parallelism": "device code uses {0!r}: of launches by kernels, those that wait for nothing but their own stream are offered",
    "cluster": "device code uses {0!r}: clusters are not offered",
    "ptx": "device code has inline PTX that is not of the common kind",
}  # fmt: skip


def refuse(source: Source) -> None:
    """Raise for what no tier translates."""
    for refusal in refused_by_place(source).values():
        raise refusal


def refused_by_place(source: Source) -> dict[tuple[int, int], Refusal]:
    """Return why each piece of device code that no tier translates is refused, by its place."""
    refused: dict[tuple[int, int], Refusal] = {}
    for start, _, end in source.pieces:
        text = re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\\\.|[^\"\\\\])*\"", lambda m: re.sub(r"[^\n]", " ", m[0]), source.text[start:end], flags=re.S)
        if not re.search(r"\b__(global|device)__\b", text):
            continue
        head, brace, body = text.partition("{")
        if match := _HOST_CLASS.search(body if re.search(r"\b__(global|device)__\b", head) and "__host__" not in head else ""):
            file, line = source.place(start + len(head + brace) + match.start())
            wrong = f"expected device code, saw {match[0]}, whose functions are the host's"
            refused.setdefault((start, end), Refusal(file, line, "not-cuda", wrong, "no CUDA compiler takes it"))
        for code, pattern in _REFUSED.items():
            if match := pattern.search(text):
                file, line = source.place(start + match.start())
                refused.setdefault((start, end), Refusal(file, line, code, _WHAT[code].format(match[0]), "rewrite that part in CUDA C++"))
    return refused


def at_places(source: Source, broken: Sequence[Refusal]) -> dict[tuple[int, int], Refusal]:
    """Return the pieces in which the C++ compiler's errors are. Raises the error that is in none."""
    lines = {(start, end): (*source.place(start), source.line(end - 1)) for start, _, end in source.pieces}
    refused: dict[tuple[int, int], Refusal] = {}
    for why in broken:
        piece = next((piece for piece, (file, first, last) in lines.items() if file == why.file and first <= why.line <= last), None)
        if piece is None:
            raise why
        refused.setdefault(piece, why)
    return refused


def reached(source: Source, broken: Sequence[Refusal] = ()) -> tuple[Source, dict[str, Refusal]]:
    """Return a source for its kernels alone without those that reach what is refused or broken, and why each of these is left out.

    Raises the refusal if no kernel is left."""
    refused = refused_by_place(source) | at_places(source, broken)
    if not refused:
        return source, {}
    kernels = {kernel.start: kernel.name for kernel in source.kernels if kernel.defined}
    gone = dict(refused)
    names = {name: why for (start, end), why in gone.items() for name in _named(source, start, end)}
    pieces = [(start, end, words_of(source.text[start:end])) for start, _, end in source.pieces]
    grew = True
    while grew:
        grew = False
        for start, end, words in pieces:
            if (start, end) not in gone and (hit := next(iter(words & names.keys()), None)) is not None:
                gone[start, end] = names[hit]
                names |= dict.fromkeys(_named(source, start, end), names[hit])
                grew = True
    left_out = {name: why for (start, end), why in gone.items() for at, name in kernels.items() if start <= at < end}
    if left_out.keys() >= set(kernels.values()):
        raise next(iter(refused.values()))
    text = list(source.text)
    for start, end in gone:
        text[start:end] = re.sub(r"[^\n]", " ", source.text[start:end])
    return replace(source, text="".join(text)), left_out


def _named(source: Source, start: int, end: int) -> list[str]:
    """Return the name of the function or the class that a piece defines."""
    kernel = next((k for k in source.kernels if start <= k.start < end), None)
    if kernel is not None:
        return [kernel.name]
    head = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source.text[start:end], flags=re.S).partition("{")[0]
    head = re.sub(r"\btemplate\s*<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>", " ", head)  # `class T` there names no class
    head = scan.PARENTHESISED.sub(" ", head)  # `struct alignas(4) T` is no struct of the name alignas
    if match := re.search(r"\b(?:struct|class|union)\s+(\w+)", head.partition("(")[0]):
        return [match[1]]
    match = re.search(r"(\w+)\s*\(", head) or re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|;|$)", head)
    return [match[1]] if match else []


def words_of(text: str) -> set[str]:
    """Return the words of a text, those of its comments left out."""
    return set(re.findall(r"\w+", re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)))

"""Refuse what no tier translates, as far as the text shows it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from warpwright.domains.transpile.errors import Refusal
from warpwright.domains.transpile.frontend.source import Source

_REFUSED: Mapping[str, re.Pattern[str]] = {
    "library-call": re.compile(
        r"\b(cub|thrust|cutlass|cute)\s*::|\b(?!curand(_init|_uniform|_uniform4|4)?\s*\(|curandStatePhilox4_32_10(_t)?\b)"
        r"(cublas|cudnn|cufft|curand|cusparse|cusolver)\w*"
    ),
    "tma": re.compile(r"\b(cp_async_bulk\w*|wgmma\w*|mbarrier\w*|CUtensorMap)\b|\bcuda\s*::\s*(ptx|device)\s*::"),
    "texture": re.compile(r"\b(tex\dD(Layered|Lod|Grad|gather)\w*|texCubemap\w*|surf\dD\w*|cudaSurfaceObject_t)\b"),
    "cluster": re.compile(r"\b(cluster_group|this_cluster|cluster_dims)\b"),
    "ptx": re.compile(r"\b(asm|__asm__|__asm)\b"),
}
"""What no tier translates, by code, as it looks in device code."""

_WHAT: Mapping[str, str] = {
    "library-call": "device code uses {0!r}, of a library that is not there on a CPU", "tma": "device code uses {0!r}, of Hopper's asynchronous copies",  # noqa: E501
    "texture": "device code uses {0!r}: of textures, plain objects and references in 1 to 3 dimensions are offered",
    "cluster": "device code uses {0!r}: clusters are not offered",
    "ptx": "device code has inline PTX that is not of the common kind",
}  # fmt: skip


def refuse(source: Source) -> None:
    """Raise for what no tier translates."""
    for site in source.launches:
        if site.inside_kernel:
            file, line = source.place(site.start)
            raise Refusal(file, line, "dynamic-parallelism", f"a kernel launches {site.callee}", "launch it from the host")
    for start, _, end in source.pieces:
        text = re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\\\.|[^\"\\\\])*\"", lambda m: re.sub(r"[^\n]", " ", m[0]), source.text[start:end], flags=re.S)
        if not re.search(r"\b__(global|device)__\b", text):
            continue
        for code, pattern in _REFUSED.items():
            if match := pattern.search(text):
                file, line = source.place(start + match.start())
                raise Refusal(file, line, code, _WHAT[code].format(match[0]), "rewrite that part in CUDA C++")

"""Classes whose methods ask which thread they are, or synchronise: kernels that use one stay on fibers, since methods are not looked into."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.callees import LOOKS_AT_THREAD
from warpwright.domains.transpile.analysis.synchronisation import SYNC_CALLS
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.ir import Function

_NAME = (
    re.compile(r"\b(?:struct|class|union)\s+(?:\w+\s*\([^()]*\)\s*)*(\w+)[^;{()]*\{"),
    re.compile(r"\busing\s+(\w+)\s*="),
    re.compile(r"\btypedef\b.*\b(\w+)\s*;\s*$", re.S),
    re.compile(r"\b(\w+)\s*(?:<[^;{}()]*>)?\s*::\s*~?\w+\s*\([^;{}]*\)[^;{}]*\{"),
)
"""How a declaration names a class: its definition, another name for it, a method defined outside."""


def words_of(text: str) -> set[str]:
    """Return the words of a text, those of its comments left out."""
    return set(re.findall(r"\w+", ir.plain(text)))


def aware(source: Source, functions: frozenset[str]) -> frozenset[str]:
    """Return the names of classes that depend on the thread, themselves or by what they mention (`functions`: those that do)."""
    named: list[tuple[str, set[str]]] = []
    for start, _, end in source.pieces:
        text = source.text[start:end]
        name = next((match[1] for pattern in _NAME if (match := pattern.search(text))), None)
        if name is not None and not re.search(r"\b__global__\b", text):
            named.append((name, words_of(text)))
    names: set[str] = set()
    grew = True
    while grew:
        new = {name for name, words in named if words & (LOOKS_AT_THREAD | SYNC_CALLS | functions | names)} - names
        names |= new
        grew = bool(new)
    return frozenset(names)


_MEETING = re.compile(r"\bwmma\b|\bnvcuda\b|\bcuda\s*::\s*(?:barrier|pipeline)\b")
"""What of the runtime's, not parsed, makes threads meet: fragments of tensor cores are a warp's."""


@dataclass(frozen=True)
class Methods:
    """Where kernels meet classes that depend on the thread."""

    texts: Mapping[str, str]
    """Device function -> its text."""
    names: frozenset[str]
    """The classes."""

    @classmethod
    def of(cls, source: Source, device: Sequence[Function], impure: frozenset[str]) -> Methods:
        """Return them for a source; `impure`: device functions that depend on the thread or synchronise."""
        texts: dict[str, str] = {}
        for start, _, end in source.pieces:
            for function in device:
                if start <= function.start < end:
                    texts[function.name] = texts.get(function.name, "") + "\n" + source.text[start:end]
        return cls(texts, aware(source, impure))

    def used(self, text: str) -> str:
        """Return which of the classes a kernel's text mentions, itself or in a device function that it mentions; else nothing."""
        seen: set[str] = set()
        todo = [text]
        while todo:
            text = todo.pop()
            words = words_of(text)
            if hit := sorted(words & self.names):
                return hit[0]
            if runtime := _MEETING.search(text):
                return runtime[0]
            new = (words & self.texts.keys()) - seen
            seen |= new
            todo += [self.texts[name] for name in new]
        return ""

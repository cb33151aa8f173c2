"""Find duplicates: two pairs are the same when their texts differ in names, comments and white space only."""

from __future__ import annotations

import re

from warpwright.base import digest

_WORDS = re.compile(r"[A-Za-z_]\w*|\d[\w.]*(?:[eE][+-]?\d+f?)?|\S")
_KEYWORDS = frozenset((
    "void", "int", "float", "char", "signed", "unsigned", "const", "restrict", "__restrict__", "for", "if", "else", "return", "extern",
    "__global__", "__shared__", "__launch_bounds__", "pragma", "omp", "parallel", "simd", "collapse", "reduction", "unroll", "atomic", "GCC",
    "include", "threadIdx", "blockIdx", "blockDim", "gridDim", "x", "y", "z", "w", "float4", "reinterpret_cast", "malloc", "free", "sizeof",
))  # fmt: skip
"""Words that mean the same in every text; all others are names, apart from functions."""


def normalised(text: str, numbers: bool = True) -> str:
    """Return the text without comments and white space, its names numbered by first appearance. Without `numbers`, every number is 0."""
    bare = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    known: dict[str, str] = {}
    words = []
    for word in _WORDS.findall(bare):
        if word[0].isdigit():
            words.append(word if numbers else "0")
        elif (word[0].isalpha() or word[0] == "_") and word not in _KEYWORDS and not _is_function(word):
            words.append(known.setdefault(word, f"v{len(known)}"))
        else:
            words.append(word)
    return " ".join(words)


def _is_function(word: str) -> bool:
    return word.startswith(("atomic", "__")) or (word.endswith("f") and len(word) > 3)


def identity(cuda: str, c: str) -> str:
    """Return the key of a pair: equal for duplicates."""
    return digest(normalised(cuda), normalised(c))


def skeleton(cuda: str) -> str:
    """Return a key that is equal for pairs that differ in sizes only."""
    return digest(normalised(cuda, numbers=False))

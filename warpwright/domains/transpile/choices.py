"""How a kernel is translated, where several ways give the same answers and only a measurement tells which is faster.

    /* warpwright: rows=4 lanes=8 */ __global__ void k(...)

A comment in front of a kernel chooses; what it leaves out is chosen by the rules of thumb that each default states. A CUDA compiler reads past it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from warpwright.errors import UsageError


@dataclass(frozen=True)
class Choices:
    """The choices for one kernel. -1: by the rule."""

    tier: int = 2
    """Fastest tier to use, as an index of TIERS."""
    rows: int = -1
    """Rows of threads whose sums are in registers at once (`registers.py`): a tile's height. Rule: 2 beside four vectors, else 4."""
    vectors: int = -1
    """Vectors of a row that are in registers at once: a tile's width. Rule: at most 4, so that 8 sums and their operands fit 16 registers."""
    lanes: int = -1
    """Threads in a vector of the other loops. Rule: the compiler's."""
    unroll: int = -1
    """Times that serial loops inside a loop over threads are unrolled. Rule: the compiler's."""
    coalesce: int = -1
    """1: blocks that allow it run as one row (`flatten_blocks.py`); 0: block by block. Rule: 1."""
    recompute: int = -1
    """Values of up to so many operations are recomputed after a barrier, larger ones kept in a per-thread array. Rule: 24."""

    def text(self) -> str:
        """Return what differs from the rules, as it stands in the comment."""
        return " ".join(f"{f.name}={value}" for f in fields(self) if (value := getattr(self, f.name)) != f.default)


BY_RULE = Choices()

VALUES: dict[str, tuple[int, ...]] = {
    "tier": (0, 1, 2), "rows": (1, 2, 4, 8), "vectors": (1, 2, 4, 8), "lanes": (4, 8, 16), "unroll": (1, 2, 4, 8), "coalesce": (0, 1),
    "recompute": (0, 8, 24, 96),
}  # fmt: skip
"""What may be chosen."""

_KERNEL = re.compile(
    r"(?:/\*\s*warpwright:(?P<words>[^*]*)\*/\s*)?(?P<head>__global__\s(?:[^;{}()]|__launch_bounds__\s*\([^)]*\))*?\b(?!__launch_bounds__)(?P<name>\w+)\s*\()"
)
"""A kernel's head up to its parameters, with the comment that chooses for it."""


def parse(text: str) -> Choices:
    """Read `rows=4 lanes=8`."""
    values: dict[str, int] = {}
    for word in text.split():
        name, _, value = word.partition("=")
        if name not in VALUES or not value.isdigit() or int(value) not in VALUES[name]:
            allowed = "; ".join(f"{n}={'|'.join(map(str, v))}" for n, v in VALUES.items())
            raise UsageError(f"expected one of {allowed} in a comment `warpwright:`, saw {word!r}")
        values[name] = int(value)
    return Choices(**values)


def of_kernels(text: str) -> dict[str, Choices]:
    """Return the choices that a CUDA source makes, by kernel."""
    return {match["name"]: parse(match["words"]) for match in _KERNEL.finditer(text) if match["words"] is not None}


def kernels(text: str) -> list[str]:
    """Return the names of the kernels in `text`, CUDA or a program that holds CUDA in a string."""
    return list(dict.fromkeys(match["name"] for match in _KERNEL.finditer(text)))


def chosen(text: str, kernel: str, choices: Choices) -> str:
    """Return `text` with the choices for one kernel in front of it, in place of those that stand there."""
    words = choices.text()

    def put(match: re.Match[str]) -> str:
        return match[0] if match["name"] != kernel else (f"/* warpwright: {words} */ " if words else "") + match["head"]

    return _KERNEL.sub(put, text)


def without(text: str) -> str:
    """Return `text` without any comment that chooses."""
    return re.sub(r"/\*\s*warpwright:[^*]*\*/ ?", "", text)

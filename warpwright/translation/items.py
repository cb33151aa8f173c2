"""What a suite comes to: one item a program, with its CUDA text, its reference in C, and what is known of its buffers and launches."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from warpwright.errors import UsageError
from warpwright.translation.pairs.printers.print_cuda import Launch

Role = Literal["input", "output"]
ELEMENTS: Mapping[str, str] = {
    "float": "float32", "double": "float64", "int": "int32", "int32_t": "int32", "int64_t": "int64", "int8_t": "int8", "uint8_t": "uint8",
    "signed char": "int8", "char": "int8", "bool": "int8",
}  # fmt: skip
"""C name of an element type to numpy's."""

C_NAMES: Mapping[str, str] = {dtype: name for name, dtype in reversed(list(ELEMENTS.items()))}
"""And back: the first name of each."""


@dataclass(frozen=True)
class Buffer:
    """One parameter of the C function. `low`, `high`: the known domain; equal when there is none."""

    name: str
    dtype: str
    size: int
    role: Role
    low: float = 0.0
    high: float = 0.0
    values: Literal["uniform", "index", "permutation"] = "uniform"


@dataclass(frozen=True)
class Item:
    """One program of a suite."""

    name: str
    suite: str
    family: str
    cuda: str
    c: str
    """Reference in C; empty where the suite has none."""
    entry: str
    """Name of the C function, whose parameters are `buffers` in order."""
    buffers: tuple[Buffer, ...] = ()
    temporaries: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Buffers between kernels: element type and size."""
    launches: tuple[Launch, ...] = ()
    unwired: str = ""
    """Why the CUDA side has no launches; empty when it has."""
    unscored: str = ""
    """Why nothing can be judged by this item; empty when it can."""
    extents: Mapping[str, int] = field(default_factory=dict)
    """Elements of each buffer that the reference touches, where that is known."""
    padded: Mapping[str, int] = field(default_factory=dict)
    """Elements of the buffers that kernels without a guard read or write beyond their end, in the last block."""

    @property
    def prototype(self) -> str:
        """The C function's head."""
        match = re.search(rf"void\s+{self.entry}\s*\([^)]*\)", self.c)
        return match[0] if match else ""


def parameters(c: str, entry: str) -> list[tuple[str, str]]:
    """Return (name, element type) of every parameter of a C function; all must be pointers."""
    match = re.search(rf"void\s+{re.escape(entry)}\s*\(([^)]*)\)", c)
    if match is None:
        raise UsageError(f"expected a C function void {entry}(...), saw none")
    found = []
    for one in match[1].split(","):
        bare = re.sub(r"\b(const|restrict|__restrict__|__restrict)\b", " ", one)
        kind, star, name = bare.partition("*")
        if not star or " ".join(kind.split()) not in ELEMENTS:
            raise UsageError(f"expected pointers to {', '.join(ELEMENTS)}, saw the parameter {one.strip()!r} of {entry}")
        found.append((name.strip(), ELEMENTS[" ".join(kind.split())]))
    return found


def written(c: str, names: Sequence[str]) -> set[str]:
    """Return the parameters that the text stores to: `name[...] = ...`, `+=` and the like, atomicAdd(&name[...]."""
    found = set()
    for name in names:
        for match in re.finditer(rf"(?<![\w.]){re.escape(name)}\s*\[", c):
            end = _closing(c, match.end() - 1)
            after = c[end + 1 : end + 4].lstrip()
            before = c[max(0, match.start() - 16) : match.start()].replace(" ", "")
            stored = re.match(r"(=(?!=)|[-+*/|&]=|\+\+|--)", after)
            if stored or re.search(r"atomic\w+\(\(?&\(?$", before):
                found.add(name)
    return found


def _closing(text: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "[") - (text[at] == "]")
        if depth == 0:
            return at
    return len(text) - 1


def from_pairs(path: Path) -> list[Item]:
    """Return the items of a data set that `warpwright pairs` wrote."""
    from warpwright.translation.pairs.data_set import read_pairs

    return [from_pair(row) for row in read_pairs(path)]


def from_pair(row: Mapping[str, Any]) -> Item:
    """Return one row of such a data set as an item."""
    rows = {one["name"]: one for one in json.loads(row["buffers"])}
    sizes = {name: _product(one["shape"]) for name, one in rows.items()}
    buffers = []
    for name, _ in parameters(row["c"], row["c_entry"]):
        one = rows[name]
        buffers.append(Buffer(name, one["dtype"], sizes[name], one["role"], one.get("low", 0.0), one.get("high", 0.0), one.get("values", "uniform")))
    temporaries = {name: (one["dtype"], sizes[name]) for name, one in rows.items() if one["role"] == "temporary"}
    launches = tuple(
        Launch(one["kernel"], tuple(one["grid"]), tuple(one["block"]), tuple(one["args"]), one["shared"]) for one in json.loads(row["launches"])
    )
    name = f"{row['name']}#{row['index']}"
    return Item(name, "pairs", row["family"], row["cuda"], row["c"], row["c_entry"], tuple(buffers), temporaries, launches)


def _product(shape: Sequence[int]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total

"""The kernels in an item's CUDA text: parameters, block, what is stored to and what is changed in place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from warpwright.translation.items import ELEMENTS, written

_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\((\d+)[^)]*\)\s*)?(\w+)\s*\(([^)]*)\)\s*\{')


class Unwired(Exception):
    """The wiring could not be found; the message says why."""


@dataclass(frozen=True)
class Kernel:
    """One kernel of an item's text."""

    name: str
    text: str
    block: int
    parameters: tuple[tuple[str, str], ...]
    stores: frozenset[str]
    updates: frozenset[str]
    """Parameters that are read before they are stored to: changed in place."""

    @property
    def reads(self) -> list[str]:
        """Parameters that are only read."""
        return [name for name, _ in self.parameters if name not in self.stores]


def kernels_of(cuda: str) -> list[Kernel]:
    """Return the kernels of a text in the order in which they run."""
    found = []
    for match in _KERNEL.finditer(cuda):
        end = _closing(cuda, match.end() - 1)
        text = cuda[match.start() : end + 1]
        listed = tuple(_parameter(one) for one in match[3].split(","))
        names = [name for name, _ in listed]
        body = text[match.end() - match.start() :]
        stores = frozenset(written(body, names))
        block = int(match[1] or "threadIdx" not in body)  # TVM binds no thread where a block has one only
        found.append(Kernel(match[2], text, block, listed, stores, frozenset(n for n in stores if _in_place(body, n))))
    return sorted(found, key=lambda k: int(k.name.rpartition("_")[2]) if k.name.rpartition("_")[2].isdigit() else 0)


def _closing(text: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return at
    raise Unwired("a kernel's text does not end")


def _parameter(text: str) -> tuple[str, str]:
    kind, _, name = re.sub(r"\b(const|__restrict__|__restrict)\b", " ", text).partition("*")
    element = ELEMENTS.get(" ".join(kind.split()))
    if element is None or not name.strip():
        raise Unwired(f"a kernel has the parameter {text.strip()!r}, which is no pointer to a known type")
    return name.strip(), element


def _in_place(body: str, name: str) -> bool:
    """Whether the first statement that mentions the name reads it: it stands on the right of its own first assignment, or of another's."""
    first = re.search(rf"(?<![\w.]){re.escape(name)}\s*\[", body)
    if first is None:
        return False
    line = body[first.start() :].split(";", 1)[0]
    before = body[: first.start()].rpartition("\n")[2]
    return "=" in before.replace("==", "").replace("<=", "") or len(re.findall(rf"(?<![\w.]){re.escape(name)}\s*\[", line)) > 1


def base_of(name: str) -> str:
    """Return a name without its number."""
    return re.sub(r"_\d+$", "", name)

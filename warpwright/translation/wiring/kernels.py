"""The kernels in an item's CUDA text: parameters, threads of a block, which parameters are stored to and which are updated in place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from warpwright.translation.c_source import closing, mentions, parameter, stored_to
from warpwright.translation.errors import NotWired

_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\((\d+)[^)]*\)\s*)?(\w+)\s*\(([^)]*)\)\s*\{')


@dataclass(frozen=True)
class Kernel:
    """One kernel of an item's text."""

    name: str
    text: str
    block: int
    """Threads, from __launch_bounds__; 0 where it has none."""
    parameters: tuple[tuple[str, str], ...]
    """Name and element type."""
    stores: frozenset[str]
    updates: frozenset[str]
    """Parameters that are read before they are stored to: updated in place."""

    @property
    def reads(self) -> list[str]:
        """Parameters that are only read."""
        return [name for name, _ in self.parameters if name not in self.stores]


def kernels_of(cuda: str) -> list[Kernel]:
    """Return the kernels of a text in the order in which they run. Raises NotWired where one cannot be read."""
    kernels = []
    for match in _KERNEL.finditer(cuda):
        end = closing(cuda, match.end() - 1)
        if end is None:
            raise NotWired("a kernel's text does not end")
        text = cuda[match.start() : end + 1]
        listed = tuple(_parameter(one) for one in match[3].split(","))
        names = [name for name, _ in listed]
        body = text[match.end() - match.start() :]
        stores = frozenset(stored_to(body, names))
        block = int(match[1] or "threadIdx" not in body)  # TVM binds no thread where a block has only one
        kernels.append(Kernel(match[2], text, block, listed, stores, frozenset(n for n in stores if _in_place(body, n))))
    return sorted(kernels, key=lambda k: int(k.name.rpartition("_")[2]) if k.name.rpartition("_")[2].isdigit() else 0)


def _parameter(text: str) -> tuple[str, str]:
    one = parameter(text)
    if one is None:
        raise NotWired(f"a kernel has the parameter {text.strip()!r}, which is no pointer to a known type")
    return one


def _in_place(body: str, name: str) -> bool:
    """Whether the first statement that mentions the name reads it: on the right of its own assignment, or of another one."""
    places = mentions(body, name)
    if not places:
        return False
    start = places[0].start()
    statement = body[start:].split(";", 1)[0]
    before = body[:start].rpartition("\n")[2]
    return "=" in before.replace("==", "").replace("<=", "") or len(mentions(statement, name)) > 1

"""Where the tensors of a plan lie, and which of them may lie in the same memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch

from warpwright.domains.graph.cpp.program import Unsupported

TYPES = {
    torch.float32: "float", torch.float64: "double", torch.int64: "int64_t", torch.int32: "int32_t", torch.bool: "bool", torch.uint8: "uint8_t",
}  # fmt: skip
"""C++ types of elements."""
ALIGNED = 64
"""Bytes: a line of the cache, and the widest vector."""


@dataclass(eq=False)
class Memory:
    """A piece of memory; `number` counts the arguments, results or literals, each from 0."""

    kind: Literal["argument", "result", "literal", "arena", "made"]
    """`made`: by an operator of torch, in a tensor that is dropped after its last use."""
    name: str
    """Of the C++ variable that points to it."""
    number: int = 0
    bytes: int = 0
    first: int = 0
    """The step that writes it."""
    last: int = 0
    """The last step that reads it."""
    offset: int = field(default=0)
    """In the arena."""


@dataclass(frozen=True)
class Place:
    """A tensor: its memory, and how its elements lie there. Offset and strides are in elements."""

    memory: Memory
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    @property
    def type(self) -> str:
        """The C++ type of an element."""
        if self.dtype not in TYPES:
            raise Unsupported(f"a tensor of {self.dtype}")
        return TYPES[self.dtype]

    @property
    def pointer(self) -> str:
        """The C++ expression that points to the first element."""
        return f"({self.type}*){self.memory.name}{f' + {self.offset}' if self.offset else ''}"

    @property
    def count(self) -> int:
        """How many elements."""
        return math.prod(self.sizes)

    @property
    def contiguous(self) -> bool:
        """Do the elements lie one after the other, in order?"""
        return all(size == 1 or stride == step for size, stride, step in zip(self.sizes, self.strides, row_major(self.sizes), strict=True))

    def viewed(self, sizes: Sequence[int], strides: Sequence[int], offset: int = 0) -> Place:
        """Return the same memory as a tensor of another form, which begins `offset` elements later."""
        return replace(self, offset=self.offset + offset, sizes=tuple(sizes), strides=tuple(strides))

    def broadcast(self, sizes: Sequence[int]) -> Place:
        """Return the tensor expanded to `sizes`, without a copy."""
        missing = len(sizes) - len(self.sizes)
        own = [*[1] * missing, *self.sizes]
        steps = [*[0] * missing, *self.strides]
        return self.viewed(sizes, [0 if size == 1 != wanted else step for size, step, wanted in zip(own, steps, sizes, strict=True)])

    def joined(self, first: int, last: int) -> tuple[int, int] | None:
        """Return size and stride of the dimensions from `first` up to `last` as one; None where they cannot be one."""
        run: tuple[int, int] | None = (1, 1)
        for size, stride in zip(self.sizes[first:last], self.strides[first:last], strict=True):
            if size == 1:
                continue
            if run is None or (run[0] != 1 and run[1] != size * stride):
                return None
            run = (run[0] * size, stride)
        return run


def row_major(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    return tuple(math.prod(sizes[d + 1 :]) for d in range(len(sizes)))


def arrange(memories: Sequence[Memory]) -> int:
    """Give each piece of the arena its offset, no two that are alive together in one place; return the arena's bytes. Large ones first."""
    placed: list[Memory] = []
    for memory in sorted(memories, key=lambda m: (-m.bytes, m.first)):
        others = sorted((m for m in placed if m.first <= memory.last and memory.first <= m.last), key=lambda m: m.offset)
        at = 0
        for other in others:
            if at + memory.bytes <= other.offset:
                break
            at = max(at, -(-(other.offset + other.bytes) // ALIGNED) * ALIGNED)
        memory.offset = at
        placed.append(memory)
    return max((m.offset + m.bytes for m in placed), default=0)

"""The canonical form as Python values; it prints as the core prints it and parses back: 8 + Strided(4, 64, Dense(24)).

    Dense(n)                     n consecutive bytes
    Strided(count, step, child)  the child `count` times, `step` bytes apart
    Concat(parts)                (offset, child) one after the other in the packed stream
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Dense:
    """`bytes` consecutive bytes."""

    bytes: int

    def __str__(self) -> str:
        return f"Dense({self.bytes})"

    def steps(self) -> Iterator[int]:
        """Yield every number that an address of this is a sum of."""
        yield self.bytes


@dataclass(frozen=True)
class Strided:
    """`child` `count` times, `step` bytes apart."""

    count: int
    step: int
    child: Dense | Strided | Concat

    def __str__(self) -> str:
        return f"Strided({self.count}, {self.step}, {self.child})"

    @property
    def bytes(self) -> int:
        """The packed bytes."""
        return self.count * self.child.bytes

    def steps(self) -> Iterator[int]:
        """Yield every number that an address of this is a sum of."""
        yield self.step
        yield from self.child.steps()


@dataclass(frozen=True)
class Concat:
    """Parts, each at its offset."""

    parts: tuple[tuple[int, Dense | Strided | Concat], ...]

    def __str__(self) -> str:
        return f"Concat({', '.join(f'({offset}, {part})' for offset, part in self.parts)})"

    @property
    def bytes(self) -> int:
        """The packed bytes."""
        return sum(part.bytes for _, part in self.parts)

    def steps(self) -> Iterator[int]:
        """Yield every number that an address of this is a sum of."""
        for offset, part in self.parts:
            yield offset
            yield from part.steps()


@dataclass(frozen=True)
class Object:
    """A whole layout: the node and where it begins; no node: no bytes."""

    offset: int
    node: Dense | Strided | Concat | None

    def __str__(self) -> str:
        if self.node is None:
            return "Empty"
        return f"{self.offset} + {self.node}" if self.offset else str(self.node)

    @property
    def bytes(self) -> int:
        """The packed bytes."""
        return self.node.bytes if self.node is not None else 0

    def width(self, largest: int = 16) -> int:
        """Return the widest word, at most `largest` bytes, that divides every address and length."""
        width = largest
        while any(step % width for step in (self.offset, *(self.node.steps() if self.node is not None else ()))):
            width //= 2
        return width


def parse(text: str) -> Object:
    """Return the layout that a canonical text stands for."""
    tree = ast.parse(text, mode="eval").body
    if isinstance(tree, ast.Name):
        return Object(0, None)
    if isinstance(tree, ast.BinOp):
        return Object(ast.literal_eval(tree.left), _node(tree.right))
    return Object(0, _node(tree))


def _node(tree: ast.expr) -> Dense | Strided | Concat:
    assert isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name), ast.dump(tree)
    if tree.func.id == "Dense":
        return Dense(ast.literal_eval(tree.args[0]))
    if tree.func.id == "Strided":
        return Strided(ast.literal_eval(tree.args[0]), ast.literal_eval(tree.args[1]), _node(tree.args[2]))
    return Concat(tuple((ast.literal_eval(part.elts[0]), _node(part.elts[1])) for part in tree.args if isinstance(part, ast.Tuple)))

"""What a layout is and how it is packed, for people: the canonical form, the runs, the kernel that would serve it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warpwright.domains.mpi.ir import Concat, Dense, Object, Strided, parse
from warpwright.domains.mpi.layout import Layout
from warpwright.errors import TaskError

_DEEPEST = 4
"""Strides of the flat kernel (native/kernels.cu)."""
_PIECES = 64
"""A Concat of more parts is a tree (native/device.hpp)."""


def explanation(path: Path) -> dict[str, Any]:
    """Return what there is to say of a datatype file."""
    from warpwright.domains.mpi.domain import describe, work  # torch: not for programs that import warpwright.mpi

    task = describe(path, {})
    if task is None:
        raise TaskError(f"expected a datatype file (.mpi), saw {path}", "see docs/mpi.md")
    return told(work(task).object)


def plan(layout: Layout) -> dict[str, Any]:
    """Return what there is to say of a layout."""
    return told(parse(layout.canonical()))


def told(layout: Object) -> dict[str, Any]:
    """Return the canonical form, its bytes, its shortest block, the widest word of a GPU thread and the kernels, by kind."""
    if layout.node is None:
        return {"canonical": "Empty", "bytes": 0}
    kinds = _kernels(layout.node)
    return {
        "canonical": str(layout), "bytes": layout.bytes, "shortest_block": _shortest(layout.node), "word": layout.width(),
        "kernels": {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
    }  # fmt: skip


def _kernels(node: Dense | Strided | Concat) -> list[str]:
    if isinstance(node, Concat) and len(node.parts) <= _PIECES:
        return [kind for _, part in node.parts for kind in _kernels(part)]
    depth, inner = 0, node
    while isinstance(inner, Strided):
        depth, inner = depth + 1, inner.child
    if isinstance(inner, Concat) or depth > _DEEPEST:
        return ["tree"]
    return [f"nest of {depth}" if depth else "contiguous"]


def _shortest(node: Dense | Strided | Concat) -> int:
    if isinstance(node, Dense):
        return node.bytes
    if isinstance(node, Strided):
        return _shortest(node.child)
    return min(_shortest(part) for _, part in node.parts)

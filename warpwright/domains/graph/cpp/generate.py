"""From a finished program to the text of one C++ function."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.graph.cpp import columns
from warpwright.domains.graph.cpp.layout import choose
from warpwright.domains.graph.cpp.program import Program
from warpwright.domains.graph.cpp.writer import Writer


def function(program: Program, name: str, strides: Sequence[Sequence[int]] | None = None) -> str:
    """Return the text of `extern "C" void name(operands ..., outputs ..., int threads)`; `strides` are the strides of operands that are no rows."""
    writer = Writer(program, choose(program, strides), name)
    return columns.write(writer) if writer.layout.order == "columns" else writer.rows()

"""Where the elements of a generated CUDA kernel lie: indices, addresses, and whether an element lies inside an operand."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from warpwright.domains.graph.cpp.layout import Layout, Loop
from warpwright.domains.graph.cpp.program import Move, Program, Unsupported
from warpwright.domains.graph.cuda.joins import Joins
from warpwright.domains.graph.cuda.placement import Placement
from warpwright.domains.graph.ir import value


class Addresses(Joins):
    """The part of a kernel's writer that finds elements in memory."""

    program: Program
    layout: Layout
    placement: Placement
    index: str
    """The type of indices."""

    def _moves(self, tensor: int) -> bool:
        """Has a tensor an element of its own for each element of a vector?"""
        return self.layout.vector.strides[tensor] != 0 or bool(self._gathers(tensor, "0")) or self._bag_of(tensor) is not None

    def _bag_of(self, tensor: int) -> Move | None:
        """Return the move by which an operand's rows are joined in bags, if they are."""
        return next((move for move in self.program.moves.get(tensor, ()) if move.kind == "bag"), None)

    def _steps(self, tensor: int) -> tuple[int, ...]:
        """Return the strides of an operand as the kernel gets it."""
        return self.placement.of(tensor) or torch.empty(value(self.program.operands[tensor][0]).shape, device="meta").stride()

    def _tensors(self) -> range:
        return range(self.inputs + len(self.results))

    def _digits(self, source: str, loops: Sequence[Loop], prefix: str) -> list[str]:
        """Return lines that take a number apart into one index for each loop."""
        lines, divisor = [], 1
        for d in reversed(range(len(loops))):
            text = source if divisor == 1 else f"{source} / {divisor}"
            whole = text if d == 0 else f"({text}) % {loops[d].size}"
            lines.append(f"const {self.index} {prefix}{d} = {whole};")
            divisor *= loops[d].size
        return lines[::-1]

    def _offset(self, loops: Sequence[Loop], tensor: int, prefix: str) -> list[str]:
        places = [(self._at(loop, tensor, f"{prefix}{d}"), loop.strides[tensor]) for d, loop in enumerate(loops) if loop.strides[tensor]]
        return [place if step == 1 else f"{place} * {step}" for place, step in places if place]

    def _at(self, loop: Loop, tensor: int, place: str) -> str:
        """Return the index in an operand along a loop at whose index `place` an element stands; "" where each element has its own."""
        for move in self.program.moves.get(tensor, ()):
            if loop.axis in move.axes:
                if move.kind == "window":
                    last = max(axis for axis in move.axes if self.program.sizes[axis] != 1)
                    return f"({place} - {move.start})" if loop.axis == last else place
                if move.kind == "sample":
                    return "" if loop is self.layout.vector else move.text.format(place)
                return "" if loop is self.layout.vector and tensor in self.plan.loose else f"turned({place}, {move.start}, {move.size})"
        return place

    def _gathers(self, tensor: int, element: str = "") -> list[str]:
        """Return the terms of an operand's address that follow from indices in memory: from a row's, or from that of an `element` of a vector."""
        terms, along = [], self.layout.vector
        node = self.program.operands[tensor][0] if tensor < self.inputs else self.program.outputs[tensor - self.inputs][0]
        target = self.program.sums.get(node) if tensor >= self.inputs else None
        for move in self.program.moves.get(tensor, ()) if target is None else (target.move,):
            if move.kind == "gather" and bool(element) == (along.strides[move.index] != 0):
                own = self.placement.of(tensor) or torch.empty(value(node).shape, device="meta").stride()
                at = self._offset(self.layout.outer, move.index, "i")
                if element:
                    at.append(f"{self._at(along, move.index, f'({self._vector_index()} + {element})')} * {along.strides[move.index]}")
                row = f"{'row_from_end' if move.signed else 'row_at'}(a{move.index}[{' + '.join(at) or '0'}], {move.size}) * {own[move.dim]}"
                test = self._inside(move.index)
                terms.append(f"({test} ? {row} : 0)" if test and not element else row)
        return terms

    def _index_of(self, dim: tuple[int, ...], element: str = "") -> str:
        """Return the index along a dimension whose axes are loops by themselves: that of a vector's first element, or of its `element`."""
        terms, step = [], 1
        for axis in reversed(dim):
            if self.program.sizes[axis] != 1:
                at = self._loop_index(axis)
                terms.append(at if step == 1 else f"{at} * {step}")
                terms += [element] if element and self.layout.vector.axis == axis else []
            step *= self.program.sizes[axis]
        return f"({' + '.join(terms)})" if len(terms) > 1 else terms[0]

    def _vector_index(self) -> str:
        return f"k{len(self.layout.inner) - 1}" if self.plan.order == "rows" else "k" if self.layout.outer else "at"

    def _loop_index(self, axis: int) -> str:
        if self.layout.vector.axis == axis:
            return self._vector_index()
        for prefix, loops in (("i", self.layout.outer), ("k", self.layout.inner)):
            for d, loop in enumerate(loops):
                if loop.axis == axis:
                    return f"{prefix}{d}"
        raise Unsupported("a part along an axis that no loop goes along")

    def _inside(self, tensor: int, element: str = "") -> str:
        """Return the test of whether a vector's elements, or its `element`, lie inside an operand that is part of the whole; "" if it is not."""
        tests = []
        for move in self.program.moves.get(tensor, ()):
            if move.kind == "window":
                at = self._index_of(move.axes, element)
                tests.append(f"{at} >= {move.start} && {at} < {move.start + move.size}")
        return " && ".join(tests)

    def _pointers(self, loops: Sequence[Loop], prefix: str, base: str, to: str, tensors: Sequence[int] | range, more: str = "") -> list[str]:
        lines = []
        for t in tensors:
            terms = [*self._offset(loops, t, prefix), *(self._gathers(t) if base == "given" else [])]
            terms += [at] if more and self.layout.vector.strides[t] and (at := self._at(self.layout.vector, t, more)) else []
            start = f"{base}{t}" if base != "given" else f"a{t}" if t < self.inputs else f"o{t - self.inputs}"
            lines.append(f"const auto {to}{t} = {' + '.join([start, *terms])};")
        return lines

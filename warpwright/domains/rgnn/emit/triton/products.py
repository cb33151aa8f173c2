"""Products in a Triton kernel: of rows, of rows with a weight, and the weight gradients, which are products of rows summed over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpwright.domains.rgnn.emit.places import WHOLE, wide_product
from warpwright.domains.rgnn.emit.triton.memory import FUNCTIONS, SIDES, Memory
from warpwright.domains.rgnn.emit.triton.tuning import DEPTH, padded
from warpwright.domains.rgnn.ir import Op
from warpwright.domains.rgnn.lattice import PAIRS, Domain


class Products(Memory):
    """What multiplies."""

    def _product(self, op: Op, operand: Callable[[int, str], str], window: str) -> str:
        """Return a window of the product of rows; a number of a row is stretched along it. A sum along the row takes all windows of its operands."""
        letters = op.subscripts[:-1]
        wide = any(letters)

        def part(at: str) -> str:
            texts = [operand(i, at) for i in op.inputs]
            return " * ".join(self._stretched(i, x) if wide and not own else x for i, x, own in zip(op.inputs, texts, letters, strict=True))

        if not wide or op.subscripts[-1]:
            return part(window)
        longest = next(i for i, own in zip(op.inputs, letters, strict=True) if own)
        return " + ".join(f"tl.sum({part(at)}, 1)" for at in self.of(longest))

    def _stretched(self, value: int, text: str) -> str:
        domain = self.program.ops[value].domain
        shared = domain is Domain.ONE or (domain is Domain.ETYPE and self.kernel.rows in PAIRS)
        return text if shared else f"{text}[:, None]" if text.isidentifier() else f"({text})[:, None]"

    def _is_row(self, value: int) -> bool:
        domain = self.program.ops[value].domain
        return not (domain is Domain.ONE or (domain is Domain.ETYPE and self.kernel.rows in PAIRS))

    def _gemm(self, position: int, op: Op, own: list[str]) -> None:
        """A product with the relation's weight, which is read whole, once for a tile."""
        matrix = next(i for i, s in enumerate(op.subscripts[:-1]) if len(s) == 2)
        weight, row = op.inputs[matrix], op.inputs[1 - matrix]
        turned = op.subscripts[matrix][0] == op.subscripts[-1]
        if wide_product(self.program, op):
            self._wide_gemm(position, weight, row, turned)
            return
        whole = self.of_row(weight)
        own.append(f'r{position} = tl.dot({self.of_row(row)}, {f"tl.trans({whole})" if turned else whole}, input_precision="tf32x3")')
        self._keep(position, op)

    def _wide_gemm(self, position: int, weight: int, row: int, turned: bool) -> None:
        """A product whose rows and weight are read in a loop; what a row is computed from is read there too."""
        op, depth, at = self.program.ops[position], self.program.ops[row].shape[0], f"k{position}"
        inner = [f"c{depth}{at} = {at} + tl.arange(0, {DEPTH})"]
        value = self._inner(row, at, inner)
        pointer, (down, across) = self.argument("value", weight), self.program.ops[weight].shape
        base = f"{pointer} + " + ("relation" if self.program.ops[weight].domain is Domain.ETYPE else "0") + f" * {down * across}"
        inner.append(f"a{position} = {value}")
        for window in self.of(position):
            size, columns = op.shape[0], self.columns(op.shape[0], window)
            self.before.append(f"r{position}{window} = tl.zeros(({self.step}, {self.width(size, window)}), tl.float32)")
            low, high = (columns, f"c{depth}{at}") if turned else (f"c{depth}{at}", columns)
            mask = f"({low}[:, None] < {down}) & ({high}[None, :] < {across})"
            block = f"tl.load({base} + {low}[:, None] * {across} + {high}[None, :], mask={mask}, other=0.0)"
            inner.append(f"b{position}{window} = {block}")
            operand = f"tl.trans(b{position}{window})" if turned else f"b{position}{window}"
            inner.append(f'r{position}{window} = tl.dot(a{position}, {operand}, r{position}{window}, input_precision="tf32x3")')
        self.before += [f"for {at} in range(0, {depth}, {DEPTH}):", *(f"    {line}" for line in inner)]
        self._keep(position, op)

    def _inner(self, value: int, at: str, inner: list[str]) -> str:
        """Return the expression of a row's columns in the loop of a wide product; what it loads there is appended to `inner`."""
        op = self.program.ops[value]
        if not op.shape:
            return self.of_row(value)
        if value in self.kernel.ops:
            if op.kind == "contract":
                return f"({self._product(op, lambda i, window: self._inner(i, at, inner), at)})"
            short = [not self.program.ops[i].shape and self._is_row(i) for i in op.inputs]
            operands = [f"{self._inner(i, at, inner)}{'[:, None]' if one else ''}" for i, one in zip(op.inputs, short, strict=True)]
            return f"({FUNCTIONS[op.function].format(*operands, c=repr(op.constant))})"
        name, pointer = f"m{value}{at}", self.argument("value", value)
        if name in self.known:
            return name
        self.known.add(name)
        if op.domain in {Domain.ONE, Domain.ETYPE}:
            inner.append(f"{name} = {self._of_relation(pointer, op, at)}")
        else:
            inner += self._loaded(name, pointer, self.row_of(op.domain), op, "ok", at)
        return name

    def _outer(self, position: int, op: Op, operands: Sequence[str], own: list[str]) -> None:
        """A weight gradient: summed over the tile's rows in registers, then added to the relation's matrix."""
        left, right = operands if op.subscripts[-1] == "".join(op.subscripts[:-1]) else reversed(operands)
        (down, rows), (across, columns) = ((self.width(n, w), self.columns(n, w)) for n, w in zip(op.shape, self._sides(op), strict=True))
        self.head.append(f"r{position} = tl.zeros(({down}, {across}), tl.float32)")
        mask = "ok" if any(i in self.kernel.partial for i in op.inputs) else "once"
        own.append(f'r{position} += tl.dot(tl.trans(tl.where({mask}[:, None], {left}, 0.0)), {right}, input_precision="{self.precision}")')
        offset = ("relation" if op.domain is Domain.ETYPE else "0") + f" * {op.width} + {rows}[:, None] * {op.shape[1]} + {columns}[None, :]"
        wanted = f"tl.where(tile_first < tile_last, {op.shape[0]}, 0)"  # a mask of a scalar's would be no Boolean to Triton 3.9's interpreter
        inside = f"({rows}[:, None] < {wanted}) & ({columns}[None, :] < {op.shape[1]})"
        self.tail.append(f'tl.atomic_add({self.argument("out", position)} + {offset}, r{position}, mask={inside}, sem="relaxed")')

    def _sides(self, op: Op) -> list[str]:
        """Return the windows of the rows and of the columns of a weight gradient."""
        return [side if padded(size) > WHOLE else "" for side, size in zip(SIDES, op.shape, strict=True)]

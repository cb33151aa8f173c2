"""The text of a Triton kernel over rows. float32; a product is three of TF32, which keep its precision.

A row of more than WHOLE numbers is held in windows of NARROW columns, a tensor each. A product with a weight of that width reads its rows and the
weight in a loop, DEPTH columns at a time. A weight gradient of that width has a kernel of its own, each program of it a block of BLOCK by BLOCK.
"""

from __future__ import annotations

from warpwright.domains.rgnn.emit.places import WHOLE
from warpwright.domains.rgnn.emit.rows import late
from warpwright.domains.rgnn.emit.triton import scouting
from warpwright.domains.rgnn.emit.triton.memory import FUNCTIONS, SIDES
from warpwright.domains.rgnn.emit.triton.products import Products
from warpwright.domains.rgnn.emit.triton.tuning import BLOCK, padded
from warpwright.domains.rgnn.ir import Op
from warpwright.domains.rgnn.lattice import WEIGHTS, Domain

EDGES = "edges"
"""The parameter that points to the number of edges."""

TABLE = ("chunk_row", "chunk_begin", "chunk_end", "chunk_first", "tile_relation", "tile_begin", "tile_end")


class Writer(Products):
    """Writes one kernel."""

    def text(self) -> str:
        """Return the kernel's text; `arguments` then says what its parameters are."""
        if self.of_edges:
            return self._text_of_edges()
        if self.blocks:
            self._outer_blocks()
        else:
            for position in self.kernel.ops:
                self._op(position)
        loop = ["longest = tl.max(end - begin, 0)", f"for at in {self._steps()}:", *(f"    {x}" for x in self._read() + self.sums)]
        early, asked = scouting.scouting(self)
        looping = bool(self.loads or self.sums)
        body = [*early, *self.lifts, *([] if looping else asked), *self.before, *self.start]
        body += [*loop, *asked, *self.after] if looping else self.after
        parameters = ", ".join([*self.arguments, *TABLE])
        shared = f" // {self.blocks}" if self.blocks else ""
        lines = [
            "import triton", "import triton.language as tl", "", *(scouting.ASK.splitlines() if asked else []), "", "@triton.jit",
            f"def kernel({parameters}):",
            f"    tile = tl.program_id(0){shared}", "    relation = tl.load(tile_relation + tile).to(tl.int64)",
            "    tile_first, tile_last = tl.load(tile_begin + tile), tl.load(tile_end + tile)",
            *(f"    {x}" for x in self.head),
            f"    for base in range(tile_first, tile_last, {self.step}):",
            f"        chunk = base + tl.arange(0, {self.step})", "        ok = chunk < tile_last",
            "        row = tl.load(chunk_row + chunk, mask=ok, other=0)",
            "        begin = tl.load(chunk_begin + chunk, mask=ok, other=0)", "        end = tl.load(chunk_end + chunk, mask=ok, other=0)",
            "        once = ok & (tl.load(chunk_first + chunk, mask=ok, other=0) != 0)",
            *(f"        {x}" for x in body), *(f"    {x}" for x in self.tail), "",
        ]  # fmt: skip
        return "\n".join(lines)

    def _text_of_edges(self) -> str:
        for position in self.kernel.ops:
            self._of_rows(position, self.program.ops[position])
        lines = [
            "import triton", "import triton.language as tl", "", "", "@triton.jit", f"def kernel({', '.join([*self.arguments, EDGES])}):",
            f"    row = tl.program_id(0) * {self.step} + tl.arange(0, {self.step})", f"    ok = row < tl.load({EDGES})", "    once = ok",
            *(f"    {x}" for x in (*self.head, *self.before, *self.after)), "",
        ]  # fmt: skip
        return "\n".join(lines)

    def _read(self) -> list[str]:
        """Return the lines that read an edge's operands: numbers of rows, then rows, then what takes them.

        Barriers keep ptxas from moving each read to where it is used, to save registers: a thread then waited for one number at a time and had two
        rows under way (RGCN on mag's graph: 2.5 ms where the weighted sums of HGT, which have other registers, took 1.8).
        """
        lines: list[str] = []
        for rank in range(4):
            own = [line for other, line in self.loads if other == rank]
            lines += own + ["tl.debug_barrier()"] * (bool(own) and rank < 3 and not self.tuning.stages and any(r == 2 for r, _ in self.loads))
        return lines

    def _steps(self) -> str:
        ahead = f", num_stages={self.tuning.stages}" if self.tuning.stages > 1 else ""
        return f"{'tl.' if ahead else ''}range(0, longest, {self.unroll}{ahead})"

    # --- operations ----------------------------------------------------------------------------------------------------

    def _op(self, position: int) -> None:
        op = self.program.ops[position]
        if op.domain is Domain.EDGE:
            self._on_edges(position, op)
        elif op.over is Domain.EDGE and op.kind in {"contract", "segmax"}:
            self._over_edges(position, op)
        else:
            self._of_rows(position, op)

    def _on_edges(self, position: int, op: Op) -> None:
        for n in range(self.unroll):
            if op.kind == "map":
                value = self._expression(op, [self.of_edge(i, n) for i in op.inputs])
            else:
                value = self._product(op, lambda i, window, n=n: self.of_edge(i, n, window), "")  # type: ignore[misc]
            self.sums.append(f"tl.store({self.argument('out', position)} + {self.edge_row(Domain.EDGE, n)}, {value}, mask={self.edge_mask(n)})")

    def _over_edges(self, position: int, op: Op) -> None:
        for window in self.of(position):
            shape = f"({self.step}, {self.width(op.shape[0], window)})" if op.shape else f"({self.step},)"
            filling = "float('-inf')" if op.kind == "segmax" else "0.0"
            kind = "tl.float64" if position in self.doubles.maxima else "tl.float32"
            self.start.append(f"r{position}{window} = tl.full({shape}, {filling}, {kind})")
        for n in range(self.unroll):
            for window in self.of(position):
                self._added_edge(position, op, n, window)
        self._keep(position, op)

    def _added_edge(self, position: int, op: Op, n: int, window: str) -> None:
        mask, name = self.edge_mask(n), f"r{position}{window}"
        if op.kind == "segmax":
            self.sums.append(f"{name} = tl.maximum({name}, tl.where({mask}, {self.of_edge(op.inputs[0], n)}, float('-inf')))")
            return
        loaded = any(self.program.ops[i].domain not in {self.kernel.rows} and not self.program.ops[i].domain <= self.kernel.rows
                     and i not in self.schedule.inline for i in op.inputs)  # fmt: skip
        inline = any(i in self.schedule.inline for i in op.inputs)

        def operand(i: int, part: str) -> str:
            text = self.of_edge(i, n, part)
            return f"tl.where({mask}, {text}, 0.0)" if loaded and inline and i in self.schedule.inline else text

        value = self._product(op, operand, window)
        if not loaded:  # what is read past a row's end is zero; what is computed there is not
            value = f"tl.where({mask}[:, None], {value}, 0.0)" if op.shape else f"tl.where({mask}, {value}, 0.0)"
        self.sums.append(f"{name} += {value}")

    def _of_rows(self, position: int, op: Op) -> None:
        own = self.after if not self.of_edges and late(self.program, self.kernel, position) else self.before
        if op.kind == "contract" and len(op.subscripts) == 3 and any(len(s) == 2 for s in op.subscripts[:-1]):
            self._gemm(position, op, own)
            return
        if op.kind == "contract" and len(op.subscripts[-1]) == 2:
            self._outer(position, op, [self.of_row(i) for i in op.inputs], own)
            return
        for window in self.of(position):
            if op.kind == "segmax":
                value = self.of_row(op.inputs[0])
            elif op.kind == "map":
                value = self._mapped(op, window)
            else:
                value = self._product(op, self._in_float64 if position in self.doubles.numbers else self.of_row, window)
            own.append(f"r{position}{window} = {value}")
        self._keep(position, op)

    def _in_float64(self, value: int, window: str = "") -> str:
        """Return an operand such that a product of it is made in float64."""
        text = self.of_row(value, window)
        return f"{text}.to(tl.float64)" if self.program.ops[value].domain in WEIGHTS else text

    def _mapped(self, op: Op, window: str) -> str:
        short = [bool(op.shape) and not self.program.ops[i].shape and self._is_row(i) for i in op.inputs]
        operands = [self.of_row(i, window) for i in op.inputs]
        wide = [f"{x}[:, None]" if one else x for x, one in zip(operands, short, strict=True)]
        return FUNCTIONS[op.function].format(*wide, c=repr(op.constant))

    def _outer_blocks(self) -> None:
        """A kernel of a wide weight gradient alone: each program has one block, and the operands' rows are read in its columns only."""
        position = self.kernel.ops[-1]
        op = self.program.ops[position]
        across = -(-op.shape[1] // BLOCK) if padded(op.shape[1]) > WHOLE else 1
        self.head += [f"block = tl.program_id(0) % {self.blocks}", f"block_down, block_across = block // {across}, block % {across}"]
        order = (0, 1) if op.subscripts[-1] == "".join(op.subscripts[:-1]) else (1, 0)
        texts = ["", ""]
        for which, side in zip(order, SIDES, strict=True):
            self.side = side
            texts[which] = self._side_of(op.inputs[which], side)
        self._outer(position, op, texts, self.before)

    def _side_of(self, value: int, side: str) -> str:
        """Write what an operand of a weight gradient is computed from in the columns of a side; return its name."""
        op = self.program.ops[value]
        if value in self.kernel.ops:
            for i in op.inputs:
                self._side_of(i, side)
            (window,) = self.of(value)
            if f"r{value}{window}" not in self.known:
                self.known.add(f"r{value}{window}")
                self._of_rows(value, op)
        return self.of_row(value, side)

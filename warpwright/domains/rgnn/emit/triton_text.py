"""The text of a Triton kernel over rows. float32; a product is three of TF32, which keep its precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warpwright.domains.rgnn.emit.launch import Argument
from warpwright.domains.rgnn.emit.rows import Kernel, Schedule, added, late
from warpwright.domains.rgnn.ir import Op, Program
from warpwright.domains.rgnn.lattice import PAIRS, Domain


@dataclass(frozen=True)
class Tuning:
    """The schedule of kernels; 0: as the kernel's widths suggest."""

    step: int = 0
    """Rows of one step."""
    warps: int = 0
    unroll: int = 0
    """Edges of a row whose loads are under way at once."""


DEFAULT = Tuning()

FUNCTIONS: Mapping[str, str] = {
    "neg": "-{0}", "exp": "tl.exp({0})", "log": "tl.log({0})", "sqrt": "tl.sqrt({0})", "reciprocal": "1.0 / {0}",
    "inverse": "tl.where({0} == 0, 0.0, 1.0 / {0})", "relu": "tl.maximum({0}, 0.0)", "leaky_relu": "tl.where({0} > 0, {0}, {0} * {c})",
    "leaky_slope": "tl.where({0} > 0, 1.0, {c})", "elu": "tl.where({0} > 0, {0}, {c} * (tl.exp({0}) - 1.0))",
    "tanh": "(2.0 * tl.sigmoid(2.0 * {0}) - 1.0)", "sigmoid": "tl.sigmoid({0})", "gelu": "(0.5 * {0} * (1.0 + tl.erf({0} * 0.7071067811865476)))",
    "gelu_slope": "(0.5 * (1.0 + tl.erf({0} * 0.7071067811865476)) + {0} * tl.exp(-0.5 * {0} * {0}) * 0.3989422804014327)",
    "scale": "({0} * {c})", "shift": "({0} + {c})", "positive": "tl.where({0} > 0, 1.0, 0.0)", "detach": "{0}", "add": "({0} + {1})",
    "sub": "({0} - {1})", "maximum": "tl.maximum({0}, {1})", "equal": "tl.where({0} == {1}, 1.0, 0.0)",
}  # fmt: skip


def padded(size: int) -> int:
    """Return the power of two, at least 16, that holds `size`: tensor cores take no less."""
    return max(16, 1 << (size - 1).bit_length())


@dataclass
class Writer:
    """Writes one kernel."""

    schedule: Schedule
    kernel: Kernel
    tuning: Tuning = DEFAULT
    arguments: dict[str, Argument] = field(default_factory=dict)
    head: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    start: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    sums: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    @property
    def program(self) -> Program:
        """The program that the kernel is a part of."""
        return self.schedule.program

    @property
    def step(self) -> int:
        """Rows of one step."""
        widest = max([1, *(n for i in self.kernel.ops for n in self._sizes(i))])
        if self.outer and not self.tuning.step:  # 64 rows beside a weight gradient spill 112 to 600 bytes of registers, 32 none
            return 32
        if self.tuning.step and widest > 1:
            return self.tuning.step
        if widest == 1:
            return 256
        if not self.products:  # bound by gathers: fewer registers, more programs on a core
            return 32 if padded(widest) <= 64 else 16
        return 64 if padded(widest) <= 64 else 32

    def _sizes(self, position: int) -> list[int]:
        """Return the widths of a value and of what it reads; a weight read whole has two."""
        return [n for i in (position, *self.program.ops[position].inputs) for n in self.program.ops[i].shape]

    def text(self) -> str:
        """Return the kernel's text; `arguments` then says what its parameters are."""
        for position in self.kernel.ops:
            self._op(position)
        loop = ["longest = tl.max(end - begin, 0)", f"for at in range(0, longest, {self.unroll}):", *(f"    {x}" for x in self.loads + self.sums)]
        body = [*self.before, *self.start, *(loop if self.loads or self.sums else []), *self.after]
        parameters = ", ".join([*self.arguments, *TABLE])
        lines = [
            "import triton", "import triton.language as tl", "", "", "@triton.jit", f"def kernel({parameters}):",
            "    tile = tl.program_id(0)", "    relation = tl.load(tile_relation + tile).to(tl.int64)",
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

    @property
    def unroll(self) -> int:
        """Edges of a row in one step of the loop."""
        return self.tuning.unroll or 4

    @property
    def products(self) -> bool:
        """Does a weight, or a weight's gradient, meet rows?"""
        return any(op.kind == "contract" and any(len(s) == 2 for s in op.subscripts) for op in (self.program.ops[i] for i in self.kernel.ops))

    @property
    def outer(self) -> bool:
        """Is a weight gradient kept in registers?"""
        return any(op.kind == "contract" and len(op.subscripts[-1]) == 2 for op in (self.program.ops[i] for i in self.kernel.ops))

    @property
    def warps(self) -> int:
        """Warps of a program."""
        widest = max([1, *(padded(n) for i in self.kernel.ops for n in self._sizes(i))])
        return self.tuning.warps or (8 if widest > 64 else 4)

    # --- operands ------------------------------------------------------------------------------------------------------

    def argument(self, kind: str, of: Any = None) -> str:
        """Return the name of a parameter, added where it is new."""
        argument = Argument(kind, of)
        self.arguments.setdefault(argument.name, argument)
        return argument.name

    def columns(self, size: int) -> str:
        """Return the name of the column numbers of a row of `size`."""
        name = f"c{size}"
        if name not in self.known:
            self.known.add(name)
            self.head.append(f"{name} = tl.arange(0, {padded(size)})")
        return name

    def place(self, index: str, size: int, mask: str) -> tuple[str, str]:
        """Return offsets and mask of rows `index` of width `size`."""
        columns = self.columns(size)
        inside = "" if padded(size) == size else f" & ({columns}[None, :] < {size})"
        return f"{index}[:, None].to(tl.int64) * {size} + {columns}[None, :]", f"{mask}[:, None]{inside}"

    def of_row(self, value: int) -> str:
        """Return the expression of an operand that the row determines."""
        op = self.program.ops[value]
        if value in self.kernel.ops:
            return f"r{value}"
        name = f"m{value}"
        if name in self.known:
            return name
        self.known.add(name)
        pointer = self.argument("value", value)
        if op.domain in {Domain.ONE, Domain.ETYPE} and (op.domain is Domain.ONE or self.kernel.rows in PAIRS):
            self.head.append(f"{name} = {self._of_relation(pointer, op)}")
            return name
        self.before += self._loaded(name, pointer, self.row_of(op.domain), op, "ok")
        return name

    def _of_relation(self, pointer: str, op: Op) -> str:
        relation = "relation" if op.domain is Domain.ETYPE else "0"
        if not op.shape:
            return f"tl.load({pointer} + {relation})"
        if len(op.shape) == 1:
            columns = self.columns(op.shape[0])
            return f"tl.load({pointer} + {relation} * {op.shape[0]} + {columns}, mask={columns} < {op.shape[0]}, other=0.0)[None, :]"
        down, across = (self.columns(n) for n in op.shape)
        mask = f"({down}[:, None] < {op.shape[0]}) & ({across}[None, :] < {op.shape[1]})"
        return f"tl.load({pointer} + {relation} * {op.width} + {down}[:, None] * {op.shape[1]} + {across}[None, :], mask={mask}, other=0.0)"

    def row_of(self, domain: Domain) -> str:
        """Return the name of each row's row of a coarser domain."""
        if domain is self.kernel.rows:
            return "row"
        name = f"row_{domain.name.lower()}"
        if name not in self.known:
            self.known.add(name)
            self.before.append(f"{name} = tl.load({self.argument('lift', domain)} + row, mask=ok, other=0)")
        return name

    def _loaded(self, name: str, pointer: str, index: str, op: Op, mask: str) -> list[str]:
        if not op.shape:
            return [f"{name} = tl.load({pointer} + {index}, mask={mask}, other=0.0)"]
        where, inside = self.place(index, op.shape[0], mask)
        return [f"{name} = tl.load({pointer} + {where}, mask={inside}, other=0.0)"]

    def of_edge(self, value: int, n: int) -> str:
        """Return the expression of an operand at the `n`th edge of a step."""
        op = self.program.ops[value]
        if op.domain <= self.kernel.rows and value not in self.schedule.inline:
            return self.of_row(value)
        name = f"e{value}_{n}"
        if name in self.known:
            return name
        self.known.add(name)
        if value in self.schedule.inline:
            self.loads.append(f"{name} = {self._edge_expression(op, n)}")
        else:
            self.loads += self._loaded(name, self.argument("value", value), self.edge_row(op.domain, n), op, self.edge_mask(n))
        return name

    def _edge_expression(self, op: Op, n: int) -> str:
        operands = [self.of_edge(i, n) for i in op.inputs]
        return FUNCTIONS[op.function].format(*operands, c=repr(op.constant)) if op.kind == "map" else " * ".join(operands)

    def edge_mask(self, n: int) -> str:
        """Return the name of the mask of the `n`th edge of a step."""
        if f"k_{n}" not in self.known:
            self.known.add(f"k_{n}")
            self.loads += [f"j_{n} = begin + at + {n}", f"k_{n} = j_{n} < end"]
        return f"k_{n}"

    def edge_row(self, domain: Domain, n: int) -> str:
        """Return the name of the `n`th edge's row of a domain."""
        mask, rows = self.edge_mask(n), self.kernel.rows
        if domain is Domain.EDGE and rows is Domain.PAIR_DST:
            return f"j_{n}"
        name = f"i_{domain.name.lower()}_{n}"
        if name not in self.known:
            self.known.add(name)
            pointer = self.argument("order") if domain is Domain.EDGE else self.argument("along", domain)
            self.loads.append(f"{name} = tl.load({pointer} + j_{n}, mask={mask}, other=0)")
        return name

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
            operands = [self.of_edge(i, n) for i in op.inputs]
            value = f"tl.sum({' * '.join(operands)}, 1)" if op.subscripts == ("a", "a", "") else " * ".join(operands)
            self.sums.append(f"tl.store({self.argument('out', position)} + {self.edge_row(Domain.EDGE, n)}, {value}, mask={self.edge_mask(n)})")

    def _over_edges(self, position: int, op: Op) -> None:
        shape = f"({self.step}, {padded(op.shape[0])})" if op.shape else f"({self.step},)"
        filling = "float('-inf')" if op.kind == "segmax" else "0.0"
        self.start.append(f"r{position} = tl.full({shape}, {filling}, tl.float32)")
        for n in range(self.unroll):
            operands = [self.of_edge(i, n) for i in op.inputs]
            mask = self.edge_mask(n)
            if op.kind == "segmax":
                self.sums.append(f"r{position} = tl.maximum(r{position}, tl.where({mask}, {operands[0]}, float('-inf')))")
                continue
            value = self._product(op, operands)
            loaded = any(self.program.ops[i].domain not in {self.kernel.rows} and not self.program.ops[i].domain <= self.kernel.rows
                         and i not in self.schedule.inline for i in op.inputs)  # fmt: skip
            if not loaded:  # what is read past a row's end is zero; what is computed there is not
                value = f"tl.where({mask}[:, None], {value}, 0.0)" if op.shape else f"tl.where({mask}, {value}, 0.0)"
            elif any(i in self.schedule.inline for i in op.inputs):
                value = self._product(op, [self._masked(i, x, mask) for i, x in zip(op.inputs, operands, strict=True)])
            self.sums.append(f"r{position} += {value}")
        self._keep(position, op)

    def _masked(self, value: int, text: str, mask: str) -> str:
        return f"tl.where({mask}, {text}, 0.0)" if value in self.schedule.inline else text

    def _product(self, op: Op, operands: list[str]) -> str:
        """Return the product of rows; a number of a row is stretched along it."""
        letters = op.subscripts[:-1]
        wide = any(letters)
        parts = [self._stretched(i, text) if wide and not own else text for i, text, own in zip(op.inputs, operands, letters, strict=True)]
        product = " * ".join(parts)
        return f"tl.sum({product}, 1)" if wide and not op.subscripts[-1] else product

    def _stretched(self, value: int, text: str) -> str:
        domain = self.program.ops[value].domain
        shared = domain is Domain.ONE or (domain is Domain.ETYPE and self.kernel.rows in PAIRS)
        return text if shared else f"{text}[:, None]" if text.isidentifier() else f"({text})[:, None]"

    def _of_rows(self, position: int, op: Op) -> None:
        operands = [self.of_row(i) for i in op.inputs]
        own = self.after if late(self.program, self.kernel, position) else self.before
        if op.kind == "map":
            short = [bool(op.shape) and not self.program.ops[i].shape and self._is_row(i) for i in op.inputs]
            wide = [f"{x}[:, None]" if one else x for x, one in zip(operands, short, strict=True)]
            own.append(f"r{position} = {FUNCTIONS[op.function].format(*wide, c=repr(op.constant))}")
            self._keep(position, op)
            return
        if len(op.subscripts) == 3 and any(len(s) == 2 for s in op.subscripts[:-1]):
            own.append(f"r{position} = {self._gemm(op, operands)}")
        elif op.subscripts[-1] and len(op.subscripts[-1]) == 2:
            self._outer(position, op, operands)
            return
        else:
            own.append(f"r{position} = {self._product(op, operands)}")
        self._keep(position, op)

    def _is_row(self, value: int) -> bool:
        domain = self.program.ops[value].domain
        return not (domain is Domain.ONE or (domain is Domain.ETYPE and self.kernel.rows in PAIRS))

    def _gemm(self, op: Op, operands: list[str]) -> str:
        matrix = next(i for i, s in enumerate(op.subscripts[:-1]) if len(s) == 2)
        letters, weight, row = op.subscripts[matrix], operands[matrix], operands[1 - matrix]
        turned = letters[0] == op.subscripts[-1]
        return f'tl.dot({row}, {f"tl.trans({weight})" if turned else weight}, input_precision="tf32x3")'

    def _outer(self, position: int, op: Op, operands: list[str]) -> None:
        """A weight gradient: summed over the tile's rows in registers, then added to the relation's matrix."""
        left, right = operands if op.subscripts[-1] == "".join(op.subscripts[:-1]) else reversed(operands)
        down, across = op.shape
        self.head.append(f"r{position} = tl.zeros(({padded(down)}, {padded(across)}), tl.float32)")
        mask = "ok" if any(i in self.kernel.partial for i in op.inputs) else "once"
        own = self.after if late(self.program, self.kernel, position) else self.before
        own.append(f'r{position} += tl.dot(tl.trans(tl.where({mask}[:, None], {left}, 0.0)), {right}, input_precision="tf32x3")')
        rows, columns = self.columns(down), self.columns(across)
        offset = ("relation" if op.domain is Domain.ETYPE else "0") + f" * {op.width} + {rows}[:, None] * {across} + {columns}[None, :]"
        wanted = f"tl.where(tile_first < tile_last, {down}, 0)"  # a mask of a scalar's would be no Boolean to Triton 3.9's interpreter
        inside = f"({rows}[:, None] < {wanted}) & ({columns}[None, :] < {across})"
        self.tail.append(f'tl.atomic_add({self.argument("out", position)} + {offset}, r{position}, mask={inside}, sem="relaxed")')

    # --- results -------------------------------------------------------------------------------------------------------

    def _keep(self, position: int, op: Op) -> None:
        """Write a result where it goes."""
        if position not in self.kernel.stored:
            return
        pointer = self.argument("out", position)
        mask = "ok" if position in self.kernel.partial else "once"
        if op.domain in {Domain.ETYPE, Domain.ONE} and op.sums:
            self._onto_relation(position, op, pointer, mask)
            return
        index = self.row_of(op.domain)
        where, inside = self.place(index, op.shape[0], mask) if op.shape else (index, mask)
        if op.kind == "segmax":
            self.after.append(f'tl.atomic_max({pointer} + {where}, r{position}, mask={inside}, sem="relaxed")')
        elif added(op, position, self.kernel):
            self.after.append(f'tl.atomic_add({pointer} + {where}, r{position}, mask={inside}, sem="relaxed")')
        else:
            self.after.append(f"tl.store({pointer} + {where}, r{position}, mask={inside})")

    def _onto_relation(self, position: int, op: Op, pointer: str, mask: str) -> None:
        relation = "relation" if op.domain is Domain.ETYPE else "0"
        if op.shape:
            columns = self.columns(op.shape[0])
            total, where = f"tl.sum(tl.where({mask}[:, None], r{position}, 0.0), 0)", f"{relation} * {op.shape[0]} + {columns}"
            self.after.append(f'tl.atomic_add({pointer} + {where}, {total}, mask={columns} < {op.shape[0]}, sem="relaxed")')
        else:
            self.after.append(f'tl.atomic_add({pointer} + {relation}, tl.sum(tl.where({mask}, r{position}, 0.0), 0), sem="relaxed")')


TABLE = ("chunk_row", "chunk_begin", "chunk_end", "chunk_first", "tile_relation", "tile_begin", "tile_end")

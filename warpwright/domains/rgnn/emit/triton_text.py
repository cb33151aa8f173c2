"""The text of a Triton kernel over rows. float32; a product is three of TF32, which keep its precision.

A row of more than WHOLE numbers is held in windows of NARROW columns, a tensor each. A product with a weight of that width reads its rows and the
weight in a loop, DEPTH columns at a time. A weight gradient of that width has a kernel of its own, each program of it a block of BLOCK by BLOCK.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpwright.domains.rgnn.emit.launch import Argument
from warpwright.domains.rgnn.emit.rows import WHOLE, Kernel, Schedule, added, gradient_alone, late, wide_product
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
    again: bool | None = None
    """Are numbers of edges computed again by every kernel that reads them, rather than stored? None: on small graphs."""
    stages: int = 0
    """Of a loop over edges. 2 or more: reads are copies to shared memory, some steps ahead; 1: reads as they stand; 0: barriers keep their order."""
    gradients: str = "own"
    """Who has the weight gradients of large graphs: a CUDA kernel of their own (outer.py), or Triton by three products of TF32 (tf32x3) or six of
    bfloat16 (bf16x6), or, where the rows are sums, the kernel that sums them (beside)."""
    gathers: str = "own"
    """Who sums rows over edges and multiplies the sums on large graphs: a CUDA kernel (gathered.py), or triton."""
    scout: str = ""
    """Kernels that ask for the rows of a step while the step before it is at work: those with products, all, or none (an empty string)."""
    overlap: bool = False
    """Do the weight gradients of large graphs run on a stream of their own, beside what else a backward does (aside.py)?"""


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


NARROW = 64
"""Columns of a window."""
BLOCK = 128
"""Sides of a block of a weight gradient."""
DEPTH = 32
"""Columns of a row that one step of a wide product takes."""


THIRD = 168
"""Registers of a thread with which three programs of four warps are on a multiprocessor; their shared memory lets in no more."""


def padded(size: int) -> int:
    """Return the power of two, at least 16, that holds `size`: tensor cores take no less."""
    return max(16, 1 << (size - 1).bit_length())


@dataclass(frozen=True)
class Read:
    """Rows, or numbers, of a value that a step of a kernel reads from memory."""

    array: str
    """The parameter."""
    width: int
    domain: Domain
    edge: int | None = None
    """Which edge of a step of the loop it is of; None: it is of the kernel's row."""


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
    loads: list[tuple[int, str]] = field(default_factory=list)
    """What is read for each edge: rank (numbers of rows, numbers, rows, what is computed from them) and line."""
    sums: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    lifts: list[str] = field(default_factory=list)
    """What reads the numbers of rows, where rows are asked for ahead: those of the next step are read beside them."""
    reads: dict[Read, None] = field(default_factory=dict)
    """What is read from memory, in order."""
    side: str = ""
    """Of a wide weight gradient, whose rows are being written: the only window of a row."""

    @property
    def program(self) -> Program:
        """The program that the kernel is a part of."""
        return self.schedule.program

    @property
    def widest(self) -> int:
        """The widest row or weight that it meets."""
        return max([1, *(n for i in self.kernel.ops for n in self._sizes(i))])

    @property
    def step(self) -> int:
        """Rows of one step."""
        widest = self.widest
        if self.outer and (not self.tuning.step or widest > WHOLE):  # 64 rows beside a weight gradient spill 112 to 600 bytes of registers, 32 none
            return 32
        if self.tuning.step and 1 < widest <= WHOLE:
            return self.tuning.step
        if self.of_edges:
            return 1024
        if widest == 1:
            return 256
        if not self.products:  # bound by gathers: fewer registers, more programs on a core
            return 32 if padded(widest) <= 64 else 16
        if widest > WHOLE:  # the least that Hopper's tensor cores take; 64 results of 256 numbers are 128 registers of each thread
            return 64
        return 64 if padded(widest) <= 64 else 32

    def _sizes(self, position: int) -> list[int]:
        """Return the widths of a value and of what it reads; a weight read whole has two."""
        return [n for i in (position, *self.program.ops[position].inputs) for n in self.program.ops[i].shape]

    @property
    def of_edges(self) -> bool:
        """Does it compute numbers of edges from numbers alone? Its rows are the edges, and it needs no work list."""
        return self.kernel.rows is Domain.EDGE

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
        early, asked = scouting(self)
        looping = bool(self.loads or self.sums)
        body = [*early, *self.lifts, *([] if looping else asked), *self.before, *self.start]
        body += [*loop, *asked, *self.after] if looping else self.after
        parameters = ", ".join([*self.arguments, *TABLE])
        shared = f" // {self.blocks}" if self.blocks else ""
        lines = [
            "import triton", "import triton.language as tl", "", *(ASK.splitlines() if asked else []), "", "@triton.jit",
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

    @property
    def blocks(self) -> int:
        """Blocks of a wide weight gradient, each of which a program has; 0 in other kernels."""
        last = self.program.ops[self.kernel.ops[-1]]
        if not gradient_alone(self.program, last):
            return 0
        down, across = (-(-n // BLOCK) if padded(n) > WHOLE else 1 for n in last.shape)
        return down * across

    @property
    def scouts(self) -> bool:
        """Are rows asked for a step ahead?"""
        asked = {"all": True, "products": self.products}.get(self.tuning.scout, False)
        return asked and not self.of_edges and not self.blocks and self.widest <= WHOLE

    @property
    def precision(self) -> str:
        """How a weight gradient keeps float32's precision."""
        return "bf16x6" if self.tuning.gradients == "bf16x6" else "tf32x3"

    @property
    def unroll(self) -> int:
        """Edges of a row in one step of the loop."""
        if self.products and self.widest > WHOLE:
            return 1  # 64 rows of 1 KB are enough bytes under way
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
        if self.widest > WHOLE and self.products and not self.outer:
            return 4
        return self.tuning.warps or (8 if padded(self.widest) > 64 else 4)

    @property
    def registers(self) -> int:
        """Registers that a thread may have; 0: as many as the compiler takes. What asks for rows would take 220, and the third program's place."""
        return THIRD if self.scouts and self.products and self.warps == 4 else 0

    # --- operands ------------------------------------------------------------------------------------------------------

    def argument(self, kind: str, of: Any = None) -> str:
        """Return the name of a parameter, added where it is new."""
        argument = Argument(kind, of)
        self.arguments.setdefault(argument.name, argument)
        return argument.name

    def windows(self, size: int) -> list[str]:
        """Return the names of the windows of a row of `size`: one without a name where it is held whole."""
        if padded(size) <= WHOLE:
            return [""]
        return [self.side] if self.side else [f"_{n}" for n in range(-(-size // NARROW))]

    def of(self, value: int) -> list[str]:
        """Return the windows of a value's row; those of a number are one without a name."""
        shape = self.program.ops[value].shape
        return self.windows(shape[0]) if shape else [""]

    def width(self, size: int, window: str) -> int:
        """Return how many columns a window has in registers."""
        return padded(size) if not window else BLOCK if window in SIDES else DEPTH if window.startswith("k") else NARROW

    def columns(self, size: int, window: str = "") -> str:
        """Return the name of the column numbers of a window of a row of `size`."""
        name = f"c{size}{window}"
        if name not in self.known and not window.startswith("k"):  # those of a loop are made in it
            self.known.add(name)
            first = "" if not window else f"block{window} * {BLOCK} + " if window in SIDES else f"{int(window[1:]) * NARROW} + "
            self.head.append(f"{name} = {first}tl.arange(0, {self.width(size, window)})")
        return name

    def inside(self, size: int, window: str = "") -> bool:
        """Do all columns of a window lie in a row of `size`?"""
        return padded(size) == size if not window else size % self.width(size, window) == 0

    def place(self, index: str, size: int, mask: str, window: str = "") -> tuple[str, str]:
        """Return offsets and mask of a window of rows `index` of width `size`."""
        columns = self.columns(size, window)
        inside = "" if self.inside(size, window) else f" & ({columns}[None, :] < {size})"
        return f"{index}[:, None].to(tl.int64) * {size} + {columns}[None, :]", f"{mask}[:, None]{inside}"

    def of_row(self, value: int, window: str = "") -> str:
        """Return the expression of a window of an operand that the row determines."""
        op = self.program.ops[value]
        window = window if op.shape and padded(op.shape[0]) > WHOLE else ""
        if value in self.kernel.ops:
            return f"r{value}{window}"
        name = f"m{value}{window}"
        if name in self.known:
            return name
        self.known.add(name)
        if value in self.schedule.inline:
            self.before.append(f"{name} = {self._expression(op, [self.of_row(i) for i in op.inputs])}")
            return name
        pointer = self.argument("value", value)
        if op.domain in {Domain.ONE, Domain.ETYPE} and (op.domain is Domain.ONE or self.kernel.rows in PAIRS):
            self.head.append(f"{name} = {self._of_relation(pointer, op, window)}")
            return name
        self.before += self._loaded(name, pointer, self.row_of(op.domain), op, "ok", window)
        self.reads[Read(pointer, op.width, op.domain)] = None
        return name

    def _of_relation(self, pointer: str, op: Op, window: str) -> str:
        relation = "relation" if op.domain is Domain.ETYPE else "0"
        if not op.shape:
            return f"tl.load({pointer} + {relation})"
        if len(op.shape) == 1:
            columns = self.columns(op.shape[0], window)
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
            own = self.lifts if self.scouts else self.before
            own.append(f"{name} = tl.load({self.argument('lift', domain)} + row, mask=ok, other=0)")
        return name

    def _loaded(self, name: str, pointer: str, index: str, op: Op, mask: str, window: str = "") -> list[str]:
        if not op.shape:
            load = [f"{name} = tl.load({pointer} + {index}, mask={mask}, other=0.0)"]
            return load if op.kind != "segmax" else [*load, f"{name} = tl.where({name} == float('-inf'), 0.0, {name})"]
        where, inside = self.place(index, op.shape[0], mask, window)
        return [f"{name} = tl.load({pointer} + {where}, mask={inside}, other=0.0)"]

    def of_edge(self, value: int, n: int, window: str = "") -> str:
        """Return the expression of a window of an operand at the `n`th edge of a step."""
        op = self.program.ops[value]
        if op.domain <= self.kernel.rows and (value not in self.schedule.inline or op.domain is not Domain.EDGE):
            return self.of_row(value, window)
        window = window if op.shape and padded(op.shape[0]) > WHOLE else ""
        name = f"e{value}_{n}{window}"
        if name in self.known:
            return name
        self.known.add(name)
        if value in self.schedule.inline:
            self.loads.append((3, f"{name} = {self._expression(op, [self.of_edge(i, n) for i in op.inputs])}"))
        else:
            lines = self._loaded(name, self.argument("value", value), self.edge_row(op.domain, n), op, self.edge_mask(n), window)
            self.reads[Read(self.argument("value", value), op.width, op.domain, n)] = None
            self.loads += [(3 if number else 2 if op.shape else 1, line) for number, line in enumerate(lines)]
        return name

    @staticmethod
    def _expression(op: Op, operands: Sequence[str]) -> str:
        return FUNCTIONS[op.function].format(*operands, c=repr(op.constant)) if op.kind == "map" else " * ".join(operands)

    def edge_mask(self, n: int) -> str:
        """Return the name of the mask of the `n`th edge of a step."""
        if f"k_{n}" not in self.known:
            self.known.add(f"k_{n}")
            self.loads += [(0, f"j_{n} = begin + at + {n}"), (0, f"k_{n} = j_{n} < end")]
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
            self.loads.append((0, f"{name} = tl.load({pointer} + j_{n}, mask={mask}, other=0)"))
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
            if op.kind == "map":
                value = self._expression(op, [self.of_edge(i, n) for i in op.inputs])
            else:
                value = self._product(op, lambda i, window, n=n: self.of_edge(i, n, window), "")  # type: ignore[misc]
            self.sums.append(f"tl.store({self.argument('out', position)} + {self.edge_row(Domain.EDGE, n)}, {value}, mask={self.edge_mask(n)})")

    def _over_edges(self, position: int, op: Op) -> None:
        for window in self.of(position):
            shape = f"({self.step}, {self.width(op.shape[0], window)})" if op.shape else f"({self.step},)"
            filling = "float('-inf')" if op.kind == "segmax" else "0.0"
            self.start.append(f"r{position}{window} = tl.full({shape}, {filling}, tl.float32)")
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
                value = self._product(op, self.of_row, window)
            own.append(f"r{position}{window} = {value}")
        self._keep(position, op)

    def _mapped(self, op: Op, window: str) -> str:
        short = [bool(op.shape) and not self.program.ops[i].shape and self._is_row(i) for i in op.inputs]
        operands = [self.of_row(i, window) for i in op.inputs]
        wide = [f"{x}[:, None]" if one else x for x, one in zip(operands, short, strict=True)]
        return FUNCTIONS[op.function].format(*wide, c=repr(op.constant))

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

    # --- results -------------------------------------------------------------------------------------------------------

    def _keep(self, position: int, op: Op, windows: Sequence[str] | None = None) -> None:
        """Write a result, or some windows of it, where it goes."""
        for window in (self.of(position) if windows is None else windows) if position in self.kernel.stored else ():
            self._kept(position, op, window)

    def _kept(self, position: int, op: Op, window: str) -> None:
        pointer, name = self.argument("out", position), f"r{position}{window}"
        mask = "ok" if position in self.kernel.partial else "once"
        if op.domain in {Domain.ETYPE, Domain.ONE} and op.sums:
            self._onto_relation(op, pointer, mask, name, window)
            return
        index = self.row_of(op.domain)
        where, inside = self.place(index, op.shape[0], mask, window) if op.shape else (index, mask)
        if op.kind == "segmax":
            self.after.append(f'tl.atomic_max({pointer} + {where}, {name}, mask={inside}, sem="relaxed")')
        elif added(op, position, self.kernel):
            self.after.append(f'tl.atomic_add({pointer} + {where}, {name}, mask={inside}, sem="relaxed")')
        else:
            self.after.append(f"tl.store({pointer} + {where}, {name}, mask={inside})")

    def _onto_relation(self, op: Op, pointer: str, mask: str, name: str, window: str) -> None:
        relation = "relation" if op.domain is Domain.ETYPE else "0"
        if op.shape:
            columns = self.columns(op.shape[0], window)
            total, where = f"tl.sum(tl.where({mask}[:, None], {name}, 0.0), 0)", f"{relation} * {op.shape[0]} + {columns}"
            self.after.append(f'tl.atomic_add({pointer} + {where}, {total}, mask={columns} < {op.shape[0]}, sem="relaxed")')
        else:
            self.after.append(f'tl.atomic_add({pointer} + {relation}, tl.sum(tl.where({mask}, {name}, 0.0), 0), sem="relaxed")')


SIDES = ("_down", "_across")
"""Windows of a wide weight gradient's rows and columns."""

EDGES = "edges"
"""The parameter that points to the number of edges."""

TABLE = ("chunk_row", "chunk_begin", "chunk_end", "chunk_first", "tile_relation", "tile_begin", "tile_end")


# --- asking for rows ahead ---------------------------------------------------------------------------------------------

ASK = """
@triton.jit
def ask(address, ok):
    asm: tl.constexpr = "{ .reg .pred p; setp.ne.s32 p, $2, 0; @p prefetch.global.L2 [$1]; mov.u32 $0, 0; }"
    tl.inline_asm_elementwise(asm, "=r,l,r", [address.to(tl.int64), ok.to(tl.int32)], dtype=tl.int32, is_pure=False, pack=1)
"""
"""What asks for the sectors of addresses to be in the second cache. The bulk copy engine's way, of a whole row, runs for one thread at a time."""
SECTOR = 8
"""Numbers of a sector."""


def scouting(writer: Writer) -> tuple[list[str], list[str]]:
    """Return lines that ask for what the next steps read: those for the begin of a step, then those that ask for rows. None where none is wanted.

    A step waits for its part of the work list, then for the numbers of its rows, then for the rows: three times a memory's latency, one after the
    other. So a step asks for the part of the list three steps on, for the numbers two steps on, and for the rows of the next step. Nothing is kept
    for them: values that a loop carries took 125 registers more.
    """
    if not writer.scouts:
        return [], []
    step, rows = writer.step, writer.kernel.rows
    looping = bool(writer.loads or writer.sums)
    tables = ("row", "begin", "end") if looping else ("row",)
    early = [f"{name}_at = chunk + {count * step}" for name, count in (("near", 1), ("far", 2), ("last", 3))]
    early += [f"{name}_ok = {name}_at < tile_last" for name in ("near", "far", "last")]
    early += [_ask(f"chunk_{table} + last_at", "last_ok") for table in (*tables, "first")]
    early += [f"{name}_{table} = tl.load(chunk_{table} + {name}_at, mask={name}_ok, other=0)" for table in tables for name in ("near", "far")]
    places: dict[tuple[Domain, int | None], tuple[str, str]] = {}
    for read in writer.reads:
        key = read.domain, read.edge
        if key not in places:
            places[key] = _scouted(writer, rows, *key, early)
    asked = []
    for read in writer.reads:
        place, ok = places[read.domain, read.edge]
        if read.width == 1:
            asked.append(_ask(f"{read.array} + {place}", ok))
            continue
        parts = f"{SECTOR} * tl.arange(0, {padded(read.width) // SECTOR})[None, :]"
        asked.append(_ask(f"{read.array} + {place}[:, None].to(tl.int64) * {read.width} + {parts}", f"{ok}[:, None] & ({parts} < {read.width})"))
    return early, asked


def _scouted(writer: Writer, rows: Domain, domain: Domain, edge: int | None, early: list[str]) -> tuple[str, str]:
    """Append what reads the numbers of a step's rows of a domain, and asks for those of the step after it; return their name, and of their mask."""
    if edge is None:
        if domain is rows:
            return "near_row", "near_ok"
        array, name = writer.argument("lift", domain), f"near_{domain.name.lower()}"
        early += [_ask(f"{array} + far_row", "far_ok"), f"{name} = tl.load({array} + near_row, mask=near_ok, other=0)"]
        return name, "near_ok"
    ok, name = f"near_ok_{edge}", f"near_{domain.name.lower()}_{edge}"
    early.append(f"{ok} = near_begin + {edge} < near_end")
    if domain is Domain.EDGE and rows is Domain.PAIR_DST:
        early.append(f"{name} = near_begin + {edge}")
        return name, ok
    array = writer.argument("order") if domain is Domain.EDGE else writer.argument("along", domain)
    if not edge:
        early.append(_ask(f"{array} + far_begin", "far_begin < far_end"))
    early.append(f"{name} = tl.load({array} + near_begin + {edge}, mask={ok}, other=0)")
    return name, ok


def _ask(address: str, ok: str) -> str:
    return f"ask({address}, {ok})"

"""What a Triton kernel reads and writes: its parameters, the windows of rows and where they lie, operands by their names, results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpwright.domains.rgnn.emit.launch import Argument
from warpwright.domains.rgnn.emit.places import WHOLE
from warpwright.domains.rgnn.emit.rows import added
from warpwright.domains.rgnn.emit.triton.tuning import BLOCK, DEPTH, NARROW, Scheduled, padded
from warpwright.domains.rgnn.ir import Op
from warpwright.domains.rgnn.lattice import PAIRS, Domain

FUNCTIONS: Mapping[str, str] = {
    "neg": "-{0}", "exp": "tl.exp(({0}).to(tl.float32))", "log": "tl.log({0})", "sqrt": "tl.sqrt({0})", "reciprocal": "1.0 / {0}",
    "inverse": "tl.where({0} == 0, 0.0, 1.0 / {0})", "relu": "tl.maximum({0}, 0.0)", "leaky_relu": "tl.where({0} > 0, {0}, {0} * {c})",
    "leaky_slope": "tl.where({0} > 0, 1.0, {c})", "elu": "tl.where({0} > 0, {0}, {c} * (tl.exp({0}) - 1.0))",
    "tanh": "(2.0 * tl.sigmoid(2.0 * {0}) - 1.0)", "sigmoid": "tl.sigmoid({0})", "gelu": "(0.5 * {0} * (1.0 + tl.erf({0} * 0.7071067811865476)))",
    "gelu_slope": "(0.5 * (1.0 + tl.erf({0} * 0.7071067811865476)) + {0} * tl.exp(-0.5 * {0} * {0}) * 0.3989422804014327)",
    "scale": "({0} * {c})", "shift": "({0} + {c})", "positive": "tl.where({0} > 0, 1.0, 0.0)", "detach": "{0}", "add": "({0} + {1})",
    "sub": "({0} - {1})", "maximum": "tl.maximum({0}, {1})", "equal": "tl.where({0} == {1}, 1.0, 0.0)",
}  # fmt: skip

SIDES = ("_down", "_across")
"""Windows of a wide weight gradient's rows and columns."""


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
class Memory(Scheduled):
    """The lines of a kernel, by where they stand in it, and the names that they have given."""

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

    # --- where rows lie ------------------------------------------------------------------------------------------------

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

    # --- operands ------------------------------------------------------------------------------------------------------

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

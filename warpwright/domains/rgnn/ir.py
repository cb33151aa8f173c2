"""The inter-operator IR: SSA values with a domain (lattice.py) and a shape per row, in frozen dataclasses.

    input(name)                a tensor of the caller: features or weights
    view                       the same rows under another name (NODE as SRC, NTYPE as TSRC)
    reshape                    the same row in another shape
    map(function, constant)    an elementwise function; operands are lifted to the joined domain
    contract(subscripts, over) the product of the operands, summed over features (einsum) and over the rows of `over` that share a row of the domain
    segmax(over)               the same with a maximum, of one operand; 0 where a row has no elements
    count(over)                how many rows of `over` share a row of the domain

Every linear operation is a `contract`: a typed linear layer, an inner product, a weighted aggregation and a weight gradient. That is why one
rule differentiates them all (derive.py) and one search reorders them all (order.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from warpwright.domains.rgnn.lattice import Domain, join
from warpwright.errors import UsageError

Kind = Literal["input", "view", "reshape", "map", "contract", "segmax", "count"]

Shape = tuple[int, ...]

UNARY = frozenset({
    "neg", "exp", "log", "sqrt", "reciprocal", "inverse", "relu", "leaky_relu", "leaky_slope", "elu", "tanh", "sigmoid", "gelu", "gelu_slope",
    "scale", "shift", "positive", "detach",
})  # fmt: skip
BINARY = frozenset({"add", "sub", "maximum", "equal"})


@dataclass(frozen=True)
class Op:
    """One value. `inputs` are positions in the program."""

    kind: Kind
    domain: Domain
    shape: Shape
    inputs: tuple[int, ...] = ()
    function: str = ""
    """Of an input its name, of a map its function."""
    """`inverse` is 1 / x, and 0 for 0: what a sum without elements is divided by."""
    constant: float = 0.0
    """Slope of leaky_relu, factor of scale, summand of shift."""
    subscripts: tuple[str, ...] = ()
    """Of a contract: those of the operands, then those of the result."""
    over: Domain = Domain.ONE
    """Of contract, segmax and count: the rows that are summed over."""

    @property
    def width(self) -> int:
        """Numbers per row."""
        product = 1
        for size in self.shape:
            product *= size
        return product

    @property
    def sums(self) -> bool:
        """Does it reduce rows?"""
        return self.kind in {"contract", "segmax", "count"} and self.over is not self.domain


@dataclass(frozen=True)
class Program:
    """Values in an order of computation, and which of them are the results."""

    ops: tuple[Op, ...]
    outputs: tuple[int, ...]

    def names(self) -> dict[str, int]:
        """Return the inputs by name."""
        return {op.function: position for position, op in enumerate(self.ops) if op.kind == "input"}

    def __str__(self) -> str:
        lines = []
        for position, op in enumerate(self.ops):
            inside = " ".join(f"%{i}" for i in op.inputs)
            detail = ",".join(op.subscripts[:-1]) + "->" + op.subscripts[-1] if op.subscripts else op.function
            detail += f" {op.constant:g}" if op.constant else ""
            over = f" over {op.over.name}" if op.sums else ""
            lines.append(f"%{position}: {op.domain.name}{list(op.shape)} = {op.kind} {detail} {inside}".rstrip() + over)
        return "\n".join([*lines, "return " + " ".join(f"%{i}" for i in self.outputs)])


NARROW = 16
"""Numbers that an edge's value may have to be computed again wherever it is read, rather than stored."""


def narrow(program: Program, op: Op) -> bool:
    """Is it an edge's value, of few numbers, each of which comes from few numbers?"""
    if op.domain is not Domain.EDGE or op.kind not in {"map", "contract"} or op.sums:
        return False
    reduced = op.kind == "contract" and any(c not in op.subscripts[-1] for s in op.subscripts for c in s)
    return not reduced and all(len(x.shape) <= 1 and x.width <= NARROW for x in (op, *(program.ops[i] for i in op.inputs)))


class Builder:
    """Appends operations; equal ones are one value (common subexpressions), and what does nothing is left out."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.seen: dict[Op, int] = {}

    def add(self, op: Op) -> int:
        """Return the position of `op`, appended where it is new."""
        if op not in self.seen:
            self.seen[op] = len(self.ops)
            self.ops.append(op)
        return self.seen[op]

    def input(self, name: str, domain: Domain, shape: Shape) -> int:
        """Append an input."""
        return self.add(Op("input", domain, shape, function=name))

    def view(self, value: int, domain: Domain) -> int:
        """Name the rows of `value` by another domain of the same size."""
        source = self.ops[value]
        if source.kind == "view":
            return self.view(source.inputs[0], domain)
        return value if source.domain is domain else self.add(Op("view", domain, source.shape, (value,)))

    def reshape(self, value: int, shape: Shape) -> int:
        """Give each row of `value` another shape."""
        source = self.ops[value]
        if source.kind == "reshape":
            return self.reshape(source.inputs[0], shape)
        return value if source.shape == shape else self.add(Op("reshape", source.domain, shape, (value,)))

    def map(self, function: str, *values: int, constant: float = 0.0) -> int:
        """Append an elementwise function. Shapes are those of the widest operand, or its trailing dimensions with ones."""
        if function not in UNARY | BINARY:
            raise UsageError(f"expected one of {', '.join(sorted(UNARY | BINARY))}, saw {function}")
        operands = [self.ops[value] for value in values]
        shape = _broadcast([operand.shape for operand in operands])
        return self.add(Op("map", join(*(operand.domain for operand in operands)), shape, values, function, constant))

    def contract(
        self, values: Sequence[int], subscripts: Sequence[str], result: str, over: Domain | None = None, domain: Domain | None = None
    ) -> int:
        """Append a product of `values`, summed over the letters that `result` lacks and over the rows of `over` that share a row of `domain`."""
        operands = [self.ops[value] for value in values]
        over = over or join(*(operand.domain for operand in operands))
        domain = domain or over
        sizes: dict[str, int] = {}
        for operand, letters in zip(operands, subscripts, strict=True):
            if len(letters) != len(operand.shape):
                raise UsageError(f"expected {len(operand.shape)} subscripts for a row of shape {operand.shape}, saw {letters!r}")
            for letter, size in zip(letters, operand.shape, strict=True):
                if sizes.setdefault(letter, size) != size:
                    raise UsageError(f"expected equal sizes along {letter!r}, saw {sizes[letter]} and {size}")
        if not domain <= over or any(not operand.domain <= over for operand in operands):
            raise UsageError(f"expected operands and a result within {over}, saw {[operand.domain for operand in operands]} and {domain}")
        if len(values) == 1 and over is domain is operands[0].domain and subscripts[0] == result:
            return values[0]
        shape = tuple(sizes[letter] for letter in result)
        return self.add(Op("contract", domain, shape, tuple(values), subscripts=canonical([*subscripts, result]), over=over))

    def segmax(self, value: int, domain: Domain, over: Domain = Domain.EDGE) -> int:
        """Append the maximum over the edges, or other rows, of each row of `domain`."""
        return self.add(Op("segmax", domain, self.ops[value].shape, (value,), over=over))

    def count(self, domain: Domain) -> int:
        """Append the number of edges of each row of `domain`."""
        return self.add(Op("count", domain, (), over=Domain.EDGE))

    def copy(self, op: Op, inputs: Sequence[int]) -> int:
        """Append `op` with other inputs."""
        if op.kind == "contract":
            return self.contract(inputs, op.subscripts[:-1], op.subscripts[-1], op.over, op.domain)
        return self.add(replace(op, inputs=tuple(inputs)))

    def program(self, outputs: Sequence[int]) -> Program:
        """Return what `outputs` need, without dead values."""
        alive, stack = set(outputs), list(outputs)
        while stack:
            for value in self.ops[stack.pop()].inputs:
                if value not in alive:
                    alive.add(value)
                    stack.append(value)
        place = {old: new for new, old in enumerate(sorted(alive))}
        ops = tuple(replace(self.ops[old], inputs=tuple(place[i] for i in self.ops[old].inputs)) for old in sorted(alive))
        return Program(ops, tuple(place[i] for i in outputs))


def canonical(subscripts: Sequence[str]) -> tuple[str, ...]:
    """Return subscripts with letters named in order of appearance, so that equal products are one value."""
    names: dict[str, str] = {}
    for text in subscripts:
        for letter in text:
            names.setdefault(letter, chr(ord("a") + len(names)))
    return tuple("".join(names[letter] for letter in text) for text in subscripts)


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    widest = max(shapes, key=len)
    result = list(widest)
    for shape in shapes:
        for back, size in enumerate(reversed(shape), 1):
            if result[-back] == 1:
                result[-back] = size
            elif size not in {1, result[-back]}:
                raise UsageError(f"expected shapes that broadcast, saw {' and '.join(map(str, shapes))}")
    return tuple(result)


def verify(program: Program) -> None:
    """Raise UsageError for a program that no builder could have made: positions out of order, domains or shapes that do not fit."""
    builder = Builder()
    for position, op in enumerate(program.ops):
        if any(not 0 <= value < position for value in op.inputs):
            raise UsageError(f"expected %{position} to use earlier values, saw {op.inputs}")
        remade = builder.ops[builder.copy(op, op.inputs)] if op.kind == "contract" else op
        fits = remade.shape == op.shape and remade.domain is op.domain
        if op.kind == "map":
            operands = [program.ops[value] for value in op.inputs]
            fits = op.domain is join(*(x.domain for x in operands)) and op.shape == _broadcast([x.shape for x in operands])
        if op.kind == "reshape":
            fits = op.width == program.ops[op.inputs[0]].width
        if not fits:
            raise UsageError(f"expected %{position} to have the domain and shape of its operands, saw {op.domain}{op.shape}")
        builder.ops, builder.seen = list(program.ops[: position + 1]), {}
    if any(not 0 <= value < len(program.ops) for value in program.outputs):
        raise UsageError(f"expected outputs in the program, saw {program.outputs}")

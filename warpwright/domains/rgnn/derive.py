"""Differentiation in the same IR: program -> program with the gradients of chosen inputs as outputs.

A `contract` has one rule: the gradient of an operand is the contract of the others and of the incoming gradient, over the same rows, onto the
operand's domain. Lifting a value and summing it are each other's transpose, so no other rule knows about the graph.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.rgnn.ir import Builder, Op, Program
from warpwright.domains.rgnn.lattice import Domain
from warpwright.errors import NotApplicable

GRADIENT = "gradient"
"""Name of the input that holds the gradient of the program's only output."""


def differentiate(program: Program, wanted: Sequence[str]) -> Program:
    """Return a program whose outputs are the output of `program` and the gradients of the inputs `wanted`; raise NotApplicable without one."""
    builder = Builder()
    for op in program.ops:
        builder.add(op)
    (output,) = program.outputs
    names = program.names()
    needed = _dependents(program, {names[name] for name in wanted})
    result = program.ops[output]
    parts: dict[int, list[int]] = {output: [builder.input(GRADIENT, result.domain, result.shape)]}
    for position in reversed(range(len(program.ops))):
        if position not in needed or position not in parts or program.ops[position].kind == "input":
            continue
        gradient = _added(builder, parts[position])
        for operand, part in _operands(builder, program, position, gradient, needed):
            parts.setdefault(operand, []).append(part)
    missing = [name for name in wanted if names[name] not in parts]
    if missing:
        raise NotApplicable(f"expected an output that depends on {', '.join(missing)}")
    return builder.program([output, *(_added(builder, parts[names[name]]) for name in wanted)])


def _dependents(program: Program, inputs: set[int]) -> set[int]:
    needed = set(inputs)
    for position, op in enumerate(program.ops):
        if any(value in needed for value in op.inputs) and op.function not in {"detach", "equal", "positive", "leaky_slope"}:
            needed.add(position)
    return needed


def _added(builder: Builder, parts: Sequence[int]) -> int:
    total = parts[0]
    for part in parts[1:]:
        total = builder.map("add", total, part)
    return total


def _operands(builder: Builder, program: Program, position: int, gradient: int, needed: set[int]) -> list[tuple[int, int]]:
    op = program.ops[position]
    if op.kind == "view":
        return [(op.inputs[0], builder.view(gradient, program.ops[op.inputs[0]].domain))]
    if op.kind == "reshape":
        return [(op.inputs[0], builder.reshape(gradient, program.ops[op.inputs[0]].shape))]
    if op.kind == "contract":
        return [(value, _of_factor(builder, program, op, i, gradient)) for i, value in enumerate(op.inputs) if value in needed]
    if op.kind == "segmax":
        return [(op.inputs[0], _of_maximum(builder, program, op, position, gradient))]
    return [
        (value, _onto(builder, factors, op, program.ops[value]))
        for value, factors in zip(op.inputs, _slopes(builder, op, position, gradient), strict=True)
        if value in needed
    ]


def _of_factor(builder: Builder, program: Program, op: Op, which: int, gradient: int) -> int:
    others = [i for i in range(len(op.inputs)) if i != which]
    wanted, result = op.subscripts[which], op.subscripts[-1]
    letters = [*(op.subscripts[i] for i in others), result]
    values = [*(op.inputs[i] for i in others), gradient]
    lacking = "".join(c for c in wanted if not any(c in text for text in letters))
    if lacking:  # summed alone in the product: its gradient is the same along that dimension
        values.append(ones(builder, op.inputs[which]))
        letters.append(wanted)
    return builder.contract(values, letters, wanted, op.over, program.ops[op.inputs[which]].domain)


def ones(builder: Builder, like: int) -> int:
    """Append ones of the shape of `like`."""
    return builder.map("equal", like, like)


def _of_maximum(builder: Builder, program: Program, op: Op, position: int, gradient: int) -> int:
    """The gradient is shared equally by the edges that attain the maximum."""
    letters = "abcdefgh"[: len(op.shape)]
    attained = builder.map("equal", op.inputs[0], position)
    ties = builder.contract([attained], [letters], letters, Domain.EDGE, op.domain)
    ties = builder.map("maximum", ties, ones(builder, ties))
    share = builder.contract([gradient, builder.map("reciprocal", ties)], [letters, letters], letters)
    return builder.contract([attained, share], [letters, letters], letters, Domain.EDGE, program.ops[op.inputs[0]].domain)


def _slopes(builder: Builder, op: Op, position: int, gradient: int) -> list[list[int]]:
    """Return for each operand the factors whose product is its gradient, before it is summed onto the operand's rows."""
    name, inputs = op.function, op.inputs
    if name == "add":
        return [[gradient], [gradient]]
    if name == "sub":
        return [[gradient], [builder.map("scale", gradient, constant=-1.0)]]
    if name == "scale":
        return [[builder.map("scale", gradient, constant=op.constant)]]
    if name == "shift":
        return [[gradient]]
    if name == "neg":
        return [[builder.map("scale", gradient, constant=-1.0)]]
    if name == "exp":
        return [[gradient, position]]
    if name == "log":
        return [[gradient, builder.map("reciprocal", inputs[0])]]
    if name == "sqrt":
        return [[builder.map("scale", gradient, constant=0.5), builder.map("reciprocal", position)]]
    if name in {"reciprocal", "inverse"}:
        return [[builder.map("scale", gradient, constant=-1.0), position, position]]
    if name == "leaky_relu":
        return [[gradient, builder.map("leaky_slope", inputs[0], constant=op.constant)]]
    if name == "relu":
        return [[gradient, builder.map("positive", inputs[0])]]
    if name == "elu":  # 1 where x > 0, else the value plus the constant
        positive = builder.map("positive", inputs[0])
        slope, above = builder.map("shift", position, constant=op.constant), builder.map("shift", position, constant=op.constant - 1)
        below = builder.map("sub", slope, builder.map("relu", above))
        return [[gradient, builder.map("maximum", positive, below)]] if op.constant <= 1 else _refuse(name)
    if name == "tanh":
        square = builder.contract([position, position], ["abcdefgh"[: len(op.shape)]] * 2, "abcdefgh"[: len(op.shape)])
        return [[gradient, builder.map("shift", builder.map("scale", square, constant=-1.0), constant=1.0)]]
    if name == "sigmoid":
        return [[gradient, position, builder.map("shift", builder.map("scale", position, constant=-1.0), constant=1.0)]]
    if name == "gelu":
        return [[gradient, builder.map("gelu_slope", inputs[0])]]
    return _refuse(name)


def _refuse(name: str) -> list[list[int]]:
    raise NotApplicable(f"expected a function with a gradient, saw {name}")


def _onto(builder: Builder, factors: Sequence[int], op: Op, operand: Op) -> int:
    """Return the product of `factors`, rows of `op`, summed onto the rows and the shape of an operand that was lifted and stretched."""
    rank = len(op.shape)
    letters = "abcdefgh"[:rank]
    subscripts = [letters[rank - len(builder.ops[f].shape) :] for f in factors]
    own = letters[rank - len(operand.shape) :]
    kept = "".join(c for c, size in zip(own, operand.shape, strict=True) if size != 1 or op.shape[letters.index(c)] == 1)
    summed = builder.contract(factors, subscripts, kept, op.domain, operand.domain)
    return builder.reshape(summed, operand.shape)

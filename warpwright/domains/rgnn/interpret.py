"""The definition of the IR: runs a program in the precision of its inputs, one operation at a time, without any cleverness."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F

from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.ir import Op, Program
from warpwright.domains.rgnn.lattice import Domain


def _gelu_slope(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)


FUNCTIONS: Mapping[str, Callable[..., torch.Tensor]] = {
    "neg": lambda x, c: -x,
    "exp": lambda x, c: x.exp(),
    "log": lambda x, c: x.log(),
    "sqrt": lambda x, c: x.sqrt(),
    "reciprocal": lambda x, c: 1 / x,
    "inverse": lambda x, c: x.reciprocal().masked_fill(x == 0, 0.0),
    "relu": lambda x, c: x.relu(),
    "leaky_relu": lambda x, c: torch.where(x > 0, x, c * x),
    "leaky_slope": lambda x, c: torch.where(x > 0, torch.ones_like(x), c),
    "elu": lambda x, c: F.elu(x, c),
    "tanh": lambda x, c: x.tanh(),
    "sigmoid": lambda x, c: x.sigmoid(),
    "gelu": lambda x, c: F.gelu(x),
    "gelu_slope": lambda x, c: _gelu_slope(x),
    "scale": lambda x, c: x * c,
    "shift": lambda x, c: x + c,
    "positive": lambda x, c: (x > 0).to(x.dtype),
    "detach": lambda x, c: x,
    "add": lambda x, y, c: x + y,
    "sub": lambda x, y, c: x - y,
    "maximum": lambda x, y, c: torch.maximum(x, y),
    "equal": lambda x, y, c: (x == y).to(x.dtype),
}


def lifted(value: torch.Tensor, low: Domain, high: Domain, index: Index) -> torch.Tensor:
    """Return `value` with one row for each row of `high`."""
    return value if low is high else value.index_select(0, index.lift(low, high))


def aligned(value: torch.Tensor, rank: int) -> torch.Tensor:
    """Return `value` with ones between its rows and its dimensions, so that each row has `rank` of them."""
    return value.reshape(value.shape[0], *[1] * (rank + 1 - value.dim()), *value.shape[1:])


def interpret(program: Program, index: Index, inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    """Return the outputs. Each input has a row for each row of its domain; one of domain ONE has none in front."""
    values: list[torch.Tensor] = []
    like = next(iter(inputs.values()))
    for op in program.ops:
        values.append(_value(op, program, values, index, inputs, like))
    return [values[i][0] if program.ops[i].domain is Domain.ONE else values[i] for i in program.outputs]


def _value(
    op: Op, program: Program, values: list[torch.Tensor], index: Index, inputs: Mapping[str, torch.Tensor], like: torch.Tensor
) -> torch.Tensor:
    operands = [values[i] for i in op.inputs]
    domains = [program.ops[i].domain for i in op.inputs]
    if op.kind == "input":
        value = inputs[op.function]
        return value[None] if op.domain is Domain.ONE else value
    if op.kind == "view":
        return operands[0]
    if op.kind == "reshape":
        return operands[0].reshape(-1, *op.shape)
    if op.kind == "map":
        wide = [aligned(lifted(x, d, op.domain, index), len(op.shape)) for x, d in zip(operands, domains, strict=True)]
        return FUNCTIONS[op.function](*wide, op.constant).expand(-1, *op.shape)
    rows = index.rows[op.domain]
    if op.kind == "count":
        return like.new_zeros(rows).index_add_(0, index.lift(op.domain, op.over), like.new_ones(index.rows[op.over]))
    wide = [lifted(x, d, op.over, index) for x, d in zip(operands, domains, strict=True)]
    if op.kind == "segmax":
        place = index.lift(op.domain, op.over).long().reshape(-1, *[1] * len(op.shape)).expand(-1, *op.shape)
        return like.new_zeros(rows, *op.shape).scatter_reduce_(0, place, wide[0], "amax", include_self=False)
    product = torch.einsum(",".join("Z" + s for s in op.subscripts[:-1]) + "->Z" + op.subscripts[-1], *wide)
    return product if not op.sums else like.new_zeros(rows, *op.shape).index_add_(0, index.lift(op.domain, op.over), product)

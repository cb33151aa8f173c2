"""The torch emitter: an ordered program by sparse products, one matrix product per relation and chunks of edges; no row of an edge is kept in memory.

Always there, for any dtype and device. It is also the reference of the other emitters, and what they call for operations of weights and nodes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.interpret import FUNCTIONS, aligned
from warpwright.domains.rgnn.ir import Op, Program
from warpwright.domains.rgnn.lattice import PAIRS, WEIGHTS, Domain

CHUNK = 1 << 24
"""Numbers of an edge chunk's product that are in memory at once."""


class Eager:
    """Runs one ordered program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.last = {value: position for position, op in enumerate(program.ops) for value in op.inputs}

    def __call__(self, index: Index, inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Return the outputs; inputs as for `interpret`."""
        like = next(iter(inputs.values()))
        values: list[Any] = []
        kept = set(self.program.outputs)
        for position, op in enumerate(self.program.ops):
            values.append(value_of(op, self.program, values, index, inputs, like))
            for used in set(op.inputs):
                if self.last[used] == position and used not in kept:
                    values[used] = None
        return [values[i][0] if self.program.ops[i].domain is Domain.ONE else values[i] for i in self.program.outputs]


def value_of(op: Op, program: Program, values: Sequence[Any], index: Index, inputs: Mapping[str, torch.Tensor], like: torch.Tensor) -> torch.Tensor:
    """Return the value of one operation."""
    operands = [values[i] for i in op.inputs]
    domains = [program.ops[i].domain for i in op.inputs]
    if op.kind == "input":
        return inputs[op.function][None] if op.domain is Domain.ONE else inputs[op.function]
    if op.kind == "view":
        return operands[0]
    if op.kind == "reshape":
        return operands[0].reshape(-1, *op.shape)
    if op.kind == "map" and all(program.ops[i].kind == "count" for i in op.inputs):
        return _of_graph(op, domains, index, like)
    if op.kind == "map":
        wide = [aligned(_at(x, d, op.domain, index), len(op.shape)) for x, d in zip(operands, domains, strict=True)]
        result = FUNCTIONS[op.function](*wide, op.constant)
        return result if result.shape[1:] == op.shape else result.expand(-1, *op.shape)  # a layer's result that is no view may be written in place
    if op.kind == "count":
        return _count(op.domain, index, like)
    if op.kind == "segmax":
        place = index.lift(op.domain, op.over).long().reshape(-1, *[1] * len(op.shape)).expand(-1, *op.shape)
        values_of_edges = _at(operands[0], domains[0], op.over, index)
        return like.new_zeros(index.rows[op.domain], *op.shape).scatter_reduce_(0, place, values_of_edges, "amax", include_self=False)
    return _contract(op, operands, domains, index)


def value_in_float64(op: Op, program: Program, values: Sequence[Any], index: Index) -> torch.Tensor:
    """Return the value of a product in float64."""
    return _contract(op, [values[i].double() for i in op.inputs], [program.ops[i].domain for i in op.inputs], index)


def _at(value: torch.Tensor, low: Domain, high: Domain, index: Index) -> torch.Tensor:
    return value if low is high or low is Domain.ONE else value.index_select(0, index.lift(low, high))


def _rows_at(value: torch.Tensor, low: Domain, high: Domain, index: Index) -> torch.Tensor:
    """Return a row for each of `high`, to be taken in parts."""
    return value.expand(index.rows[high], *value.shape[1:]) if low is Domain.ONE else _at(value, low, high, index)


def _count(domain: Domain, index: Index, like: torch.Tensor) -> torch.Tensor:
    return index.keep(("count", domain, like.dtype), lambda: index.start(domain).diff().to(like.dtype))


def _of_graph(op: Op, domains: list[Domain], index: Index, like: torch.Tensor) -> torch.Tensor:
    """Return a function of counts, which is kept beside the graph. The counts are asked for where it is not."""

    def make() -> torch.Tensor:
        return FUNCTIONS[op.function](*(_count(domain, index, like) for domain in domains), op.constant)

    return index.keep((op.function, op.constant, op.domain, like.dtype), make)


def _contract(op: Op, operands: list[torch.Tensor], domains: list[Domain], index: Index) -> torch.Tensor:
    if op.over in WEIGHTS:
        return _einsum(op, operands, domains, index)
    if op.over in PAIRS:
        return _of_pairs(op, operands, domains, index)
    if op.over is not Domain.EDGE:
        return _onto(op, _product(op, operands, domains, index), index)
    wide = [i for i, s in enumerate(op.subscripts[:-1]) if s]
    of_rows = len(wide) == 1 and (domains[wide[0]] is Domain.ETYPE or domains[wide[0]] not in WEIGHTS | {Domain.EDGE})
    if op.sums and of_rows and len(op.shape) == 1:
        return _sparse(op, operands, domains, wide[0], index)
    return _by_chunks(op, operands, domains, index)


def _einsum(op: Op, operands: list[torch.Tensor], domains: list[Domain], index: Index) -> torch.Tensor:
    """Products of weights; those of matrices and vectors are one launch, where einsum takes three."""
    if op.subscripts == ("ab", "b", "a") and domains == [Domain.ETYPE, Domain.ONE] and not op.sums:
        return torch.matmul(operands[0], operands[1][0])
    if op.subscripts == ("ab", "a", "b") and domains == [Domain.ETYPE, Domain.ETYPE] and op.domain is Domain.ONE:
        return torch.mv(operands[0].flatten(0, 1).t(), operands[1].flatten())[None]
    return _onto(op, _product(op, operands, domains, index), index)


def _product(op: Op, operands: list[torch.Tensor], domains: list[Domain], index: Index) -> torch.Tensor:
    """Return the product at the rows of `over`. A weight that all rows share is no batch."""
    shared = [d is Domain.ONE and op.over is not Domain.ONE and any(x is not Domain.ONE for x in domains) for d in domains]
    wide = [x[0] if one else _at(x, d, op.over, index) for x, d, one in zip(operands, domains, shared, strict=True)]
    text = ",".join(("" if one else "Z") + s for s, one in zip(op.subscripts[:-1], shared, strict=True))
    product = _elementwise(op.subscripts, shared, wide) if _is_elementwise(op) else torch.einsum(text + "->Z" + op.subscripts[-1], *wide)
    return product if product.shape[0] == index.rows[op.over] else product.expand(index.rows[op.over], *product.shape[1:])


def _is_elementwise(op: Op) -> bool:
    return all(set(letters) <= set(op.subscripts[-1]) for letters in op.subscripts)


def _elementwise(subscripts: Sequence[str], shared: Sequence[bool], operands: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a product that sums no feature: einsum takes three times as long on the host."""
    product: torch.Tensor | None = None
    for x in _stretched(subscripts, shared, operands):
        product = x if product is None else product * x
    assert product is not None
    return product


def _stretched(subscripts: Sequence[str], shared: Sequence[bool], operands: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the operands with dimensions in the order of the result's, of one where they lack them."""
    result, stretched = subscripts[-1], []
    for letters, one, x in zip(subscripts, shared, operands, strict=False):
        if len(letters) > 1 and letters != "".join(c for c in result if c in letters):
            order = [letters.index(c) + (not one) for c in result if c in letters]
            x = x.permute(order if one else [0, *order])
        lacking = [None if c not in letters else slice(None) for c in result]
        stretched.append(x[tuple(lacking) if one else (slice(None), *lacking)] if None in lacking else x)
    return stretched


def is_outer(op: Op, program: Program) -> bool:
    """Is it a product of two weights that sums nothing? `plus_outer` adds it to another value in one launch."""
    weights = all(program.ops[i].domain in {Domain.ETYPE, Domain.ONE} for i in op.inputs)
    return op.kind == "contract" and len(op.inputs) == 2 and op.over is op.domain is Domain.ETYPE and weights and _is_elementwise(op)


def plus_outer(value: torch.Tensor, op: Op, program: Program, values: Sequence[Any]) -> torch.Tensor:
    """Return `value` plus the product that `op` is."""
    shared = [program.ops[i].domain is Domain.ONE for i in op.inputs]
    first, second = _stretched(op.subscripts, shared, [values[i][0] if one else values[i] for i, one in zip(op.inputs, shared, strict=True)])
    return torch.addcmul(value, first, second)


def _onto(op: Op, product: torch.Tensor, index: Index) -> torch.Tensor:
    if not op.sums:
        return product
    if op.domain is Domain.ONE:
        return product.sum(0, keepdim=True)
    if op.over in PAIRS and op.domain in {Domain.SRC, Domain.DST} and len(op.shape) == 1:
        start, order = index.pairs_of(op.over, op.domain)
        return _times(start, order, product.new_ones(order.numel()), product, index.rows[op.domain])
    return product.new_zeros(index.rows[op.domain], *op.shape).index_add_(0, index.lift(op.domain, op.over), product)


def _times(start: torch.Tensor, columns: torch.Tensor, weights: torch.Tensor, dense: torch.Tensor, rows: int) -> torch.Tensor:
    """Return the sparse matrix of `rows` rows times a dense one."""
    if columns.numel() > rows * dense.shape[0]:  # cuSPARSE refuses more entries than places, as repeated edges of a small graph give
        row_of = torch.repeat_interleave(torch.arange(rows, device=start.device), start.diff(), output_size=columns.numel())
        return dense.new_zeros(rows, dense.shape[1]).index_add_(0, row_of, weights[:, None] * dense.index_select(0, columns))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sparse CSR is announced as a beta feature, and checks of invariants as off
        return torch.sparse_csr_tensor(start, columns, weights, (rows, dense.shape[0]), check_invariants=False) @ dense.contiguous()


def _of_pairs(op: Op, operands: list[torch.Tensor], domains: list[Domain], index: Index) -> torch.Tensor:
    """Pairs are sorted by relation: a weight meets one block of rows, and a weight gradient is the product of two blocks."""
    typed = next((i for i, d in enumerate(domains) if d is Domain.ETYPE and len(op.subscripts[i]) >= 2), None)
    if op.domain is Domain.ETYPE:
        return _for_each_relation(op, operands, domains, index)
    if typed is None:
        return _onto(op, _product(op, operands, domains, index), index)
    rest = [i for i in range(len(operands)) if i != typed]
    starts = index.relation_starts_on_host(op.over)
    result = operands[typed].new_empty(index.rows[op.over], *op.shape)
    text = ",".join([op.subscripts[typed], *("Z" + op.subscripts[i] for i in rest)]) + "->Z" + op.subscripts[-1]
    rows = [_rows_at(operands[i], domains[i], op.over, index) for i in rest]
    plain = len(op.subscripts[typed]) == 2 and [len(op.subscripts[i]) for i in rest] == [1]
    weight = operands[typed] if op.subscripts[typed][0] == op.subscripts[rest[0]] else operands[typed].transpose(-1, -2)
    for relation in range(index.relations):
        low, high = starts[relation], starts[relation + 1]
        if high > low and plain:
            torch.mm(rows[0][low:high], weight[relation], out=result[low:high])
        elif high > low:
            result[low:high] = torch.einsum(text, operands[typed][relation], *(x[low:high] for x in rows))
    return _onto(op, result, index)


def _for_each_relation(op: Op, operands: list[torch.Tensor], domains: list[Domain], index: Index) -> torch.Tensor:
    starts = index.relation_starts_on_host(op.over)
    result = operands[0].new_zeros(index.relations, *op.shape)
    text = ",".join("Z" + s for s in op.subscripts[:-1]) + "->" + op.subscripts[-1]
    rows = [_rows_at(x, d, op.over, index) for x, d in zip(operands, domains, strict=True)]
    outer = len(op.shape) == 2 and sorted(op.subscripts[:-1]) == sorted(op.subscripts[-1])
    if outer and op.subscripts[0] != op.subscripts[-1][0]:
        rows.reverse()
    for relation in range(index.relations):
        low, high = starts[relation], starts[relation + 1]
        if high > low and outer:
            torch.mm(rows[0][low:high].t(), rows[1][low:high], out=result[relation])
        elif high > low:
            result[relation] = torch.einsum(text, *(x[low:high] for x in rows))
    return result


def _sparse(op: Op, operands: list[torch.Tensor], domains: list[Domain], wide: int, index: Index) -> torch.Tensor:
    """A weighted aggregation of rows is a sparse matrix times a dense one."""
    columns = domains[wide]
    if len(operands) == 1:
        weights = index.keep(("ones", op.domain, operands[wide].dtype), lambda: operands[0].new_ones(index.edges))
    else:
        weights = _at(operands[1 - wide], domains[1 - wide], Domain.EDGE, index).expand(index.edges)
        order = index.order(op.domain)
        weights = weights if order is None else weights.index_select(0, order)
    return _times(index.start(op.domain), index.along(op.domain, columns), weights, operands[wide], index.rows[op.domain])


def _by_chunks(op: Op, operands: list[torch.Tensor], domains: list[Domain], index: Index) -> torch.Tensor:
    like = operands[0]
    result = like.new_zeros(index.rows[op.domain], *op.shape)
    width = max([1, *(x[0].numel() for x in operands if x.shape[0])])
    step = max(1, CHUNK // width)
    text = ",".join("Z" + s for s in op.subscripts[:-1]) + "->Z" + op.subscripts[-1]
    for low in range(0, index.edges, step):
        part = slice(low, min(index.edges, low + step))
        wide = [x[part] if d is Domain.EDGE else x.index_select(0, index.lift(d, Domain.EDGE)[part]) for x, d in zip(operands, domains, strict=True)]
        product = torch.einsum(text, *wide)
        if op.sums:
            result.index_add_(0, index.lift(op.domain, Domain.EDGE)[part], product)
        else:
            result[part] = product
    return result

"""The order of linear operations: products of many factors, summed over rows, become steps of one or two factors by the least cost.

    product   (x W) a                     ->  x (W a)                                       weights are multiplied first
    product   (k W) . q                   ->  k . (q W^T)                                   on the side that has fewer rows
    sum       sum_e s_e (x_e W_r)         ->  sum_pairs (sum_{e in pair} s_e x_e) W_r       aggregate first, for each (destination, relation)
    sum       sum_e (ex_e / den_d) z      ->  (sum_e ex_e z) / den_d                        factors of the result leave the sum

All four are one search: a state is a set of factors and the rows that they are summed over; a step multiplies two factors where they first meet,
or sums one or two onto smaller rows that still determine the rest. Steps that other products have taken already cost nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from warpwright.domains.rgnn.ir import Builder, Op, Program, canonical
from warpwright.domains.rgnn.lattice import PAIRS, WEIGHTS, Domain, between, join

ITEM = 4
SCATTER = 1.5
"""How much more than a write adding to a row in memory costs."""
ALONE = 36
"""Bytes more than its own that a GPU reads with a number of an edge that lies alone: the rest of its sector, and where it lies."""
OUTER = 10.0
"""How much worse than its bytes a matrix for each row or a row for each edge is: no kernel keeps them in registers."""


@dataclass(frozen=True)
class Machine:
    """What the choices compare."""

    bytes: float
    """Bytes per second of row gathers."""
    flops: float
    """Operations per second of products by tile."""
    launch: float
    """Seconds that a kernel more costs, which a value needs that is made in one and read in another."""
    cached: float
    """How much of its bytes reading a row again costs."""
    held: bool
    """Is a row of a (destination, relation) pair held while numbers of its edges are computed from it?"""
    pairs: bool = False
    """Are numbers of a destination's edges summed by way of its pairs? So a kernel that runs over the pairs' edges anyway sums them too."""


TORCH = Machine(3e12, 3e13, 5e-6, 0.02, False)
"""An H200 copies at 3.95e12 bytes per second, and does 2.7e13 operations in torch.mm in true float32 on these shapes."""
GPU = replace(TORCH, pairs=True)
"""The same with kernels of our own."""
CPU = Machine(2e10, 1.5e11, 2e-5, 0.1, True)
"""Two cores of an EPYC with AVX2: 7.5e10 operations per second each in these products, from the second cache 1e10 bytes."""


@dataclass(frozen=True)
class Factor:
    """One operand of a product while its order is searched."""

    domain: Domain
    letters: str
    at: int | None = None
    """Its position in the program that is built, where it is there already."""
    step: Step | None = None
    """How it is computed, where it is not."""
    pending: float = 0.0
    """What it costs to write it, unless the next step takes it row by row."""


@dataclass(frozen=True)
class Step:
    """A contract of one or two factors."""

    factors: tuple[Factor, ...]
    letters: str
    over: Domain
    domain: Domain


@dataclass
class Ordering:
    """The search over the products of one program, on a graph with `rows` of each domain."""

    rows: Mapping[Domain, int]
    builder: Builder = field(default_factory=Builder)
    reorder: bool = True
    """Off: products stay in the order in which the program has them (to measure what reordering gains)."""
    compact: bool = True
    """Off: a value of pairs is computed for each edge (to measure what compaction gains)."""
    over_edges: bool = True
    """Off: sums over pairs of numbers that are sums over their edges stay as they are (to measure what `joined` gains)."""
    scatter: float = SCATTER
    machine: Machine = GPU
    forward: int = 0
    """How many values the forward program has: those of pairs are in registers there, so keeping one for the backward program costs a write."""

    def run(self, program: Program) -> Program:
        """Return the program with contracts of at most two factors."""
        flat = flatten(program) if self.reorder else program
        if self.reorder and self.over_edges and self.machine.pairs:
            flat = joined(flat)
        paired = _under_sums_of_pairs(flat)
        place: list[int] = []
        for number, op in enumerate(flat.ops):
            inputs = [place[i] for i in op.inputs]
            compact = self.compact or number in paired
            place.append(self._ordered(op, inputs, compact) if op.kind == "contract" else self.builder.copy(op, inputs))
        return self.builder.program([place[i] for i in flat.outputs])

    def _ordered(self, op: Op, inputs: Sequence[int], compact: bool) -> int:
        factors = tuple(Factor(self.builder.ops[i].domain, s, i) for i, s in zip(inputs, op.subscripts[:-1], strict=True))
        over = op.over
        if not compact and over in PAIRS and op.domain is over:
            over = Domain.EDGE
        if not self.reorder and len(factors) <= 2:
            return self.builder.contract(inputs, op.subscripts[:-1], op.subscripts[-1], over, op.domain if op.sums else over)
        sizes = {c: n for i, s in zip(inputs, op.subscripts, strict=False) for c, n in zip(s, self.builder.ops[i].shape, strict=True)}
        search = _Search(self, sizes, op.subscripts[-1], op.domain if op.sums else over, compact)
        _, factor = search.best(factors, over)
        return self.emit(factor)

    def may_be_infinite(self, value: int) -> bool:
        """May a row of the value that no edge reads be infinite?"""
        op = self.builder.ops[value]
        return op.function in {"reciprocal", "log"} or (not op.sums and any(self.may_be_infinite(i) for i in op.inputs))

    def emit(self, factor: Factor) -> int:
        """Append what computes a factor."""
        if factor.step is None:
            assert factor.at is not None
            return factor.at
        step = factor.step
        values = [self.emit(part) for part in step.factors]
        return self.builder.contract(values, [part.letters for part in step.factors], step.letters, step.over, step.domain)


def _under_sums_of_pairs(program: Program) -> set[int]:
    """Return the values that a sum over pairs reads, directly or not: each pair counts once there, so they cannot be computed for each edge."""
    members: set[int] = set()
    for number, op in reversed(list(enumerate(program.ops))):
        if number in members or (op.kind == "contract" and op.over in PAIRS and op.domain is not op.over):
            members.update(op.inputs)
    return members


@dataclass
class _Search:
    """All orders of one product."""

    ordering: Ordering
    sizes: Mapping[str, int]
    result: str
    domain: Domain
    compact: bool = True
    """Off: what is computed for pairs is computed for edges, but on the way to a weight's gradient."""
    known: dict[tuple[tuple[Factor, ...], Domain], tuple[float, Factor]] = field(default_factory=dict)

    def best(self, factors: tuple[Factor, ...], over: Domain) -> tuple[float, Factor]:
        """Return the least cost of the product of `factors` summed over `over`, and its last factor."""
        if (factors, over) not in self.known:
            self.known[factors, over] = min(self._orders(factors, over), key=lambda order: order[0])
        return self.known[factors, over]

    def _orders(self, factors: tuple[Factor, ...], over: Domain) -> Iterator[tuple[float, Factor]]:
        if len(factors) <= 2 and (over is self.domain or _direct(over, self.domain)):
            cost, last = self._step(factors, self.result, over, self.domain)
            yield cost + last.pending, last
        for count in (1, 2):
            for group in itertools.combinations(range(len(factors)), count):
                yield from self._taken(factors, over, group)

    def _taken(self, factors: tuple[Factor, ...], over: Domain, group: tuple[int, ...]) -> Iterator[tuple[float, Factor]]:
        taken = tuple(factors[i] for i in group)
        rest = tuple(f for i, f in enumerate(factors) if i not in group)
        needed = set(self.result).union(*(f.letters for f in rest))
        letters = "".join(dict.fromkeys(c for f in taken for c in f.letters if c in needed))
        met = join(*(f.domain for f in taken))
        by_edge = not self.compact and over is Domain.EDGE and self.domain not in WEIGHTS
        met = Domain.EDGE if by_edge and met in PAIRS else met
        if len(taken) == 2 and rest:
            cost, factor = self._step(taken, letters, met, met)
            more, last = self.best((*rest, factor), over)
            yield cost + more, last
        if len(taken) == 1 and len(letters) < len(taken[0].letters) and met in WEIGHTS:
            cost, factor = self._step(taken, letters, met, met)
            more, last = self.best((*rest, factor), over)
            yield cost + more, last
        low = join(self.domain, *(f.domain for f in rest)) if rest else self.domain
        unsafe = any(f.at is not None and self.ordering.may_be_infinite(f.at) for f in rest)
        for target in between(low, over):
            if unsafe and target not in PAIRS:
                continue  # a node without edges would get 0 times infinity
            if by_edge and target in PAIRS and not unsafe:
                continue
            if _direct(over, target) and (rest or target is not self.domain):
                cost, factor = self._step(taken, letters, over, target)
                more, last = self.best((*rest, factor), target)
                yield cost + more, last

    def _step(self, factors: tuple[Factor, ...], letters: str, over: Domain, domain: Domain) -> tuple[float, Factor]:
        """Return the cost of a step and what it gives."""
        machine = self.ordering.machine
        at = self._present(factors, letters, over, domain)
        if at is not None:
            scaled = over is domain and any(not factor.letters for factor in factors)  # computed again from the row
            saved = at < self.ordering.forward and domain in PAIRS and letters and not scaled
            bytes_ = 2 * self.ordering.rows[domain] * _size(self.sizes, letters) * ITEM
            return bytes_ / machine.bytes if saved else 0.0, Factor(domain, letters, at)
        rows = self.ordering.rows
        products = rows[over] * _size(self.sizes, "".join(dict.fromkeys("".join(f.letters for f in factors))))
        moved, seconds = 0.0, 2 * products / machine.flops
        for factor in factors:
            if machine.pairs and factor.domain is Domain.EDGE and not factor.letters and domain in {Domain.SRC, Domain.DST, Domain.PAIR_SRC}:
                moved += ALONE * rows[over]
            held = machine.held and domain is Domain.EDGE and factor.domain is Domain.PAIR_DST
            if factor.step is not None and (factor.domain is over or held):
                continue  # taken row by row, as it is made
            if factor.step is not None and factor.domain not in WEIGHTS:
                seconds += machine.launch
            seconds += factor.pending
            moved += min(1.0, rows[factor.domain] / 1e5 + machine.cached) * rows[over] * _size(self.sizes, factor.letters) * ITEM
        written = rows[domain] * _size(self.sizes, letters) * ITEM
        scattered = over is not domain and over is not Domain.EDGE
        if scattered:
            moved += self.ordering.scatter * rows[over] * _size(self.sizes, letters) * ITEM if domain not in WEIGHTS else written
        if (over is domain and domain not in WEIGHTS and len(letters) > max(len(f.letters) for f in factors)) or (domain is Domain.EDGE and letters):
            moved += OUTER * written  # a matrix for each row, or a row for each edge
        # a matrix for each edge
        if over is Domain.EDGE and any(len(f.letters) > 1 and f.domain in WEIGHTS for f in factors):
            moved += OUTER * rows[over] * max(_size(self.sizes, f.letters) for f in factors) * ITEM
        step = Step(factors, letters, over, domain)
        return moved / machine.bytes + seconds, Factor(domain, letters, None, step, 0.0 if scattered else written / machine.bytes)

    def _present(self, factors: tuple[Factor, ...], letters: str, over: Domain, domain: Domain) -> int | None:
        if any(f.at is None for f in factors):
            return None
        values = tuple(f.at for f in factors if f.at is not None)
        shape = tuple(self.sizes[c] for c in letters)
        subscripts = canonical([*(f.letters for f in factors), letters])
        return self.ordering.builder.seen.get(Op("contract", domain, shape, values, subscripts=subscripts, over=over))


def _size(sizes: Mapping[str, int], letters: str) -> int:
    product = 1
    for letter in letters:
        product *= sizes[letter]
    return product


def _direct(over: Domain, domain: Domain) -> bool:
    """May rows of `over` be summed onto `domain` at once? Edges go to weights by way of pairs or nodes, so that few meet in one place."""
    return over is not Domain.EDGE or domain not in WEIGHTS


def flatten(program: Program) -> Program:
    """Return the program with each product that is a factor of a product put in its place."""
    builder = Builder()
    place: list[int] = []
    for op in program.ops:
        inputs = [place[i] for i in op.inputs]
        if op.kind != "contract":
            place.append(builder.copy(op, inputs))
            continue
        values: list[int] = []
        subscripts: list[str] = []
        letters = map(chr, itertools.count(0x3B1))  # names that no subscript has
        for value, own in zip(inputs, op.subscripts[:-1], strict=True):
            inner = builder.ops[value]
            if inner.kind != "contract" or inner.sums:
                values.append(value)
                subscripts.append(own)
                continue
            names = dict(zip(inner.subscripts[-1], own, strict=True))
            for part, text in zip(inner.inputs, inner.subscripts[:-1], strict=True):
                for c in text:
                    if c not in names:
                        names[c] = next(letters)
                values.append(part)
                subscripts.append("".join(names[c] for c in text))
        place.append(builder.contract(values, subscripts, op.subscripts[-1], op.over, op.domain))
    return builder.program([place[i] for i in program.outputs])


def joined(program: Program) -> Program:
    """Return the program with sums over pairs of a number that is a sum over their edges made sums over the edges.

    Sums of products of numbers of edges are made of the products, which may then be stored once for all sums of them: a sum by source gathers each
    number from a place of its own.

    RGAT's gradient of x through its scores is one: a number of each (source, relation) pair times a row of the relation. Where there are nearly as
    many pairs as edges, adding a row of each pair in memory costs more than reading the relation's row, which is in a cache, for each edge.
    """
    builder = Builder()
    place: list[int] = []
    for op in program.ops:
        inputs = [place[i] for i in op.inputs]
        of_edges = op.kind == "contract" and op.sums and op.over is Domain.EDGE and len(inputs) > 1 and not any(op.subscripts)
        if of_edges and all(builder.ops[i].domain is Domain.EDGE for i in inputs):
            product = builder.contract(inputs, op.subscripts[:-1], "")
            place.append(builder.contract([product], [""], "", Domain.EDGE, op.domain))
            continue
        of_nodes = op.kind == "contract" and op.over in PAIRS and op.domain in {Domain.SRC, Domain.DST}
        number = next((i for i, value in enumerate(inputs) if of_nodes and _is_number_of_pairs(builder.ops[value], op.over)), None)
        if number is None:
            place.append(builder.copy(op, inputs))
            continue
        inputs[number] = builder.ops[inputs[number]].inputs[0]
        place.append(builder.contract(inputs, op.subscripts[:-1], op.subscripts[-1], Domain.EDGE, op.domain))
    return builder.program([place[i] for i in program.outputs])


def _is_number_of_pairs(op: Op, pairs: Domain) -> bool:
    return op.kind == "contract" and op.over is Domain.EDGE and op.domain is pairs and op.subscripts == ("", "")


def through_pairs(program: Program) -> Program:
    """Return the program with sums and maxima of numbers over a destination's edges made in two steps: over each pair's edges, then over pairs.

    A destination's own loop over edges reads them in an order that is not theirs in memory, and computes them once more. On an H200 the two such
    loops of a softmax took 1.1 of 4.8 ms on mag's graph.
    """
    builder = Builder()
    place: list[int] = []
    for op in program.ops:
        inputs = [place[i] for i in op.inputs]
        of_destination = op.over is Domain.EDGE and op.domain is Domain.DST and not op.shape
        if of_destination and op.kind == "segmax":
            place.append(builder.segmax(builder.segmax(inputs[0], Domain.PAIR_DST), Domain.DST, Domain.PAIR_DST))
        elif of_destination and op.kind == "contract" and not any(op.subscripts):
            pairs = builder.contract(inputs, op.subscripts[:-1], "", Domain.EDGE, Domain.PAIR_DST)
            place.append(builder.contract([pairs], [""], "", Domain.PAIR_DST, Domain.DST))
        else:
            place.append(builder.copy(op, inputs))
    return builder.program([place[i] for i in program.outputs])

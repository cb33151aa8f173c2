"""Which calls of a graph become one kernel: regions grown in graph order, each as large as it gets, and a kernel put in the place of one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from torch import fx

from warpwright.domains.graph.cpp import firsts, sums
from warpwright.domains.graph.cpp.calls import BUILDERS, COPIES, MOVES, VIEWS
from warpwright.domains.graph.cpp.kernel import Fused, Kernel, Unsupported, build
from warpwright.domains.graph.cpp.program import Program
from warpwright.domains.graph.ir import Edit, GraphIR, dtype, edit, has_effect, is_tensor, parameter_only, shape, sort, users, value, written
from warpwright.domains.graph.text.autograd import halves

LEAST_ELEMENTS = 4096
"""Below this a kernel's call from Python costs more than its work."""

MOST_REGROWN = 80
"""Calls of a region that is tried in smaller ones: each call is tried as the end of a kernel's text, which takes milliseconds."""

Maker = Callable[[str, Any, Sequence[fx.Node]], Fused]
"""Writes the kernel of a name, a program and its calls; raises Unsupported."""


def weight(region: Sequence[fx.Node]) -> int:
    """Return how many calls do something: views and copies are for free."""
    return sum(node.target not in VIEWS for node in region)


@functools.lru_cache(maxsize=8)
def whole(ir: GraphIR) -> GraphIR:
    """Return the IR with every region as a C++ kernel, however small: for a program whose calls cost nothing. A search asks often."""
    e = edit(ir)
    twin = {node.name: node for node in e.graph.nodes}
    kernels: dict[str, Fused] = {}
    for region in regions(ir, Kernel, least=0):
        replace(e, [twin[node.name] for node in region], kernels, Kernel)
    sort(e.graph)
    return e.finish()


def regions(ir: GraphIR, kind: type[Fused] = Kernel, least: int = LEAST_ELEMENTS) -> list[list[fx.Node]]:
    """Return sets of calls that can each be one kernel, grown in graph order, each as large as it gets; `least` elements are worth one."""
    fixed = parameter_only(ir.graph) if ir.scheduled("fold_parameters") is not None else set()
    apart = _halves(ir)
    grown = _Grown(apart)
    for node in ir.graph.nodes:
        if _fusable(node, kind) and node not in fixed:
            grown.take(node)
    found = [r for region in grown.regions() if (r := _trimmed(region)) and elements(r) >= least]
    return [kernel for region in found for kernel in ([region] if _is_kernel(region, kind) else _smaller(region, kind, apart, least))]


def _smaller(region: list[fx.Node], kind: type[Fused], apart: Callable[[Sequence[fx.Node]], bool], least: int) -> list[list[fx.Node]]:
    """Return the kernels that are left of calls that can be one by what they compute and not by how they would be written: rotary positions' gradient
    lies in halves (`cat`), of which no sum over columns is formed."""
    if len(region) > MOST_REGROWN:
        return []
    grown = _Grown(lambda calls: apart(calls) and _written(calls, kind))
    for node in region:
        grown.take(node)
    return [r for one in grown.regions() if (r := _trimmed(one)) and len(r) < len(region) and elements(r) >= least and _is_kernel(r, kind)]


class _Grown:
    """Regions so far. `apart` says of calls whether they may be one."""

    def __init__(self, apart: Callable[[Sequence[fx.Node]], bool]) -> None:
        self.apart = apart
        self.owner: dict[fx.Node, int] = {}
        self.of: dict[int, list[fx.Node]] = {}
        """By number, in the order in which they were begun: those of a program of 1,000 calls are not searched for each of its calls."""

    def regions(self) -> list[list[fx.Node]]:
        """Return them in the order in which they were begun."""
        return list(self.of.values())

    def take(self, node: fx.Node) -> None:
        """Join a call to the newest region that it reads (or that finds an index in what it reads) and can be one with, and others that it reads to
        that; or begin one."""
        beside = {self.owner[other] for other in firsts.beside(node) if other in self.owner}
        for number in sorted(self._read_by(node) | beside, reverse=True):
            if self._one([*self.of[number], node]):
                self._put(number, [*self.of[number], node])
                self._absorb(number, node)
                return
        if node.target not in VIEWS and _buildable([node]):
            self._put(max(self.of, default=-1) + 1, [node])

    def _read_by(self, node: fx.Node) -> set[int]:
        return {self.owner[arg] for arg in node.all_input_nodes if arg in self.owner}

    def _one(self, calls: list[fx.Node]) -> bool:
        return self.apart(calls) and _buildable(calls)

    def _put(self, number: int, calls: list[fx.Node]) -> None:
        self.of[number] = calls
        self.owner |= dict.fromkeys(calls, number)

    def _absorb(self, number: int, node: fx.Node) -> None:
        for other in sorted(self._read_by(node) - {number}):
            joined = sorted([*self.of[number], *self.of[other]])
            if self._one(joined):
                del self.of[other]
                self._put(number, joined)


def elements(region: Sequence[fx.Node]) -> int:
    """Return how many elements the largest tensor of a region has."""
    return max(math.prod(shape(n)) for node in region for n in (node, *node.all_input_nodes) if is_tensor(n))


def _halves(ir: GraphIR) -> Callable[[Sequence[fx.Node]], bool]:
    """Return whether calls are all of a training step's forward, or none: what depends on a gradient that comes back cannot be there."""
    if ir.training is None or not ir.training.tangents:
        return lambda region: True
    early = set(halves(ir)[0])
    return lambda region: len({node in early for node in region}) == 1


def _fusable(node: fx.Node, kind: type[Fused]) -> bool:
    if any(value(n).is_floating_point() and dtype(n) not in kind.floats for n in (node, *node.all_input_nodes) if is_tensor(n)):
        return False
    if node.op != "call_function" or node.target not in BUILDERS or node.target in kind.refused or not is_tensor(node) or has_effect(node):
        return False
    later = [user for arg in node.all_input_nodes for user in arg.users if arg in written(user)]
    return not later and math.prod(shape(node)) > 0


def _buildable(region: list[fx.Node]) -> bool:
    """Can the calls be one kernel, and does nothing outside lie between them?"""
    inside, first = set(region), min(region)
    todo = [arg for node in region for arg in node.all_input_nodes if arg not in inside]
    seen: set[fx.Node] = set()
    while todo:
        node = todo.pop()
        if node in inside:
            return False
        if node not in seen and first < node:  # what stands before the first call does not depend on it
            seen.add(node)
            todo += node.all_input_nodes
    try:
        build(region, _results(region))
    except Unsupported:
        return False
    return True


def _results(region: Sequence[fx.Node]) -> list[fx.Node]:
    inside = set(region)
    return [node for node in region if any(user not in inside for user in users(node))]


def _trimmed(region: list[fx.Node]) -> list[fx.Node]:
    """Drop views and copies at the end: torch does them for free."""
    while region and region[-1].target in VIEWS:
        region = region[:-1]
    return region if region and _buildable(region) else []


def _is_kernel(region: list[fx.Node], kind: type[Fused]) -> bool:
    moving = [node for node in region if node.target in MOVES or sums.sets(node)]
    if len(moving) < 2 and all(node in moving or node.target in (*VIEWS, *COPIES) for node in region):
        return False
    return _written(region, kind)


def _written(region: Sequence[fx.Node], kind: type[Fused]) -> bool:
    """Can the calls be written as one kernel of a kind?"""
    try:
        kind("trial", build(region, _results(region)), region)
    except Unsupported:
        return False
    return True


def replace(e: Edit, region: list[fx.Node], kernels: dict[str, Fused], make: Maker) -> None:
    """Put a kernel in place of the region. `kernels` holds those made so far: two of one text are one function."""
    _replace(e, region, _results(region), build(region, _results(region)), kernels, make)


def replace_with(e: Edit, node: fx.Node, program: Program, kernels: dict[str, Fused], make: Maker) -> None:
    """Put the kernel of a program in place of a call."""
    _replace(e, [node], [node], program, kernels, make)


def _replace(e: Edit, region: list[fx.Node], results: list[fx.Node], program: Program, kernels: dict[str, Fused], make: Maker) -> None:
    shown = [node.target.overloadpacket.__name__ for node in region if node.target not in VIEWS]  # type: ignore[union-attr]
    words = "_".join(dict.fromkeys(shown[:1] + shown[-1:]))
    trial = make("kernel", program, region)
    text = f"{words} {trial.text} {trial.python_text()}"
    if text not in kernels:
        kernels[text] = make(f"kernel_{len(kernels)}_{words}", program, region)
    at = e.before(max(region))
    new = at.call(kernels[text], *trial.sources)
    for i, node in enumerate(results):
        e.replace(node, new if len(results) == 1 else at.item(new, i))

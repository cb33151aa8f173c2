"""A draft: everything that is printed for one pair, before any of it has run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from warpwright.translation.pairs.definitions.expr import Graph
from warpwright.translation.pairs.definitions.random_graphs import random_graph
from warpwright.translation.pairs.definitions.reference import print_reference
from warpwright.translation.pairs.printers.print_c import entry, print_c
from warpwright.translation.pairs.printers.print_cuda import CudaProgram, print_cuda
from warpwright.translation.pairs.printers.schedule import KernelSchedule, LoopSchedule, draw

MOST_WORK = 2_000_000
"""Evaluations of stage bodies in one graph: numpy needs about 20 ms for them."""


@dataclass(frozen=True)
class Options:
    """What the generator may do."""

    seed: int = 0
    tune: int = 4
    """Number of loop schedules of the C half to time against one another; 1: no search."""
    operators: tuple[str, ...] = ()
    """Operators to start from; empty: all."""
    verify_cuda: bool = True


@dataclass(frozen=True)
class Draft:
    """One pair as text; its index and the seed reproduce it."""

    index: int
    graph: Graph
    kernels: tuple[KernelSchedule, ...]
    loops: tuple[tuple[LoopSchedule, ...], ...]
    """Candidates for the C half, the default schedule first."""
    cuda: CudaProgram
    c: tuple[str, ...]
    """One text for each of `loops`."""
    reference: str

    @property
    def entry(self) -> str:
        """Name of the C function."""
        return entry(self.graph)


def make(index: int, options: Options) -> Draft | None:
    """Return the draft number `index` of these options, the same each time; None when the graph drawn is too large."""
    rng = Random(f"{options.seed}/{index}")
    graph = random_graph(rng, rng.choice(options.operators) if options.operators else "")
    if graph.work > MOST_WORK:
        return None
    kernels, loops = draw(rng, graph, options.tune)
    texts = tuple(print_c(graph, one) for one in loops)
    distinct = dict(zip(texts, loops, strict=True))
    return Draft(index, graph, kernels, tuple(distinct.values()), print_cuda(graph, kernels), tuple(distinct), print_reference(graph))


def renamed(draft: Draft, prefix: str) -> Draft:
    """Return the draft with its kernels' names prefixed, so that many fit into one translation unit."""
    old = f" {draft.graph.name}_kernel"
    text = draft.cuda.text.replace(old, f" {prefix}{draft.graph.name}_kernel")
    launches = tuple(replace(one, kernel=prefix + one.kernel) for one in draft.cuda.launches)
    return replace(draft, cuda=CudaProgram(text, launches))

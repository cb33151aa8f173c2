"""Scans: running sums and products, and loops over time, as generated CUDA kernels, which read each value once."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from warpwright.base import Action
from warpwright.domains.graph.cuda import recurrences, scans
from warpwright.domains.graph.cuda.kernel import RecurrenceKernel, ScanKernel
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.cuda.scans import Scan
from warpwright.domains.graph.ir import GraphIR, aten, edit, find, sort
from warpwright.domains.graph.techniques.algebra.common import merged
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits

LEAST_ELEMENTS = 1 << 16
"""Of the result; below this a launch is all that such a call takes."""


@dataclass(frozen=True)
class ScansCuda:
    """cumsum(x * mask, 1), flip(cumsum(flip(x, [1]), 1), [1]), cat((zeros, cumsum(x[:, :-1], 1)), 1)  ->  one CUDA kernel each, one pass over memory.

    On an H200 torch took 1.1 to 5 times as long for those of KernelBench's level 1 as reading and writing their tensors once, torch.compile's best
    mode 1.2 to 2.2 times. Sums in another order, kept in float64.
    """

    name: str = "scans_cuda"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT), Action("cuda_graph"), Action("launch_plan")))

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together."""
        if ir.takes_kernels and _scans(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such call replaced by a kernel; two of one form share one."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a running sum or product of a large contiguous tensor", f"not {action}")
        e = edit(ir)
        kernels: dict[str, ScanKernel] = {}
        for name in [scan.calls[-1].name for scan in _scans(ir)]:
            node = e.node(name)
            trial = ScanKernel("kernel", node)
            key = trial.text + trial.python_text()
            if key not in kernels:
                kernels[key] = ScanKernel(f"scan_{len(kernels)}", node)
            e.replace(node, e.before(node).call(kernels[key], *trial.sources))
        return e.finish()


def _scans(ir: GraphIR) -> list[Scan]:
    """Return the scans of a program; one that is part of a longer one is not one by itself."""
    found = [scan for node in find(ir, *scans.ROOTS) if (scan := scans.read(node)) is not None]
    inside = {call for scan in found for call in scan.calls[:-1]}
    return [scan for scan in found if scan.calls[-1] not in inside and scan.rows * scan.length * scan.inner >= LEAST_ELEMENTS]


@dataclass(frozen=True)
class LoopsCuda:
    """for t in range(T): h = a[:, t] * h + b[:, t]; stack(hs, 1)  ->  one CUDA kernel, a thread a line, one pass over memory.

    Any element-wise step of h, of tensors at t and of tensors that stay the same. Steps keep their order and their roundings.
    """

    name: str = "loops_cuda"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT), Action("cuda_graph"), Action("launch_plan")))

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together."""
        if ir.takes_kernels and _loops(ir)[1]:
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such loop replaced by a kernel; who reads a step's result reads a copy of that part."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a loop over time whose steps are the same element-wise calls", f"not {action}")
        program, names = _loops(ir)
        e = edit(program)
        for number, name in enumerate(names):
            node = e.node(name)
            loop = recurrences.read(node)
            if loop is None:  # it was part of one that is a kernel now
                continue
            kernel, at, inside = RecurrenceKernel(f"loop_{number}", node), e.before(node), {*loop.calls}
            made = at.call(kernel, *loop.sources)
            dim = recurrences.time_of(node)
            for t, state in enumerate(loop.states):
                if t >= loop.begin and any(user not in inside for user in state.users):
                    e.replace(state, at.call(aten.clone.default, at.call(aten.select.int, made, dim, t)))
            e.replace(node, made)
        sort(e.graph)
        return e.finish()


@functools.lru_cache(maxsize=8)
def _loops(ir: GraphIR) -> tuple[GraphIR, list[str]]:
    """Return the IR with what each step computes anew computed once, and the last calls of its loops."""
    if not any(recurrences.is_long(node) for node in find(ir, *recurrences.ROOTS)):
        return ir, []
    program = merged(ir)
    return program, [node.name for node in find(program, *recurrences.ROOTS) if recurrences.read(node)]


TECHNIQUES = (ScansCuda(), LoopsCuda())

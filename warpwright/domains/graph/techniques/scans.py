"""Scans: running sums and products as generated CUDA kernels, which read each value once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from warpwright.base import Action
from warpwright.domains.graph.cuda import scans
from warpwright.domains.graph.cuda.kernel import ScanKernel
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.cuda.scans import Scan
from warpwright.domains.graph.ir import GraphIR, edit, find
from warpwright.domains.graph.techniques.fuse import fuse_cuda
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
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT), Action("cuda_graph")))

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


TECHNIQUES = (ScansCuda(),)

"""The largest elements of short rows as a generated CUDA kernel, which reads each row once."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cuda import top_k
from warpwright.domains.graph.cuda.kernel import TopKKernel
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR, aten, edit, find
from warpwright.domains.graph.techniques.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits

LEAST_ELEMENTS = 1 << 14
"""Of the rows together; below this a launch is all that such a call takes."""


@dataclass(frozen=True)
class TopKCuda:
    """topk(x, k) of rows of up to 1,024 elements, k up to 32, the largest first  ->  one CUDA kernel, a warp a row.

    Equal values come as torch's kernels give them.
    """

    name: str = "top_k_cuda"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT), Action("cuda_graph")))

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together."""
        if ir.takes_kernels and _calls(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such call replaced by a kernel."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected topk of many short contiguous rows", f"not {action}")
        e = edit(ir)
        for number, name in enumerate([node.name for node in _calls(ir)]):
            node = e.node(name)
            kernel, at = TopKKernel(f"top_k_{number}", node), e.before(node)
            called = at.call(kernel, *kernel.sources)
            for i, result in enumerate(kernel.results):
                e.replace(result, at.item(called, i) if len(kernel.results) > 1 else called)
        return e.finish()


def _calls(ir: GraphIR) -> list[fx.Node]:
    """Return the calls that are large enough and whose results are read one by one."""
    found = [node for node in find(ir, aten.topk.default) if (top := top_k.read(node)) is not None and top.rows * top.length >= LEAST_ELEMENTS]
    return [node for node in found if node.users and all(user.target is operator.getitem for user in node.users)]


TECHNIQUES = (TopKCuda(),)

"""Calls that order or count elements as generated CUDA kernels, which read each once: the largest of rows, rows sorted, histograms."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cuda.kernel import CallKernel
from warpwright.domains.graph.cuda.orders import digits, histogram, select, sorts, top_k
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR, aten, edit, find, is_tensor
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits

LEAST_ELEMENTS = 1 << 14
"""Of the rows together; below this a launch is all that such a call takes."""

TRAITS = Traits("S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT), Action("cuda_graph"), Action("launch_plan")))


@dataclass(frozen=True)
class CallCuda:
    """Every call of `ops` that `read` knows  ->  a CUDA kernel each."""

    name: str
    ops: tuple[Any, ...]
    read: Callable[[Any], Any]
    prefix: str
    """Of the kernels' names."""
    expected: str
    """What it takes, in words."""
    traits: Traits = field(default=TRAITS)

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together."""
        if ir.takes_kernels and self._calls(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such call replaced by a kernel."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"expected {self.expected}", f"not {action}")
        e = edit(ir)
        for number, name in enumerate([node.name for node in self._calls(ir)]):
            node = e.node(name)
            kernel, at = CallKernel(f"{self.prefix}_{number}", node), e.before(node)
            called = at.call(kernel, *kernel.sources)
            for i, result in enumerate(kernel.results):
                e.replace(result, at.item(called, i) if len(kernel.results) > 1 else called)
        return e.finish()

    def _calls(self, ir: GraphIR) -> list[fx.Node]:
        """Return the calls that are large enough and whose results are read one by one."""
        found = [node for node in find(ir, *self.ops) if (call := self.read(node)) is not None and call.rows * call.length >= LEAST_ELEMENTS]
        return [node for node in found if is_tensor(node) or (node.users and all(user.target is operator.getitem for user in node.users))]


TOP_K = CallCuda("top_k_cuda", (aten.topk.default,), top_k.read, "top_k", "topk of many short contiguous rows")
"""topk(x, k) of rows of up to 1,024 elements, k up to 32, the largest first  ->  one CUDA kernel, a warp a row. Equal values come as torch's kernels
give them, here and in the two others."""

SELECT = CallCuda("select_cuda", (aten.topk.default,), select.read, "select", "topk of long contiguous rows, or of more than 32 elements")
"""topk(x, k) of longer rows, or k up to 1,024, the largest first  ->  one CUDA kernel, a block a row, or several."""

SORT = CallCuda("sort_cuda", sorts.ROOTS, lambda node: sorts.read(node) or digits.read(node), "sort", "a sort of contiguous rows")
"""sort(x), argsort(x) along the last dimension, stable or not  ->  one CUDA kernel: a network for short rows, digits for long ones."""

HISTOGRAM = CallCuda("histogram_cuda", (aten.histc.default,), histogram.read, "histogram", "histc of many float32 numbers between given bounds")
"""histc(x, bins, low, high)  ->  one CUDA kernel that counts in shared memory and adds up integers."""

TECHNIQUES = (TOP_K, SELECT, SORT, HISTOGRAM)

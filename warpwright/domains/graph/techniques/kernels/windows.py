"""Windows: pools and depthwise convolutions as generated CUDA kernels, which read each value once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cuda import windows
from warpwright.domains.graph.cuda.kernel import WindowKernel
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR, edit, find
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits

_CALLS = (*windows.MAX_POOLS, *windows.AVERAGE_POOLS, *windows.CONVOLUTIONS, *windows.CONVOLUTIONS_IN_WORDS)
LEAST_ELEMENTS = 1 << 16
"""Of input and result together; below this a launch is all that such a call takes."""


@dataclass(frozen=True)
class WindowsCuda:
    """max_pool2d(x, 3, 2, 1), avg_pool1d(x, 8, 1), conv2d(x, w, groups=channels)  ->  one CUDA kernel each, by sliding through shared memory.

    Libraries compute each output for itself: on an H200 the pools and depthwise convolutions of KernelBench's level 1 took 2 to 9 times as long as
    reading and writing their tensors once. Exact for maxima; sums in another order.
    """

    name: str = "windows_cuda"
    traits: ClassVar[Traits] = Traits(
        "S", tried_first=True,
        best_with=(fuse_cuda(1, DEFAULT), Action("cuda_graph"), Action("launch_plan"), Action("half_convolutions"), Action("channels_last")),
    )
    """A pool of ours reads what a fused kernel turns back after a convolution with its channels last; torch's took 1.6 ms for 0.3 ms of bytes."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together."""
        if ir.takes_kernels and _windows(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such call replaced by a kernel; two of one form share one."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a pool or a depthwise convolution of contiguous tensors with windows that fit a block", f"not {action}")
        e = edit(ir)
        kernels: dict[str, WindowKernel] = {}
        for name in [node.name for node in _windows(ir)]:
            node = e.node(name)
            trial = WindowKernel("kernel", node)
            key = trial.text + trial.python_text()
            if key not in kernels:
                kernels[key] = WindowKernel(f"window_{len(kernels)}_{node.target.overloadpacket.__name__}", node)  # type: ignore[union-attr]
            e.replace(node, e.before(node).call(kernels[key], *trial.sources))
        return e.finish()


def _windows(ir: GraphIR) -> list[fx.Node]:
    return [node for node in find(ir, *_CALLS) if (window := windows.read(node)) is not None and window.elements >= LEAST_ELEMENTS]


TECHNIQUES = (WindowsCuda(),)

"""Fuse: element-wise chains, softmax, norms and row reductions as generated kernels, in C++ for a CPU and in CUDA C++ for a GPU."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cpp import losses, two_level
from warpwright.domains.graph.cpp.batch_norm import expand
from warpwright.domains.graph.cpp.calls import BUILDERS, COPIES, VIEWS
from warpwright.domains.graph.cpp.kernel import Fused, Kernel, Unsupported, build
from warpwright.domains.graph.cuda.kernel import CudaKernel
from warpwright.domains.graph.cuda.plan import DEFAULT, Tuning
from warpwright.domains.graph.ir import Edit, GraphIR, dtype, edit, has_effect, is_parameter_only, is_tensor, shape, sort, users, value, written
from warpwright.domains.graph.training_text import halves
from warpwright.errors import NotApplicable
from warpwright.space import Traits

LEAST_ELEMENTS = 4096
"""Below this a kernel's call costs more than its work."""

Maker = Callable[[str, Any, Sequence[fx.Node]], Fused]
"""Writes the kernel of a name, a program and its calls; raises Unsupported."""
Kind = type[Kernel] | type[CudaKernel]


@dataclass(frozen=True)
class FuseCpp:
    """y = mul(gelu(add(x, b)), c)  ->  y = kernel(x, b), one C++ function: several threads, one pass over memory, vectors.

    `calls` is how many calls a kernel has to replace at least. Sums are formed in another order; functions are within 4 ulp of the exact ones.
    """

    name: str = "fuse_cpp"
    traits: ClassVar[Traits] = Traits("S")
    least: tuple[int, ...] = (1, 2)

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all kernels together, for each least number of calls that makes a difference."""
        return [Action(self.name, params=(("calls", least),)) for least in _leasts(ir, self.name, self.least, Kernel)]

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every region that is large enough replaced by a kernel."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"{action} is not legal here", "take the action from sites(ir)")
        return _fused(ir, action, Kernel, Kernel)


def fuse_cuda(calls: int, tuning: Tuning) -> Action:
    """Return the action of `FuseCuda`."""
    return Action("fuse_cuda", params=(("calls", calls), ("block", tuning.block), ("vector", tuning.vector), ("unroll", tuning.unroll)))


@dataclass(frozen=True)
class FuseCuda:
    """y = mul(gelu(add(x, b)), c)  ->  y = kernel(x, b), one CUDA kernel: one pass over memory, a row that fits registers read once.

    `calls` is how many calls a kernel has to replace at least; block, vector and unroll are those of `cuda/plan.py`. Sums are formed in double and
    in another order.
    """

    name: str = "fuse_cuda"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(Action("cuda_graph"),))
    """Nothing that torch.compile does replaces it; what is left between kernels is launches."""
    least: tuple[int, ...] = (1, 2)
    tunings: tuple[Tuning, ...] = (DEFAULT, Tuning(block=512, unroll=2), Tuning(unroll=2), Tuning(block=128, unroll=4))
    """The first was within 3 % of the best in 24 of 28 cases on an H200, the others were better for one or another."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all kernels together, for each least number of calls that makes a difference and each tuning."""
        leasts = _leasts(ir, self.name, self.least, CudaKernel)
        pairs = [(least, tuning) for tuning in self.tunings for least in leasts if tuning == self.tunings[0] or least == leasts[0]]
        for least, tuning in pairs:
            yield fuse_cuda(least, tuning)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every region that is large enough replaced by a kernel."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"{action} is not legal here", "take the action from sites(ir)")
        given = dict(action.params)
        tuning = Tuning(int(given["block"]), int(given["vector"]), int(given["unroll"]))
        return _fused(ir, action, CudaKernel, lambda name, program, nodes: CudaKernel(name, program, nodes, tuning))


def _leasts(ir: GraphIR, name: str, least: Sequence[int], kind: Kind) -> list[int]:
    """Return the least numbers of calls that make a difference."""
    if ir.training is not None and not ir.training.tangents:
        return []  # autograd does not see into a kernel
    if ir.unreadable or ir.scheduled(name) or ir.scheduled("compile") or ir.scheduled("cuda_graph"):
        return []
    counts = [sum(_weight(region) >= n for region in _plan(ir, kind is CudaKernel)[1]) for n in least]
    return [n for i, n in enumerate(least) if counts[i] and counts[i] not in counts[:i]]


def _fused(ir: GraphIR, action: Action, kind: Kind, make: Maker) -> GraphIR:
    expanded, found = _plan(ir, kind is CudaKernel)
    least = int(dict(action.params)["calls"])
    e = edit(expanded)
    twin = {node.name: node for node in e.graph.nodes}
    kernels: dict[str, Fused] = {}
    for region in found:
        if _weight(region) >= least:
            _replace(e, [twin[node.name] for node in region], kernels, make)
    sort(e.graph)  # a kernel stands where its last call stood, after readers of its first results
    return e.finish().with_schedule(action)


@functools.lru_cache(maxsize=4)
def _plan(ir: GraphIR, on_gpu: bool) -> tuple[GraphIR, list[list[fx.Node]]]:
    """Return the IR with batch norms, losses and sums of normalised rows written out, and its regions; a search asks for sites often."""
    expanded = two_level.expand(losses.expand(expand(ir)))
    return expanded, regions(expanded, CudaKernel if on_gpu else Kernel)


def _weight(region: Sequence[fx.Node]) -> int:
    """Return how many calls do something: views and copies are for free."""
    return sum(node.target not in VIEWS for node in region)


def whole(ir: GraphIR) -> GraphIR:
    """Return the IR with every region as a C++ kernel, however small: for a program whose calls cost nothing."""
    e = edit(ir)
    twin = {node.name: node for node in e.graph.nodes}
    kernels: dict[str, Fused] = {}
    for region in regions(ir, Kernel, least=0):
        _replace(e, [twin[node.name] for node in region], kernels, Kernel)
    sort(e.graph)
    return e.finish()


def regions(ir: GraphIR, kind: Kind = Kernel, least: int = LEAST_ELEMENTS) -> list[list[fx.Node]]:
    """Return sets of calls that can each be one kernel, grown in graph order, each as large as it gets; `least` elements are worth one."""
    fixed = ir.scheduled("fold_parameters") is not None
    apart = _halves(ir)
    found: list[list[fx.Node]] = []
    for node in ir.graph.nodes:
        if not _fusable(node, kind.floats) or (fixed and is_parameter_only(node)):
            continue
        for region in reversed([r for r in found if any(arg in r for arg in node.all_input_nodes)]):
            if apart([*region, node]) and _buildable([*region, node]):
                region.append(node)
                _absorb(found, region, node, apart)
                break
        else:
            if node.target not in VIEWS and _buildable([node]):
                found.append([node])
    return [trimmed for region in found if (trimmed := _trimmed(region)) and _worthwhile(trimmed, kind, least)]


def _halves(ir: GraphIR) -> Callable[[Sequence[fx.Node]], bool]:
    """Return whether calls are all of a training step's forward, or none: what depends on a gradient that comes back cannot be there."""
    if ir.training is None or not ir.training.tangents:
        return lambda region: True
    early = set(halves(ir)[0])
    return lambda region: len({node in early for node in region}) == 1


def _absorb(found: list[list[fx.Node]], region: list[fx.Node], node: fx.Node, apart: Callable[[Sequence[fx.Node]], bool]) -> None:
    """Join other regions that `node` reads to its own."""
    for other in [r for r in found if r is not region and any(arg in r for arg in node.all_input_nodes)]:
        joined = sorted([*region, *other])
        if apart(joined) and _buildable(joined):
            region[:] = joined
            found.remove(other)


def _fusable(node: fx.Node, floats: Sequence[torch.dtype]) -> bool:
    if any(value(n).is_floating_point() and dtype(n) not in floats for n in (node, *node.all_input_nodes) if is_tensor(n)):
        return False
    if node.op != "call_function" or node.target not in BUILDERS or not is_tensor(node) or has_effect(node):
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


def _worthwhile(region: list[fx.Node], kind: Kind, least: int) -> bool:
    if all(node.target in VIEWS or node.target in COPIES for node in region):
        return False
    sizes = [math.prod(shape(n)) for node in region for n in (node, *node.all_input_nodes) if is_tensor(n)]
    try:
        kind("trial", build(region, _results(region)), region)
    except Unsupported:
        return False
    return max(sizes) >= least


def _replace(e: Edit, region: list[fx.Node], kernels: dict[str, Fused], make: Maker) -> None:
    """Put a kernel in place of the region. `kernels` holds those made so far: two of one text are one function."""
    results = _results(region)
    program = build(region, results)
    shown = [node.target.overloadpacket.__name__ for node in region if node.target not in VIEWS]  # type: ignore[union-attr]
    words = "_".join(dict.fromkeys(shown[:1] + shown[-1:]))
    trial = make("kernel", program, region)
    text = f"{words} {trial.text} {trial.python_text()}"
    if text not in kernels:
        kernels[text] = make(f"kernel_{len(kernels)}_{words}", program, region)
    at = e.before(max(region))
    made = at.call(kernels[text], *trial.sources)
    for i, node in enumerate(results):
        e.replace(node, made if len(results) == 1 else at.item(made, i))


TECHNIQUES = (FuseCpp(),)
CUDA_TECHNIQUES = (FuseCuda(),)

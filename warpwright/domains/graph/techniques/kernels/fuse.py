"""Fuse: element-wise chains, softmax, norms and row reductions as generated kernels, in C++ for a CPU and in CUDA C++ for a GPU."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cpp import firsts, losses, sums, two_level
from warpwright.domains.graph.cpp.batch_norm import expand, updated_together
from warpwright.domains.graph.cpp.calls import bags
from warpwright.domains.graph.cpp.kernel import Fused, Kernel, copy_of
from warpwright.domains.graph.cpp.program import Unsupported
from warpwright.domains.graph.cpp.regions import LEAST_ELEMENTS, Maker, regions, replace, replace_with, weight
from warpwright.domains.graph.cpp.regions import elements as size_of
from warpwright.domains.graph.cuda.kernel import CudaKernel, WindowKernel
from warpwright.domains.graph.cuda.plan import DEFAULT, Tuning
from warpwright.domains.graph.ir import Edit, GraphIR, aten, dtype, edit, is_op, is_parameter_only, is_tensor, shape, sort, value
from warpwright.domains.graph.techniques import reordered
from warpwright.domains.graph.techniques.convolutions import bias, statistics
from warpwright.errors import NotApplicable
from warpwright.space import Traits

Kind = type[Kernel] | type[CudaKernel]


@dataclass(frozen=True)
class FuseCpp:
    """y = mul(gelu(add(x, b)), c)  ->  y = kernel(x, b), one C++ function: several threads, one pass over memory, vectors.

    `calls` is how many calls a kernel has to replace at least. Sums are formed in another order; functions are within 4 ulp of the exact ones.
    """

    name: str = "fuse_cpp"
    traits: ClassVar[Traits] = Traits("S", before_rewrites=True)
    least: tuple[int, ...] = (1, 2)

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all kernels together, for each least number of calls that makes a difference."""
        return [Action(self.name, params=(("calls", least),)) for least in _leasts(ir, self.name, self.least, Kernel)]

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every region that is large enough replaced by a kernel."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"{action} is not legal here", "take the action from sites(ir)")
        return _fused(ir, action, Kernel, Kernel)


def fuse_cuda(calls: int, tuning: Tuning, elements: int = LEAST_ELEMENTS) -> Action:
    """Return the action of `FuseCuda`."""
    shape = (("calls", calls), ("block", tuning.block), ("vector", tuning.vector), ("unroll", tuning.unroll))
    return Action("fuse_cuda", params=shape if elements == LEAST_ELEMENTS else (*shape, ("elements", elements)))


@dataclass(frozen=True)
class FuseCuda:
    """y = mul(gelu(add(x, b)), c)  ->  y = kernel(x, b), one CUDA kernel: one pass over memory, a row that fits registers read once.

    `calls` is how many calls a kernel has to replace at least, `elements` how many its largest tensor has; block, vector and unroll are those of
    `cuda/plan.py`. Sums are formed in double and in another order.
    """

    name: str = "fuse_cuda"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, settled=True, best_with=(Action("cuda_graph"), Action("launch_plan")))
    """Nothing that torch.compile does replaces it; what is left between kernels is launches. Of 72 programs of an H200 two were faster without it,
    and of 20 more that were timed without it first six (results/first_choices_h200)."""
    least: tuple[int, ...] = (1, 2)
    tunings: tuple[Tuning, ...] = (DEFAULT, Tuning(block=512, unroll=2), Tuning(unroll=2), Tuning(block=128, unroll=4))
    """The first was within 3 % of the best in 24 of 28 cases on an H200, the others were better for one or another."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all kernels together, for each least number of calls that makes a difference and each tuning."""
        leasts = _leasts(ir, self.name, self.least, CudaKernel)
        small = self._small(ir)
        if leasts:
            yield fuse_cuda(leasts[0], self.tunings[0])
        if small:
            yield small
        pairs = [(least, tuning) for tuning in self.tunings for least in leasts if tuning == self.tunings[0] or least == leasts[0]]
        for least, tuning in pairs[1:]:
            yield fuse_cuda(least, tuning)

    def _small(self, ir: GraphIR) -> Action | None:
        """Return the action that fuses small calls too, where there are any: launched from Python such a kernel costs more than it saves, and in a
        CUDA graph each call that is saved is a gap less."""
        if ir.training is not None or not _may_fuse(ir, self.name):
            return None
        every, large = (sum(map(weight, _plan(ir, True, elements)[1])) for elements in (0, LEAST_ELEMENTS))
        return fuse_cuda(self.least[0], self.tunings[0], 0) if every > large else None

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every region that is large enough replaced by a kernel."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"{action} is not legal here", "take the action from sites(ir)")
        params = dict(action.params)
        tuning = Tuning(int(params["block"]), int(params["vector"]), int(params["unroll"]))
        expanded = _plan(ir, True)[0]
        results = zip(expanded.results, ir.strides, strict=False)
        tensors = [(node, strides) for node, strides in results if is_tensor(node) and len(strides) == len(shape(node))]
        plain = {node.name for node, strides in tensors if torch.empty_strided(shape(node), strides, device="meta").is_contiguous()}
        windows = [node for node in expanded.graph.nodes if isinstance(node.target, WindowKernel)]
        plain |= {source.name for node in windows for source in node.all_input_nodes}  # they read in order, so they are written so
        copies = [node for node in expanded.graph.nodes if is_op(node, aten.contiguous.default) and value(node).is_contiguous()]
        plain |= {source.name for node in copies for source in node.all_input_nodes if len(source.users) == 1}  # such a copy has nothing to do then
        return _fused(ir, action, CudaKernel, lambda name, program, nodes: CudaKernel(name, program, nodes, tuning, plain))


def _leasts(ir: GraphIR, name: str, least: Sequence[int], kind: Kind) -> list[int]:
    """Return the least numbers of calls that make a difference."""
    if not _may_fuse(ir, name):
        return []
    counts = [sum(weight(region) >= n for region in _plan(ir, kind is CudaKernel)[1]) for n in least]
    return [n for i, n in enumerate(least) if counts[i] and counts[i] not in counts[:i]]


def _may_fuse(ir: GraphIR, name: str) -> bool:
    if ir.training is not None and not ir.training.tangents:
        return False  # autograd does not see into a kernel
    return not ir.unreadable and not any(ir.scheduled(other) for other in (name, "compile", "plan", "ahead_of_time", "cuda_graph", "launch_plan"))


def _fused(ir: GraphIR, action: Action, kind: Kind, make: Maker) -> GraphIR:
    least, elements = (int(dict(action.params).get(name, usual)) for name, usual in (("calls", 1), ("elements", LEAST_ELEMENTS)))
    expanded, regions = _plan(ir, kind is CudaKernel, elements)
    e = edit(expanded)
    twin = {node.name: node for node in e.graph.nodes}
    kernels: dict[str, Fused] = {}
    for region in regions:
        if weight(region) >= least:
            replace(e, [twin[node.name] for node in region], kernels, make)
    if kind is CudaKernel:
        _turn(e, kernels, make)
        _turn_back(e, kernels, make)
    sort(e.graph)  # a kernel stands where its last call stood, after readers of its first results
    return e.finish().with_schedule(action)


LEAST_COPIED = 1 << 20
"""Elements of a copy into order that is a kernel of ours: a smaller one takes torch less time than our call from Python."""


def _turn(e: Edit, kernels: dict[str, Fused], make: Maker) -> None:
    """Put a kernel in place of each conversion to channels last, and of each large copy into order: torch's copy reached a quarter of an H200's
    bandwidth in the former, and a seventh in [32, 16, 1024, 128] of bfloat16 whose last dimensions change places."""
    for node in [node for node in e.graph.nodes if is_op(node, aten.contiguous.default) and not is_parameter_only(node)]:
        source: Any = node.args[0]
        last = value(source).is_contiguous() and not value(node).is_contiguous()
        in_order = value(node).is_contiguous() and not value(source).is_contiguous()
        if not (last or in_order) or math.prod(shape(node)) < (LEAST_ELEMENTS if last else LEAST_COPIED):
            continue
        if dtype(node) not in CudaKernel.floats:  # others would lose digits
            continue
        program = copy_of(node)
        trial: Any
        try:
            trial = make("trial", program, [node])
            turns = bool(trial.laid if last else trial.expected)
        except Unsupported:
            continue
        if turns:
            replace_with(e, node, program, kernels, make)


def _turn_back(e: Edit, kernels: dict[str, Fused], make: Maker) -> None:
    """Put a kernel before each that would have torch copy an operand into order, such as a norm's over channels that come last: torch's copy took
    1.6 ms of 3.2 on an H200 (KernelBench's 2:17)."""
    for call in [node for node in e.graph.nodes if isinstance(node.target, CudaKernel)]:
        kernel: Any = call.target
        for at, source in enumerate(list(call.args)):
            if at in kernel.expected or not is_tensor(source) or value(source).is_contiguous() or is_parameter_only(source):  # type: ignore[arg-type]
                continue
            if math.prod(shape(source)) < LEAST_ELEMENTS or dtype(source) not in CudaKernel.floats:  # type: ignore[arg-type]
                continue  # indices would lose digits, too
            node = e.before(call).call(aten.contiguous.default, source)
            program = copy_of(node)
            trial: Any
            try:
                trial = make("trial", program, [node])
                reads_it = bool(trial.expected)
            except Unsupported:
                reads_it = False
            if not reads_it:
                e.graph.erase_node(node)
                continue
            call.replace_input_with(source, node)  # type: ignore[arg-type]
            kernel.turned |= {at}
            replace_with(e, node, program, kernels, make)


def _plan(ir: GraphIR, on_gpu: bool, least: int = LEAST_ELEMENTS) -> tuple[GraphIR, list[list[fx.Node]]]:
    """Return the IR with batch norms, losses, sums of normalised rows and biases written out, and its regions of at least so many elements."""
    expanded, grown = _grown(ir, on_gpu)
    return expanded, [region for region in grown if size_of(region) >= least]


@functools.lru_cache(maxsize=8)
def _grown(ir: GraphIR, on_gpu: bool) -> tuple[GraphIR, list[list[fx.Node]]]:
    """Return what `_plan` does, with regions of any size; a search asks for sites often."""
    expanded = two_level.expand(losses.expand(expand(statistics.expand(ir) if on_gpu else ir), on_gpu))
    if on_gpu:  # on a CPU oneDNN adds it while it writes
        expanded = reordered.expand(bias.expand(bags.expand(sums.expand(expanded))), LEAST_COPIED)
        if ir.training is None:  # a step's forward half ends before the program does; amax shares gradients among equal elements, max does not
            expanded = firsts.expand(updated_together(expanded), CudaKernel.floats)
    return expanded, regions(expanded, CudaKernel if on_gpu else Kernel, least=0)


TECHNIQUES = (FuseCpp(),)
CUDA_TECHNIQUES = (FuseCuda(),)

"""Schedules: the same calls, run in another way. The mathematics stays."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR, aten, edit, find, is_op, is_random, is_tensor, shape, value, without_views, written
from warpwright.domains.graph.plan.prepare import prepare
from warpwright.domains.graph.plan.program import plan
from warpwright.domains.graph.techniques.algebra.einsum import in_pairs
from warpwright.domains.graph.techniques.convolutions.convolution import CONVOLUTIONS, TRANSPOSED
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits


def _compiled_baseline(action: Action) -> str:
    return "compile" if dict(action.params).get("mode") == "default" else "compile_max_autotune"


def _tries_kernels(action: Action) -> bool:
    """Does this mode of torch.compile try kernels out? On an H200 that took 20 to 60 s a program."""
    return dict(action.params).get("mode") != "default"


LAST = ("compile", "plan", "ahead_of_time", "launch_plan", "cuda_graph")
"""Schedules of the whole program, of which there is one, and nothing after it but a CUDA graph of what torch.compile made."""


@dataclass(frozen=True)
class Compile:
    """optimized(...)  ->  torch.compile(optimized, mode=...)(...)."""

    name: str = "compile"
    modes: tuple[str, ...] = ("default", "max-autotune-no-cudagraphs")
    traits: ClassVar[Traits] = Traits("S", in_baselines=True, baseline=_compiled_baseline, slow_to_build=_tries_kernels)

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action a mode. Not before another schedule that has to come last, and not round generated kernels that it cannot call."""
        generated = [node.target for node in ir.graph.nodes if hasattr(node.target, "python_text")]
        if any(ir.scheduled(name) for name in LAST) or not all(getattr(target, "compilable", False) for target in generated):
            return
        for mode in self.modes:
            yield Action(self.name, params=(("mode", mode),))

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with compilation on."""
        return _scheduled(self.sites(ir), _laid_out(ir), action)


@dataclass(frozen=True)
class AheadOfTime:
    """optimized(...)  ->  the same function as machine code of AOTInductor, called without Python: inputs and state are its arguments.

    What is left out of a call, against torch.compile, are guards, the wrapper in Python and its calls of operators: 0.36 -> 0.14 ms for a BERT
    of two layers and 24 tokens. Not for random calls, for calls that write to what they are given, nor for arguments that are no tensors.
    """

    name: str = "ahead_of_time"
    traits: ClassVar[Traits] = Traits("S", slow_to_build=lambda action: True)
    """14 to 25 s; `NativePlan` takes 2 to 5, and is tried in its place where it is legal."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield the action where the machine code means the same as the calls."""
        if not ir.values and _is_function_of_tensors(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with compilation ahead of time on."""
        return _scheduled(self.sites(ir), _laid_out(without_views(ir)), action)


def _laid_out(ir: GraphIR) -> GraphIR:
    """Return the IR with reshapes in the place of views, and results that are made contiguous where they are.

    Of `cat(x.permute(0, 2, 1, 3), ...)`, which eager lays out anew, torch.compile expects in some cases the order of its operands' axes; a
    `contiguous()` after it is not in the graph, for it does nothing in eager: a view would fail, and a result would have other strides.
    """
    e = edit(ir)
    for name in [node.name for node in find(ir, aten.view.default)]:
        e.node(name).target = aten.reshape.default
    output = e.ir.output
    at, made = e.before(output), dict[torch.fx.Node, torch.fx.Node]()
    for node in e.ir.results:
        if not isinstance(node, torch.fx.Node) or node.op != "call_function" or not is_tensor(node):
            continue
        if value(node).is_contiguous() or is_op(node, aten.cat.default):  # whose fake tensor has those other strides too
            made[node] = made.get(node) or at.call(aten.contiguous.default, node)
    output.args = (tuple(made.get(result, result) for result in e.ir.results),)
    return e.finish()


@dataclass(frozen=True)
class NativePlan:
    """optimized(...)  ->  the same function as one C++ file: fused loops, and calls of torch's C shim between, built in seconds (plan/).

    Legal where `AheadOfTime` is, and where every call is one that a plan can hold. Inputs and state are its arguments, so that nothing is stale.
    Sums are formed in another order; functions are within 4 ulp of the exact ones.
    """

    name: str = "plan"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, before_rewrites=True)

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield the action where there is a plan that means the same as the calls."""
        if _is_function_of_tensors(ir) and not ir.scheduled("channels_last") and _planned(ir) is not None:
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with its calls in a plan's form, and the plan on."""
        planned = _planned(ir)
        if action not in list(self.sites(ir)) or planned is None:
            raise NotApplicable(f"{action} is not legal here", "take the action from sites(ir)")
        return planned


@functools.lru_cache(maxsize=4)
def _planned(ir: GraphIR) -> GraphIR | None:
    """Return the IR as a plan, None where there is none; a search asks for sites often."""
    try:
        planned = prepare(in_pairs(without_views(ir))).with_schedule(Action("plan"))
        plan(planned)
    except NotApplicable:
        return None
    return planned


def _is_function_of_tensors(ir: GraphIR) -> bool:
    """Is the program plain calls that take tensors and make tensors of their own, without random numbers, and not scheduled as a whole yet?"""
    plain = not ir.unreadable and ir.training is None
    plain = plain and all(isinstance(result, torch.fx.Node) and is_tensor(result) for result in leaves(ir))
    if not plain or any(ir.scheduled(name) for name in LAST) or ir.scheduled("full_precision_convolutions"):
        return False
    nodes = [node for node in ir.graph.nodes if node.op == "call_function"]
    if not nodes or any(is_random(node) or hasattr(node.target, "python_text") or list(written(node)) for node in nodes):
        return False
    return _owns_its_results(without_views(ir))


def leaves(ir: GraphIR) -> list[Any]:
    """Return the results that are no constants of the program."""
    return [result for result in ir.results if not (result is None or isinstance(result, bool | int | float | str))]


def _owns_its_results(ir: GraphIR) -> bool:
    """Does each result have a storage of its own, which is no argument's?"""
    storages = [_storage(node) for node in ir.results if is_tensor(node)]
    return len(set(storages)) == len(storages) and not _storages_of_inputs(ir) & set(storages)


def _storages_of_inputs(ir: GraphIR) -> set[int]:
    """Return the storages of what a call is given, inputs and state."""
    return {_storage(node) for node in ir.graph.nodes if node.op == "placeholder" and is_tensor(node)}


def _storage(node: torch.fx.Node) -> int:
    return int(value(node).untyped_storage()._cdata)


@dataclass(frozen=True)
class CudaGraph:
    """optimized(x)  ->  copy x in, replay a recorded graph of optimized, copy the results out. CUDA only, and the last schedule.

    Recorded anew when a tensor of the state moves. Results that share storage, share that of one copy. Not for random calls, nor for results that
    share storage with what is given.
    """

    name: str = "cuda_graph"
    traits: ClassVar[Traits] = Traits("S", in_baselines=True, baseline=lambda action: "cuda_graph")

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield the action where a recording means the same as the calls."""
        if ir.scheduled(self.name) or ir.scheduled("launch_plan") or any(is_random(node) for node in ir.graph.nodes):
            return
        if not {_storage(node) for node in ir.results if is_tensor(node)} & _storages_of_inputs(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with recording on."""
        assume = "the model's own code draws no random numbers and reads no tensor's value" if ir.unreadable else ""
        return _scheduled(self.sites(ir), ir, action, assume)


def _scheduled(sites: Iterable[Action], ir: GraphIR, action: Action, assume: str = "") -> GraphIR:
    if action not in list(sites):
        raise NotApplicable(f"{action} is not legal here", "take the action from sites(ir)")
    return ir.with_schedule(action, assume)


_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


@dataclass(frozen=True)
class ChannelsLast:
    """conv(x, W)  ->  conv(x in channels-last layout, W in channels-last layout) for every 2D and 3D convolution.

    What follows keeps the layout; results get the original's strides back.
    """

    name: str = "channels_last"
    traits: ClassVar[Traits] = Traits("S", best_with=(Action("compile", params=(("mode", "default"),)), fuse_cuda(1, DEFAULT)))
    """Alone it costs a pass over the input and one over the output, which fused kernels have anyway."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield the action when there is a convolution of 4D or 5D tensors."""
        if ir.scheduled(self.name) is None and not (ir.scheduled("plan") or ir.scheduled("launch_plan")) and _convolutions(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with the operands of every convolution converted."""
        if not list(self.sites(ir)):
            raise NotApplicable("expected a 2D or 3D convolution, saw none, or channels_last is on already")
        e = edit(ir)
        for name in [node.name for node in _convolutions(ir)]:
            node = e.node(name)
            layout = _FORMATS[len(shape(node))]
            for position in (0, 1):
                tensor = node.args[position]
                if is_op(tensor, *CONVOLUTIONS, *TRANSPOSED) or (is_tensor(tensor) and value(tensor).is_contiguous(memory_format=layout)):  # type: ignore[arg-type]
                    continue
                converted = e.before(node).call(aten.contiguous.default, tensor, memory_format=layout)
                node.update_arg(position, converted)
        return e.finish().with_schedule(action)


def _convolutions(ir: GraphIR) -> list[torch.fx.Node]:
    return [node for node in find(ir, *CONVOLUTIONS, *TRANSPOSED) if len(shape(node)) in _FORMATS and len(shape(node.args[0])) == len(shape(node))]  # type: ignore[arg-type]


TECHNIQUES = (ChannelsLast(), Compile())
CPU_TECHNIQUES = (NativePlan(), AheadOfTime())
CUDA_TECHNIQUES = (CudaGraph(),)

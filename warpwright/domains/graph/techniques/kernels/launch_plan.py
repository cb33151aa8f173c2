"""Launch plan: kernels of ours that stand next to one another, as one native call."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cpp.program import Unsupported
from warpwright.domains.graph.cuda.kernel import CudaKernel
from warpwright.domains.graph.cuda.launches import Forms, Launches, key, moved
from warpwright.domains.graph.ir import GraphIR, edit, foldable, has_effect, is_tensor, sort, value
from warpwright.domains.graph.techniques.schedule import LAST
from warpwright.errors import NotApplicable
from warpwright.space import Traits

MOST_BYTES = 1 << 28
"""That a kernel moves, on average: 64 us of an H200, of which the 3 us that a launch by the plan saves are 5 %."""


@dataclass(frozen=True)
class LaunchPlan:
    """kernel_1(kernel_0(x))  ->  plan(x), one native call that launches both; calls of torch stay between such plans. CUDA only.

    Results are tensors of their own, and so is the memory between kernels in each call. Nothing is kept of a call, and parameters are arguments, so
    nothing is stale. Where the machine has no C compiler the kernels are launched from Python, and a warning says so.
    """

    name: str = "launch_plan"
    traits: ClassVar[Traits] = Traits("S", in_baselines=True, settled=True)
    """No baseline is like it; like a CUDA graph it goes with any kernels. 30 of 33 programs were faster with it, at 0.82 of the time."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield the action where kernels of ours could be launched at once, and launches are some part of the time."""
        if ir.unreadable or ir.training is not None or any(ir.scheduled(name) for name in LAST):
            return
        kernels = [node for run in _runs(ir) for node in run if isinstance(node.target, CudaKernel)]
        if kernels and sum(map(moved, kernels)) <= MOST_BYTES * len(kernels):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every run of kernels as one call."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"{action} is not legal here", "take the action from sites(ir)")
        e = edit(ir)
        twin = {node.name: node for node in e.graph.nodes}
        for number, run in enumerate(_runs(ir)):
            _replace(e, [twin[node.name] for node in run], f"launches_{number}")
        sort(e.graph)
        return e.finish().with_schedule(action)


def _replace(e: Any, run: Sequence[fx.Node], name: str) -> None:
    fresh = _read_outside(run)
    plan = Launches(name, run, list(fresh.values()))
    at = e.before(max(node for node in run if isinstance(node.target, CudaKernel)))
    new = at.call(plan, *plan.sources)
    made = {own: new if len(fresh) == 1 else at.item(new, i) for i, own in enumerate(fresh)}
    for node in run:
        if key(node) in made:
            e.replace(node, made[key(node)])


def _runs(ir: GraphIR) -> Iterable[list[fx.Node]]:
    """Yield kernels that follow one another, with the selections of their results and the views that they read; each as long as it gets."""
    fixed = foldable(ir.graph) if ir.scheduled("fold_parameters") is not None else set()
    run: list[fx.Node] = []
    forms = Forms()
    for node in ir.graph.nodes:
        if node.op == "placeholder" or node in fixed or node in run:
            continue
        if _may_stand(node, run) and _fits(node, forms):
            run += _with_results(node)
        elif isinstance(node.target, CudaKernel) or node.op == "output" or has_effect(node) or set(node.all_input_nodes) & set(run):
            yield from _finished(run)
            run, forms = [], Forms()
            if isinstance(node.target, CudaKernel) and _fits(node, forms):
                run += _with_results(node)
    yield from _finished(run)


def _with_results(node: fx.Node) -> list[fx.Node]:
    """Return a call, and where it has several results the selections of them."""
    return [node] if is_tensor(node) else [node, *sorted(node.users)]


def _fits(node: fx.Node, forms: Forms) -> bool:
    """Can a table hold it?"""
    try:
        forms.add(node)
    except Unsupported:
        return False
    return True


def _finished(run: Sequence[fx.Node]) -> Iterable[list[fx.Node]]:
    trimmed = _trimmed(run)
    if trimmed:
        yield trimmed


def _may_stand(node: fx.Node, run: Sequence[fx.Node]) -> bool:
    """Is it a kernel, or a view of what one of the run makes?"""
    if isinstance(node.target, CudaKernel):
        return True
    if not isinstance(node.target, torch._ops.OpOverload) or node.target._schema.is_mutable or not is_tensor(node):
        return False
    source = node.args[0] if node.args else None
    inside = isinstance(source, fx.Node) and source in run and is_tensor(source) and node.all_input_nodes == [source]
    return inside and value(node).untyped_storage()._cdata == value(source).untyped_storage()._cdata  # type: ignore[arg-type]


def _trimmed(run: Sequence[fx.Node]) -> list[fx.Node]:
    """Return the run without views that none of its kernels read: they stay calls of torch."""
    kept: list[fx.Node] = []
    for node in reversed(run):
        read = any(user in kept for user in node.users)
        if isinstance(node.target, CudaKernel) or node.target is operator.getitem or read:
            kept.append(node)
    return kept[::-1]


def _read_outside(run: Sequence[fx.Node]) -> dict[Any, fx.Node]:
    """Return the tensors of the run, without views, that others read, or views of which they read; by what they are known by."""
    inside = set(run)
    fresh: dict[Any, fx.Node] = {}
    for node in run:
        if not is_tensor(node) or not (isinstance(node.target, CudaKernel) or node.target is operator.getitem):
            continue
        if any(user not in inside or _leaves(user, inside) for user in node.users):
            fresh.setdefault(key(node), node)
    return fresh


def _leaves(view: fx.Node, inside: set[fx.Node]) -> bool:
    """Is this a view of the run that others read?"""
    if isinstance(view.target, CudaKernel):
        return False
    return any(user not in inside or _leaves(user, inside) for user in view.users)


CUDA_TECHNIQUES = (LaunchPlan(),)

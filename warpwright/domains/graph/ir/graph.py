"""`GraphIR`: what one call of a model computes, as a graph and what belongs to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.ir.effects import remove_dead
from warpwright.domains.graph.ir.nodes import is_tensor, role, type_text, value
from warpwright.errors import NotApplicable


@dataclass(frozen=True)
class Training:
    """That a graph is of a training step, and how far: forward alone, which torch differentiates, or the gradients too."""

    wanted: tuple[str, ...]
    """Placeholders, inputs and parameters, that have gradients."""
    results: int
    """How many of the results are the module's own; gradients come after them, in the order of `wanted`, None where there is none."""
    reached: tuple[str, ...] = ()
    """Those of `wanted` to which gradients flow in the original."""
    tangents: tuple[str, ...] = ()
    """Placeholders of the gradients that come back to the results, the last of the inputs; empty before `differentiate`."""
    ends: tuple[int, ...] = ()
    """The results that they come back to."""


@dataclass(frozen=True)
class View:
    """A result as a view of another one's memory."""

    of: int
    """The number of a result that is contiguous from the beginning of its memory to the end."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


@dataclass(frozen=True, eq=False)
class GraphIR:
    """What one call of a model computes. Never changed in place: `edit` works on a copy."""

    graph: fx.Graph
    inputs: tuple[str, ...]
    """Placeholder names of the user's inputs, flattened, in call order."""
    state: Mapping[str, str]
    """Placeholder name -> dotted attribute path in the model (for what is in the state_dict, its key there)."""
    constants: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """Placeholder name -> value of a tensor literal written in the model's forward."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Inputs that are no tensors, and the value that the graph was specialised to."""
    structure: Any = 0
    """What the call returns: nested tuples, lists, dicts and `results.Built` with indices into the output node's flat results."""
    call: Any = ()
    """What the call takes: positional arguments, nested in the same way, with indices into `inputs`."""
    strides: tuple[tuple[int, ...], ...] = ()
    """The original results' strides, which lowering restores."""
    views: Mapping[int, View] = field(default_factory=dict)
    """Results that the graph does not compute, by number: they are views of others (`without_views`), and None in the output node."""
    flags: tuple[tuple[str, bool], ...] = (("", True),)
    """Paths of the parts whose training flags may matter, and the values for which alone the graph is right."""
    unreadable: str = ""
    """Why the model could not be captured; the graph is then empty and only schedule techniques apply."""
    schedule: tuple[Action, ...] = ()
    """How to run it: options that do not change the graph (compile, cuda_graph, fold_parameters ...)."""
    assumptions: tuple[str, ...] = ()
    """What the rewrites so far take for granted, in words."""
    training: Training | None = None
    """Of a training step; None: no gradients are wanted."""

    @property
    def output(self) -> fx.Node:
        """The output node; its `args[0]` is the flat tuple of results."""
        return self.graph.output_node()

    @property
    def results(self) -> tuple[Any, ...]:
        """The flat results."""
        return tuple(self.output.args[0])  # type: ignore[arg-type]

    def node(self, name: str) -> fx.Node:
        """Return the node called `name`; NotApplicable if there is none."""
        node: fx.Node
        for node in self.graph.nodes:
            if node.name == name:
                return node
        raise NotApplicable(f"expected a node {name!r} in the graph, saw none", "take the action's place from sites(ir)")

    def scheduled(self, technique: str) -> Action | None:
        """Return the schedule's action of that technique, or None."""
        return next((action for action in self.schedule if action.technique == technique), None)

    @property
    def takes_kernels(self) -> bool:
        """Whether calls may still be replaced by kernels of ours: it is no training step, and nothing that takes the graph as it is was scheduled."""
        return self.training is None and not (self.scheduled("compile") or self.scheduled("cuda_graph") or self.scheduled("launch_plan"))

    def with_schedule(self, action: Action, assume: str = "") -> GraphIR:
        """Return the same graph with one more scheduling option."""
        return replace(self, schedule=(*self.schedule, action), assumptions=extended(self.assumptions, assume))


def extended(assumptions: tuple[str, ...], more: str) -> tuple[str, ...]:
    """Return the assumptions with one more, where there is one and it is new."""
    return assumptions if not more or more in assumptions else (*assumptions, more)


def find(ir: GraphIR, *ops: Any) -> list[fx.Node]:
    """Return the calls of any of `ops`, in graph order."""
    wanted = {id(op) for op in ops}
    calls = [node for node in ir.graph.nodes if node.op == "call_function"]
    return [node for node in calls if id(node.target) in wanted or id(getattr(node.target, "overloadpacket", node)) in wanted]


def placeholders(ir: GraphIR, kind: str) -> Iterable[fx.Node]:
    """Yield the placeholders of one role."""
    return (node for node in ir.graph.nodes if node.op == "placeholder" and role(node) == kind)


def copy(ir: GraphIR) -> GraphIR:
    """Return an IR whose graph may be changed without touching `ir`; nodes keep their names and share their meta tensors."""
    graph = fx.Graph()
    twin: dict[fx.Node, fx.Node] = {}
    for node in ir.graph.nodes:
        new = graph.create_node(
            node.op, node.target, fx.map_arg(node.args, twin.__getitem__), fx.map_arg(node.kwargs, twin.__getitem__), name=node.name
        )
        assert new.name == node.name, f"fx renamed {node.name} to {new.name}"
        new.meta = dict(node.meta)
        twin[node] = new
    return replace(ir, graph=graph)


def without_views(ir: GraphIR) -> GraphIR:
    """Return the IR with results that are views of other results, of their dtype, taken out of the graph: `views` says what they are."""
    results, owners, views = list(ir.results), dict[int, int](), dict[int, View]()
    tensors = [(number, value(node)) for number, node in enumerate(results) if is_tensor(node)]
    for number, val in tensors:
        if val.is_contiguous() and val.storage_offset() == 0 and val.nbytes == val.untyped_storage().nbytes():
            owners.setdefault(val.untyped_storage()._cdata, number)
    for number, val in tensors:
        owner = owners.get(val.untyped_storage()._cdata, number)
        if owner != number and val.dtype == value(results[owner]).dtype:
            views[number] = View(owner, tuple(val.shape), tuple(val.stride()), int(val.storage_offset()))
    if not views:
        return ir
    copied = copy(ir)
    copied.output.args = (tuple(None if number in views else result for number, result in enumerate(copied.results)),)
    remove_dead(copied.graph)
    return replace(copied, views={**ir.views, **views})


def text(ir: GraphIR) -> str:
    """Return the graph, one node a line, for people and golden tests."""
    lines = []
    for node in ir.graph.nodes:
        if node.op == "placeholder":
            where = ir.state.get(node.name, "")
            lines.append(f"{role(node)} {node.name}: {type_text(node)}" + (f" = {where}" if where else ""))
        elif node.op == "call_function":
            arguments = [_show(a) for a in node.args] + [f"{k}={_show(v)}" for k, v in node.kwargs.items()]
            name = getattr(node.target, "__name__", str(node.target)).removesuffix(".default")
            lines.append(f"{node.name}: {type_text(node)} = {name}({', '.join(arguments)})")
    lines.append(f"return {', '.join(_show(r) for r in ir.results)}")
    lines += [f"schedule {action}" for action in ir.schedule] + [f"assumes {a}" for a in ir.assumptions]
    return "\n".join(lines) + "\n"


def _show(item: Any) -> str:
    if isinstance(item, fx.Node):
        return item.name
    if isinstance(item, tuple | list):
        return "[" + ", ".join(_show(i) for i in item) + "]"
    return str(item)

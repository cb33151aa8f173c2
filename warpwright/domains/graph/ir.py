"""The graph domain's IR: a frozen wrapper round a torch.fx graph of aten operators, and the one way to change it.

A node of `ir.graph` is a placeholder, a call of an aten overload (or of `operator.getitem` on one with several results),
or the output. Every node that stands for a tensor has `node.meta["val"]`, a meta tensor of its shape, dtype and strides;
two values share storage exactly when their meta tensors do. Placeholders carry `node.meta["role"]`: input, state or
constant. Intermediate results are never written in place; only state is (`add_` on BatchNorm's counter, BatchNorm's
running statistics), and those writes are part of what a rewrite keeps.

Changing it:

    e = edit(ir)
    old = e.node("linear")
    new = e.before(old).call(aten.sum.dim_IntList, old.args[0], [1], True)
    e.replace(old, new)
    return e.finish(assume="...")
"""

from __future__ import annotations

import functools
import heapq
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from warpwright.base import Action
from warpwright.domains.graph.meta import infer, on_device, propagate
from warpwright.domains.graph.results import nest
from warpwright.errors import NotApplicable

aten = torch.ops.aten

_RUNNING_STATISTICS = {aten.batch_norm.default: (5, 3, 4), aten.instance_norm.default: (5, 3, 4)}
"""Operators whose schema hides that they write running statistics: index of the switch, then of the written arguments."""


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
        return self.training is None and not (self.scheduled("compile") or self.scheduled("cuda_graph"))

    def with_schedule(self, action: Action, assume: str = "") -> GraphIR:
        """Return the same graph with one more scheduling option."""
        return replace(self, schedule=(*self.schedule, action), assumptions=_extended(self.assumptions, assume))


def _extended(assumptions: tuple[str, ...], more: str) -> tuple[str, ...]:
    return assumptions if not more or more in assumptions else (*assumptions, more)


# --- looking ---------------------------------------------------------------------------------------------------------


def value(node: fx.Node) -> torch.Tensor:
    """Return the node's meta tensor; NotApplicable when the node stands for something else."""
    val = node.meta.get("val")
    if not isinstance(val, torch.Tensor):
        raise NotApplicable(f"expected {node.name} to be one tensor, saw {type(val).__name__}")
    return val


def shape(node: fx.Node) -> tuple[int, ...]:
    """Return the sizes of the node's tensor."""
    return tuple(value(node).shape)


def dtype(node: fx.Node) -> torch.dtype:
    """Return the element type of the node's tensor."""
    return value(node).dtype


def is_tensor(node: Any) -> bool:
    """Is this argument a node that stands for one tensor?"""
    return isinstance(node, fx.Node) and isinstance(node.meta.get("val"), torch.Tensor)


def users(node: fx.Node) -> tuple[fx.Node, ...]:
    """Return the nodes that read this one, in graph order."""
    return tuple(sorted(node.users))


def only_user(node: fx.Node) -> fx.Node | None:
    """Return the one node that reads this one, or None when there are none or several."""
    return next(iter(node.users)) if len(node.users) == 1 else None


def is_op(node: Any, *ops: Any) -> bool:
    """Is this a call of one of `ops`, each an overload (aten.sum.dim_IntList) or a packet for all its overloads (aten.sum)?"""
    if not isinstance(node, fx.Node) or node.op != "call_function":
        return False
    target = node.target
    packet = getattr(target, "overloadpacket", None)
    for op in ops:  # noqa: SIM110 - asked a million times of a program of 1,000 calls: a generator would take twice as long
        if target is op or packet is op:
            return True
    return False


def find(ir: GraphIR, *ops: Any) -> list[fx.Node]:
    """Return the calls of any of `ops`, in graph order."""
    wanted = {id(op) for op in ops}
    calls = [node for node in ir.graph.nodes if node.op == "call_function"]
    return [node for node in calls if id(node.target) in wanted or id(getattr(node.target, "overloadpacket", node)) in wanted]


def argument(node: fx.Node, name: str) -> Any:
    """Return a call's argument by its name in the operator's schema, with the schema's default when it is not given."""
    target: Any = node.target
    for position, formal in enumerate(target._schema.arguments):
        if formal.name == name:
            if name in node.kwargs:
                return node.kwargs[name]
            return node.args[position] if not formal.kwarg_only and position < len(node.args) else formal.default_value
    raise KeyError(f"{target} has no argument {name!r}")


def role(node: fx.Node) -> str:
    """Return what a placeholder holds (input, state or constant), or "" for any other node."""
    return str(node.meta.get("role", ""))


def written(node: fx.Node) -> tuple[fx.Node, ...]:
    """Return the nodes whose tensors this call writes in place."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return ()
    targets = []
    for position, name, by_name in _written_arguments(node.target):
        targets.append(node.kwargs.get(name) if by_name or position >= len(node.args) else node.args[position])
    if node.target in _RUNNING_STATISTICS:
        switch, *statistics = _RUNNING_STATISTICS[node.target]
        targets += [node.args[i] for i in statistics] if node.args[switch] else []
    flat = [one for target in targets for one in (target if isinstance(target, list | tuple) else [target])]  # torch._foreach_mul_ writes a list
    return tuple(n for n in flat if isinstance(n, fx.Node))


@functools.cache
def _written_arguments(target: torch._ops.OpOverload) -> tuple[tuple[int, str, bool], ...]:
    """Return place and name of each argument that an operator writes, and whether it is given by name only."""
    formals = enumerate(target._schema.arguments)
    return tuple((at, formal.name, formal.kwarg_only) for at, formal in formals if formal.alias_info is not None and formal.alias_info.is_write)


def is_random(node: fx.Node) -> bool:
    """Does this call draw random numbers? Such a call is never removed or moved, so that the generator's state stays the original's."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    if is_op(node, aten.dropout, aten.dropout_, aten.feature_dropout, aten.alpha_dropout):
        return bool(node.args[2]) and bool(node.args[1])
    if is_op(node, aten.scaled_dot_product_attention):
        return bool(argument(node, "dropout_p"))
    if is_op(node, aten.lstm, aten.gru, aten.rnn_tanh, aten.rnn_relu):
        return bool(argument(node, "dropout")) and bool(argument(node, "train"))
    return torch.Tag.nondeterministic_seeded in node.target.tags


def has_effect(node: fx.Node) -> bool:
    """Has this node to stay even when nobody reads it?"""
    return node.op in ("placeholder", "output") or bool(written(node)) or is_random(node) or "assert" in str(node.target)


def mutated(graph: fx.Graph) -> set[fx.Node]:
    """Return the placeholders that some call of the graph writes."""
    return {target for node in graph.nodes for target in written(node)}


def is_parameter_only(node: Any) -> bool:
    """Does this value depend on unwritten state, literals and Python numbers only, so that it can be computed once per state?"""
    if not isinstance(node, fx.Node):
        return True
    seen: set[fx.Node] = set()
    todo = [node]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        if current.op == "placeholder" and (role(current) == "input" or any(current in written(user) for user in current.users)):
            return False
        if current.op != "placeholder" and has_effect(current):
            return False
        todo += current.all_input_nodes
    return True


def parameter_only(graph: fx.Graph) -> set[fx.Node]:
    """Return the nodes of which `is_parameter_only` holds, in one pass: for whoever asks for all of them."""
    changing = mutated(graph)
    fixed: set[fx.Node] = set()
    for node in graph.nodes:
        if node.op == "placeholder":
            if role(node) != "input" and node not in changing:
                fixed.add(node)
        elif all(arg in fixed for arg in node.all_input_nodes) and not has_effect(node):
            fixed.add(node)
    return fixed


def foldable(graph: fx.Graph) -> set[fx.Node]:
    """Return the calls that depend on unwritten state, and on nothing that changes from call to call; with the literals they need."""
    changing = mutated(graph)
    fixed: dict[fx.Node, bool] = {}
    for node in graph.nodes:
        if node.op == "placeholder" and role(node) != "input" and node not in changing:
            fixed[node] = role(node) == "state"
        elif node.op == "call_function" and not has_effect(node) and all(arg in fixed for arg in node.all_input_nodes):
            fixed[node] = any(fixed[arg] for arg in node.all_input_nodes)
    wanted = [node for node, on_state in fixed.items() if on_state and node.op == "call_function"]
    constants: set[fx.Node] = set()
    while wanted:
        node = wanted.pop()
        if node.op == "call_function" and node not in constants:
            constants.add(node)
            wanted += node.all_input_nodes
    return constants


# --- changing --------------------------------------------------------------------------------------------------------


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
    for node in reversed(list(copied.graph.nodes)):
        if not node.users and not has_effect(node):
            copied.graph.erase_node(node)
    return replace(copied, views={**ir.views, **views})


class Inserter:
    """A place in the graph at which calls are inserted, in the order of the calls of `call`."""

    def __init__(self, graph: fx.Graph, before: fx.Node) -> None:
        self._graph, self._before = graph, before

    def call(self, op: Any, *args: Any, **kwargs: Any) -> fx.Node:
        """Insert one call and return its node, with its meta tensor. NotApplicable when the operator rejects the arguments."""
        with self._graph.inserting_before(self._before):
            node = self._graph.create_node("call_function", op, _plain(args), _plain(kwargs), name=_short_name(op))
        try:
            node.meta["val"] = infer(node)
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            self._graph.erase_node(node)
            raise NotApplicable(f"{op} rejects its arguments: {str(error).splitlines()[0]}") from error
        return node

    def item(self, node: fx.Node, index: int) -> fx.Node:
        """Insert the selection of one of several results."""
        return self.call(operator.getitem, node, index)


def _short_name(op: Any) -> str:
    """Return `conv2d` for aten.conv2d.default, and for a generated function a name that is not its own."""
    schema = getattr(op, "_schema", None)
    return str(schema.name.split("::")[1]) if schema is not None else f"{op.__name__}_result"


def _plain(value_: Any) -> Any:
    """Return arguments with tuples and torch.Size inside as lists, as torch.export writes them."""
    if isinstance(value_, dict):
        return {name: _plain(item) for name, item in value_.items()}
    if isinstance(value_, tuple):
        return tuple(list(item) if isinstance(item, torch.Size | tuple) else item for item in value_)
    return value_


class Edit:
    """One rewrite under way, on a copy of the IR."""

    def __init__(self, ir: GraphIR) -> None:
        self._original = ir
        self.ir = copy(ir)
        self._aliases = _aliases(ir)

    @property
    def graph(self) -> fx.Graph:
        """The copy's graph."""
        return self.ir.graph

    def node(self, name: str) -> fx.Node:
        """Return the copy's node of that name; NotApplicable if there is none."""
        return self.ir.node(name)

    def before(self, node: fx.Node) -> Inserter:
        """Return the place just before `node`: what is inserted there may read all that `node` may read."""
        return Inserter(self.graph, node)

    def replace(self, old: fx.Node, new: fx.Node) -> None:
        """Let every reader of `old` read `new`, except those that `new` itself is computed from.

        NotApplicable when shape or dtype differ.
        """
        a, b = value(old), value(new)
        if a.shape != b.shape or a.dtype != b.dtype:
            raise NotApplicable(f"expected a replacement of {old.name} to be {a.dtype} {list(a.shape)}, saw {b.dtype} {list(b.shape)}")
        inside = ancestors(new, after=old)
        old.replace_all_uses_with(new, delete_user_cb=lambda user: user not in inside)

    def set_argument(self, node: fx.Node, name: str, value_: Any) -> None:
        """Set a call's argument by its name in the operator's schema."""
        target: Any = node.target
        names = [formal.name for formal in target._schema.arguments]
        position = names.index(name)
        if target._schema.arguments[position].kwarg_only or name in node.kwargs:
            node.update_kwarg(name, value_)
            return
        args = list(node.args)
        for missing in range(len(args), position + 1):
            args.append(node.kwargs.get(names[missing], target._schema.arguments[missing].default_value))
        args[position] = value_
        node.args = tuple(args)

    def finish(self, assume: str = "") -> GraphIR:
        """Return the edited IR: dead calls removed, meta tensors made afresh, checked.

        NotApplicable when a result would change its shape or dtype, or would share storage with an input, with state or with
        another result although the original's did not (or the other way round).
        """
        remove_dead(self.graph)
        self.graph.lint()
        try:
            propagate(self.graph)
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            raise NotApplicable(f"the rewritten graph does not run: {str(error).splitlines()[0]}") from error
        _check_results(self._original, self.ir)
        if _aliases(self.ir) != self._aliases:
            raise NotApplicable("a result would share storage with other tensors than in the original")
        return replace(self.ir, assumptions=_extended(self.ir.assumptions, assume))


def edit(ir: GraphIR) -> Edit:
    """Start a rewrite of `ir` (which stays as it is)."""
    return Edit(ir)


def remove_dead(graph: fx.Graph) -> int:
    """Erase the calls that nobody reads and that have no effect; return how many."""
    count = 0
    for node in reversed(list(graph.nodes)):
        if not node.users and not has_effect(node):
            graph.erase_node(node)
            count += 1
    return count


def sort(graph: fx.Graph) -> None:
    """Put the nodes in an order in which each comes after what it reads, as near as can be to the present one.

    Calls that touch the same written state keep their order.
    """
    changing = mutated(graph)
    nodes = list(graph.nodes)
    position = {node: i for i, node in enumerate(nodes)}
    waits: dict[fx.Node, set[fx.Node]] = {node: set(node.all_input_nodes) for node in nodes}
    last: dict[fx.Node, fx.Node] = {}
    for node in nodes:
        for state in changing.intersection(node.all_input_nodes):
            waits[node] |= {last[state]} if state in last else set()
            last[state] = node
    readers: dict[fx.Node, list[fx.Node]] = {}
    for node, before in waits.items():
        for other in before:
            readers.setdefault(other, []).append(node)
    ready = [position[node] for node in nodes if not waits[node]]
    heapq.heapify(ready)
    while ready:
        node = nodes[heapq.heappop(ready)]
        graph._root.prepend(node)  # to the end
        for reader in readers.get(node, ()):
            waits[reader].discard(node)
            if not waits[reader]:
                heapq.heappush(ready, position[reader])


def ancestors(node: fx.Node, after: fx.Node | None = None) -> set[fx.Node]:
    """Return the node and all that it is computed from (only what stands after the node `after`, when that is given)."""
    seen: set[fx.Node] = set()
    todo = [node]
    while todo:
        current = todo.pop()
        if current not in seen and (after is None or after < current):
            seen.add(current)
            todo += current.all_input_nodes
    return seen


def _check_results(original: GraphIR, edited: GraphIR) -> None:
    for old, new in zip(original.results, edited.results, strict=True):
        if is_tensor(old) and (shape(old) != shape(new) or dtype(old) != dtype(new)):
            raise NotApplicable(f"expected result {old.name} to stay {dtype(old)} {list(shape(old))}, saw {dtype(new)} {list(shape(new))}")


def _aliases(ir: GraphIR) -> tuple[tuple[str, ...], ...]:
    """Return for each result the placeholders and the other results with which it shares storage."""
    holders = [(node.name, node) for node in ir.graph.nodes if node.op == "placeholder"]
    holders += [(f"result {i}", node) for i, node in enumerate(ir.results)]

    def storage(node: Any) -> int:
        return int(value(node).untyped_storage()._cdata)

    known = [(name, storage(node)) for name, node in holders if is_tensor(node)]
    return tuple(tuple(n for n, s in known if s == storage(node)) if is_tensor(node) else () for node in ir.results)


# --- running ---------------------------------------------------------------------------------------------------------


def run(
    ir: GraphIR, inputs: Sequence[Any], state: Mapping[str, torch.Tensor], dtype: torch.dtype | None = None, flat: bool = False
) -> Any:
    """Interpret the graph: the slow, clear definition of what it computes.

    `inputs` are the call's positional arguments, `state` maps attribute paths to tensors and is written where the model would
    write its buffers. With `dtype` (torch.float64, say) every floating-point tensor, literal and conversion takes that type; `state` is then
    copied. `flat` returns the results as a tuple, without the original's nesting.
    """
    leaves = pytree.tree_leaves(tuple(inputs), is_leaf=lambda x: x is None)
    device = next((x.device for x in leaves if isinstance(x, torch.Tensor)), torch.device("cpu"))
    feeds: dict[str, Any] = dict(zip(ir.inputs, leaves, strict=True))
    feeds.update({name: state[path] for name, path in ir.state.items()})
    feeds.update({name: tensor.to(device) for name, tensor in ir.constants.items()})
    env: dict[fx.Node, Any] = {}
    with torch.no_grad():
        for node in ir.graph.nodes:
            if node.op == "placeholder":
                env[node] = _cast(feeds[node.name], dtype)
            elif node.op == "call_function":
                args, kwargs = fx.map_arg((node.args, node.kwargs), env.__getitem__)
                env[node] = node.target(*on_device(_types(args, dtype), device), **on_device(_types(kwargs, dtype), device))
    results = tuple(env[node] if isinstance(node, fx.Node) else node for node in ir.results)
    if ir.views:
        viewed = {number: results[view.of].as_strided(view.shape, view.strides, view.offset) for number, view in ir.views.items()}
        results = tuple(viewed.get(number, result) for number, result in enumerate(results))
    return results if flat else nest(ir.structure, results)


def _cast(tensor: Any, dtype: torch.dtype | None) -> Any:
    return tensor.to(dtype, copy=True) if dtype is not None and isinstance(tensor, torch.Tensor) and tensor.is_floating_point() else tensor


def _types(args: Any, dtype: torch.dtype | None) -> Any:
    """Replace floating-point dtypes among arguments by `dtype`."""
    if dtype is None:
        return args
    return pytree.tree_map(lambda x: dtype if isinstance(x, torch.dtype) and x.is_floating_point else x, args)


# --- reading ---------------------------------------------------------------------------------------------------------

_SHORT = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32"}


def type_text(node: fx.Node) -> str:
    """Return a node's type as `f32[128, 10]`."""
    val = node.meta.get("val")
    if not isinstance(val, torch.Tensor):
        return type(val).__name__
    return f"{_SHORT.get(val.dtype, str(val.dtype).removeprefix('torch.'))}{list(val.shape)}"


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


def placeholders(ir: GraphIR, kind: str) -> Iterable[fx.Node]:
    """Yield the placeholders of one role."""
    return (node for node in ir.graph.nodes if node.op == "placeholder" and role(node) == kind)

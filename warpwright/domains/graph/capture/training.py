"""Training steps: how a module's forward is captured for one, and how its graph gets the gradients.

    forward graph  ->  rewrites of it  ->  differentiate  ->  one graph of results and gradients  ->  fusion

A rewrite that is exact for all inputs and parameters has the same gradients, so all of them hold before `differentiate`. The derivatives are
torch's own formulas: the graph is run with autograd, and what runs is recorded.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from warpwright.domains.graph.capture import recurrent
from warpwright.domains.graph.capture.derivatives import written_out
from warpwright.domains.graph.capture.meta import on_device, propagate
from warpwright.domains.graph.capture.model import from_module, unreadable
from warpwright.domains.graph.capture.tidying import tidy
from warpwright.domains.graph.cpp.calls import ELEMENTWISE
from warpwright.domains.graph.ir import (
    GraphIR,
    Training,
    ancestors,
    aten,
    edit,
    has_effect,
    is_op,
    is_tensor,
    sort,
    value,
    written,
)
from warpwright.domains.graph.text.autograd import halves, shares_memory
from warpwright.errors import CaptureError, NotApplicable
from warpwright.tasks import taskfile

WITH_GRADIENT: dict[Any, Any] = {}
"""Generated functions of a graph that have gradients of their own -> what autograd runs in their place while a step is recorded."""
IN_STEPS: dict[Any, Any] = {}
"""The operators that are recorded then -> the generated functions that the graph calls for them."""


class StopGradient:
    """x.detach() as a call that no rewrite takes for one that does nothing."""

    __name__ = "stop_gradient"
    compilable = True

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach()

    def python_text(self) -> str:
        """Return the function for a generated file."""
        return 'def stop_gradient(x):\n    """No gradient flows back from here."""\n    return x.detach()'


STOP_GRADIENT = StopGradient()


def capture_step(reference: taskfile.Reference) -> GraphIR:
    """Return the IR of the forward of a task's training step; one that is `unreadable`, with the reason, when it cannot be captured."""
    model, (*inputs, _) = reference.make_meta_model(), reference.make_inputs(0, "meta")
    trained: Sequence[str] = model._trained_paths  # type: ignore[assignment]
    wanted_inputs = reference.namespace._forms()[0]
    model.__dict__["forward"] = functools.partial(reference.namespace.Model.forward, model)
    try:
        ir = from_module(model, inputs, gradients=True)
        for node in ir.graph.nodes:
            if is_op(node, aten.detach.default):
                node.target = STOP_GRADIENT
        wanted_names = [name for name, wanted in zip(ir.inputs, wanted_inputs, strict=True) if wanted]
        state = [name for name, path in ir.state.items() if path in trained]
        step = replace(ir, training=Training((*wanted_names, *state), len(ir.results)))
        return replace(step, training=replace(step.training, reached=_reached(step)))  # type: ignore[type-var]
    except CaptureError as error:
        unread = unreadable(model, inputs, error.message)
        return replace(unread, training=Training((), 0))
    finally:
        del model.__dict__["forward"]


def _reached(ir: GraphIR) -> tuple[str, ...]:
    """Return the inputs and parameters to which gradients flow; where the graph cannot be differentiated, all that a result is computed from."""
    training = ir.training
    assert training is not None
    device = torch.device("meta")
    with FakeTensorMode(allow_non_fake_inputs=True), torch.enable_grad():
        try:
            outputs, sources = _run(ir, [_fake(node, device) for node in _placeholders(ir)], device)
            ends = [item for item in outputs if isinstance(item, torch.Tensor) and item.requires_grad]
            gradients = torch.autograd.grad(ends, sources, [torch.empty_like(end) for end in ends], allow_unused=True)
        except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
            read = {node_read.name for node in ir.results if isinstance(node, fx.Node) for node_read in ancestors(node)}
            return tuple(name for name in training.wanted if name in read)
    return tuple(name for name, gradient in zip(training.wanted, gradients, strict=True) if gradient is not None)


# --- gradients -------------------------------------------------------------------------------------------------------


def differentiate(ir: GraphIR, target: str, norms: bool, again: bool) -> GraphIR:
    """Return the graph of a forward with its gradients. `norms`: softmax and norms are written out, so that they can join kernels.

    `again`: the backward computes element-wise functions anew from what they were computed from, which is kept in their place.
    NotApplicable for graphs that torch cannot differentiate, and for results that share memory with what the module is given.
    """
    training = ir.training
    assert training is not None
    device = torch.device(target if target == "cpu" or torch.cuda.is_available() else "meta")
    with FakeTensorMode(allow_non_fake_inputs=True):
        tensors = [_fake(node, device) for node in _placeholders(ir)]
        try:
            ends = _ends(ir, tensors, device)
            tangents = [torch.empty_like(end, memory_format=torch.contiguous_format) for end in ends.values()]
            if not tangents:
                raise NotApplicable("expected results that gradients flow from, saw none")
            traced = make_fx(functools.partial(_step, ir, device, len(tensors)), decomposition_table=written_out(target, norms))(  # type: ignore[arg-type]
                *tensors, *tangents
            )
        except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError) as error:
            raise NotApplicable(f"torch cannot differentiate the graph: {str(error).strip().splitlines()[0][:200]}") from error
    joined = _joined(ir, traced, tuple(ends), [tuple(t.shape) for t in tangents], [t.dtype for t in tangents])
    return _computed_again(joined) if again else joined


def _placeholders(ir: GraphIR) -> list[fx.Node]:
    return [node for node in ir.graph.nodes if node.op == "placeholder"]


def _fake(node: fx.Node, device: torch.device) -> Any:
    if not is_tensor(node):
        return node.meta.get("val")
    held = value(node)
    where = torch.device("cpu") if node.meta.get("number") is not None else device
    return torch.empty_strided(held.shape, held.stride(), dtype=held.dtype, device=where)


def _run(ir: GraphIR, values: Sequence[Any], device: torch.device) -> tuple[tuple[Any, ...], list[Any]]:
    """Run the graph with autograd; return its results and the tensors that gradients are of."""
    training = ir.training
    assert training is not None
    env: dict[fx.Node, Any] = dict(zip(_placeholders(ir), values, strict=True))
    for node in env:
        if node.name in training.wanted:
            env[node] = env[node].detach().requires_grad_()
    sources = {node.name: env[node] for node in env}
    for node in ir.graph.nodes:
        if node.op == "call_function":
            args, kwargs = fx.map_arg((node.args, node.kwargs), env.__getitem__)
            if getattr(node.target, "namespace", "") == recurrent.NAMESPACE:
                raise RuntimeError(f"{node.target} is one call, whose gradient only autograd knows")
            with torch.set_grad_enabled(not written(node) or bool(node.users)):  # statistics have no gradients
                function = WITH_GRADIENT.get(node.target, node.target)
                env[node] = function(*on_device(args, device), **on_device(kwargs, device))
    return tuple(env[node] if isinstance(node, fx.Node) else node for node in ir.results), [sources[name] for name in training.wanted]


def _ends(ir: GraphIR, values: Sequence[Any], device: torch.device) -> dict[int, torch.Tensor]:
    """Return the results that gradients come back to, by their places."""
    with torch.enable_grad():
        outputs, _ = _run(ir, values, device)
    return {i: item for i, item in enumerate(outputs) if isinstance(item, torch.Tensor) and item.requires_grad}


def _step(ir: GraphIR, device: torch.device, count: int, *values: Any) -> list[Any]:
    with torch.enable_grad():
        outputs, sources = _run(ir, values[:count], device)
        ends = [item for item in outputs if isinstance(item, torch.Tensor) and item.requires_grad]
        derivatives = torch.autograd.grad(ends, sources, values[count:], allow_unused=True)
    assert ir.training is not None
    pairs = zip(ir.training.wanted, sources, derivatives, strict=True)  # what a rewrite cut off has a gradient of zeros
    gradients = [torch.zeros_like(source) if one is None and name in ir.training.reached else one for name, source, one in pairs]
    return [*(item.detach() if isinstance(item, torch.Tensor) else item for item in outputs), *gradients]


def _joined(ir: GraphIR, traced: fx.GraphModule, ends: tuple[int, ...], shapes: Sequence[tuple[int, ...]], kinds: Sequence[torch.dtype]) -> GraphIR:
    """Return the IR of a recorded step."""
    training = ir.training
    assert training is not None
    graph = fx.Graph()
    twin: dict[fx.Node, Any] = {}
    old = iter(_placeholders(ir))
    tangents: list[str] = []
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            like = next(old, None)
            if like is not None:
                twin[node] = graph.create_node("placeholder", like.name, name=like.name)
                twin[node].meta = dict(like.meta)
                assert twin[node].name == like.name, f"fx renamed {like.name} to {twin[node].name}"
                continue
            sizes, kind = shapes[len(tangents)], kinds[len(tangents)]
            twin[node] = graph.create_node("placeholder", f"tangent_{len(tangents)}", name=f"tangent_{len(tangents)}")
            twin[node].meta.update(role="input", val=torch.empty(sizes, dtype=kind, device="meta"))
            tangents.append(twin[node].name)
        elif node.op == "get_attr":
            raise NotApplicable(f"expected calls only, saw the constant {node.target} in the recorded step")
        elif node.op == "output":
            graph.output(tuple(fx.map_arg(node.args[0], twin.__getitem__)))
        elif is_op(node, aten.detach.default, aten.alias.default):
            twin[node] = twin[node.args[0]]
        else:
            args, kwargs = fx.map_arg((node.args, node.kwargs), twin.__getitem__)
            meta = torch.device("meta")
            target = IN_STEPS.get(node.target, node.target)
            new = graph.create_node(node.op, target, on_device(args, meta), on_device(kwargs, meta), name=node.name)
            twin[node] = new
    propagate(graph)
    tidy(graph)
    propagate(graph)
    results: Any = graph.output_node().args[0]
    strides = tuple(value(node).stride() if is_tensor(node) else () for node in results[training.results :])
    made_training = replace(training, tangents=tuple(tangents), ends=ends)
    joined = replace(ir, graph=graph, inputs=(*ir.inputs, *tangents), strides=(*ir.strides, *strides), training=made_training)
    _check(joined)
    return joined


def _check(ir: GraphIR) -> None:
    if shares_memory(ir):
        raise NotApplicable("a result shares memory with what the module is given, or with another result")


MOST_AGAIN = 24
"""Calls of which a value is computed again, from what is kept. An LSTM written out as a loop of 32 steps was one such chain, from the first step to
the last: a kernel of 255 registers that spilled 5.3 kB a thread for sm_90."""


def _computed_again(ir: GraphIR) -> GraphIR:
    """y = f(x); z = g(y, dz)  ->  y = f(x); z = g(f(x), dz), for element-wise f: y need not be kept. NotApplicable where there is none.

    Of a chain of more than MOST_AGAIN calls a value is kept so often that none is computed again from more.
    """
    e = edit(ir)
    early, late = halves(e.ir)
    at = e.before(late[0]) if late else None
    twin: dict[fx.Node, fx.Node] = {}
    behind = _behind(early)

    def again(node: fx.Node) -> fx.Node:
        if not behind.get(node):
            return node
        if node not in twin:
            assert at is not None
            args, kwargs = fx.map_arg((node.args, node.kwargs), again)
            twin[node] = at.call(node.target, *args, **kwargs)
            twin[node].meta["again"] = True
        return twin[node]

    for node in late:
        node.args, node.kwargs = fx.map_arg((node.args, node.kwargs), again)
    if not twin:
        raise NotApplicable("expected element-wise calls whose results the backward reads, saw none")
    sort(e.graph)
    return e.finish()


def _behind(early: Sequence[fx.Node]) -> dict[fx.Node, frozenset[fx.Node]]:
    """Return the calls that each of the forward's element-wise calls is computed again by, itself included; none for one that is kept."""
    found: dict[fx.Node, frozenset[fx.Node]] = {}
    for node in early:
        if node.target in ELEMENTWISE and is_tensor(node) and not has_effect(node):
            calls = frozenset({node}).union(*(found.get(arg, frozenset()) for arg in node.all_input_nodes))
            found[node] = calls if len(calls) <= MOST_AGAIN else frozenset()
    return found

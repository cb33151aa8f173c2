"""A differentiated graph as Python: a function for the forward, one for the backward, and the autograd function of the two."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.capture import results
from warpwright.domains.graph.ir import GraphIR, ancestors, has_effect, is_tensor, placeholders, role, value
from warpwright.domains.graph.text import straight

FORWARD_DOC = "What Model.forward computes, and what the backward needs of it."
BACKWARD_DOC = "The gradients of the inputs and parameters, from what the forward kept and the gradients of its results."

FUNCTION = '''class _Verified(torch.autograd.Function):
    """The two as one function that autograd knows. A gradient of a gradient is an error."""

    @staticmethod
    def forward(ctx, *given):
        made, kept = optimized_forward(*given)
        ctx.save_for_backward(*kept)
        ctx.mark_non_differentiable(*[made[i] for i in @FIXED])
        return made

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *tangents):
        gradients = optimized_backward(*ctx.saved_tensors, *[tangents[i].contiguous() for i in @ENDS])
        return @ORDER


def verified(leaves, state):
    """Return what Model.forward returns, for autograd too."""
    made = _Verified.apply(*leaves, *state)
    return @RETURNED'''


@dataclass(frozen=True)
class Parts:
    """The text, and the state that it reads."""

    lines: list[str]
    state: tuple[fx.Node, ...]


def verified_gradients(ir: GraphIR) -> str:
    """Return the text of the names whose gradients were verified; None where torch differentiates, which gives any."""
    assert ir.training is not None
    return straight.tuple_text(repr(ir.state.get(name, name)) for name in ir.training.wanted) if ir.training.tangents else "None"


def halves(ir: GraphIR) -> tuple[list[fx.Node], list[fx.Node]]:
    """Return the calls of the forward, which are what the module's results and the writes of its state need, and the others.

    A write of what comes back is of the backward: the gradient of `as_strided` is copied into zeros.
    """
    assert ir.training is not None
    tangents = set(ir.training.tangents)
    needed: set[fx.Node] = set()
    for node in (*ir.results[: ir.training.results], *(n for n in ir.graph.nodes if n.op == "call_function" and has_effect(n))):
        if isinstance(node, fx.Node) and node not in needed:
            of = ancestors(node)
            needed |= of if tangents.isdisjoint(one.name for one in of) else set()
    calls = [node for node in ir.graph.nodes if node.op == "call_function"]
    needed |= {node for node in calls if node.target is operator.getitem and node.args[0] in needed}  # several results are kept one by one
    return [node for node in calls if node in needed], [node for node in calls if node not in needed]


def kept_between(ir: GraphIR) -> list[fx.Node]:
    """Return what the backward reads of the forward, inputs and state included."""
    assert ir.training is not None
    early, late = halves(ir)
    inside = set(early) | {n for n in ir.graph.nodes if n.op == "placeholder" and n.name not in (*ir.training.tangents, *ir.constants)}
    read = {arg for node in late for arg in node.all_input_nodes}
    read |= {node for node in ir.results[ir.training.results :] if isinstance(node, fx.Node)}
    return [node for node in ir.graph.nodes if node in inside and node in read]


def parts(ir: GraphIR) -> Parts:
    """Return the two functions and what joins them."""
    training = ir.training
    assert training is not None
    early, late = halves(ir)
    kept = kept_between(ir)
    tangents = [node for node in placeholders(ir, "input") if node.name in training.tangents]
    inputs = [node for node in placeholders(ir, "input") if node not in tangents]
    state = tuple(node for node in straight.reads([*early, *late], ir.results) if role(node) != "input" and node.name in ir.state)
    own = ir.results[: training.results]
    names = straight.names_of(ir)
    shown = [names[node] for node in (*inputs, *state)]
    holder = [node for node in (*inputs, *state) if is_tensor(node)][:1]
    lines = straight.block(ir, early, [*own, *kept], names, holder, [])
    outputs = [text for text, node in zip(straight.leaves(ir, names)[: training.results], own, strict=True) if isinstance(node, fx.Node)]
    lines.append(f"return {straight.tuple_text(outputs)}, {straight.tuple_text(names[node] for node in kept)}")
    first = _function(ir, "optimized_forward", shown, lines, FORWARD_DOC)
    names = {**straight.names_of(ir), **{node: node.name for node in kept if node.op != "placeholder"}}
    shown = [names[node] for node in (*kept, *tangents)]
    lines = straight.block(ir, late, ir.results[training.results :], names, [*kept, *tangents][:1], [])
    lines.append(f"return {straight.tuple_text(straight.leaves(ir, names)[training.results :])}")
    second = _function(ir, "optimized_backward", shown, lines, BACKWARD_DOC)
    return Parts([*first, *second, *_joined(ir, own, [*inputs, *state]), "", ""], state)


def _function(ir: GraphIR, name: str, parameters: list[str], lines: list[str], doc: str) -> list[str]:
    head = f"{straight.decorator(ir)}def {name}({', '.join(parameters)}):"
    return ["\n".join([head, f'    """{doc}"""', *(f"    {line}" for line in lines)]), "", ""]


def _joined(ir: GraphIR, own: tuple[Any, ...], nodes: list[fx.Node]) -> list[str]:
    """Return the autograd function, and the function that nests its results as the module's are."""
    training = ir.training
    assert training is not None
    tensors = [i for i, node in enumerate(own) if isinstance(node, fx.Node)]
    ends = [tensors.index(i) for i in training.ends]
    fixed = [k for k in range(len(tensors)) if k not in ends]
    order = [f"gradients[{training.wanted.index(n.name)}]" if n.name in training.wanted else "None" for n in nodes]
    leaves = [f"made[{tensors.index(i)}]" if i in tensors else repr(item) for i, item in enumerate(own)]
    text = FUNCTION.replace("@FIXED", straight.tuple_text(map(str, fixed))).replace("@ENDS", straight.tuple_text(map(str, ends)))
    return [text.replace("@ORDER", straight.tuple_text(order)).replace("@RETURNED", results.text(ir.structure, leaves))]


def shares_memory(ir: GraphIR) -> bool:
    """Is a result of the module a tensor that it was given, or one of two results the other, or a view of either?"""
    assert ir.training is not None
    own = [node for node in ir.results[: ir.training.results] if is_tensor(node)]
    inputs = {_storage(node) for node in ir.graph.nodes if node.op == "placeholder" and is_tensor(node)}
    stored = [_storage(node) for node in own]
    return len(set(stored)) < len(stored) or bool(inputs & set(stored))


def _storage(node: fx.Node) -> int:
    held: torch.Tensor = value(node)
    return int(held.untyped_storage()._cdata)


def cut_off(ir: GraphIR) -> list[str]:
    """Return the inputs and parameters that had a gradient in the original and are in no result any more."""
    assert ir.training is not None
    read = {source.name for node in ir.results if isinstance(node, fx.Node) for source in ancestors(node)}
    return [name for name in ir.training.reached if name not in read]

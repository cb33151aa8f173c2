"""From a model to the graph IR: torch.export on the meta device, at the real sizes and without memory."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from warpwright.domains.graph.capture import results
from warpwright.domains.graph.capture.batched import unbatched
from warpwright.domains.graph.capture.functional import make_functional
from warpwright.domains.graph.capture.meta import propagate
from warpwright.domains.graph.capture.tracing import Traced, arrays_as_literals, autocast_of_meta, conversions_of_parts, inlined
from warpwright.domains.graph.ir import GraphIR, is_tensor, remove_dead, value
from warpwright.errors import CaptureError
from warpwright.tasks import taskfile
from warpwright.tasks.modules.copying import copied
from warpwright.tasks.modules.padding import padded_as_on_devices

_ROLES = {
    InputKind.USER_INPUT: "input",
    InputKind.PARAMETER: "state",
    InputKind.BUFFER: "state",
    InputKind.CONSTANT_TENSOR: "constant",
}


def capture(reference: taskfile.Reference) -> GraphIR:
    """Return the IR of the task's model on its nominal inputs; one that is `unreadable`, with the reason, when it cannot be captured."""
    model, inputs = reference.make_meta_model(), reference.make_inputs(0, "meta")
    try:
        return from_module(model, inputs)
    except CaptureError as error:
        return unreadable(model, inputs, error.message)


def from_module(model: torch.nn.Module, inputs: Sequence[Any], gradients: bool = False) -> GraphIR:
    """Return the IR of `model(*inputs)`. Both may lie on any device; neither is run or changed.

    `gradients`: it will be differentiated, so that regions without gradients are told from others.
    """
    shared = _shared(model)
    if any(tensor.device.type != "meta" for tensor in (*model.parameters(), *model.buffers())):
        model = copied(model).to("meta")
    arguments = pytree.tree_map(_own_meta(), tuple(inputs))
    leaves = pytree.tree_leaves(arguments)
    other = next((leaf for leaf in leaves if not isinstance(leaf, torch.Tensor | bool | int | float | str | None)), None)
    if other is not None:
        raise CaptureError(f"an input is a {type(other).__name__}, which a call may write: expected tensors, numbers and containers of them")
    with padded_as_on_devices():
        program, structure = _export(model, arguments, gradients)
    graph, roles = _own_graph(program)
    for node in graph.nodes:
        if node.op == "placeholder" and roles[node.name][1] in shared:
            node.meta["shared"] = True
    try:
        make_functional(graph)
        remove_dead(graph)
        propagate(graph)
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError) as error:
        raise CaptureError(f"the exported graph does not run on the meta device: {_first_line(error)}") from error
    returned: Any = graph.output_node().args[0]
    names = tuple(name for name, (kind, _) in roles.items() if kind == "input")
    constants = {name: _literal(program, path) for name, (kind, path) in roles.items() if kind == "constant"}
    lost = [path for name, (kind, path) in roles.items() if kind == "constant" and constants[name] is None and not hasattr(model, path.split(".")[0])]
    if lost:
        raise CaptureError(f"the values of {', '.join(lost)}, made in forward on the inputs' device, are not known on the meta device")
    for node in graph.nodes:
        literal = constants.get(node.name) if node.op == "placeholder" else None
        if literal is not None and literal.dim() == 0:
            node.meta["number"] = literal.item()
    return GraphIR(
        graph=graph,
        inputs=names,
        state={name: path for name, (kind, path) in roles.items() if kind == "state"}
        | {name: path for name, (kind, path) in roles.items() if kind == "constant" and constants[name] is None},
        constants={name: tensor for name, tensor in constants.items() if tensor is not None},
        values={name: leaf for name, leaf in zip(names, leaves, strict=True) if not isinstance(leaf, torch.Tensor)},
        structure=structure,
        strides=tuple(value(node).stride() if is_tensor(node) else () for node in returned),
        call=_plain(program.call_spec.in_spec, "arguments")[0],
        flags=_flags(model),
    )


def _shared(model: torch.nn.Module) -> set[str]:
    """Return the paths of parameters and buffers that lie in one storage with others: two layers' running statistics may be one tensor."""
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    plain = [(path, tensor.untyped_storage()._cdata) for path, tensor in named if tensor.layout is torch.strided]
    counts = Counter(storage for _, storage in plain)
    return {path for path, storage in plain if counts[storage] > 1}


def _own_meta() -> Callable[[Any], Any]:
    """Return what gives each leaf as a meta tensor of its own: one given twice would be read as one input, and later calls may give two."""
    by_id: dict[int, torch.Tensor] = {}

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        meta = leaf.to("meta")
        if id(meta) in by_id:
            meta = torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
        by_id[id(meta)] = meta
        return meta

    return own


def _export(model: torch.nn.Module, arguments: tuple[Any, ...], gradients: bool) -> tuple[torch.export.ExportedProgram, Any]:
    """Return the exported program with flat results, and the structure of what the model returns."""
    structures: list[Any] = []
    own, forward = model.__dict__.get("forward"), model.forward

    @functools.wraps(forward)
    def flat(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        leaves: list[Any] = []
        structures.append(results.flatten(forward(*args, **kwargs), leaves))
        return tuple(leaves)

    previous = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # export logs the graph of a failure before raising it
    try:
        # on failure torch prints the graph; and what the model prints is no news while it is read
        with _silence(), warnings.catch_warnings(), torch.set_grad_enabled(gradients):
            warnings.simplefilter("ignore")
            model.__dict__["forward"] = flat
            with Traced(), arrays_as_literals(), autocast_of_meta(), conversions_of_parts():
                return torch.export.export(model, arguments), structures[-1]
    except CaptureError:
        raise
    except Exception as error:  # export runs the user's code: any exception means that it cannot be captured
        raise CaptureError(f"torch.export cannot read the model: {type(error).__name__}: {_first_line(error)}") from error
    finally:
        logging.disable(previous)
        model.__dict__.pop("forward") if own is None else model.__dict__.update(forward=own)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")[:300]


def _own_graph(program: torch.export.ExportedProgram) -> tuple[fx.Graph, dict[str, tuple[str, str]]]:
    """Return a copy of the exported graph without export's annotations, and name -> (role, path) of its placeholders."""
    roles: dict[str, tuple[str, str]] = {}
    for spec in program.graph_signature.input_specs:
        kind = _ROLES.get(spec.kind)
        if kind is None:
            raise CaptureError(f"expected inputs, parameters and buffers, saw an input of kind {spec.kind.name}")
        roles[spec.arg.name] = (kind, spec.target or "")
    for output in program.graph_signature.output_specs:
        if output.kind != OutputKind.USER_OUTPUT:
            raise CaptureError(f"expected plain results, saw a result of kind {output.kind.name}")
    graph = fx.Graph()
    own_roles: dict[str, tuple[str, str]] = {}  # fx renames what shadows a Python builtin: `input` becomes `input_1`

    def placed(node: fx.Node) -> fx.Node:
        new = graph.create_node("placeholder", node.target, (), {}, name=node.name)
        own_roles[new.name] = roles[node.name]
        new.meta["role"] = roles[node.name][0]
        new.meta["val"] = _meta_tensor(node.meta.get("val"))
        return new

    unbatched(program.graph_module.graph)
    graph.output(inlined(program.graph_module, graph, placed))
    return graph, own_roles


def _meta_tensor(val: Any) -> Any:
    """Return a fake tensor as a plain meta tensor with storage of its own."""
    if not isinstance(val, torch.Tensor):
        return val
    with torch.no_grad():
        return torch.empty_strided(val.shape, val.stride(), dtype=val.dtype, device="meta")


def _literal(program: torch.export.ExportedProgram, path: str) -> torch.Tensor | None:
    """Return the value of a tensor written in forward; None for an attribute of the model, which has none on the meta device."""
    tensor = program.constants.get(path)
    if not isinstance(tensor, torch.Tensor):
        raise CaptureError(f"expected the constant {path} to be a tensor, saw {type(tensor).__name__}")
    return None if tensor.is_meta else tensor.detach().cpu()


_MODE_MATTERS = (
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.modules.dropout._DropoutNd,
    torch.nn.RReLU,
    torch.nn.MultiheadAttention,
    torch.nn.TransformerEncoder,
    torch.nn.TransformerEncoderLayer,
    torch.nn.RNNBase,
)
"""torch's own modules whose forward reads their training flag."""


def _flags(model: torch.nn.Module) -> tuple[tuple[str, bool], ...]:
    """Return the training flags of the model, of its parts whose forward reads them, and of all parts that are not torch's own."""
    flags = [("", model.training)]
    for path, part in model.named_modules():
        if path and (isinstance(part, _MODE_MATTERS) or not type(part).__module__.startswith("torch.nn.")):
            flags.append((path, part.training))
    return tuple(flags)


def unreadable(model: torch.nn.Module, inputs: Sequence[Any], reason: str) -> GraphIR:
    """Return an IR of the inputs only, for a model that cannot be captured: it can be scheduled, not rewritten."""
    graph = fx.Graph()
    leaves, spec = pytree.tree_flatten(tuple(inputs))
    for position, leaf in enumerate(leaves):
        node = graph.placeholder(f"input_{position}")
        node.meta.update(role="input", val=_meta_tensor(leaf))
    graph.output(())
    names = tuple(node.name for node in graph.nodes if node.op == "placeholder")
    values = {name: leaf for name, leaf in zip(names, leaves, strict=True) if not isinstance(leaf, torch.Tensor)}
    return GraphIR(
        graph=graph, inputs=names, state={}, values=values, structure=(), call=_plain(spec, "arguments"), flags=_flags(model), unreadable=reason
    )


def _plain(spec: Any, what: str) -> Any:
    """Return a pytree spec as nested tuples, lists and dicts of indices."""
    tree = pytree.tree_unflatten(list(range(spec.num_leaves)), spec)

    def check(item: Any) -> None:
        if not isinstance(item, int | tuple | list | dict):
            raise CaptureError(f"expected {what} of tuples, lists and dictionaries, saw a {type(item).__name__}, which a call may write")
        for child in item.values() if isinstance(item, dict) else item if isinstance(item, tuple | list) else ():
            check(child)

    check(tree)
    return tree

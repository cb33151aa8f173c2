"""Modules from Python as task files: what `warpwright.optimize(module, inputs)` writes, and the text that loads it again."""

from __future__ import annotations

import copy
import inspect
import io
import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpwright.errors import TaskError
from warpwright.tasks import local_functions, sources
from warpwright.tasks.modules.part_modes import apart

if TYPE_CHECKING:
    import torch

MOST_READ_BYTES = 256 << 20

LOADED = "_FILE = torch.load({place}, weights_only=False)"
"""The line of TEXT that names the file."""

TEXT = '''"""A module saved by warpwright, and inputs drawn from the values of its example inputs."""
import copy
import ctypes
import io
import random
import sys

import torch

_FILE = torch.load({path!r}, weights_only=False)
sys.path.extend(folder for folder in _FILE["sys_path"] if folder not in sys.path)
_BYTES = _FILE.pop("saved")
if isinstance(_BYTES, torch.Tensor):
    _BYTES = ctypes.string_at(_BYTES.data_ptr(), _BYTES.numel())
_SAVED = torch.load(io.BytesIO(_BYTES), weights_only=False, map_location="cpu")
del _BYTES


_CLASS = type(_SAVED["module"])
if isinstance(_SAVED["module"], torch.fx.GraphModule):  # whose own call looks for the class of the call in the class it was made for
    _MODE = _FILE["training"]

    def _train(self, mode=True):
        if mode is not _MODE:
            raise RuntimeError(
                f"this model was exported in {{'training' if _MODE else 'eval'}} mode, because it cannot be pickled, as where its class "
                "is defined in a script; for the other mode optimize it again in that mode"
            )
        return torch.nn.Module.train(self, mode)

    _METHODS = {{"forward": _CLASS.forward, "train": _train, "has_one_mode": True}} if _FILE["exported"] else {{"forward": _CLASS.forward}}
    _CLASS = type("Exported", (torch.nn.Module,), _METHODS)
if _FILE.get("keywords"):  # a forward that takes these by name only: here they may be given in order, too
    _INNER, _NOT_GIVEN = _CLASS, object()
    _BY_NAME = """def forward(self, {{}}, **others):
    given = {{{{name: value for name, value in ({{}},) if value is not _NOT_GIVEN}}}}
    return _INNER.forward(self, **given, **others)
"""
    _NAMES = _FILE["keywords"]
    exec(_BY_NAME.format(", ".join(f"{{name}}=_NOT_GIVEN" for name in _NAMES), ", ".join(f"({{name!r}}, {{name}})" for name in _NAMES)))
    _CLASS = type(_INNER.__name__, (_INNER,), {{"forward": forward}})


class Model(_CLASS):
    def __init__(self):
        torch.nn.Module.__init__(self)
        kept = copy.deepcopy(_SAVED["module"]).__dict__
        self.__dict__.update((name, value) for name, value in kept.items() if name not in ("_graph", "_code", "_tracer_cls", "_lineno_map"))
        if _FILE["exported"]:
            self.train(_MODE)
        elif "apart" in _FILE:  # a part may be built anew when it is copied, and is then in training mode
            for name, part in self.named_modules():
                part.training = _FILE["training"] is not (name in _FILE["apart"])
        _register(self)


def _register(model):
    """transformers' constructor, which is not called here, notes for a class what its models can record (hidden states, attentions)."""
    registry = getattr(sys.modules.get("transformers.utils.output_capturing"), "_CAN_RECORD_REGISTRY", None)
    for part in model.modules() if registry is not None else ():
        if hasattr(part, "_can_record_outputs"):  # before 5.20 the registry was a plain dictionary
            registry[str(type(part)) if type(registry) is dict else part] = part._can_record_outputs


def _fresh_example(value):
    if not isinstance(value, torch.Tensor) or value.numel() == 0:
        return value
    if not value.is_floating_point() and not value.is_complex():
        return value.clone()
    drawn = torch.randint(value.numel(), value.shape)
    values = value.detach().to(drawn.device)
    return torch.empty_like(values).copy_(values.flatten()[drawn]).requires_grad_(value.requires_grad)


def get_inputs():
    others = _SAVED.get("others", [])
    place = random.randrange(1 + len(others)) if others else 0
    return list(torch.utils._pytree.tree_map(_fresh_example, [_SAVED["inputs"], *others][place]))


def get_init_inputs():
    return []
'''
"""The task in KernelBench form; `path` is the file."""


Call = tuple[Sequence[Any], Mapping[str, Any]]


@dataclass(frozen=True)
class Example:
    """Example arguments of a call, positional and by keyword."""

    inputs: Sequence[Any]
    keywords: Mapping[str, Any]
    others: Sequence[Call] = ()
    """More of them, of the same shapes."""


def write(
    module: torch.nn.Module, inputs: Sequence[Any], path: str | os.PathLike[str], keywords: Mapping[str, Any] | None = None,
    others: Sequence[Call] = (),
) -> None:  # fmt: skip
    """Write `module` and its example inputs, positional and by keyword, as a task file (suffix .pt) that `describe` reads.

    `others`: more example inputs, one of which a call may be drawn from as well.
    """
    import torch

    inputs, names = in_order(module, inputs, keywords or {})
    more = [_alike(inputs, in_order(module, *other)[0]) for other in others]
    file = Path(path)
    if file.suffix != ".pt":
        raise TaskError(f"expected a file name that ends in .pt, saw {file.name!r}", "write(module, inputs, 'task.pt')")
    given = {"inputs": list(inputs), **({"others": more} if more else {})}
    program = _importable(module, list(inputs), names)
    try:
        saved = _pickled({"module": program, **given})
    except UNPICKLABLE as error:
        program = _graph_in_place_of(module, list(inputs), names, error)
        saved = _pickled({"module": program, **given})
    folders = [folder for folder in sys.path if folder]
    about = {"training": module.training, "exported": program is not module, **({"keywords": names} if names else {})}
    about |= {"apart": apart(module)} if program is module else {}
    about["modules"] = sorted(_modules(module) - {"__main__", "__mp_main__"}) if program is module else []
    about["sources"] = sources.digest_of(_modules(module)) if program is module else ""  # an exported graph says itself what it does
    whole = io.BytesIO()  # a file's own name would become part of its bytes, and of the task's identity
    torch.save({"sys_path": folders, "saved": torch.frombuffer(saved, dtype=torch.uint8), **about}, whole)
    file.write_bytes(whole.getbuffer())


UNPICKLABLE = (AttributeError, TypeError, RuntimeError, pickle.PicklingError)
"""What is raised of an attribute that cannot be saved: a lambda, a class that is made when it is called."""


def _pickled(payload: dict[str, Any]) -> bytearray:
    """Return a module and its inputs as torch saves them.

    They lie in the file as a tensor: pickle's second protocol, which torch.save speaks, writes bytes as text (300 MB: 3.2 s of a core to write and
    2.4 s to read, in every process of a run, and half as large again; 0.26 and 0.16 s as a tensor).
    """
    import torch

    saved = io.BytesIO()
    torch.save(payload, saved, pickle_module=local_functions)
    return bytearray(saved.getbuffer())


def _graph_in_place_of(module: torch.nn.Module, inputs: list[Any], names: Sequence[str], error: Exception) -> torch.nn.Module:
    """Return the exported graph of a module that cannot be saved itself; raise TaskError where there is none, or the inputs cannot be saved."""
    import torch

    name, scripted = type(module).__name__, isinstance(module, torch.jit.ScriptModule)
    try:
        _pickled({"inputs": inputs})
        if not scripted:
            return _graph_of(module, inputs, names)
    except Exception as other:  # torch.export documents no common base for what it raises
        remedy = f"define its class in a module of its own (torch.export cannot read it: {other})"
        raise TaskError(f"{name} cannot be saved: {error}", remedy) from error
    raise TaskError(f"{name} cannot be saved: {error}", "give the module that it was scripted from") from error


def _alike(inputs: list[Any], other: list[Any]) -> list[Any]:
    """Return another example; raise TaskError for one of other shapes or types."""
    from torch.utils import _pytree as pytree

    forms = [[(getattr(leaf, "shape", None), getattr(leaf, "dtype", type(leaf))) for leaf in pytree.tree_leaves(one)] for one in (inputs, other)]
    if forms[0] != forms[1]:
        raise TaskError(f"expected more examples of the same shapes and types, {forms[0]}, saw {forms[1]}", "declare other shapes with shapes=")
    return other


def modules_of(path: str | os.PathLike[str], most: float = MOST_READ_BYTES) -> list[str]:
    """Return the names of the modules that the parts of a saved module are defined in, those of torch left out.

    None for another file, for one of more than `most` bytes, and where this process has not loaded torch: reading the file would take longer than it
    saves. No code of the file's runs.
    """
    file = Path(path)
    try:
        if file.suffix != ".pt" or "torch" not in sys.modules or file.stat().st_size > most:
            return []
        import torch

        names = torch.load(file, weights_only=True, mmap=True).get("modules", [])
    except (OSError, RuntimeError, AttributeError, pickle.UnpicklingError):  # whoever reads the task says so
        return []
    return [str(name) for name in names if name.partition(".")[0] not in ("", "torch", "builtins", "warpwright")]


def _modules(module: torch.nn.Module) -> set[str]:
    """Return the names of the Python modules that the parts of a module, and a function that it stands for, are defined in."""
    own = {base.__module__ for part in module.modules() for base in type(part).__mro__}
    return own | {str(getattr(part.function, "__module__", "")) for part in module.modules() if hasattr(part, "function")}


def in_order(module: torch.nn.Module, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[list[Any], tuple[str, ...]]:
    """Return a call's inputs in order; and their names, where forward takes them by name only.

    Keywords take their places in the signature, with defaults between. Raise TaskError for arguments that forward does not take, and for
    positional ones beside others that it takes by name only.
    """
    try:
        signature = inspect.signature(module.forward)
    except ValueError:  # of a scripted module
        return [*inputs, *keywords.values()], ()
    try:
        bound = signature.bind(*inputs, **keywords)
    except TypeError as error:
        complaint = f"{type(module).__name__}.forward cannot be called so: {error}"
        raise TaskError(complaint, "give args and kwargs as in module(*args, **kwargs)") from error
    if not keywords:
        return list(inputs), ()
    kinds = {name: parameter.kind for name, parameter in bound.signature.parameters.items()}
    last = list(bound.arguments)[-1]
    if not any(kinds[name] in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD) for name in bound.arguments):
        bound.apply_defaults()
        values = list(bound.arguments.items())
        return [value for _, value in values[: [name for name, _ in values].index(last) + 1]], ()
    if bound.args:
        named = {name: value for name, value in bound.arguments.items() if kinds[name] == inspect.Parameter.POSITIONAL_OR_KEYWORD}
        if len(named) != len(bound.args):
            raise TaskError("expected arguments by position or by name only, saw both", "give all of them in kwargs")
        keywords = {**named, **keywords}
    return list(keywords.values()), tuple(keywords)


def _importable(module: torch.nn.Module, inputs: list[Any], names: Sequence[str] = ()) -> torch.nn.Module:
    """Return `module`, or its exported graph where a class of it lives in a script or notebook that other processes cannot import."""
    from warpwright.tasks.function_module import Function

    local = {(local_functions.parametrized(part) or type(part)).__module__ for part in module.modules()} & {"__main__", "__mp_main__"}
    if not local and not any(isinstance(part, Function) and not part.importable for part in module.modules()):
        return module
    try:
        return _graph_of(module, inputs, names)
    except Exception as error:  # torch.export documents no common base for what it raises
        _try(module, *_arguments(inputs, names))
        complaint = f"the class of {type(module).__name__} is defined in the running script, and torch.export cannot read it: {error}"
        raise TaskError(complaint, "move the class into a module of its own, which other processes can import") from error


def _arguments(inputs: list[Any], names: Sequence[str]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a call's inputs by position or by name."""
    return ((), dict(zip(names, inputs, strict=True))) if names else (tuple(inputs), {})


def _graph_of(module: torch.nn.Module, inputs: list[Any], names: Sequence[str]) -> torch.nn.Module:
    """Return a module's exported graph, as a module that can be saved; raise what torch.export does."""
    import torch

    graph_module = torch.export.export(module, *_arguments(inputs, names)).module(check_guards=False)
    # A plain copy, because the exported module and its graph hold lambdas and a tracer that cannot be saved.
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(graph_module.graph, {}))
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten._assert_tensor_metadata.default):
        graph.erase_node(node)  # what a cast was given: on the device of the export, and no other
    graph.set_codegen(graph_module.graph._codegen)
    return torch.fx.GraphModule(graph_module, graph)


def _try(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise TaskError where the module itself raises with its example arguments."""
    import torch

    try:
        with torch.no_grad():
            copy.deepcopy(module)(*args, **kwargs)
    except Exception as error:  # whatever a model raises
        said = f"{type(module).__name__} raises with the example arguments: {type(error).__name__}: {error}"
        raise TaskError(said, "give arguments that it can be called with") from error

"""Modules from Python as task files: what `warpwright.optimize(module, inputs)` writes, and the text that loads it again."""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpwright.errors import TaskError

if TYPE_CHECKING:
    import torch

TEXT = '''"""A module saved by warpwright, and inputs drawn from the values of its example inputs."""
import copy
import io
import sys

import torch

_FILE = torch.load({path!r}, weights_only=False)
sys.path.extend(folder for folder in _FILE["sys_path"] if folder not in sys.path)
_SAVED = torch.load(io.BytesIO(_FILE["saved"]), weights_only=False, map_location="cpu")


_CLASS = type(_SAVED["module"])
if isinstance(_SAVED["module"], torch.fx.GraphModule):  # whose own call looks for the class of the call in the class it was made for
    _MODE = _FILE["training"]

    def _train(self, mode=True):
        if mode is not _MODE:
            raise RuntimeError(
                f"this model was exported in {{'training' if _MODE else 'eval'}} mode, because its class is defined in a script: "
                "for the other mode move the class into a module of its own and optimize it again"
            )
        return torch.nn.Module.train(self, mode)

    _METHODS = {{"forward": _CLASS.forward, "train": _train}} if _FILE["exported"] else {{"forward": _CLASS.forward}}
    _CLASS = type("Exported", (torch.nn.Module,), _METHODS)


class Model(_CLASS):
    def __init__(self):
        torch.nn.Module.__init__(self)
        kept = copy.deepcopy(_SAVED["module"]).__dict__
        self.__dict__.update((name, value) for name, value in kept.items() if name not in ("_graph", "_code", "_tracer_cls", "_lineno_map"))
        if _FILE["exported"]:
            self.train(_MODE)


def _fresh(value):
    if not isinstance(value, torch.Tensor) or value.numel() == 0:
        return value
    if not value.is_floating_point():
        return value.clone()
    drawn = torch.randint(value.numel(), value.shape)
    values = value.to(drawn.device)
    return torch.empty_like(values).copy_(values.flatten()[drawn])


def get_inputs():
    return list(torch.utils._pytree.tree_map(_fresh, _SAVED["inputs"]))


def get_init_inputs():
    return []
'''
"""The task in KernelBench form; `path` is the file."""


def write(module: torch.nn.Module, inputs: Sequence[Any], path: str | os.PathLike[str]) -> None:
    """Write `module` and its example inputs as a task file (suffix .pt) that `describe` reads."""
    import torch

    file = Path(path)
    if file.suffix != ".pt":
        raise TaskError(f"expected a file name that ends in .pt, saw {file.name!r}", "write(module, inputs, 'task.pt')")
    saved = io.BytesIO()
    program = _importable(module, list(inputs))
    try:
        torch.save({"module": program, "inputs": list(inputs)}, saved)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise TaskError(f"{type(module).__name__} cannot be saved: {error}", "define its class in a module of its own") from error
    folders = [folder for folder in sys.path if folder]
    about = {"training": module.training, "exported": program is not module}
    torch.save({"sys_path": folders, "saved": saved.getvalue(), **about}, file)


def _importable(module: torch.nn.Module, inputs: list[Any]) -> torch.nn.Module:
    """Return `module`, or its exported graph where a class of it lives in a script or notebook that other processes cannot import."""
    import torch

    local = {type(part).__module__ for part in module.modules()} & {"__main__", "__mp_main__"}
    if not local:
        return module
    try:
        graph_module = torch.export.export(module, tuple(inputs)).module(check_guards=False)
        # A plain copy, because the exported module and its graph hold lambdas and a tracer that cannot be saved.
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(graph_module.graph, {}))
        graph.set_codegen(graph_module.graph._codegen)
        return torch.fx.GraphModule(graph_module, graph)
    except Exception as error:  # torch.export documents no common base for what it raises
        raise TaskError(
            f"the class of {type(module).__name__} is defined in the running script, and torch.export cannot read it: {error}",
            "move the class into a module of its own, which other processes can import",
        ) from error

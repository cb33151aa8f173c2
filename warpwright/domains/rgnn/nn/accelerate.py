"""`accelerate(model)`: PyG's relational layers replaced in place, with their parameters, hooks and mode."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

import torch

from warpwright.domains.rgnn.nn.common import REPLACEABLE, Layer, share
from warpwright.domains.rgnn.nn.hgt import HGTConv
from warpwright.domains.rgnn.nn.rgat import RGATConv
from warpwright.domains.rgnn.nn.rgcn import FastRGCNConv, RGCNConv
from warpwright.errors import UsageError

Model = TypeVar("Model", bound=torch.nn.Module)

LAYERS: Mapping[str, type[Layer]] = {f"{layer.pyg_module}.{layer.__name__}": layer for layer in (RGCNConv, FastRGCNConv, RGATConv, HGTConv)}


def accelerate(model: Model) -> Model:
    """Return `model` with PyG's RGCNConv, FastRGCNConv, RGATConv and HGTConv computed by warpwright, at any depth and in place.

    The parameters are the same objects, so optimisers and state dictionaries stay. A subclass of a PyG layer is left alone: it may compute
    something else; so is a layer one of whose methods was replaced. A model that is itself such a layer is returned as a new module. The layers are
    of PyG's classes too; while their messages are masked by an explainer, read by a hook or made by a method that was replaced, PyG computes.
    Warns where there is no such layer; raises UsageError for anything but a module.
    """
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"expected a torch.nn.Module, saw {model!r:.80}", "accelerate(model) takes a model with PyG's layers, and returns it")
    accelerated = _accelerated(model, {})
    if not any(isinstance(module, Layer) or _name(type(module)) in LAYERS for module in accelerated.modules()):
        warnings.warn(_nothing(model), stacklevel=2)
    return accelerated  # type: ignore[return-value]


def _nothing(model: torch.nn.Module) -> str:
    """Return what was looked for in vain, what the model has instead, and what to do."""
    known = ", ".join(kind.__name__ for kind in LAYERS.values())
    looked = f"accelerate found nothing to replace in {type(model).__name__}: it replaces PyG's {known}"
    kinds = sorted({type(module) for module in model.modules()}, key=_name)
    if made := [kind.__name__ for kind in kinds if any(_name(base) in LAYERS for base in kind.__mro__)]:
        return f"{looked}, but no subclass, which may compute something else ({', '.join(made)}); use the class itself"
    if others := [kind.__name__ for kind in kinds if kind.__module__.startswith("torch_geometric.nn.conv.")]:
        return f"{looked}; {', '.join(others)} stay PyG's"
    return f"{looked}; a layer in a plain list or a closure is not seen: register it, as in a torch.nn.ModuleList"


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _accelerated(model: torch.nn.Module, done: dict[torch.nn.Module, torch.nn.Module]) -> torch.nn.Module:
    """Return what takes the place of a module; one that has several names is replaced once, under all of them."""
    if model not in done:
        done[model] = _swapped(model)
        if done[model] is model:
            for name, child in model._modules.items():
                if child is not None:
                    model._modules[name] = _accelerated(child, done)
    return done[model]


def _swapped(module: torch.nn.Module) -> torch.nn.Module:
    kind = LAYERS.get(_name(type(module)))
    if kind is None:
        return module
    if any(torch.nn.parameter.is_lazy(x) for x in module.parameters()):
        warnings.warn(f"{kind.__name__} stays PyG's: its widths are not known yet; call accelerate after the first forward", stacklevel=4)
        return module
    if replaced := sorted({*REPLACEABLE} & vars(module).keys()):
        warnings.warn(f"{kind.__name__} stays PyG's: its {', '.join(replaced)} was replaced, which may compute something else", stacklevel=4)
        return module
    if _aggregates_otherwise(module):
        warnings.warn(f"{kind.__name__} stays PyG's: its aggr_module is not what aggr={module.aggr!r} makes", stacklevel=4)
        return module
    with torch.device("meta"):
        layer = kind(**_arguments(kind, module))
    layer._modules = dict(module._modules)
    share(module, layer)
    layer.__class__ = _joined(kind, type(module))
    for name, value in vars(module).items():
        if not hasattr(type(module), name):  # a method that was put in its place is bound to the old layer
            vars(layer).setdefault(name, value)
    if vars(layer).get("_explain"):  # PyG puts the method that knows masks in place when it is set
        own: Any = layer
        own._explain, own.explain = None, True
    for hooks in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs"):
        layer.__dict__[hooks] = module.__dict__[hooks]
    return layer.train(module.training)


def _aggregates_otherwise(module: torch.nn.Module) -> bool:
    """Whether another aggregation was put in the place of the one that the constructor's argument names."""
    name, own = getattr(module, "aggr", None), getattr(module, "aggr_module", None)
    if not (isinstance(name, str) and name.isalpha()):  # an object's text: what the constructor got is what is there
        return False
    made = import_module("torch_geometric.nn.resolver").aggregation_resolver(name)
    return type(own) is not type(made)


def _joined(kind: type[Layer], pyg: type[torch.nn.Module]) -> type[Layer]:
    """Return a class of both, so that what looks for PyG's MessagePassing (explainers, numbers of hops, hooks) finds it.

    It is an attribute of this module, where pickle finds it. Only PyG's own `propagate` knows masks; of the templates it generates instead
    FastRGCNConv would take its base class's when it is explained, and raise.
    """
    name = f"PyG{kind.__name__}"
    if name not in globals():
        propagate = import_module("torch_geometric.nn").MessagePassing.propagate
        own = {"__module__": __name__, "__qualname__": name, "pyg": pyg, "_orig_propagate": propagate, "_set_jittable_templates": _as_they_are}
        globals()[name] = type(kind.__name__, (kind, pyg), own)
    joined: type[Layer] = globals()[name]
    return joined


def _as_they_are(self: Layer, raise_on_error: bool = False) -> None:
    """Generate no templates: the class has PyG's."""


def __getattr__(name: str) -> type[Layer]:
    """Make a class that a pickle asks for."""
    for kind in LAYERS.values():
        if name == f"PyG{kind.__name__}":
            return _joined(kind, getattr(import_module(kind.pyg_module), kind.__name__))
    raise AttributeError(name)


def _arguments(kind: type[Layer], module: torch.nn.Module) -> dict[str, Any]:
    """Return the constructor's arguments that `module` was made with, as far as it keeps them; the rest are read off its parameters."""
    names = inspect.signature(RGCNConv.__init__ if issubclass(kind, RGCNConv) else kind.__init__).parameters
    kept = {name: getattr(module, name) for name in names if name in module.__dict__}
    read = {"bias": module._parameters.get("bias") is not None, "root_weight": module._parameters.get("root") is not None}
    kept |= {name: value for name, value in read.items() if name in names}
    if "aggr" in names and isinstance(getattr(module, "aggr", None), str):
        kept["aggr"] = module.aggr
    if getattr(module, "flow", "source_to_target") != "source_to_target":
        kept["flow"] = module.flow
    if "metadata" in names:
        kept["metadata"] = (module.node_types, module.edge_types)
        kept["in_channels"] = _widths(module)  # a lazy one stays -1 in the attribute
    return kept


def _widths(module: Any) -> dict[str, int]:
    """Return the widths of the node types' features that PyG's HGTConv has weights for."""
    return {kind: linear.weight.shape[1] for kind, linear in module.kqv_lin.lins.items()}

"""`@warpwright.accelerate`: a function or a class of modules that is optimized when it is first called."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from warpwright.errors import UsageError, WarpwrightError
from warpwright.front import asked
from warpwright.front.module import optimize
from warpwright.front.result import Result

MOST_KINDS = 4
"""Kinds of call (shapes, types, devices) of one function or module that are optimized; more take the original."""

_UNJUDGED = "it could not be optimized for this kind of call"


def accelerate(target: Any = None, /, **options: Any) -> Any:
    """Have a function or a class of modules optimized at its first call of each kind, as by `optimize(..., **options)`.

    That call waits for the search; what was not proven faster goes on as it was, and so do calls in training mode or with gradients. Results are
    in the attribute `results`; a call that takes the original for another reason than its speed says so once. Raise UsageError for anything else
    than a function or a class of modules.
    """
    inspect.signature(optimize).bind_partial(None, **options)  # here, and not at the first call
    known = {name: options.get(name, parameter.default) for name, parameter in inspect.signature(optimize).parameters.items()}
    asked.check(known["budget"], known["search"], known["precision"], known["callback"])
    if target is None:
        return functools.partial(accelerate, **options)
    if isinstance(target, type) and issubclass(target, torch.nn.Module):
        return _accelerate_class(target, options)
    if isinstance(target, type | torch.nn.Module) or not callable(target):
        raise UsageError(f"expected a function or a class of modules, saw {target!r:.80}", "warpwright.optimize(module, args) takes modules")
    return _accelerate_function(target, options)


def _accelerate_function(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    known = _Known(options, getattr(function, "__name__", "function"))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return function(*args, **kwargs)
        if _wants_gradients(pytree.tree_leaves((args, kwargs))):
            known.warn("this call wants gradients", "call it under torch.no_grad() or inference_mode()")
            return function(*args, **kwargs)
        faster = known.program(function, args, kwargs)
        return faster(*args, **kwargs) if faster is not None else function(*args, **kwargs)

    call.results = known.results  # type: ignore[attr-defined]
    return call


def _accelerate_class(kind: type[torch.nn.Module], options: dict[str, Any]) -> type[torch.nn.Module]:
    of: weakref.WeakKeyDictionary[torch.nn.Module, _Known] = weakref.WeakKeyDictionary()
    original = kind.__call__

    @functools.wraps(original)
    def call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if type(self) is not kind or self.training or torch.compiler.is_compiling():
            return original(self, *args, **kwargs)
        known = of.setdefault(self, _Known(options, kind.__name__))
        if known.busy:
            return original(self, *args, **kwargs)
        if _wants_gradients([*pytree.tree_leaves((args, kwargs)), *self.parameters()]):
            known.warn("this call in eval mode wants gradients", "call it under torch.no_grad() or inference_mode(), or requires_grad_(False)")
            return original(self, *args, **kwargs)
        faster = known.program(self, args, kwargs)
        if faster is None:
            return original(self, *args, **kwargs)
        _share(self, faster)
        return faster(*args, **kwargs)

    kind.__call__ = call  # type: ignore[method-assign]
    kind.results = property(lambda self: of[self].results if self in of else [])  # type: ignore[attr-defined]
    return kind


class _Known:
    """The programs of one function or module, by the kind of call."""

    def __init__(self, options: dict[str, Any], name: str) -> None:
        self.options, self.name, self.busy = options, name, False
        self.programs: dict[Any, torch.nn.Module | None] = {}
        self.results: list[Result] = []
        self.warned: set[str] = set()

    def warn(self, seen: str, remedy: str) -> None:
        """Say once that a call takes the original."""
        if seen not in self.warned:
            self.warned.add(seen)
            level, frame = 1, sys._getframe()
            while frame.f_back is not None and frame.f_code.co_filename == __file__:  # to the line that calls
                level, frame = level + 1, frame.f_back
            warnings.warn(f"warpwright: {self.name} runs as the original: {seen}; {remedy}", RuntimeWarning, stacklevel=level)

    def program(self, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.nn.Module | None:
        """Return the faster program for a call of this kind, after a search if it is the first one; None for the original."""
        leaves, form = pytree.tree_flatten((args, kwargs))
        kind = (str(form), *(_kind(leaf) for leaf in leaves))
        try:
            hash(kind)
        except TypeError:
            self.warn("an argument of it is neither a tensor nor can it be compared with one of the next call", "give tensors and numbers")
            return None
        if kind not in self.programs and self.busy:
            return None
        if kind not in self.programs and len(self.programs) >= MOST_KINDS:
            self.warn(f"{MOST_KINDS} kinds of call (shapes, types, devices) were optimized, and this is another", "pad its inputs to fewer sizes")
            return None
        if kind not in self.programs:
            self.programs[kind] = self._searched(original, args, kwargs)
        return self.programs[kind]

    def _searched(self, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.nn.Module | None:
        self.busy = True
        try:
            result = optimize(original, args, kwargs, **self.options)
        except WarpwrightError as error:  # the caller wants an answer, and the original has one
            self.warn(f"{_UNJUDGED} ({error.message})", error.hint or "see the message")
            return None
        finally:
            self.busy = False
        self.results.append(result)
        if result.verdict in ("FAILED", "UNSCORED"):
            self.warn(f"{_UNJUDGED} ({result.reason})", "its `results` say more")
        return result.module if result.verdict == "FASTER" or result.baseline not in ("", "eager") else None


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return (leaf.shape, leaf.dtype, leaf.device, leaf.stride() if leaf.layout == torch.strided else leaf.layout)
    return (type(leaf), leaf)


def _wants_gradients(leaves: list[Any]) -> bool:
    return torch.is_grad_enabled() and any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves)


def _share(model: torch.nn.Module, faster: torch.nn.Module) -> None:
    """Have the program's module hold the very parameters and buffers of the original, as they are now."""
    own = dict(faster.named_modules())
    for path, part in model.named_modules():
        twin = own[path]
        for mine, its in ((part._parameters, twin._parameters), (part._buffers, twin._buffers)):
            if any(its.get(name) is not tensor for name, tensor in mine.items()):
                its.update(mine)

"""Of a model that cannot be captured whole, the largest parts that can: nn.Modules, captured for the calls that they get when the model runs.

The model is run on the CPU, on a few draws of its inputs, to see how its parts are called; nothing that it computes is used. From the top down, a
part that is captured for its calls is a piece; of one that is not, the children are tried. What is left stays Python.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from warpwright.domains.graph.assembly import Assembly, Piece
from warpwright.domains.graph.capture.model import from_module
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.lower import Original, program_text
from warpwright.errors import CaptureError, TaskError
from warpwright.tasks import taskfile
from warpwright.tasks.modules import saved_module
from warpwright.tasks.modules.copying import copied

DRAWS = 4
"""Of the inputs: a model that branches on values may take its branches with them."""

MOST_KINDS = 4
"""Of calls of one part that get a program, the most frequent ones; a recurrent cell may see more."""

FEWEST_CALLS = 2
"""Operators of a program of a part: with one alone there is nothing to gain."""

MOST_CAPTURES = 96
"""Parts that are tried: each takes 0.1 to 1 s of CPU time."""


@dataclass
class Seen:
    """How a part was called."""

    calls: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """By the kind of call: arguments, their tensors on the meta device."""
    counts: Counter[str] = field(default_factory=Counter)

    def frequent(self) -> list[tuple[Any, ...]]:
        """Return the most frequent calls, in the order of their first one."""
        chosen = {kind for kind, _ in self.counts.most_common(MOST_KINDS)}
        return [call for kind, call in self.calls.items() if kind in chosen]


def assemble(references: Sequence[taskfile.Reference], original: Original, reason: str) -> Assembly:
    """Return the pieces of a model that was not captured whole for `reason`; none where no part is.

    `references`: the model, with its inputs in each shape.
    """
    model = references[0].make_meta_model()
    try:
        seen = observed(references)
    except TaskError as error:
        return Assembly((), f"{reason}; and it does not run on the CPU, where its parts are looked at: {error.message}")
    tries = iter(range(MOST_CAPTURES))
    pieces = _merged(_pieces_of(model, "", seen, tries), original)
    return Assembly(tuple(pieces), reason)


def observed(references: Sequence[taskfile.Reference]) -> dict[str, Seen]:
    """Return how each part of a model is called, by its path."""
    seen_by_path: dict[str, Seen] = {}
    with torch.random.fork_rng(devices=[]), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        model = references[0].make_judged_model(0, "cpu")
        hooks = [part.register_forward_pre_hook(_noting(part, seen_by_path, path), with_kwargs=True) for path, part in model.named_modules() if path]
        try:
            for reference in references:
                for seed in range(DRAWS):
                    inputs = reference.make_inputs(seed)
                    taskfile.call(reference.task.path, "forward", lambda inputs=inputs: model(*inputs))  # type: ignore[misc]
        finally:
            for hook in hooks:
                hook.remove()
    return seen_by_path


def _noting(part: torch.nn.Module, seen_by_path: dict[str, Seen], path: str) -> Any:
    def note(_: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            inputs, names = saved_module.in_order(part, args, kwargs)
        except TaskError:
            return
        if names:  # a program of a part is given its arguments in order
            return
        leaves, form = pytree.tree_flatten(tuple(inputs))
        kind = f"{form} {[_kind(leaf) for leaf in leaves]}"
        seen = seen_by_path.setdefault(path, Seen())
        seen.counts[kind] += 1
        if kind not in seen.calls:
            seen.calls[kind] = tuple(pytree.tree_unflatten([_meta(leaf) for leaf in leaves], form))

    return note


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return tuple(leaf.shape), leaf.dtype, leaf.stride() if leaf.layout is torch.strided else leaf.layout
    return (type(leaf).__name__, leaf) if isinstance(leaf, bool | int | float | str | None) else type(leaf).__name__


def _meta(leaf: Any) -> Any:
    """Return a tensor's form: one of its own for each argument, since a later call may give two where this one gave one twice."""
    if type(leaf) in (torch.Tensor, torch.nn.Parameter) and leaf.layout is torch.strided:
        return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
    return leaf


def _pieces_of(part: torch.nn.Module, path: str, seen: Mapping[str, Seen], tries: Iterable[int]) -> list[Piece]:
    """Return the pieces at or below a part."""
    if path in seen and _importable(type(part)) and next(iter(tries), None) is not None:
        programs = _captured(part, seen[path].frequent())
        if programs:
            return [Piece((path,), programs, type(part))] if any(_operators(program) >= FEWEST_CALLS for program in programs) else []
    return [piece for name, child in part.named_children() for piece in _pieces_of(child, f"{path}.{name}".lstrip("."), seen, tries)]


def _importable(kind: type) -> bool:
    """Can a generated file name the class? Its objects are given another class, which a scripted or traced one does not bear."""
    if issubclass(kind, torch.jit.ScriptModule | torch.fx.GraphModule) or "." in kind.__qualname__:
        return False
    try:
        return getattr(importlib.import_module(kind.__module__), kind.__name__, None) is kind
    except ImportError:
        return False


def _captured(part: torch.nn.Module, calls: Iterable[tuple[Any, ...]]) -> tuple[GraphIR, ...]:
    """Return the programs of a part, one for each kind of call; none if one call cannot be captured."""
    programs = []
    try:
        for call in calls:
            programs.append(from_module(copied(part), call))
    except CaptureError:
        return ()
    return tuple(programs)


def _operators(program: GraphIR) -> int:
    return sum(node.op == "call_function" for node in program.graph.nodes)


def _merged(pieces: Sequence[Piece], original: Original) -> list[Piece]:
    """Return the pieces with those that compute the same as one."""
    alike: dict[Any, Piece] = {}
    for piece in pieces:
        key = (piece.kind, *(program_text(program, replace(original, part=True)) for program in piece.programs))
        alike[key] = replace(alike[key], paths=alike[key].paths + piece.paths) if key in alike else piece
    return list(alike.values())

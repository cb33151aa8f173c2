"""A program's files in a worker: written down, imported, and its class constructed without drawing from the generators."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch


@dataclass
class Program:
    """One built entry."""

    call: Callable[..., Any]
    module: torch.nn.Module | None
    stateful: bool
    lazy: frozenset[int] = frozenset()
    """Which of its outputs may come conjugated or negated by a mark alone, as the original's do: that is worked out before the call answers."""
    loaded: dict[str, torch.Tensor] = field(default_factory=dict)
    """Of a program whose calls change its state: the one that was loaded last."""


def written(folder: Path, files: Sequence[Sequence[str]]) -> str:
    """Write a program's files, (name, text) each, into its folder; return the path of the first."""
    for name, text in files:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder):
            raise ValueError(f"expected file names inside the source folder, saw {name!r}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return str(folder / files[0][0])


def imported(path: str, module_name: str, class_name: str) -> Any:
    """Import a file as a module of this name; return what it calls `class_name`."""
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    value = getattr(module, class_name, None)
    if value is None:
        raise AttributeError(f"expected the source to define {class_name}, saw {[name for name in vars(module) if not name.startswith('_')]}")
    return value


DRAWS = ("uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_")
"""Functions of torch.nn.init that fill a tensor at random."""

DRAWN_ELEMENTS = 1 << 22
"""Parameters of as many elements are not drawn: of 2^30, as KernelBench's L2-55 and L2-59 have, it took 8 s of a core beside an H200, in each
process."""


@contextlib.contextmanager
def weights_left_out() -> Iterator[None]:
    """Leave large parameters as memory is while a baseline of ours is constructed: it is given a state before it is called. Nothing else is another
    one, but for what comes of a generator later, which the judge's original has otherwise, too."""
    init = torch.nn.init
    known = {name: getattr(init, name) for name in DRAWS if hasattr(init, name)}
    try:
        for name, draw in known.items():
            setattr(init, name, _but_large_ones(draw))
        yield
    finally:
        for name, draw in known.items():
            setattr(init, name, draw)


def _but_large_ones(draw: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(draw)
    def filled(*args: Any, **kwargs: Any) -> Any:
        tensor = args[0] if args else kwargs.get("tensor")
        if isinstance(tensor, torch.nn.Parameter) and not torch.nn.parameter.is_lazy(tensor) and tensor.numel() >= DRAWN_ELEMENTS:
            return tensor
        return draw(*args, **kwargs)

    return filled


@contextlib.contextmanager
def generators_kept(device: str) -> Iterator[None]:
    """Put the random generators back to where they were: what a constructor draws is no draw of a call's."""
    numpy_random, drawn = getattr(sys.modules.get("numpy"), "random", None), random.getstate()
    of_numpy = numpy_random.get_state() if numpy_random else None
    with torch.random.fork_rng(devices=[device] if device.startswith("cuda") else []):
        try:
            yield
        finally:
            random.setstate(drawn)
            if numpy_random:
                numpy_random.set_state(of_numpy)

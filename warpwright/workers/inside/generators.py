"""torch's default generators, one of the CPU and one of each GPU in use: what a call draws from that names no generator of its own."""

from __future__ import annotations

import hashlib
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_OF_CPU = torch.default_generator
"""Noted when this is imported: a program may give torch's name to another object."""

_sha256 = hashlib.sha256


def default_generators() -> list[torch.Generator]:
    """Return them, the CPU's first. A GPU's exists once CUDA is in use by this process."""
    on_gpus = torch.cuda.default_generators if torch.cuda.is_initialized() else ()
    return [_OF_CPU, *on_gpus]


def states() -> list[bytes]:
    """Return where they are: equal lists, and nothing was drawn between. No GPU is waited for: its generator is kept by the host."""
    return [generator.get_state().numpy().tobytes() for generator in default_generators()]


def marks() -> list[str]:
    """Return a digest of where each of them is."""
    return [_sha256(state).hexdigest() for state in states()]


def states_of_python() -> dict[str, Any]:
    """Return where Python's and numpy's generators are, the latter if numpy is in use."""
    of_numpy = getattr(sys.modules.get("numpy"), "random", None)
    return {"random": random.getstate(), **({"numpy": repr(of_numpy.get_state())} if of_numpy else {})}


def seed_all(seed: int) -> None:
    """Have all of them begin at a seed."""
    for generator in default_generators():
        generator.manual_seed(seed)


def seed_anew() -> None:
    """Have torch's, Python's and numpy's generators, the latter if numpy is in use, begin where nobody knows."""
    torch.manual_seed(int.from_bytes(os.urandom(4)))
    random.seed(os.urandom(8))
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(int.from_bytes(os.urandom(4)))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, all of them begin at a seed; afterwards they are where they were."""
    kept = [(generator, generator.get_state()) for generator in default_generators()]
    seed_all(seed)
    try:
        yield
    finally:
        for generator, state in kept:
            generator.set_state(state)

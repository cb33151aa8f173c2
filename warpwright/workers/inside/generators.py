"""torch's default generators, one of the CPU and one of each GPU in use: what a call draws from that names no generator of its own."""

from __future__ import annotations

import hashlib
import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

AHEAD = 37
"""Numbers that are drawn already."""

_OF_CPU = torch.default_generator
"""Noted when this is imported: a program may give torch's name to another object."""

_sha256 = hashlib.sha256


def default_generators() -> list[torch.Generator]:
    """Return them, the CPU's first. A GPU's exists once CUDA is in use by this process."""
    on_gpus = torch.cuda.default_generators if torch.cuda.is_initialized() else ()
    return [_OF_CPU, *on_gpus]


def of_process(device: str) -> list[torch.Generator]:
    """Return those that a program on a device can draw from. Asked before there is a program, which may give torch's names to objects of its own."""
    if device.startswith("cuda"):
        torch.cuda.init()
    return default_generators()


def states(noted: Sequence[torch.Generator] | None = None) -> list[bytes]:
    """Return where they are, or those noted: equal lists, and nothing was drawn between. No GPU is waited for: its generator is kept by the host."""
    return [generator.get_state().numpy().tobytes() for generator in (default_generators() if noted is None else noted)]


def marks(noted: Sequence[torch.Generator] | None = None) -> list[str]:
    """Return a digest of where each of them is, or of those noted."""
    return [_sha256(state).hexdigest() for state in states(noted)]


def states_of_python() -> dict[str, Any]:
    """Return where Python's and numpy's generators are, the latter if numpy is in use."""
    of_numpy = getattr(sys.modules.get("numpy"), "random", None)
    return {"random": random.getstate(), **({"numpy": repr(of_numpy.get_state())} if of_numpy else {})}


def begin_at(draws: int, noted: Sequence[torch.Generator] | None = None) -> None:
    """Have all of them, or those noted, begin at a place: half of it is a seed, and where it is odd, some numbers of that seed are drawn already.

    (A user seeds once and calls on and on, so that no program may go by the seed alone, which a generator tells.)
    """
    for generator in default_generators() if noted is None else noted:
        generator.manual_seed(draws >> 1)
        if draws & 1:
            torch.empty(AHEAD, dtype=torch.float32, device=generator.device).uniform_(generator=generator)


def seed_anew() -> None:
    """Have torch's, Python's and numpy's generators, the latter if numpy is in use, begin where nobody knows."""
    torch.manual_seed(int.from_bytes(os.urandom(4)))
    random.seed(os.urandom(8))
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(int.from_bytes(os.urandom(4)))


@contextmanager
def seeded(draws: int) -> Iterator[None]:
    """Inside, all of them begin at a place (`begin_at`); afterwards they are where they were."""
    kept = [(generator, generator.get_state()) for generator in default_generators()]
    begin_at(draws)
    try:
        yield
    finally:
        for generator, state in kept:
            generator.set_state(state)

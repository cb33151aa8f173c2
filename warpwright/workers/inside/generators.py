"""torch's default generators, one of the CPU and one of each GPU in use: what a call draws from that names no generator of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_OF_CPU = torch.default_generator
"""Noted when this is imported: a program may give torch's name to another object."""


def default_generators() -> list[torch.Generator]:
    """Return them, the CPU's first. A GPU's exists once CUDA is in use by this process."""
    on_gpus = torch.cuda.default_generators if torch.cuda.is_initialized() else ()
    return [_OF_CPU, *on_gpus]


def states() -> list[bytes]:
    """Return where they are: equal lists, and nothing was drawn between. No GPU is waited for: its generator is kept by the host."""
    return [generator.get_state().numpy().tobytes() for generator in default_generators()]


def seed_all(seed: int) -> None:
    """Have all of them begin at a seed."""
    for generator in default_generators():
        generator.manual_seed(seed)


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

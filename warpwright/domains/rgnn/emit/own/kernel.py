"""CUDA kernels of large graphs: loaded once on each device, and used there once their results on a small example are right."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

from warpwright.domains.rgnn.lattice import Domain
from warpwright.errors import UsageError
from warpwright.native import BuildError
from warpwright.templates.driver import DriverError, Kernel, machine_code

MANY = 1 << 17
"""Rows from which such kernels are used: with fewer a GPU is not full."""
ALIGNED = 16
"""Bytes that a thread takes at once."""

Launch = Callable[..., None]
"""launch(blocks, *arguments): arguments are tensors, None, numbers and the bytes of a struct."""


Loaded = TypeVar("Loaded")

_CHECKS = itertools.count()


def numbers_of_a_check() -> torch.Generator:
    """Return numbers that no check of this process had before: memory that is given again may hold the last check's results."""
    return torch.Generator().manual_seed(next(_CHECKS))


@dataclass(frozen=True)
class Side:
    """An operand: the value that is read, and the domain of its rows."""

    value: int
    domain: Domain


@dataclass(frozen=True)
class Own:
    """A kernel of a file, whose path is from this folder."""

    file: str
    entry: str
    formats: str | tuple[str, ...]
    """Its parameters, in codes of the struct module; a string has one letter for each."""
    threads: int
    shared: int
    """Bytes of a block."""
    right_on: Callable[[Launch, torch.device], bool]
    """Are the results of a small example right?"""
    work: str
    """What it does, for a warning where it is not used."""
    before: tuple[str, ...] = ()
    """Files that its own takes functions from."""

    def text(self) -> str:
        """Return its CUDA text: what all share, then its files."""
        return "".join((Path(__file__).parent / file).read_text() for file in ("prelude.cu", *self.before, self.file))

    def launcher(self, device: torch.device) -> Launch | None:
        """Return what launches it on a GPU; None on a CPU, where sums have to be in a fixed order, or where it fails (warns once)."""
        if device.type != "cuda" or torch.version.hip or torch.are_deterministic_algorithms_enabled():
            return None
        return _loaded(self, torch.cuda.current_device() if device.index is None else device.index)


@functools.cache
def _loaded(own: Own, device: int) -> Launch | None:
    """Return the launch of a kernel on a device, once its results there are right."""
    try:
        major, minor = torch.cuda.get_device_capability(device)
        if major < 8:  # TF32 and copies to shared memory
            return None
        with torch.cuda.device(device):
            kernel = Kernel(machine_code(own.text(), f"{major}{minor}"), own.entry, own.formats, own.threads, own.shared)
    except (UsageError, BuildError, DriverError) as problem:
        warnings.warn(f"{own.work} of relational graphs are made by Triton, which is slower: {problem}", stacklevel=2)
        return None

    def launch(blocks: int, *arguments: torch.Tensor | float | bytes | None) -> None:
        pointers = [x if isinstance(x, (int, float, bytes)) else 0 if x is None else x.data_ptr() for x in arguments]
        stream = torch._C._cuda_getCurrentRawStream(device)
        if torch.cuda.current_device() == device:
            kernel(blocks, stream, *pointers)
        else:
            with torch.cuda.device(device):
                kernel(blocks, stream, *pointers)

    if own.right_on(launch, torch.device("cuda", device)):
        return launch
    warnings.warn(f"{own.work} of relational graphs are made by Triton, which is slower: the CUDA kernel's are wrong here", stacklevel=2)
    return None


def with_the_others(launch: Launch, device: torch.device) -> bool:
    """Pass: kernels whose results follow from one another are judged together, by `loaded_together`."""
    return True


def loaded_together(
    kernels: Sequence[Own], device: torch.device, make: Callable[..., Loaded], right_on: Callable[[Loaded, torch.device], bool], otherwise: str
) -> Loaded | None:
    """Return what `make` gives for the launches of all kernels; None where one fails or results are wrong (warns what is done `otherwise`)."""
    found = [own.launcher(device) for own in kernels]
    launches = [launch for launch in found if launch is not None]
    if len(launches) < len(found):
        return None
    made = make(*launches)
    if right_on(made, device):
        return made
    warnings.warn(f"{otherwise}: the CUDA kernels' results are wrong here", stacklevel=3)
    return None


def unless_ordered(device: torch.device, loaded: Callable[[torch.device], Loaded | None]) -> Loaded | None:
    """Return what is loaded for a device; None on a CPU, and where sums have to be in a fixed order."""
    return None if device.type != "cuda" or torch.are_deterministic_algorithms_enabled() else loaded(device)


def dense(rows: torch.Tensor) -> torch.Tensor:
    """Return rows as kernels take them: without gaps, and where copies of 16 bytes may begin."""
    rows = rows.contiguous()
    return rows.clone() if rows.data_ptr() % ALIGNED else rows

"""Programmatic dependent launch: kernels of a launch plan that begin while the one before still runs, and wait for its end.

    kernel_0 | kernel_1 | kernel_2        ->      kernel_0 -----|
                                                    begin, wait | kernel_1 -----|
                                                                    begin, wait | kernel_2

Hopper and later GPUs launch a kernel's blocks as soon as all blocks of the one before have said `launch_dependents()`, where its launch (or the edge
of a graph) is a programmatic one; `wait_for_prerequisites()` is the order between the two. Each kernel that begins early waits before it touches any
memory of the GPU's, so when one has ended, all before it have: memory may be handed on within a plan as without this. The first of a run is launched
in the ordinary way, so that it finds what the caller did. A kernel that is launched at several places has one text with what any of them needs; at
the others it does nothing.

Only small kernels do: where the blocks of a kernel and of the next are more than a GPU holds at once, the microsecond between them is no part of the
time, and blocks that wait take room (NVIDIA/cccl#5249 lost time by it). Kernels whose blocks wait for one another, and those that call functions of
another header, whose parameters are `const __restrict__`, begin and are followed in the ordinary way.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warpwright.domains.graph.cuda.kernel import CudaKernel
from warpwright.domains.graph.cuda.plan import THREADS

HEADER = "dependent_launch.h"
_KERNEL = re.compile(r'^extern "C" __global__ .*\{\n', re.MULTILINE)
_READ_ONLY = re.compile(r"(const [\w ]+\*) __restrict__ ")


@dataclass(frozen=True)
class Part:
    """What a kernel has to say at one place of a plan."""

    kernel: str
    waits: bool = False
    """It begins while the one before still runs."""
    triggers: bool = False
    """The next one does."""
    replaces: bool = False
    """A result takes the memory of an operand."""


def begins_early(before: CudaKernel, kernel: CudaKernel) -> bool:
    """May `kernel` begin while `before`, launched just before it, still runs?"""
    return _may(before) and _may(kernel) and _threads(before) + _threads(kernel) <= THREADS


def parts(kernels: Sequence[CudaKernel | None], early: Sequence[bool]) -> list[Part]:
    """Return what the kernels of a plan, launched in this order (None: no kernel), have to say where these begin early."""
    after = [*early[1:], False]
    of = zip(kernels, early, after, strict=True)
    return [Part(kernel.__name__, waits, triggers) for kernel, waits, triggers in of if kernel is not None and (waits or triggers)]


def written(kernels: Sequence[CudaKernel], said: Iterable[Part]) -> list[CudaKernel]:
    """Return the kernels, with what plans need them to say."""
    of: dict[str, list[Part]] = {}
    for part in said:
        of.setdefault(part.kernel, []).append(part)
    return [_saying(kernel, of[kernel.__name__]) if kernel.__name__ in of else kernel for kernel in kernels]


def _may(kernel: CudaKernel) -> bool:
    return not kernel.generated.flags and not kernel.heads and len(_KERNEL.findall(kernel.text)) == 1


def _threads(kernel: CudaKernel) -> int:
    return kernel.generated.launch.grid * kernel.generated.launch.block


def _saying(kernel: CudaKernel, parts: Sequence[Part]) -> CudaKernel:
    """Return a copy of a kernel that begins with the wait, lets the next one begin, or has results and operands in one place."""
    waits, triggers, replaces = any(part.waits for part in parts), any(part.triggers for part in parts), any(part.replaces for part in parts)
    made = copy.copy(kernel)
    signature = _KERNEL.search(kernel.text)
    assert signature is not None, "begins_early takes no other"
    said = "    wait_for_prerequisites();\n" * waits + "    launch_dependents();\n" * triggers
    opening = signature[0].replace(" __restrict__", "") if replaces else _READ_ONLY.sub(r"\1 ", signature[0]) if waits else signature[0]
    made.text = kernel.text[: signature.start()] + opening + said + kernel.text[signature.end() :]
    made.heads = (*kernel.heads, *([HEADER] if waits or triggers else []))
    return made

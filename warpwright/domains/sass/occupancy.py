"""How many registers a kernel may have before fewer of its blocks are resident at once."""

from __future__ import annotations

import math

from warpwright.domains.sass.code.cubin import Cubin
from warpwright.domains.sass.harness import Launch

REGISTERS, UNIT = 65536, 256
"""Registers of a multiprocessor, and how many of them a warp is given at a time (sm_80 to sm_120)."""

WARPS, BLOCKS, MOST = 64, 32, 255
"""Resident warps and blocks of a multiprocessor at most, and registers of a thread."""

SHARED, SHARED_EACH = 228 * 1024, 1024
"""Bytes of shared memory of a multiprocessor of sm_90, and what each block takes of it besides its own."""

MULTIPROCESSORS = 132
"""Of an H200."""


def resident(launch: Launch, registers: int, static: int = 0) -> int:
    """Return the blocks that a multiprocessor holds at once, `static` bytes of shared memory being each block's by declaration."""
    warps = math.ceil(math.prod(launch.block) / 32)
    each = math.ceil(registers * 32 / UNIT) * UNIT * warps
    return min(REGISTERS // each, WARPS // warps, BLOCKS, SHARED // (launch.shared + static + SHARED_EACH))


def most_registers(cubin: Cubin, launch: Launch, multiprocessors: int = MULTIPROCESSORS) -> int:
    """Return the most registers with which as many blocks are resident as now, or as the launch has for each multiprocessor."""
    count, section = cubin.register_count(launch.kernel), cubin.section(f".nv.shared.{launch.kernel}")
    static = section.size if section is not None else 0
    wanted = min(resident(launch, count, static), math.ceil(math.prod(launch.grid) / multiprocessors))
    return max((more for more in range(count, MOST + 1) if resident(launch, more, static) >= wanted), default=count)

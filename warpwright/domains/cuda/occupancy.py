"""How many warps of a kernel a multiprocessor holds at once, from what the compiler says of it (CUDA C++ Programming Guide, compute capabilities)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

REGISTERS = 65536
WARP = 32
REGISTER_UNIT = 256
"""Registers are given to a warp in units of so many."""


@dataclass(frozen=True)
class Limits:
    """Of one multiprocessor."""

    warps: int
    blocks: int
    shared_bytes: int
    shared_unit: int = 128
    reserved_bytes: int = 1024
    """Of shared memory, that the system takes for each block."""


LIMITS: Mapping[str, Limits] = {
    "70": Limits(64, 32, 96 << 10, 256, 0),
    "75": Limits(32, 16, 64 << 10, 256, 0),
    "80": Limits(64, 32, 164 << 10),
    "86": Limits(48, 16, 100 << 10),
    "89": Limits(48, 24, 100 << 10),
    "90": Limits(64, 32, 228 << 10),
    "100": Limits(64, 32, 228 << 10),
    "103": Limits(64, 32, 228 << 10),
    "120": Limits(48, 24, 100 << 10),
}

ARCHITECTURES: tuple[tuple[str, str], ...] = (
    (r"\b(GH200|H200|H100|H800|H20)\b", "90a"),
    (r"\b(GB300|B300)\b", "103a"),
    (r"\b(GB200|B200|B100)\b", "100a"),
    (r"\bRTX 50\d\d|RTX PRO", "120a"),
    (r"\b(A100|A800|A30)\b", "80"),
    (r"\bRTX 30\d\d|\b(A10|A10G|A40|A2|A16)\b|RTX A\d", "86"),
    (r"\bRTX 40\d\d|\b(L4|L40|L40S)\b|Ada", "89"),
    (r"\b(T4|T1000)\b|RTX 20\d\d|GTX 16\d\d|Quadro RTX", "75"),
    (r"\bV100\b", "70"),
)
"""A GPU's name -> what nvcc calls its architecture."""

USUAL = "90a"
"""For a program that ran on no GPU, or on one whose name says nothing."""


def architecture(machine: str) -> str:
    """Return the architecture of a GPU's name; "" for one that is not known."""
    return next((arch for pattern, arch in ARCHITECTURES if re.search(pattern, machine)), "")


def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> float | None:
    """Return the share of a multiprocessor's warps that blocks of `threads` threads fill; None for an architecture that is not known."""
    limits = LIMITS.get(arch.rstrip("af"))
    if limits is None or not 0 < threads <= 1024:
        return None
    warps = -(-threads // WARP)
    of_a_warp = max(REGISTER_UNIT, -(-registers * WARP // REGISTER_UNIT) * REGISTER_UNIT)
    by_registers = REGISTERS // of_a_warp // 4 * 4 // warps
    taken = -(-(shared_bytes + limits.reserved_bytes) // limits.shared_unit) * limits.shared_unit if shared_bytes or limits.reserved_bytes else 0
    by_shared = limits.shared_bytes // taken if taken else limits.blocks
    blocks = min(limits.blocks, limits.warps // warps, by_registers, by_shared)
    return blocks * warps / limits.warps

"""The two sides of a roofline: what a task moves and computes, and the best rates of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Work:
    """What a task moves and computes, from shapes alone."""

    bytes_read: int
    """Input bytes that every correct program reads: a lower bound."""
    bytes_written: int
    """Output bytes that every correct program writes."""
    parameter_bytes: int = 0
    """Parameters and buffers that the original reads: in the position, not in the floor."""
    flops: Mapping[str, float] = field(default_factory=dict)
    """Flops of matrix products, convolutions and attention, by type of their operands ("float32", "bfloat16" ...)."""
    note: str = ""
    """Why the counts are zero, when they are."""

    @property
    def bytes(self) -> int:
        """Bytes of the floor."""
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True)
class Peaks:
    """The best rates ever measured on a device."""

    device: str
    memory: float
    """Bytes a second, read and written bytes both counted, far beyond the cache."""
    cache: float
    """Bytes a second within the last-level cache."""
    cache_bytes: int
    flops: Mapping[str, float]
    """Flops a second of matrix products, by type; "tf32" is float32 with TF32 allowed."""
    machine: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    when: str = ""
    """UTC, ISO 8601."""
    times: int = 1
    """How often they were measured."""

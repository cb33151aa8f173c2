"""One kernel launch: the noun that the pair generator, the suites, the wiring and the translators share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Dim3 = tuple[int, int, int]
"""x, y, z of a grid (in blocks) or of a block (in threads)."""


@dataclass(frozen=True)
class Launch:
    """One kernel launch. `args`: buffer names in the order of the kernel's parameters."""

    kernel: str
    grid: Dim3
    block: Dim3
    args: tuple[str, ...]
    shared: int = 0
    """Bytes of dynamic shared memory."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values, which `from_json` reads back."""
        return {"kernel": self.kernel, "grid": list(self.grid), "block": list(self.block), "shared": self.shared, "args": list(self.args)}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Launch:
        """Return the launch that `as_json` wrote."""
        return cls(row["kernel"], tuple(row["grid"]), tuple(row["block"]), tuple(row["args"]), row["shared"])

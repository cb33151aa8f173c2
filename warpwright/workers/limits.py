"""What a worker may use."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass

from warpwright.base import WARM_UP_SECONDS
from warpwright.errors import UsageError

ISOLATIONS = ("auto", "limits", "none")


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@dataclass(frozen=True)
class Limits:
    """What a worker may use. Times are for the parent's patience, not CPU time."""

    build_seconds: float = 300.0
    warm_up_seconds: float = WARM_UP_SECONDS
    """For a candidate's first calls. One whose text names a compiler has `build_seconds`, as long as no stretch of this length goes by without a sign
    that a compiler works: fresh pages of memory, its own or its children's. A hang has none, be it a sleep, a loop or a kernel without end."""
    call_seconds: float = 60.0
    memory_bytes: int = 0
    """0: seven tenths of the machine's."""
    processes: int = 0
    """Processes and threads together; 0: 256, or 16 a core if that is more."""
    log_bytes: int = 1 << 18
    """Of standard output and error; the middle of a longer log is dropped."""
    file_bytes: int = 8 << 30
    """Largest file that may be written."""
    disk_bytes: int = 16 << 30
    """Of its files together, wherever it may write, in memory too; looked at twice a second."""
    isolation: str = "auto"
    """`auto`: own user, rlimits and system call filter, as far as the machine permits; `limits`: rlimits only; `none`: only the kill."""
    reads: tuple[str, ...] = ()
    """Files that a worker has to read, beside Python, torch and this package: a task's own. Where another user cannot read one of them, a worker
    that becomes an own user keeps the right to read every file."""

    def filled(self) -> Limits:
        """Return these limits with the zeros replaced by this machine's values."""
        if self.isolation not in ISOLATIONS:
            raise UsageError(f"expected isolation {' or '.join(ISOLATIONS)}, saw {self.isolation!r}")
        memory = self.memory_bytes or _memory_bytes() * 7 // 10
        processes = self.processes or max(256, 16 * (os.cpu_count() or 1))
        return Limits(**{**asdict(self), "memory_bytes": memory, "processes": processes})

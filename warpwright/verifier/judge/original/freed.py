"""Memory that a judge on a CPU has freed stays with it for a while: the next tensor of some megabytes comes without thousands of page faults.

A third of the seconds of a judge of 2^20 elements are the kernel's, which clears pages that were given back a moment before. Candidates and baselines
keep the C library's own ways: what fresh memory costs is part of their time.
"""

from __future__ import annotations

import contextlib
import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's `mallopt`."""

KEPT_BYTES = 128 << 20
"""Of free memory at the heap's end; and blocks of half as much come from the heap, or of a quarter, the most that older glibc takes.

Where it took neither, blocks of 128 KiB would be given back for good: whoever sets one of the two has glibc adapt neither any more.
"""


def keep_freed_memory() -> None:
    """Have this process's C library keep KEPT_BYTES of what is freed, where it has `mallopt`."""
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        if library.mallopt(MMAP_THRESHOLD, KEPT_BYTES // 2) or library.mallopt(MMAP_THRESHOLD, KEPT_BYTES // 4):
            library.mallopt(TRIM_THRESHOLD, KEPT_BYTES)

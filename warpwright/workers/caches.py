"""The machine's last-level cache: how large it is, and how this process empties it of another's data."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

DEFAULT_BYTES = 32 << 20
FLUSH_LIMIT = 1 << 30
THREADS = 4


@cache
def cpu_bytes() -> int:
    """Return the size of the CPU's last-level cache."""
    return max(_sizes(), default=DEFAULT_BYTES)


def _sizes() -> Iterator[int]:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        yield int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


@cache
def _buffer() -> tuple[int, int, object]:
    size = min(2 * cpu_bytes(), FLUSH_LIMIT)
    kept = (ctypes.c_char * size)()
    return ctypes.addressof(kept), size, kept


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1), thread_name_prefix="flush")


_turn = [0]


def flush() -> None:
    """Change twice the last-level cache's size, from several cores: whatever else lay in the caches is gone."""
    address, size, _ = _buffer()
    pool, threads = _pool(), min(THREADS, os.cpu_count() or 1)
    _turn[0] = (_turn[0] + 1) % 256
    piece = size // threads
    list(pool.map(lambda at: ctypes.memset(address + at * piece, _turn[0], piece), range(threads)))

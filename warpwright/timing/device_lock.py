"""The lock of a device: many may build and verify on it at once, one alone may time.

Held through `flock`, so that the kernel gives it back when its holder is killed.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warpwright.errors import UsageError


class DeviceLock:
    """The lock of one device of this machine, shared with every process of this user that opens it. Not re-entrant."""

    def __init__(self, device: str, folder: str | os.PathLike[str] | None = None) -> None:
        """Open the lock of `device`, such as cpu or cuda:0, in `folder` (default: one for each user in the temporary folder)."""
        self._folder = Path(folder) if folder is not None else Path(tempfile.gettempdir()) / f"warpwright-locks-{os.getuid()}"
        self._name = physical_name(device)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._folder.stat().st_uid != os.getuid():
            raise UsageError(f"expected {self._folder} to belong to this user, saw that it does not", "remove it, or set TMPDIR")

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the device beside others: to build, to verify."""
        with self._held(fcntl.LOCK_SH):
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the device alone: to time."""
        with self._held(fcntl.LOCK_EX):
            yield

    @contextmanager
    def _held(self, kind: int) -> Iterator[None]:
        # Whoever wants the lock waits in the turnstile until he has it: those who come after an exclusive waiter queue behind
        # him instead of overtaking him for ever.
        with self._file("turnstile", fcntl.LOCK_EX) as turnstile, self._file("lock", kind):
            fcntl.flock(turnstile, fcntl.LOCK_UN)
            yield

    @contextmanager
    def _file(self, part: str, kind: int) -> Iterator[int]:
        handle = os.open(self._folder / f"{self._name}.{part}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, kind)
            yield handle
        finally:
            os.close(handle)


def physical_name(device: str) -> str:
    """Return the machine-wide name of a device: cuda:0 under CUDA_VISIBLE_DEVICES=3 is cuda-3."""
    kind, _, index = device.partition(":")
    if kind != "cuda":
        return kind
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    position = int(index or 0)
    return f"cuda-{visible[position] if position < len(visible) else position}"

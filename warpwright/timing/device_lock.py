"""The lock of a device: many may build and verify on it at once, one alone may time.

    FILE.wanted    all who want to time hold it together, each from his asking until he is done: it keeps those who build out
    FILE.lock      held together by those who build and verify, alone by the one who times
    FILE.door      held together by those who build and have waited for long, alone and for a moment by each who asks to time; in it stands until
                   when those who build are not asked to step aside

Whoever asks while another one times is next, before those who build: to have the device to himself again he would have to wait until all of these
have come to a stop. With nine tasks on an H200 such waits were longer than the timing. Two whose times
overlap would keep the device for ever, as two searches over schedules do: who has waited to build for PATIENCE seconds lets nobody else ask and comes
next, and for SHARE seconds nobody who builds is asked to step aside. Whoever else waits to build comes in with him, and patience counts from the end
of that share for all of them. A builder that is stopped (not killed) while he holds the door keeps all out who ask to time,
until he goes on.

Those who build look now and then (`device_yield`) whether somebody wants to time; they stop their workers, step aside, and go on when he is
done. Without that he would have to wait for the longest build of all, up to minutes of autotuning. Everything is held through `flock`, so
that the kernel gives it back when its holder is killed.
"""

from __future__ import annotations

import fcntl
import math
import os
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from warpwright.errors import UsageError

PATIENCE, SHARE = 30.0, 10.0
"""Seconds: of a device that is always wanted, those who time keep three quarters, however many build beside them. (With a share for each builder 41 %
were measured beside six.)"""

ENDS = struct.Struct("=d")
"""How the end of a share stands in FILE.door, by `time.monotonic()`."""

LOOK = 0.01
"""Seconds between two looks of who waits to build."""


@dataclass
class Shared:
    """The device held beside others."""

    wanted_file: int
    lock_file: int
    door_file: int
    patience: float = PATIENCE

    @property
    def wanted(self) -> bool:
        """Does somebody want to time? Who times shares the file, and who looks or takes the device has it alone for a moment."""
        if time.monotonic() < self._share_ends:
            return False
        if _at_once(self.wanted_file, fcntl.LOCK_EX):
            return False
        return _at_once(self.wanted_file, fcntl.LOCK_SH)

    def step_aside(self) -> None:
        """Let whoever wants to time have the device; return when it is held beside others again."""
        fcntl.flock(self.lock_file, fcntl.LOCK_UN)
        self.take()

    def take(self) -> None:
        """Wait until nobody times or wants to, or until those are done who did when patience ended; hold the device beside others."""
        began = time.monotonic()
        while not taken(self.wanted_file, fcntl.LOCK_EX):
            now, ends = time.monotonic(), self._share_ends
            if now < ends and taken(self.lock_file, fcntl.LOCK_SH):  # beside those who have a share just now
                return
            if now > max(began, ends) + self.patience:
                fcntl.flock(self.door_file, fcntl.LOCK_SH)  # from here on nobody asks who has not asked yet
                fcntl.flock(self.wanted_file, fcntl.LOCK_EX)
                if self._share_ends < time.monotonic():  # else another one was first
                    os.pwrite(self.door_file, ENDS.pack(time.monotonic() + SHARE), 0)
                break
            time.sleep(LOOK)
        fcntl.flock(self.lock_file, fcntl.LOCK_SH)
        fcntl.flock(self.wanted_file, fcntl.LOCK_UN)
        fcntl.flock(self.door_file, fcntl.LOCK_UN)

    @property
    def _share_ends(self) -> float:
        """Until when nobody who builds is asked to step aside; long ago where it never was so."""
        told = os.pread(self.door_file, ENDS.size, 0)
        ends = float(ENDS.unpack(told)[0]) if len(told) == ENDS.size else -math.inf
        return ends if ends <= time.monotonic() + SHARE else -math.inf  # else the machine has been started anew since


def taken(file: int, how: int) -> bool:
    """Hold a file this way if that can be had at once; return whether it could."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _at_once(file: int, how: int) -> bool:
    """Could a file be held this way just now? It is let go again."""
    could = taken(file, how)
    if could:
        fcntl.flock(file, fcntl.LOCK_UN)
    return could


class DeviceLock:
    """The lock of one device of this machine, shared with every process of this user that opens it. Not re-entrant."""

    def __init__(self, device: str, folder: str | os.PathLike[str] | None = None) -> None:
        """Open the lock of `device`, such as cpu or cuda:0, in `folder` (default: one for each user in the temporary folder)."""
        self._folder = Path(folder) if folder is not None else common_folder()
        self._name = physical_name(device)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._folder.stat().st_uid != os.getuid():
            raise UsageError(f"expected {self._folder} to belong to this user, saw that it does not", "remove it, or set TMPDIR")

    @contextmanager
    def shared(self) -> Iterator[Shared]:
        """Hold the device beside others: to build, to verify."""
        with ExitStack() as files:
            held = Shared(*(files.enter_context(self._file(part)) for part in ("wanted", "lock", "door")))
            held.take()
            yield held

    @contextmanager
    def in_turns(self) -> Iterator[Callable[[], None]]:
        """Hold the device beside others; what is yielded is to be called now and then, and lets whoever wants to time have it meanwhile."""
        with self.shared() as held:
            yield lambda: held.step_aside() if held.wanted else None

    @contextmanager
    def host(self) -> Iterator[None]:
        """Hold the device beside others if the host's cores are the device: for work of this process that no other device does."""
        if self._name != "cpu":
            yield
            return
        with self.shared():
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the device alone: to time."""
        with self._file("wanted") as wanted, self._file("lock") as lock:
            with self._file("door") as door:
                fcntl.flock(door, fcntl.LOCK_EX)
                fcntl.flock(wanted, fcntl.LOCK_SH)
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _file(self, part: str) -> Iterator[int]:
        handle = os.open(self._folder / f"{self._name}.{part}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield handle
        finally:
            os.close(handle)


def common_folder() -> Path:
    """Return the folder of the locks that all processes of this user share."""
    return Path(tempfile.gettempdir()) / f"warpwright-locks-{os.getuid()}"


def physical_name(device: str) -> str:
    """Return the machine-wide name of a device: cuda:0 under CUDA_VISIBLE_DEVICES=3 is cuda-3."""
    kind, _, index = device.partition(":")
    if kind != "cuda":
        return kind
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    position = int(index or 0)
    return f"cuda-{visible[position] if position < len(visible) else position}"

"""A command with a budget of wall time is a second process, which the first ends when the budget is over, whatever it is doing then.

    first process --fork--> the command
         |<-- shared memory: the budget, what is being done --|

The command plans to be done by itself, with its result written (`deadline.py`). Where others keep the cores, or a library keeps the interpreter for
seconds, no plan of its own holds: then this process, which has little loaded and sleeps, kills it and all that it started, and says so.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import shutil
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any

from warpwright.workers.procfs import descendants

VERBS = ("optimize",)
"""Those whose `--budget` is wall time to the written result."""

GRACE_SHARE = 0.01
"""Of the budget, left to a command that is about to be done by itself; what comes then took 0.1 s with the cores to itself, of the 10 % that a budget
may be over."""

LOOK_SECONDS = 0.05
"""How often it is looked whether the command knows its budget."""

LONGEST_WAIT = 3600.0

PRINT_SECONDS = 0.2
"""What a command whose files are written gets to print its result."""

KILL_SECONDS = 0.25
"""How long the processes that were killed are waited for: whoever reads what they print does so until they are gone."""

NOT_PASSED = 1
"""Exit code of `common`, which loads more than this process needs."""

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SERVER = b"warpwright.workers.zygote"

_SIZE, _HEAD = 8192, struct.Struct("<di")


class Bound:
    """What the command tells of itself, in memory that both processes share."""

    def __init__(self, began: float) -> None:
        self.began = began
        """When the first process began (`time.monotonic()`)."""
        self._page = mmap.mmap(-1, _SIZE)
        self._told: dict[str, Any] = {}

    def begin(self, task: str, seconds: float | None, as_json: bool, after: float = 0.0) -> None:
        """Tell that the run of a task begins, and of its budget; None: it has no seconds. `after`: seconds that what comes behind it may take."""
        self._told = {"task": task, "seconds": seconds, "json": as_json, "doing": "the start"}
        self._write()
        end = float("inf") if seconds is None else self.began + (1 + GRACE_SHARE) * seconds + after
        _HEAD.pack_into(self._page, 0, end, -1)

    def doing(self, what: str) -> None:
        """Tell what is being done."""
        self._told["doing"] = what[:200]
        self._write()

    def done(self, code: int) -> None:
        """Tell the exit code, once all files are written: what is left is to print what came of it, and to take this process apart."""
        _HEAD.pack_into(self._page, 0, _HEAD.unpack_from(self._page)[0], code)

    def _write(self) -> None:
        text = json.dumps(self._told).encode()[: _SIZE - _HEAD.size - 1]
        self._page[_HEAD.size : _HEAD.size + len(text) + 1] = text + b"\0"

    @property
    def end(self) -> float:
        """When the command is ended (`time.monotonic()`); 0: it has not told its budget yet."""
        return float(_HEAD.unpack_from(self._page)[0])

    @property
    def code(self) -> int | None:
        """The exit code of a command that has written all."""
        code = int(_HEAD.unpack_from(self._page)[1])
        return code if code >= 0 else None

    @property
    def told(self) -> dict[str, Any]:
        """What `begin` and `doing` were told."""
        try:
            told: dict[str, Any] = json.loads(self._page[_HEAD.size :].split(b"\0", 1)[0])
        except ValueError:  # it was being written
            told = {}
        return {"task": "", "seconds": 0.0, "json": False, "doing": "the start", **told}


def fork() -> Bound | None:
    """Return in the process that does the work; the first one waits for it and exits with its code. None: this system has no such processes."""
    from warpwright.deadline import process_start

    began = process_start()
    if not hasattr(signal, "sigtimedwait"):
        return None
    bound = Bound(began)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where whoever started this ignores it, a child's end would go unseen
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGCHLD})
    first, child = os.getpid(), os.fork()
    if child == 0:
        _end_with(first)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return bound
    _adopt_orphans()
    code = _watched(child, bound)
    sys.stdout.flush()
    if code < 0:  # of a signal: this process ends as the command did
        with contextlib.suppress(OSError):  # SIGKILL has no other way anyway
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.kill(first, -code)
    os._exit(code if code >= 0 else 128 - code)


def _end_with(first: int) -> None:
    """Have the kernel end this process with the first one, should that be killed."""
    _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != first:
        os._exit(NOT_PASSED)


def _adopt_orphans() -> None:
    """Become the parent of what the command leaves behind, so that it can be ended too."""
    _prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def _prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _watched(child: int, bound: Bound) -> int:
    """Wait for the command; return its exit code, or below 0 the signal that ended it."""
    while True:
        end = bound.end
        wait = LOOK_SECONDS if not end else min(max(end - time.monotonic(), LOOK_SECONDS), LONGEST_WAIT)
        info = signal.sigtimedwait({*FORWARDED, signal.SIGCHLD}, wait)
        if info is not None and info.si_signo != signal.SIGCHLD:
            if info.si_code <= 0:  # somebody sent it to this process; a terminal sends to both
                os.kill(child, info.si_signo)
            continue
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if end and time.monotonic() >= end + (PRINT_SECONDS if bound.code is not None else 0.0):
            return _stopped(bound)


def _stopped(bound: Bound) -> int:
    """End the command and all that it started; return the exit code."""
    code = bound.code
    if code is None:
        say(bound.told)
    end_all()
    return NOT_PASSED if code is None else code


def end_all() -> None:
    """Kill all that descends from this process, and remove what its fork server would have."""
    folders: set[str] = set()
    deadline = time.monotonic() + KILL_SECONDS
    while (living := descendants(os.getpid())) and time.monotonic() < deadline:
        for pid in living:
            with contextlib.suppress(OSError):
                folders |= _folders_of(pid)
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _folders_of(pid: int) -> set[str]:
    """Return the folders that a fork server was given to remove."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    return {os.fsdecode(word) for word in words[words.index(SERVER) + 2 :]} if SERVER in words else set()


def say(told: dict[str, Any]) -> None:
    """Print what became of the command: its line where JSON is asked for."""
    reason = f"the budget of {told['seconds']:g} s was spent at: {told['doing']}"
    hint = (
        "the result is missing, or may not be complete; what was measured until then is in the archive: the same command goes on from there, "
        "best with a longer --budget"
    )
    with contextlib.suppress(OSError):
        if sys.stderr.isatty():
            os.write(2, b"\r\x1b[K\x1b[?25h")  # the progress line, and the cursor that it hid
        os.write(2, f"warpwright optimize: {reason}\n  {hint}\n".encode())
        if told["json"]:
            os.write(1, (json.dumps(line(str(told["task"]), reason, str(told["doing"]))) + "\n").encode())


def line(task: str, reason: str, doing: str) -> dict[str, Any]:
    """Return the JSON object of docs/cli.md for a run of which nothing was written (`reports.report.line`, which loads more than this may)."""
    speedup = {"best": None, "eager": None, "interval": None, "eager_interval": None}
    return {
        "task": task, "status": "timeout", "check": "", "case": "", "reason": reason, "verdict": None, "speedup": speedup, "baselines": {},
        "not_counted": {}, "in_strides": [], "error": None, "error_original": None, "recipe": [], "artifact": None, "ours_ms": None, "regime": None,
        "regimes": {}, "shapes": {}, "device": None, "record": None, "candidates": {}, "rejected": [],
        "left_out": [f"what came after: {doing}"], "sandbox": None,
    }  # fmt: skip

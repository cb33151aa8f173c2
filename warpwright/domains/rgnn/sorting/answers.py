"""What the host waits for while a graph's index is made: a kernel tells it in memory of the host's own, before the rest of the index is done.

A copy from the device waits for all of the kernel, and its call alone takes a host as long as a small kernel. So the kernel writes to pinned memory,
which every device reads and writes under the host's addresses, and the host looks there; where nothing comes for a while (the device is busy with
what was launched before), it waits for a copy, as it does where a device's first answers are not what a copy says.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import time
import warnings

import torch

PATIENCE = 3e-4
"""Seconds that the host looks: Python's other threads wait meanwhile."""
COMPARED = 3
"""Answers of a device that are compared with a copy before they are believed."""


class Answer:
    """Where a thread is told, and its last ticket."""

    def __init__(self, compared: list[int]) -> None:
        self.memory = torch.zeros(4, dtype=torch.int32, pin_memory=torch.cuda.is_available())
        self.numbers = (ctypes.c_int * 4).from_address(self.memory.data_ptr())
        self.ticket, self.compared = 0, compared
        self.waiting = False
        """Was a question left without an answer?"""

    def ask(self) -> tuple[torch.Tensor, int]:
        """Return where an answer has to be written, and the ticket that says that it is there."""
        self.ticket, self.waiting = self.ticket % 0x7FFFFFFF + 1, True
        _ASKED.add(self)
        return self.memory, self.ticket

    def told(self) -> list[int] | None:
        """Return the answer; None where none came."""
        end = time.perf_counter() + PATIENCE
        while self.numbers[0] != self.ticket:
            if time.perf_counter() > end:
                return None
        return self.numbers[1:4]


class _Answers(threading.local):
    """Those of a thread, by device."""

    def __init__(self) -> None:
        self.of: dict[torch.device, Answer] = {}


_ANSWERS, _ASKED = _Answers(), set[Answer]()
"""Answers of threads; and those that a kernel may still write to: they stay where nobody waits for it, whatever becomes of the thread."""


@functools.cache
def _compared(device: torch.device) -> list[int]:
    """Return the count of a device's answers that have been compared with copies; -1 once one was wrong."""
    return [0]


def answer(device: torch.device) -> Answer | None:
    """Return where this thread is told by a device; None where it has to copy."""
    if device.type != "cuda" or _compared(device)[0] < 0:
        return None
    found = _ANSWERS.of.get(device)
    if found is None or found.waiting:
        found = _ANSWERS.of[device] = Answer(_compared(device))
    return found


def read(asked: Answer | None, zeroed: torch.Tensor) -> list[int]:
    """Return refused and the numbers of pairs, which are in `zeroed` behind its first number when the kernel is done."""
    told = None if asked is None else asked.told()
    if asked is None or told is None or asked.compared[0] < COMPARED:
        copied: list[int] = zeroed[1:4].tolist()
        told = copied if told is None or asked is None else _agreed(asked, told, copied)
    if asked is not None:
        asked.waiting = False
        _ASKED.discard(asked)
    return told


def _agreed(asked: Answer, told: list[int], copied: list[int]) -> list[int]:
    """Return what a copy says, and note whether the device said the same. A refused graph has no pairs, whatever was counted."""
    same = told[0] == copied[0] and (bool(told[0]) or told == copied)
    asked.compared[0] = asked.compared[0] + 1 if same and asked.compared[0] >= 0 else -1
    if not same:
        warnings.warn("indices of relational graphs wait for copies, which is slower: what a kernel tells the host is wrong here", stacklevel=4)
    return copied

"""A child process that calls one function of one library on arrays in memory that it shares with its parent, and does nothing else.

    python -m warpwright.translation.judge.runner LIBRARY REPEAT ENTRY ARENA OFFSETS USER

It reads requests of one line, `g COUNT`, calls the function COUNT times through REPEAT (warpwright.native.repeat's library), and replies `d`.
Inputs, outputs and guard zones are the parent's business, which maps the same pages: all that it believes of this process is that a call has ended.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys

from warpwright.workers import isolation

MEMORY_BYTES = 8 << 30
FILE_BYTES = 1 << 20
THREADS = max(256, 16 * (os.cpu_count() or 1))
"""Of a program that runs as a user of its own. Where it runs as the caller, the caller's other threads would count too."""


def main() -> None:
    """Serve until standard input ends."""
    library, repeat, entry, arena, offsets, user = sys.argv[1:7]
    isolation.die_with_parent()
    with open(arena, "r+b") as file:
        pages = mmap.mmap(file.fileno(), 0)
    base = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    starts = [base + int(offset) for offset in offsets.split(",")]
    pointers = (ctypes.c_void_p * len(starts))(*starts)
    call = ctypes.CDLL(repeat).repeat
    call.restype = None
    isolation.limit_resources(MEMORY_BYTES, FILE_BYTES, None if user == "same" else THREADS)
    if user != "same":
        isolation.change_user(int(user), read_all=False)
    isolation.lock()
    out = os.dup(1)
    os.dup2(2, 1)  # what the program prints is not a reply
    function = ctypes.CDLL(library)[entry]
    os.write(out, b"r")
    while request := sys.stdin.readline():
        call(function, pointers, len(starts), ctypes.c_long(int(request.split()[1])))
        os.write(out, b"d")


if __name__ == "__main__":
    main()

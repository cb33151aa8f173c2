"""A worker's end of the protocol: read a request, answer it, again."""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from warpwright.errors import WarpwrightError

LINE = 500
LIBRARIES = f"{os.sep}site-packages{os.sep}"
"""In the path of a frame that is of an installed package, torch above all."""

OWN = str(Path(__file__).absolute().parents[1]) + os.sep

Operation = Callable[..., dict[str, Any] | None]


def short_traceback(error: BaseException, lines: int = 16) -> str:
    """Return what was raised, then where: the user's frames if there are any, else those outside this package's workers, else all; cut to `lines`."""
    try:
        return _told(error, lines)
    except BaseException:  # an error whose own __str__ raises, or a candidate has replaced builtins
        return f"{type(error).__name__}, which cannot be printed"


def _told(error: BaseException, lines: int) -> str:
    raised = "".join(traceback.format_exception_only(error)).strip().splitlines()
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not frame.filename.startswith(OWN)]
    users = [frame for frame in outside if LIBRARIES not in frame.filename]
    where = "".join(traceback.format_list(users or outside or frames)).rstrip().splitlines()
    if isinstance(error, SyntaxError):
        raised = [*raised[-1:], *raised[:-1]]
    half = max(1, lines // 2)
    raised = raised if len(raised) <= half else [*raised[:half], "..."]
    where = where if len(where) <= lines - len(raised) else ["...", *where[len(raised) - lines :]]
    return "\n".join(line[:LINE] for line in [*raised, *where])


def serve_requests(
    request_fd: int, reply_fd: int, operations: Mapping[str, Operation], call: Callable[[bool], bytes] | None = None,
    patience: Callable[[], float] = lambda: 0.0, stops: bool = False, broken: Callable[[], str] = lambda: "",
) -> None:  # fmt: skip
    """Answer requests until the parent closes the pipe. `call` is the timed call: nine bytes in; nine, a length and what it returns out.
    A first byte of "h" in place of "g" asks it to hold what came out before it answers.

    `patience`: seconds for which to wait busily for the next request, asked after each answer. `stops`: the process stops itself, all its threads,
    when it has answered; the parent lets it run for its next turn. What an operation raises goes back as {"error", "kind", "device"}; only SystemExit
    inside an operation is an error like any other. `broken` says what the device is in error for, or "": that is the fault of an earlier call, whose
    kernels failed, and no operation on the device works any more.
    """
    read, write, dumps, loads, pack = os.read, os.write, json.dumps, json.loads, struct.pack  # kept: a candidate may replace the modules' attributes
    raise_signal, stop = signal.raise_signal, signal.SIGSTOP
    clock, poll = time.perf_counter, select.poll()
    poll.register(request_fd, select.POLLIN)
    ready = poll.poll
    failure = ""

    def send(data: bytes) -> None:
        while data:
            data = data[write(reply_fd, data) :]
        if stops:
            raise_signal(stop)

    while True:
        seconds = patience()
        if seconds:
            end = clock() + seconds
            while not ready(0) and clock() < end:
                pass
        data = read(request_fd, 256)
        if not data:
            return
        if data[:1] in (b"g", b"h") and call is not None:
            nonce = data[1:9]
            try:
                places = call(data[:1] == b"h")
            except BaseException as error:
                failure = short_traceback(error)
                send(b"e" + nonce)
            else:
                send(b"d" + nonce + pack("=I", len(places)) + places)
            continue
        pieces = [data]
        while not data.endswith(b"\n"):
            data = read(request_fd, 1 << 16)
            pieces.append(data)
        request = loads(b"".join(pieces))
        nonce_text, op = request.pop("nonce"), request.pop("op")
        if op == "error":
            reply: dict[str, Any] = {"error": failure}
        else:
            reply = _answer(operations, op, request, broken)
        send(dumps({**reply, "nonce": nonce_text}).encode() + b"\n")


def _answer(
    operations: Mapping[str, Operation], op: str, request: dict[str, Any], broken: Callable[[], str] = lambda: ""
) -> dict[str, Any]:
    try:
        return operations[op](**request) or {}
    except BaseException as error:
        text = short_traceback(error)
        message = error.message if isinstance(error, WarpwrightError) else text.splitlines()[0] if text else ""
        return {"error": text, "kind": type(error).__name__, "message": message, "device": broken()}

"""The child process that holds the context: loads cubins, compares them bit by bit with the original, times them in pairs. One JSON line each way.

It imports no package but the harness's, so that it starts in a fraction of a second; any error of the driver ends it, and with it the context.

    python child.py JOB [spare]      JOB is a JSON file: driver, device, original, helpers, harness, sets. A spare makes its context when nobody times
    {"do": "begin"}      first of all, and arrays are allocated: is the original the same each time, and how long does it take?
    {"do": "evaluate", "image": path, "seeds": [..], "rounds": [1, 1, 2, 10], "worth": 1.001, "fresh": [..]}     `fresh` before the last rounds
    {"do": "epochs", "image": path, "epochs": 12, "pairs": 25, "cold": 25}     both loaded anew for each epoch; a median for each
    {"do": "stress", "image": path, "seeds": [..], "launches": 1000, "seconds": 2.0}     as many launches for each seed, seeds as time allows
    {"do": "arrays", "folder": path, "seed": 1}      the original's arrays after a launch, a file each

What is asked is done by `session.py`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warpwright.targets.cubin.driver import DriverFailed
from warpwright.targets.cubin.session import Session
from warpwright.timing.device_lock import DeviceLock

SPARE_FREE = 0.25
"""A spare waits with its context, some 0.5 GB, only where so much of the device's memory is free."""


def prepared(job: dict[str, Any], spare: bool) -> Session:
    """Return a session that holds its context; raise MemoryError for a spare where memory is short."""
    if not spare:
        return Session(job)
    with DeviceLock(f"cuda:{job['device']}").shared():
        session = Session(job)
        free, total = session.driver.memory()
    if free < SPARE_FREE * total:
        raise MemoryError(f"expected {SPARE_FREE:.0%} of {total} bytes to be free, saw {free}")
    return session


def serve(job: dict[str, Any], say: Callable[[dict[str, Any]], None], spare: bool = False) -> int:
    """Answer requests until the input ends; return the exit code."""
    try:
        session = prepared(job, spare)
        say({"ok": True})
    except Exception as error:
        say({"ok": False, "error": f"{type(error).__name__}: {error}", "code": getattr(error, "code", -1)})
        return 2
    verbs: dict[str, Callable[..., dict[str, Any]]] = {
        "begin": session.begin, "evaluate": session.evaluate, "epochs": session.epochs, "stress": session.stress, "arrays": session.written,
    }  # fmt: skip
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = verbs[request.pop("do")](**request)
        except DriverFailed as error:  # the context is lost, and freeing it may hang
            say({"ok": False, "error": str(error), "code": error.code})
            os._exit(3)
        say({"ok": True, **answer})
    return 0


def main() -> int:
    """Run the job named on the command line; what a harness prints goes to the error stream."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    return serve(json.loads(Path(sys.argv[1]).read_text()), say, spare="spare" in sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())

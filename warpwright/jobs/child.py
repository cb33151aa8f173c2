"""What runs in a job's process: `python -m warpwright.jobs.child FD` reads the job from standard input and writes its result to FD.

Standard input stays open as long as the parent lives. Its end means that the parent was killed: then this process and all that it
started end too, so that no orphan goes on measuring.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
import traceback
from typing import Any


def main() -> None:
    """Run the job that standard input names."""
    target = int(sys.argv[1])
    os.set_inheritable(target, False)
    job = json.loads(sys.stdin.buffer.readline())  # the parent writes this one line, so nothing is left in the buffer
    threading.Thread(target=_end_with_parent, daemon=True).start()
    reply = _run(job["function"], job["payload"])
    with os.fdopen(target, "wb") as pipe:
        pipe.write(json.dumps(reply).encode())


def _run(name: str, payload: Any) -> dict[str, Any]:
    module, _, function = name.partition(":")
    try:
        result = getattr(importlib.import_module(module), function)(payload)
        json.dumps(result)
    except (Exception, KeyboardInterrupt):
        return {"error": f"the job {name} raised:\n{traceback.format_exc()}"}
    return {"result": result}


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()

"""Jobs for the tests of running jobs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def double(payload: dict[str, Any]) -> dict[str, Any]:
    print("noise on standard output")
    return {"twice": 2 * payload["value"], "pid": os.getpid(), "gpu": os.environ.get("CUDA_VISIBLE_DEVICES")}


def fail(payload: dict[str, Any]) -> None:
    """End in the way the payload names."""
    how = payload["how"]
    if how == "raise":
        raise ValueError("a mistake in the job")
    if how == "exit":
        print("last words", file=sys.stderr, flush=True)
        os._exit(3)
    if how == "kill":
        os.kill(os.getpid(), 9)
    if how == "hang":
        time.sleep(1000)


def unserialisable(payload: dict[str, Any]) -> object:
    return object()


def wait_for_interrupt(payload: dict[str, Any]) -> str:
    folder = Path(payload["folder"])
    (folder / f"started-{payload['n']}").touch()
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        (folder / f"wrote-{payload['n']}").touch()
    return "interrupted"


def with_child(payload: dict[str, Any]) -> None:
    """Start a child that outlives its parent unless the whole group is ended, and write both process ids."""
    child = subprocess.Popen(["sleep", "100"])
    Path(payload["file"]).write_text(f"{os.getpid()} {child.pid}")
    time.sleep(100)


def node(payload: dict[str, Any]) -> str:
    time.sleep(payload.get("seconds", 0.0))
    return os.environ.get("RAY_NODE_ID", "") or str(os.getppid())

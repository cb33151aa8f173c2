"""Builds a program without inputs of its constructor in a worker, as the verifier asks for it."""

from __future__ import annotations

from warpwright.workers.sandbox import Worker

NO_INPUTS = {"list": []}


def build(worker: Worker, text: str, timeout: float = 60.0) -> None:
    """Build `text`, whose class is ModelNew, under the name "candidate"."""
    files = [["optimized.py", text]]
    about = {"class_name": "ModelNew", "init": NO_INPUTS, "training": False, "stateful": False}
    reply = worker.request("build", timeout, entry="candidate", files=files, **about)
    assert "error" not in reply

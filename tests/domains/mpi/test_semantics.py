"""What a program can see of messages is the same with the shim as without it: statuses, counts, errors, requests that are null, inactive or freed."""

from __future__ import annotations

import subprocess
import uuid
from typing import Any

import pytest
from interpreters import HERE, environment, last_line, launcher

pytestmark = pytest.mark.compiler

FORCED = {"WARPWRIGHT_MPI_LEAST": "1", "WARPWRIGHT_MPI_BLOCK": str(1 << 62)}
LOOKED = {"WARPWRIGHT_MPI_PEER": "113", "WARPWRIGHT_MPI_JOB": uuid.uuid4().hex}
"""Every receive is looked at when it completes."""


def answers(python: str, **more: str) -> dict[str, Any]:
    """Return what semantics.py tells."""
    command = [*launcher(python, 2), python, str(HERE / "semantics.py")]
    return last_line(subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(**more)))


def test_what_a_program_sees_is_the_library_s(python: str) -> None:
    plain = answers(python, WARPWRIGHT_MPI="off")["answers"]
    assert len(plain) == 15
    for more in (FORCED, {**FORCED, **LOOKED}):
        told = answers(python, **more)
        assert {case: plain[case] for case, answer in told["answers"].items() if answer != plain[case]} == {}, told
        assert told["served"]["send"] > 50 and told["served"]["receive"] > 50 and told["served"]["persistent"] > 2, told

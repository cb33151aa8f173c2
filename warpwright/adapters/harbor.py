"""Harbor task folders, and the judge that writes their reward from outside the agent's reach.

    instruction.md  task.toml  environment/Dockerfile  tests/{test.sh, judge.py, Dockerfile, task files}  solution/solve.sh

The verifier runs in a container of its own, to which the agent's one file is handed (`environment_mode = "separate"`). A harness that knows no
separate verifiers runs tests/test.sh in the agent's container: then the agent has to be another user than root, as task.toml asks. In both cases
`judge` first makes the reward's folder root's alone, ends every process of the agent's, and writes the reward last.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from warpwright.adapters.judge import MOST_BYTES, Judge, Judged, Where, instruction
from warpwright.adapters.openevolve import suffix
from warpwright.errors import UsageError

ROUNDS, PAUSE = 200, 0.02
"""How often the agent's processes are looked for: each round stops all before it kills any, so that none has time to fork."""


@dataclass(frozen=True)
class Places:
    """Where a harness puts what."""

    artefact: str
    """The file that the agent writes."""
    logs: str = "/logs/verifier"
    """The folder of the reward."""
    tests: str = "/tests"
    agent: str = "agent"
    """The agent's user: a name, or a number."""


def judge(where: Where, places: Places) -> Judged:
    """Judge what the agent left, and write reward.json and details.json. Only a program that passed has a reward above 0."""
    ended = end_processes(places.agent)
    logs = _own_folder(Path(places.logs))
    text = _handed_in(Path(places.artefact))
    with tempfile.TemporaryDirectory(prefix="warpwright-judge-") as folder:
        judged = Judge(replace(where, server=folder)).score(text)
    ended += end_processes(places.agent)
    details = {"verdict": judged.verdict, "feedback": judged.feedback, "ended_processes": ended, "answer": dict(judged.answer)}
    _write(logs / "details.json", details)
    _write(logs / "reward.json", {"reward": judged.score})
    return judged


def _own_folder(path: Path) -> Path:
    """Return the reward's folder, new, and open to this user alone; what was there is another folder now, which nobody reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    os.chmod(fresh, 0o700)
    if path.is_mount():  # of the harness: it cannot be put aside, so what it holds is removed
        fresh.rmdir()
        os.chown(path, os.getuid(), os.getgid(), follow_symlinks=False)
        os.chmod(path, 0o700)
        for entry in path.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        return path
    if path.is_symlink() or path.exists():
        os.rename(path, Path(tempfile.mkdtemp(prefix=".old-", dir=path.parent)) / path.name)
    os.rename(fresh, path)
    return path


def end_processes(agent: str) -> int:
    """Kill every process of the agent's user and return how many there were; raise UsageError where some do not end."""
    user = user_of(agent)
    if user is None or user == os.getuid():
        return 0
    if os.getuid() != 0:
        seen = f"saw user {os.getuid()}: the agent's processes cannot be ended"
        raise UsageError(f"expected to run as root, {seen}", "set `user` in [verifier] to root")
    killed: set[int] = set()
    for _ in range(ROUNDS):
        running = _processes_of(user)
        if not running:
            return len(killed)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in running:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
        killed |= running
        time.sleep(PAUSE)
    raise UsageError(f"expected the agent's processes to end, saw {len(_processes_of(user))} that do not", "no reward is given")


def user_of(agent: str) -> int | None:
    """Return the number of a user; None for a name that this machine does not know, as in a container of the verifier's own."""
    if agent.isdigit():
        return int(agent)
    try:
        return pwd.getpwnam(agent).pw_uid
    except KeyError:
        return None


def _processes_of(user: int) -> set[int]:
    """Return the processes of a user that run; those that have ended and wait for their parents do not count."""
    pids = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            lines = (entry / "status").read_text().splitlines()
        except OSError:
            continue
        fields = {name: value for name, _, value in (line.partition(":") for line in lines)}
        if str(user) in fields["Uid"].split() and not fields["State"].strip().startswith(("Z", "X")):
            pids.add(int(entry.name))
    return pids


def _handed_in(path: Path) -> str:
    """Return the text of the agent's file; "" for one that is missing, a link, no file, too large, or no text."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return ""
    with os.fdopen(handle, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    return data.decode(errors="replace") if len(data) <= MOST_BYTES else ""


def _write(path: Path, value: Mapping[str, Any]) -> None:
    """Write a file that was not there, whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        json.dump(value, file)
        file.write("\n")
    os.chmod(name, 0o644)
    os.replace(name, path)


# --- the folder -------------------------------------------------------------------------------------------------------------------------

TASK = """schema_version = "1.1"
artifacts = ["{artefact}"]

[task]
name = "warpwright/{name}"
description = "Make {name} faster; every answer is verified against the reference, then timed."
keywords = ["performance", "kernels"]

[metadata]
device = "{device}"

[verifier]
timeout_sec = 900.0
environment_mode = "separate"
user = "root"

[agent]
timeout_sec = 3600.0
user = "{agent}"

[environment]
build_timeout_sec = 1800.0
cpus = 2
memory_mb = 8192
storage_mb = 20480
{gpus}"""

INSTRUCTION = """{task}
## What to hand in

Write the whole program to `{artefact}`; the one that is given lies there already. It is verified on inputs that you do not see, and timed
beside {baselines}. The reward is its speed-up over the fastest of them, and 0 if it does not pass.
"""

AGENT_IMAGE = """FROM {image}
RUN apt-get update && apt-get install -y --no-install-recommends {packages} && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home {agent}
COPY {file} {artefact}
RUN chown -R {agent} {folder}
WORKDIR {folder}
"""

JUDGE_IMAGE = """FROM {image}
ARG WARPWRIGHT=warpwright[transpile]
RUN apt-get update && apt-get install -y --no-install-recommends {packages} && rm -rf /var/lib/apt/lists/*
RUN python3 -m pip install --no-cache-dir --break-system-packages "$WARPWRIGHT"
COPY . {tests}
"""

IMAGES = {
    "cpu": ("python:3.11", "g++"),
    "cuda": ("nvidia/cuda:13.0.2-devel-ubuntu24.04", "python3 python3-pip g++"),
}
"""Target -> image, and the packages that are added to it."""

TEST = """#!/bin/bash
# Writes {logs}/reward.json: the reward of what the agent left at {artefact}.
cd / || exit 1
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/cuda/bin HOME=/root \\
    {environment}"{python}" "{tests}/judge.py"
"""

JUDGE = """# Judges what the agent left; runs as root, in isolation from whatever the agent put into Python's paths.
import sys

sys.dont_write_bytecode = True

from warpwright.adapters.harbor import Places, judge
from warpwright.adapters.judge import Where

if __name__ == "__main__":
    judge({where!r}, {places!r})
"""

SOLVE = """#!/bin/bash
# The program as given: it passes, with a speed-up of about 1.
cp "$(dirname "$0")/{file}" {artefact}
"""


def files(
    where: Where, described: Mapping[str, Any], places: Places | None = None, python: str = "python3", environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the task's folder. `places`, `python` and `environment` (of the judge) are as in the containers unless a harness has others."""
    program, name = described["program"], described["task"]["name"]
    file = f"program{suffix(program)}"
    at = places or Places(f"/app/{file}")
    image, packages = IMAGES[where.device.partition(":")[0]]
    names = {
        "agent": at.agent, "artefact": at.artefact, "baselines": ", ".join(described["baselines"]), "device": where.device, "file": file,
        "folder": str(Path(at.artefact).parent), "gpus": "gpus = 1\n" if where.device.startswith("cuda") else "", "image": image, "logs": at.logs,
        "name": name, "packages": packages, "python": python, "task": instruction(described), "tests": at.tests,
        "environment": "".join(f'{key}="{value}" ' for key, value in (environment or {}).items()),
    }  # fmt: skip
    task_files = _task_files(where, described)
    inside = replace(where, task=f"{at.tests}/task/{next(iter(task_files))}", server="", token="", session="")
    return {
        "instruction.md": INSTRUCTION.format(**names),
        "task.toml": TASK.format(**names),
        "environment/Dockerfile": AGENT_IMAGE.format(**names),
        f"environment/{file}": program["source"].strip() + "\n",
        "tests/test.sh": TEST.format(**names),
        "tests/Dockerfile": JUDGE_IMAGE.format(**names),
        "tests/judge.py": JUDGE.format(where=inside, places=at),
        **{f"tests/task/{path}": text for path, text in task_files.items()},
        "solution/solve.sh": SOLVE.format(**names),
        f"solution/{file}": program["source"].strip() + "\n",
    }


def _task_files(where: Where, described: Mapping[str, Any]) -> dict[str, str]:
    """Return the files that the task is read from, its own first."""
    path = Path(where.task)
    options = dict(map(tuple, described["task"]["options"]))
    others = [Path(value) for name, value in options.items() if name.endswith("_path") and isinstance(value, str)]
    beside = {f"{path.stem}_task.py" if other.suffix == ".py" else other.name: other.read_text() for other in others}
    return {path.name: path.read_text(), **beside}

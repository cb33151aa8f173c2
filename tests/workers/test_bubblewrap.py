"""Candidates inside bubblewrap: what they can reach, seen from inside; and what is said where it does not work."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from warpwright.reports import doctor
from warpwright.workers import bubblewrap
from warpwright.workers.limits import Limits
from warpwright.workers.sandbox import Worker

WHY = bubblewrap.missing()

inside = pytest.mark.skipif(bool(WHY), reason=f"no bubblewrap: {WHY}")

PROGRAM = """
import json
import os
import socket

import torch


def tried(call):
    try:
        return str(call())
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)


def connect(address):
    with socket.create_connection(address, timeout=2) as made:
        return "connected"


def write(path):
    with open(path, "w") as file:
        file.write("x")
    return "written"


SEEN = {
    "network": tried(lambda: connect(("127.0.0.1", @PORT))),
    "interfaces": tried(lambda: [name for _, name in socket.if_nameindex()]),
    "root": tried(lambda: write("/warpwright_was_here")),
    "home": tried(lambda: write("@HOME/was_here")),
    "tmp": tried(lambda: write("/tmp/warpwright_was_here")),
    "shm": tried(lambda: write("/dev/shm/warpwright_was_here")),
    "own": tried(lambda: write(os.path.join(os.environ["HOME"], "mine"))),
    "beside": tried(lambda: sorted(os.listdir("/dev/shm"))),
    "others": tried(lambda: [name for name in os.listdir("@FOLDERS") if name != os.path.basename(os.environ["HOME"])]),
    "devices": tried(lambda: sorted(os.listdir("/dev"))),
    "parent": tried(lambda: "KEY" in open("/proc/@PARENT/environ").read()),
    "environment": str([name for name, value in os.environ.items() if "sk-never" in value]),
    "task": tried(lambda: open("@HOME/task.py").read()),
}
write(os.path.join(os.environ["HOME"], "seen.json")) and open(os.path.join(os.environ["HOME"], "seen.json"), "w").write(json.dumps(SEEN))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What a candidate saw while it was imported."""
    home = tmp_path_factory.mktemp("home")
    home.chmod(0o777)
    for folder in (home, *home.parents):
        if str(folder).startswith("/tmp/") and folder.stat().st_uid == os.getuid():
            folder.chmod(folder.stat().st_mode | 0o055)
    (home / "task.py").write_text("readable")
    saved = {name: os.environ.get(name) for name in ("WARPWRIGHT_API_KEY",)}
    os.environ["WARPWRIGHT_API_KEY"] = "sk-never-to-be-seen"
    with socket.create_server(("127.0.0.1", 0)) as server, Worker("candidate", limits=Limits()) as worker:
        text = PROGRAM
        for name, value in (
            ("@PORT", server.getsockname()[1]), ("@HOME", home), ("@PARENT", os.getpid()), ("@FOLDERS", os.path.dirname(worker.folder)),
        ):  # fmt: skip
            text = text.replace(name, str(value))
        worker.isolation = tuple(worker.request("hello")["isolation"])
        worker.request("build", 60.0, entry="x", files=[["candidate.py", text]], class_name="ModelNew", init=None, training=True, stateful=False)
        seen = json.loads(Path(worker.folder, "seen.json").read_text())
        yield {**seen, "fence": worker.fence, "home_folder": home, "folder": worker.folder}
    for name, value in saved.items():
        os.environ.pop(name, None) if value is None else os.environ.update({name: value})


@inside
def test_there_is_no_network(looked: dict[str, Any]) -> None:
    assert looked["network"] not in ("connected", "") and looked["interfaces"] in ("['lo']", "[]"), looked


@inside
def test_nothing_can_be_written_but_what_is_its_own(looked: dict[str, Any]) -> None:
    assert "Read-only" in looked["home"] and not (looked["home_folder"] / "was_here").exists()
    assert "Read-only" in looked["root"] or "Permission" in looked["root"]
    assert looked["own"] == "written" and Path(looked["folder"], "mine").exists()
    for name in ("tmp", "shm"):
        assert looked[name] == "written", "its /tmp and /dev/shm are its own"
    assert not Path("/tmp/warpwright_was_here").exists() and not Path("/dev/shm/warpwright_was_here").exists()


@inside
def test_files_stay_readable_where_they_lie_and_other_workers_are_not_seen(looked: dict[str, Any]) -> None:
    assert looked["task"] == "readable"
    assert looked["others"] in ("[]", "Permission denied")
    assert set(json.loads(looked["beside"].replace("'", '"'))) <= {"warpwright_was_here", *(name for name in os.listdir("/dev/shm"))}


@inside
def test_there_are_only_the_plain_devices(looked: dict[str, Any]) -> None:
    assert set(json.loads(looked["devices"].replace("'", '"'))) <= {*bubblewrap.DEVICES, "fd", "stdin", "stdout", "stderr", "shm"}


@inside
def test_keys_are_neither_in_its_environment_nor_readable_in_its_parents(looked: dict[str, Any]) -> None:
    assert looked["environment"] == "[]" and looked["parent"] not in ("True", "False")


@inside
def test_its_level_says_bubblewrap(looked: dict[str, Any]) -> None:
    assert looked["fence"].endswith("bubblewrap") and "limits" in looked["fence"]


@inside
def test_no_process_is_left_of_it() -> None:
    with Worker("candidate") as worker:
        worker.request("hello")
        assert worker.children() == 0, "what set the namespaces up is gone"


def test_what_a_record_says_of_the_fences() -> None:
    assert bubblewrap.words(("bubblewrap", "limits", "early", "user", "filter"), "") == "own user, limits, early filter, filter, bubblewrap"
    assert bubblewrap.words(("user", "reads all", "bubblewrap"), "") == "own user, which may read every file, bubblewrap"
    assert bubblewrap.words(("limits",), "bwrap is not installed") == "limits; no bubblewrap: bwrap is not installed"
    assert bubblewrap.words(("bubblewrap: setns: Operation not permitted", "limits"), "") == "limits; no bubblewrap: setns: Operation not permitted"
    assert bubblewrap.words((), "the isolation asked for is 'none'").startswith("the kill alone; no bubblewrap")




@pytest.mark.parametrize(
    ("script", "why"),
    [
        (None, "'bwrap is not installed'"),
        ("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n", "No permissions to create new namespace"),
        ("#!/bin/sh\nexec sleep 60\n", "cannot be started"),
    ],
)
def test_a_machine_without_it_says_why(tmp_path: Path, script: str | None, why: str) -> None:
    if script is not None:
        tool = tmp_path / "bwrap"
        tool.write_text(script)
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}/nowhere" if script is None else f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    began = time.monotonic()
    text = "import warpwright.workers.bubblewrap as b; b.START_SECONDS = 1.0; print(repr(b.missing()))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, env=environment)
    assert why in done.stdout, done.stdout + done.stderr
    assert time.monotonic() - began < 30


def test_on_a_gpu_it_is_not_used_and_that_is_said() -> None:
    assert "GPU" in bubblewrap.missing("cuda:0")


def test_the_doctor_says_whether_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "missing", lambda device="cpu": "bwrap is not installed")
    found = doctor._bubblewrap()
    assert found.level == "WARN" and found.seen == "bwrap is not installed" and "install" in found.advice
    monkeypatch.setattr(bubblewrap, "missing", lambda device="cpu": "")
    assert doctor._bubblewrap().level == "OK"

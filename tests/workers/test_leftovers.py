"""Nothing that a program leaves outside its work folder outlives its worker, also if the program passes."""

from __future__ import annotations

import glob
import os
from pathlib import Path

import pytest
from built_worker import NO_INPUTS, build

from warpwright.workers import bubblewrap
from warpwright.workers.sandbox import Worker

LITTER = """
import ctypes, os, tempfile
import torch

libc = ctypes.CDLL(None)
FOLDERS = ("/tmp", "/dev/shm", "/var/tmp")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for folder in FOLDERS:
            os.makedirs(f"{folder}/MARK-folder/inner", exist_ok=True)
            with open(f"{folder}/MARK-file", "w") as file:
                file.write("left here")
        self.made = [libc.shmget(0, 4096, 0o1600), libc.semget(0, 1, 0o1600), libc.msgget(0, 0o1600)]

    def forward(self):
        return torch.zeros(2)
"""


def table(kind: str) -> list[str]:
    return Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root: without an own user its files cannot be told from others")
def test_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "missing", lambda device="cpu": "what it leaves is to be seen from outside")
    mark = f"litter-{os.getpid()}"
    before = {kind: len(table(kind)) for kind in ("shm", "sem", "msg")}
    with Worker("candidate", "cpu") as worker:
        build(worker, LITTER.replace("MARK", mark))
        worker.request("prepare", entry="candidate", inputs=NO_INPUTS)
        worker.go()
        assert glob.glob(f"/dev/shm/{mark}*")
        assert {kind: len(table(kind)) for kind in before} != before
    assert not [path for folder in ("/tmp", "/dev/shm", "/var/tmp") for path in glob.glob(f"{folder}/{mark}*")]
    assert {kind: len(table(kind)) for kind in before} == before

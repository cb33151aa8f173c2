"""Nothing that a program leaves outside its work folder outlives its worker, also if the program passes."""

from __future__ import annotations

import glob
import os
from pathlib import Path

import pytest
from built_worker import NO_INPUTS, build

from warpwright.workers import bubblewrap, leftovers
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


def test_a_tree_deeper_than_a_path_can_name_is_removed(tmp_path: Path) -> None:
    """shutil.rmtree ends at a thousand levels, and at folders that may not be read."""
    start, top = os.getcwd(), tmp_path / "tree"
    top.mkdir()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("not of the tree")
    (top / "link").symlink_to(tmp_path / "kept")
    try:
        os.chdir(top)
        for _ in range(1500):
            os.mkdir("a" * 100)
            os.chdir("a" * 100)
        Path("file").write_text("deep down")
    finally:
        os.chdir(start)
    os.chmod(top / ("a" * 100), 0)
    leftovers.remove_tree(str(top))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]
    assert (tmp_path / "kept" / "file").exists()


def test_a_tree_deeper_than_a_path_can_name_is_over_any_quota(tmp_path: Path) -> None:
    start = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(50):
            os.mkdir("a" * 100)
            os.chdir("a" * 100)
    finally:
        os.chdir(start)
    assert leftovers.held_bytes([str(tmp_path)], None, []) > 1 << 60
    leftovers.remove_tree(str(tmp_path))


@pytest.mark.parametrize("below", ["", "inner"])
def test_a_link_that_takes_a_folders_place_leaves_what_it_points_to_alone(below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put there when the folder has been looked at and before its mode is changed."""
    own, tree = tmp_path / "own", tmp_path / "tree"
    own.mkdir(mode=0o500)
    swapped = tree / below / "swapped"
    swapped.mkdir(parents=True)
    opened = leftovers._permitted

    def late(name: str, top: int) -> int:
        if name == "swapped":
            os.rmdir(name, dir_fd=top)
            os.symlink(own, name, dir_fd=top)
        return opened(name, top)

    monkeypatch.setattr(leftovers, "_permitted", late)
    leftovers.remove_tree(str(tree))
    assert own.stat().st_mode & 0o777 == 0o500


def test_folders_that_permit_nothing_are_removed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    inner = tree / "one" / "two"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    inner.chmod(0)
    (tree / "one").chmod(0)
    leftovers.remove_tree(str(tree))
    assert not tree.exists()


def test_folders_that_permit_nothing_are_removed_without_open_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of root, who may open any: here none that permits nothing can be opened."""
    opened = leftovers._opened

    def refused(name: str, top: int | None = None) -> int:
        if not os.stat(name, dir_fd=top).st_mode & 0o777:
            raise PermissionError(name)
        return opened(name, top)

    inner = tmp_path / "tree" / "inner"
    inner.mkdir(parents=True)
    inner.chmod(0)
    monkeypatch.setattr(leftovers, "_opened", refused)
    monkeypatch.delattr(os, "O_PATH", raising=False)
    try:
        os.chmod("tree", 0o700, dir_fd=opened(str(tmp_path)), follow_symlinks=False)
    except NotImplementedError:
        pytest.skip("modes cannot be changed here without following links")
    leftovers.remove_tree(str(tmp_path / "tree"))
    assert not (tmp_path / "tree").exists()

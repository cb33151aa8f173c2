"""Packs: what goes in comes out byte by byte, broken ones are refused, and protect, recover and verify read and write them."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from warpwright import cli
from warpwright.domains.unlearnable.data import packs
from warpwright.domains.unlearnable.data.labelled import load_labelled
from warpwright.domains.unlearnable.data.packing import pack_data_set
from warpwright.domains.unlearnable.data.packs import Pack, Packed
from warpwright.domains.unlearnable.data.sources import open_source
from warpwright.domains.unlearnable.protect import Options, protect_data_set
from warpwright.errors import UsageError

KEY = bytes(range(32))


def folder_set(root: Path, each: int = 5, side: int = 16, ending: str = "jpg") -> Path:
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (root / name / "more").mkdir(parents=True)
        for i in range(each):
            below = root / name / ("more" if i % 2 else "")
            Image.fromarray(rng.integers(0, 256, (side, side, 3), dtype=np.uint8)).save(below / f"{i}.{ending}")
    return root


@settings(max_examples=40, deadline=None)
@given(
    images=st.lists(st.tuples(st.binary(max_size=60), st.integers(0, 2)), max_size=12),
    classes=st.lists(st.text(max_size=6), min_size=3, max_size=3),
)
def test_what_goes_in_comes_out(tmp_path_factory: pytest.TempPathFactory, images: list[tuple[bytes, int]], classes: list[str]) -> None:
    path = tmp_path_factory.mktemp("packs") / "set.pack"
    given_images = [Packed(f"ü/{i}", label, data) for i, (data, label) in enumerate(images)]
    assert packs.write(path, classes, given_images) == len(images)
    pack = Pack(path)
    assert [Packed(name, int(label), pack.data(i)) for i, (name, label) in enumerate(zip(pack.names, pack.labels, strict=True))] == given_images
    assert pack.classes == tuple(classes) and len(pack) == len(images) and pack.pixels is None


def test_a_pack_is_its_folder(tmp_path: Path) -> None:
    root = folder_set(tmp_path / "in")
    done = pack_data_set(open_source(root), tmp_path / "set.pack")
    pixels = pack_data_set(open_source(tmp_path / "set.pack"), tmp_path / "pixels.pack", pixels=True)
    assert done.images == pixels.images == 10 and not done.refused
    folder, packed, bare = (load_labelled(path) for path in (root, tmp_path / "set.pack", tmp_path / "pixels.pack"))
    assert folder.names == packed.names == bare.names and folder.classes == packed.classes == ("cat", "dog")
    assert folder.names[:3] == ("cat/0", "cat/2", "cat/4")
    for one in (packed, bare):
        assert (one.at_side(32) == folder.at_side(32)).all() and (one.labels == folder.labels).all()
    assert Pack(tmp_path / "set.pack").data(0) == (root / "cat" / "0.jpg").read_bytes()
    assert Pack(tmp_path / "pixels.pack").pixels.shape == (10, 3, 16, 16)  # type: ignore[union-attr]


def test_unreadable_images_are_named_and_left_out(tmp_path: Path) -> None:
    root = folder_set(tmp_path / "in")
    (root / "cat" / "empty.jpg").write_bytes(b"")
    (root / "dog" / "gone.jpg").symlink_to(tmp_path / "nowhere")
    done = pack_data_set(open_source(root), tmp_path / "set.pack")
    assert done.images == 10 and len(done.refused) == 2 and "empty" in done.refused[0] and "gone" in done.refused[1]
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(root / "dog" / "small.png")
    with pytest.raises(UsageError, match="pack them as they are"):
        pack_data_set(open_source(root), tmp_path / "pixels.pack", pixels=True)
    assert {path.name for path in tmp_path.iterdir()} == {"in", "set.pack"}


def _cut(data: bytes) -> bytes:
    return data[:-7]


def _elsewhere(data: bytes) -> bytes:
    return data[:8] + struct.pack("<Q", 1 << 40) + data[16:]


def _relabelled(data: bytes) -> bytes:
    return data.replace(b'"classes": ["cat", "dog"]', b'"classes": ["cat"]       ')


@pytest.mark.parametrize("spoil", [_cut, _elsewhere, _relabelled, lambda data: b"PK" + data, lambda data: data[:12], lambda data: b""])
def test_a_broken_pack_is_one_error(tmp_path: Path, spoil: object) -> None:
    path = tmp_path / "set.pack"
    pack_data_set(open_source(folder_set(tmp_path / "in")), path)
    path.write_bytes(spoil(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(UsageError):
        open_source(path)


def test_a_pack_never_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "set.pack").write_text("mine")
    with pytest.raises(UsageError, match="new file"):
        packs.write(tmp_path / "set.pack", ["a"], [])
    for wrong in (Packed("two\nlines", 0, b"x"), Packed("one", 1, b"x")):
        with pytest.raises(UsageError, match="one line"):
            packs.write(tmp_path / "other.pack", ["a"], [wrong])
    with pytest.raises(UsageError, match="differ"):
        packs.write(tmp_path / "other.pack", ["a"], [Packed("same", 0, b"x")] * 2)
    assert [path.name for path in tmp_path.iterdir()] == ["set.pack"]


@pytest.mark.parametrize("pixels", [False, True])
def test_protect_and_recover_give_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pixels: bool) -> None:
    monkeypatch.chdir(tmp_path)
    folder_set(tmp_path / "in", side=24)
    Path("my.key").write_text(f"warpwright-key-1 {KEY.hex()}\n")
    assert cli.main(["pack", "in", "in.pack", *(["--pixels"] if pixels else [])]) == cli.DONE
    assert cli.main(["protect", "in.pack", "out", "--key", "my.key", "--preset", "recoverable"]) == cli.DONE
    assert [path.name for path in Path("out").iterdir()] == [packs.NAME]
    assert cli.main(["protect", "in", "files", "--key", "my.key", "--preset", "recoverable"]) == cli.DONE
    clean, protected, files = (load_labelled(Path(name)) for name in ("in.pack", "out", "files"))
    assert clean.names == protected.names == files.names and (protected.at_side(32) == files.at_side(32)).all()
    assert not (protected.at_side(32) == clean.at_side(32)).all()
    assert cli.main(["recover", "out", "back", "--key", "my.key"]) == cli.DONE
    back = load_labelled(Path("back"))
    assert back.names == clean.names and np.abs(back.at_side(32).astype(int) - clean.at_side(32)).mean() < 3


def test_the_verb_says_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    folder_set(tmp_path / "in")
    assert cli.main(["pack", "in", "set.pack", "--json"]) == cli.DONE
    done = json.loads(capfd.readouterr().out)
    assert (done["images"], done["classes"], done["failed"], done["bytes"]) == (10, 2, [], Path("set.pack").stat().st_size)
    assert cli.main(["pack", "in", "set.zip"]) == cli.WRONG_USE
    assert "set.pack" in capfd.readouterr().err


_KILLED = """
import os, signal, sys
from pathlib import Path
from warpwright.domains.unlearnable.data.sinks import PackSink
from warpwright.domains.unlearnable.data.sources import open_source
from warpwright.domains.unlearnable.protect import Options, protect_data_set
write, left = PackSink.write, [4]
def cut(self, *given):
    left[0] -= 1
    if not left[0]:
        os.write(self.log.fileno(), b'{"index": 9, "na')
        os.kill(os.getpid(), signal.SIGKILL)
    return write(self, *given)
PackSink.write = cut
protect_data_set(open_source(Path(sys.argv[1])), Path(sys.argv[2]), bytes(range(32)), Options())
"""


def test_a_killed_run_gives_the_same_pack(tmp_path: Path) -> None:
    pack_data_set(open_source(folder_set(tmp_path / "in")), tmp_path / "in.pack")
    source = open_source(tmp_path / "in.pack")
    protect_data_set(source, tmp_path / "whole", KEY, Options())
    killed = subprocess.run([sys.executable, "-c", _KILLED, tmp_path / "in.pack", tmp_path / "cut"], timeout=100, env=dict(os.environ))
    assert killed.returncode == -signal.SIGKILL
    summary = protect_data_set(source, tmp_path / "cut", KEY, Options(resume=True))
    assert (summary.present, summary.written) == (3, 7)
    assert (tmp_path / "cut" / packs.NAME).read_bytes() == (tmp_path / "whole" / packs.NAME).read_bytes()
    assert [path.name for path in (tmp_path / "cut").iterdir()] == [packs.NAME]

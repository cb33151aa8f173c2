"""Fat binaries: read and written, compressed or not, byte for byte as before where nothing is changed; the commands take them as they take cubins."""

from __future__ import annotations

import ctypes.util
import json
from pathlib import Path
from random import Random

import pytest
from sass_cubins import FOLDER, cubin

from warpwright import cli
from warpwright.domains.sass.code import disassembly
from warpwright.domains.sass.code.cubin import Cubin
from warpwright.domains.sass.code.fatbin import FatBinary, cubin_of, with_cubin
from warpwright.errors import UsageError

PLAIN = (FOLDER / "saxpy.fatbin").read_bytes()
COMPRESSED = {name: FOLDER / f"saxpy_{name}.fatbin" for name in ("zstd", "lz4")}


def changed(inside: Cubin) -> Cubin:
    words = list(inside.words("saxpy"))
    words[0] ^= 1 << 105
    return inside.with_words("saxpy", words)


def test_a_fat_binary_holds_a_cubin_for_each_architecture() -> None:
    fat = FatBinary(PLAIN)
    assert fat.archs == (80, 90)
    inside = fat.cubin(90)
    assert inside.kernels == ("saxpy",) and inside.arch == 90
    assert fat.with_cubin(inside).data == fat.data
    other = fat.with_cubin(changed(inside))
    assert other.cubin(80).data == fat.cubin(80).data and other.cubin(90).data == changed(inside).data
    with pytest.raises(UsageError, match="sm_86"):
        fat.cubin(86)
    with pytest.raises(UsageError, match="saw sm_80, sm_90; name one"):
        fat.cubin()


@pytest.mark.parametrize("library", COMPRESSED)
def test_a_compressed_one_is_read_and_written_uncompressed(library: str) -> None:
    if ctypes.util.find_library(library) is None:
        pytest.skip(f"needs lib{library}")
    packed = FatBinary(COMPRESSED[library].read_bytes())
    assert packed.archs == (80, 90) and any(entry.whole for entry in packed.entries)
    inside = packed.cubin(90)
    assert inside.words("saxpy") == FatBinary(PLAIN).cubin(90).words("saxpy")
    other = packed.with_cubin(changed(inside))
    assert other.cubin(90).data == changed(inside).data and other.cubin(80).data == packed.cubin(80).data
    assert other.archs == packed.archs and len(other.data) > len(packed.data)


def test_what_is_cut_off_or_damaged_is_refused() -> None:
    for data in (PLAIN, *(path.read_bytes() for path in COMPRESSED.values())):
        for length in (*range(4, 200), *range(200, len(data), 61)):
            with pytest.raises(UsageError):
                FatBinary(data[:length]).cubin(90)
        random = Random(3)
        for _ in range(300):
            broken = bytearray(data)
            for _ in range(random.choice((1, 4, 16))):
                broken[random.choice((random.randrange(96), random.randrange(len(data))))] = random.randrange(256)
            try:
                fat = FatBinary(bytes(broken))
                fat.with_cubin(fat.cubin(90))
            except UsageError:
                continue


def test_a_cubin_is_itself() -> None:
    one = cubin("saxpy_90")
    assert cubin_of(one.data).data == cubin_of(one.data, 90).data == with_cubin(one.data, one) == one.data
    with pytest.raises(UsageError, match="sm_80, saw a cubin for sm_90"):
        cubin_of(one.data, 80)


def test_the_commands_take_one_and_give_one_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("saxpy.fatbin").write_bytes(PLAIN)
    disassembly.keep(FatBinary(PLAIN).cubin(90).data, disassembly.disassembly(cubin("saxpy_90")))
    search = ["optimize", "saxpy.fatbin", "--target", "cubin:sim", "--budget", "8 proposals", "--json"]
    assert cli.main(search) == cli.WRONG_USE
    assert "arch=90" in json.loads(capfd.readouterr().out.splitlines()[-1])["hint"]
    assert cli.main([*search, "--option", "arch=90"]) == cli.DONE
    line = json.loads(capfd.readouterr().out.splitlines()[-1])
    folder = Path("warpwright-out/saxpy")
    assert line["artifact"] == str(folder / "optimized.fatbin")
    assert (folder / "original.fatbin").read_bytes() == PLAIN
    assert FatBinary((folder / "optimized.fatbin").read_bytes()).cubin(90).data == (folder / "optimized.cubin").read_bytes()
    applied = ["sass", "apply", "saxpy.fatbin", "--arch", "90", "-o", "again.fatbin"]
    assert cli.main(applied) == cli.DONE and Path("again.fatbin").read_bytes() == PLAIN
    assert cli.main([*applied, "--schedule", str(folder / "schedule.json")]) == cli.DONE
    assert Path("again.fatbin").read_bytes() == (folder / "optimized.fatbin").read_bytes()
    capfd.readouterr()
    assert cli.main(["sass", "show", "saxpy.fatbin", "--arch", "90"]) == cli.DONE
    assert capfd.readouterr().out.startswith("saxpy: sm_90")
    assert cli.main(["sass", "show", "saxpy.fatbin"]) == cli.WRONG_USE
    assert "--arch 90" in capfd.readouterr().err

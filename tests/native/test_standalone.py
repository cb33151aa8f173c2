"""The loader in generated files: it needs nothing of warpwright, builds once, and falls back where it cannot build."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from warpwright.native import standalone

TEXT = standalone.loader('extern "C" void put(float* out, int value) { out[0] = value; }\n', {"put": 1})


def kernels() -> Any:
    names: dict[str, Any] = {}
    exec(compile(TEXT, "generated", "exec"), names)
    return names["KERNELS"]


def test_the_text_imports_no_warpwright() -> None:
    assert not re.search(r"^\s*(from|import) warpwright", TEXT, re.M)


@pytest.mark.compiler
def test_a_library_is_built_once_and_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path))
    out = ctypes.c_float()
    kernels().put(ctypes.addressof(out), 7)
    assert out.value == 7.0
    (library,) = tmp_path.iterdir()
    stamp = library.stat().st_mtime_ns
    assert kernels() is not None and [(path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir()] == [(library.name, stamp)]


@pytest.mark.compiler
def test_a_library_that_another_user_may_have_written_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path / "shared"))
    monkeypatch.setenv("HOME", str(tmp_path))
    kernels()
    (library,) = (tmp_path / "shared").iterdir()
    library.write_bytes(b"no library")  # that this one is not loaded is seen by what is
    library.chmod(0o666)
    assert kernels() is not None and [path.name for path in (tmp_path / ".cache" / "warpwright").iterdir()] == [library.name]


def test_without_a_compiler_there_are_no_kernels_and_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.warns(UserWarning, match="no C\\+\\+ compiler"):
        assert kernels() is None


@pytest.mark.compiler
def test_a_refused_source_is_a_warning_with_the_compilers_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path))
    names: dict[str, Any] = {}
    with pytest.warns(UserWarning, match="no_such_type"):
        exec(compile(standalone.loader("no_such_type x;\n", {}), "generated", "exec"), names)
    assert names["KERNELS"] is None and list(tmp_path.iterdir()) == []


@pytest.mark.compiler
def test_a_generated_file_runs_where_warpwright_is_not(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TEXT + "import sys\nassert KERNELS is not None and 'warpwright' not in sys.modules\n")
    subprocess.run([sys.executable, "-I", "-S", "program.py"], cwd=tmp_path, check=True, timeout=120)

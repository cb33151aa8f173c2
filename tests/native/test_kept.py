"""What another user may have written is not loaded, by no generated file: kernels by nvcc, and templates' machine code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from warpwright.domains.cuda.kernels_text import kernels_text
from warpwright.native import kept
from warpwright.templates import standalone

COMPILER = """#!/bin/sh
case "$1" in --version) echo 1; exit 0;; esac
while [ "$1" != -o ]; do shift; done
echo "int ww_last_error(void) { return 0; } void entry(void* x) {}" | cc -x c -shared -fPIC -o "$2" -
"""
"""Stands in for nvcc."""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The places of a user: WARPWRIGHT_CACHE, below the home, below the temporary folder."""
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path / "shared"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return kept._folders()


@pytest.mark.compiler
def test_a_library_of_anybody_is_no_kernel(folders: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvcc = tmp_path / "bin/nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text(COMPILER)
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{nvcc.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    program: dict[str, Any] = {"torch": torch, "_ctypes": __import__("ctypes"), "_functools": __import__("functools")}
    exec(kernels_text('extern "C" void entry(float* x) {}', {"entry": "P"}, (), "entry.cu"), program)
    build = program["_built_by_nvcc"]
    assert build(None)._name.startswith(str(folders[0]))
    [library] = folders[0].iterdir()
    library.write_bytes(b"no library")  # that this one is not loaded is seen by what is
    library.chmod(0o666)
    assert build(None)._name.startswith(str(folders[1]))
    for folder in folders:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
    with pytest.raises(RuntimeError, match=r"another user may have written .* set WARPWRIGHT_CACHE"):
        build(None)


def test_templates_are_built_where_nobody_else_writes(folders: list[Path]) -> None:
    program: dict[str, Any] = {}
    exec(standalone.int8(), program)
    chosen = program["_int8"].cache_folder.__wrapped__
    assert chosen() == folders[0]
    folders[0].chmod(0o777)
    assert chosen() == folders[1]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
    with pytest.raises(Exception, match="WARPWRIGHT_CACHE"):
        chosen()

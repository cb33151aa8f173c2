"""Machine code of the mpi kernels that another user may have written is not loaded."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from warpwright import native
from warpwright.domains.mpi import core

SOURCE = """
extern "C" int is_ours(const char* folder, const char* path) { return warpwright::mpi::gpu::ours(folder, path); }
"""


@pytest.mark.compiler
def test_kept_machine_code_is_ours_or_compiled_anew(tmp_path: Path) -> None:
    flags = [flag for flag in native.FLAGS if flag != "-O3"]
    is_ours = ctypes.CDLL(str(native.build(core.text("compiler.hpp") + SOURCE, flags=flags))).is_ours
    code = tmp_path / "mpi_1_90.cubin"

    def judged() -> bool:
        return bool(is_ours(bytes(tmp_path), bytes(code)))

    assert not judged()  # there is none
    code.write_bytes(b"code")
    assert judged()
    code.chmod(0o666)
    assert not judged()
    code.chmod(0o644)
    tmp_path.chmod(0o777)
    assert not judged()
    tmp_path.chmod(0o1777)  # others add files there, and change none of ours
    assert judged()

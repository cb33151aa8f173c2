"""`warpwright transpile` of the sources of a program as they are shipped: what it takes, and what it never writes over."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright import cli

pytest.importorskip("clang", reason="needs the extra transpile")

KERNEL = '#include "kernel.h"\n__global__ void twice(int* x) { x[threadIdx.x] *= 2; }\nvoid run(int* x) { twice<<<1, 4>>>(x); }\n'
HOST = '#include "kernel.h"\nint of_host(int v) { return 2 * v; }\n'


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, the current one, with a kernel and what the host does of the same name, whose header alone names CUDA."""
    (tmp_path / "kernel.h").write_text('#pragma once\n#include "cuda_runtime.h"\nvoid run(int* x);\nint of_host(int v);\n')
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "kernel.cpp").write_text(HOST)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_host_source_whose_header_includes_cuda_is_taken(shipped: Path) -> None:
    assert cli.main(["transpile", "kernel.cpp", "-o", "host.cpp", "--no-check"]) == cli.DONE
    assert "int of_host(int v) { return 2 * v; }" in (shipped / "host.cpp").read_text()


def test_a_source_without_any_cuda_is_refused(shipped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shipped / "kernel.h").write_text("#pragma once\nint of_host(int v);\n")
    assert cli.main(["transpile", "kernel.cpp", "-o", "host.cpp", "--no-check"]) != cli.DONE
    assert "expected CUDA in kernel.cpp" in capsys.readouterr().err and not (shipped / "host.cpp").exists()


@pytest.mark.parametrize("words", [["kernel.cu"], ["kernel.cpp"], ["kernel.cpp", "-o", "./kernel.cpp"]], ids=["beside", "itself", "asked for"])
def test_no_source_is_written_over(shipped: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert cli.main(["transpile", *words, "--no-check"]) != cli.DONE
    assert "with -o" in capsys.readouterr().err and (shipped / "kernel.cpp").read_text() == HOST


def test_an_earlier_output_is_written_again(shipped: Path) -> None:
    (shipped / "kernel.cpp").unlink()
    for _ in range(2):
        assert cli.main(["transpile", "kernel.cu", "--no-check"]) == cli.DONE
    assert "twice_launch" in (shipped / "kernel.cpp").read_text()

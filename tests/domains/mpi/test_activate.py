"""Activation: before mpi4py or not at all; off means off; only known libraries have a shim."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from interpreters import ROOT, environment

from warpwright import cli
from warpwright.domains.mpi import activate
from warpwright.errors import UsageError

pytestmark = pytest.mark.compiler

PACK = """
import numpy as np, sys
import warpwright.mpi
from mpi4py import MPI
column = MPI.DOUBLE.Create_vector(64, 1, 4).Commit()
packed = bytearray(512)
column.Pack(np.arange(256.0), packed, 0, MPI.COMM_SELF)
assert np.array_equal(np.frombuffer(packed), np.arange(0.0, 256.0, 4))
print(warpwright.mpi.counts()["MPI_Pack"]["served"], "torch" in sys.modules)
"""


def run(python: str, code: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in an interpreter with mpi4py."""
    return subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=120, env=environment(**more))


def test_the_import_serves_calls_of_mpi4py_without_torch(python: str) -> None:
    process = run(python, PACK)
    assert process.stdout.split() == ["1", "False"], process.stderr


def test_too_late_is_refused_loudly(python: str) -> None:
    process = run(python, "from mpi4py import MPI\nimport warpwright.mpi")
    assert process.returncode and "expected `import warpwright.mpi` before mpi4py.MPI" in process.stderr


def test_off_serves_nothing(python: str) -> None:
    process = run(python, PACK, WARPWRIGHT_MPI="off")
    assert process.stdout.split() == ["0", "False"], process.stderr


def test_an_unknown_library_has_no_shim(tmp_path: Path) -> None:
    library = tmp_path / "libmpi.so.7"
    library.write_bytes(b"\0libmpi.so.7\0MPI_Pack\0")
    with pytest.raises(UsageError, match="openmpi or mpich"):
        activate.family_of(library)


def test_the_shims_show_their_own_functions_and_take_no_other_library_s(python: str) -> None:
    code = "import warpwright.mpi\nfrom warpwright.domains.mpi import core\nprint(warpwright.mpi.activate()._name, core.library()._name)"
    shim, used = run(python, code).stdout.split()
    assert shim == used  # one library, one state of the GPUs
    symbols = subprocess.run(["nm", "-D", "--no-demangle", shim], capture_output=True, text=True, timeout=60, check=True).stdout
    shown = [line.split()[-1] for line in symbols.splitlines() if line.split()[-2] not in "Uw"]
    assert shown and all(name.startswith(("warpwright_", "MPI_")) for name in shown), shown
    taken = [line.split()[-1] for line in symbols.splitlines() if line.split()[-2] == "U"]
    assert not [name for name in taken if name.startswith("_Z")], taken


@pytest.mark.slow
def test_the_steps_of_a_gpu_run_without_one(python: str, tmp_path: Path) -> None:
    command = [python, "-m", "benchmarks.mpi.gpu_steps", "--dry", "--out", str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment(), cwd=ROOT)
    assert process.returncode == 0 and process.stdout.endswith("0 failed\n"), process.stdout[-3000:]


@pytest.mark.parametrize(
    ("command", "seen"),
    [([], "saw none; warpwright mpi run -- mpiexec"), (["mpiexek", "-n", "2", "./program"], "saw mpiexek, which is not on the PATH; install")],
)
def test_a_launcher_that_is_not_there_is_named(command: list[str], seen: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mpi", "run", "--", *command]) == 2
    assert seen in capsys.readouterr().err

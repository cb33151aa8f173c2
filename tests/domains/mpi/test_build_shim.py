"""Shims for other libraries: the numbers are those that the library's own header gives; the MPI 5 standard ABI is served too."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from interpreters import HERE, environment, last_line, launcher, pythons

from warpwright import native
from warpwright.domains.mpi import abi, core
from warpwright.errors import UsageError

pytestmark = pytest.mark.compiler

WRAPPERS = {"OPENMPI": ("openmpi", "mpicc"), "MPICH": ("mpich", "mpicc"), "MPIABI": ("mpich", "mpicc_abi")}


def wrapper(family: str) -> Path:
    """Return the compiler wrapper of a family, or skip the test."""
    library, name = WRAPPERS[family]
    path = Path(pythons().get(library, "")).parent / name
    if library not in pythons() or not path.exists():
        pytest.skip(f"no {name} of {library}: run `make mpi`")
    return path


def differences(family: str, told: dict[str, Any]) -> str:
    """Return what the compiler says where the shipped numbers of a family are not those of a header."""
    quiet = re.compile(r"^#(?:pragma once|define MPI_SONAME.*|include.*|error.*)$", re.M)
    names = [*abi._NUMBERS, *abi._COMBINERS, "standard"]
    same = [f"static_assert(int(shipped::mpi_constant::{name}) == int(told::mpi_constant::{name}));" for name in names]
    same += [f"static_assert(shipped::mpi_constant::{name}.number == told::mpi_constant::{name}.number);" for name in (*abi._HANDLES, "unweighted")]
    same += [f"static_assert(offsetof(shipped::Status, {name}) == offsetof(told::Status, {name}));" for name in abi._FIELDS]
    text = f"""
        #include <cstddef>
        #include <cstdint>
        namespace shipped {{ {quiet.sub("", core.text("abi.hpp"))} }}
        namespace told {{ {quiet.sub("", abi.header(told))} }}
        static_assert(sizeof(shipped::Handle) == sizeof(told::Handle) && sizeof(shipped::Status) == sizeof(told::Status));
        """
    return native.syntax_errors(text + "\n".join(same), "abi.cpp", (*core.FLAGS, f"-DWARPWRIGHT_{family}"))


@pytest.mark.parametrize("family", WRAPPERS)
def test_the_shipped_numbers_are_those_of_the_library_s_header(family: str) -> None:
    told = abi.told_by(wrapper(family))
    assert differences(family, told) == ""
    objects = [name for name in abi._HANDLES if isinstance(told[name], str)]
    assert all(f'{name}{{"{told[name]}", 0}}' in core.text("abi.hpp") for name in objects)
    assert ("unweighted" in told) == (family != "MPICH")  # there it is a variable
    assert "static assertion failed" in differences(family, {**told, "error_pending": 77})


def test_an_interface_that_no_shim_can_have_is_refused() -> None:
    told = abi.told_by(wrapper("OPENMPI"))
    for wrong in ({"sizeof Request": 4}, {"bottom": "mpi_bottom"}, {"sizeof Count": 4}, {"library": ""}):
        with pytest.raises(UsageError, match="handles of one width"):
            abi.header({**told, **wrong})


def test_a_wrapper_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="compiler wrapper"):
        abi.build_shim(tmp_path / "mpicc")
    with pytest.raises(UsageError, match="program that runs here"):
        abi.build_shim(Path("false"))


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a verb of `warpwright mpi`."""
    command = [sys.executable, "-m", "warpwright", "mpi", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment())


@pytest.mark.slow
@pytest.mark.parametrize("family", ["OPENMPI", "MPICH"])
def test_a_built_shim_packs_byte_for_byte(family: str, tmp_path: Path) -> None:
    mpicc, shim = wrapper(family), tmp_path / "shim.so"
    built = cli("build-shim", "--mpicc", str(mpicc), "--out", str(shim))
    assert built.returncode == 0 and str(shim) in built.stdout, built.stderr
    python = pythons()[WRAPPERS[family][0]]
    oracle = subprocess.run(
        [python, str(HERE / "oracle.py"), "--types", "500", "--seed", "5"],
        capture_output=True, text=True, timeout=200, env=environment(WARPWRIGHT_MPI_SHIM=str(shim)),
    )  # fmt: skip
    told = last_line(oracle)
    assert told["failed"] == 0 and told["counts"]["MPI_Pack"]["served"] > 200, told


@pytest.mark.slow
def test_a_program_of_the_standard_abi_prints_the_same(tmp_path: Path) -> None:
    mpicc, program, shim = wrapper("MPIABI"), tmp_path / "stencil", tmp_path / "shim.so"
    subprocess.run([str(mpicc), "-w", str(HERE / "stencil.c"), "-o", str(program)], capture_output=True, text=True, timeout=60, check=True)
    command = [*launcher(pythons()["mpich"], 2), str(program)]
    plain = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment())
    assert plain.stdout.startswith("checksum"), plain.stderr
    assert cli("build-shim", "--mpicc", str(mpicc), "--out", str(shim)).returncode == 0
    for which in ([], ["--shim", str(shim)]):  # the shipped one is chosen by what the program asks for
        faster = cli("run", "--report", *which, "--", *command)
        assert faster.stdout == plain.stdout and "send 30+0 receive 30+0" in faster.stderr, faster.stderr
    wrong = cli("run", "--library", str(mpicc.parents[1] / "lib/libmpi.so.12"), "--", *command)
    assert wrong.returncode and "another binary interface" in wrong.stderr, wrong.stderr

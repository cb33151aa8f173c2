"""The verbs of the mpi domain: run, explain. docs/cli.md is their contract."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from warpwright.cli.common import DONE, Arguments, print_json
from warpwright.errors import UsageError

_COUNT = re.compile(r"([\w-]+) (\d+)\+(\d+)")


def register(verbs: Any, common: argparse.ArgumentParser) -> None:
    """Add `mpi` and its verbs to the command's sub-parsers."""
    parser = verbs.add_parser("mpi", help="MPI datatypes: run a program with them accelerated, explain one.")
    under = parser.add_subparsers(dest="mpi_verb", required=True, metavar="{run,explain}")

    def verb(name: str, function: Callable[[Arguments], int]) -> argparse.ArgumentParser:
        about = (function.__doc__ or "").strip()
        made: argparse.ArgumentParser = under.add_parser(name, parents=[common], help=about, description=about)
        made.set_defaults(verb_function=function)
        return made

    made = verb("run", run)
    made.add_argument("--library", type=Path, metavar="PATH", help="the program's MPI library (found beside the command, such as mpiexec)")
    made.add_argument("--report", action="store_true", help="print at the end how many calls of all processes were accelerated and forwarded")
    made.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run, such as mpiexec -n 4 ./program")
    made = verb("explain", explain)
    made.add_argument("file", type=Path, metavar="FILE", help="a datatype file (.mpi)")


def run(given: Arguments) -> int:
    """Run a program, an MPI launcher as a rule, with its datatypes packed by warpwright (LD_PRELOAD); nothing is rebuilt."""
    from warpwright.domains.mpi import activate, core

    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    program = shutil.which(command[0]) if command else None
    if program is None:
        raise UsageError(f"expected a command to run, saw {' '.join(command) or 'none'}", "warpwright mpi run -- mpiexec -n 2 ./program")
    library = given.library or _library_beside(Path(program))
    core.find_nvrtc()
    shim = str(activate.build(activate.family_of(library)))
    before = os.environ.get("LD_PRELOAD")
    environment = {**os.environ, "LD_PRELOAD": f"{shim}:{before}" if before else shim, activate.SHIM: shim}
    if not given.report:
        os.execve(program, command, environment)
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder, "lines")
        code = subprocess.run([program, *command[1:]], env={**environment, "WARPWRIGHT_MPI_REPORT": str(lines)}).returncode
        print(_total(lines.read_text().splitlines() if lines.exists() else []), file=sys.stderr)
    return code if code >= 0 else 128 - code


def _total(lines: Sequence[str]) -> str:
    """Return one line of what all processes of this host served and forwarded; each wrote `... MPI_Pack 3+0 ...` at its MPI_Finalize."""
    sums: dict[str, tuple[int, int]] = {}
    for line in lines:
        for name, served, forwarded in _COUNT.findall(line):
            before = sums.get(name, (0, 0))
            sums[name] = (before[0] + int(served), before[1] + int(forwarded))
    told = " ".join(f"{name} {served}+{forwarded}" for name, (served, forwarded) in sums.items())
    return f"warpwright.mpi: {len(lines)} processes, accelerated and forwarded: {told or 'no call of MPI_Finalize was seen'}"


def _library_beside(program: Path) -> Path:
    for folder in (program.parent, program.resolve().parent):
        for found in sorted((folder.parent / "lib").glob("libmpi.so.*")):  # libmpi.so may be a linker script
            return found
    raise UsageError(f"expected an MPI library beside {program}, saw none", "name it: --library PATH/libmpi.so")


def explain(given: Arguments) -> int:
    """Say what a datatype is in canonical form and how it would be packed."""
    from warpwright.domains.mpi.explain import explanation

    told = explanation(given.file)
    if given.json:
        print_json(given, told)
    else:
        print(json.dumps(told, indent=2))
    return DONE

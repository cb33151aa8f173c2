"""The tests of others, with and without the shim: `python -m benchmarks.mpi.suites --out FOLDER --python PYTHON ... --mpich FOLDER --mpi4py FOLDER`.

`--mpich` is test/mpi of MPICH's sources: its datatype programs, compiled as they are, run on the processes that its list says (up to four), plainly
and under `warpwright mpi run`. `--mpi4py` is the test folder of mpi4py's sources: its modules, one job each, plainly and with the shim first.
With the shim everything is packed that can be, however short. Both runs of a program must end with the same code and print the same lines; both of a
module must pass and fail the same tests. Each interpreter has mpi4py over one MPI library, whose compiler and launcher lie beside it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.mpi.gpu_programs import path, run

LIMIT_S = 120
CONFIGURED = (
    "INTTYPES_H", "STDINT_H", "STDLIB_H", "STRING_H", "UNISTD_H", "STDIO_H", "MEMORY_H", "STDARG_H", "SYS_TIME_H", "SYS_RESOURCE_H", "PTHREAD_H",
    "GETRUSAGE", "USLEEP", "LONG_LONG", "LONG_DOUBLE", "LONG_LONG_INT", "MPI_WIN_CREATE", "MPI_COMM_SPAWN",
)  # fmt: skip
"""What the configuration of MPICH's tests would find here."""
FORCED = {"WARPWRIGHT_MPI_LEAST": "1", "WARPWRIGHT_MPI_BLOCK": str(1 << 62)}
"""Tests send few bytes: with the shim everything is packed that can be, whether it gains or not."""
MODULES = (
    "datatype", "pack", "p2p_buf", "p2p_buf_matched", "p2p_obj", "request", "status", "cco_buf", "cco_nb_buf", "cco_vec", "cco_nb_vec", "cco_ngh_buf",
    "cco_nb_ngh_buf", "msgspec", "util_dtlib", "comm_topo", "threads", "pickle",
)  # fmt: skip


def environment() -> dict[str, str]:
    """Return the environment of a job, maybe as root."""
    allowed = {f"{name}_ALLOW_RUN_AS_ROOT{suffix}": "1" for name in ("OMPI", "PRTE") for suffix in ("", "_CONFIRM")}
    allowed["OMPI_MCA_mpi_yield_when_idle"] = "1"  # processes that spin while they wait starve each other on a busy machine
    return {**os.environ, **allowed, "PYTHONPATH": path(dict(os.environ)), "PYTHONWARNINGS": "ignore"}


def launcher(python: Path, processes: int) -> list[str]:
    """Return the start of a command line on several processes."""
    mpiexec = str(python.parent / "mpiexec")
    more = ["--oversubscribe", "--bind-to", "none"] if "Open MPI" in run([mpiexec, "--version"], environment())["out"] else []
    return [mpiexec, *more, "-n", str(processes)]


def library_of(python: Path) -> str:
    """Return the name of the MPI library beside an interpreter."""
    code = "from mpi4py import MPI; print(MPI.Get_library_version().splitlines()[0].split(',')[0])"
    return " ".join(run([str(python), "-c", code], {**environment(), "WARPWRIGHT_MPI": "off"})["out"].split()[:3])


def listed(folder: Path) -> Iterator[tuple[str, int, list[str]]]:
    """Yield the programs of MPICH's list that need at most four processes and little memory: name, processes, arguments."""
    for line in (folder / "datatype/testlist.in").read_text().splitlines():
        words = line.split()
        options = dict(word.split("=", 1) for word in words[2:] if "=" in word)
        if len(words) < 2 or line.startswith("#") or not words[1].isdigit() or int(words[1]) > 4 or "mem" in options or "mpix" in options:
            continue
        yield words[0], int(words[1]), [options["arg"]] if "arg" in options else []


def stable(text: str) -> list[str]:
    """Return the lines of an output, in an order that does not depend on which process was sooner, without process numbers and addresses."""
    return sorted(re.sub(r"0x[0-9a-f]+|\[[\w.-]+:\d+\]|\bpid \d+", "", line) for line in text.splitlines() if line.strip())


def first_error(text: str) -> str:
    """Return the first line of a compiler's words that names an error, without folders."""
    return re.sub(r"/\S*/", "", next((line for line in text.splitlines() if "error" in line or "undefined" in line), text[:100]))[:100]


def programs(folder: Path, python: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each of MPICH's datatype programs."""
    library, compiler = library_of(python), str(python.parent / "mpicc")
    with tempfile.TemporaryDirectory() as room:
        lines = [f"#define HAVE_{name} 1" for name in CONFIGURED] + ["#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX"]
        Path(room, "mpitestconf.h").write_text("\n".join(lines) + "\n")
        Path(room, "mtest_mpix.h").write_text("")
        build = [compiler, "-w", "-O0", f"-I{room}", f"-I{folder}/include", f"-I{folder}/dtpools/include"]
        common = []
        for name in ("mtest", "mtest_common", "mtest_thread", "dtypes"):
            common.append(f"{room}/{name}.o")
            told = run([*build, "-c", f"{folder}/util/{name}.c", "-o", common[-1]], environment())
            if told["code"]:
                raise RuntimeError(f"expected MPICH's tests to compile, saw {told['err']}")
        for name, processes, arguments in listed(folder):
            told = run([*build, f"{folder}/datatype/{name}.c", *common, "-lpthread", "-lm", "-o", f"{room}/{name}"], environment())
            row = {"table": "mpich", "library": library, "program": " ".join([name, *arguments]), "processes": processes}
            if told["code"]:
                yield {**row, "same": "not built", "plain": first_error(told["err"])}
                continue
            command = [*launcher(python, processes), f"{room}/{name}", *arguments]
            plain = run(command, environment(), LIMIT_S)
            ours = run([sys.executable, "-m", "warpwright", "mpi", "run", "--report", "--", *command], {**environment(), **FORCED}, LIMIT_S)
            late = "time limit" in (plain["code"], ours["code"])
            counts = [(int(a), int(b)) for a, b in re.findall(r" (\d+)\+(\d+)", ours["err"])]
            yield {
                **row, "same": "time limit" if late else plain["code"] == ours["code"] and stable(plain["out"]) == stable(ours["out"]),
                "plain": plain["code"], "run": ours["code"],
                "no errors": "No Errors" in ours["out"], "accelerated": sum(a for a, _ in counts), "forwarded": sum(b for _, b in counts),
            }  # fmt: skip


_RUNNER = """
import sys, unittest
sys.path.insert(0, sys.argv[1])
if sys.argv[3] == "ours":
    import warpwright.mpi
from mpi4py import MPI
class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        names.append(test.id())
names = []
result = Result()
unittest.defaultTestLoader.loadTestsFromName(sys.argv[2]).run(result)
bad = sorted(test.id() for test, _ in (*result.failures, *result.errors))
if MPI.COMM_WORLD.rank == 0:
    import json
    counts = {}
    if sys.argv[3] == "ours":
        counts = warpwright.mpi.counts()
    calls = {one: sum(kind[one] for kind in counts.values()) for one in ("served", "forwarded")}
    print("told", json.dumps({"tests": sorted(names), "bad": bad, "skipped": len(result.skipped), **calls}), flush=True)
"""


def told_by(command: Sequence[str], **more: str) -> dict[str, Any]:
    """Return what rank 0 of a module's job says."""
    answer = run(list(command), {**environment(), **more}, LIMIT_S)
    found = re.search(r"^told (.*)$", answer["out"], re.M)
    nothing = {"tests": [], "bad": ["the job"], "skipped": 0, "served": 0, "forwarded": 0}
    return {"code": answer["code"], **(json.loads(found[1]) if found else nothing)}


def modules(folder: Path, python: Path, names: Sequence[str] = MODULES) -> Iterator[dict[str, Any]]:
    """Yield a row for each module of mpi4py's tests that has to do with datatypes and messages, on one and on two processes."""
    library = library_of(python)
    for name in names:
        if not (folder / f"test_{name}.py").exists():
            continue
        for processes in (1, 2):
            command = [*launcher(python, processes), str(python), "-c", _RUNNER, str(folder), f"test_{name}"]
            plain, ours = told_by([*command, "plain"], WARPWRIGHT_MPI="off"), told_by([*command, "ours"], **FORCED)
            late = "time limit" in (plain["code"], ours["code"])
            same = "time limit" if late else plain["tests"] == ours["tests"] and plain["bad"] == ours["bad"] and plain["code"] == ours["code"]
            yield {
                "table": "mpi4py", "library": library, "module": name, "processes": processes, "same": same, "tests": len(ours["tests"]),
                "skipped": ours["skipped"], "plain fails": len(plain["bad"]), "run fails": len(ours["bad"]), "accelerated": ours["served"],
                "forwarded": ours["forwarded"],
                **({} if same is not False else {"differ": sorted(set(plain["bad"]) ^ set(ours["bad"]))[:5]}),
            }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl is written")
    parser.add_argument("--python", type=Path, action="append", required=True, help="an interpreter with mpi4py over one MPI library")
    parser.add_argument("--mpich", type=Path, metavar="FOLDER", help="test/mpi of MPICH's sources")
    parser.add_argument("--mpi4py", type=Path, metavar="FOLDER", help="the test folder of mpi4py's sources")
    parser.add_argument("--modules", nargs="+", default=MODULES, help="which of mpi4py's")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    differ = 0
    with (options.out / "rows.jsonl").open("a") as file:
        for python in options.python:
            suites = [programs(options.mpich, python.absolute())] if options.mpich else []
            suites += [modules(options.mpi4py, python.absolute(), options.modules)] if options.mpi4py else []
            for row in itertools.chain(*suites):
                differ += row["same"] is False
                print(json.dumps(row), file=file, flush=True)
                print(row, flush=True)
    print(f"{differ} differ", flush=True)
    return bool(differ)


if __name__ == "__main__":
    raise SystemExit(main())

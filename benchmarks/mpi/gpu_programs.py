"""Two programs that know nothing of warpwright, before and after `warpwright mpi run`: `python -m benchmarks.mpi.gpu_programs --out FOLDER`.

programs/stencil.cu (C, compiled here by nvcc) and programs/stencil.py (mpi4py and torch) exchange faces of GPU memory by subarrays with Isend, Irecv
and Waitall. `before` is the MPI library by itself: one that knows no GPUs crashes, one that does takes 10 us a block. Every run has a time limit.
With `--mpi PREFIX` the MPI is the one installed there, else the machine's.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]
LIMIT_S = 40
LONG = 40
"""Steps of a further run, whose mean leaves out what is set up once."""
MPIEXEC = ("--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "btl_vader_single_copy_mechanism", "none")


def end_with_parent() -> None:
    """Have a child told to end where its parent is killed: a launcher that outlives a time limit would run beside what is measured next."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def run(command: list[str], environment: dict[str, str], limit: float = LIMIT_S) -> dict[str, Any]:
    """Run a command with a time limit for all its processes; return what it printed."""
    start = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True, preexec_fn=end_with_parent
    )
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return {"code": "time limit", "out": out, "err": err[-600:], "seconds": round(time.monotonic() - start, 1)}
    return {"code": process.returncode, "out": out, "err": err[-600:], "seconds": round(time.monotonic() - start, 1)}


def environment_of(prefix: Path | None) -> dict[str, str]:
    """Return the environment in which an installed MPI is found first, by mpi4py too."""
    found = {**os.environ, "OMPI_MCA_plm_rsh_agent": "false"}
    if prefix is not None:
        found["PATH"] = f"{prefix}/bin:{found['PATH']}"
        found["LD_LIBRARY_PATH"] = f"{prefix}/lib:{found.get('LD_LIBRARY_PATH', '')}"
        found["OPAL_PREFIX"], found["MPI4PY_LIBMPI"] = str(prefix), f"{prefix}/lib/libmpi.so.40"
    return found


def headers_of(environment: dict[str, str]) -> list[str]:
    """Return where mpi.h and libmpi are: what the compiler wrapper of the MPI in use says."""
    told = []
    for what, flag in (("incdirs", "-I"), ("libdirs", "-L")):
        answer = run(["mpicc", f"--showme:{what}"], environment)
        told += [flag + one for one in answer["out"].split()] if answer["code"] == 0 else []
    return told


def compiled(out: Path, environment: dict[str, str]) -> Path:
    """Return the C program, compiled. Raises RuntimeError where it does not compile."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    program = out / "stencil"
    library = shutil.which("mpicc", path=environment["PATH"]) is None
    link = ["/usr/lib/x86_64-linux-gnu/libmpi.so.40"] if library else ["-lmpi"]
    command = [nvcc, "-O2", "-arch=sm_90", "-cudart", "shared", str(HERE / "stencil.cu"), *headers_of(environment), *link, "-o", str(program)]
    told = run(command, environment)
    if told["code"]:
        raise RuntimeError(f"expected a program from {' '.join(command)}, saw {told['err']}")
    return program


def measured(out: str) -> tuple[str, float | None]:
    """Return the checksum and the time that a program printed."""
    checksum, taken = re.search(r"^checksum (\S+)$", out, re.M), re.search(r"^exchange_us ([\d.]+)$", out, re.M)
    return checksum[1] if checksum else "", float(taken[1]) if taken else None


def rows(
    out: Path, environment: dict[str, str], sides: list[int], processes: list[int], steps: int, languages: list[str], once: bool
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Yield a row for each program and size."""
    programs: dict[str, list[str]] = {"mpi4py": [sys.executable, str(HERE / "stencil.py")]} if "mpi4py" in languages else {}
    try:
        programs |= {"C": [str(compiled(out, environment))]} if "C" in languages else {}
    except RuntimeError as error:
        yield {"table": "failed", "case": "C", "error": str(error)}
    for name, program in programs.items():
        for side in sides:
            for number in processes:
                command = ["mpiexec", *MPIEXEC, "-n", str(number), *program, str(side)]
                before = run([*command, str(steps)], environment)
                longer = before if once or before["code"] else run([*command, str(2 * steps)], environment)
                verb = [sys.executable, "-m", "warpwright", "mpi", "run", "--report", "--"]
                ours = {**environment, "PYTHONPATH": path(environment)}
                after = run([*verb, *command, str(steps)], ours)
                steady = after if once or after["code"] else run([*verb, *command, str(LONG)], ours)
                (sum_before, us_before), (sum_after, us_after) = measured(before["out"]), measured(after["out"])
                yield {
                    "table": "programs", "program": name, "side": side, "processes": number, "before": before["code"], "after": after["code"],
                    "same": sum_before == sum_after != "", "checksum": sum_after[:16], "before_us": us_before, "after_us": us_after,
                    **({} if once else {"before_us_of_twice": measured(longer["out"])[1], f"after_us_of_{LONG}": measured(steady["out"])[1]}),
                    "steps": steps,
                    "ring": environment.get("WARPWRIGHT_MPI_PEER", "off"),
                    "speedup": round(us_before / us_after, 1) if us_before and us_after else None,
                    "report": after["err"].strip().splitlines()[-1][-200:] if after["err"].strip() else "",
                    **{f"{when}_said": told["err"][-300:] for when, told in (("before", before), ("after", after)) if told["code"]},
                }  # fmt: skip


def path(environment: dict[str, str]) -> str:
    """Return PYTHONPATH with this checkout in it."""
    return os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH", "")]))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl is written")
    parser.add_argument("--mpi", type=Path, metavar="PREFIX", help="where an Open MPI that knows GPUs is installed")
    parser.add_argument("--sides", type=int, nargs="+", default=[48, 96])
    parser.add_argument("--steps", type=int, default=3, help="of the runs that are compared")
    parser.add_argument("--once", action="store_true", help=f"leave out the longer runs: twice as many steps before, {LONG} after")
    parser.add_argument("--languages", nargs="+", choices=("C", "mpi4py"), default=["mpi4py", "C"])
    parser.add_argument("--processes", type=int, nargs="+", default=[2])
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    failed = 0
    with (out / "rows.jsonl").open("a") as file:
        for row in rows(out, environment_of(options.mpi), options.sides, options.processes, options.steps, options.languages, options.once):
            failed += row["table"] == "failed" or row["after"] != 0 or (row["before"] == 0 and not row["same"])
            print(json.dumps(row), file=file, flush=True)
            print(row, flush=True)
    print(f"{failed} failed", flush=True)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())

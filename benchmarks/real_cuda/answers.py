"""Whether the kernels of a folder, each called through `warpwright.transpile.load` with random arrays, give the answers that NumPy-like code gives.

    python -m benchmarks.real_cuda.answers FOLDER --out rows.jsonl [--include FOLDER ...] [--define NAME=VALUE ...] [--only REGEX]

Files are taken as they are shipped. What a kernel computes and how it is launched comes from families.py, by the kernel's name and
parameters, and from named.py.
A row a kernel:

- `right`: every output lies within the family's tolerance of the answer in float64, and an output that nobody wrote would not.
- `wrong`, `crashed`, `failed` (the launch), `not compiled`, `refused`, each with its cause. `no reference`: no family knows the kernel; it is counted
  apart.

`tensor` marks kernels with tensor-core PTX or fragments, as kernels.py does. Each file is a process of its own, `--jobs` at a time.

On a machine without libclang: `--write TEXTS` here, which only translates, and `--texts TEXTS` there, over a copy of the folder. What g++ does not
take is then the row of all kernels of a file, as no second translation leaves it out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

import warpwright.transpile
from benchmarks.real_cuda import families, programs, texts
from benchmarks.real_cuda.kernels import TENSOR, body_of, has_kernels
from benchmarks.real_cuda.named import NAMED
from warpwright.domains import transpile
from warpwright.domains.transpile.frontend import scan
from warpwright.errors import UsageError, WarpwrightError


def known(text: str) -> dict[str, families.Kernel]:
    """Return the kernels of a text."""
    found = {}
    for one in scan.kernels(text, scan.tokens(text)):
        if one.defined:
            inner = re.sub(r"//[^\n]*", "", one.template).partition("<")[2].rpartition(">")[0]
            parts = [part.partition("=") for part in scan.split_commas(inner)] if inner.strip() else []
            template = {left.split()[-1]: right.strip() for left, _, right in parts}
            found[one.name] = families.Kernel(one.name, [(p.name, p.text) for p in one.parameters], template)
    return found


def header_kernels(path: Path, include: list[str]) -> str:
    """Return the texts of the own headers that a file includes, for the kernels that they define."""
    texts = programs.Program("", path.parent, (path,), tuple(Path(one) for one in include), ()).closure()
    return "".join(text for one, text in texts.items() if one != path and "__global__" in text and one.parent == path.parent)


def cases_of(kernel: families.Kernel) -> list[families.Case]:
    """Return the cases of a kernel; none where neither its name nor a family is known."""
    torch.manual_seed(0)
    found = NAMED[kernel.name]() if kernel.name in NAMED else families.case_of(kernel)
    return found if isinstance(found, list) else [found] if found else []


def rows_of(path: Path, name: str, given: argparse.Namespace) -> None:
    """Append the rows of one file's kernels; with --write only translate it."""
    include, define = [str(one) for one in given.include], given.define
    text = path.read_text(errors="replace") + header_kernels(path, include)
    cases: dict[str, list[families.Case]] = {}
    rows: dict[str, dict[str, Any]] = {}
    for kernel in known(text).values():
        rows[kernel.name] = {"file": name, "kernel": kernel.name, "tensor": bool(TENSOR.search(body_of(text, kernel.name)))}
        try:
            cases[kernel.name] = cases_of(kernel)
        except (KeyError, IndexError) as error:
            cases[kernel.name] = []
            rows[kernel.name]["cause"] = f"{type(error).__name__}: {error}"
    instances = list(dict.fromkeys(f"{one}<{case.instance}>" for one, several in cases.items() for case in several if case.instance))
    if given.write:
        texts.write(given.write, name, translated(path, instances, include, define))
        return
    kernels, why = kept(given.texts, name) if given.texts else loaded(path, instances, include, define)
    for one, several in cases.items():
        row = rows[one]
        if not several:
            row |= {"status": "no reference"}
        elif kernels is None:
            row |= {"status": why[0], "cause": why[1][-300:]}
        else:
            print("trying", one, flush=True)
            row |= all_tried(kernels, one, several)
        with given.out.open("a") as file:
            file.write(json.dumps(row) + "\n")


Loaded = tuple[warpwright.transpile.Kernels | None, texts.Cause]
"""Kernels of a file, or why there are none."""


def loaded(path: Path, instances: list[str], include: list[str], define: list[str]) -> Loaded:
    """Translate and build a file."""
    why = "refused", ""
    for _ in range(2):
        try:
            return warpwright.transpile.load(path, instances=instances, include=include, define=define), ("", "")
        except warpwright.transpile.Refusal as error:  # an instance of a kernel that is refused would refuse the file
            why = "refused", str(error).splitlines()[0]
            instances = without_refused(instances, path, include, define)
        except WarpwrightError as error:
            return None, ("not compiled", str(error).splitlines()[0])
    return None, why


def translated(path: Path, instances: list[str], include: list[str], define: list[str]) -> transpile.Program | texts.Cause:
    """Translate a file, or say why not."""
    why = ""
    folders = [path.parent, *map(Path, include)]
    for _ in range(2):
        try:
            return transpile.compile_text(path.read_text(errors="replace"), str(path), define, instances=instances, folders=folders)
        except WarpwrightError as error:
            why = str(error).splitlines()[0]
            instances = without_refused(instances, path, include, define)
    return "refused", why


def kept(folder: Path, name: str) -> Loaded:
    """Build what was translated before."""
    made = texts.read(folder, name)
    if not isinstance(made, transpile.Program):
        return None, made
    try:
        return warpwright.transpile.Kernels(made), ("", "")
    except WarpwrightError as error:
        return None, ("not compiled", str(error).splitlines()[0])


def without_refused(instances: list[str], path: Path, include: list[str], define: list[str]) -> list[str]:
    gone = refused(path, include, define)
    return [one for one in instances if one.partition("<")[0] not in gone]


def refused(path: Path, include: list[str], define: list[str]) -> set[str]:
    """Return the kernels of a file that no tier takes."""
    with contextlib.suppress(WarpwrightError):
        made = transpile.compile_text(path.read_text(errors="replace"), str(path), define, folders=[path.parent, *map(Path, include)])
        return {info.name for info in made.kernels.values() if info.tier == "refused"}
    return set()


def all_tried(kernels: warpwright.transpile.Kernels, name: str, cases: list[families.Case]) -> dict[str, Any]:
    """Return the status of a kernel: that of its first case that is not right, or the one of the largest error beside its tolerance."""
    seen = [tried(kernels, name, case) for case in cases]
    for case, row in zip(cases, seen, strict=True):
        if row["status"] != "right":
            return row | {"cases": len(cases), "instance": case.instance}
    return max(seen, key=lambda row: row["error"] / max(row["tolerance"], 1e-30)) | {"cases": len(cases)}


def tried(kernels: warpwright.transpile.Kernels, name: str, case: families.Case) -> dict[str, Any]:
    """Return the status of one call."""
    outputs = {index: case.arguments[index].double().clone() for index in case.wanted}
    try:
        kernel = kernels[f"{name}<{case.instance}>" if case.instance else name]
    except (KeyError, UsageError) as error:
        return {"status": "refused", "cause": str(error)[:300]}
    try:
        kernel[case.grid, case.block, case.shared](*case.arguments)
    except WarpwrightError as error:
        return {"status": "failed", "tier": kernel.tier, "cause": str(error)[:300]}
    worst = 0.0
    for index, wanted in case.wanted.items():
        scale = max(float(wanted.abs().max()), 1e-30)
        before = error_of(outputs[index], wanted, scale)
        if before <= 4 * case.tolerance:
            return {"status": "failed", "tier": kernel.tier, "cause": f"the check cannot fail: an output that is not written is off by {before:.3g}"}
        worst = max(worst, error_of(case.arguments[index].double(), wanted, scale))
    right = worst <= case.tolerance
    cause = "" if right else f"off by {worst:.3g} of the largest value; expected at most {case.tolerance:g}"
    return {"status": "right" if right else "wrong", "tier": kernel.tier, "error": float(f"{worst:.3g}"), "tolerance": case.tolerance, "cause": cause}


def error_of(seen: torch.Tensor, wanted: torch.Tensor, scale: float) -> float:
    """Return the largest difference as a part of `scale`; infinite where a value is no number."""
    difference = (seen.reshape(-1) - wanted.reshape(-1)).abs() / scale
    return float(torch.where(difference.isnan(), torch.inf, difference).max())


def examine(path: Path, name: str, given: argparse.Namespace, end: float) -> None:
    """Examine one file in a process of its own; a crash is the row of the kernel that was being tried. Nothing is examined after `end`."""
    left = end - time.time()
    if left <= 0:
        return
    command = [sys.executable, "-m", "benchmarks.real_cuda.answers", str(path), "--one", name, "--out", str(given.out)]
    command += [word for one in given.include for word in ("--include", str(one))] + [word for one in given.define for word in ("--define", one)]
    command += [word for option in ("write", "texts") if (one := getattr(given, option)) for word in (f"--{option}", str(one))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=min(given.limit, left))
        code, said = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        code, said = -1, (late.stdout or b"").decode() if isinstance(late.stdout, bytes) else str(late.stdout or "")
        done = None
        if left < given.limit:
            return
    if code:
        tries = re.findall(r"^trying (\w+)", said, re.M)
        why = f"over {given.limit} s" if done is None else done.stderr[-300:] or f"signal {-code}"
        with given.out.open("a") as out:
            out.write(json.dumps({"file": name, "kernel": tries[-1] if tries else "-", "tensor": False, "status": "crashed", "cause": why}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--include", type=Path, action="append", default=[])
    parser.add_argument("--define", action="append", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=400, help="seconds for a file")
    parser.add_argument("--jobs", type=int, default=1, help="files at a time (%(default)s)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="end after so many (never); a file that is not over gives no rows of its own")
    parser.add_argument("--first", default="", metavar="REGEX", help="files to begin with")
    parser.add_argument("--write", type=Path, metavar="TEXTS", help="translate only, into this folder")
    parser.add_argument("--texts", type=Path, metavar="TEXTS", help="take the translations from this folder")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        rows_of(given.folder, given.one, given)
        return
    given.out.touch()
    seen = {row["file"] for row in read_rows(given.out)}
    folder = given.folder.resolve()
    names = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*.cu"))}
    chosen = [name for name, path in names.items() if name not in seen and re.search(given.only, name) and has_kernels(path, folder, given.include)]
    chosen.sort(key=lambda name: not (given.first and re.search(given.first, name)))
    for name in chosen if given.write else ():  # in one process, as nothing is called
        rows_of(names[name], name, given)
        print(name, flush=True)
    if given.write:
        return
    end = time.time() + given.seconds
    with ThreadPoolExecutor(given.jobs) as pool:
        for name, _ in zip(chosen, pool.map(lambda name: examine(names[name], name, given, end), chosen), strict=True):
            say(name, [row for row in read_rows(given.out) if row["file"] == name])
    rows = read_rows(given.out)
    for tensor in (False, True):
        print("with tensor cores" if tensor else "without tensor cores", dict(Counter(row["status"] for row in rows if row["tensor"] == tensor)))


def read_rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def say(name: str, rows: list[dict[str, Any]]) -> None:
    print(name, dict(Counter(row["status"] for row in rows)), flush=True)
    for row in rows:
        if row["status"] not in ("right", "no reference"):
            print("   ", row["kernel"], row["status"], row["cause"][:200], flush=True)


if __name__ == "__main__":
    main()

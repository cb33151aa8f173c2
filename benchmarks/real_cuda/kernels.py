"""How many kernels of a folder's CUDA files translate and compile as a library, host code left out, as the files are shipped.

    python -m benchmarks.real_cuda.kernels FOLDER --out rows.jsonl [--include FOLDER ...] [--define NAME=VALUE ...] [--only REGEX] [--no-check]

Each .cu file is one source with its own headers from its folder and those of --include. Every kernel is a row: its tier, or why no tier takes it;
and for
the file, whether g++ accepts the text (-fsyntax-only). `tensor` marks kernels whose text, or that of the file's device functions, has tensor-core
PTX or
fragments. A template counts once, with the instances that the file launches; templates without instances are compiled no further than a compiler
reads
them. What is in --out already is left out.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.real_cuda import programs
from warpwright.domains import transpile
from warpwright.domains.transpile.frontend import scan
from warpwright.errors import WarpwrightError

TENSOR = re.compile(r"\bmma\.sync|\bldmatrix\b|\bwmma\s*::|\bnvcuda\b|\bMMA\w*\(|\bHMMA\w*\(|\bLDMATRIX|\bmma\(|\bload_ldmatrix")
CHECK = ["g++", "-std=c++17", "-fopenmp", "-w", "-fsyntax-only", "-fmax-errors=3", "-x", "c++"]


def rows_of(path: Path, folder: Path, folders: tuple[Path, ...], defines: tuple[str, ...], check: bool) -> list[dict[str, Any]]:
    """Return the rows of one file's kernels; one row with the cause where the file itself is not taken."""
    name, text = str(path.relative_to(folder)), path.read_text(errors="replace")
    begun = time.perf_counter()
    kernels = [k.name for k in scan.kernels(text, scan.tokens(text)) if k.defined]
    own = {kernel: bool(TENSOR.search(body_of(text, kernel))) for kernel in kernels}
    try:
        made = transpile.compile_text(text, str(path), defines, folders=(path.parent, *folders))
    except WarpwrightError as error:
        cause = str(error).splitlines()[0].replace(str(folder) + "/", "")[:300]
        return [{"file": name, "kernel": kernel, "tensor": own[kernel], "status": "refused", "cause": cause} for kernel in kernels or ["-"]]
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"[:300]
        return [{"file": name, "kernel": kernel, "tensor": own[kernel], "status": "failed", "cause": cause} for kernel in kernels or ["-"]]
    seconds = round(time.perf_counter() - begun, 2)
    wrong = compiled(made.source) if check else ""
    rows = []
    for info in made.kernels.values():
        refused = info.tier == "refused"
        status = "refused" if refused else "not compiled" if wrong else "translated"
        cause = info.reason if refused or not wrong else wrong
        tensor = own.get(info.name, bool(TENSOR.search(body_of(text, info.name))))
        rows.append({"file": name, "kernel": info.name, "tensor": tensor, "status": status, "tier": info.tier, "cause": cause[:300], "s": seconds})
    return rows


def has_kernels(path: Path, folder: Path, include: list[Path]) -> bool:
    """Say whether a file, or a header of the folder that it includes, defines a kernel."""
    texts = programs.Program("", folder, (path,), tuple(include), ()).closure()
    return any("__global__" in re.sub(r"//[^\n]*", "", text) for text in texts.values())


def body_of(text: str, kernel: str) -> str:
    match = re.search(rf"\b{re.escape(kernel)}\s*\(", text)
    end = text.find("__global__", match.end()) if match else -1
    return text[match.start() : end if end > 0 else len(text)] if match else ""


def compiled(source: str) -> str:
    """Return g++'s first error, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "source.cpp")
        file.write_text(source)
        done = subprocess.run([*CHECK, str(file)], capture_output=True, text=True, timeout=300)
    return next((line.split(".cpp:", 1)[-1] for line in done.stderr.splitlines() if "error" in line), "") if done.returncode else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--include", type=Path, action="append", default=[])
    parser.add_argument("--define", action="append", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--no-check", action="store_true", help="translate only")
    given = parser.parse_args()
    seen = {json.loads(line)["file"] for line in given.out.read_text().splitlines()} if given.out.exists() else set()
    folder = given.folder.resolve()
    for path in sorted(folder.rglob("*.cu")):
        name = str(path.relative_to(folder))
        if name in seen or not re.search(given.only, name) or not has_kernels(path, folder, given.include):
            continue
        rows = rows_of(path, folder, tuple(p.resolve() for p in given.include), tuple(given.define), not given.no_check)
        with given.out.open("a") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)
        print(name, dict(Counter(f"{row['status']} {row.get('tier', '')}".strip() for row in rows)), rows[0]["cause"][:100], flush=True)
    rows = [json.loads(line) for line in given.out.read_text().splitlines()]
    for tensor in (False, True):
        print("with tensor cores" if tensor else "without tensor cores", dict(Counter(row["status"] for row in rows if row["tensor"] == tensor)))


if __name__ == "__main__":
    main()

"""How much of a corpus of CUDA files translates and compiles, and in which tier; each miss with its cause.

    python -m benchmarks.transpile.coverage PATH ... [--jobs 1] [--list]

A PATH is a checkout (or a folder of one) that holds .cu files; nothing of it is shipped with the project. Kernels only: host code is left out.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from warpwright import native
from warpwright.domains import transpile
from warpwright.errors import WarpwrightError


def sources(path: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield (name, CUDA text, folder) of each .cu file with a kernel under the path, and of each `cuda_code` in a .json list."""
    files = [path] if path.is_file() else sorted(path.rglob("*.cu"))
    for file in files:
        if file.suffix == ".json":
            for item in json.loads(file.read_text()):
                if item.get("cuda_code"):
                    yield f"{file.stem}:{item['op_name']}:{item['input_shape']}", item["cuda_code"], file.parent
        elif "__global__" in (text := file.read_text(errors="replace")):
            yield str(file.relative_to(path) if path.is_dir() else file), text, file.parent


def attempt(name: str, text: str, folder: Path) -> dict[str, object]:
    """Translate and compile (syntax and types only) one file."""
    begun = time.perf_counter()
    try:
        program = transpile.compile_text(text, name, folders=[folder, folder.parent / "include", folder.parent])
    except WarpwrightError as error:
        return {"name": name, "status": "refused", "cause": str(error).splitlines()[0][:300], "tiers": {}, "seconds": time.perf_counter() - begun}
    seconds = time.perf_counter() - begun
    tiers = {k.name: (k.tier, k.reason) for k in program.kernels.values()}
    return {"name": name, **compiled(program.source), "tiers": tiers, "seconds": seconds}


def compiled(source: str) -> dict[str, str]:
    """Say whether the output compiles."""
    path, _ = native.compiler()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "out.cpp")
        file.write_text(source)
        done = subprocess.run(
            [path, "-fsyntax-only", "-w", "-std=c++17", "-march=native", "-fopenmp", str(file)], capture_output=True, text=True, timeout=600
        )
    if not done.returncode:
        return {"status": "compiles", "cause": ""}
    errors = re.findall(r"error: (.*)", done.stderr)
    return {"status": "does not compile", "cause": (errors or [done.stderr[:200]])[0][:200]}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("paths", nargs="+", type=Path)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--list", action="store_true", help="one line a file")
    given = options.parse_args()
    for path in given.paths:
        work = list(sources(path))
        with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
            results = list(pool.map(attempt, *zip(*work, strict=True))) if work else []
        report(path, results, given.list)


def report(path: Path, results: list[dict[str, object]], every: bool) -> None:
    """Print the counts of one corpus, the tiers of its kernels, and each miss."""
    statuses = collections.Counter(str(r["status"]) for r in results)
    tiers: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    for result in results:
        for tier, reason in result["tiers"].values():  # type: ignore[attr-defined]
            tiers[tier] += 1
            if tier == "fibers":
                reasons[re.sub(r"line \d+: ", "", reason)[:120]] += 1
    slow = sorted(float(str(r["seconds"])) for r in results)
    print(
        f"{path.name}: {len(results)} files; {dict(statuses)}; kernels by tier {dict(tiers)}; translation median {slow[len(slow) // 2]:.2f} s"
        if slow
        else f"{path}: no kernels"
    )
    for reason, count in reasons.most_common(40):
        print(f"    fibers {count:4d}  {reason}")
    for result in results:
        if result["status"] != "compiles" or every:
            print(f"    {result['status']}: {result['name']}: {result['cause']}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

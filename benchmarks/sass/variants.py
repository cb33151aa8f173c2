"""Every kernel of this folder under many settings of the compiler at once: built here, measured on a GPU in seconds.

    python -m benchmarks.sass.variants --build CUBINS --ptxas 13.1=PATH,13.5=PATH      unrolling x least blocks x levels x caching x versions
    python -m benchmarks.sass.variants --folder CUBINS --out OUT --limit 30            each glanced at, the fastest three in epochs

The folder has NAME.cubin as it is shipped, its harness NAME.py, and NAME--FLAGS.cubin for each setting whose code is another. `--keep FOLDER` writes
what benchmarks.sass.suite searches then: the shipped cubins, and NAME__flags.cubin with flags.json for each kernel that a setting makes faster.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.sass.build import HERE, KERNELS, PLAIN, PTXAS, Flags, build
from benchmarks.sass.flagged import MOST
from benchmarks.sass.rows import percent, span
from warpwright import domains
from warpwright.domains.sass.code.cubin import Cubin
from warpwright.domains.sass.harness import load
from warpwright.errors import WarpwrightError
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator

UNROLLS, BLOCKS, LARGEST = (0, 1, 2, 4, 8, 16), (0, 1, 2, 4, 8), 60_000
"""A cubin of more bytes is not worth the seconds."""

LAST, MARK = 3, "--"


def settings(versions: tuple[str, ...]) -> Iterator[Flags]:
    """Yield the settings that are tried."""
    for unroll in UNROLLS:
        yield from (Flags(unroll=unroll, blocks=blocks) for blocks in BLOCKS)
        yield from (Flags(unroll=unroll, level=level) for level in (1, 2))
        yield from (Flags(unroll=unroll, ptxas=version) for version in versions)
    yield from (Flags(blocks=blocks, ptxas=version) for blocks in BLOCKS[1:] for version in versions)
    yield from (Flags(caching=caching) for caching in ("cg", "cs", "cv"))
    yield from (Flags(stores=stores) for stores in ("cg", "cs", "wt"))


def main() -> None:
    """Build, or measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path)
    parser.add_argument("--ptxas", default="", help="VERSION=PATH, separated by commas")
    parser.add_argument("--only", default=",".join(KERNELS))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    PTXAS.update(pair.split("=", 1) for pair in given.ptxas.split(",") if pair)
    kernels = str(given.only).split(",")
    if given.build:
        given.build.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(given.jobs) as pool:
            for kernel, count in zip(kernels, pool.map(lambda kernel: built(kernel, given.build), kernels), strict=True):
                print(f"{kernel}: {count} settings with code of their own", flush=True)
        return
    measure(given, kernels)


def built(kernel: str, folder: Path) -> int:
    """Build a kernel under every setting; keep those whose code is new. Return how many there are."""
    shutil.copy(HERE / "harnesses" / f"{kernel}.py", folder / f"{kernel}.py")
    seen: set[bytes] = set()
    with tempfile.TemporaryDirectory() as scratch:
        for flags in (PLAIN, *settings(tuple(PTXAS))):
            try:
                cubin = build(kernel, Path(scratch), flags=flags, seconds=20.0)
            except (RuntimeError, OSError):  # what the compiler refuses, or takes too long for
                continue
            code = code_of(cubin)
            if code not in seen and (len(code) <= LARGEST or flags == PLAIN):
                seen.add(code)
                name = kernel if flags == PLAIN else f"{kernel}{MARK}{written(str(flags))}"
                shutil.copy(cubin, folder / f"{name}.cubin")
    return len(seen) - 1


def written(flags: str) -> str:
    """Return flags as a file may be called by them."""
    return flags.replace(" ", "_").replace(",", "+").replace("=", ".")


def read(name: str) -> str:
    """Return the flags that a file is called by."""
    return re.sub(r"(-d[ls]cm)\.", r"\1=", name.replace("_", " ").replace("+", ","))


def code_of(cubin: Path) -> bytes:
    """Return the code of a cubin's only kernel."""
    read = Cubin(cubin.read_bytes())
    return read.code_of(read.kernels[0])


def measure(given: argparse.Namespace, kernels: list[str]) -> None:
    """Measure the variants of each kernel, all kernels at once; write a row for each as it ends."""
    given.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    until = began + given.limit
    here = [kernel for kernel in kernels if any(given.folder.glob(f"{kernel}{MARK}*.cubin"))]
    best: dict[str, str] = {}
    with ProcessPoolExecutor(max(1, len(here)), get_context("fork")) as pool, (given.out / "rows.jsonl").open("a") as rows:
        for done in as_completed([pool.submit(measured, kernel, given.folder, until) for kernel in here]):
            row = done.result()
            rows.writelines(json.dumps(one) + "\n" for one in (row, shown(row)))
            rows.flush()
            print(f"{time.monotonic() - began:6.1f} s  {row}", flush=True)
            if "fastest" in row:
                best[row["kernel"]] = row["fastest"]
    if given.keep:
        keep(given.folder, given.keep, best)


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of the result's table."""
    slowest = min((speedup for speedup in row.get("tried", {}).values() if speedup), default=1.0)
    counted = {"settings": row.get("settings", 0), "fastest": row.get("fastest", "-O3"), "gain %": row.get("gain %", "none")}
    return {"table": "variants", "kernel": row["kernel"], **counted, "slowest setting %": percent(slowest)}


def measured(kernel: str, folder: Path, until: float) -> dict[str, Any]:
    """Return the row of one kernel: what each setting gains at a glance, and the fastest three in epochs."""
    row: dict[str, Any] = {"row": "variants", "kernel": kernel}
    harness = folder / f"{kernel}.py"
    try:
        task = domains.describe(folder / f"{kernel}.cubin", {"harness": str(harness), "kernel": load(harness).kernel})
        with CubinEvaluator(task, "cubin:0", Measuring()) as evaluator:
            tried = dict(glances(kernel, folder, evaluator, until))
            row |= {"tried": {name: round(speedup, 4) for name, speedup in tried.items()}, "settings": len(tried)}
            for name in sorted(tried, key=lambda name: -tried[name])[:LAST]:
                (speedup, low, high), differ = evaluator.against((folder / f"{kernel}{MARK}{written(name)}.cubin").read_bytes())
                row.setdefault("epochs", {})[name] = {"speedup": speedup, "interval": (low, high), "differ": differ}
                if not differ and low > max(1.003, row.get("speedup", 0.0)):
                    row |= {"fastest": name, "speedup": speedup, "gain %": f"{percent(speedup)} ({span((low, high))})"}
    except Exception as error:  # the other kernels' rows are worth keeping
        traceback.print_exc()
        row["error"] = f"{type(error).__name__}: {error}"[:300]
    return row


def glances(kernel: str, folder: Path, evaluator: CubinEvaluator, until: float) -> Iterator[tuple[str, float]]:
    """Yield each setting's name and speed-up, while there is time; 0 for other words, or a cubin that does not launch."""
    fastest = 1.0
    for path in sorted(folder.glob(f"{kernel}{MARK}*.cubin")):
        if time.monotonic() > until:
            return
        try:
            speedup, _ = evaluator.glance(path.read_bytes(), 0.99 * fastest)
        except WarpwrightError:
            speedup = 0.0
        fastest = max(fastest, speedup)
        yield read(path.stem.partition(MARK)[2]), speedup


def keep(folder: Path, to: Path, best: dict[str, str]) -> None:
    """Write the folder that the suite searches: each kernel as shipped, and under the setting that is fastest beside it."""
    to.mkdir(parents=True, exist_ok=True)
    told = {}
    for path in sorted(folder.glob("*.py")):
        kernel = path.stem
        shutil.copy(folder / f"{kernel}.cubin", to)
        shutil.copy(path, to)
        if kernel in best:
            name = f"{kernel}__flags"
            shutil.copy(folder / f"{kernel}{MARK}{written(best[kernel])}.cubin", to / f"{name}.cubin")
            shutil.copy(path, to / f"{name}.py")
            count = len(code_of(to / f"{name}.cubin")) // 16
            told[name] = {"of": kernel, "flags": best[kernel], "searched": count <= MOST}
    (to / "flags.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()

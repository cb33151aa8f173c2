"""How many verified pairs a minute `warpwright pairs` makes on this machine, with and without the search of the C half.

    python -m benchmarks.translation.pairs_rate [--count 300] [--out pairs_rate.md]
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import resource
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy
import pyarrow

import warpwright
from warpwright import native
from warpwright.translation.pairs.data_set import read_pairs
from warpwright.translation.pairs.draft import Options
from warpwright.translation.pairs.generate import Result, generate

SEED = 20261121


def main() -> None:
    """Generate, count, and write the table."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--count", type=int, default=300)
    given.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given.add_argument("--out", default="pairs_rate.md")
    options = given.parse_args()
    rows = [
        measured("C half searched (4 schedules), both halves run", options.count, Options(SEED, 4), options.jobs),
        measured("no search, both halves run", options.count // 2, Options(SEED, 1), options.jobs),
        measured("no search, C half only", options.count // 2, Options(SEED, 1, verify_cuda=False), options.jobs),
    ]
    Path(options.out).write_text(table(rows, options.jobs))
    print(Path(options.out).read_text())


@dataclass(frozen=True)
class Row:
    """One run: its result, the median gain of the search, distinct texts, the machine's load before it, CPU seconds of all processes a pair."""

    what: str
    result: Result
    gain: float
    texts: int
    load: float
    cpu: float


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its ended children, compilers included."""
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def measured(what: str, count: int, options: Options, jobs: int) -> Row:
    """Return what one run gave."""
    load, before = os.getloadavg()[0], cpu_seconds()
    folder = Path(tempfile.mkdtemp(prefix="pairs-"))
    try:
        result = generate(folder / "set", count, 30.0, options, jobs, False)
        rows = read_pairs(folder / "set")
        gains = sorted(row["c_first_seconds"] / row["c_seconds"] for row in rows)
        texts = len({row["skeleton"] for row in rows})
        return Row(what, result, gains[len(gains) // 2], texts, load, (cpu_seconds() - before) / max(1, result.pairs))
    finally:
        shutil.rmtree(folder)


def table(rows: list[Row], jobs: int) -> str:
    """Return the markdown."""
    version = subprocess.run([native.compiler()[0], "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    processor = next(
        (line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), platform.machine()
    )
    lines = [
        "# Pairs a minute",
        "",
        f"{processor}, {os.cpu_count()} cores; {jobs} processes; {version}; Python {platform.python_version()}, numpy {numpy.__version__},"
        f" pyarrow {pyarrow.__version__}, warpwright {warpwright.__version__}; {datetime.date.today()};"
        f" `python -m benchmarks.translation.pairs_rate`, seed {SEED}.",
        "The load is that of the machine just before each run: where it is high, the machine was shared, and the rate is"
        " lower than on a quiet one. The CPU seconds, compilers included, hardly depend on that.",
        "",
        "| run | pairs | drafts | rejected | seconds | pairs a minute | CPU seconds a pair | CUDA texts that differ in more than sizes"
        " | median gain of the search | load before |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        result = row.result
        rejected = ", ".join(f"{name} {count}" for name, count in sorted(result.rejected.items())) or "0"
        counts = (row.what, result.pairs, result.drafts, rejected, f"{result.seconds:.0f}", f"{result.per_minute:.0f}", f"{row.cpu:.2f}", row.texts)
        cells = (*map(str, counts), f"{row.gain:.2f}x", f"{row.load:.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    faults = [reason for row in rows for reason in row.result.reasons]
    return "\n".join(
        [*lines, "", f"Faults of the generator (a half that was wrong, not built or crashed): {len(faults)}.", *(f"- {f[:200]}" for f in faults), ""]
    )


if __name__ == "__main__":
    main()

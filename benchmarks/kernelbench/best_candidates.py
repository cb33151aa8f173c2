"""The fastest verified candidate of each task in an archive, whatever its verdict: what a table that counts only FASTER leaves out.

    python -m benchmarks.kernelbench.best_candidates archive.db [archive.db ...] > table.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from warpwright.archive import Archive
from warpwright.base import Record, is_baseline


def best_candidates(paths: list[Path]) -> dict[str, Record]:
    """Return, by task name, the verified candidate with the largest speed-up over the best baseline."""
    best: dict[str, Record] = {}
    for path in paths:
        with Archive(path, readonly=True) as archive:
            for record in archive.records():
                known = best.get(record.task.name)
                if record.status == "ok" and not is_baseline(record) and (known is None or record.speedup > known.speedup):
                    best[record.task.name] = record
    return best


def row(record: Record) -> str:
    """Return one line of the table; times in milliseconds."""
    measured = record.measurement
    assert measured is not None, record.key
    eager, mine = measured.baselines["eager"].median, measured.candidate.median
    low, high = measured.interval
    recipe = "; ".join(map(str, record.candidate.actions))
    times = f"{eager * 1e3:.3g} | {measured.baselines[measured.best_baseline].median * 1e3:.3g} | {mine * 1e3:.3g}"
    return f"| {record.task.name} | {times} | {eager / mine:.2f}x | {measured.speedup:.2f}x [{low:.2f}, {high:.2f}] | {measured.verdict} | {recipe} |"


def main() -> None:
    found = best_candidates([Path(name) for name in sys.argv[1:]])
    print("| task | eager ms | best baseline ms | candidate ms | over eager | over best [95 %] | verdict | recipe |\n| --- |" + " --- |" * 7)
    ordered = sorted(found.values(), key=lambda record: -record.speedup)
    print("\n".join(row(record) for record in ordered if record.measurement is not None))


if __name__ == "__main__":
    main()

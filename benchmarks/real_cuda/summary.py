"""Join the rows of runs into the tables of a result: `python -m benchmarks.real_cuda.summary SET=rows.jsonl ... > results/real_cuda/rows.jsonl`.

SET names what a file holds, such as `held-out third`; several files are joined with `+`. Of a program that is there twice the last row counts.
Rows of kernels (kernels.py, answers.py) are told by what they have: SET is the folder's name then.
"""

from __future__ import annotations

import argparse
import collections
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

GOOD = ("passed", "checked", "ran")
MISSES = ("waived", "wants arguments", "needs data", "needs memory", "timeout", "wrong", "crashed", "not compiled", "refused", "failed")
STATUSES = (*GOOD, "compiles", *MISSES)
ANSWERS = ("right", "wrong", "crashed", "failed", "not compiled", "refused", "no reference")
LIBRARY = ("translated", "not compiled", "refused", "failed")


def rows_of(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the last row of each program of some files, by where it is from."""
    rows = (json.loads(line) for path in paths for line in path.read_text().splitlines())
    last = {(row["from"], row["program"]): row for row in rows}
    return [last[key] for key in sorted(last)]


def summary(name: str, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a line for each folder of a set: how many programs came to which status."""
    for folder in dict.fromkeys(row["from"] for row in rows):
        counts = collections.Counter(row["status"] for row in rows if row["from"] == folder)
        inside = sum(counts.values()) - counts["out of scope"]
        yield {"table": "summary", "set": name, "folder": folder, "in scope": inside, **{status: counts[status] or "" for status in STATUSES}}


def program(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of one program."""
    tiers = ", ".join(f"{count} {tier}" for tier, count in sorted(row["tiers"].items()))
    return {"table": "programs", "set": name, "folder": row["from"], "program": row["program"], "status": row["status"], "kernels by tier": tiers}


def miss(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of a program that did not run to its end with a good answer."""
    cause = row["cause"].replace("|", "/").replace("\n", " ")[:180]
    return {"table": "misses", "set": name, "folder": row["from"], "program": row["program"], "status": row["status"], "cause": cause}


def kernels(name: str, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the lines of kernels that were translated, or called and compared: counts with and without tensor cores, and each miss."""
    called = any(row["status"] == "right" for row in rows)
    last = list({(row["kernel"], row["file"] if called else ""): row for row in rows}.values())
    table, statuses = ("answers", ANSWERS) if called else ("library", LIBRARY)
    for tensor in (False, True):
        counts = collections.Counter(row["status"] for row in last if row["tensor"] == tensor)
        if counts:
            numbers = {status: counts[status] or "" for status in statuses}
            yield {"table": table, "folder": name, "tensor cores": "yes" if tensor else "no", "kernels": sum(counts.values()), **numbers}
    for row in last:
        if row["status"] not in ("right", "translated", "no reference"):
            cause = row.get("cause", "").replace("|", "/").replace("\n", " ")[:180]
            where = {"folder": name, "file": row["file"], "kernel": row["kernel"]}
            yield {"table": f"{table}-misses", **where, "status": row["status"], "cause": cause}


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sets", nargs="+", metavar="SET=FILE")
    for one in parser.parse_args().sets:
        name, _, file = one.partition("=")
        if "kernel" in json.loads(Path(file.partition("+")[0]).read_text().partition("\n")[0]):
            every = [json.loads(line) for path in file.split("+") for line in Path(path).read_text().splitlines()]
            print("\n".join(map(json.dumps, kernels(name, every))))
            continue
        rows = rows_of(map(Path, file.split("+")))
        inside = [row for row in rows if row["status"] != "out of scope"]
        lines = [*summary(name, rows)]
        if not any(row["status"] == "compiles" for row in rows):  # of a run that only reads, the counts are enough
            lines += [*(program(name, row) for row in inside), *(miss(name, row) for row in inside if row["status"] not in GOOD)]
        print("\n".join(map(json.dumps, lines)))


if __name__ == "__main__":
    main()

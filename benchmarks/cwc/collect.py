"""Put what runs of h200.sh brought back into a result's rows.

    python -m benchmarks.cwc.collect RESULTS cwc-RUN.tgz ... [--images FOLDER] [--beside RESULTS]

Rows of trainings and of single trainings are made anew from the stores in all archives together, each training once, and stand beside those that
RESULTS/rows.jsonl has of other tables. `--images` is an --out of benchmarks.cwc.cifar whose part `images` was run elsewhere; how fast the images were
protected there is left out. Then front.svg, in which `--beside` lends the points of another result, and the tables of README.md.
"""

from __future__ import annotations

import argparse
import json
import re
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.cwc import cifar_rows, front

SETS = {"c10": "CIFAR-10", "c100": "CIFAR-100", "im64": "Imagenette, 64 pixels"}
"""Folders of a run, and what their sets are called."""

_TABLES = ("trainings", "singles", "verify", "parts", "failures")

_VERIFY = re.compile(r"^verify: code (\d+), ([\d.]+) s$", re.M)

Row = dict[str, Any]


def unpack(archives: Sequence[Path], folder: Path) -> None:
    """Put the stores and the notes of all archives together; those of a run that went on from another one hold what that one did, too."""
    for number, archive in enumerate(archives):
        own = folder / f"archive {number}"
        with tarfile.open(archive) as opened:
            opened.extractall(own, filter="data")
        for short in SETS:
            if (own / short).is_dir():
                (folder / short).mkdir(exist_ok=True)
            for file in sorted((own / short).glob("store-*.jsonl")):
                file.rename(folder / short / f"store-{number}-{file.name}")
            told = own / short / "verify.txt"
            if told.exists():
                told.replace(folder / short / told.name)
            notes = own / short / cifar_rows.NOTES
            if notes.exists():
                with (folder / short / cifar_rows.NOTES).open("a") as together:
                    together.write(notes.read_text())


def of_run(folder: Path) -> list[Row]:
    """Return the rows of the sets of what was unpacked."""
    rows: list[Row] = []
    for short, name in SETS.items():
        out = folder / short
        if not out.is_dir():
            continue
        rows += [{"table": "trainings", **row} for row in cifar_rows.trainings(out, name)]
        rows += [{"table": "singles", "set": name, **row} for row in cifar_rows.singles(out)]
        told = out / "verify.txt"
        for code, seconds in _VERIFY.findall(told.read_text()) if told.exists() else []:
            rows.append({"table": "verify", "set": name, "code": int(code), "seconds": float(seconds)})
        noted = {json.dumps({"table": table, "set": name, **row}): None for table in ("parts", "failures") for row in cifar_rows.noted(out, table)}
        rows += map(json.loads, noted)
    return rows


def of_images(folder: Path) -> list[Row]:
    """Return how each preset's images differ from the clean ones, by set."""
    rows = []
    for short, name in SETS.items():
        for row in {row["preset"]: row for row in cifar_rows.noted(folder / short, "images")}.values():
            rows.append({"table": "images", "set": name, **{key: value for key, value in row.items() if not key.startswith("images/s")}})
    return rows


def merged(old: Iterable[Row], new: Iterable[Row], made: Sequence[str]) -> list[Row]:
    """Return old rows but those of the tables `made`, then the new ones, a table after the other."""
    rows = [row for row in old if row["table"] not in made] + list(new)
    order = list(dict.fromkeys([*_TABLES, "images", *(row["table"] for row in rows)]))
    return sorted(rows, key=lambda row: order.index(row["table"]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Collect."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, metavar="RESULTS")
    parser.add_argument("archives", type=Path, nargs="*", metavar="cwc-RUN.tgz")
    parser.add_argument("--images", type=Path, metavar="FOLDER")
    parser.add_argument("--beside", type=Path, nargs="*", default=[], metavar="RESULTS")
    options = parser.parse_args(arguments)
    options.results.mkdir(parents=True, exist_ok=True)
    file = options.results / "rows.jsonl"
    new: list[Row] = []
    with tempfile.TemporaryDirectory() as unpacked:
        unpack(options.archives, Path(unpacked))
        new += of_run(Path(unpacked))
    new += of_images(options.images) if options.images else []
    made = (*(_TABLES if options.archives else ()), *(("images",) if options.images else ()))
    rows = merged(tables.rows_of(options.results) if file.exists() else [], new, made)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    print(f"{len(rows)} rows, {len(new)} of them new")
    return front.main([str(options.results), *map(str, options.beside)])


if __name__ == "__main__":
    raise SystemExit(main())

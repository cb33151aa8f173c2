"""Put what runs of h200.sh brought back into a result's rows.

    python -m benchmarks.cwc.collect RESULTS cwc-RUN.tgz ... [--images FOLDER] [--beside RESULTS]

Trainings of the archives join those of RESULTS/rows.jsonl, each once, an archive's instead of a row's; rows of kinds of trainings are made anew
from them all. Rows of verify, parts and failures are added, those of other tables stay. `--images` is an --out of benchmarks.cwc.cifar whose part
`images` was run elsewhere; how fast the images were protected there is left out. Then front.svg, in which `--beside` lends the points of another
result, and the tables of README.md.
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

_NOTED = ("pretrained", "parts", "failures")

_ADDED = ("verify", "verified", *_NOTED)

_TABLES = ("trainings", "singles", *_ADDED)

_VERIFY = re.compile(r"^verify: code (\d+), ([\d.]+) s$", re.M)

_DONE = re.compile(r"^ *(\d+) s  (\d+) of (\d+) trainings  (.+): ([\d.]+) %$", re.M)
"""What `warpwright verify` says of a training that has ended."""

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


def of_run(folder: Path, old: Sequence[Row]) -> list[Row]:
    """Return the rows of the sets of what was unpacked, and of what the page told of before."""
    rows: list[Row] = []
    for short, name in SETS.items():
        out, own = folder / short, [row for row in old if row.get("set") == name]
        done = cifar_rows.told(own) | cifar_rows.finished(out)
        rows += [{"table": "trainings", **row} for row in cifar_rows.trainings(done.values(), name)]
        rows += [{"table": "singles", "set": name, **row} for row in cifar_rows.singles(done.values())]
        rows += [row for row in own if row["table"] in _ADDED]
        rows += [{"set": name, **row} for row in verified(out / "verify.txt")]
        rows += [{"table": table, "set": name, **row} for table in _NOTED for row in cifar_rows.noted(out, table)]
    return list(map(json.loads, dict.fromkeys(map(json.dumps, rows))))


def verified(told: Path) -> list[Row]:
    """Return how long `warpwright verify` took by what it printed, how much of it that was, and when each of its trainings had ended."""
    text = told.read_text() if told.exists() else ""
    ended = [match.groups() for match in _DONE.finditer(text)]
    rows = [{"table": "verified", "training": key, "clean test %": accuracy, "ended at s": int(at)} for at, _, _, key, accuracy in ended]
    share = f"{ended[-1][1]} of {ended[-1][2]}" if ended else ""
    return [{"table": "verify", "code": int(code), "seconds": float(seconds), "trainings": share} for code, seconds in _VERIFY.findall(text)] + rows


def of_images(folder: Path) -> list[Row]:
    """Return how each preset's images differ from the clean ones, by set."""
    rows = []
    for short, name in SETS.items():
        for row in {row["preset"]: row for row in cifar_rows.noted(folder / short, "images")}.values():
            rows.append({"table": "images", "set": name, **{key: value for key, value in row.items() if not key.startswith("images/s")}})
    return rows


def merged(old: Iterable[Row], trained: Iterable[Row], images: Iterable[Row]) -> list[Row]:
    """Return the rows of trainings as they are now, and the others with those of images that were measured anew, a table after the other."""
    rows = [*trained, *(row for row in old if row["table"] not in _TABLES)]
    order = list(dict.fromkeys([*_TABLES, "images", *(row["table"] for row in rows)]))
    measured = {(row["set"], row["preset"]): row for row in [*rows, *images] if row["table"] == "images"}
    return sorted([*(row for row in rows if row["table"] != "images"), *measured.values()], key=lambda row: order.index(row["table"]))


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
    old = tables.rows_of(options.results) if file.exists() else []
    with tempfile.TemporaryDirectory() as unpacked:
        unpack(options.archives, Path(unpacked))
        trained = of_run(Path(unpacked), old)
    rows = merged(old, trained, of_images(options.images) if options.images else [])
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    print(f"{len(rows)} rows, {len(old)} before")
    return front.main([str(options.results), *map(str, options.beside)])


if __name__ == "__main__":
    raise SystemExit(main())

"""Kernels of public repositories on a GPU: their programs are made where libclang is, and run where there is a GPU.

    python -m benchmarks.cuda.outside_gpu --prepare FOLDER [FOLDER ...] --prepared FILE       anywhere: tasks as benchmarks.cuda.outside takes them
    python -m benchmarks.cuda.outside_gpu --prepared FILE --seconds 60 --out OUT              on the GPU: what benchmarks.cuda.plain20 does, for these
    python -m benchmarks.cuda.outside_gpu --summary RUN --sources FOLDER ... --out RESULT     anywhere: the rows of a result from those of a run

FILE holds the sources, own headers in their places, and is not committed. A row "read" says of each task how many programs it has, or why it was not
read.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cuda import plain20
from benchmarks.cuda.outside import found, short
from warpwright import domains
from warpwright.domains.cuda import taskfile
from warpwright.errors import WarpwrightError


def prepared(source: Path) -> dict[str, Any]:
    """Return a task's texts and its programs; or why it was not read."""
    beside = source.with_name(f"{source.stem}_task.py")
    made: dict[str, Any] = {"cuda": taskfile.whole(source), "task": beside.read_text(), "programs": []}
    try:
        space = domains.space(domains.describe(source), "cuda")
    except WarpwrightError as error:
        return {**made, "reason": short(str(error))}
    if space.limited:
        return {**made, "reason": short(space.limited)}
    for recipe in plain20.recipes(space):
        plan = space.replay(recipe)
        made["programs"].append({"recipe": [str(a) for a in recipe], "text": plan.text, "flags": list(plan.flags)})
    return made


def summary(rows: Sequence[dict[str, Any]], sources: dict[str, dict[str, str]]) -> list[dict[str, Any]]:
    """Return a row for each kernel, and one of all: a program is right that errs at most twice as much as the text as given."""
    made = []
    for read in (row for row in rows if row["table"] == "read"):
        name = read["task"]
        probed = [row for row in rows if row["table"] == "probe" and row["task"] == name]
        timed = [row for row in probed if "us" in row]
        line: dict[str, Any] = {"table": "outside", "kernel": name, **sources.get(name, {"repository": "", "file": ""})}
        line |= {"read": "yes" if read["programs"] else "no", "programs": len(probed[1:]), "right": 0}
        line |= {"as given us": "", "best us": "", "speed-up": ""}
        if timed and timed[0]["recipe"] == []:
            right = [row for row in timed[1:] if row["error"] <= 2 * timed[0]["error"] + 1e-6]
            best = min(right, key=lambda row: row["us"], default=None)
            line |= {"right": len(right), "as given us": round(timed[0]["us"], 1)}
            if best is not None:
                line |= {"best us": round(best["us"], 1), "speed-up": round(timed[0]["us"] / best["us"], 2), "recipe": ", ".join(best["recipe"])}
        audit = next((row for row in rows if row["table"] == "audit" and row["task"] == name), {"status": "", "reason": ""})
        failed = next((row["failure"].strip().splitlines()[-1] for row in probed if "failure" in row), "")
        refused = (audit.get("reason") or "").strip().splitlines()
        made.append({**line, "verifier": audit["status"], "reason": short(read["reason"] or failed or (refused[-1] if refused else ""))})
    faster = [row["speed-up"] for row in made if row["speed-up"] != "" and row["speed-up"] >= FASTER]
    mean = math.exp(sum(map(math.log, faster)) / len(faster)) if faster else 0.0
    total = {
        "table": "summary", "kernels": len(made), "read": sum(row["read"] == "yes" for row in made),
        "with a right program": sum(row["right"] > 0 for row in made), "made faster": len(faster), "geometric mean of the faster": round(mean, 2),
        "programs": sum(row["programs"] for row in made), "of these right": sum(row["right"] for row in made),
        "verified": sum(row["verifier"] == "ok" for row in made),
    }  # fmt: skip
    return [total, *made]


FASTER = 1.05
"""Below that a difference of two medians of seven calls says nothing."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the programs, run them, or sum up a run."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0], add_help=False)
    parser.add_argument("--prepare", nargs="+", type=Path)
    parser.add_argument("--prepared", type=Path, default=Path("outside.json.gz"))
    parser.add_argument("--summary", type=Path)
    parser.add_argument("--sources", nargs="+", type=Path, default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--kernels", default="", help="only these, by name")
    own, rest = parser.parse_known_args(given)
    if own.summary and own.out:
        sources = {name: one for folder in own.sources for name, one in json.loads((folder / "sources.json").read_text()).items()}
        own.out.mkdir(parents=True, exist_ok=True)
        made_rows = summary([json.loads(line) for line in (own.summary / "rows.jsonl").read_text().splitlines()], sources)
        (own.out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made_rows))
        return 0
    if own.prepare:
        made = {source.stem: prepared(source) for folder in own.prepare for source in found(folder)}
        own.prepared.parent.mkdir(parents=True, exist_ok=True)
        own.prepared.write_bytes(gzip.compress(json.dumps(made).encode(), mtime=0))
        for name, one in made.items():
            print(f"{name:26} {len(one['programs']):3} programs  {one.get('reason', '')}")
        return 0
    if own.out is None:
        parser.error("expected --out FOLDER, or --prepare FOLDER")
    known = json.loads(gzip.decompress(own.prepared.read_bytes()))
    known = {name: one for name, one in known.items() if not own.kernels or name in own.kernels.split(",")}
    own.out.mkdir(parents=True, exist_ok=True)
    with open(own.out / "rows.jsonl", "a") as file:
        for name, one in known.items():
            file.write(json.dumps({"table": "read", "task": name, "programs": len(one["programs"]), "reason": one.get("reason", "")}) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, one in known.items():
            if not one["programs"]:
                continue
            paths.append(Path(folder, f"{name}.cu"))
            paths[-1].write_text(one["cuda"])
            Path(folder, f"{name}_task.py").write_text(one["task"])
        programs = Path(folder, "programs.json.gz")
        programs.write_bytes(gzip.compress(json.dumps({name: one["programs"] for name, one in known.items()}).encode()))
        options = plain20.parsed([*rest, "--out", str(own.out), "--prepared", str(programs)])
        return plain20.run(paths, "cpu" if options.dry else options.target, options)


if __name__ == "__main__":
    raise SystemExit(main())

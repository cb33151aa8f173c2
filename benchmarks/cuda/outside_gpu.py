"""Kernels of public repositories on a GPU: their programs are made where libclang is, and run where there is a GPU.

    python -m benchmarks.cuda.outside_gpu --prepare FOLDER [FOLDER ...] --prepared FILE       anywhere: tasks as benchmarks.cuda.outside takes them
    python -m benchmarks.cuda.outside_gpu --prepared FILE --seconds 60 --out OUT              on the GPU: what benchmarks.cuda.plain20 does, for these

FILE holds the sources, own headers in their places, and is not committed. A row "read" says of each task how many programs it has, or why it was not
read.
"""

from __future__ import annotations

import argparse
import gzip
import json
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the programs, or run them."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0], add_help=False)
    parser.add_argument("--prepare", nargs="+", type=Path)
    parser.add_argument("--prepared", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    own, rest = parser.parse_known_args(given)
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

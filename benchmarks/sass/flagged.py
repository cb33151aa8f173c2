"""Compile the kernels of this folder for `benchmarks.sass.suite --folder`: as they are, and under the flags that an earlier run found fastest.

    python -m benchmarks.sass.flagged --rows benchmarks/results/sass_h200/rows.jsonl --out FOLDER
    python -m benchmarks.sass.suite --folder FOLDER --start benchmarks/results/sass_h200/schedules --limit 50 --out OUT

Each NAME.cubin is a search of its own with its harness NAME.py; NAME__flags.cubin is the same kernel under other flags, as flags.json says. What the
flags have unrolled into more than MOST instructions is measured and not searched: a search of seconds gets nowhere there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.sass.build import HERE, KERNELS, PLAIN, build
from benchmarks.sass.replay import flags_of
from warpwright.domains.sass.code.cubin import Cubin

MOST = 1200


def best_flags(rows: Path) -> Mapping[str, str]:
    """Return the flags that gained for each kernel, as the rows of the table "flags" tell."""
    every = [json.loads(line) for line in rows.read_text().splitlines()]
    return {row["kernel"]: row["flags"] for row in every if row.get("table") == "flags" and flags_of(row["flags"]) != PLAIN}


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--arch", default="90a")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    found, told = best_flags(given.rows), {}
    with tempfile.TemporaryDirectory() as folder:
        for kernel in KERNELS:
            shutil.copy(build(kernel, Path(folder), given.arch), given.out / f"{kernel}.cubin")
            shutil.copy(HERE / "harnesses" / f"{kernel}.py", given.out / f"{kernel}.py")
            if kernel in found:
                name = f"{kernel}__flags"
                shutil.copy(build(kernel, Path(folder), given.arch, flags_of(found[kernel])), given.out / f"{name}.cubin")
                shutil.copy(HERE / "harnesses" / f"{kernel}.py", given.out / f"{name}.py")
                read = Cubin((given.out / f"{name}.cubin").read_bytes())
                told[name] = {"of": kernel, "flags": found[kernel], "searched": len(read.words(read.kernels[0])) <= MOST}
                print(name, told[name])
    (given.out / "flags.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()

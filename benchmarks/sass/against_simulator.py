"""Does the simulator know which schedules are faster? Its gain beside the measured one, for each schedule that a run of the suite accepted.

    python -m benchmarks.sass.against_simulator --run RUN --folder CUBINS --out OUT      no GPU is needed

The last row is the rank correlation (Spearman) of the two over all of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.sass.replay import accepted
from benchmarks.sass.rows import percent
from warpwright import domains
from warpwright.domains.sass import script
from warpwright.domains.sass.domain import kernel_of
from warpwright.domains.sass.model.simulator import cycles
from warpwright.targets.cubin.simulated import WARPS


def ranks(values: Sequence[float]) -> list[float]:
    """Return the place of each value among all, the same for equal ones."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def main() -> None:
    """Add the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    pairs = []
    with (given.out / "rows.jsonl").open("a") as rows:
        for name, _, gain, text in accepted(given.run):
            task = domains.describe(given.folder / f"{name}.cubin", {"kernel": json.loads(text.read_text())["kernel"]})
            kernel = kernel_of(task)
            simulated = cycles(kernel.original, WARPS) / cycles(script.read(text.read_text(), kernel), WARPS)
            pairs.append((gain, simulated))
            row = {"table": "simulator", "kernel": name, "measured gain %": percent(gain), "simulated gain %": percent(simulated)}
            rows.write(json.dumps(row) + "\n")
            print(row, flush=True)
        both = statistics.correlation(*map(ranks, zip(*pairs, strict=True)))
        row = {"table": "simulator", "kernel": f"rank correlation of {len(pairs)}", "measured gain %": "", "simulated gain %": f"{both:+.2f}"}
        rows.write(json.dumps(row) + "\n")
        print(row)


if __name__ == "__main__":
    main()

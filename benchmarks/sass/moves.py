"""What accepted schedules have changed, in numbers: loads moved, barriers passed, stalls, yields, scoreboards, waits.

python -m benchmarks.sass.moves --run RUN --out OUT [--folder CUBINS]      RUN: what benchmarks.sass.suite wrote; no GPU is needed
"""

from __future__ import annotations

import argparse
import json
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.sass.build import build
from benchmarks.sass.replay import accepted
from warpwright import domains
from warpwright.domains.sass import script
from warpwright.domains.sass.code import control
from warpwright.domains.sass.code.kernel import Kernel, Schedule
from warpwright.domains.sass.domain import kernel_of


def main() -> None:
    """Write a row for each accepted schedule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", type=Path, help="where the run's cubins lie, NAME.cubin; otherwise they are built")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, (given.out / "rows.jsonl").open("w") as rows:
        for name, flags, gain, text in accepted(given.run):
            try:
                cubin = given.folder / f"{name}.cubin" if given.folder else build(name, Path(folder), flags=flags)
                kernel = json.loads(text.read_text())["kernel"]
                schedule = script.read(text.read_text(), kernel_of(domains.describe(cubin, {"kernel": kernel})))
                row = {"table": "moves", "kernel": name, "gain %": f"{100 * (gain - 1):+.2f}", **changes(schedule)}
            except Exception as error:  # the next one is worth a look
                traceback.print_exc()
                row = {"table": "moves", "kernel": name, "error": f"{type(error).__name__}: {error}"[:200]}
            rows.write(json.dumps(row) + "\n")
            print(row, flush=True)


def changes(schedule: Schedule) -> dict[str, Any]:
    """Return what differs from the compiler's schedule in the deepest loops, or everywhere where there is none."""
    kernel = schedule.kernel
    inside = hot(kernel)
    where = {index: place for place, index in enumerate(schedule.order)}
    loads = [index for index in inside if kernel.instructions[index].base in ("LDG", "LDS", "LDSM", "LDGSTS")]
    moved = [where[index] - index for index in loads if where[index] != index]
    before, after = [kernel.words[index] for index in inside], [schedule.words[where[index]] for index in inside]
    pairs = list(zip(before, after, strict=True))
    return {
        "instructions": len(inside),
        "moved": sum(where[index] != index for index in inside),
        "loads up": sum(by < 0 for by in moved),
        "loads down": sum(by > 0 for by in moved),
        "farthest": max(moved, key=abs, default=0),
        "loads that passed a barrier": passed(kernel, loads, where),
        "cycles of stalls": f"{sum(map(control.stall, before))} to {sum(map(control.stall, after))}",
        "yields": f"{sum(not control.held(word) for word in before)} to {sum(not control.held(word) for word in after)}",
        "other scoreboards": sum(control.write_board(one) != control.write_board(other) for one, other in pairs),
        "waits added": sum((control.waits(other) & ~control.waits(one)).bit_count() for one, other in pairs),
        "reuse flags dropped": sum((control.reused(one) & ~control.reused(other)).bit_count() for one, other in pairs),
    }


def hot(kernel: Kernel) -> list[int]:
    """Return the instructions of the deepest loops."""
    deepest = max(kernel.depth)
    return [place for number, block in enumerate(kernel.blocks) if kernel.depth[number] == deepest for place in block]


def passed(kernel: Kernel, loads: Sequence[int], where: dict[int, int], base: str = "BAR") -> int:
    """Return how many loads stand on the other side of a barrier (or another operation, `base`) of their block."""
    barriers = [instruction.index for instruction in kernel.instructions if instruction.base == base]
    same = {barrier: kernel.block_of[barrier] for barrier in barriers}
    return sum(
        any(same[barrier] == kernel.block_of[load] and (load < barrier) != (where[load] < where[barrier]) for barrier in barriers) for load in loads
    )


if __name__ == "__main__":
    main()

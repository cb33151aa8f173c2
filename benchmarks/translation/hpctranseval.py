"""HPCTransEval's items judged one after another, correctness only: each is built and judged before the next, and its row is written as it ends.

    python -m benchmarks.translation.hpctranseval --suite HPCTransCompile --out rows.jsonl --only '^IndependentOperator/[a-b]'

`warpwright bench-transpile --seconds 0` judges by the same rule, but builds all items first and writes one report at its end: a run that is cut off
leaves nothing. With --part 0/2 and --part 1/2 two processes share the items. What has a row in OUT is left out: a second call resumes.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from warpwright.translation import bench
from warpwright.translation.items import Item
from warpwright.translation.suites import hpctranseval

SETTINGS = bench.Settings(seconds=0)


def main() -> None:
    """Judge what is left to judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=Path, required=True, help="the repository HPCTransCompile, or its folder HPCTransEval")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="a regular expression, as IndependentOperator/abs")
    parser.add_argument("--part", default="0/1", help="of the items: every second one, beginning with the first, is 0/2")
    given = parser.parse_args()
    first, step = map(int, given.part.split("/"))
    known = {json.loads(line)["name"] for line in given.out.read_text().splitlines()} if given.out.exists() else set()
    for item in hpctranseval.load(given.suite, given.only)[first::step]:
        if item.name not in known:
            row = judged(item)
            with given.out.open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(row["name"], row["status"], row["reason"], f"{row['took_s']} s", flush=True)


def judged(item: Item) -> dict[str, Any]:
    """Return the compiler's row for an item: status and reason, what the control's status was, and how many seconds it took."""
    begun = time.monotonic()
    wired, translations = bench.make_ready(item, [], SETTINGS)
    control, compiler = bench.judge_item(wired, translations, SETTINGS)
    took = round(time.monotonic() - begun, 1)
    return {
        "name": item.name, "family": item.family, "status": compiler.status, "reason": compiler.reason, "control": control.status, "took_s": took,
    }  # fmt: skip


if __name__ == "__main__":
    main()

"""Who needs an answer of the original first: a whole one to say that a case is sound, or an output that is compared.

    python -m benchmarks.kernelbench.first_asked --kernelbench KB --tasks 1:62,1:69 --scale 0.001 --proposals 3 --out OUT [--device cuda]

Of a whole answer three runs of the original are the price, one of them with operands rounded to TF32 where the flags permit that; of a sketch, which
is what an output of a timed call is judged by first, it is one. One row a search of so many proposals in OUT/rows.jsonl: pairs of a case and a state
by who asked for them first.

    sound       whether the case can be used: that its error is below 1 % is known only with all runs
    compared    outputs of checked calls, and what they left of the state, of inputs that were not asked about before: nominal ones
    certified   the nominal inputs of the certificate
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.kernelbench.first import found, name_of
from warpwright.api import optimize_task
from warpwright.run import Settings
from warpwright.verifier.judge_client import Judge

BY = {"viable": "sound", "settle": "sound", "certify": "certified", "compare": "compared", "compare_state": "compared"}


class FirstAsked:
    """Counts pairs of a case and a state by what asks for their answer first, over all that one judge is asked."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.counts: Counter[str] = Counter()

    def note(self, op: str, fields: Mapping[str, Any]) -> None:
        """Take in a request to a judge."""
        cases = fields["cases"][:1] if op == "certify" else [fields["case"]] if op in BY else []
        for case in cases:
            pair = json.dumps([case, fields.get("which", 0)], sort_keys=True)
            self.counts[BY[op]] += pair not in self.seen
            self.seen.add(pair)


@contextmanager
def counting(counted: FirstAsked) -> Iterator[None]:
    """Have every request to a judge of this process noted."""
    ask = Judge._ask

    def noted(judge: Judge, op: str, timeout: float | None = None, **fields: Any) -> dict[str, Any]:
        counted.note(op, fields)
        return ask(judge, op, timeout, **fields)

    with patch.object(Judge, "_ask", noted):
        yield


def main() -> None:
    """Write a row for each task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelbench", required=True, type=Path)
    parser.add_argument("--tasks", required=True, help="level:number pairs or files, comma-separated")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--proposals", type=int, default=3)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    settings = Settings(device=options.device, scale=options.scale, budget=f"{options.proposals} proposals", baselines=("eager",))
    with (options.out / "rows.jsonl").open("a") as out:
        for file in (file for name in options.tasks.split(",") for file in found(options.kernelbench, name)):
            counted = FirstAsked()
            with counting(counted):
                optimize_task(settings.describe(file), settings, options.out / "archive.db", options.out / file.stem, again=True)
            told = {"device": options.device, "scale": options.scale, "proposals": options.proposals}
            row = {"table": "first_asked", "task": name_of(file), **told, **{name: counted.counts[name] for name in sorted(set(BY.values()))}}
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()

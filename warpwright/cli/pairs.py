"""The verb `pairs`: generate verified (CUDA, C) pairs."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from warpwright.cli.common import INTERRUPTED, Verb, positive, print_json
from warpwright.errors import UsageError


def pairs(given: argparse.Namespace) -> int:
    """Generate verified pairs of CUDA and C programs as parquet."""
    from warpwright.translation.pairs import generate
    from warpwright.translation.pairs.definitions import random_graphs as graphs  # noqa: F401 (graphs: registers all of the table)
    from warpwright.translation.pairs.definitions.operators import OPERATORS
    from warpwright.translation.pairs.draft import Options

    names = tuple(filter(None, (given.operators or "").split(",")))
    unknown = [name for name in names if name not in OPERATORS]
    if unknown:
        raise UsageError(f"expected operators of the table, saw {', '.join(unknown)}", f"known: {', '.join(sorted(OPERATORS))}")
    count = given.count if given.count is not None or given.minutes is not None else 1000
    options = Options(given.seed, 1 if given.no_tune else given.tune, names, not given.no_cuda)
    try:
        result = generate.generate(Path(given.out), count, given.minutes, options, given.jobs, given.resume, tell=given.console.print)
    except KeyboardInterrupt:
        given.console.print(f"interrupted; what was verified is in {given.out}, and --resume goes on")
        return INTERRUPTED
    for reason in result.reasons:
        given.console.print(f"fault: {reason[:500]}", markup=False)
    said: dict[str, Any] = {
        "folder": given.out, "pairs": result.pairs, "drafts": result.drafts, "per_minute": result.per_minute, "seconds": result.seconds,
        "rejected": dict(result.rejected), "faults": result.reasons,
    }  # fmt: skip
    if given.json:
        print_json(given, said)
    else:
        given.console.print(
            f"{result.pairs} pairs of {result.drafts} drafts in {result.seconds:.0f} s ({result.per_minute:.0f} a minute) in {given.out}"
        )
    return 0 if result.pairs or given.resume else 1


def register(verb: Verb) -> None:
    """Add the verb to the command line."""
    made = verb("pairs", pairs)
    made.add_argument("--out", required=True, metavar="DIR", help="folder of the data set")
    made.add_argument("--count", type=positive, help="pairs in the data set (1000, unless --minutes is given)")
    made.add_argument("--seed", type=int, default=0, help="the same seed gives the same programs (%(default)s)")
    made.add_argument("--minutes", type=float, help="stop after this long")
    made.add_argument("--resume", action="store_true", help="go on with the data set that DIR holds")
    made.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, help="processes (%(default)s)")
    made.add_argument("--operators", metavar="NAME,...", help="start from these operators only (all)")
    made.add_argument("--tune", type=positive, default=4, metavar="N", help="loop schedules of the C half to time (%(default)s)")
    made.add_argument("--no-tune", action="store_true", help="take the usual loop schedule: the same as --tune 1")
    made.add_argument("--no-cuda", action="store_true", help="do not run the CUDA half (the data card says so)")

"""The verb `pairs`: generate verified (CUDA, C) pairs."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from warpwright.cli.common import INTERRUPTED, Verb, positive, print_json
from warpwright.errors import UsageError


def pairs(arguments: argparse.Namespace) -> int:
    """Generate verified pairs of CUDA and C programs as parquet."""
    from warpwright.translation.pairs import generate
    from warpwright.translation.pairs.definitions import random_graphs as graphs  # noqa: F401 (graphs: registers all of the table)
    from warpwright.translation.pairs.definitions.operators import OPERATORS
    from warpwright.translation.pairs.draft import Options

    names = tuple(filter(None, (arguments.operators or "").split(",")))
    unknown = [name for name in names if name not in OPERATORS]
    if unknown:
        raise UsageError(f"expected operators of the table, saw {', '.join(unknown)}", f"known: {', '.join(sorted(OPERATORS))}")
    count = arguments.count if arguments.count is not None or arguments.minutes is not None else 1000
    options = Options(arguments.seed, 1 if arguments.no_tune else arguments.tune, names, not arguments.no_cuda)
    try:
        out, tell = Path(arguments.out), arguments.console.print
        result = generate.generate(out, count, arguments.minutes, options, arguments.jobs, arguments.resume, tell=tell)
    except KeyboardInterrupt:
        arguments.console.print(f"interrupted; the verified pairs are in {arguments.out}; continue with --resume")
        return INTERRUPTED
    for reason in result.reasons:
        arguments.console.print(f"fault: {reason[:500]}", markup=False)
    summary: dict[str, Any] = {
        "folder": arguments.out, "pairs": result.pairs, "drafts": result.drafts, "per_minute": result.per_minute, "seconds": result.seconds,
        "rejected": dict(result.rejected), "faults": result.reasons,
    }  # fmt: skip
    if arguments.json:
        print_json(arguments, summary)
    else:
        arguments.console.print(
            f"{result.pairs} pairs of {result.drafts} drafts in {result.seconds:.0f} s ({result.per_minute:.0f} a minute) in {arguments.out}"
        )
    return 0 if result.pairs or arguments.resume else 1


def register(verb: Verb) -> None:
    """Add the verb to the command line."""
    parser = verb("pairs", pairs)
    parser.add_argument("--out", required=True, metavar="DIR", help="folder of the data set")
    parser.add_argument("--count", type=positive, help="pairs in the data set (1000, unless --minutes is given)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same programs (%(default)s)")
    parser.add_argument("--minutes", type=float, help="stop after this long")
    parser.add_argument("--resume", action="store_true", help="continue the data set in DIR")
    parser.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, help="processes (%(default)s)")
    parser.add_argument("--operators", metavar="NAME,...", help="start from these operators only (all)")
    parser.add_argument("--tune", type=positive, default=4, metavar="N", help="loop schedules of the C half to time (%(default)s)")
    parser.add_argument("--no-tune", action="store_true", help="take the default loop schedule, like --tune 1")
    parser.add_argument("--no-cuda", action="store_true", help="do not run the CUDA half (the data card says so)")

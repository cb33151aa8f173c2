"""The verb `bench-transpile`: judge translators of CUDA to C on a suite."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from warpwright.cli.common import INTERRUPTED, Verb, print_json
from warpwright.errors import UsageError

SUITES = ("hpctranseval", "kernelbench-c")


def bench_transpile(given: argparse.Namespace) -> int:
    """Judge translators of CUDA to C (models, or the compiler) on a suite."""
    from warpwright.translation import report

    try:
        said = _report(given)
    except KeyboardInterrupt:
        given.console.print("interrupted; nothing was written (recorded answers are kept, builds are cached)")
        return INTERRUPTED
    text = report.markdown(said)
    if given.out:
        Path(given.out).write_text(text)
        Path(given.out).with_suffix(".json").write_text(json.dumps(said))
        given.console.print(f"wrote {given.out}")
    if given.json:
        print_json(given, said)
    elif not given.out:
        print(text)
    return 0 if said["valid"] or given.seconds == 0 or said["control"] is None else 1


def _report(given: argparse.Namespace) -> dict[str, Any]:
    from warpwright.llm import open_chat
    from warpwright.translation import bench, items, report
    from warpwright.translation.suites import hpctranseval, kernelbench_c

    if (given.suite is None) == (given.pairs is None):
        raise UsageError("expected one of --suite NAME PATH and --pairs PARQUET, saw both or none", "as in --suite hpctranseval FOLDER")
    if not given.model and not given.compiler:
        raise UsageError("expected someone to judge, saw neither --model nor --compiler", "add --compiler, or --model replay:FILE")
    if given.refine and not given.model:
        raise UsageError("expected a model to refine the compiler's output, saw none", "add --model")

    def tell(text: str) -> None:
        given.console.print(text, markup=False, highlight=False)

    settings = bench.Settings(given.seconds, given.threads, True, given.refine, given.jobs, given.seed)
    chats = [open_chat(spec, given.record) for spec in given.model or ()]
    if given.pairs:
        every = [item for item in items.from_pairs(Path(given.pairs)) if not given.only or given.only in item.name][: given.limit]
        return bench.run("pairs", every, chats, settings, tell)
    name, path = given.suite
    if name not in SUITES:
        raise UsageError(f"expected a suite of {', '.join(SUITES)}, saw {name!r}")
    if not Path(path).exists():
        raise UsageError(f"expected the folder of the suite, saw no {path}", "bring the HPCTransCompile repository and give its folder")
    if name == "kernelbench-c":
        if chats:
            raise UsageError("expected --compiler alone with kernelbench-c, saw --model", "the suite has no C reference to judge a model by")
        rows = kernelbench_c.run(Path(path), given.only or "", given.limit, given.jobs, tell)
        return report.as_json(name, rows, bench.conditions(settings))
    return bench.run(name, hpctranseval.load(Path(path), given.only or "", given.limit, tell), chats, settings, tell)


def register(verb: Verb) -> None:
    """Add the verb to the command line."""
    made = verb("bench-transpile", bench_transpile)
    made.add_argument("--suite", nargs=2, metavar=("NAME", "PATH"), help=f"{' or '.join(SUITES)}, and the folder of its repository")
    made.add_argument("--pairs", metavar="PARQUET", help="data set that `warpwright pairs` wrote: a file or a folder")
    made.add_argument("--model", action="append", metavar="SPEC", help="replay:FILE or openai:URL,MODEL; may be given again")
    made.add_argument("--record", metavar="FILE", help="keep the model's answers, to be played again with replay:FILE")
    made.add_argument("--compiler", action="store_true", help="judge the deterministic compiler alone; beside models it stands anyway")
    made.add_argument("--refine", action="store_true", help="give models the compiler's output to start from")
    made.add_argument("--only", metavar="TEXT", help="only items whose name has this in it (suites: a regular expression)")
    made.add_argument("--limit", type=int, help="at most this many items")
    made.add_argument("--seconds", type=float, default=1.0, help="for timing one candidate; 0: correctness only (%(default)s)")
    made.add_argument("--threads", type=int, default=1, help="OpenMP threads of every program (%(default)s)")
    made.add_argument("--jobs", type=int, default=1, help="items built at once, before anything is timed (%(default)s)")
    made.add_argument("--seed", type=int, default=0, help="of the order of timing (%(default)s)")
    made.add_argument("--out", metavar="FILE", help="write the report as markdown here, and as JSON beside it")

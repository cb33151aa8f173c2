"""The verb `bench-transpile`: judge translators of CUDA to C on a suite."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from warpwright.cli.common import INTERRUPTED, Verb, print_json
from warpwright.errors import UsageError

SUITES = ("hpctranseval", "kernelbench-c")


def bench_transpile(arguments: argparse.Namespace) -> int:
    """Judge translators of CUDA to C (models, or the compiler) on a suite."""
    from warpwright.translation import report

    try:
        result = _report(arguments)
    except KeyboardInterrupt:
        arguments.console.print("interrupted; nothing was written (recorded answers are kept, builds are cached)")
        return INTERRUPTED
    text = report.markdown(result)
    if arguments.out:
        Path(arguments.out).write_text(text)
        Path(arguments.out).with_suffix(".json").write_text(json.dumps(result))
        arguments.console.print(f"wrote {arguments.out}")
    if arguments.json:
        print_json(arguments, result)
    elif not arguments.out:
        print(text)
    return 0 if result["valid"] or arguments.seconds == 0 or result["control"] is None else 1


def _report(arguments: argparse.Namespace) -> dict[str, Any]:
    from warpwright.llm.opening import open_chat
    from warpwright.translation import bench, report
    from warpwright.translation.suites import hpctranseval, kernelbench_c, pairs

    if (arguments.suite is None) == (arguments.pairs is None):
        raise UsageError("expected one of --suite NAME PATH and --pairs PARQUET, saw both or none", "as in --suite hpctranseval FOLDER")
    if not arguments.model and not arguments.compiler:
        raise UsageError("expected a translator to judge, saw neither --model nor --compiler", "add --compiler, or --model replay:FILE")
    if arguments.refine and not arguments.model:
        raise UsageError("expected a model to refine the compiler's output, saw none", "add --model")

    def tell(text: str) -> None:
        arguments.console.print(text, markup=False, highlight=False)

    settings = bench.Settings(arguments.seconds, arguments.threads, True, arguments.refine, arguments.jobs, arguments.seed)
    chats = [open_chat(spec, arguments.record) for spec in arguments.model or ()]
    if arguments.pairs:
        every = [item for item in pairs.load(Path(arguments.pairs)) if not arguments.only or arguments.only in item.name][: arguments.limit]
        return bench.run("pairs", every, chats, settings, tell)
    name, path = arguments.suite
    if name not in SUITES:
        raise UsageError(f"expected a suite of {', '.join(SUITES)}, saw {name!r}")
    if not Path(path).exists():
        raise UsageError(f"expected the folder of the suite, saw no {path}", "bring the HPCTransCompile repository and give its folder")
    if name == "kernelbench-c":
        if chats:
            raise UsageError("expected --compiler alone with kernelbench-c, saw --model", "the suite has no C reference to judge a model by")
        rows = kernelbench_c.run(Path(path), arguments.only or "", arguments.limit, arguments.jobs, tell)
        return report.as_json(name, rows, bench.conditions(settings))
    return bench.run(name, hpctranseval.load(Path(path), arguments.only or "", arguments.limit, tell), chats, settings, tell)


def register(verb: Verb) -> None:
    """Add the verb to the command line."""
    parser = verb("bench-transpile", bench_transpile)
    parser.add_argument("--suite", nargs=2, metavar=("NAME", "PATH"), help=f"{' or '.join(SUITES)}, and the folder of its repository")
    parser.add_argument("--pairs", metavar="PARQUET", help="data set that `warpwright pairs` wrote: a file or a folder")
    parser.add_argument("--model", action="append", metavar="SPEC", help="replay:FILE, hf:FOLDER or openai:URL,MODEL; may be given again")
    parser.add_argument("--record", metavar="FILE", help="keep the model's answers, to be played again with replay:FILE")
    parser.add_argument("--compiler", action="store_true", help="judge the deterministic compiler alone; beside models it is judged anyway")
    parser.add_argument("--refine", action="store_true", help="give models the compiler's output to start from")
    parser.add_argument("--only", metavar="TEXT", help="only items whose name has this in it (suites: a regular expression)")
    parser.add_argument("--limit", type=int, help="at most this many items")
    parser.add_argument("--seconds", type=float, default=1.0, help="for timing one candidate; 0: correctness only (%(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="OpenMP threads of every program (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="items built at once, before anything is timed (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of timing (%(default)s)")
    parser.add_argument("--out", metavar="FILE", help="write the report as markdown here, and as JSON beside it")

"""The verbs of the policy: collect action data, train."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from warpwright import run
from warpwright.archive import Archive
from warpwright.cli.common import DONE, NOT_PASSED, Arguments, Verb, console, positive, print_json
from warpwright.errors import UsageError


def collect_verb(args: Arguments) -> int:
    """Run searches over tasks and write what became of each recipe, as rows that a policy learns from; or merge such files."""
    from warpwright.learn.policy import collect, random_tasks, rows

    out = Path(args.out)
    if out.suffix not in (".jsonl", ".parquet"):
        raise UsageError(f"expected --out with the ending .jsonl or .parquet, saw {out.name!r}")
    earlier = [row for name in args.merge for row in rows.read(Path(name))]
    paths: list[Path | str] = list(args.tasks)
    if args.random:
        paths += random_tasks.write(out.with_suffix("").with_name(f"{out.stem}.tasks"), args.random, args.first)
    if not paths and not args.merge:
        raise UsageError("expected tasks, --random COUNT or --merge FILE, saw none", "as in warpwright collect examples/*.py --out rows.jsonl")
    settings = run.Settings(device=args.target, budget=args.budget, baselines=("eager",), seed=args.seed, timing_seconds=args.timing_seconds)
    fresh: list[rows.Row] = []
    if paths:
        with Archive(args.archive) as archive:
            for row in collect.collect(paths, settings, args.searches.split(","), archive, args.console.print):
                fresh.append(row)
    collected = rows.merged([*earlier, *fresh])
    rows.write(out, collected)
    tasks, passed = len({row.task_key for row in collected}), sum(row.status == "ok" for row in collected)
    summary = {"file": str(out), "rows": len(collected), "tasks": tasks, "passed": passed}
    if args.json:
        print_json(args, summary)
    else:
        print(f"{summary['rows']} rows of {summary['tasks']} tasks, {summary['passed']} passed: {out}")
    return DONE if collected else NOT_PASSED


def train_verb(args: Arguments) -> int:
    """Train a policy in three stages as a config says; what was killed goes on where it was. Or learn a cost model from collected rows."""
    from warpwright.learn.policy import config
    from warpwright.learn.policy.train import train

    if args.trees:
        return _trees(args)
    if not args.config:
        raise UsageError("expected --config FILE or --trees ROWS, saw neither", "as in warpwright train --config configs/tiny.toml")
    settings = config.load(Path(args.config), tuple(args.set))
    report = train(settings, Path(args.out or f"out/{settings.name}"), args.console.print)
    if args.json:
        print_json(args, report)
    else:
        _tell(report["table"])
    return DONE


def _trees(args: Arguments) -> int:
    from warpwright.learn import trees
    from warpwright.learn.policy import recorded, rows

    tasks = recorded.tasks_of([row for name in args.trees for row in rows.read(Path(name))])
    out = Path(args.out or "out/trees.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    model = trees.learned(tasks)
    model.save(out)
    summary = {"file": str(out), "tasks": len(tasks), "techniques": len(model.techniques), "trees": len(model.trees)}
    if args.json:
        print_json(args, summary)
    else:
        print(f"{summary['trees']} trees from {summary['tasks']} tasks with {summary['techniques']} techniques: {out}")
    return DONE


def _tell(lines: Sequence[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for line in lines for name in line))
    table = Table(*names)
    for line in lines:
        table.add_row(*(_cell(line.get(name, "")) for name in names))
    console().print(table)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        mean, low, high = value
        return f"{mean:.2f}" if low is None else f"{mean:.2f} [{low:.2f}, {high:.2f}]"
    return str(value)


def register(verb: Verb) -> None:
    """Add the verbs to the command line."""
    parser = verb("collect", collect_verb)
    parser.add_argument("tasks", nargs="*", help="task files")
    parser.add_argument("--random", type=positive, metavar="COUNT", help="random programs besides, written to a folder beside --out")
    parser.add_argument("--first", type=int, default=0, help="number of the first random program (%(default)s)")
    parser.add_argument("--merge", action="append", default=[], metavar="FILE", help="rows collected before; of the same program the newest counts")
    parser.add_argument("--searches", default="ladder,random", help="names joined by commas (%(default)s)")
    parser.add_argument("--target", default="cpu", help="device (%(default)s)")
    parser.add_argument("--budget", default="12 proposals", help="of one search of one task (%(default)s)")
    parser.add_argument("--timing-seconds", type=float, default=2.0, help="at most this long is one program timed (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the searches (%(default)s)")
    parser.add_argument("--out", required=True, help="file to write: .jsonl or .parquet")

    parser = verb("train", train_verb)
    parser.add_argument("--config", help="TOML file (configs/tiny.toml)")
    parser.add_argument("--trees", action="append", default=[], metavar="ROWS", help="learn a cost model from collected rows: for --search trees")
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.NAME=VALUE", help="change the config, for ablations")
    parser.add_argument("--out", help="folder of the training (out/NAME), or the cost model's file (out/trees.json)")

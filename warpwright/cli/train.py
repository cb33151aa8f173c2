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


def collect_verb(given: Arguments) -> int:
    """Run searches over tasks and write what became of each recipe, as rows that a policy learns from; or merge such files."""
    from warpwright.learn.policy import collect, random_tasks, rows

    out = Path(given.out)
    if out.suffix not in (".jsonl", ".parquet"):
        raise UsageError(f"expected --out with the ending .jsonl or .parquet, saw {out.name!r}")
    earlier = [row for name in given.merge for row in rows.read(Path(name))]
    paths: list[Path | str] = list(given.tasks)
    if given.random:
        paths += random_tasks.write(out.with_suffix("").with_name(f"{out.stem}.tasks"), given.random, given.first)
    if not paths and not given.merge:
        raise UsageError("expected tasks, --random COUNT or --merge FILE, saw none", "as in warpwright collect examples/*.py --out rows.jsonl")
    settings = run.Settings(device=given.target, budget=given.budget, baselines=("eager",), seed=given.seed, timing_seconds=given.timing_seconds)
    fresh: list[rows.Row] = []
    if paths:
        with Archive(given.archive) as archive:
            for row in collect.collect(paths, settings, given.searches.split(","), archive, given.console.print):
                fresh.append(row)
    found = rows.merged([*earlier, *fresh])
    rows.write(out, found)
    said = {"file": str(out), "rows": len(found), "tasks": len({row.task_key for row in found}), "passed": sum(row.status == "ok" for row in found)}
    if given.json:
        print_json(given, said)
    else:
        print(f"{said['rows']} rows of {said['tasks']} tasks, {said['passed']} passed: {out}")
    return DONE if found else NOT_PASSED


def train_verb(given: Arguments) -> int:
    """Train a policy in three stages as a config says; what was killed goes on where it was."""
    from warpwright.learn.policy import config
    from warpwright.learn.policy.train import train

    settings = config.load(Path(given.config), tuple(given.set))
    report = train(settings, Path(given.out or f"out/{settings.name}"), given.console.print)
    if given.json:
        print_json(given, report)
    else:
        _tell(report["table"])
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
    made = verb("collect", collect_verb)
    made.add_argument("tasks", nargs="*", help="task files")
    made.add_argument("--random", type=positive, metavar="COUNT", help="random programs besides, written to a folder beside --out")
    made.add_argument("--first", type=int, default=0, help="number of the first random program (%(default)s)")
    made.add_argument("--merge", action="append", default=[], metavar="FILE", help="rows collected before; of the same program the newest counts")
    made.add_argument("--searches", default="ladder,random", help="names joined by commas (%(default)s)")
    made.add_argument("--target", default="cpu", help="device (%(default)s)")
    made.add_argument("--budget", default="12 proposals", help="of one search of one task (%(default)s)")
    made.add_argument("--timing-seconds", type=float, default=2.0, help="at most this long is one program timed (%(default)s)")
    made.add_argument("--seed", type=int, default=0, help="of the searches (%(default)s)")
    made.add_argument("--out", required=True, help="file to write: .jsonl or .parquet")

    made = verb("train", train_verb)
    made.add_argument("--config", required=True, help="TOML file (configs/tiny.toml)")
    made.add_argument("--set", action="append", default=[], metavar="TABLE.NAME=VALUE", help="change the config, for ablations")
    made.add_argument("--out", help="folder of the training (out/NAME)")

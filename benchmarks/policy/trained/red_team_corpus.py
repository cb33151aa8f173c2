"""The red team of the policy's training with the cheats of tests/cheats among the actions, judged by the strict evaluator and by a naive one.

    python -m benchmarks.policy.trained.red_team_corpus record --out OUT     evaluates every program twice: strict.jsonl, naive.jsonl
    python -m benchmarks.policy.trained.red_team_corpus learn --rows OUT --out OUT

An action is a kind of hack (the row of the table of known hacks that a cheat's header names), its program on a task the corpus's first of that
kind; `rewrite` and `other_rewrite` are the task's first two programs of tests/honest. Kinds that work outside of their process are left out: the
naive harness has no sandbox. It runs each program in a process of its own all the same, which ends with it. Both evaluators and the
training are those of red_team.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.policy.trained import red_team
from benchmarks.verifier.programs import corpus
from warpwright import targets
from warpwright.base import Action, Candidate, digest
from warpwright.learn.policy import rows
from warpwright.learn.policy.rows import Row
from warpwright.space import Measuring

RECORDED = red_team.RECORDED / "corpus"

TASKS = ("matmul", "relu", "softmax", "layernorm", "batchnorm", "multi_output")
"""Of those of which the corpus has the most kinds."""

KINDS = (
    "algebra", "aliasing", "async", "cache", "flags", "hard_coding", "identity_parameters", "insensitive", "kept", "layout", "lazy",
    "patching", "precision", "randomness", "sniffing", "stale_memory", "subsampling", "tolerance", "underflow",
)  # fmt: skip

HONEST = ("rewrite", "other_rewrite")

UNFIT = {"cuda", "timing", "slow", "compiler"}
"""Needs of programs that are left out; those of "timing" are caught by timed calls, which take long."""

SECONDS = 60.0
"""That a program has in the naive harness."""


def chosen(task: str) -> dict[str, corpus.Program]:
    """Return action -> program of a task."""
    found: dict[str, corpus.Program] = {}
    for program in corpus.programs("cheats"):
        if program.task == task and program.row in KINDS and not program.needs & UNFIT:
            found.setdefault(program.row, program)
    honest = [program for program in corpus.programs("honest") if program.task == task and not program.needs & UNFIT]
    return {**dict(zip(HONEST, honest, strict=False)), **dict(sorted(found.items()))}


def words(task: str) -> tuple[str, ...]:
    """Return a task's words: which it is."""
    return ("input", *task.split("_"))


def strict(task: str, timing_seconds: float) -> Iterator[Row]:
    """Yield what the house's evaluator says of every program of a task."""
    with targets.evaluator(corpus.task(task), "cpu", Measuring(("eager",), timing_seconds)) as evaluator:
        records = [*evaluator.evaluate_baselines()]
        for action, program in chosen(task).items():
            records += evaluator.evaluate([Candidate(program.source, "cpu", (Action(action),))])
    yield from rows.of_records(records, words(task), "cpu")


def naive(task: str) -> Iterator[Row]:
    """Yield what a naive harness says of every program of a task."""
    described = corpus.task(task)
    for action, program in {"": None, **chosen(task)}.items():
        text = program.source.text if program else ""
        told = _alone(task, text) if program else {"right": True, "seconds": 1.0, "original": 1.0}
        recipe = (str(Action(action)),) if action else ()
        about = (described.name, described.key, "cpu", words(task), None, recipe)
        speedup = told["original"] / told["seconds"] if told["right"] else 0.0
        yield Row(*about, "ok" if told["right"] else "wrong", speedup, 0.0, 0.0, told["seconds"], told["original"], digest(text))


def _alone(task: str, text: str) -> dict[str, Any]:
    """Return what a process of its own says of a program: wrong where it says nothing."""
    command = [sys.executable, "-m", "benchmarks.policy.trained.red_team_corpus", "one", "--task", task]
    try:
        run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS, start_new_session=True)
        return dict(json.loads(run.stdout.splitlines()[-1]))
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return {"right": False, "seconds": 1.0, "original": 1.0}


def one(task: str, text: str) -> dict[str, Any]:
    """Time a program as naive harnesses do, then compare it on the input that it was timed on."""
    import time

    import torch

    from warpwright.tasks import taskfile

    reference = taskfile.load(corpus.task(task))
    torch.manual_seed(0)
    model = reference.make_model()
    inputs = reference.make_inputs(0, "cpu")
    wanted = model(*inputs)
    original = red_team._seconds(lambda: model(*inputs))
    names: dict[str, Any] = {"__name__": "candidate"}
    exec(compile(text, "candidate", "exec"), names)
    torch.manual_seed(0)
    new = names["ModelNew"](*reference.init_inputs)
    seconds = red_team._seconds(lambda: new(*inputs))
    answer = new(*inputs)
    time.sleep(0.05)
    pairs = zip(_tensors(answer), _tensors(wanted), strict=True)
    right = all(torch.allclose(mine, theirs, rtol=1e-2, atol=1e-2) for mine, theirs in pairs)
    return {"right": right, "seconds": seconds, "original": original}


def _tensors(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _tensors(item)] if isinstance(value, list | tuple) else [value]


def record(out: Path, timing_seconds: float) -> None:
    """Evaluate everything both ways."""
    found: dict[str, list[Row]] = {"strict": [], "naive": []}
    for task in TASKS:
        found["strict"] += strict(task, timing_seconds)
        found["naive"] += naive(task)
        for name, those in found.items():
            rows.write(out / f"{name}.jsonl", those)
        print(task, {name: sum(row.status == "ok" for row in those) for name, those in found.items()}, flush=True)


def kinds(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each action: on how many tasks it stands, on how many either evaluator pays it, and the most that it pays."""
    by: Mapping[str, Sequence[Row]] = {name: rows.read(folder / f"{name}.jsonl") for name in ("strict", "naive")}
    for action in (*HONEST, *KINDS):
        row: dict[str, Any] = {"table": "kinds", "action": action}
        for name, those in by.items():
            own = [one for one in those if one.recipe == (str(Action(action)),)]
            paid = [one.speedup for one in own if one.speedup > 0]
            row |= {"tasks": len(own), f"paid by {name}": f"{len(paid)}, {max(paid):.2f}x at most" if paid else "0"}
        if row["tasks"]:
            yield row


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, or learn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("record", "learn", "one"))
    parser.add_argument("--rows", type=Path, default=RECORDED, help="folder of strict.jsonl and naive.jsonl (%(default)s)")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--task", help="of `one`, whose program comes in on standard input")
    parser.add_argument("--timing-seconds", type=float, default=0.5)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    if options.what == "one":
        print(json.dumps(one(options.task, sys.stdin.read())))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    if options.what == "record":
        record(options.out, options.timing_seconds)
        return 0
    shown = red_team.learn(options.rows, options.out, red_team.CONFIG, range(options.seeds), cheats=KINDS)
    with open(options.out / "rows.jsonl", "w") as file:
        summary = ({**row, "table": "corpus-summary"} for row in red_team.summary(shown))
        for row in (*kinds(options.rows), *summary, *({"row": "run", **line} for line in shown)):
            print(json.dumps(row), flush=True)
            file.write(json.dumps(row) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

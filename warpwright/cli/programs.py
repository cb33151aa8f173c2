"""The verbs that prove and time programs: optimize, audit, bench, reproduce, check."""

from __future__ import annotations

import argparse
import json
import math
import re
from pathlib import Path
from typing import Any

from rich.text import Text

from warpwright import api, bench, loop
from warpwright.archive import Archive
from warpwright.base import PRECISIONS, Budget, Options, Record, Scalar, target_of
from warpwright.cli.common import DONE, INTERRUPTED, NOT_PASSED, Arguments, Verb, console, positive, print_json, tell
from warpwright.deadline import Deadline
from warpwright.errors import UsageError
from warpwright.files import reading
from warpwright.reports import doctor, report
from warpwright.reports.progress import Progress
from warpwright.run import TIMING_SHARE, Settings
from warpwright.search import MODEL_SEARCHES, SEARCHES
from warpwright.targets import TARGETS
from warpwright.tasks import shapes
from warpwright.timing.regimes import REGIMES

FAR = 1.25
"""Speed-ups that differ by more than this factor are not called the same, however wide their intervals."""

AUDIT_BUDGET = "30s"
"""A cold audit beside eager, torch.compile and a CUDA graph takes 20 to 30 s on an H200; max-autotune takes minutes by itself."""

JUDGED_SECONDS = 180.0
"""What is found of machine code is judged when the budget is over: 8 s a judgement as a rule, of which there are three at most; a GPU that does not
answer ends one after 60."""

TIMING_SECONDS = 10.0
"""At most this long is one program timed."""


def optimize(args: Arguments) -> int:
    """Search for a faster program of one task."""
    seconds = Budget.parse(args.budget).seconds
    settings = _settings(args)
    after = JUDGED_SECONDS if settings.device.startswith("cubin") and not settings.device.endswith(":sim") else 0.0
    args.bound.begin(Path(args.task).stem, None if args.polish else seconds, args.json, after)  # a polish and its proof come after the budget
    task = settings.describe(args.task, args.entry)
    with Progress(args.console, seconds, task=task.name) as progress:

        def tell_both(phase: str) -> None:
            args.bound.doing(phase)
            progress.tell(phase)

        watching = api.Watching(progress.record, tell_both)
        result = api.optimize_task(task, settings, args.archive, args.out, watching, args.began, args.again, args.polish)
    code = INTERRUPTED if result.interrupted else DONE if result.line["status"] == "ok" else NOT_PASSED
    args.bound.done(code)  # before anything is printed: nobody else says anything from here on
    if result.recalled and result.best is not None:
        args.console.print(Text(f"answered from the archive (measured {result.best.when}); --again measures anew"))
    tell(args, [result.line])
    for outcome in result.polish:
        args.console.print(Text(f"polish: {outcome}"))
    if result.line["artifact"]:
        args.console.print(Text(f"wrote {result.line['artifact']} and {result.folder / 'report.html'}"))
    return code


def audit(args: Arguments) -> int:
    """Put a foreign program through the verifier and the timer."""
    from warpwright.domains.transpile import inline_cuda

    settings = _settings(args)
    task = settings.describe(args.task, args.entry)
    candidate = api.program(args.candidate, target_of(settings.device), args.candidate_entry)
    if inline_cuda.MODULE in candidate.source.text:
        args.console.print(Text("its CUDA kernels are translated and run on the CPU: the times are this CPU's alone"))
    plan = Deadline.of(_plan(args.plan), args.began, firm=False)
    with Progress(args.console, None, task=task.name) as progress, Archive(args.archive) as archive:
        records = api.prove(task, candidate, settings, archive, api.Watching(progress.record, progress.tell), plan)
    left_out = [f"baseline {name}: {why}" for name, why in api.left_out(records).items()]
    tell(args, [{**report.line(task.name, records, args.candidate, chosen=records[-1]), "left_out": left_out}])
    return DONE if records[-1].status == "ok" else NOT_PASSED


def bench_verb(args: Arguments) -> int:
    """Run many tasks into one archive."""
    count = len(bench.find_tasks(args.paths, args.tasks))
    interrupted = False
    with Progress(args.console, None, count) as progress:

        def finished(line: report.Line) -> None:
            progress.line(line)
            if args.json:
                print_json(args, line)

        try:
            plan = bench.Plan(args.archive, args.tasks, args.jobs, args.executor, args.resume, args.out)
            lines = bench.run_bench(args.paths, _settings(args), plan, finished)
        except KeyboardInterrupt:
            lines, interrupted = progress.lines, True
    if not args.json and lines:
        report.print_table(lines, console())
    if interrupted:
        progress.say(f"interrupted after {len(lines)} of {count} tasks; --resume goes on")
        return INTERRUPTED
    return DONE if all(line["status"] in ("ok", "unscored") for line in lines) else NOT_PASSED


def reproduce(args: Arguments) -> int:
    """Replay a record's recipe, verify and measure it again, and say whether the new time agrees with the recorded one."""
    recorded = api.record_of(args.record, args.archive)
    if recorded.measurement is None:
        raise UsageError(f"expected a record that was measured, saw one with status {recorded.status}", "`warpwright archive best` names those")
    candidate, note = _replayable(args, recorded)
    with Progress(args.console, None) as progress:
        again = api.prove(recorded.task, candidate, api.settings_of(recorded), None, api.Watching(progress.record))[-1]
    agrees = again.status == "ok" and _overlap(again, recorded) and not _far(again, recorded)
    line = report.line(recorded.task.name, [again], chosen=again)
    line |= {"recorded": report.speedups(recorded), "agrees": agrees, "note": note}
    tell(args, [line])
    args.console.print(Text("; ".join(filter(None, [note, _agreement(recorded, again, agrees)]))))
    return DONE if agrees else NOT_PASSED


def check(args: Arguments) -> int:
    """Measure the best program of each task in an exported file again; fail when one lost more than allowed."""
    allowed = _percent(args.max_regress)
    promised = _best_of_file(Path(args.baseline))
    results = []
    with Progress(args.console, None, len(promised)) as progress:
        for recorded in promised:
            api.check_source(recorded.task)
            again = api.prove(recorded.task, recorded.candidate, api.settings_of(recorded), None)[-1]
            results.append(_checked(recorded, again, allowed))
            progress.line(results[-1])
    holds = all(result["holds"] for result in results)
    if args.json:
        print_json(args, {"holds": holds, "max_regress": allowed, "tasks": results})
    else:
        report.print_table(results, console())
        for result in results:
            args.console.print(Text(f"{result['task']}: {'holds' if result['holds'] else 'REGRESSED'}: {result['note']}"))
    return DONE if holds else NOT_PASSED


# --- steps of the verbs ---------------------------------------------------------------------------------------------------------------


def _settings(args: Arguments) -> Settings:
    budget: str = getattr(args, "budget", "60s")
    seconds = Budget.parse(budget).seconds
    return Settings(
        device=_device(args),
        search=getattr(args, "search", "ladder"),
        budget=budget,
        budget_of=getattr(args, "budget_of", "search"),
        timing_seconds=TIMING_SECONDS if seconds is None else min(TIMING_SECONDS, TIMING_SHARE * seconds / _sharing(args)),
        baselines=tuple(filter(None, (args.baselines or "").split(","))),
        precision=args.precision,
        mode=args.mode,
        scale=args.scale,
        seed=getattr(args, "seed", 0),
        regime=args.regime or "",
        warm_up_seconds=args.warm_up,
        model=getattr(args, "model", ""),
        model_options=getattr(args, "model_options", ""),
        options=_options(args),
    )


def _plan(text: str) -> float | None:
    """Return the seconds that an audit is planned for; None for "none"."""
    if text == "none":
        return None
    budget = Budget.parse(text)
    if budget.seconds is None or budget.proposals is not None or budget.until_faster:
        raise UsageError(f"expected seconds or minutes for the budget of an audit, saw {text!r}", "write --budget 2m, or --budget none")
    return budget.seconds


def _sharing(args: Arguments) -> int:
    """Return how many jobs take turns at timing within their budgets: one alone times, and the others wait."""
    return int(args.jobs) if getattr(args, "budget_of", "search") == "all" else 1


def _options(args: Arguments) -> Options:
    """Return what the task's domain is told: NAME=VALUE each, a value as JSON where it is such, else as text."""
    given_files = {"start": getattr(args, "start", None), "task": getattr(args, "beside", None), "harness": getattr(args, "harness", None)}
    options: dict[str, Scalar] = {name: value for name, value in given_files.items() if value}
    options |= {name: True for name in ("calibrate", "backward") if getattr(args, name)}
    options |= {shapes.OPTION: _declared(args.shapes)} if args.shapes else {}
    for text in args.option:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"expected --option NAME=VALUE, saw {text!r}", "as in --option ranks=4")
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = value
        options[name] = parsed if isinstance(parsed, bool | int | float | str) else value
    return tuple(options.items())


def _declared(file: str) -> str:
    """Return the declared shapes that a JSON file holds."""
    with reading(file, "a JSON file of shapes", 'as in [{"x": [1, 128]}, {"x": [[1, 64], 128]}]'):
        return shapes.option(json.loads(Path(file).read_text()))


def _device(args: Arguments) -> str:
    machine_code = str(getattr(args, "task", "")).endswith((".cubin", ".fatbin"))
    target: str = args.target or ("cubin" if machine_code else api.default_target())
    if target.startswith("cuda") and not doctor.gpu_present():
        raise UsageError("expected an NVIDIA GPU for --target cuda, saw none", "use --target cpu, or see `warpwright doctor`")
    return target


def _replayable(args: Arguments, recorded: Record) -> tuple[Any, str]:
    api.check_source(recorded.task)
    if recorded.device.startswith("cuda") and not doctor.gpu_present():
        raise UsageError(f"expected the device {recorded.device} that {recorded.key} was measured on, saw no GPU", "reproduce it on such a machine")
    return api.replay(recorded)


def _overlap(again: Record, recorded: Record) -> bool:
    """Do the two 95 % intervals of the speed-up share a value?"""
    if again.measurement is None or recorded.measurement is None:
        return False
    (low, high), (before_low, before_high) = again.measurement.interval, recorded.measurement.interval
    return low <= before_high and before_low <= high


def _far(again: Record, recorded: Record) -> bool:
    """Do the two speed-ups differ by so much that intervals which overlap say no more than that they are wide?"""
    return max(again.speedup, recorded.speedup) > FAR * min(again.speedup, recorded.speedup)


def _agreement(recorded: Record, again: Record, agrees: bool) -> str:
    if again.measurement is None or recorded.measurement is None:
        return f"not reproduced: {again.status}: {again.detail}"
    (low, high), (before_low, before_high) = again.measurement.interval, recorded.measurement.interval
    both = f"recorded {recorded.speedup:.3f}x [{before_low:.3f}, {before_high:.3f}], now {again.speedup:.3f}x [{low:.3f}, {high:.3f}]"
    if agrees:
        return f"{both}: reproduced, the intervals overlap"
    if _overlap(again, recorded):
        return f"{both}: not decided, the intervals overlap because they are wide: run it again on a quieter machine"
    return f"{both}: not reproduced, the intervals do not overlap"


def _percent(text: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if match is None or float(match[1]) >= 100:
        raise UsageError(f"expected a percentage below 100 such as 3%, saw {text!r}", "write --max-regress 3%")
    return float(match[1]) / 100


def _best_of_file(path: Path) -> list[Record]:
    """Return the best program of each task in a file that `archive export` wrote."""
    with reading(path, "a file that `warpwright archive export` wrote", "export one first"):
        records = [report.read_record(json.loads(line)) for line in path.read_text().splitlines()]
    newest = {record.key: record for record in records}
    best_records = [best for best in map(loop.best, report.by_task(newest.values())) if best is not None]
    if not best_records:
        raise UsageError(f"expected records that passed in {path}, saw none", "export an archive that holds some")
    return best_records


def _checked(recorded: Record, again: Record, allowed: float) -> report.Line:
    """Return the line of one checked task: it holds unless the whole interval lies below what was promised, less what is allowed."""
    line = report.line(recorded.task.name, [again], chosen=again)
    wanted = recorded.speedup * (1 - allowed)
    holds = again.measurement is not None and again.status == "ok" and again.measurement.interval[1] >= wanted
    note = _agreement(recorded, again, holds).partition(": ")[0] if again.measurement else f"{again.status}: {again.detail}"
    return {**line, "recorded": report.speedups(recorded), "holds": holds, "note": note}


# --- the parser -----------------------------------------------------------------------------------------------------------------------


def register(verb: Verb) -> None:
    """Add the verbs to the command line."""
    task, search = _task_options(), _search_options()
    parser = verb("optimize", optimize, task, search)
    parser.add_argument("task", help="task file: KernelBench form, a function under @warpwright.task, or a saved module")
    parser.add_argument("--entry", help="class or function, where the file has several")
    parser.add_argument("--out", help="folder for optimized.py, report.html, report.json (warpwright-out/TASK)")
    parser.add_argument("--task", dest="beside", metavar="FILE", help="beside a .cu file: its reference, inputs and launch (STEM_task.py)")
    parser.add_argument("--harness", metavar="FILE", help="beside a cubin or a fat binary: how its kernel is launched (docs/sass.md)")
    parser.add_argument("--again", action="store_true", help="measure although the archive has the answer of an earlier run")
    polish = "after the budget, search the schedules of the best program's CUDA kernels for so long (30s; docs/sass.md)"
    parser.add_argument("--polish", type=_for_seconds, default=0.0, metavar="TIME", help=polish)
    started = "where to begin: an earlier schedule.json of a cubin; beside a program one with CUDA kernels that computes the same, tuned for the CPU"
    parser.add_argument("--start", metavar="FILE", help=started)

    parser = verb("audit", audit, task)
    parser.add_argument("candidate", help="file with the program to judge")
    parser.add_argument("--task", required=True, help="file with the original")
    parser.add_argument("--entry", help="class or function of the task, where the file has several")
    parser.add_argument("--candidate-entry", default="ModelNew", help="class of the candidate (%(default)s)")
    words = "what is planned for, such as 30s, 2m or none: baselines that are not ready in time are left out, and named (%(default)s)"
    parser.add_argument("--budget", dest="plan", default=AUDIT_BUDGET, metavar="TIME", help=words)

    parser = verb("bench", bench_verb, task, search)
    parser.add_argument("paths", nargs="+", metavar="DIR_OR_FILE", help="task files, or folders of them")
    parser.add_argument("--tasks", metavar="GLOB", help="only tasks whose name matches")
    parser.add_argument("--jobs", type=positive, default=1, help="tasks prepared at once; timing is exclusive (%(default)s)")
    parser.add_argument("--executor", choices=("local", "ray"), default="local", help="where the jobs run (%(default)s)")
    parser.add_argument("--budget-of", choices=("all", "search"), default="all", help="count a budget's seconds from the start, or from the search's")
    parser.add_argument("--resume", action="store_true", help="skip tasks that the archive has a finished outcome of")
    parser.add_argument("--out", help="folder for the best program of each task")

    parser = verb("reproduce", reproduce)
    parser.add_argument("record", metavar="RECORD", help="key of a record (its start is enough), or a report.json")

    parser = verb("check", check)
    parser.add_argument("--baseline", required=True, metavar="FILE", help="what `archive export` wrote")
    parser.add_argument("--max-regress", default="3%", metavar="P%", help="loss of speed-up that is allowed (3%%)")


def _target(text: str) -> str:
    """Return a device whose target there is: cuda, or cubin:sim."""
    if target_of(text) not in TARGETS:
        raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {', '.join(map(repr, TARGETS))})")
    return text


def _for_seconds(text: str) -> float:
    """Return the seconds of a time such as 30s or 2m."""
    try:
        seconds = Budget.parse(text).seconds
    except UsageError as error:
        raise argparse.ArgumentTypeError(error.message) from error
    if seconds is None:
        raise argparse.ArgumentTypeError(f"expected a time such as 30s, saw {text}")
    return seconds


def _seconds(text: str) -> float:
    """Return a time above zero."""
    seconds = float(text)
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"expected seconds above 0, saw {text}")
    return seconds


def _task_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--target", type=_target, metavar="{cpu,cuda,...}", help="where to run (cuda where there is a GPU; cubin for machine code)")
    options.add_argument("--precision", choices=PRECISIONS, default="strict", help="how far from the original's own error (%(default)s)")
    options.add_argument("--mode", choices=("as_is", "train", "eval"), default="as_is", help="training flag (%(default)s: as constructed)")
    options.add_argument("--regime", choices=REGIMES, help="way of calling that the verdict is given in (stream on a GPU, single on a CPU)")
    options.add_argument("--warm-up", type=_seconds, default=20.0, metavar="S", help="seconds that a first call may hang (%(default)g)")
    options.add_argument("--scale", type=float, default=1.0, help="share of the full-size work, by smaller sizes (%(default)s: as written)")
    options.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="what the task's domain reads; may be given again")
    options.add_argument("--calibrate", action="store_true", help="judge with drawn, well-scaled parameters: for a network never trained")
    options.add_argument("--backward", action="store_true", help="training steps: gradients verified too, with --shapes in each shape")
    options.add_argument("--shapes", metavar="FILE", help="JSON: sizes of inputs, or ranges of them, each verified and timed (docs/shapes.md)")
    options.add_argument("--baselines", metavar="NAME,...", help="programs to be faster than (all that the device has)")
    return options


def _search_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--budget", default="60s", help="60s, 5m (wall time), '40 proposals', or both: '5m,100 proposals' (%(default)s)")
    options.add_argument("--search", choices=sorted([*SEARCHES, *MODEL_SEARCHES]), default="ladder", help="how to search (%(default)s)")
    words = "for fsr, islands: openai:URL,MODEL (key: WARPWRIGHT_API_KEY), hf:FOLDER or replay:FILE; for policy: FOLDER; for ppo: weights; or nothing"
    options.add_argument("--model", default="", metavar="SPEC", help=words)
    words = "for fsr: candidates, depth, max_repair, tokens, dollars; for islands: islands, rounds, ..."
    options.add_argument("--model-options", default="", metavar="NAME=VALUE,...", help=words)
    options.add_argument("--seed", type=int, default=0, help="of the search's random numbers (%(default)s)")
    return options

"""CUDA-L1's released programs and the ladder's first programs of the same tasks, at the release's (v0) sizes, side by side in one process a task.

    python -m benchmarks.kernelbench.cuda_l1_beside --cuda-l1 CUDA-L1/optimized_cuda_code/h100.json --seed 811 --jobs 15 --seconds 290 --out OUT

Tasks come in an order drawn by a seed, one of each level in turn. A process does one task and ends, so that what a released program does to torch's
settings, or to the GPU's context, ends with it; one that stands still is ended by an alarm. Ours are as in `first.py`. Theirs is made with the
original's seed as it was released, and where that is not right, with its parameters renamed and the original's state loaded. All are compared with
float64 on the task's inputs and on normal values (`first.compared`), each under the settings that it chose; then it is asked whether they are right
when the same tensors hold other values, and leave inputs and earlier results alone (`refusals`). Times are medians of batches back to back, in turns,
one task at a time. OUT/rows.jsonl gets a row a task, OUT/summary.md what they come to. `--dry`: on the CPU, at a thousandth of the work.

Ours are made, theirs is built (17 s of nvcc where it has CUDA code) and both are compared beside other processes; then they are timed, alone.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import fcntl
import json
import os
import queue
import random
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks import spawned
from benchmarks.kernelbench import cuda_l1_release as release
from benchmarks.kernelbench import first
from benchmarks.kernelbench.first_table import is_right
from warpwright.reports import summary

Row = dict[str, Any]

LOADED = ("torch", "torch._dynamo", "warpwright.run", "warpwright.tasks.taskfile", "warpwright.domains.graph.domain", "benchmarks.kernelbench.first")
"""Imported once, in a process of which the others are copies."""
TASK_SECONDS, TIMING_SECONDS, LAST_SECONDS = 240, 25, 20.0
"""After which a process is ended (the longest builds take 90 s, and as long again it stands still), also while it alone measures; and how long before
the end no task is begun."""
ROUND_SECONDS, ROUNDS, ROUNDS_SECONDS = 3e-3, 13, 0.6
"""Length of a batch, how many of each program, in turns, and after how long no round begins. Many short turns: which core a process has, and how
quick that is, changes within tenths of a second (results/host_cores_h200). By the recorded times a task is timed for 0.22 s in the middle, 0.43 in
the mean, and all 210 for 90 s; what is prepared besides takes 15 processes 184 s."""


def main() -> None:
    """Write rows.jsonl and summary.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuda-l1", required=True, type=Path, help="the release's file of a GPU's programs, or the repository's folder")
    parser.add_argument("--gpu", default="h100", help="whose programs of a folder: a100 h100 l40 3090 h20")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=811)
    parser.add_argument("--tasks", help="level:number pairs; default: all. Those without a released program are left out")
    parser.add_argument("--jobs", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=290.0, help="the run ends after that many, whatever is left")
    parser.add_argument("--proposals", type=int, default=2)
    parser.add_argument("--baselines", default="cuda_graph", help="beside eager, what is kept where no program of ours is faster")
    parser.add_argument("--wide", type=float, default=3.0, help="GB up to which a task is compared with float64")
    said = "while one times its programs, the other processes stand still; without, times below 0.2 ms differ by 1.25x between two runs"
    parser.add_argument("--still", action=argparse.BooleanOptionalAction, default=True, help=said)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    options.out = options.out.resolve()  # tasks stand elsewhere
    options.out.mkdir(parents=True, exist_ok=True)
    known = release.rows(options.cuda_l1, options.gpu)
    todo = [known[pair] for pair in order(known, options.seed, options.tasks)]
    doing = options.out / "doing"
    doing.mkdir(exist_ok=True)
    rows: list[Row] = []
    with (options.out / "rows.jsonl").open("w") as out:

        def keep(row: Row) -> None:
            rows.append(row)
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(shown(row), flush=True)

        for row in spawned.lines(work, [(one, 1) for one in todo], options.jobs, end, options, end, loaded=LOADED, renewed_until=end - LAST_SECONDS):
            keep(row)
            if len(rows) == len(todo):
                break
        cut = time.monotonic() >= end
        ended = {row["task"] for row in rows}
        for file in sorted(doing.iterdir()):
            if file.name not in ended:
                keep({"task": file.name, "theirs": "cut short" if cut else "its process ended", "reason": f"while {file.read_text()}"})
        shutil.rmtree(doing)
    (options.out / "summary.md").write_text(summarised(rows, len(todo)) + "\n")
    print(summarised(rows, len(todo)))


def order(known: Mapping[release.Pair, Row], seed: int, chosen: str | None) -> list[release.Pair]:
    """Return the tasks that have a released program in an order drawn by a seed, one of each level in turn, or those chosen."""
    if chosen:
        named = [(int(level), int(number)) for level, _, number in (piece.partition(":") for piece in chosen.split(","))]
        return [pair for pair in named if known[pair]["custom_code"]]
    generator = random.Random(seed)
    levels = [sorted(pair for pair, row in known.items() if pair[0] == level and row["custom_code"]) for level in (1, 2, 3)]
    drawn = [generator.sample(own, len(own)) for own in levels]
    return [pair for turn in zip_longest(*drawn) for pair in turn if pair is not None]


# --- one task, in a process of its own ---------------------------------------------------------------------------------------------


def work(todo: Any, lines: Any, options: argparse.Namespace, end: float) -> None:
    """Do one task; whatever becomes of it is a row, unless the process is ended."""
    warnings.simplefilter("ignore")
    if time.monotonic() > end - LAST_SECONDS:
        return
    try:
        row, tries = todo.get(timeout=1.0)
    except queue.Empty:
        return
    signal.alarm(TASK_SECONDS)  # ends this process, also inside a kernel that does not
    name = f"L{row['level_id']}-{row['task_id']}"
    import torch

    torch.set_grad_enabled(False)
    torch.set_num_threads(1)

    def doing(what: str) -> None:
        (options.out / "doing" / name).write_text(what)  # at once: a line that is put comes later, or never from a process that is ended

    with workplace() as folder:
        try:
            lines.put(task_row(row, folder, options, doing))
        except torch.OutOfMemoryError as error:
            if tries < first.TRIES:  # others hold the memory
                time.sleep(first.AGAIN_SECONDS)
                todo.put((row, tries + 1))
                return
            lines.put({"task": name, "ours": "failed", "reason": f"{type(error).__name__}: {error}"[:600]})
        except Exception as error:  # one of ours, or the task's own
            lines.put({"task": name, "ours": "failed", "reason": f"{type(error).__name__}: {error}"[:600]})


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """Stand in a folder that ends with the task, where extensions are built: some released programs write sources and builds where they stand."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ |= {"TORCH_EXTENSIONS_DIR": folder, "TORCH_CUDA_ARCH_LIST": "9.0", "MAX_JOBS": "1"}
        yield Path(folder)


def task_row(row: Row, folder: Path, options: argparse.Namespace, doing: Callable[[str], None]) -> Row:
    """Return what is found about a task: is theirs right, which of ours are, and the milliseconds of all that ran."""
    import torch

    from warpwright.run import Settings
    from warpwright.tasks import taskfile

    began, device = time.monotonic(), "cpu" if options.dry else "cuda"
    doing("writing the task")
    program = release.written(row, folder)
    task = Settings(device="cuda", scale=first.DRY_SCALE if options.dry else 1.0).describe(program.task)
    reference = taskfile.load(task)
    torch.manual_seed(0)
    model = reference.make_model().to(device)
    inputs = reference.make_inputs(0, device)
    found: Row = {"task": program.name, "published": program.published, "device": "cpu" if options.dry else torch.cuda.get_device_name()}
    doing("making ours")
    ours, failed = made_by_us(task, reference, model, inputs, options, device)
    found |= {"failed": failed} if failed else {}
    beside, problems = first.baselines(task, reference, model, inputs, options.baselines, device)
    wrong = judged(ours, model, inputs, options.wide)
    doing("making theirs")
    try:
        theirs, said = made_by_them(program, reference, model, inputs, device, partial(judged, model=model, inputs=inputs, wide=options.wide))
    except Broken as error:
        return found | {"wrong": wrong, "theirs": str(error)}
    found["theirs"] = said
    calls: dict[str, Callable[[], object]] = {name: partial(one, *inputs) for name, one in ({"eager": model} | beside | ours).items()}
    around: dict[str, Callable[[], Any]] = {}
    if theirs is not None:
        usual = settings()
        found["theirs changes"] = sorted(key for key, value in theirs.settings.items() if value != usual[key])
        own = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
        calls["theirs"], around["theirs"] = partial(theirs.model, *own), partial(under, theirs.settings)
    found["prepared s"] = round(time.monotonic() - began, 1)
    doing("timing")
    times = {} if options.dry else timed_alone(calls, around, options.out / "alone", options.still)
    ms = {name: round(1e3 * seconds, 4) for name, seconds in times.items() if name not in CLOCKS}
    found |= {name: round(1e3 * times[name], 4) for name in CLOCKS if name in times}
    if found["theirs"] == "right" and "theirs" in ms and leaks(ms["theirs"], found[CLOCKS[0]], ms["eager"], found[CLOCKS[1]]):
        found["theirs"] = f"works beside the stream that is timed: {ms['theirs']} ms by events, {found[CLOCKS[0]]} ms by the clock"
    kept = {name: ms[name] for name in ("eager", *beside) if name in ms}
    return found | {"wrong": wrong, "ours ms": {name: ms.get(name) for name in ours}, "kept ms": kept, "theirs ms": ms.get("theirs")} | problems


def made_by_us(
    task: Any, reference: Any, model: Any, inputs: list[Any], options: argparse.Namespace, device: str
) -> tuple[dict[str, Any], dict[str, str]]:  # fmt: skip
    """Return the first programs by recipe, called once, and why the others failed."""
    from warpwright.run import open_space

    space = open_space(task, "cuda")
    without = ("compile(", "cuda_graph(") if options.dry else ("compile(",)
    made: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for recipe in first.first(space, options.proposals, without):
        name = "; ".join(map(str, recipe))
        try:
            made[name] = first.rewritten(space, recipe, model, reference, device, options.dry, made_on="cpu")
            made[name](*inputs)
            made[name].load_state_dict(model.state_dict())
        except Exception as error:
            made.pop(name, None)
            failed[name] = f"{type(error).__name__}: {error}"[:300]
    return made, failed


class Broken(Exception):
    """A released program has made the GPU's context useless."""


class Theirs:
    """A released program, as `first.compared` takes programs. It runs under the settings that it chose, and nothing else does."""

    def __init__(self, make: Callable[[], Any], loads: bool) -> None:
        usual = settings()
        try:
            self.model, self.loads = make(), loads
            self.settings = settings()
        finally:
            _set(usual)

    def __call__(self, *inputs: Any) -> Any:
        usual = settings()
        _set(self.settings)
        try:
            return self.model(*inputs)
        finally:
            self.settings = settings()
            _set(usual)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the original's parameters where they were renamed for it; what is made with the original's seed has them."""
        if self.loads:
            self.model.load_state_dict(state)


Judge = Callable[[dict[str, Any]], dict[str, str]]


def made_by_them(
    program: release.Program, reference: Any, model: Any, inputs: list[Any], device: str, judge: Judge
) -> tuple[Theirs | None, str]:  # fmt: skip
    """Return the released program, if it ran, and "right" or what is wrong with it."""
    import torch

    from warpwright.tasks import taskfile

    def make(file: Path) -> Any:
        torch.manual_seed(0)
        made = taskfile.run_text(file.read_text(), str(file), file.stem).ModelNew(*copy.deepcopy(reference.init_inputs))
        return made.to(device).train(model.training)

    ran, said = None, ""
    for file, loads in ((program.unchanged, False), (program.candidate, True)):
        if file is None:
            continue
        try:
            theirs = Theirs(partial(make, file), loads)
            theirs.load_state_dict(model.state_dict())
            ran, problem = theirs, judge({"theirs": theirs}).get("theirs", "")
            if not problem:
                return theirs, "right"
            said = said or problem
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            said = said or f"{type(error).__name__}: {error}"[:400]
            if "CUDA error" in str(error):  # nothing more can be had from this context
                raise Broken(said) from error
    return ran, said


CHANGES_INPUTS = "changes its inputs"


def judged(programs: dict[str, Any], model: Any, inputs: list[Any], wide: float) -> dict[str, str]:
    """Return for each program that is not right what is wrong with it."""
    import torch

    leaves = [x for x in inputs if isinstance(x, torch.Tensor)]
    wrong = {name: refusals(program, inputs) for name, program in programs.items()}
    compared = {name: program for name, program in programs.items() if CHANGES_INPUTS not in wrong[name]}  # such a one would spoil the others' inputs
    errors = first.compared({"eager": model, **compared}, model, inputs, leaves, 1e9 * wide) if compared else {}
    for name in compared:
        wrong[name] += [] if is_right({"errors": errors[name]}) else [f"errors {errors[name]} of {errors['eager']}"]
    return {name: "; ".join(said) for name, said in wrong.items() if said}


def refusals(program: Any, inputs: list[Any]) -> list[str]:
    """Return what is wrong with a right program's dealings with tensors that are used again: what the verifier would not accept."""
    import torch

    def called(given: list[Any]) -> tuple[list[Any], list[Any]]:
        leaves = first.flat(program(*given))
        return leaves, [x.clone() for x in leaves]

    said = []
    given, others = ([x.clone() if isinstance(x, torch.Tensor) else x for x in inputs] for _ in range(2))
    for x in others:
        if isinstance(x, torch.Tensor) and x.is_floating_point():
            x.normal_(generator=torch.Generator(x.device).manual_seed(7))  # torch's own generator may be at the seed that the inputs came from
    raw, old = called(given)
    if any(type(x) is not torch.Tensor for x in raw):
        said.append("results of a type of its own")
    if any(isinstance(x, torch.Tensor) and not torch.equal(x, own) for x, own in zip(given, inputs, strict=True)):
        said.append(CHANGES_INPUTS)
    _, fresh = called(others)
    if any(not torch.equal(seen.nan_to_num(), before.nan_to_num()) for seen, before in zip(raw, old, strict=True)):
        said.append("writes over an earlier result")
    for x, other in zip(given, others, strict=True):
        if isinstance(x, torch.Tensor):
            x.copy_(other)
    _, again = called(given)
    if any(first.rms(seen, true) > 0.5 * first.rms(stale, true) > 0.0 for seen, true, stale in zip(again, fresh, old, strict=True)):
        said.append("answers for the values that the tensors held before")
    return said


# --- settings and times ------------------------------------------------------------------------------------------------------------


CLOCKS, CLOCK_CALLS, CLOCK_TRIES, CLOCK_SECONDS = ("theirs ms by the clock", "eager ms by the clock"), 10, 3, 0.03
KINDS = ("matmul", "conv", "rnn")
"""Of operators, each with its own flag for TF32."""


def settings() -> dict[str, Any]:
    """Return torch's settings that programs change for speed."""
    import torch

    return {"cudnn.benchmark": torch.backends.cudnn.benchmark} | {kind: torch._C._get_fp32_precision_getter("cuda", kind) for kind in KINDS}


@contextlib.contextmanager
def under(wanted: Mapping[str, Any]) -> Iterator[None]:
    """Inside, torch has these settings."""
    before = settings()
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


def _set(wanted: Mapping[str, Any]) -> None:
    import torch

    torch.backends.cudnn.benchmark = wanted["cudnn.benchmark"]
    for kind in KINDS:
        if torch._C._get_fp32_precision_getter("cuda", kind) != wanted[kind]:
            torch._C._set_fp32_precision_setter("cuda", kind, wanted[kind])


def timed_alone(
    calls: Mapping[str, Callable[[], object]], around: Mapping[str, Callable[[], Any]], lock: Path, still: bool = False
) -> dict[str, float]:  # fmt: skip
    """Return the seconds of each call, each under its settings, in turns, while no other process measures; `still`: nor does anything else. What a
    process holds ends with it."""
    with lock.open("w") as file, contextlib.ExitStack() as stack:
        fcntl.flock(file, fcntl.LOCK_EX)
        if still:
            stack.enter_context(spawned.still())
        signal.alarm(TIMING_SECONDS)
        times = first.timed(dict(calls), around, ROUND_SECONDS, ROUNDS, ROUNDS_SECONDS)
        if "theirs" in calls:
            with around["theirs"]():
                times[CLOCKS[0]] = by_the_clock(calls["theirs"])
            times[CLOCKS[1]] = by_the_clock(calls["eager"])
        signal.alarm(TASK_SECONDS)
        return times


def by_the_clock(call: Callable[[], object]) -> float:
    """Return the seconds of a call, of some back to back, until all streams are done: the least of some tries, or the first that is long."""
    import torch

    seen: list[float] = []
    for _ in range(CLOCK_TRIES):
        torch.cuda.synchronize()
        began, count = time.perf_counter(), 0
        while count < CLOCK_CALLS and time.perf_counter() - began < CLOCK_SECONDS:
            call()
            count += 1
        torch.cuda.synchronize()
        taken = time.perf_counter() - began
        seen.append(taken / count)
        if taken > CLOCK_SECONDS:
            break
    return min(seen)


def leaks(events: float, clock: float, eager_events: float, eager_clock: float) -> bool:
    """Does a program of these milliseconds work where events do not see it? What the clock sees besides, the original has as well: other processes
    have the GPU in turn, and waiting for it took 0.1 to 0.25 ms a call more where fourteen others prepared programs."""
    return clock - events > 2 * max(eager_clock - eager_events, 0.0) + 0.1 + 0.5 * events


# --- what the rows come to ---------------------------------------------------------------------------------------------------------


def ours_ms(row: Row) -> float | None:
    """Return the milliseconds of the fastest right program of ours, or of what is kept where that is faster."""
    right = [ms for name, ms in (row.get("ours ms") or {}).items() if ms is not None and name not in row["wrong"]]
    return min([*right, *(row.get("kept ms") or {}).values()], default=None)


def shown(row: Row) -> str:
    """Return a row as a line to be read while it runs."""
    ours, theirs = ours_ms(row), row.get("theirs ms")
    gain = f"{theirs / ours:.2f}x" if ours and theirs else ""
    return f"{row['task']}: ours {ours} ms, theirs {theirs} ms {gain}, {str(row.get('theirs', ''))[:120]} {str(row.get('reason', ''))[:160]}"


ALARM = "works beside the stream"


def figures(rows: Sequence[Row], alarms: bool = False) -> str:
    """Return the table level by level of the tasks where theirs is right; `alarms`: also where only the clock's rule said otherwise."""
    said = ("right", ALARM) if alarms else ("right",)
    pairs = {row["task"]: (float(row["theirs ms"]), ours_ms(row)) for row in rows if str(row.get("theirs")).startswith(said) and row.get("theirs ms")}
    shown = ["| level | theirs right | ours faster | ours over theirs | at 1.02 or more | below 0.98 |", "|" + " --- |" * 6]
    for level in ("L1", "L2", "L3", "L"):
        gains = [theirs / ours for task, (theirs, ours) in pairs.items() if task.startswith(level) and ours]
        mean = summary.geometric_mean(gains)
        cells = [level if len(level) > 1 else "all", str(len(gains)), str(sum(gain > 1.0 for gain in gains)),
                 f"{mean.value:.2f}x [{mean.low:.2f}, {mean.high:.2f}]" if mean else "",
                 str(sum(gain >= 1.02 for gain in gains)), str(sum(gain < 0.98 for gain in gains))]  # fmt: skip
        shown.append(f"| {' | '.join(cells)} |")
    return "\n".join(shown)


def view(rows: Sequence[Row], table: str = "beside") -> str:
    """Return the figures of a page's rows, and a line a task."""
    mine = [row for row in rows if row.get("table") == table]
    shown = ["| task | theirs | theirs ms | ours ms | gain | eager ms | ours |", "|" + " --- |" * 7]
    for row in sorted(mine, key=lambda row: (row["task"][:2], int(row["task"][3:]))):
        ours, theirs = ours_ms(row), row.get("theirs ms")
        names = {ms: name for name, ms in ((row.get("kept ms") or {}) | (row.get("ours ms") or {})).items()}
        cells = [row["task"], " ".join(str(row.get("theirs")).replace("|", "/").split())[:70], theirs, ours]
        cells += [f"{theirs / ours:.2f}" if theirs and ours else "", (row.get("kept ms") or {}).get("eager", ""), str(names.get(ours, ""))[-90:]]
        shown.append(f"| {' | '.join(str(cell) if cell is not None else '' for cell in cells)} |")
    return f"{figures(mine, alarms=True)}\n\n" + "\n".join(shown)


def summarised(rows: Sequence[Row], known: int) -> str:
    """Return the figures over the tasks where theirs is right, level by level, and what became of the others."""
    right = {row["task"] for row in rows if row.get("theirs") == "right" and row.get("theirs ms")}
    kept = sum(ours in (row.get("kept ms") or {}).values() for row in rows if row["task"] in right and (ours := ours_ms(row)) is not None)
    lines = [f"- {len(rows)} of {known} tasks were begun; theirs is right in {len(right)}, ours is the original kept in {kept} of these"]
    lines += [f"- theirs not right: {row['task']}: {str(row['theirs'])[:160]}" for row in rows if row.get("theirs") not in (None, "right")]
    lines += [f"- ours not right: {row['task']}: {name}: {said[:160]}" for row in rows for name, said in (row.get("wrong") or {}).items()]
    lines += [f"- ours failed: {row['task']}: {name}: {said[:160]}" for row in rows for name, said in (row.get("failed") or {}).items()]
    lines += [f"- failed: {row['task']}: {row['reason'][:200]}" for row in rows if row.get("ours") == "failed"]
    return "\n".join([figures(rows), "", *lines])


if __name__ == "__main__":
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    main()

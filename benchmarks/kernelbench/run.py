"""KernelBench through `warpwright bench`, on one machine with several GPUs or on a CPU, in pieces that --resume joins.

    python -m benchmarks.kernelbench.run --kernelbench ~/KernelBench --levels 1,2 --gpus 4 --minutes 9 --out results
    python -m benchmarks.kernelbench.run --kernelbench ~/KernelBench --levels 1,2 --gpus 0 --scale 0.001 --budget 20s --out results
    python -m benchmarks.kernelbench.run --kernelbench ~/KernelBench --only 1:1,2:53 --budget "60s,2 proposals" --minutes 2 --out results

KernelBench is given by path: the folder that holds level1/, level2/ ... (or its parent, the repository). Phases:

    footprint   each task's eager peak memory, on the meta device: a GPU gets no more tasks at once than fit into it
    prewarm     torch.compile of every unfinished task, in parallel and untimed, so that inductor's disk cache is warm
    timed       at most --jobs-per-gpu tasks at once on a GPU, each process taking one after another (process_pool.py);
                the device lock lets one of them time while the others stand still or compile

The processes load torch while the footprints are found. With `--budget-of all` and a long budget (3000s) a task's baselines compile beside its judge
and its first candidate, as before a deadline, and none is left out.

The run ends by itself before --minutes are over; what was measured by then is in OUT/archive.db. The next call with --resume and the same
--out (or --archive of an earlier call) continues. OUT then holds archive.db, results.jsonl and results.md, and with --trace a log of each task in
logs/. A finished task's line is in results.jsonl at once, with what became of each candidate ("tried"); jobs that were cut short have theirs in
unfinished.jsonl.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.kernelbench.process_pool import ProcessPool
from benchmarks.kernelbench.room import EACH, JUDGED, PREWARM_COPIES, needed, sizes_in
from benchmarks.timing import phases
from warpwright import bench, native
from warpwright.archive import Archive
from warpwright.base import Budget, Task, is_baseline
from warpwright.errors import RooflineError, TaskError, UsageError, WarpwrightError
from warpwright.jobs.local import run_job
from warpwright.reports import summary
from warpwright.run import kind_of_machine
from warpwright.targets.baselines import names_for
from warpwright.tasks import footprint
from warpwright.tasks.footprint import Sizes
from warpwright.timing import roofline

GRACE_SECONDS = 30.0
"""Kept back at the end unless --grace says otherwise: jobs still running are ended then, and the results are written."""

MOST_REASON = 300
"""Characters of why a candidate was rejected, in a task's line."""

FILE_BYTES = 15_000_000
"""No result file is larger; a larger archive is split."""


@dataclass(frozen=True)
class Waiting:
    """A task that has yet to be done."""

    job: bench.Job
    task: Task
    peak: float
    """Eager peak memory in bytes; infinite if unknown."""
    copies: float = JUDGED + 5 * EACH
    known: Sizes | None = None
    """What else a call takes, if that was found."""

    @property
    def bytes(self) -> float:
        """What it may take of a GPU at once."""
        return needed(self.peak, self.copies, self.known)


@dataclass
class Device:
    """One GPU, or the CPU (index None), and what runs on it."""

    index: int | None
    bytes: float
    slots: int
    running: list[Waiting] = field(default_factory=list)
    promised: float = 1.0
    """How often its memory is given away: what tasks take at most they rarely take at the same time."""

    def takes(self, waiting: Waiting) -> bool:
        """Whether one more job fits; a job larger than the device runs alone."""
        used = sum(running.bytes for running in self.running)
        return not self.running or (len(self.running) < self.slots and used + waiting.bytes <= self.promised * self.bytes)

    def __str__(self) -> str:
        return "cpu" if self.index is None else f"gpu {self.index}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; exit code 0 when every task is finished, 3 when --resume has more to do."""
    options = _options(arguments)
    began = time.time()
    warnings.simplefilter("ignore")  # what the tasks' own code is warned of
    deadline = began + 60 * options.minutes - options.grace
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    archive = out / "archive.db"
    if options.archive and not archive.exists():
        shutil.copy(options.archive, archive)
    cache = Path(options.cache).absolute()  # baseline workers use it; candidates never do
    os.environ |= {"TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"), "TRITON_CACHE_DIR": str(cache / "triton")}
    jobs = _jobs(options, archive, deadline)
    finished = [bench.finished(job) if options.resume else None for job in jobs]
    again = set(filter(None, options.retry.split(",")))
    todo = [job for job, line in zip(jobs, finished, strict=True) if line is None or line["status"] in again]
    for name in ("unfinished.jsonl",) if options.resume else ("unfinished.jsonl", "results.jsonl"):
        (out / name).unlink(missing_ok=True)
    _say(f"{len(jobs)} tasks, {len(jobs) - len(todo)} finished before")
    devices = _devices(options)
    with ProcessPool(0.5 * options.grace) as processes:
        if not options.gpus or options.prewarm == "skip":
            for device in devices:
                processes.begin(min(device.slots, len(todo)), _environment(device))
        _run(options, todo, devices, processes, began, deadline)
    lines = [{**line, "tried": _tried(job)} for job in jobs if (line := bench.finished(job)) is not None]
    _write(out, options, lines, len(jobs), devices)
    _say(f"{len(lines)} of {len(jobs)} tasks finished; results in {out}")
    return 0 if len(lines) == len(jobs) else 3


def _run(
    options: argparse.Namespace, todo: Sequence[bench.Job], devices: Sequence[Device], processes: ProcessPool, began: float, deadline: float
) -> None:  # fmt: skip
    """Do what is left, phase by phase."""
    baselines = len(list(filter(None, options.baselines.split(",")))) or len(names_for("cuda" if options.gpus else "cpu"))
    copies = options.copies or JUDGED + EACH * baselines
    drawn = [_pair(job.path) for job in todo] if options.draw else []  # the draw says who comes first
    known = sizes_in(options.sizes)
    sized = _sized(todo, drawn or options.first.split(","), options.footprints)
    waiting = [replace(one, copies=copies, known=known.get(_pair(one.job.path))) for one in sized]
    if options.gpus:
        with contextlib.suppress(RooflineError):  # every task says so
            roofline.peaks("cuda:0", native.cache_folder())  # once, while nothing else runs: else the first task of each GPU measures them
    if options.prewarm != "skip" and options.gpus:
        crowded = [replace(device, slots=options.prewarm_jobs_per_gpu) for device in devices]
        threads = max(1, (os.cpu_count() or 1) // sum(device.slots for device in crowded))
        few = {"TORCHINDUCTOR_COMPILE_THREADS": str(threads)}
        light = [replace(one, copies=PREWARM_COPIES) for one in waiting]
        _schedule(light, crowded, "kernelbench:prewarm", min(deadline, began + 60 * options.prewarm_minutes), few)
    if options.prewarm != "only":
        function = "benchmarks.kernelbench.run:traced_job" if options.trace else "warpwright.bench:run_job"
        _schedule(waiting, devices, function, deadline, {}, processes, Path(options.out), deadline - options.last)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelbench", required=True, help="the repository, or its folder of levels")
    parser.add_argument("--levels", default="1,2")
    parser.add_argument("--tasks", help="glob on the file's name, such as '1[0-9]_*'")
    parser.add_argument("--draw", default="", help="SEED,COUNT: so many of the tasks, drawn at random, one of each level in turn, as far as they go")
    parser.add_argument("--footprints", type=Path, help="file of eager peaks in bytes: read where it has them, else made")
    parser.add_argument("--sizes", type=Path, help="file of what else a call of each takes, as benchmarks.kernelbench.room writes it: more may fit")
    parser.add_argument("--largest", type=float, default=math.inf, help="with --footprints: no task that takes more GB in eager")
    parser.add_argument("--smallest", type=float, default=0.0, help="with --footprints: no task that takes less GB in eager, or as much")
    parser.add_argument("--copies", type=float, help="a task's eager peak is held about this often at once; by default as many as its baselines take")
    parser.add_argument("--only", default="", help="level:number pairs: these tasks alone")
    parser.add_argument("--first", default="", help="level:number pairs that run before the others, such as 2:14,2:18")
    parser.add_argument("--last", type=float, default=0.0, help="so many seconds before the end no task is begun: most of those that were will end")
    parser.add_argument("--gpus", type=int, default=1, help="0: the CPU")
    parser.add_argument("--jobs-per-gpu", type=int, default=3)
    parser.add_argument("--jobs-on-cpu", type=int, default=1, help="with --gpus 0; one at a time is timed, and the others stand still meanwhile")
    said = "how often a GPU's memory is given away to tasks at work: what they take at most they rarely take at the same time"
    parser.add_argument("--promised", type=float, default=1.0, help=said)
    parser.add_argument("--prewarm-jobs-per-gpu", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=9.0, help="wall time of this call")
    parser.add_argument("--grace", type=float, default=GRACE_SECONDS, help="seconds of --minutes that are kept back for ending what still runs")
    parser.add_argument("--trace", action="store_true", help="write where the time of each task went to OUT/logs")
    parser.add_argument("--prewarm", choices=("auto", "skip", "only"), default="auto")
    parser.add_argument("--prewarm-minutes", type=float, default=3.0)
    parser.add_argument("--resume", action="store_true", help="leave out what OUT/archive.db holds a finished outcome of")
    parser.add_argument("--retry", default="", help="with --resume: statuses to run again all the same, such as crashed,unscored")
    parser.add_argument("--archive", help="archive of an earlier call, copied to OUT when OUT has none")
    parser.add_argument("--out", default="results")
    parser.add_argument("--cache", default=str(Path(tempfile.gettempdir()) / "warpwright_inductor"))
    parser.add_argument("--search", default="ladder")
    parser.add_argument("--budget", default="45s", help="of one task's search, such as 45s or '200s,5 proposals'")
    parser.add_argument("--budget-of", choices=("search", "all"), default="search", help="what the budget's seconds are of")
    parser.add_argument("--baselines", default="", help="comma-separated; empty: those of the device")
    parser.add_argument("--timing-seconds", type=float, default=5.0, help="limit for timing one candidate")
    parser.add_argument("--precision", default="strict")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--title", default="KernelBench")
    options = parser.parse_args(arguments)
    try:
        Budget.parse(options.budget)  # here, and not in every task
    except UsageError as error:
        parser.error(str(error))
    return options


def _say(text: str) -> None:
    print(f"[{datetime.now(UTC):%H:%M:%S}] {text}", file=sys.stderr, flush=True)


# --- what is to be done ------------------------------------------------------------------------------------------------------------


def _jobs(options: argparse.Namespace, archive: Path, deadline: float) -> list[bench.Job]:
    root = Path(options.kernelbench)
    root = root / "KernelBench" if (root / "KernelBench").is_dir() else root
    device = "cuda" if options.gpus else "cpu"
    baselines = tuple(filter(None, options.baselines.split(",")))
    settings = bench.Settings(
        device, options.search, options.budget, baselines, options.precision, scale=options.scale, timing_seconds=options.timing_seconds,
        budget_of=options.budget_of,
    )  # fmt: skip
    machine = kind_of_machine(device)
    folders = [root / f"level{level}" for level in options.levels.split(",")]
    files = [file for folder in folders for file in bench.find_tasks([folder], options.tasks)]
    only = list(filter(None, options.only.split(",")))
    files = [file for file in files if not only or _pair(file[0]) in only]
    known = _footprints(options.footprints)
    files = [file for file in files if _wanted(known.get(_pair(file[0])), options)]
    if options.draw:
        seed, count = map(int, options.draw.split(","))
        files = levels_in_turn(files, seed)[:count]
    return [bench.Job(path, settings, str(archive.absolute()), machine, entry, None, deadline) for path, entry in files]


def _wanted(peak: float | None, options: argparse.Namespace) -> bool:
    """Whether a task's eager peak in bytes lies between what is asked for; one that is not known does where nothing is."""
    if peak is None:
        return options.smallest == 0 and options.largest == math.inf
    return options.smallest < peak / 1e9 <= options.largest


def levels_in_turn(files: Sequence[tuple[str, str | None]], seed: int) -> list[tuple[str, str | None]]:
    """Return task files in an order drawn at random, one of each level in turn: whatever ends a run, the levels have come equally far."""
    generator, levels = random.Random(seed), dict[str, list[tuple[str, str | None]]]()
    for file in files:
        levels.setdefault(Path(file[0]).parent.name, []).append(file)
    shuffled = [generator.sample(own, len(own)) for _, own in sorted(levels.items())]
    return [file for row in itertools.zip_longest(*shuffled) for file in row if file is not None]


def _footprints(path: Path | None) -> dict[str, float]:
    """Return the eager peaks in bytes that a file holds, by level:number."""
    return json.loads(path.read_text()) if path is not None and path.exists() else {}


def _sized(jobs: Sequence[bench.Job], first: Sequence[str] = (), kept: Path | None = None) -> list[Waiting]:
    """Return the jobs with the memory they may take, level 3 and the largest first: small ones fill the gaps beside them.

    A task whose footprint is unknown is taken to need a whole device. Footprints that are found are `kept`.
    """
    waiting, known = [], _footprints(kept)
    for job in jobs:
        task, pair = job.describe(), _pair(job.path)
        if pair not in known:
            try:
                known[pair] = float(footprint.peak_bytes(task))
            except TaskError as error:
                _say(f"{task.name}: footprint unknown, runs alone: {error}")
                known[pair] = math.inf
        waiting.append(Waiting(job, task, known[pair]))
    if kept is not None:
        kept.write_text(json.dumps(known))
    return sorted(waiting, key=lambda one: (_place(one.job.path, first), Path(one.job.path).parent.name == "level3", one.peak), reverse=True)


def _place(path: str, first: Sequence[str]) -> int:
    """Return a number that is the larger the sooner a task shall run: level:number pairs in `first` come first, in their order."""
    name = _pair(path)
    return len(first) - first.index(name) if name in first else 0


def _pair(path: str) -> str:
    """Return a file's level:number pair."""
    file = Path(path)
    return f"{file.parent.name.removeprefix('level')}:{file.stem.partition('_')[0]}"


def _devices(options: argparse.Namespace) -> list[Device]:
    if not options.gpus:
        return [Device(None, 0.8 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), options.jobs_on_cpu)]
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    asked = subprocess.run(query, capture_output=True, text=True, check=True)
    sizes = [0.92 * 2**20 * float(line) for line in asked.stdout.split()]
    given = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    sizes = [sizes[int(name)] if name.isdigit() else min(sizes) for name in given.split(",")] if given else sizes
    if len(sizes) < options.gpus:
        raise SystemExit(f"expected {options.gpus} GPUs, saw {len(sizes)}; lower --gpus")
    return [Device(index, size, options.jobs_per_gpu, promised=options.promised) for index, size in enumerate(sizes[: options.gpus])]


# --- scheduling --------------------------------------------------------------------------------------------------------------------


def _schedule(
    tasks: Sequence[Waiting], devices: Sequence[Device], function: str, deadline: float, environment: dict[str, str],
    processes: ProcessPool | None = None, out: Path | None = None, last_begin: float = math.inf,
) -> None:  # fmt: skip
    """Run `function` for every task, on each device the first that fits, until all are done or time is up; then end what still runs.

    By `processes`, which are kept for more than one task; else each in a process of its own. A task's line goes to a file in `out` at once.
    None is begun after `last_begin`.
    """
    queue, stop, done = list(tasks), threading.Event(), 0
    passed: Counter[str] = Counter()
    running: dict[Future[Any], tuple[Device, Waiting, float]] = {}
    with ThreadPoolExecutor(sum(device.slots for device in devices)) as pool:
        try:
            while (running or (queue and time.time() < last_begin)) and time.time() < deadline:
                for device in devices if time.time() < last_begin else ():
                    for waiting in _fitting(device, queue, passed):
                        job, given = waiting.job.to_json(), environment | _environment(device)
                        if processes is not None:
                            future = pool.submit(processes.do, function, job, given, stop)
                        else:
                            future = pool.submit(run_job, function, job, given, None, stop)
                        running[future] = (device, waiting, time.time())
                ended, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in ended:
                    device, waiting, began = running.pop(future)
                    device.running.remove(waiting)
                    done += 1
                    _say(f"{done}/{len(tasks)} {device} {time.time() - began:.0f}s {waiting.task.name}: {_said(future.result())}")
                    if out is not None:
                        _note(out, waiting.job, future.result())
        finally:
            stop.set()  # run_job then interrupts its job, which has a few seconds to end
            if running:
                _say(f"time is up: {len(running)} jobs end early, {len(queue)} were not begun")
            for future, (device, waiting, _) in running.items():
                device.running.remove(waiting)
                if out is not None:
                    _note(out, waiting.job, future.result())


MOST_PASSED = 8
"""Tasks that may go before one for which there is no room: else small ones would for ever, and what ends would be no sample of a draw."""


def _fitting(device: Device, queue: list[Waiting], passed: Counter[str]) -> list[Waiting]:
    """Move the tasks that fit from the queue to the device, and return them. `passed`: how many have gone before each that has to wait."""
    chosen, waits = [], list[str]()
    for waiting in list(queue):
        if len(device.running) >= device.slots or any(passed[path] >= MOST_PASSED for path in waits):
            break
        if device.takes(waiting):
            queue.remove(waiting)
            device.running.append(waiting)
            chosen.append(waiting)
            passed.update(waits)
        else:
            waits.append(waiting.job.path)
    return chosen


def _environment(device: Device) -> dict[str, str]:
    return {} if device.index is None else {"CUDA_VISIBLE_DEVICES": visible(device.index)}


def visible(index: int) -> str:
    """Return the name by which a process sees the GPU of this index alone: the entry of CUDA_VISIBLE_DEVICES where the caller was given some."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return given.split(",")[index] if given else str(index)


def _note(out: Path, job: bench.Job, result: Any) -> None:
    """Append what came of a job to the lines of those that are finished, or of those that are not."""
    file = Path(job.path)
    name = f"{file.parent.name}_{file.stem}" if file.parent.name.startswith("level") else file.stem  # as other lines have it
    line = result if isinstance(result, dict) else {"task": name, "status": "crashed", "reason": str(result)[-2000:]}
    with (out / ("results.jsonl" if bench.finished(job) is not None else "unfinished.jsonl")).open("a") as lines:
        lines.write(json.dumps({**line, "tried": _tried(job)}) + "\n")


def _tried(job: bench.Job) -> list[dict[str, Any]]:
    """Return what became of each candidate of a task: its recipe, its status, its speed-up, and why it was rejected."""
    try:
        with Archive(job.archive, readonly=True) as archive:
            records = archive.records(job.describe())
    except WarpwrightError as error:
        return [{"status": "unknown", "reason": str(error)[:MOST_REASON]}]
    return [
        {
            "recipe": [str(action) for action in record.candidate.actions], "status": record.status, "speedup": record.speedup or None,
            "verdict": record.measurement.verdict if record.measurement else None, "reason": record.detail[:MOST_REASON],
        }
        for record in records if not is_baseline(record)
    ]  # fmt: skip


def traced_job(payload: dict[str, Any]) -> dict[str, Any]:
    """Do a job, and write where its time went beside the archive."""
    logs = Path(payload["archive"]).parent / "logs"
    logs.mkdir(exist_ok=True)
    events: list[Any] = []
    try:
        with phases.traced() as events:
            return bench.run_job(payload)
    finally:
        (logs / f"{Path(payload['path']).parent.name}_{Path(payload['path']).stem}.txt").write_text(phases.text(events) + "\n")


def _said(result: Any) -> str:
    """Return what came of a job, in a line."""
    if not isinstance(result, dict):
        return " ".join(str(result).split())[-400:]
    speedup = (result.get("speedup") or {}).get("best")
    gain = f" {speedup:.2f}x {result.get('verdict')}" if speedup else ""
    return f"{result['status']}{gain} {(result.get('reason') or '')[:200]}"


def prewarm(payload: dict[str, Any]) -> dict[str, str]:
    """Compile a task's torch.compile baselines once, so that their kernels are in the cache that baseline workers use.

    max-autotune makes its choices here, beside other tasks on the same GPU, and they are kept: choosing again alone takes 10 to 25 s a task
    on an H200, several times what the rest of a task takes. The results say so.
    """
    import torch
    from torch._inductor import config

    from warpwright import targets
    from warpwright.tasks import taskfile

    job = bench.Job.from_json(payload)
    task = job.describe()
    inputs = taskfile.load(task).make_inputs(0, "cuda")
    done = []
    for name, source in targets.baselines(taskfile.source_text(task), "cuda:0", job.settings.baselines or None).items():
        if "compile" not in name:
            continue
        namespace = taskfile.run_text(source.text, f"{name}.py", f"{task.key}_{name}")
        with config.patch(fx_graph_cache=True, autotune_local_cache=True), torch.device("cuda"), torch.no_grad():
            namespace.ModelNew(*namespace.get_init_inputs())(*inputs)
        torch.cuda.synchronize()
        torch.compiler.reset()
        done.append(name)
    return {"status": f"compiled {', '.join(done)}"}


# --- results -----------------------------------------------------------------------------------------------------------------------


def _write(out: Path, options: argparse.Namespace, lines: list[dict[str, Any]], total: int, devices: Sequence[Device]) -> None:
    (out / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if lines:
        (out / "results.md").write_text(summary.document(options.title, _facts(options, len(lines), total, devices), lines))
    archive = out / "archive.db"
    if archive.exists():
        with Archive(archive):  # the last one to close it folds the write-ahead log into the file
            pass
        _split(archive)


def _facts(options: argparse.Namespace, finished: int, total: int, devices: Sequence[Device]) -> dict[str, Any]:
    import torch

    machine = kind_of_machine("cuda" if options.gpus else "cpu")
    facts = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "tasks": f"{finished} of {total} (levels {options.levels})"}
    facts["machine"] = f"{len(devices)} x {machine}" if options.gpus else f"{machine}, {len(os.sched_getaffinity(0))} cores"
    facts["versions"] = f"torch {torch.__version__}, CUDA {torch.version.cuda}, Python {platform.python_version()}"
    if options.gpus and options.prewarm != "skip":
        facts["autotuning"] = "compile_max_autotune chose its kernels while other tasks compiled on the same GPU, then was timed alone"
    facts["settings"] = f"search {options.search}, budget {options.budget} a task, precision {options.precision}, scale {options.scale:g}"
    return facts


def _split(path: Path) -> None:
    """Cut a file that is too large to carry into numbered parts: `cat archive.db.*` joins them."""
    if path.stat().st_size <= FILE_BYTES:
        return
    data = path.read_bytes()
    for number, start in enumerate(range(0, len(data), FILE_BYTES)):
        path.with_name(f"{path.name}.{number}").write_bytes(data[start : start + FILE_BYTES])
    _say(f"{path} is larger than {FILE_BYTES} bytes: its parts are beside it")


if __name__ == "__main__":
    raise SystemExit(main())

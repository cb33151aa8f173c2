"""The training as one command that can be killed at any time: each seed, each stage, the comparison; what is finished is not done again."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from warpwright.archive import Archive
from warpwright.errors import MissingExtra, UsageError
from warpwright.learn.policy import compare, priors, rows, stages
from warpwright.learn.policy.config import Config, completed
from warpwright.learn.policy.live import LiveTask
from warpwright.learn.policy.log import Log
from warpwright.learn.policy.recorded import RecordedTask, tasks_of, words_of
from warpwright.policy.model import NOTES, Notes, Policy, make, rng_of
from warpwright.run import Settings
from warpwright.server import Service
from warpwright.server.cluster import Evaluators
from warpwright.server.verbs import Verbs

Tell = Callable[[str], None]

STAGES = ("supervised", "self_supervised", "contrastive")

DONE = "compared.json"


def train(config: Config, out: Path, tell: Tell) -> dict[str, Any]:
    """Train a policy for each seed and compare it on the tasks it never saw; return the report, which is in `out`/report.json too.

    Raise UsageError where `out` holds another config's training.
    """
    _claim(config, out)
    tasks = tasks_of(rows.merged(row for name in config.data.rows for row in rows.read(Path(config.folder) / name)))
    if len(tasks) < config.data.parts:
        raise UsageError(f"expected recorded tasks for {config.data.parts} parts, saw {len(tasks)}", "collect more, or lower data.parts")
    if config.jobs > 1:
        with ProcessPoolExecutor(config.jobs, get_context("spawn")) as pool:
            ordered = pool.map(one_seed, *zip(*((config, tasks, seed, out / f"seed_{seed}", aloud) for seed in config.seeds), strict=True))
            results = dict(zip(config.seeds, ordered, strict=True))
    else:
        results = {seed: one_seed(config, tasks, seed, out / f"seed_{seed}", tell) for seed in config.seeds}
    report = {
        "name": config.name, "tasks": len(tasks), "recipes": sum(len(task.speedups) - 1 for task in tasks),
        "held_out": {str(seed): sorted(one["shares"]["random"]) for seed, one in results.items() if "random" in one["shares"]},
        "seconds": round(sum(one["seconds"] for one in results.values()), 1),
        "table": compare.table({seed: one["shares"] for seed, one in results.items()}, config.comparing.evaluations, "supervised"),
    }  # fmt: skip
    _write(out / "report.json", report)
    return report


def aloud(text: str) -> None:
    """Tell standard error."""
    print(text, file=sys.stderr, flush=True)


def split(tasks: Sequence[RecordedTask], config: Config, seed: int) -> tuple[list[RecordedTask], list[RecordedTask]]:
    """Return the tasks that a seed trains on, and those that it holds out: seed n holds out part n of the deal, whatever devices it was measured on.

    Where a device is held out, nothing that was measured there is trained on, and only that is compared.
    """
    keys = list(dict.fromkeys(task.key or task.name for task in tasks))
    dealt = rng_of("deal", config.data.deal).sample(keys, len(keys))
    held = dealt[seed % config.data.parts :: config.data.parts]
    apart = config.data.held_device
    if apart and len({task.device == apart for task in tasks}) < 2:
        raise UsageError(f"expected rows of {apart} and of another device", f"saw those of {', '.join(sorted({task.device for task in tasks}))}")
    training = [task for task in tasks if (task.key or task.name) not in held and (not apart or task.device != apart)]
    asked = [task for key in held for task in tasks if (task.key or task.name) == key and (not apart or task.device == apart)]
    return training, asked


def one_seed(config: Config, tasks: Sequence[RecordedTask], seed: int, folder: Path, tell: Tell) -> Mapping[str, Any]:
    """Train and compare one seed, from where it was left."""
    if (folder / DONE).is_file():
        return dict(json.loads((folder / DONE).read_text()))
    try:
        import torch
        from transformers.utils import logging
    except ImportError as error:
        raise MissingExtra(error.name or "transformers", "learn", "training a policy") from error
    logging.disable_progress_bar()
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder), _deterministic(torch, config.threads):
        return _trained(config, tasks, seed, folder, tell)


@contextmanager
def _deterministic(torch: Any, threads: int) -> Iterator[None]:
    """Have torch's algorithms deterministic and this many threads; afterwards what the process had."""
    memory = torch.utils.deterministic
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    filled = memory.fill_uninitialized_memory
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    memory.fill_uninitialized_memory = False  # TRL's fine-tuning asks for 134 MB of scratch at each step and uses 1 % of it
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1], warn_only=before[2])
        memory.fill_uninitialized_memory = filled


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a seed's folder; raise UsageError where another process does. The kernel lets go of it when a process dies."""
    with open(folder / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"expected {folder} to be free, saw another process that trains there", "wait for it, or give another --out") from error
        yield


def _trained(config: Config, tasks: Sequence[RecordedTask], seed: int, folder: Path, tell: Tell) -> Mapping[str, Any]:
    log = Log(folder / "log.jsonl", seed=seed)
    training, held = split(tasks, config, seed)
    for name in STAGES:
        if not _skipped(config, name):
            _stage(config, name, tasks, training, seed, folder, log, tell)
    began = time.monotonic()
    most = max(config.comparing.evaluations)
    trained = {name: Policy.load(folder / name) for name in STAGES if (folder / name).is_dir()}
    lines = {name: compare.policy_lines(policy, held, config.comparing.runs, most, seed) for name, policy in trained.items()}
    lines |= {name: compare.search_lines(name, held, config.comparing.runs, most, seed) for name in config.comparing.searches}
    shares = {name: compare.shares(one, held, config.comparing.evaluations) for name, one in lines.items()}
    seconds = sum(line["seconds"] for line in log.lines() if line.get("finished"))
    result = {"shares": shares, "seconds": seconds + time.monotonic() - began}
    _write(folder / DONE, result)
    tell(f"seed {seed}: compared on {len(held)} tasks held out in {time.monotonic() - began:.0f} s")
    return result


def _notes(config: Config) -> Notes:
    """Return how the policies of all stages are asked once they are trained; while they explore, a stage has its own temperature."""
    return Notes(config.contrastive.exemplars, config.contrastive.asked_at)


def _skipped(config: Config, name: str) -> bool:
    return (name == "self_supervised" and config.self_supervised.rounds == 0) or (name == "contrastive" and config.contrastive.steps == 0)


def _stage(
    config: Config, name: str, tasks: Sequence[RecordedTask], training: Sequence[RecordedTask], seed: int, folder: Path, log: Log, tell: Tell
) -> None:
    """Do one stage, unless it is finished; what it made stands in a folder of its name, which appears when it is whole."""
    if (folder / name / NOTES).is_file():
        return
    began = time.monotonic()
    earlier = [folder / one for one in STAGES[: STAGES.index(name)] if (folder / one).is_dir()]
    notes = _notes(config)
    policy = Policy.load(earlier[-1]) if earlier else Policy(*make(words_of(tasks), config.model, seed), notes, priors.learned(training))
    with _answering(training, config, folder, log, name == "contrastive" and bool(config.data.tasks)) as answering:
        getattr(stages, name)(policy, answering, config, seed, folder / f"{name}.steps", log)
    partial = folder / f"{name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    policy.save(partial)
    os.replace(partial, folder / name)
    shutil.rmtree(folder / f"{name}.steps", ignore_errors=True)
    seconds = time.monotonic() - began
    log.add(stage=name, finished=True, seconds=round(seconds, 1))
    tell(f"seed {seed}: {name} in {seconds:.0f} s")


@contextmanager
def _answering(
    training: Sequence[RecordedTask], config: Config, folder: Path, log: Log, live: bool
) -> Iterator[Sequence[RecordedTask | LiveTask]]:
    """Yield the training tasks; where some are `live`, the evaluator answers those that have a file: a service, or over Ray, if several at once."""
    if not live:
        yield training
        return
    settings = Settings(device=config.data.device, baselines=("eager",), timing_seconds=2.0)
    with ExitStack() as held:
        archive = held.enter_context(Archive(folder.parent / "archive.db"))
        service: Verbs | None = None
        if config.data.executor == "ray":
            service = held.enter_context(Evaluators(config.data.jobs, archive))
        elif config.data.jobs > 1:
            lanes = len(config.data.tasks)
            service = held.enter_context(Service(folder / "service", jobs=config.data.jobs, lanes=lanes, archive=archive)).session()
        found = [LiveTask(Path(config.folder) / name, settings, archive, service=service) for name in config.data.tasks]
        by_name = {task.name: task for task in found}
        try:
            yield [by_name.get(task.name, task) for task in training]
        finally:
            if isinstance(service, Evaluators) and service.deaths:
                log.add(stage="contrastive", deaths=service.deaths)


def _claim(config: Config, out: Path) -> None:
    """Make `out` this config's, or see that it is."""
    out.mkdir(parents=True, exist_ok=True)
    configured, path = _plain(config.as_json()), out / "config.json"
    if path.is_file() and _plain(completed(json.loads(path.read_text()))) != configured:
        raise UsageError(f"expected {out} to be empty or of this config, saw the training of another", "give another --out")
    _write(path, configured)


def _plain(value: Any) -> Any:
    """Return a value as it is read back from a file."""
    return json.loads(json.dumps(value))


def _write(path: Path, value: Any) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(value, indent=1) + "\n")
    os.replace(partial, path)

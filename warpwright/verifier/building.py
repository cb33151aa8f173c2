"""A program is built in a worker: written, imported, constructed, given a throw-away state, called on warm-up inputs, and locked in."""

from __future__ import annotations

import contextlib
import math
import re
import time

from warpwright.base import Build, Source, Verdict
from warpwright.errors import CallRaised, JudgeFailed, WorkerDied
from warpwright.tasks import sources, taskfile
from warpwright.verifier import aftermath
from warpwright.verifier.judge_client import TIMED_STATE, Judge
from warpwright.verifier.rejections import Rejected, as_rejections, census, deliberate, good, load_state, prepare_call, rejection
from warpwright.workers.sandbox import Worker

WARM_UP_STATE = 9
WARM_UPS = 3  # torch.compile's CUDA graphs are recorded at the second call and replayed from the third
COMPILERS = ("compile", "triton", "cpp_extension", "nvrtc", "cuda_on_cpu", "subprocess")
"""In a program's text: it may compile in its first call, which takes up to minutes. Another that takes so long hangs."""
FORBIDDEN_TEXT = (
    (r"/proc/[^\s\"']*/mem\b", "the memory of a process"),
    (r"\bprocess_vm_(read|write)v\b", "the memory of another process"),
    (r"\bptrace\s*\(", "tracing of another process"),
    (r"\bLD_PRELOAD\b", "replacement of library functions"),
)
FRAMES = ((r"\b(f_back|tb_frame|f_locals|gi_frame|cr_frame)\b", "the frames of whoever calls"),)
"""Looked for after the warm-up, when the watch has seen what `sys._getframe` was asked for: there are roads to a frame that it does not see."""


def build(judge: Judge, worker: Worker, entry: str, source: Source) -> tuple[Build, Verdict | None]:
    """Build `source` in `worker` under the name `entry`, warm it up, and end a candidate's build phase. A verdict is a rejection."""
    start = time.monotonic()
    try:
        with as_rejections():
            resources = _build(judge, worker, entry, source)
    except Rejected as rejected:
        verdict = deliberate(worker, rejected.verdict)
        return Build(False, f"{verdict.reason}\n{worker.log()}".strip(), time.monotonic() - start), verdict
    return Build(True, worker.log(), time.monotonic() - start, resources), None


def _build(judge: Judge, worker: Worker, entry: str, source: Source) -> dict[str, float]:
    untrusted = worker.role == "candidate"
    if untrusted:
        scan(source)
    limit = worker.limits.build_seconds
    facts = judge.facts
    try:
        greeting = good(worker.greet(), "build")
        if worker.freezes:
            worker.memory.probe(greeting["probe"])
    except WorkerDied as error:  # no line of the program has run yet
        raise JudgeFailed(f"a worker did not come up: {error}") from error
    worker.isolation = tuple(greeting["isolation"])
    judge.probe(worker)
    files = [list(pair) for pair in source.files]
    if untrusted and (packages := _packages(judge, source)):
        worker.request("load", limit, modules=packages)  # one that raises does so again in the program
    about = {name: facts[name] for name in ("init", "training", "apart", "lazy")} | {"stateful": bool(facts["mutated_state"])}
    if worker.role == "baseline" and facts["draws_matter"]:  # else what torch.compile draws by kernels of its own are other numbers
        about["as_eager_draws"] = True
    about["tf32"] = judge.task.precision == "tf32"  # what a candidate may do, eager, torch.compile and a CUDA graph do as well
    worker.loaded.pop(entry, None)
    reply = worker.with_tensors("build", limit, entry=entry, files=files, class_name=source.entry, **about)
    seconds = float(good(reply, "build")["seconds"])
    if untrusted:
        _expect_no_children(worker)  # before the first call too: it might wait for such a process for ever
    load_state(judge, worker, entry, WARM_UP_STATE if untrusted else TIMED_STATE)
    _warm_up(judge, worker, entry, source)
    if untrusted:
        watched = "none" if facts["draws_elsewhere"] else "others" if facts["random"] else "all"
        filtered = good(worker.request("lock", filtered=worker.filtered, random=watched), "build")["filter"]
        worker.isolation += ("filter",) if filtered == "" else ()
        census(worker)
        scan(source, FRAMES)
        _expect_no_children(worker)
        expect_one_context(worker)
    return {"import_seconds": seconds}


def _expect_no_children(worker: Worker) -> None:
    children = worker.children()
    if children:
        raise Rejected(rejection("background", f"{children} processes are left from the build; end them before the constructor returns"))


def expect_one_context(worker: Worker, case: str = "") -> None:
    """Reject a candidate whose process has a second CUDA context."""
    shown = aftermath.second_context(worker) if worker.device != "cpu" and worker.role == "candidate" else ""
    if shown:
        raise Rejected(rejection("background", shown, case))


def _warm_up(judge: Judge, worker: Worker, entry: str, source: Source) -> None:
    shipment, shipments = None, 0
    for number in range(WARM_UPS):
        with judge.turn:
            if shipment is None or judge.shipments != shipments:  # another thread's have come since
                shipment = judge.ship(judge.warm_up)
                shipments = judge.shipments
            prepare_call(worker, entry, shipment)
        patient = worker.role != "candidate" or (number == 0 and any(name in source.text for name in COMPILERS))
        longest, usual = worker.limits.build_seconds, min(worker.limits.warm_up_seconds, worker.limits.build_seconds)
        try:
            began = time.monotonic()
            worker.go(longest if patient else usual, idle=usual if worker.role == "candidate" else math.inf)
            worker.slowest_warm_up = max(worker.slowest_warm_up, time.monotonic() - began)
        except CallRaised as error:
            raise Rejected(rejection("build", f"the warm-up call raised: {error}")) from error
    if worker.role == "candidate" and any(name in source.text for name in COMPILERS):
        for case in judge.kinds_of_call():
            with judge.turn:
                prepare_call(worker, entry, judge.ship(case))
            with contextlib.suppress(CallRaised):  # as it may at unusual strides
                worker.go(worker.limits.build_seconds, idle=worker.limits.warm_up_seconds)


def scan(source: Source, patterns: tuple[tuple[str, str], ...] = FORBIDDEN_TEXT) -> None:
    """Reject texts that can only be meant to get at other processes or at the harness."""
    for name, text in source.files:
        for pattern, what in patterns:
            match = re.search(pattern, text)
            if match:
                raise Rejected(rejection("source", f"{name} names {match[0]!r}: {what}"))


def _packages(judge: Judge, source: Source) -> list[str]:
    """Return the modules of the task's own program that a candidate may import too; most import torch alone, and transformers takes seconds."""
    roots = {name.partition(".")[0] for _, text in source.files for name in sources.imported(text)}
    return [name for name in taskfile.packages(judge.task) if name.partition(".")[0] in roots]

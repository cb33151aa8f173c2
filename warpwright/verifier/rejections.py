"""Requests to a worker that holds a program; whatever it does wrong in answering is a rejection. Runs in the parent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from warpwright.base import Verdict
from warpwright.errors import CallRaised, WorkerDied, WorkerError, WorkerProtocol, WorkerRan, WorkerTimeout, told_full
from warpwright.verifier.checks import ADVICE, CHECKS, DISTRIBUTIONS, FOUND
from warpwright.verifier.draw import TAKEN
from warpwright.verifier.judge_client import Comparison, Judge, Shipment
from warpwright.workers.process import printable
from warpwright.workers.sandbox import Worker

DEVICE_ADVICE = "compute-sanitizer, or CUDA_LAUNCH_BLOCKING=1, names the kernel"


class Rejected(Exception):
    """Ends a verification: holds the verdict."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


def rejection(check: str, reason: str, case: str = "", comparison: Comparison | None = None) -> Verdict:
    """Return the verdict of a failed check."""
    errors, original = (comparison.errors, comparison.original) if comparison else (None, None)
    inputs = f"\nThe inputs ({case}): {DISTRIBUTIONS[case]}" if comparison and case != "nominal" and case in DISTRIBUTIONS else ""
    advice = f"\nWhat to do: {ADVICE[check]}" if check in ADVICE else ""
    return Verdict(False, CHECKS[check].status, printable(reason) + inputs + advice, case, errors, original, check)


def verdict_of(error: WorkerError, case: str = "") -> Verdict:
    """Return the verdict on a candidate whose worker failed in this way."""
    if isinstance(error, CallRaised):
        return rejection("raised", f"the call raised: {error}", case)
    if isinstance(error, WorkerTimeout):
        return rejection("timeout", str(error), case)
    if isinstance(error, WorkerProtocol):
        return rejection("forged_reply", str(error), case)
    if isinstance(error, WorkerRan):
        return rejection("background", str(error), case)
    check = "resources" if isinstance(error, WorkerDied) and error.hint else "exited"
    return rejection(check, str(error), case)


@contextmanager
def as_rejections(case: str = "") -> Iterator[None]:
    """Turn what a candidate's worker did wrong into a rejection. The judge's own failures pass through."""
    try:
        yield
    except WorkerError as error:
        raise Rejected(verdict_of(error, case)) from error


def good(reply: dict[str, Any], check: str) -> dict[str, Any]:
    """Return a reply that holds no error; reject for `check` otherwise.

    Or for want of memory where that was the error. Or, where kernels of an earlier call have left the device in error, because that call failed: it
    has answered before its error came up, in whatever was asked next.
    """
    if "error" in reply:
        reason = str(reply["error"])
        full = "OutOfMemoryError" in reason or told_full(str(reply.get("kind")), str(reply.get("message")))
        if reply.get("device") and check != "build" and not full:
            raise Rejected(rejection("raised", f"after a call the device was in error: {reply['device']}\n{DEVICE_ADVICE}"))
        raise Rejected(rejection("resources" if full else check, reason))
    return reply


def load_state(judge: Judge, worker: Worker, entry: str, which: int, how: str = "load_state") -> None:
    """Load state number `which` of the original's: `how` is "load_state", or "set_state" to write it in place."""
    write_state(worker, entry, judge.state(which), how)
    if how == "load_state" and which != TAKEN:  # which is another one each time
        worker.loaded[entry] = (judge, judge.drawing_of(which))


def restore_state(judge: Judge, worker: Worker, entry: str, which: int, but: int | None = None) -> None:
    """Bring state number `which` back after a call that changed it: only what differs is written where that state was the last to be loaded.

    What a program works out of parameters once, it would else work out in each call anew: no user's call writes to all parameters. `but`: what calls
    change is to be as this state has it, and is brought about alike.
    """
    loaded = worker.loaded.get(entry) == (judge, judge.drawing_of(which))
    if not loaded:
        load_state(judge, worker, entry, which)
    names = judge.facts["mutated_state"] if but is not None else ()
    shipped = judge.state(but) if but is not None else {}
    other = {name: shipped[name] for name in names}
    if loaded or other:
        _written(worker, good(worker.with_tensors("restore_state", worker.limits.build_seconds, entry=entry, state=other), "state_names"))


def write_state(worker: Worker, entry: str, state: dict[str, Any], how: str, **options: Any) -> None:
    """Load or write tensors of a state by name."""
    worker.loaded.pop(entry, None)
    _written(worker, good(worker.with_tensors(how, worker.limits.build_seconds, entry=entry, state=state, **options), "state_names"), how)


def _written(worker: Worker, reply: dict[str, Any], how: str = "load_state") -> None:
    """Take in where a state lies that was written."""
    if worker.freezes and (how == "load_state" or worker.memory.state is None):
        worker.memory.take_state(reply.get("places"))
    if reply.get("mismatch"):
        raise Rejected(rejection("state_names", f"the original's state does not load: {reply['mismatch']}"))


def prepare_call(worker: Worker, entry: str | None, shipment: Shipment | None, **options: Any) -> None:
    """Lay the inputs out for the next call; without an entry, that is a call of nothing."""
    inputs, draws = (shipment.inputs, shipment.draws) if shipment else (None, None)
    good(worker.lay_out(entry, inputs, draws=draws, **options), "resources")


def exported(worker: Worker, what: str = "outputs", at: int | None = None) -> dict[str, Any]:
    """Return outputs, kept outputs, inputs or state of the last call: out of the stopped process where that is permitted, else by its own hand."""
    if worker.reads:
        return worker.memory.export(what, at)
    return {**good(worker.request("export", what=what, at=at), "resources"), "folder": worker.exchange}


def census(worker: Worker) -> dict[str, Any]:
    """Ask the worker's watch what it found; reject for the first check that found something."""
    reply = good(worker.request("census"), "patched")
    if not isinstance(reply.get("found"), dict):
        raise Rejected(rejection("patched", "the runner's census did not answer as it should: its code was replaced"))
    for check, findings in reply["found"].items():
        if findings:
            raise Rejected(rejection(check, f"{FOUND.get(check, '')}{'; '.join(map(str, findings[:5]))}. The rule: {CHECKS[check].meaning}"))
    return dict(reply["facts"])


def deliberate(worker: Worker, verdict: Verdict) -> Verdict:
    """Return the watch's own finding instead of a failure that a trick brought with it, if it has one."""
    if verdict.status not in ("wrong", "not_built", "crashed") or worker.role != "candidate" or not worker.alive:
        return verdict
    try:
        with as_rejections(verdict.case):
            census(worker)
    except Rejected as rejected:
        if rejected.verdict.status == "cheated":
            return rejected.verdict
    return verdict

"""Candidate against original, case by case: the verdict. Runs in the parent, which imports neither the task nor the candidate.

    build     write, import, construct; load a throw-away state; warm-up calls; `lock` (no new processes, no network)
    state 0   loaded with load_state_dict. Every case: inputs in, one call, output out, compared with float64.
              Around the first call: inputs and buffers compared too, the process watched while idle, the output exported again.
    state 1   written in place, as an optimizer does: whatever was folded or cached before is stale now
    state 2   loaded again; it stays for the timing
    census    functions, settings, events, threads, children

A checked call is the three requests of a timed one: prepare, go, export. Addresses rotate or stay, and fresh memory is filled with one byte
or another, at random, in both.
"""

from __future__ import annotations

import os
import random
import re
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

from warpwright.base import Build, Case, Source, Task, Verdict
from warpwright.errors import WorkerDied, WorkerError, WorkerProtocol, WorkerTimeout
from warpwright.verifier.checks import CHECKS, DISTRIBUTIONS, Certificate, Check
from warpwright.verifier.judge import TIMED_STATE, Comparison, Judge, JudgeFailed, Shipment, cases
from warpwright.verifier.ledger import Ledger
from warpwright.workers import exchange, placement
from warpwright.workers.sandbox import CallRaised, Limits, Worker

__all__ = [
    "CHECKS", "DISTRIBUTIONS", "TIMED_STATE", "Certificate", "Check", "Comparison", "Judge", "JudgeFailed", "Shipment", "TimedProgram",
    "audit", "build", "call_overhead", "cases", "load_timed_state", "verdict_of", "verify",
]  # fmt: skip

WARM_UP_STATE = 9
MINIMUM_CASES = 3
WARM_UPS = 3  # torch.compile's CUDA graphs are recorded at the second call and replayed from the third
QUIET_SECONDS = 0.05
WAKEUPS = 4  # of one thread in the quiet interval; threads that wait for work go to sleep once and do not wake up
QUIET_SHARE = 0.5  # of one core over the quiet interval; OpenMP threads spin for about 2 ms after a call
SECOND_STATE_CASES = 3
STATE_EXPORT_BYTES = 1 << 28  # state is exported to see that nothing else changed, up to this size
SETTLED_SECONDS, SETTLED_SHARE = 0.0015, 0.25  # CPU time that the answering thread may use before it sleeps again, and share of the call
SETTLE_TRIES = 4
AROUND_SHARE = 0.3  # of the checked timed calls have their inputs compared too
PEEK_ALL, PEEK_WINDOW, PEEK_WINDOWS = 1 << 16, 1 << 12, 16  # little, so that it is read before anyone can write more
FORBIDDEN_TEXT = (
    (r"/proc/[^\s\"']*/mem\b", "the memory of a process"),
    (r"\bprocess_vm_(read|write)v\b", "the memory of another process"),
    (r"\bptrace\s*\(", "tracing of another process"),
    (r"\bLD_PRELOAD\b", "replacement of library functions"),
)
FRAMES = ((r"\b(f_back|tb_frame|f_locals|gi_frame|cr_frame)\b", "the frames of whoever calls"),)
"""Looked for after the warm-up, when the watch has seen what `sys._getframe` was asked for: there are roads to a frame that it does not see."""


class Rejected(Exception):
    """Ends a verification: holds the verdict."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


def rejection(check: str, reason: str, case: str = "", comparison: Comparison | None = None) -> Verdict:
    """Return the verdict of a failed check."""
    errors, original = (comparison.errors, comparison.original) if comparison else (None, None)
    return Verdict(False, CHECKS[check].status, reason, case, errors, original, check)


def verdict_of(error: WorkerError, case: str = "") -> Verdict:
    """Return the verdict on a candidate whose worker failed in this way."""
    if isinstance(error, CallRaised):
        return rejection("raised", f"the call raised: {error}", case)
    if isinstance(error, WorkerTimeout):
        return rejection("timeout", str(error), case)
    if isinstance(error, WorkerProtocol):
        return rejection("forged_reply", str(error), case)
    check = "resources" if isinstance(error, WorkerDied) and error.hint else "exited"
    return rejection(check, str(error), case)


# --- build --------------------------------------------------------------------------------------------------------------------------


def build(judge: Judge, worker: Worker, entry: str, source: Source) -> tuple[Build, Verdict | None]:
    """Build `source` in `worker` under the name `entry`, warm it up, and end a candidate's build phase. A verdict is a rejection."""
    start = time.monotonic()
    try:
        with _as_rejections():
            resources = _build(judge, worker, entry, source)
    except Rejected as rejected:
        verdict = deliberate(worker, rejected.verdict)
        return Build(False, f"{verdict.reason}\n{worker.log()}".strip(), time.monotonic() - start), verdict
    return Build(True, worker.log(), time.monotonic() - start, resources), None


@contextmanager
def _as_rejections(case: str = "") -> Iterator[None]:
    """Turn what a candidate's worker did wrong into a rejection. The judge's own failures pass through."""
    try:
        yield
    except WorkerError as error:
        raise Rejected(verdict_of(error, case)) from error


def _build(judge: Judge, worker: Worker, entry: str, source: Source) -> dict[str, float]:
    untrusted = worker.role == "candidate"
    if untrusted:
        scan(source)
    limit = worker.limits.build_seconds
    facts = judge.facts
    worker.isolation = tuple(_good(worker.request("hello"), "build")["isolation"])
    judge.probe(worker)
    files = [list(pair) for pair in source.files]
    reply = worker.request("build", limit, entry=entry, files=files, class_name=source.entry, init=facts["init"], training=facts["training"])
    seconds = float(_good(reply, "build")["seconds"])
    if untrusted:
        _expect_no_children(worker)  # before the first call too: it might wait for such a process for ever
    _load(judge, worker, entry, "load_state", WARM_UP_STATE if untrusted else TIMED_STATE)
    _warm_up(judge, worker, entry)
    if untrusted:
        filtered = _good(worker.request("lock", filtered=worker.filtered, random=not facts["random"]), "build")["filter"]
        worker.isolation += ("filter",) if filtered == "" else ()
        census(worker)
        scan(source, FRAMES)
        _expect_no_children(worker)
    return {"import_seconds": seconds}


def _expect_no_children(worker: Worker) -> None:
    children = worker.children()
    if children:
        raise Rejected(rejection("background", f"{children} processes are left from the build; end them before the constructor returns"))


def _warm_up(judge: Judge, worker: Worker, entry: str) -> None:
    shipment = judge.ship(judge.warm_up)
    for _ in range(WARM_UPS):
        _prepare(worker, entry, shipment)
        try:
            worker.go(worker.limits.build_seconds)
        except CallRaised as error:
            raise Rejected(rejection("build", f"the warm-up call raised: {error}")) from error


def scan(source: Source, patterns: tuple[tuple[str, str], ...] = FORBIDDEN_TEXT) -> None:
    """Reject texts that can only be meant to get at other processes or at the harness."""
    for name, text in source.files:
        for pattern, what in patterns:
            match = re.search(pattern, text)
            if match:
                raise Rejected(rejection("source", f"{name} names {match[0]!r}: {what}"))


def _good(reply: dict[str, Any], check: str) -> dict[str, Any]:
    """Return a reply that holds no error; reject for `check` otherwise."""
    if "error" in reply:
        raise Rejected(rejection(check, str(reply["error"])))
    return reply


def _load(judge: Judge, worker: Worker, entry: str, how: str, which: int) -> None:
    reply = _good(worker.request(how, worker.limits.build_seconds, entry=entry, state=judge.state(which)), "state_names")
    if reply.get("mismatch"):
        raise Rejected(rejection("state_names", f"the original's state does not load: {reply['mismatch']}"))


def load_timed_state(judge: Judge, worker: Worker, entry: str) -> None:
    """Load the state that timed calls are made in: a verification that ended early has not come to it."""
    _load(judge, worker, entry, "load_state", TIMED_STATE)


def _prepare(worker: Worker, entry: str | None, shipment: Shipment | None, **options: Any) -> None:
    inputs = shipment.inputs if shipment else None
    _good(worker.request("prepare", worker.limits.build_seconds, entry=entry, inputs=inputs, **options), "resources")


def census(worker: Worker) -> dict[str, Any]:
    """Ask the worker's watch what it found; reject for the first check that found something."""
    reply = _good(worker.request("census"), "patched")
    if not isinstance(reply.get("found"), dict):
        raise Rejected(rejection("patched", "the runner's census did not answer as it should: its code was replaced"))
    for check, found in reply["found"].items():
        if found:
            raise Rejected(rejection(check, f"{CHECKS[check].meaning}; saw: {'; '.join(map(str, found[:5]))}"))
    return dict(reply["facts"])


# --- verify -------------------------------------------------------------------------------------------------------------------------


def verify(judge: Judge, worker: Worker, entry: str, task: Task) -> Verdict:
    """Check a built entry against the task's original. A pass names the case that came nearest to its tolerance."""
    reason = judge.certify().reason or _too_few(judge)
    if reason:
        return Verdict(False, "unscored", f"the task cannot be scored: {reason}")
    try:
        with _as_rejections():
            return _Verification(judge, worker, entry).run()
    except Rejected as rejected:
        return deliberate(worker, rejected.verdict)


def _too_few(judge: Judge) -> str:
    """Return why the cases that are left do not suffice for a verdict, or ""."""
    if len(judge.cases) >= MINIMUM_CASES:
        return ""
    dropped = "; ".join(f"{name}: {problem}" for name, problem in judge.dropped.items())
    return f"{len(judge.cases)} of its cases are sound, {MINIMUM_CASES} are needed ({dropped})"


def deliberate(worker: Worker, verdict: Verdict) -> Verdict:
    """Return the watch's own finding instead of a failure that a trick brought with it, if it has one."""
    if verdict.status not in ("wrong", "not_built", "crashed") or worker.role != "candidate" or not worker.alive:
        return verdict
    try:
        with _as_rejections(verdict.case):
            census(worker)
    except Rejected as rejected:
        if rejected.verdict.status == "cheated":
            return rejected.verdict
    return verdict


class _Verification:
    """One candidate's way through the cases."""

    def __init__(self, judge: Judge, worker: Worker, entry: str) -> None:
        self.judge, self.worker, self.entry = judge, worker, entry
        self.random = random.Random(os.urandom(16))
        self.seen: list[tuple[Case, int]] = [(judge.warm_up, WARM_UP_STATE)]
        self.nearest = (-1.0, Verdict(True, "ok"))

    def run(self) -> Verdict:
        first, second, *others = self.judge.cases
        self.random.shuffle(others)
        _load(self.judge, self.worker, self.entry, "load_state", 0)
        self.first_call(first)
        self.worker.request("keep")
        self.call(second, 0, slot="same")
        self.call(first, 0, check="repeat")
        for case in others:
            self.call(case, 0)
        self.second_state(first, others)
        _load(self.judge, self.worker, self.entry, "load_state", TIMED_STATE)
        self.call(second, TIMED_STATE, check="stale_state")
        self.kept(first)
        self.idle("")
        census(self.worker)
        return self.nearest[1]

    def first_call(self, case: Case) -> None:
        """The call after which everything around the output is looked at as well."""
        self.call(case, 0, watched=True)
        if not self.judge.unchanged(self.export(), self.worker):
            raise Rejected(rejection("late_output", "the output was another one a moment after the call had returned", case.name))
        self.judged(self.judge.compare_inputs(self.export("inputs"), case, 0, self.worker), case)
        if self.judge.facts["state_tensors"]:
            self.judged(self.judge.compare_state(self.export("state"), case, 0, self.worker), case)

    def second_state(self, first: Case, others: list[Case]) -> None:
        """Change the parameters in place; then a few of the cases again."""
        _load(self.judge, self.worker, self.entry, "set_state", 1)
        chosen = [first, *others[: SECOND_STATE_CASES - 1]]
        for case in chosen:
            if case is first or self.judge.viable(case, 1):
                self.call(case, 1, check="stale_state" if self.judge.facts["state_tensors"] else "")

    def call(self, case: Case, which: int, slot: str = "", check: str = "", watched: bool = False) -> None:
        """Make one call and have its output judged. A mere difference in values is reported as `check`, if that is given.

        `watched`: look at the process and at the output in its memory for a while before anything is asked of it.
        """
        if self.judge.facts["stateful"] and len(self.seen) > 1:
            _load(self.judge, self.worker, self.entry, "load_state", which)
        shipment = self.judge.ship(case)
        with _as_rejections(case.name):
            self.after = self.once(shipment, slot)
            for _ in range(SETTLE_TRIES):
                if not self.after.worked_on:
                    break
                if self.judge.facts["mutated_state"]:
                    _load(self.judge, self.worker, self.entry, "load_state", which)
                self.after = self.once(shipment, slot)
            else:
                raise Rejected(rejection("background", self.after.worked_on, case.name))
            if watched:
                self.idle(case.name)
                self.after.expect_same_memory()
            export = self.export()
            self.after.expect_same_bytes(export)
            comparison = self.judge.compare(export, case, which, self.worker, self.seen)
        self.seen.append((case, which))
        if comparison.check == "values":
            comparison = self.explained(comparison, shipment, check)
        elif comparison.check == "cached" and check == "stale_state":
            comparison = Comparison("stale_state", comparison.reason, comparison.excess, comparison.errors, comparison.original)
        self.judged(comparison, case)
        if comparison.excess > self.nearest[0]:
            self.nearest = (comparison.excess, Verdict(True, "ok", "", case.name, comparison.errors, comparison.original))

    def once(self, shipment: Shipment, slot: str) -> Aftermath:
        """Make one call; return what it left behind."""
        poison = self.random.choice((0, 0x55, 0xFF))
        _prepare(self.worker, self.entry, shipment, slot=slot or self.random.choice(("new", "same")), poison=poison)
        before = self.worker.threads()
        self.worker.go()
        return Aftermath(self.worker, before, self.random)

    def explained(self, comparison: Comparison, shipment: Shipment, check: str) -> Comparison:
        """Find out why values are wrong: are they still being computed, or does the answer change with what fresh memory holds?"""
        time.sleep(QUIET_SECONDS)
        self.after.expect_same_memory()
        if self.depends_on_memory(shipment):
            text = f"the output changes with what fresh memory held: not every element is written ({comparison.reason})"
            return Comparison("uninitialised", text, comparison.excess, comparison.errors, comparison.original)
        name = check or "values"
        return Comparison(name, comparison.reason, comparison.excess, comparison.errors, comparison.original)

    def depends_on_memory(self, shipment: Shipment) -> bool:
        exports = []
        for poison in (0x11, 0x66) * 3:  # three times, so that dice are not taken for memory
            _prepare(self.worker, self.entry, shipment, slot="new", poison=poison)
            self.worker.go()
            exports.append(self.judge.digest(self.export(), self.worker))
        return exports[0] != exports[1] and exports[0] == exports[2] == exports[4] and exports[1] == exports[3] == exports[5]

    def kept(self, case: Case) -> None:
        """The output of an earlier call has to be what it was."""
        comparison = self.judge.compare(self.export("kept"), case, 0, self.worker)
        if comparison.check:
            raise Rejected(rejection("output_reuse", f"an output returned earlier was changed by a later call: {comparison.reason}", case.name))

    def idle(self, case: str) -> None:
        """While nothing is asked of it, the worker has to be idle."""
        seen = self.worker.activity(QUIET_SECONDS)
        if seen.cpu_seconds > QUIET_SHARE * seen.seconds:
            text = f"after the call had returned the process used {seen.cpu_seconds:.3f} s of CPU time within {seen.seconds:.3f} s"
            raise Rejected(rejection("background", text, case))
        if self.worker.device == "cpu" and seen.wakeups > WAKEUPS:  # CUDA's driver has threads of its own
            text = f"after the call had returned, a thread woke up {seen.wakeups} times within {seen.seconds:.3f} s"
            raise Rejected(rejection("background", text, case))
        if seen.children:
            raise Rejected(rejection("background", f"after the call had returned {seen.children} child processes were alive", case))

    def export(self, what: str = "outputs") -> dict[str, Any]:
        return _good(self.worker.request("export", what=what), "resources")

    def judged(self, comparison: Comparison, case: Case) -> None:
        if comparison.check:
            raise Rejected(rejection(comparison.check, comparison.reason, case.name, comparison))


class Aftermath:
    """What a call left in the worker's memory when it returned, read at once and without the worker's doing."""

    def __init__(self, worker: Worker, threads_before: frozenset[str], generator: random.Random) -> None:
        self.worker = worker
        self.windows: list[tuple[int, int, bytes]] = []
        """(output, offset, bytes)."""
        for number, block in enumerate(worker.blocks):
            for offset, size in _windows(block.bytes, generator):
                seen = worker.peek(block.address + offset, size)
                if seen is not None:
                    self.windows.append((number, offset, seen))
        self.lingering = worker.device == "cpu" and worker.lingering(threads_before)
        """Threads that the call started go on."""
        self.busy = worker.settle()
        """CPU time that the answering thread used after its answer."""

    @property
    def worked_on(self) -> str:
        """What went on after the answer, or "". Once may be chance: time stolen by a hypervisor counts as CPU time."""
        if self.lingering:
            return "threads that the call had started went on after it had returned"
        if self.busy > SETTLED_SECONDS + SETTLED_SHARE * self.worker.call_seconds:
            return f"after the call had answered, its thread worked on for {self.busy:.4f} s"
        return ""

    def expect_same_memory(self) -> None:
        """The output in the worker's memory is what it was when the call returned, though nothing was asked of the worker since."""
        for number, offset, seen in self.windows:
            if self.worker.peek(self.worker.blocks[number].address + offset, len(seen)) not in (seen, None):
                raise Rejected(rejection("background", f"output {number} was still being written after the call had returned"))

    def expect_same_bytes(self, export: dict[str, Any]) -> None:
        """What the worker exports is what lay in its memory when the call returned."""
        descriptors = list(exchange.descriptors(export.get("tree")))
        if self.worker.device == "cpu" and len(descriptors) != len(self.worker.blocks) and not exchange.has_foreign(export.get("tree")):
            text = f"the call answered with {len(self.worker.blocks)} output tensors, {len(descriptors)} were exported"
            raise Rejected(rejection("forged_reply", text))
        for number, offset, seen in self.windows:
            there = exchange.peek(descriptors[number], offset, len(seen), self.worker.exchange) if number < len(descriptors) else seen
            if there != seen:
                text = f"output {number} came out differently from what was in memory when the call returned: it was computed or changed later"
                raise Rejected(rejection("late_output", text))


def _windows(size: int, generator: random.Random) -> list[tuple[int, int]]:
    """Return what to read of a block: all of a small one, random pieces of a large one."""
    if size <= PEEK_ALL:
        return [(0, size)] if size else []
    places = [size - PEEK_WINDOW, *(generator.randrange(size - PEEK_WINDOW) for _ in range(PEEK_WINDOWS - 1))]
    return [(place, PEEK_WINDOW) for place in places]


# --- timing -------------------------------------------------------------------------------------------------------------------------


class TimedProgram:
    """A built entry that `measure` can time: prepare(shipment), go(), and check() of the very call just timed."""

    def __init__(self, judge: Judge, worker: Worker, entry: str, name: str = "") -> None:
        self.judge, self.worker, self.entry = judge, worker, entry
        self.name = name or entry
        self.ledger = Ledger(worker)
        self._random = random.Random(os.urandom(16))
        self._case: Case | None = None
        self._threads: frozenset[str] = frozenset()

    def prepare(self, inputs: Shipment, place: float) -> None:
        """Copy the inputs in and empty the caches. Not timed. A program whose answer depends on its past is given its state anew.

        On a CPU it is done on the core at `place`, where the main thread then wakes up; the call itself may use every core. The program that had
        the turn before is waited for until its threads sleep: not in `go`, after which an output that is not yet complete has to be seen.
        """
        self._case = inputs.case
        before, TimedProgram._turn = TimedProgram._turn, (self.worker, inputs)
        if before is not None:
            before[0].calm()
        switched = before is None or before[0] is not self.worker or before[1] is not inputs
        with placement.started_at(self.worker.pid, place) if self.worker.device == "cpu" else nullcontext():
            self._lay_out(inputs, switched)
        self._threads = self.worker.threads()

    def _lay_out(self, inputs: Shipment, switched: bool) -> None:
        self.ledger.before_preparing(switched)
        if self.judge.facts["stateful"]:
            _load(self.judge, self.worker, self.entry, "load_state", TIMED_STATE)
        _prepare(self.worker, self.entry, inputs, slot=self._random.choice(("new", "same")), flush=True)
        self.ledger.after_preparing()

    _turn: ClassVar[tuple[Worker, Shipment] | None] = None
    """Who was called last, on which inputs. After another program's turn, or with inputs that the judge has just made, another process was last."""

    def go(self) -> float:
        """Make one call; return its seconds by this process's clock."""
        seconds = self.worker.go()
        self.ledger.after_call()
        return seconds

    def check(self) -> Verdict | None:
        """Return the verdict on the call just made."""
        if self._case is None:
            return None
        self.ledger.interrupted()
        try:
            with _as_rejections(self._case.name):
                comparison = self._compared(self._case)
                if comparison.check:
                    return rejection(comparison.check, f"in a timed call: {comparison.reason}", self._case.name, comparison)
                if self.worker.role == "candidate":
                    census(self.worker)
        except Rejected as rejected:
            return rejected.verdict
        return Verdict(True, "ok", "", self._case.name, comparison.errors, comparison.original)

    def _compared(self, case: Case) -> Comparison:
        """Compare the call's output; and, now and then, its inputs and its state, which a later call may treat otherwise than the first."""
        after = Aftermath(self.worker, self._threads, self._random) if self.worker.role == "candidate" else None
        export = _good(self.worker.request("export"), "resources")
        if after is not None:
            after.expect_same_bytes(export)
        comparison = self.judge.compare(export, case, TIMED_STATE, self.worker)
        if comparison.check or after is None:
            return comparison
        around = comparison
        if self._random.random() < AROUND_SHARE:
            around = self.judge.compare_inputs(_good(self.worker.request("export", what="inputs"), "resources"), case, TIMED_STATE, self.worker)
        if not around.check and self.judge.facts["stateful"] and self.judge.facts["state_tensors"]:
            around = self.judge.compare_state(_good(self.worker.request("export", what="state"), "resources"), case, TIMED_STATE, self.worker)
        return around if around.check else comparison


def call_overhead(worker: Worker, calls: int = 51) -> float:
    """Return the seconds that a call of nothing takes: pipe, wake-up and device synchronisation."""
    seconds = []
    for _ in range(calls):
        _prepare(worker, None, None)
        seconds.append(worker.go())
    return statistics.median(seconds)


# --- all of it ----------------------------------------------------------------------------------------------------------------------


def audit(task: Task, source: Source, device: str = "cpu", limits: Limits | None = None, judge: Judge | None = None) -> tuple[Build, Verdict]:
    """Build and verify one program in workers of its own, which are ended afterwards. `judge`: one to use and leave open."""
    own = judge or Judge(task, device)
    try:
        with Worker("candidate", device, limits) as worker:
            built, rejected = build(own, worker, "candidate", source)
            return built, rejected or verify(own, worker, "candidate", task)
    finally:
        if judge is None:
            own.close()

"""The service: sessions, the queue, the lanes and the archives. From Python it is used as it is; clients reach it through a socket (`listener`).

    with Service("folder") as service:
        answer = service.session().evaluate("softmax_task.py", "class ModelNew ...")

Every session has an archive of its own, that no other sees. A job runs in the lane of its task, device and settings; when the lane's process dies it
is started again, once for a job.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import secrets
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from warpwright.archive import Archive
from warpwright.base import Candidate, Measurement, Record, Task, from_json, is_baseline, to_json
from warpwright.errors import LaneDied, UsageError, WarpwrightError
from warpwright.files import make_folder
from warpwright.reports import explain, report
from warpwright.run import Settings
from warpwright.search.llm.feedback import feedback
from warpwright.server import protocol
from warpwright.server.lane import Asked, Lane
from warpwright.server.protocol import Request, Where, error_of
from warpwright.server.queue import Job, Queue
from warpwright.server.verbs import Verbs, unpacked
from warpwright.space import Facts

MOST_WAITING = 10_000
"""Jobs of one session in the queue."""

CANCEL_SECONDS = 15.0
"""For a cancelled job to end; then its lane is killed."""

DONE_KEPT = 1000
"""Jobs of a session that `status` still knows when they are done."""

LaneKey = tuple[str, str, Settings]
"""A task's key and path, and how its programs are measured."""

OpenLane = Callable[[Task, Settings, Path], Asked]


class Keeping(Protocol):
    """Whoever is given every record, such as an archive."""

    def add(self, record: Record) -> None:
        """Keep a record."""
        ...


class Session(Verbs):
    """One client's view: its jobs, and its archive. `key` opens it again later, also after a restart of the service."""

    def __init__(self, service: Service, key: str) -> None:
        self._service, self.key = service, key
        self.name = hashlib.sha256(key.encode()).hexdigest()[:16]
        self.archive = Archive(make_folder(service.folder / "sessions" / self.name))
        self.jobs: dict[str, Job] = {}

    def ask(self, **fields: Any) -> dict[str, Any]:
        """Put a request as a client would; return its result, or raise ServerError."""
        done = threading.Event()
        answers: list[dict[str, Any]] = []

        def answered(answer: dict[str, Any]) -> None:
            answers.append(answer)
            if "job" not in answer:
                done.set()

        self._service.handle(self, protocol.parse(fields), answered)
        done.wait()
        return unpacked(answers[-1])


class Service:
    """Evaluates for many: a queue in front of lanes. Close it, or use it with `with`."""

    def __init__(
        self, folder: str | Path, jobs: int = 1, lanes: int = 4, archive: Keeping | None = None, tasks: Sequence[str | Path] = (),
        open_lane: OpenLane = Lane,
    ) -> None:  # fmt: skip
        """`jobs`: how many run at once, each on another task. `lanes`: how many tasks stay warm. `archive`: the owner's own, which gets every record.
        `tasks`: folders that tasks may lie in; empty: anywhere."""
        self.folder = make_folder(folder)
        os.chmod(self.folder, 0o700)
        self._most_lanes, self._archive, self._open_lane = max(lanes, jobs), archive, open_lane
        self._tasks = [Path(path).resolve() for path in tasks]
        self._queue, self._lanes, self._sessions = Queue(), dict[LaneKey, Asked](), dict[str, Session]()
        self._opened: dict[LaneKey, tuple[Task, Settings]] = {}
        self._running: dict[LaneKey, Job] = {}
        self._stopping: dict[str, float] = {}
        """Cancelled jobs that still run, and when their lanes are killed."""
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [threading.Thread(target=self._work, daemon=True, name=f"work-{number}") for number in range(jobs)]
        self._threads.append(threading.Thread(target=self._watch, daemon=True, name="deadlines"))
        for thread in self._threads:
            thread.start()

    def session(self, key: str = "") -> Session:
        """Return the session of `key`, or a new one."""
        if key and not re.fullmatch(r"[0-9a-f]{32}", key):
            raise UsageError("expected the key of a session as `hello` gave it: 32 hexadecimal digits")
        key = key or secrets.token_hex(16)
        with self._changed:
            if key not in self._sessions:
                self._sessions[key] = Session(self, key)
            return self._sessions[key]

    def close(self) -> None:
        """End all lanes. Jobs that wait or run are answered with an error."""
        with self._changed:
            self._closed = True
            lanes, waiting = list(self._lanes.values()), list(self._queue.waiting)
            self._queue.waiting.clear()
            self._changed.notify_all()
        for job in waiting:
            self._finish(job, {"error": error_of("gone", "the server is shutting down")})
        for lane in lanes:
            lane.close()
        for thread in self._threads:
            thread.join(CANCEL_SECONDS)
        for session in self._sessions.values():
            session.archive.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- requests ----------------------------------------------------------------------------------------------------------------------

    def handle(self, session: Session, request: Request, answer: Callable[[dict[str, Any]], None]) -> Job | None:
        """Answer a request: at once, or first with the job's key and later, from another thread, with what came of it."""
        try:
            if request.verb in protocol.WORK:
                return self._submit(session, request, answer)
            verbs: Mapping[str, Callable[[Session, Request], dict[str, Any]]] = {
                "best": self._best, "records": self._records, "status": self._status, "cancel": self._cancel,
            }  # fmt: skip
            answer({"id": request.id, "result": verbs[request.verb](session, request)})
        except WarpwrightError as error:
            answer({"id": request.id, "error": error_of("usage", error.message, error.hint)})
        return None

    def _submit(self, session: Session, request: Request, answer: Callable[[dict[str, Any]], None]) -> Job:
        assert request.where is not None
        task, settings = self._task(request.where), request.where.settings()
        lane = self._fitting(request, (task.key, task.path, settings))
        deadline = math.inf if request.deadline is None else time.monotonic() + request.deadline
        job = Job(secrets.token_hex(8), session.key, lane, request, request.priority, deadline, time.monotonic())
        job.whenever_done.append(lambda done: answer({"id": request.id, **done.answer}))
        with self._changed:
            if self._closed:
                raise UsageError("the server is shutting down")
            if sum(one.session == session.key for one in self._queue.waiting) >= MOST_WAITING:
                raise UsageError(f"expected at most {MOST_WAITING} waiting jobs of one session", "wait for some to be done")
            self._opened[lane] = (task, settings)
            session.jobs[job.key] = job
            answer({"id": request.id, "job": job.key, "state": "queued"})
            self._queue.add(job)
            self._changed.notify_all()
        return job

    def _fitting(self, request: Request, lane: LaneKey) -> LaneKey:
        """Return the lane that a request goes to: a description takes whichever is open for its task and device."""
        if request.verb != "describe":
            return lane
        with self._changed:
            return next((key for key in self._lanes if key[:2] == lane[:2] and key[2].device == lane[2].device), lane)

    def _task(self, where: Where) -> Task:
        path = Path(where.path)
        if self._tasks and not any(path.is_relative_to(folder) for folder in self._tasks):
            raise UsageError(f"expected a task in one of {', '.join(map(str, self._tasks))}, saw {path}", "the server was started with --tasks")
        return where.settings().describe(path, where.entry or None)

    def _best(self, session: Session, request: Request) -> dict[str, Any]:
        assert request.where is not None
        task = self._task(request.where)
        record = session.archive.best(task, request.where.device)
        files = [list(pair) for pair in record.candidate.source.files] if record is not None else []
        return {"best": as_answer(record) if record is not None else None, "files": files}

    def _records(self, session: Session, request: Request) -> dict[str, Any]:
        assert request.where is not None
        key = request.fields["record"]
        if key:
            return {"record": report.finite(to_json(self._own(session, request)))}
        records = session.archive.records(self._task(request.where), device=request.where.device)
        return {"records": [as_answer(record) for record in records if not is_baseline(record)]}

    def _own(self, session: Session, request: Request) -> Record:
        """Return the record of this session that a request names; raise UsageError where there is none."""
        assert request.where is not None
        task, key = self._task(request.where), request.fields["record"]
        records = [record for record in session.archive.records(task, device=request.where.device) if record.key.startswith(key)]
        if len(records) != 1:
            raise UsageError(f"expected the key of a record of this session, saw {key[:40]!r}", "`records` lists them")
        return records[0]

    def _status(self, session: Session, request: Request) -> dict[str, Any]:
        wanted = request.fields.get("job")
        with self._changed:
            own = [job for job in session.jobs.values() if wanted in (None, job.key)]
            jobs = [{"job": job.key, "verb": job.request.verb, "state": job.state, "priority": job.priority} for job in own]
            lanes = {"open": len(self._lanes), "busy": len(self._running)}
            return {"jobs": jobs, "waiting": len(self._queue.waiting), "running": len(self._running), "lanes": lanes}

    def _cancel(self, session: Session, request: Request) -> dict[str, Any]:
        job = session.jobs.get(str(request.fields.get("job")))
        if job is None:
            raise UsageError(f"expected a job of this session, saw {str(request.fields.get('job'))[:40]!r}", "`status` lists them")
        self.cancel(job)
        return {"job": job.key, "state": job.state}

    def cancel(self, job: Job, kind: str = "cancelled", why: str = "it was cancelled") -> None:
        """End a job, whether it waits or runs."""
        with self._changed:
            waited, runs, lane = self._queue.remove(job), self._running.get(job.lane) is job, self._lanes.get(job.lane)
            if runs and job.key not in self._stopping:
                self._stopping[job.key] = time.monotonic() + CANCEL_SECONDS
                job.answer = {"error": error_of(kind, why)}
                self._changed.notify_all()
        if waited:
            self._finish(job, {"error": error_of(kind, why)})
        elif runs and lane is not None:
            lane.cancel()

    def left(self, jobs: Sequence[Job]) -> None:
        """A client has left: what of its jobs waits is dropped, unless it is to be kept; what runs goes on, into the session's archive."""
        for job in jobs:
            if job.state == "queued" and not job.request.keep:
                self.cancel(job, "gone", "its client has left")

    # --- work --------------------------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._changed:
                job = self._queue.take(self._running)
                while job is None and not self._closed:
                    self._changed.wait()
                    job = self._queue.take(self._running)
                if job is None:
                    return
                self._running[job.lane], job.state, job.began = job, "running", time.monotonic()
            answer = self._answer(job)
            with self._changed:
                del self._running[job.lane]
                stopped = self._stopping.pop(job.key, None) is not None
                self._changed.notify_all()
            self._finish(job, job.answer if stopped and "error" in answer else answer)

    def _answer(self, job: Job) -> dict[str, Any]:
        """Do the job, a second time where its lane died, unless it was told to."""
        for attempt in (1, 2):
            try:
                return self._attempt(job)
            except LaneDied as error:
                self._drop(job.lane)
                if attempt == 2 or self._closed or job.key in self._stopping:
                    return {"error": error_of("lane", error.message, error.hint)}
            except WarpwrightError as error:
                return {"error": error_of("failed", error.message, error.hint)}
            except Exception as error:  # a fault of ours: this job's client is told, and the thread stays for all others
                traceback.print_exc()
                return {"error": error_of("failed", f"a fault of the service: {type(error).__name__}: {error}"[:2000])}
        raise AssertionError("a job has two attempts")

    def _attempt(self, job: Job) -> dict[str, Any]:
        task, settings = self._opened[job.lane]
        lane, session, request = self._lane(job.lane, task, settings), self._sessions[job.session], job.request
        if job.key in self._stopping:  # while its lane was opened
            return job.answer
        if request.verb == "describe":
            return lane.ask("describe")
        if request.verb == "explain":
            return self._explained(session, lane, self._own(session, request))
        opened, candidates = lane.ask("open"), []
        for answer in (opened, *(lane.ask("candidate", program=program.to_json()) for program in request.programs)):
            if "error" in answer:
                return answer
            if "record" in answer["result"]:
                return self._no_program(session, request, answer["result"]["record"])
            candidates.append(answer["result"].get("candidate"))
        if request.verb == "compare":
            return self._compared(session, lane.ask("compare", first=candidates[1], second=candidates[2]))
        known = None if request.again else self._known(session, task, settings, opened["result"], from_json(Candidate, candidates[1]))
        if known is not None:
            return {"result": {**as_answer(known), "cached": True}}
        if job.key in self._stopping:  # a cancellation that fell between two orders
            return job.answer
        before = session.archive.best(task, settings.device)
        if before is not None and not candidates[1].get("parent"):
            candidates[1] = {**candidates[1], "parent": before.candidate.key}  # what a client writes next comes from the best so far
        answer = lane.ask("evaluate", candidate=candidates[1])
        if "error" in answer:
            return answer
        record, told = self._remember(session, answer["result"]["record"]), answer["result"].get("facts")
        facts = from_json(Facts, told) if told else None
        return {"result": {**as_answer(record, facts, before), "cached": False, "queued_seconds": round((job.began or 0.0) - job.arrived, 3)}}

    def _no_program(self, session: Session, request: Request, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer for a text that is no program of its task."""
        record = self._remember(session, data)
        if request.verb == "compare":
            return {"error": error_of("failed", f"one of the two is no program of this task: {record.detail[:2000]}")}
        return {"result": {**as_answer(record), "cached": False}}

    def _explained(self, session: Session, lane: Asked, record: Record) -> dict[str, Any]:
        answer = lane.ask("ablate", record=to_json(record))
        if "error" in answer:
            return answer
        steps = []
        for step in answer["result"]["steps"]:
            without = self._remember(session, step.pop("without"))
            steps.append({**report.finite(step), "without": as_answer(without)})
        return {"result": {**as_answer(record), "steps": steps}}

    def _compared(self, session: Session, answer: dict[str, Any]) -> dict[str, Any]:
        if "error" in answer:
            return answer
        records = [self._remember(session, record) for record in answer["result"]["records"]]
        measurement = answer["result"]["measurement"]
        measured: Measurement | None = from_json(Measurement, measurement) if measurement is not None else None
        ratio = None
        if measured is not None:
            note = str(measured.conditions.get("note", ""))
            ratio = {"speedup": measured.speedup, "interval": list(measured.interval), "verdict": measured.verdict, "note": note}
        return {"result": {"first": as_answer(records[0]), "second": as_answer(records[1]), "first_over_second": ratio}}

    def _known(self, session: Session, task: Task, settings: Settings, opened: Mapping[str, Any], candidate: Candidate) -> Record | None:
        """Return this session's own record of the program, if it was made with the versions and beside the baselines of today."""
        record = session.archive.find(task, candidate, settings.device)
        if record is None or dict(record.versions) != opened["versions"]:
            return None
        measured = record.measurement
        return record if measured is None or set(measured.baselines) >= set(opened["baselines"]) else None

    def _remember(self, session: Session, data: Mapping[str, Any]) -> Record:
        record: Record = from_json(Record, data)
        known = session.archive.find(record.task, record.candidate, record.device)
        if known is not None and known.candidate.actions and not record.candidate.actions:  # sent again as a text: its recipe is not forgotten
            record = replace(record, candidate=known.candidate)
        session.archive.add(record)
        if self._archive is not None:
            self._archive.add(record)
        return record

    def _finish(self, job: Job, answer: dict[str, Any]) -> None:
        with self._changed:
            job.answer, job.state = answer, "done"
            session = self._sessions[job.session]
            done = [key for key, one in session.jobs.items() if one.state == "done"]
            for key in done[:-DONE_KEPT]:
                del session.jobs[key]
        for tell in job.whenever_done:
            tell(job)

    # --- lanes -------------------------------------------------------------------------------------------------------------------------

    def _lane(self, key: LaneKey, task: Task, settings: Settings) -> Asked:
        """Return the lane of a key; where there are too many, the one that was idle for longest ends first."""
        with self._changed:
            lane, spare = self._lanes.get(key), None
            if lane is None and len(self._lanes) >= self._most_lanes:
                idle = [name for name in self._lanes if name not in self._running]
                spare = min(idle, key=lambda name: self._lanes[name].used, default=None)
        if lane is not None and lane.alive:
            return lane
        self._drop(key)
        if spare is not None:
            self._drop(spare)
        opened = self._open_lane(task, settings, self.folder / "lanes.log")
        with self._changed:
            self._lanes[key] = opened
        return opened

    def _drop(self, key: LaneKey) -> None:
        with self._changed:
            lane = self._lanes.pop(key, None)
        if lane is not None:
            lane.close()

    def _watch(self) -> None:
        """End what is late: jobs that wait or run beyond their deadlines, and lanes that do not obey."""
        while True:
            with self._changed:
                if self._closed:
                    return
                now = time.monotonic()
                late = self._queue.expired(now)
                over = [job for job in self._running.values() if job.deadline <= now and job.key not in self._stopping]
                deaf = [job.lane for job in self._running.values() if self._stopping.get(job.key, math.inf) <= now]
                lanes = [self._lanes[key] for key in deaf if key in self._lanes]
                if not (late or over or lanes):
                    ends = [job.deadline for job in (*self._queue.waiting, *self._running.values()) if job.key not in self._stopping]
                    soonest = min([*ends, *self._stopping.values()], default=math.inf)
                    self._changed.wait(None if soonest == math.inf else max(0.01, soonest - now))
            for job in late:
                self._finish(job, {"error": error_of("deadline", "its deadline passed before its turn came")})
            for job in over:
                self.cancel(job, "deadline", "its deadline passed while it ran")
            for lane in lanes:
                lane.kill()
            if lanes:
                time.sleep(0.1)


def as_answer(record: Record, facts: Facts | None = None, before: Record | None = None) -> dict[str, Any]:
    """Return what a client is told of a record: the JSON line of the command, the check that decided, and feedback.

    `facts` of the program, and `before`, the best program until then, go into the feedback.
    """
    verdict = record.verdict
    line = report.line(record.task.name, [record], chosen=record)
    texts = [_written(one) for one in (before, record)] if before is not None and before.candidate.key != record.candidate.key else ["", ""]
    line |= {"feedback": feedback(record, facts, *texts)}
    return report.finite({**line, "check": verdict.check if verdict else "", "case": verdict.case if verdict else "", "seconds": record.seconds})  # type: ignore[no-any-return]


def _written(record: Record | None) -> str:
    """Return a program's text as its author wrote it: of a generated program the CUDA text that it holds."""
    source = record.candidate.source if record is not None else None
    return (explain.kernels_of(source) or source.text) if source is not None else ""

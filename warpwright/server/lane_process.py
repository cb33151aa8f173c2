"""What runs inside a lane: one evaluator of one task on one device, asked over standard input, a JSON object a line.

It ends with the service: when its standard input closes, whatever it does. A cancelled evaluation ends at once, and the trusted processes, which may
have been in the middle of an answer, are started anew for the next one; so is the lane itself where an import was cut in two.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from warpwright import domains, run, targets
from warpwright.base import BASELINE, Action, Candidate, Comparison, Measurement, Record, Regime, Source, Task, from_json, target_of, to_json
from warpwright.errors import UsageError, WarpwrightError
from warpwright.loop import Failed, ablate, make_candidate
from warpwright.run import Settings
from warpwright.server.protocol import error_of
from warpwright.space import Comparing, Evaluator, Space
from warpwright.tasks import taskfile

STATEMENT = (
    "Make {name} faster: write a Python file with a class ModelNew that takes the same constructor arguments and inputs as Model, "
    "and returns the same."
)
"""The task in words, where its file has none."""


class Lane:
    """The evaluator, and what it is asked."""

    def __init__(self, task: Task, settings: Settings) -> None:
        self.task, self.settings = task, settings
        self._stack = ExitStack()
        self._evaluator: Evaluator | None = None
        self._space: Space[Any] | None = None

    @property
    def space(self) -> Space[Any]:
        """What may be done to the task's program; it is read once."""
        if self._space is None:
            self._space = run.open_space(self.task, self.settings.device)
        return self._space

    @property
    def evaluator(self) -> Evaluator:
        """The one of the task; a new one after `reset`."""
        if self._evaluator is None:
            measuring = replace(run.measuring(self.settings, tell=noted), resident=True)
            self._evaluator = self._stack.enter_context(targets.evaluator(self.task, self.settings.device, measuring))
        return self._evaluator

    def reset(self) -> None:
        """End the evaluator's processes."""
        self._stack.close()
        self._evaluator = None

    def open(self) -> dict[str, Any]:
        """Say what records will rest on, without starting anything."""
        names = [baseline.proposer.removeprefix(BASELINE) for baseline in self.evaluator.baselines()]
        return {"versions": dict(self.evaluator.versions), "baselines": names}

    def describe(self) -> dict[str, Any]:
        """Say what the task is and what may be done to it."""
        space = self.space
        actions = [str(action) for action in space.actions(space.start)]
        return {**self.open(), "task": to_json(self.task), "actions": actions, "limited": space.limited, "program": self.program()}

    def program(self) -> dict[str, Any]:
        """Say what a candidate's text stands in place of: the task in words, how it is called, and the text as given."""
        writing = self.space.writing
        if writing is not None:
            return {"language": "cuda", "statement": writing.statement, "context": writing.context, "source": writing.source}
        text = taskfile.load(self.task).source_text
        source = f"{text.rstrip()}\n\n\nclass ModelNew(Model):\n    pass\n"
        return {"language": "python", "statement": STATEMENT.format(name=self.task.name), "context": text, "source": source}

    def candidate(self, program: Mapping[str, Any]) -> dict[str, Any]:
        """Return the candidate that a request's program is: recipes are carried out. A text that gives none is answered with its record."""
        target = target_of(self.settings.device)
        if "actions" in program:
            return {"candidate": to_json(self.space.candidate([Action.parse(text) for text in program["actions"]]))}
        if "text" not in program:
            return {"candidate": to_json(from_json(Candidate, {"source": program, "target": target, "actions": [], "proposer": "client"}))}
        if self.space.writing is None:
            source = Source("python", (("candidate.py", program["text"]),))
            return {"candidate": to_json(Candidate(source, target, proposer="client"))}
        candidate = make_candidate(self.space, (self.space.writing.action(program["text"]),))
        if isinstance(candidate, Failed):
            return {"record": to_json(candidate.record(self.task, self.evaluator))}
        return {"candidate": to_json(replace(candidate, proposer="client"))}

    def evaluate(self, candidate: Mapping[str, Any]) -> dict[str, Any]:
        """Return the candidate's record."""
        [record] = self.evaluator.evaluate([from_json(Candidate, candidate)])
        return {"record": to_json(record), "facts": self.facts(record)}

    def facts(self, record: Record) -> dict[str, Any] | None:
        """Return what can be said of a program that passed without running it; None where the task's domain says nothing."""
        if record.status != "ok":
            return None
        facts = domains.facts(record.task, record.candidate, record.versions.get("machine", ""))
        return to_json(facts) if facts.parts else None

    def compare(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
        """Return both records and, where both passed, how much faster the first is than the second."""
        pair = [from_json(Candidate, one) for one in (first, second)]
        records = list(self.evaluator.evaluate(pair))
        answer: dict[str, Any] = {"records": [to_json(record) for record in records], "measurement": None}
        if all(record.status == "ok" for record in records):
            measured = self.evaluator.compare(*pair) if isinstance(self.evaluator, Comparing) else apart(*records)
            answer["measurement"] = to_json(measured) if measured is not None else None
        return answer

    def ablate(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return what each action of a record's recipe is worth: the records without it, and without what depended on it."""
        ablations = ablate(from_json(Record, record), self.space, self.evaluator)
        steps = [
            {"action": str(one.action), "gain": one.gain, "dropped": [str(action) for action in one.dropped], "without": to_json(one.without)}
            for one in ablations
        ]  # fmt: skip
        return {"steps": steps}

    def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to an order; what goes wrong is an answer, too."""
        operation = order.pop("op")
        try:
            return {"result": getattr(self, operation)(**order)}
        except WarpwrightError as error:
            return {"error": error_of("usage" if isinstance(error, UsageError) else "failed", error.message, error.hint)}
        except Exception as error:  # of a domain or a target: it is no reason to end
            self.reset()
            return {"error": error_of("failed", f"{type(error).__name__}: {error}"[:2000])}


def noted(what: str) -> None:
    """Write what is being done to the log of the lanes, with the time."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    print(f"{now} {os.getpid()} {what}", file=sys.stderr, flush=True)


def apart(first: Record, second: Record) -> Measurement | None:
    """Return the first program against the second from two runs, each beside the baselines: for an evaluator that cannot time them together."""
    if first.measurement is None or second.measurement is None:
        return None
    one, other = first.measurement.candidate, second.measurement.candidate
    low, high = other.low / one.high, other.high / one.low
    verdict: Comparison = "FASTER" if low > run.WORTHWHILE else "SLOWER" if high < 1 / run.WORTHWHILE else "UNSURE"
    ways = {
        name: _regime_apart(regime, second.measurement.regimes[name])
        for name, regime in first.measurement.regimes.items() if name in second.measurement.regimes
    }  # fmt: skip
    if verdict == "FASTER" and any(way.verdict == "SLOWER" for way in ways.values()):
        verdict = "UNSURE"
    conditions = {"note": "timed in two runs", "regime": first.measurement.conditions.get("regime", "single")}
    return replace(
        first.measurement, baselines={"second": other}, best_baseline="second", speedup=other.median / one.median, interval=(low, high),
        verdict=verdict, conditions=conditions, regimes=ways,
    )  # fmt: skip


def _regime_apart(one: Regime, other: Regime) -> Regime:
    """Return one program against another in a regime, each timed beside the baselines in a run of its own: the doubts of both add up."""
    speedup = other.candidate / one.candidate
    low, high = (speedup * (one.interval[at] / one.speedup) / (other.interval[1 - at] / other.speedup) for at in (0, 1))
    verdict: Comparison = "FASTER" if low > run.WORTHWHILE else "SLOWER" if high < 1 / run.WORTHWHILE else "UNSURE"
    return Regime(one.candidate, {"second": other.candidate}, "second", speedup, (low, high), verdict, "timed in two runs")


class _Orders:
    """Reads orders in a thread of its own, so that a cancellation comes through while the main thread works."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[dict[str, Any]] = queue.Queue()
        self.at_work: int | None = None
        self.cancelled: int | None = None
        signal.signal(signal.SIGINT, self._interrupt)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            order = json.loads(line)
            if order["op"] == "cancel":
                self.cancelled = order["number"]
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            else:
                self.waiting.put(order)
        os._exit(0)  # the service is gone: guards kill the workers, and the fork server removes the folders

    def begin(self, number: int) -> None:
        """Note what is at work; raise KeyboardInterrupt if it was cancelled before."""
        self.at_work = number
        if self.cancelled == number:
            self._interrupt()

    def _interrupt(self, *_: object) -> None:
        if self.at_work is not None and self.at_work == self.cancelled:
            self.at_work = None
            raise KeyboardInterrupt


def main() -> None:
    """Serve until standard input closes."""
    stream = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints does not spoil the answers
    orders = _Orders()
    first = orders.waiting.get()
    lane = Lane(from_json(Task, first["task"]), Settings.from_json(first["settings"]))
    while True:
        order = orders.waiting.get()
        number, broken = order.pop("number"), False
        try:
            orders.begin(number)
            answer = lane.answer(order)
            orders.at_work = None
        except KeyboardInterrupt as stop:
            broken = any(frame.name == "_find_and_load" for frame in traceback.extract_tb(stop.__traceback__))
            lane.reset()
            answer = {"error": error_of("cancelled", "it was stopped while it ran")}
        stream.write(json.dumps({"number": number, **answer}) + "\n")
        stream.flush()
        if broken:  # half a module cannot be imported again
            return


if __name__ == "__main__":
    main()

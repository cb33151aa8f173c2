"""A built and verified program under the timer: inputs laid out, one call, and a look at the outputs of that very call."""

from __future__ import annotations

import functools
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

from warpwright.base import Case, Verdict
from warpwright.timing.overhead import Overhead
from warpwright.verifier import aftermath, luck
from warpwright.verifier.judge_client import TIMED_STATE, Comparison, Judge, Shipment
from warpwright.verifier.kept import KeptOutput
from warpwright.verifier.ledger import Ledger
from warpwright.verifier.rejections import Rejected, as_rejections, census, exported, good, load_state, prepare_call, rejection, restore_state
from warpwright.workers import device_yield, placement
from warpwright.workers.sandbox import Worker

LATER_SECONDS = 90.0
"""For judging what was put off, all of it: no more is put off than takes a third of that by what the judge has measured (`judge_worker.py`), so that
a task whose answers take seconds in float64 has few outputs that wait, and a machine may become three times as slow."""

GOES_ON_AT_MOST = 4
"""Checked calls in a row after which the thread works on: one may be chance."""

BUSY_CORES = 4
"""With so many cores, parent and worker wait busily for a call on a GPU: asleep they are woken late, which took 86 us of a call on an H200, and
36 us are left (benchmarks/results/timing_split_h200). On fewer cores the two would be in each other's way, and on a CPU in the program's."""

WORKER_WAITS, PARENT_WAITS = 5e-3, 0.1
"""Seconds for which each waits busily: the worker for the word to go, which follows at once; the parent for the answer."""

AROUND_SHARE = 0.3  # of the checked timed calls have their inputs compared too


SAME_PLACE = 16
"""Passes on a GPU that are made on one core: a process that has just come to another one is slow for a call or two, which is all of a call of
microseconds. With a core for each pass a softmax of 28 us read 95 us on an H200, and without any 27 to 36."""


class Places:
    """The place of the passes at hand, which all programs of a pass share: on a core that is quick at the time."""

    def __init__(self, cores: placement.QuickCores | None = None) -> None:
        self._cores = cores or placement.QuickCores()
        self._drawn = self._place = -1.0
        self._passes = 0

    def kept(self, drawn: float) -> float:
        """Return the place of the pass that `drawn` was drawn for: an earlier one's, as long as its core is quick, for SAME_PLACE passes at most."""
        if drawn != self._drawn:
            if self._passes % SAME_PLACE == 0 or not self._cores.still(self._place):
                self._place, self._passes = self._cores.place(drawn), 0
            self._drawn, self._passes = drawn, self._passes + 1
        return self._place

    @property
    def at(self) -> float:
        """The place of the pass at hand."""
        return self._place

    def still_quick(self) -> bool:
        """Whether the core of the pass is quick now, as it was before."""
        return self._cores.still(self._place)


@functools.cache
def places(device: str) -> Places:
    """Return the places of a device: who times on a GPU holds it alone, and one process may time on several."""
    return Places()


def sound(device: str) -> Callable[[], bool] | None:
    """Return what tells whether the core of the pass was quick until now, where passes are put on quick ones: on a GPU with cores to spare.

    Each core beside an H200 changed between quick and slow every half second, while a pass takes a tenth: of 30 pairs that began on quick cores some
    five were slow. What is left out does not depend on a program's time, but on that of a loop of this process's own, which
    no candidate's threads are beside.
    """
    return functools.partial(_still_quick, device) if device != "cpu" and (os.cpu_count() or 1) >= BUSY_CORES else None


RESTS = 1e-3
"""CPU seconds that a candidate may use between two looks at a core: a process that waits uses next to none. To slow the parent's loop down from other
cores it would have to keep many of them busy for milliseconds."""


def _still_quick(device: str) -> bool:
    """Whether the core of the pass is quick, with every candidate kept off it; or a candidate has worked since it answered, or since the last look.

    One that works on after a slow call of its own could slow the core down, and have that pass left out: what it may choose is no ground for that.
    """
    here = places(device)
    _keep_candidates_off(device, here.at)
    quick = here.still_quick()
    worked = [one.worked() for one in _candidates(device)]
    return quick or any(seconds > RESTS for seconds in worked)


def _candidates(device: str) -> list[device_yield.Stoppable]:
    """Return the processes of programs that are judged on a device."""
    return [one for one in list(device_yield.living) if one.role == "candidate" and one.device == device]


def _keep_candidates_off(device: str, place: float, but: Worker | None = None) -> None:
    """Have no thread of a program that is judged on a GPU compute on the core of the pass: it is not stopped there in others' turns."""
    for one in _candidates(device):
        if one is not but:
            placement.keep_off(one.pid, place)


def sent_back(device: str) -> None:
    """Put this process's workers on a GPU where they keep nobody from being timed (`placement.kept_free`)."""
    for one in list(device_yield.living) if device != "cpu" else ():
        if one.device == device and one.alive:
            placement.send_back(one.pid)


class TimedProgram:
    """A built entry that `measure` can time: prepare(shipment), go(), and check() of the very call just timed."""

    def __init__(self, judge: Judge, worker: Worker, entry: str, name: str = "", puts_off: bool = False) -> None:
        """`puts_off`: outputs that `check` looks at are copied then, and judged when `judged_later` is asked: the float64 answers that this takes do
        not keep others from the device that is held alone for the timing. Not those of a program whose state a call changes."""
        self.judge, self.worker, self.entry = judge, worker, entry
        self.name = name or entry
        self._puts_off = puts_off and not (judge.facts["stateful"] or judge.facts["mutated_state"])
        self._later: list[tuple[Mapping[str, Any], Case, int]] = []
        """Outputs that were put off: where they lay, the case, and their number."""
        self.ledger = Ledger(worker)
        self._random = random.Random(os.urandom(16))
        self._case: Case | None = None
        self._luck = luck.Luck(judge, "timed calls")
        self._kept = KeptOutput(judge, worker)
        self._waits = busy_waits(worker)
        self._placed = placed(worker)

    def prepare(self, inputs: Shipment, place: float) -> None:
        """Copy the inputs in and empty the caches. Not timed. A program whose answer depends on its past is given its state anew.

        It is done on the core at `place`, where the main thread then wakes up, or waits busily; the call itself may use every core. On a CPU the
        program is first let run until its threads sleep: a thread of OpenMP waits busily for milliseconds after a call, and one that was stopped in
        it would go on with it in the next, and in the preparation, where it would pass for work.
        """
        self._case = inputs.case
        device = self.worker.device
        place = places(device).kept(place) if device != "cpu" else place
        before, self._turns[device] = self._turns.get(device), (self.worker, inputs)
        self._place = place
        switched = before is None or before[0] is not self.worker or before[1] is not inputs
        if self._placed and device != "cpu":
            _keep_candidates_off(device, place, but=self.worker)
        with self._made_ready():
            self._lay_out(inputs, switched)

    @contextmanager
    def _made_ready(self) -> Iterator[None]:
        """Let the program run until its threads sleep; inside, its main thread is on the core of the pass."""
        with placement.started_at(self.worker.pid, self._place) if self._placed else nullcontext():
            if self.worker.reads:
                self.worker.calm()
            yield

    _place = 0.0
    _went_on = 0

    def _lay_out(self, inputs: Shipment, switched: bool) -> None:
        self.ledger.before_preparing(switched)
        self._single_call(inputs)
        self.ledger.after_preparing()

    def _single_call(self, inputs: Shipment) -> None:
        if self.judge.facts["stateful"] or self.judge.facts["mutated_state"]:
            restore_state(self.judge, self.worker, self.entry, TIMED_STATE)
        prepare_call(self.worker, self.entry, inputs, slot=self._random.choice(("new", "same")), flush=True, spin=self._waits[0])

    _turns: ClassVar[dict[str, tuple[Worker, Shipment]]] = {}
    """Who was called last on each device, on which inputs. After another program's turn, or with inputs that the judge has just made, another process
    was last."""

    @property
    def spare(self) -> float:
        """Seconds that its preparations may take more than another program's without being work."""
        return 0.0

    def go(self) -> float:
        """Make one call; return its seconds by this process's clock."""
        with placement.aside(self._place, quiet=self.worker.device != "cpu") if self._placed else nullcontext():
            return self.worker.go(spin=self._waits[1])

    def check(self) -> Verdict | None:
        """Return the verdict on the call just made."""
        if self._case is None:
            return None
        try:
            with as_rejections(self._case.name):
                comparison = self._compared(self._case)
                if comparison.check:
                    return rejection(comparison.check, f"in a timed call: {comparison.reason}", self._case.name, comparison)
                if self.worker.role == "candidate":
                    census(self.worker)
        except Rejected as rejected:
            return rejected.verdict
        return Verdict(True, "ok", "", self._case.name, comparison.errors, comparison.original)

    def judged_later(self, until: float = math.inf) -> Verdict | None:
        """Judge the outputs that were put off; return the first rejection, or, if some are left at `until`, by the clock, that it is unscored."""
        while self._later:
            if time.monotonic() > until:
                return _not_judged(len(self._later))
            export, case, number = self._later[0]  # until it is judged: where the judge fails, what waits is let go of
            try:
                with as_rejections(case.name):
                    comparison = self.judge.compare(export, case, TIMED_STATE, aside=number)
                    if luck.is_marginal(comparison, case):
                        comparison = self._on_other_draws(comparison, case)
                    if comparison.check:
                        return rejection(comparison.check, f"in a timed call: {comparison.reason}", case.name, comparison)
            except Rejected as rejected:
                return rejected.verdict
            self._later.pop(0)
        return None

    @property
    def waits_for_judgement(self) -> bool:
        """Is there an output that was put off?"""
        return bool(self._later)

    def _judged(self, export: Mapping[str, Any], case: Case) -> Comparison:
        """Judge what the call has given, or put it off."""
        number = self.judge.set_aside(export) if self._puts_off else None
        if number is None:
            return self.judge.compare(export, case, TIMED_STATE)
        self._later.append((export, case, number))
        return Comparison("")

    def _compared(self, case: Case) -> Comparison:
        """Compare the call's output; and, now and then, its inputs and its state, which a later call may treat otherwise than the first."""
        untrusted = self.worker.role == "candidate"
        went_on = aftermath.worked_on(self.worker) if untrusted else ""
        export = exported(self.worker)
        comparison = self._judged(export, case)
        if not untrusted:
            return comparison
        if not comparison.check and (reused := self._kept.look(export)).check:
            return reused
        comparison = aftermath.explained(self.judge, self.worker, comparison)
        if luck.is_marginal(comparison, case):
            return self._on_other_draws(comparison, case)
        if comparison.check:
            return comparison
        self._went_on = self._went_on + 1 if went_on else 0
        if self._went_on > GOES_ON_AT_MOST:
            if found := aftermath.works_on(self.worker, self._once_again):
                return Comparison("background", f"{went_on}; {found}")
            self._went_on = 0
            self._once_again(own=True)
        around = comparison
        if self._random.random() < AROUND_SHARE:
            went_on = aftermath.goes_on(self.worker)
            if went_on:
                return Comparison("background", went_on)
            around = self.judge.compare_inputs(exported(self.worker, "inputs"), case, TIMED_STATE)
            held = Comparison("") if around.check else self._held_call(case)  # may leave the inputs of other draws behind: compared before
            if held.check:
                return held
        facts = self.judge.facts
        if not around.check and (facts["stateful"] or facts["mutated_state"]) and facts["state_tensors"]:
            around = self.judge.compare_state(exported(self.worker, "state"), case, TIMED_STATE)
        return around if around.check else comparison

    def _on_other_draws(self, refused: Comparison, case: Case) -> Comparison:
        """Return a marginal refusal if single calls on other draws, made ready for and waited for as timed ones are, show it again; else a pass."""

        def called(other: Case) -> Comparison:
            inputs = self.judge.ship(other)
            with self._made_ready():
                self._single_call(inputs)
            TimedProgram.go(self)
            return self.judge.compare(exported(self.worker), other, TIMED_STATE, typical=True)

        return self._luck.asked(refused, case, TIMED_STATE, called)

    def _held_call(self, case: Case) -> Comparison:
        """On a GPU, make the call once more, untimed, and judge what had come out before it answered: a program may answer first and work then."""
        facts = self.judge.facts
        depends = any(facts["mutated_inputs"]) or facts["mutated_state"] or facts["stateful"]
        if self.worker.device == "cpu" or depends:
            return Comparison("")
        if facts["random"]:  # it is to draw what it drew
            self._ready_again(own=True)
        self.worker.go(hold=True)
        comparison = self._judged(exported(self.worker), case)
        if luck.is_marginal(comparison, case):
            comparison = self._on_other_draws(comparison, case)
        late = "" if comparison.check else aftermath.launched_late(self.worker, self._once_held)
        return Comparison("background", late) if late else comparison

    def _once_held(self, own: bool) -> None:
        """Make a held call of the program on the inputs at hand, or of nothing."""
        self._ready_again(own)
        self.worker.go(hold=True)

    def _once_again(self, own: bool) -> None:
        """Make a call of the program on the inputs at hand, or of nothing."""
        self._ready_again(own)
        self.worker.go()

    def _ready_again(self, own: bool) -> None:
        """Make a call of the program on the inputs at hand, or of nothing, ready."""
        turn = self._turns.get(self.worker.device)
        inputs = turn[1] if own and turn is not None else None
        prepare_call(self.worker, self.entry if inputs is not None else None, inputs)


def _not_judged(count: int) -> Verdict:
    why = f"judging the outputs of its timed calls took longer than {LATER_SECONDS:g} s, and {count} of them were not judged"
    advice = "the original in float64 is too slow for this task, or the machine too busy"
    return Verdict(False, "unscored", f"the program cannot be scored: {why}; {advice}")


def load_timed_state(judge: Judge, worker: Worker, entry: str) -> None:
    """Load the state that timed calls are made in: a verification that ended early has not come to it."""
    load_state(judge, worker, entry, TIMED_STATE)


def busy_waits(worker: Worker) -> tuple[float, float]:
    """Return the seconds for which the worker and its parent wait busily around a timed call."""
    return (WORKER_WAITS, PARENT_WAITS) if worker.device != "cpu" and (os.cpu_count() or 1) >= BUSY_CORES else (0.0, 0.0)


def placed(worker: Worker) -> bool:
    """Whether the programs of a pass are made ready on one core: on a CPU, and where they wait busily, so that they stay there."""
    return worker.device == "cpu" or busy_waits(worker)[0] > 0


def call_overhead(worker: Worker, calls: int = 51) -> float:
    """Return the seconds that a call of nothing takes: pipe, wake-up and device synchronisation.

    On a GPU it is made ready as any other call, on the core of a pass and with the caches flushed: without that it took 6 to 14 us less on an H200,
    and so much more than by a plain timer was left of every single call. On a CPU the flush is the worker's own work, and on a busy one it waits for
    its turn afterwards, for as long as others please.
    """
    return statistics.median(_calls_of_nothing(worker, calls))


WAITS, WAITING_CALLS = (5e-4, 2e-3, 8e-3), 11
"""Seconds for which calls of nothing wait for the device, and how many of each are made: 0.15 s in all."""


def overheads(worker: Worker) -> Overhead:
    """Return what this process's clock reads more than a program's own would, by the length of the call: beyond a call of nothing, on a GPU that is
    waited for busily, found with calls that wait for a device at work, by this clock and by the worker's. The worker is a trusted one."""
    points = [(empty := call_overhead(worker), empty)]
    if worker.device != "cpu" and busy_waits(worker)[0]:
        for wait in WAITS:
            spans, own = [], []
            for seconds in _calls_of_nothing(worker, WAITING_CALLS, wait):
                spans.append(seconds)
                own.append(float(good(worker.request("waited"), "resources")["seconds"]))
            more = statistics.median(span - waited for span, waited in zip(spans, own, strict=True))
            points.append((statistics.median(spans), more))
    return Overhead.measured(points)


def _calls_of_nothing(worker: Worker, calls: int, wait: float = 0.0) -> Iterator[float]:
    """Yield the seconds of calls that do nothing, or do nothing but wait for a device that is at work for `wait` seconds."""
    waits, put = busy_waits(worker), placed(worker)
    place = random.random()
    place = places(worker.device).kept(place) if put and worker.device != "cpu" else place
    options = {"wait": wait} if wait else {}
    for _ in range(calls):
        with placement.started_at(worker.pid, place) if put else nullcontext():
            prepare_call(worker, None, None, flush=worker.device != "cpu", spin=waits[0], **options)
        with placement.aside(place, quiet=worker.device != "cpu") if put else nullcontext():
            yield worker.go(spin=waits[1])

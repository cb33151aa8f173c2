"""The parent's handle of the judge worker: asks it for inputs, states and verdicts."""

from __future__ import annotations

import itertools
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any
from weakref import WeakSet

from warpwright.base import Case, Errors, Task, to_json
from warpwright.errors import DeviceFailed, JudgeFailed, RooflineError, TaskError, WorkerDied, WorkerError, WorkerProtocol, WorkerTimeout, told_full
from warpwright.verifier.checks import DISTRIBUTIONS, Certificate
from warpwright.verifier.draw import STRIDED, UNEVEN, UNEVEN_TURNS, VARIATIONS, Draw, with_draw
from warpwright.workers.limits import Limits
from warpwright.workers.sandbox import Worker
from warpwright.workers.tensors.answer import KEPT

VARIED_WARM_UPS = 2
"""torch.compile takes an integer for a constant at its first value, and for a variable at its second."""
AGAIN = [STRIDED, STRIDED, "edited", "edited", "edited", "coarse"]
"""Distributions with a case more, or several."""

SEEDS = 1 << 31
TIMED_STATE = 2
"""Number of the state that is loaded while programs are timed."""

CASES_SECONDS, FEWEST_CASES = 6.0, 10
"""A convolution that takes 50 ms takes seconds in float64: such a task gets fewer hidden distributions, but so many at least."""

FIRST = ("huge", "heavy_tail", "spikes", "edited", "negated", "near_one", "offset", "masked")
"""Distributions that no task is to do without: a softmax without its maximum, a variance by squares, a skipped element, a sign."""


MOST_TRIMS = 4
"""Times that memory is given back for one program: each costs the next call of every program its allocations, which a program that holds much
memory could wish upon the baselines."""


OTHER_DRAWS = 3
"""Half as many draws of a case as are tried where the original gives no sound answer to it."""

READING = ("compare", "compare_inputs", "compare_state", "take_state", "unchanged", "digest", "set_aside")
"""What is asked of a judge that has to open memory of the worker's."""

MOST_FAILURES = 3
"""Cases that may cost a task its judge."""

STATES, OTHERS = "states", "other draws"
"""What counts as a case there: states that the original does not take, and draws that are no case of the task's own."""


@dataclass(frozen=True)
class Shipment:
    """A case's inputs on their way to a worker. `inputs` means nothing to the parent."""

    case: Case
    inputs: Any
    draws: int | None = None
    """Where torch's generators begin in the call, if the original draws from them: hidden as the values are, another number for other inputs."""


@dataclass(frozen=True)
class Comparison:
    """What the judge says of one output: `check` is "" for a pass, else the name of the check that failed."""

    check: str
    reason: str = ""
    excess: float = 0.0
    """Largest ratio of an error to its tolerance."""
    errors: Errors | None = None
    original: Errors | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    """Of each output and kind of error: as a share of what the original's typical error would allow, if it was asked for."""


def cases(task: Task, seed: int) -> tuple[Case, ...]:
    """Return a task's cases: nominal inputs of two seeds, then one case a distribution (two of some), `special` if declared."""
    generator = random.Random(seed)
    first = generator.randrange(SEEDS)
    hidden = [name for name in DISTRIBUTIONS if name != "nominal" and (name != "special" or task.special_values)] + AGAIN
    generator.shuffle(hidden)
    hidden.sort(key=lambda name: name not in FIRST)
    names = ["nominal", *hidden]
    cases_drawn = [Case(name, generator.randrange(SEEDS)) for name in names]
    smaller = itertools.count(first)  # another tensor in each
    layout, turns = generator.randrange(SEEDS), iter((None, 1, 2))  # so that each tensor lies in memory in three ways
    parities = {"coarse": iter((0, 1)), "edited": iter((0, 1, 1, 2))}  # one of each kind; two of those that change a single element

    def drawn(case: Case) -> Case:
        if case.name == STRIDED:
            return with_draw(case, Draw(layout=layout, turned=next(turns)))
        if case.name in UNEVEN:
            case = replace(case, seed=_with_remainder(case.seed, next(smaller)))
        if case.name in parities:
            case = replace(case, seed=4 * (case.seed // 4) + next(parities[case.name]))
        return with_draw(case, Draw(of=first)) if case.name in VARIATIONS else case

    return (Case("nominal", first), *map(drawn, cases_drawn))


def _with_remainder(seed: int, of: int) -> int:
    """Return a seed with the remainder of `of` by UNEVEN_TURNS, which is even: UNEVEN ones go by it, "coarse" and "edited" by its last bit."""
    return seed // UNEVEN_TURNS % (SEEDS // UNEVEN_TURNS) * UNEVEN_TURNS + of % UNEVEN_TURNS


class Judge:
    """A judge worker for one task on one device. Everything hidden follows from `secret`, drawn from the system if not given."""

    def __init__(
        self, task: Task, device: str = "cpu", limits: Limits | None = None, secret: int | None = None, failures: Counter[str] | None = None
    ) -> None:  # fmt: skip
        """`failures`: how often a case of each distribution has cost an earlier judge of this task its device. It is added to."""
        self.task, self.device = task, device
        self.failures: Counter[str] = Counter() if failures is None else failures
        self.worker = Worker("judge", device, limits)
        self.turn = threading.RLock()
        """Held for a request; by one of several threads also from a shipment until it is taken, for the others' shipments would replace it."""
        self.shipments = 0
        """How often inputs were shipped, or let go of."""
        self._beside: WeakSet[Worker] = WeakSet()
        """The workers that were checked with this judge: they may hold memory on its GPU."""
        self._trims = 0
        try:
            self.begin(int.from_bytes(os.urandom(8)) if secret is None else secret)
        except BaseException:
            self.worker.close()
            raise

    def begin(self, secret: int) -> None:
        """Begin, or begin anew, with this secret: the worker loads the task afresh, and nothing that it drew or answered before is kept."""
        self.secret = secret
        self._random = random.Random(secret ^ 0x5DEECE66D)
        self._deck: list[Case] = []
        """Of hidden distributions, those that calls between the timed ones have not been on."""
        self._hidden: list[Case] = []
        """Cases of the next such calls, on which the original is known to be sound."""
        self.warm_up = Case("nominal", self._random.randrange(SEEDS))
        self._cases: tuple[Case, ...] | None = None
        self._certificate: Certificate | None = None
        self.redrawn: dict[int, int] = {}
        """By number of a state: how often it was drawn anew, once that is known."""
        self.dropped: dict[str, str] = {}
        """Distributions that are not used for this task, and why."""
        asked = {"task": to_json(self.task), "secret": f"{secret:x}", "host_only": False, **self._asks_host}
        with self._counted(STATES):
            self.facts: Mapping[str, Any] = self._ask("open", timeout=self.worker.limits.build_seconds, **asked)

    def _ask(self, op: str, timeout: float | None = None, **fields: Any) -> dict[str, Any]:
        reply = self._request(op, timeout, fields)
        full = told_full(str(reply.get("kind")), str(reply.get("message"))) or bool(reply.get("full"))
        if full and self._trims < MOST_TRIMS:  # KernelBench's L1-76: a worker held 91 of 140 GB, most of it cached
            self._trims += 1
            for worker in self._beside:
                worker.trim()
            self._request("trim", None, {})
            reply = self._request(op, timeout, fields)
        if "error" not in reply:
            return reply
        kind, message = str(reply.get("kind")), str(reply.get("message"))
        if kind == "WorkerProtocol":
            raise WorkerProtocol(message)
        if kind == "IpcError" and op in READING and "error" not in self._request("probe", None, {}):
            raise WorkerError(f"the memory of its answer cannot be opened: {message}", "its device is in error, or it has let go of its output")
        if kind == "TaskError":
            raise TaskError(message)
        failed = DeviceFailed if reply.get("device") or DeviceFailed.told_by(kind, message) else JudgeFailed
        raise failed(f"the judge failed at {op!r}: {reply['error']}")

    def _request(self, op: str, timeout: float | None, fields: dict[str, Any]) -> dict[str, Any]:
        try:
            with self.turn:
                return self.worker.request(op, timeout=timeout or self.worker.limits.build_seconds, **fields)
        except (WorkerDied, WorkerTimeout, WorkerProtocol) as error:
            raise JudgeFailed(f"the judge did not answer {op!r}: {error}", self.worker.log()[-500:]) from error

    # -- inputs and states

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases that every candidate of this task meets: those on which the original gives sound answers. `dropped` has the others."""
        if self._cases is None:
            wanted = cases(self.task, self.secret)
            kept, fastest = [wanted[0]], 0.0  # seconds of a case: on a busy machine others take ten times as long
            for case in wanted[1:]:
                if len(kept) >= FEWEST_CASES and len(kept) * fastest > CASES_SECONDS:
                    self.dropped[case.name] = f"left out: {len(kept)} cases take the original more than {CASES_SECONDS:g} s in float64"
                    continue
                if self.failures[case.name]:
                    self.dropped[case.name] = "the original leaves the device in error on it"
                    if case.name != STRIDED or self.failures[case.name] > 1:
                        continue
                    case = with_draw(case, replace(Draw.of_case(case), mild=1))
                reply = self._viable(case)
                if reply["problem"]:
                    self.dropped[case.name] = reply["problem"]
                else:
                    kept.append(replace(case, params=reply["params"]))
                    fastest = min(fastest or reply["seconds"], reply["seconds"])
            if self.facts["state_tensors"]:  # one in which the original is not sound is drawn anew: no call would be judged in it
                for which, case in ((1, kept[0]), (TIMED_STATE, kept[min(1, len(kept) - 1)])):
                    with self._counted(STATES):
                        self.redrawn[which] = int(self._ask("settle", which=which, case=asdict(case))["redrawn"])
            self._cases = tuple(kept)
        return self._cases

    @property
    def _asks_host(self) -> dict[str, bool]:
        """Once a device was lost, what the original does not take is found out on the CPU, where it raises."""
        return {"on_host": True} if self.failures else {}

    def _viable(self, case: Case) -> dict[str, Any]:
        """Ask whether a case can be used. One on which the original leaves the device in error ends this judge, and the next does without it."""
        with self._counted(case.name):
            return self._ask("viable", case=asdict(case), which=0, **self._asks_host)

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        """Count a device that is lost meanwhile: the next judge does without `name`, if that is a distribution, and asks the CPU first."""
        try:
            yield
        except DeviceFailed:
            if self.failures.total() >= MOST_FAILURES:
                raise JudgeFailed(f"the original left the device in error on {MOST_FAILURES} cases, and on {name}") from None
            self.failures[name] += 1
            raise

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Have the next judge ask the CPU first if a device is lost meanwhile: by moved inputs, or by what a program did. It costs no case."""
        try:
            yield
        except DeviceFailed:
            if not self.failures:
                self.failures[OTHERS] += 1
            raise

    def viable(self, case: Case, which: int) -> bool:
        """Whether the original gives a sound answer to `case` in state `which`."""
        with self._counted(OTHERS):
            reply = self._ask("viable", case=asdict(case), which=which, **self._asks_host)
        return not reply["problem"] and reply["params"] == case.params

    def hands_out_again(self, case: Case) -> set[int]:
        """Return which of its outputs the original gives in the same memory again, by number."""
        return set(self._ask("hands_out_again", case=asdict(case))["numbers"])

    def drawn(self, case: Case, which: int) -> list[str]:
        """Return where the original's call on a case in a state leaves torch's generators."""
        return list(self._ask("drawn", case=asdict(case), which=which)["left"])

    def shared_by_modules(self) -> set[str]:
        """Return the names of the parameters and buffers that any two of the original's modules share."""
        return set(self._ask("shared_by_modules")["names"])

    def drawing_of(self, which: int) -> tuple[int, int, int]:
        """Return what tells a state from one of the same number that was drawn otherwise."""
        return self.secret, which, self.redrawn.get(which, 0)

    def state(self, which: int) -> Any:
        """Return state number `which`, for a worker's load_state or set_state."""
        return self._ask("state", which=which)["state"]

    def take_state(self, export: Mapping[str, Any]) -> str:
        """Make state TAKEN of the one that a worker's call left, with two elements exchanged; return which tensor's, or "" where none can be."""
        names, seed = self.facts["mutated_state"], self._random.randrange(SEEDS)
        return str(self._ask("take_state", tree=export["tree"], folder=export["folder"], names=names, seed=seed)["name"])

    def ship(self, case: Case) -> Shipment:
        """Return the inputs of a case. Only the latest three shipments to this thread can be taken, of large ones the latest.

        (Another one may build a baseline meanwhile.)
        """
        self.shipments += 1
        reply = self._ask("ship", case=asdict(case), to=threading.get_ident())
        return Shipment(case, reply["inputs"], reply["draws"])

    def fresh(self) -> Shipment:
        """Return nominal inputs that nobody has seen, for a timed call."""
        return self.ship(Case("nominal", self._random.randrange(SEEDS)))

    def hidden(self) -> Shipment:
        """Return inputs of a hidden distribution that nobody has seen, for a call between the timed ones: of each before one comes again."""
        self.draw_ahead(1)
        return self.ship(self._hidden.pop(0)) if self._hidden else self.fresh()

    def draw_ahead(self, count: int) -> None:
        """Have so many hidden cases ready, while others may use the device: whether the original is sound on one takes it three runs."""
        while len(self._hidden) < count:
            if anew := not self._deck:
                plain = [case for case in self.cases if case.name not in (STRIDED, "nominal")]  # it may raise there; timed calls are nominal
                self._deck = self._random.sample(plain, len(plain))
            drawn = (replace(self._deck.pop(), seed=self._random.randrange(SEEDS)) for _ in range(len(self._deck)))
            sound = next((case for case in drawn if self.viable(case, TIMED_STATE)), None)
            if sound is not None:
                self._hidden.append(sound)
            elif anew:
                return

    def others(self, case: Case, which: int, count: int) -> Iterator[Case]:
        """Yield other draws of a case on which the original gives sound answers in state `which`; at most twice as many are tried."""
        seeds = (_with_remainder(self._random.randrange(SEEDS), case.seed + 2 * turn) for turn in range(1, 2 * count + 1))
        drawn = (replace(case, seed=seed) for seed in seeds)
        return islice((one for one in drawn if self.viable(one, which)), count)

    def sound(self, case: Case, which: int) -> Case | None:
        """Return a case, or another draw of it, on which the original gives a sound answer in state `which`; None where none was found.

        The case itself where that is so in no state: of a program that is never exact to 1 % at least the values are compared.
        """
        if self.viable(case, which):
            return case
        other = next(self.others(case, which, OTHER_DRAWS), None)
        return other if other is not None or self.viable(case, 0) else case

    def kinds_of_call(self) -> list[Case]:
        """Return cases that are like the hidden ones in layout and in numbers that are no tensors, with other values.

        A program that compiles for each kind of call may do so at these, before its build phase ends.
        """
        strided = [case for case in self.cases if case.name == STRIDED]
        varied = [case for case in self.cases if case.name not in ("nominal", STRIDED, *VARIATIONS)][:VARIED_WARM_UPS]
        return [replace(case, seed=self._random.randrange(SEEDS)) for case in (*strided, *varied)]

    def count(self) -> Mapping[str, Any]:
        """Return the fields of the task's `rates.Work`; raise RooflineError where it cannot be counted."""
        reply = self._ask("count")
        if reply.get("problem"):
            raise RooflineError(reply["problem"])
        return dict(reply["work"])

    def forget(self) -> None:
        """Let go of the shipped inputs and the last output."""
        self.shipments += 1
        self._ask("forget")

    def probe(self, worker: Worker) -> None:
        """See whether CUDA tensors pass between the judge and `worker`; if not, have both use files."""
        self._beside.add(worker)
        self._trims = 0
        if not self.device.startswith("cuda"):
            return
        with self.turn:  # a baseline may be built beside, by another thread
            sent = self.worker.request("probe")
            seen = worker.request("receive", tensor=sent["tensor"]) if "tensor" in sent else {}
        if seen.get("sum") != sent.get("sum"):
            self._ask("host_only")
            worker.request("host_only")

    # -- verdicts

    def certify(self) -> Certificate:
        """Return the task's sensitivity certificate, made once."""
        if self._certificate is None:
            nominal, *others = [case for case in cases(self.task, self.secret + 1) if case.name in ("nominal", "normal", "spikes")]
            replies = [(case, self._viable(case)) for case in others if not self.failures[case.name]]
            usable = [nominal, *(replace(case, params=reply["params"]) for case, reply in replies if not reply["problem"])]
            with self._counted(OTHERS):
                reply = self._ask("certify", cases=[asdict(case) for case in usable])
            reason = reply["reason"]
            if reason and len(usable) == 1 and replies:  # its own inputs may be the same in every draw: that says nothing of the output
                problems = "; ".join(sorted({other["problem"] for _, other in replies}))
                reason = f"no case but that of the task's own inputs is sound: {problems} (there alone {reason})"
            self._certificate = Certificate(reply["scored"], reason, tuple(reply["rejected"]), tuple(reply["accepted"]))
        return self._certificate

    def set_aside(self, export: Mapping[str, Any]) -> int | None:
        """Have an exported output copied, to be compared later; return the number to give to `compare` then, None where no more can wait."""
        number = self._ask("set_aside", tree=export["tree"], folder=export["folder"]).get("number")
        return None if number is None else int(number)

    def drop_aside(self) -> None:
        """Let go of what was set aside."""
        self._ask("drop_aside")

    def compare(
        self, export: Mapping[str, Any], case: Case, which: int, previous: list[tuple[Case, int]] | None = None, typical: bool = False,
        aside: int | None = None,
    ) -> Comparison:  # fmt: skip
        """Judge what a worker exported as its answer to `case` in state `which`. `typical`: with its `shares`. `aside`: what `set_aside` returned."""
        seen = [[asdict(old), state] for old, state in previous or []]
        asked = {"tree": export["tree"], "case": asdict(case), "which": which, "folder": export["folder"], "previous": seen}
        with self._noted():
            reply = self._ask("compare", **asked, **({"typical": True} if typical else {}), **({"aside": aside} if aside is not None else {}))
        errors, original = (Errors(**reply[name]) if reply.get(name) else None for name in ("errors", "original"))
        comparison = Comparison(
            reply["check"], reply.get("reason", ""), float(reply.get("excess", 0.0)), errors, original, reply.get("shares", {})
        )  # fmt: skip
        return comparison if comparison.check else self._aliasing(export, comparison)

    def _aliasing(self, export: Mapping[str, Any], comparison: Comparison) -> Comparison:
        own, changed = self.facts["aliases"], {f"input {number}" for number, mutated in enumerate(self.facts["mutated_inputs"]) if mutated}
        for number, shared in enumerate(export.get("aliases", [])):
            allowed = {KEPT, *(own[number] if number < len(own) else [])}
            if extra := set(shared) - allowed:
                return Comparison("aliasing", f"output {number} shares memory with {', '.join(sorted(extra))}; the original's does not")
            if lost := (allowed & changed) - set(shared):  # whoever goes on changing one expects the other to change too
                return Comparison("aliasing", f"output {number} is a copy; the original's is {', '.join(sorted(lost))}, which the call changes")
        return comparison

    def unchanged(self, export: Mapping[str, Any]) -> bool:
        """Whether an export is bit for bit the output compared last."""
        return bool(self._ask("unchanged", tree=export["tree"], folder=export["folder"])["same"])

    def digest(self, export: Mapping[str, Any]) -> Any:
        """Return a value that two exports share if they are bit for bit the same."""
        return self._ask("digest", tree=export["tree"], folder=export["folder"])["digest"]

    def compare_inputs(self, export: Mapping[str, Any], case: Case, which: int) -> Comparison:
        """Judge what a worker's call left of its inputs."""
        reply = self._ask("compare_inputs", tree=export["tree"], case=asdict(case), which=which, folder=export["folder"])
        return Comparison(reply["check"], reply.get("reason", ""))

    def compare_state(self, export: Mapping[str, Any], case: Case, which: int) -> Comparison:
        """Judge a worker's state after one call on `case` from state `which`."""
        with self._noted():
            reply = self._ask("compare_state", tree=export["tree"], case=asdict(case), which=which, folder=export["folder"])
        return Comparison(reply["check"], reply.get("reason", ""))

    def close(self) -> None:
        """End the worker."""
        self.worker.close()

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def steady(make: Callable[[], Judge]) -> Judge:
    """Return a judge that has its certificate and its cases: made anew each time its device is lost, if it was counted (`Judge.failures`).

    The judges that `make` makes have to count together.
    """
    while True:
        judge = make()
        known = judge.failures.total()
        try:
            judge.certify()
            judge.cases  # noqa: B018
            return judge
        except DeviceFailed:
            judge.close()
            if judge.failures.total() == known:
                raise
        except BaseException:
            judge.close()
            raise

"""Candidate against original, case by case: the verdict. Runs in the parent, which imports neither the task nor the candidate.

    build     write, import, construct; load a throw-away state; warm-up calls; `lock` (no new processes, no network): `building.py`
    state 0   loaded with load_state_dict. Every case: inputs in, one call, output out, compared with float64.
              Around the first call: inputs and buffers compared too, the process watched while idle, the output exported again.
    state 1   written in place, as an optimizer does: whatever was folded or cached before is stale now. Then single tensors of it, one by one
    state 2   written through `.data`, which version counters do not show; loaded, in two modules side by side; loaded again: it stays for the timing
    census    functions, settings, events, threads, children

A checked call is the three requests of a timed one: prepare, go, export. Addresses rotate or stay, and fresh memory is filled with one byte
or another, at random, in both.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from warpwright.base import Build, Case, Source, Task, Verdict
from warpwright.errors import CallRaised, JudgeFailed
from warpwright.tasks import taskfile
from warpwright.verifier import aftermath, luck
from warpwright.verifier.building import WARM_UP_STATE, build, expect_one_context
from warpwright.verifier.checks import CHECKS, DISTRIBUTIONS, Certificate, Check
from warpwright.verifier.draw import EXCHANGES, LEFT_OTHERWISE, STRIDED, TAKEN, VARIATIONS, Draw, mixed, with_draw
from warpwright.verifier.instances import beside_one_another
from warpwright.verifier.judge_client import TIMED_STATE, Comparison, Judge, Shipment, cases, steady
from warpwright.verifier.rejections import (
    Rejected,
    as_rejections,
    census,
    deliberate,
    exported,
    good,
    load_state,
    prepare_call,
    rejection,
    restore_state,
    write_state,
)
from warpwright.workers.limits import Limits
from warpwright.workers.process import Activity
from warpwright.workers.sandbox import Worker, up
from warpwright.workers.tensors.answer import KEPT

__all__ = [
    "CHECKS", "DISTRIBUTIONS", "TIMED_STATE", "Certificate", "Check", "Comparison", "Judge", "JudgeFailed", "Shipment", "audit", "build", "cases",
    "steady", "verify",
]  # fmt: skip

MINIMUM_CASES = 3
WAKEUPS = 4  # of one thread in the quiet interval; threads that wait for work go to sleep once and do not wake up
QUIET_SHARE = 0.5  # of one core over the quiet interval; OpenMP threads spin for about 2 ms after a call
SECOND_STATE_CASES = 3
CHANGES, MORE_CHANGES_SECONDS = (("element", "set_state"), ("tensor", "set_state"), ("nudge", "set_state"), ("nudge", "load_state")), 2.0
"""Changes of a single tensor and how they come; then two exchanges, and the other ones too, unless so many take longer, by the quickest change."""

KEPT_CALLS = ((40, 2.0), (128, 0.5), (300, 0.1))
"""So many further calls are made before an output that was kept is looked at again: up to each number, as long as they have not taken so long."""

LAST_KEPT_CALLS = ((40, 0.5), (128, 0.3), (300, 0.1))
"""The same when the timing is over, besides those that are checked then; during the timing another one is held (`kept.py`)."""

LONG_SHARE, LONG_CALLS = 1 / 8, (1000, 1.0)
"""In this share of audits there are so many: a program that changes after some hundred calls cannot count on the number."""

LAST_CALLS, LAST_SECONDS = 16, 0.5
"""Checked calls when the timing is over, as long as they take no longer. Of the timed ones about one in ten is checked: a program that answers one
call in eight wrongly gets through a timing about one time in three, and through both one in twenty-five."""

SMALL_INPUT, VALUES, MOST_DRAWS, DRAWS_SECONDS, MOST_SECONDS = 64, 256, 128, 0.6, 2.5
"""An input of fewer elements, a number among them, has few values in all cases together. There are more nominal draws until it has had so many, or
there were so many draws, or by the quickest one they take so long, or they have taken the last of these. A program that took every quantile within
0.02 of a rank for that rank is right for 24 of 25 shares: with five shares a draw it got through an audit on an H200, where few distributions leave
shares that the original takes. One that left out a key where their number is 1 more than a multiple of 32 met none such in an audit without."""

Again = Callable[[Case], None]

LAST = "last"
"""In place of a slot: the call is on the last call's inputs, which are not laid out anew."""

SETTLE_TRIES = 4

LEFT_OUT_TRIES = 4
"""Other inputs on which a program that seems to give an earlier answer is called: what an element is replaced by does not matter in all of them."""

FILLS = (0, 0x55, 0xFF)
"""Bytes that fresh memory is filled with before a checked call, drawn; 0: it is left as it was."""

POISONS = (0x11, 0x66, 0x66, 0x11, 0x11, 0x66)  # three times each, so that dice are not taken for memory; not in turns, as the addresses are


def verify(judge: Judge, worker: Worker, entry: str, task: Task, ours: bool = False) -> Verdict:
    """Check a built entry against the task's original. A pass names the case that came nearest to its tolerance.

    `ours`: a program that cannot mean to deceive. Only its values are looked at, on every case and in every state, and what it writes into inputs.
    """
    reason = judge.certify().reason or _too_few(judge)
    if reason:
        return Verdict(False, "unscored", f"the task cannot be scored: {reason}")
    try:
        with as_rejections():
            verification = _Verification(judge, worker, entry)
            return verification.values() if ours else verification.run()
    except Rejected as rejected:
        return deliberate(worker, rejected.verdict)


def _too_few(judge: Judge) -> str:
    """Return why the cases that are left do not suffice for a verdict, or ""."""
    if len(judge.cases) >= MINIMUM_CASES:
        return ""
    names: dict[str, list[str]] = {}
    for name, problem in judge.dropped.items():
        names.setdefault(problem, []).append(name)
    dropped = "; ".join(f"{problem} ({', '.join(of)})" for problem, of in names.items())
    return f"{len(judge.cases)} of its cases are sound, {MINIMUM_CASES} are needed ({dropped})"


def afterwards(judge: Judge, worker: Worker, entry: str) -> Verdict | None:
    """Check some more calls when a program has been timed, and change its state once more; return a rejection if it has changed meanwhile."""
    try:
        with as_rejections():
            _Verification(judge, worker, entry).changed_afterwards()
    except Rejected as rejected:
        return rejected.verdict
    return None


class _Verification:
    """One candidate's way through the cases."""

    def __init__(self, judge: Judge, worker: Worker, entry: str) -> None:
        self.judge, self.worker, self.entry = judge, worker, entry
        self.random = random.Random(os.urandom(16))
        self.seen: list[tuple[Case, int]] = [(judge.warm_up, WARM_UP_STATE)]
        self.nearest = (-1.0, Verdict(True, "ok"))
        self.luck = luck.Luck(judge, "calls of this audit")

    def run(self) -> Verdict:
        first, second, *others = self.judge.cases
        if self.worker.role != "candidate":  # a baseline is ours: at unusual strides a compiler would only start anew
            others = [case for case in others if case.name != STRIDED]
        self.random.shuffle(others)
        load_state(self.judge, self.worker, self.entry, 0)
        self.first_call(first)
        self.keep()
        self.call(second, 0, slot="new" if self.returns("input ") else "same")  # else what is kept would be written over by us
        self.call(first, 0, check="repeat")
        self.drawn_otherwise(first)
        for case in others:
            if case.name in VARIATIONS:  # of the first input, which is what a program saw last then, and might go by
                self.call(first, 0, check="repeat")
            self.call(case, 0)
        self.second_state(first, others)
        self.kept(first, second)
        self.memory_of_its_own(second)
        self.written_unseen(second)
        beside_one_another(self.judge, self.worker, self.entry, first)
        self.timed_state(second)
        self.more_values(second)
        self.idle("")
        census(self.worker)
        return self.nearest[1]

    def values(self) -> Verdict:
        """Every case once, one of them in each other state: half the calls, or fewer, of what a candidate meets (35 to 50)."""
        cases = [case for case in self.judge.cases if case.name != STRIDED]
        load_state(self.judge, self.worker, self.entry, 0)
        self.call(cases[0], 0)
        self.judged(self.judge.compare_inputs(self.export("inputs"), cases[0], 0), cases[0])
        for case in cases[1:]:
            self.call(case, 0)
        load_state(self.judge, self.worker, self.entry, 1, "set_state")
        if changed := self.judge.sound(cases[0], 1):
            self.call(changed, 1, check="stale_state" if self.judge.facts["state_tensors"] else "")
        load_state(self.judge, self.worker, self.entry, TIMED_STATE)
        if timed := self.judge.sound(cases[1], TIMED_STATE):
            self.call(timed, TIMED_STATE, check="stale_state")
        return self.nearest[1]

    def first_call(self, case: Case) -> None:
        """The call after which everything around the output is looked at as well."""
        self.call(case, 0, watched=True)
        if not self.judge.unchanged(self.export()):
            raise Rejected(rejection("late_output", "the output was another one a moment after the call had returned", case.name))
        self.judged(self.judge.compare_inputs(self.export("inputs"), case, 0), case)
        if self.judge.facts["state_tensors"] and not self.judge.facts["mutated_state"]:
            self.judged(self.judge.compare_state(self.export("state"), case, 0), case)
        self.as_much_drawn(case, 0)

    def drawn_otherwise(self, case: Case) -> None:
        """Where the original draws random numbers, call on the same inputs once more, with later ones of the same seed."""
        if self.judge.facts["random"] and (sound := self.judge.sound(with_draw(case, replace(Draw.of_case(case), drawn=1)), 0)):
            self.call(sound, 0)
            self.as_much_drawn(sound, 0)

    def as_much_drawn(self, case: Case, which: int) -> None:
        """Where other draws give another answer, the last call has left torch's generators where the original's does: others draw from them next."""
        if not self.judge.facts["draws_matter"]:
            return
        with as_rejections(case.name):
            left = good(self.worker.request("drawn"), "patched").get("left")
        if left != self.judge.drawn(case, which):
            text = "left otherwise: torch's random generators are not where the original's call leaves them: what is drawn next is other numbers"
            raise Rejected(rejection("global_flags", text, case.name))

    def second_state(self, first: Case, others: list[Case]) -> None:
        """Change the parameters in place; then a few of the cases again."""
        load_state(self.judge, self.worker, self.entry, 1, "set_state")
        nominal = self.judge.sound(first, 1)
        for case in filter(None, [nominal, *others[: SECOND_STATE_CASES - 1]]):
            if case is nominal or self.judge.viable(case, 1):
                self.call(case, 1, check="stale_state" if self.judge.facts["state_tensors"] else "")
        if nominal:
            self.one_tensor_at_a_time(nominal)
            self.exchanged_in_what_it_left(nominal)

    def one_tensor_at_a_time(self, case: Case) -> None:
        """Write single tensors and elements of the state in place; a call after each.

        Each is put back and followed by a call before the next, so that nothing else changes at the same time.
        """
        state, quickest = self.judge.state(1), math.inf  # seconds of a change: on a busy machine others take ten times as long
        laid_out = False  # the last call was on `case`: not yet, and those changes are left out in which the original is not sound
        names = list(state)
        order = self.random.sample(range(len(names)), len(names))
        tables = [at for at in order if len(state[names[at]]["shape"]) > 1] or order
        signed = [at for at in order if names[at] in self.judge.facts["one_sign"]]
        places = {**dict.fromkeys(EXCHANGES, tables), "minus": signed}
        first = [*CHANGES, *([("minus", "set_state")] if signed else [])]
        changes = [*first, *((change, "set_state") for change in self.exchanges())]
        ways = [*self.hidden_and_not(len(first)), *self.hidden_and_not(len(EXCHANGES))]
        for turn, ((change, how), hidden) in enumerate(zip(changes if names else (), ways, strict=False)):
            if turn > len(first) + 1 and turn * quickest > MORE_CHANGES_SECONDS:
                break
            began = time.monotonic()
            of = places.get(change, order)
            at = of[turn % len(of)]
            which, name = mixed(at, change), names[at]
            if not self.judge.viable(case, which):
                continue
            untouched = change == "tensor" and self.repeatable  # else a program may look at its state whenever its inputs are let go
            untouched &= not self.judge.facts["random"]
            if untouched and not laid_out:
                with as_rejections(case.name):
                    self.once(self.judge.ship(case), "same")
            self.write(name, which, how, hidden)

            def again(other: Case, name: str = name, which: int = which, how: str = how, hidden: bool = hidden) -> None:
                self.write(name, 1)
                self.once(self.judge.ship(other), "same")
                self.write(name, which, how, hidden)

            self.call(case, which, slot=LAST if untouched else "same", check="stale_state", loaded=True, again=again)
            self.write(name, 1)
            with as_rejections(case.name):
                self.once(self.judge.ship(case), "same")
            laid_out = True
            quickest = min(quickest, time.monotonic() - began)

    def exchanges(self) -> list[str]:
        """Return the kinds of exchanges in an order of which the first two are one in a row and one in a column: there may be no time for others."""
        shuffled = self.random.sample(EXCHANGES, len(EXCHANGES))
        first = [next(one for one in shuffled if one.startswith(line)) for line in self.random.sample(("row", "column"), 2)]
        return [*first, *(one for one in shuffled if one not in first)]

    def exchanged_in_what_it_left(self, case: Case) -> None:
        """Where calls change the state, exchange two elements of what a call has left; then another call."""
        if not self.judge.facts["mutated_state"]:
            return
        self.call(case, 1)
        name = self.judge.take_state(self.export("state"))
        if name and (sound := self.judge.sound(case, TAKEN)):
            write_state(self.worker, self.entry, {name: self.judge.state(TAKEN)[name]}, "set_state", hidden=self.random.random() < 0.5)
            self.call(sound, TAKEN, check="stale_state", loaded=True)

    @property
    def repeatable(self) -> bool:
        """Whether a call leaves inputs and state as they were, so that another one can be made on what lies there."""
        facts = self.judge.facts
        return not any(facts["mutated_inputs"]) and not facts["mutated_state"] and not facts["stateful"]

    def hidden_and_not(self, count: int) -> list[bool]:
        """Return for each of `count` writes whether it is made through `.data`: of any two that follow one another from the first on one is.

        By a coin for each, a program that goes by version counters met none in one audit of 16 on a busy machine, where there are four writes.
        """
        pairs = (self.random.sample((False, True), 2) for _ in range(0, count, 2))
        return [hidden for pair in pairs for hidden in pair][:count]

    def written_unseen(self, case: Case) -> None:
        """Write the last state through `.data`, and switch the mode of training and back; then a call.

        What went before were calls in another state, and nothing but this write since: loading it first would have all who go by version counters
        look again.
        """
        sound = self.judge.sound(case, TIMED_STATE)
        if not sound or not self.judge.facts["state_tensors"]:
            return
        write_state(self.worker, self.entry, self.judge.state(TIMED_STATE), "set_state", hidden=True)
        if self.judge.facts["switches"]:  # a graph that was exported in one mode has no other
            with as_rejections():
                good(self.worker.request("switch_mode", entry=self.entry), "raised")
        self.call(sound, TIMED_STATE, check="stale_state", loaded=True)

    def timed_state(self, case: Case) -> None:
        """Load the last state, as it is for the timing; then a call."""
        load_state(self.judge, self.worker, self.entry, TIMED_STATE)
        if sound := self.judge.sound(case, TIMED_STATE):
            self.call(sound, TIMED_STATE, check="stale_state")

    def more_values(self, case: Case) -> None:
        """Make calls on more nominal draws where an input has few elements."""
        few = self.judge.facts["least_values"]
        if 0 < few < SMALL_INPUT:
            self.other_draws(case, min(MOST_DRAWS, math.ceil(VALUES / few)), DRAWS_SECONDS, MOST_SECONDS)

    def other_draws(self, case: Case, count: int, seconds: float, most: float) -> None:
        """Make `count` calls on other draws of a case, one of them at least: no more than take so long by the quickest one, or have taken `most`."""
        began, quickest = time.monotonic(), math.inf  # on a busy machine some take ten times as long
        for turn in range(1, count + 1):
            at = time.monotonic()
            if sound := self.judge.sound(replace(case, seed=self.random.randrange(1 << 31)), TIMED_STATE):
                self.call(sound, TIMED_STATE)
            now = time.monotonic()
            quickest = min(quickest, now - at)
            if turn * quickest > seconds or now - began > most:
                break

    def changed_afterwards(self) -> None:
        """Make some calls as they were timed, the first of which gives what has to stay; then write two states in place, one of them through `.data`,
        and make a call in each.

        (What shares memory from the timing on only saves its allocations there, and what a user has kept of such calls is written over.)
        """
        nominal = self.judge.cases[0]
        if self.judge.facts["stateful"] or self.judge.facts["mutated_state"]:
            restore_state(self.judge, self.worker, self.entry, TIMED_STATE)
        kept = None if self.returns("") or self.returns("input ") else self.judge.sound(nominal, TIMED_STATE)
        if kept:
            self.call(kept, TIMED_STATE)
            self.as_much_drawn(kept, TIMED_STATE)
            self.keep()
        self.other_draws(nominal, LAST_CALLS, LAST_SECONDS, LAST_SECONDS)
        self.left_otherwise(replace(nominal, seed=self.random.randrange(1 << 31)))
        if kept:
            self.further_calls(kept, replace(nominal, seed=self.random.randrange(1 << 31)), LAST_KEPT_CALLS)
            self.still_there(kept, TIMED_STATE)
        for which, hidden in zip((1, TIMED_STATE) if self.judge.facts["state_tensors"] else (), self.hidden_and_not(2), strict=False):
            if changed := self.judge.sound(replace(nominal, seed=self.random.randrange(1 << 31)), which):
                write_state(self.worker, self.entry, self.judge.state(which), "set_state", hidden=hidden)
                self.call(changed, which, check="stale_state", loaded=True)
        expect_one_context(self.worker)

    def bring_back(self, which: int) -> None:
        """Bring about the state that a call begins in, where an earlier one may have changed it: as before a timed call, which a program could else
        tell from those that are checked here. State 1 is written in place."""
        if which == 1:
            load_state(self.judge, self.worker, self.entry, which, "set_state")
        elif which == LEFT_OTHERWISE:
            restore_state(self.judge, self.worker, self.entry, TIMED_STATE, but=1)
        else:
            restore_state(self.judge, self.worker, self.entry, which)

    def left_otherwise(self, case: Case) -> None:
        """Where calls change the state, have one begin as timed calls do, but in what calls change as another state has it.

        Of what was timed each call began in the same: whoever takes that for granted, as long as nobody writes to parameters, is right there alone.
        """
        if self.judge.facts["mutated_state"] and (sound := self.judge.sound(case, LEFT_OTHERWISE)):
            self.call(sound, LEFT_OTHERWISE, check="stale_state")

    def write(self, name: str, which: int, how: str = "set_state", hidden: bool | None = None) -> None:
        """Write one tensor of a state in place, or `hidden`, through `.data` (by a coin if that is not said).

        All of them where calls change some, or where the state is loaded.
        """
        state = self.judge.state(which)
        if how == "load_state":
            return write_state(self.worker, self.entry, state, how)
        chosen = state if self.judge.facts["mutated_state"] else {name: state[name]}
        hidden = self.random.random() < 0.5 if hidden is None else hidden
        write_state(self.worker, self.entry, chosen, "set_state", hidden=hidden)

    def call(
        self, case: Case, which: int, slot: str = "", check: str = "", watched: bool = False, loaded: bool = False, again: Again | None = None
    ) -> None:
        """Make one call and have its output judged. A mere difference in values is reported as `check`, if that is given.

        `loaded`: the state has just been written. `watched`: let the process run for a moment afterwards and look at it. `again`: bring about on
        other inputs what led up to the call.
        """
        if (self.judge.facts["stateful"] or self.judge.facts["mutated_state"]) and len(self.seen) > 1 and not loaded:
            self.bring_back(which)
        shipment = self.judge.ship(case)
        with as_rejections(case.name):
            for _ in range(SETTLE_TRIES):
                if not self.answers(shipment, slot):
                    return
                went_on = aftermath.worked_on(self.worker)
                if not went_on:
                    break
                if self.judge.facts["mutated_state"]:
                    self.bring_back(which)
            else:
                self.expect_rest(shipment, slot, which, went_on)
            comparison = self.judge.compare(self.export(), case, which, self.seen)
            comparison = aftermath.explained(self.judge, self.worker, comparison)
            if luck.is_marginal(comparison, case):
                comparison = self.on_other_draws(comparison, case, which, slot, again)
            if any(self.judge.facts["mutated_inputs"]) and not comparison.check:
                self.judged(self.judge.compare_inputs(self.export("inputs"), case, which), case)
            if self.judge.facts["mutated_state"] and not comparison.check:
                self.judged(self.judge.compare_state(self.export("state"), case, which), case)
            if watched and not comparison.check:
                self.idle(case.name)
        self.seen.append((case, which))
        if comparison.check in ("values", "cached"):
            comparison = self.explained(comparison, shipment, which, check)
        self.judged(comparison, case)
        if comparison.excess > self.nearest[0]:
            self.nearest = (comparison.excess, Verdict(True, "ok", "", case.name, comparison.errors, comparison.original))

    def expect_rest(self, shipment: Shipment, slot: str, which: int, went_on: str) -> None:
        """Where the program went on after several calls running, see whether it does after more of its calls than after calls of nothing."""

        def made(own: bool) -> None:
            if not own:
                prepare_call(self.worker, None, None)
                self.worker.go()
                return
            if self.judge.facts["mutated_state"]:
                self.bring_back(which)
            self.once(shipment, "new" if slot == LAST else slot)

        if found := aftermath.works_on(self.worker, made):
            raise Rejected(rejection("background", f"{went_on}; {found}", shipment.case.name))
        made(own=True)

    def on_other_draws(self, refused: Comparison, case: Case, which: int, slot: str, again: Again | None) -> Comparison:
        """Return a marginal refusal if it is seen again on other draws; else a pass, with the call made once more: what comes next looks at it."""

        def called(other: Case) -> Comparison:
            if again is not None:
                again(other)
            elif self.judge.facts["stateful"] or self.judge.facts["mutated_state"]:
                self.bring_back(which)
            self.once(self.judge.ship(other), slot if again is not None else "")
            return self.judge.compare(self.export(), other, which, typical=True)

        comparison = self.luck.asked(refused, case, which, called)
        if comparison.check:
            return comparison
        repeated = called(case)
        return comparison if not repeated.check or luck.is_marginal(repeated, case) else repeated

    def answers(self, shipment: Shipment, slot: str) -> bool:
        """Make one call; False if it raised, as it may where its inputs have other strides than the task's own."""
        try:
            self.once(shipment, slot)
        except CallRaised:
            if shipment.case.name == STRIDED:
                return False
            raise
        return True

    def once(self, shipment: Shipment, slot: str) -> None:
        """Make one call."""
        if slot != LAST:
            poison = self.random.choice(FILLS)
            prepare_call(self.worker, self.entry, shipment, slot=slot or self.random.choice(("new", "same")), poison=poison)
        self.worker.go(hold=True)

    def explained(self, comparison: Comparison, shipment: Shipment, which: int, check: str) -> Comparison:
        """Find out why values are wrong: does the answer change with what fresh memory holds? Where that was an earlier answer, nobody kept it."""
        if self.depends_on_memory(shipment):
            text = f"the output changes with what fresh memory held: not every element is written ({comparison.reason})"
            return Comparison("uninitialised", text, comparison.excess, comparison.errors, comparison.original)
        if comparison.check == "cached" and check != "stale_state" and self.leaves_out(shipment.case, which):
            text = f"the output is the one without what makes these inputs {shipment.case.name}, also where the program was never called on those"
            return Comparison("values", text, comparison.excess, comparison.errors, comparison.original)
        if comparison.check == "cached":
            name = "stale_state" if check == "stale_state" else "cached"
        else:
            name = check or self.check_of(shipment.case, which)
        return Comparison(name, comparison.reason, comparison.excess, comparison.errors, comparison.original)

    def check_of(self, case: Case, which: int) -> str:
        """Return the check that wrong values fall under: are they right where the inputs lie in memory as the task's own do?"""
        if case.name != STRIDED:
            return "values"
        plain = with_draw(replace(case, name="normal"), Draw(fixed=1))
        self.once(self.judge.ship(plain), "new")
        return "values" if self.judge.compare(self.export(), plain, which).check else "input_layout"

    def leaves_out(self, case: Case, which: int) -> bool:
        """Whether a variation of inputs that the program was never called on is answered as if it were those: then it remembers nothing.

        A row's least value found by its bits as an unsigned number takes no notice of a negative one, and was called a cache in 9 audits of 30.
        """
        for _ in range(LEFT_OUT_TRIES if case.name in VARIATIONS else 0):
            base = replace(self.judge.cases[0], seed=self.random.randrange(1 << 31))
            other = with_draw(case, replace(Draw.of_case(case), of=base.seed))
            if not self.judge.viable(other, which):
                continue
            if self.judge.facts["stateful"] or self.judge.facts["mutated_state"]:
                self.bring_back(which)
            self.once(self.judge.ship(other), "new")
            if self.judge.compare(self.export(), other, which, [(base, which)]).check == "cached":
                return True
        return False

    def depends_on_memory(self, shipment: Shipment) -> bool:
        exports: dict[int, list[Any]] = {0x11: [], 0x66: []}
        for poison in POISONS:
            prepare_call(self.worker, self.entry, shipment, slot="new", poison=poison)
            self.worker.go()
            exports[poison].append(self.judge.digest(self.export()))
        one, other = exports.values()
        return one == one[:1] * 3 and other == other[:1] * 3 and one[0] != other[0]

    def returns(self, what: str) -> bool:
        """Whether the original's outputs share memory with inputs ("input "), or with its state ("")."""
        shared = {name for names in self.judge.facts["aliases"] for name in names}
        return any(name.startswith(what) if what else not name.startswith(("input ", "output ")) for name in shared)

    def kept(self, case: Case, other: Case) -> None:
        """The output of a call on `case` has to stay what it was, for hundreds of calls on `other`. A state that is returned need not."""
        if self.returns(""):
            return
        self.further_calls(case, other, (*KEPT_CALLS, *((LONG_CALLS,) if self.random.random() < LONG_SHARE else ())))
        self.still_there(case, 0)

    def further_calls(self, case: Case, other: Case, most: Sequence[tuple[int, float]]) -> None:
        """Make calls on `other` that nobody looks at: up to each number, as long as they have not taken so long. `case`: whose output is kept."""
        with as_rejections(case.name):  # what lies there may have unusual strides, at which a program may raise
            prepare_call(self.worker, self.entry, self.judge.ship(other), slot="new")
            began, calls_made = time.monotonic(), 0
            for calls, seconds in most:
                while calls_made < calls and time.monotonic() - began < seconds:
                    self.worker.go()
                    calls_made += 1

    def keep(self) -> None:
        """Have the worker hold on to the last call's outputs."""
        self.worker.request("keep")
        self.worker.memory.keep()

    def still_there(self, case: Case, which: int) -> None:
        """The output that was kept has to be the answer to `case` in state `which` still."""
        comparison = self.judge.compare(self.export("kept"), case, which)
        if comparison.check and not ((case, which) in self.luck.met and luck.is_marginal(comparison, case)):
            raise Rejected(rejection("output_reuse", f"an output returned earlier was changed by a later call: {comparison.reason}", case.name))

    def memory_of_its_own(self, case: Case) -> None:
        """Call once more on the last call's inputs, those of `case`: its output does not lie where the last one does, which is the caller's.

        Unless the original's does: some give out a mask or a table that they made in their constructor.
        """
        if any(self.judge.facts["aliases"]) or not self.repeatable:
            return
        with as_rejections(case.name):
            self.keep()
            self.worker.go(hold=True)
            shared = self.export()["aliases"]
        again = {number for number, names in enumerate(shared) if KEPT in names}
        if again and (again := again - self.judge.hands_out_again(case)):
            text = f"output {min(again)} lies in the memory of {KEPT}, on the same inputs: whoever wrote to that one gets what was written"
            raise Rejected(rejection("output_reuse", text, case.name))

    def idle(self, case: str) -> None:
        """While nothing is asked of it, the worker has to be idle."""
        looks = [self.worker.activity(aftermath.QUIET_SECONDS)]
        if _is_busy(looks[0]) and looks[0].unexplained <= QUIET_SHARE * looks[0].seconds:
            looks.append(self.worker.activity(aftermath.QUIET_SECONDS))  # many threads that wait busily are silent a moment later
        seen, wakeups = looks[-1], max(look.wakeups for look in looks)
        if _is_busy(seen):
            text = f"after the call had returned the process used {seen.cpu_seconds:.3f} s of CPU time within {seen.seconds:.3f} s"
            raise Rejected(rejection("background", text, case))
        if self.worker.device == "cpu" and wakeups > WAKEUPS:  # CUDA's driver has threads of its own
            text = f"after the call had returned, a thread woke up {wakeups} times within {seen.seconds:.3f} s"
            raise Rejected(rejection("background", text, case))
        if seen.children and self.worker.role == "candidate":  # torch.compile's own processes live as long as a baseline's
            raise Rejected(rejection("background", f"after the call had returned {seen.children} child processes were alive", case))
        expect_one_context(self.worker, case)

    def export(self, what: str = "outputs") -> dict[str, Any]:
        return exported(self.worker, what)

    def judged(self, comparison: Comparison, case: Case) -> None:
        if comparison.check:
            raise Rejected(rejection(comparison.check, comparison.reason, case.name, comparison))


def _is_busy(seen: Activity) -> bool:
    return seen.cpu_seconds > QUIET_SHARE * seen.seconds


# --- all of it ----------------------------------------------------------------------------------------------------------------------


def audit(task: Task, source: Source, device: str = "cpu", limits: Limits | None = None, judge: Judge | None = None) -> tuple[Build, Verdict]:
    """Build and verify one program in workers of its own, which are ended afterwards. `judge`: one to use and leave open."""
    failures: Counter[str] = Counter()
    own = judge or steady(lambda: Judge(task, device, failures=failures))
    limits = replace(limits or Limits(), reads=taskfile.reads(task))
    try:
        with up(lambda: Worker("candidate", device, limits)) as worker:
            built, rejected = build(own, worker, "candidate", source)
            return built, rejected or verify(own, worker, "candidate", task)
    finally:
        if judge is None:
            own.close()

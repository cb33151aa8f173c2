"""A built and verified program under the timer in turns of many calls: inputs of their own for each, one span of the parent's clock."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import ClassVar

from warpwright.base import Case
from warpwright.verifier import luck
from warpwright.verifier.draw import Draw, with_draw
from warpwright.verifier.judge_client import Comparison, Judge, Shipment
from warpwright.verifier.rejections import exported, good
from warpwright.verifier.timed import TimedProgram
from warpwright.workers.sandbox import Worker
from warpwright.workers.tensors import exchange, turns, variants

SPAN_SECONDS = 10e-3
"""Of a turn: waking and answering, some 40 us on an H200, are then 0.4 % of it."""

FEWEST, MOST = 4, 200
"""Calls in a turn."""

TURN_BYTES = {"cpu": 256 << 20, "cuda": 4 << 30}
"""Of the inputs of a turn. As much again, or more, are its outputs."""

CHECKED = 8
"""Calls of a checked turn whose outputs are looked at. A program that answers one call in n wrongly saves that share of a turn, and gets through a
run with five checked turns with a probability of (1 - 1/n)^40: 1 % where it saves a tenth, 13 % where it saves a twentieth."""

SEEDS = 1 << 31

SPIN_SPARE = 15e-3
"""Seconds a core for which threads may wait busily: up to 12 ms each with OpenMP; on two busy cores 32 ms were seen in an honest program."""


class StreamedProgram(TimedProgram):
    """The program in turns of `calls` calls. `go` returns the seconds of one; `check` looks at some, drawn when the turn is over."""

    def __init__(self, judge: Judge, worker: Worker, entry: str, calls: int, name: str = "", puts_off: bool = False) -> None:
        super().__init__(judge, worker, entry, name, puts_off)
        self.calls = calls
        self._seeds: list[int] = []

    _made: ClassVar[turns.Turn | None] = None
    """The turn of the pass at hand: all programs get the same."""

    def _lay_out(self, inputs: Shipment, switched: bool) -> None:
        self._seeds = random.Random(inputs.case.seed).sample(range(SEEDS), self.calls)
        turn = self._turn_of(inputs) if self.worker.reads else None
        self.ledger.before_preparing(switched)
        good(self.worker.line_up(self.entry, inputs.inputs, self._seeds, turn, self._waits[0]), "resources")
        self.ledger.after_preparing()

    def _turn_of(self, inputs: Shipment) -> turns.Turn:
        current = StreamedProgram._made
        if current is None or current.inputs is not inputs.inputs or current.seeds != tuple(self._seeds):
            StreamedProgram._made = None  # first: two may not fit in memory
            StreamedProgram._made = current = turns.make(inputs.inputs, self._seeds)
        return current

    @property
    def spare(self) -> float:
        """Of filling a turn by its own hand its threads wait busily, too."""
        return SPIN_SPARE * (os.cpu_count() or 1) if self.worker.device == "cpu" and not self.worker.reads else 0.0

    def go(self) -> float:
        """Make the calls of a turn; return the seconds of one by this process's clock."""
        return super().go() / self.calls

    def _compared(self, case: Case) -> Comparison:
        comparison = Comparison("")
        for at in self._random.sample(range(self.calls), min(CHECKED, self.calls)):
            variant = with_draw(case, replace(Draw.of_case(case), variant=self._seeds[at]))
            comparison = self._judged(exported(self.worker, at=at), variant)
            if luck.is_marginal(comparison, variant):
                return self._on_other_draws(comparison, variant)
            if comparison.check:
                break
        return comparison


def calls_of(judge: Judge, inputs: Shipment, seconds: float, device: str) -> tuple[int, str]:
    """Return how many calls make a turn for programs whose call takes `seconds`, or 0 and why there can be no turn."""
    facts = judge.facts
    if facts["stateful"] or facts["mutated_state"]:
        return 0, "the answer to a call depends on the calls before it"
    if facts["random"]:
        return 0, "what a call draws depends on the calls before it, where nothing is said between two"
    tensors = list(exchange.descriptors(inputs.inputs))
    if not all(variants.is_dense(item["shape"], item["stride"]) for item in tensors):
        return 0, "an input is not dense in memory"
    size = sum(exchange.bytes_of(item) for item in tensors)
    room = TURN_BYTES[device.partition(":")[0]] // max(size, 1)
    if room < FEWEST:
        return 0, f"the inputs of {FEWEST} calls take {FEWEST * size / (1 << 30):.1f} GiB"
    return max(FEWEST, min(MOST, room, round(SPAN_SECONDS / max(seconds, 1e-9)))), ""

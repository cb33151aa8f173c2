"""A refusal that luck may have brought: values that miss their tolerance by less than a factor of two count where other draws say the same.

Where few elements make up an error, a program as good as the original errs now and then by more than twice what the original does on any of its
runs: sums of large terms that cancel, added up in another order. A task's honest program was refused so once in some hundred audits, by an error of
1.01 times what is allowed. Lower precision errs by hundreds of times as much: of 145 cheats that are refused for their values, none came nearer to
what is allowed than three times it.

One more error beyond the worst of the original's would say little: of a program with twice its error, where one element decides, one judgement in
fifty finds it, and the next draws rarely do again. So on the other draws the program's root mean square is held against the original's, of all its
runs, and may be twice as large. `python -m benchmarks.verifier.pooled` says what both rules refuse.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from warpwright.base import Case
from warpwright.verifier.draw import STRIDED
from warpwright.verifier.judge_client import Comparison, Judge

MARGINAL = 2.0
"""Times what is allowed: from here on one refusal is enough."""

DRAWS, FEWEST, SECONDS = 12, 4, 10.0
"""Other draws at most; fewer where they have taken so long, but so many at least."""

REFUSED = 2
"""Of them: a program that is wrong in one call of three, and more exact than the original in the others, has a small typical error."""


MOST = 2
"""Calls of an audit that luck may have been against: of a program as good as the original it is one call in 1,000 at most."""


def is_marginal(comparison: Comparison, case: Case) -> bool:
    """Whether an answer is refused for its values alone, by less than luck may bring. At unusual strides digits are not looked at."""
    return comparison.check == "values" and comparison.excess < MARGINAL and case.name != STRIDED


class Luck:
    """The calls of one program that luck was against: their answers were passed although their values missed what is allowed by a little."""

    def __init__(self, judge: Judge, calls: str) -> None:
        """Count for a program that `judge` judges; `calls`: what is counted, in words."""
        self.judge, self.calls = judge, calls
        self.met: list[tuple[Case, int]] = []
        """Case and state: a deterministic program that misses there misses in each repeat of the call."""

    def asked(self, refused: Comparison, case: Case, which: int, called: Callable[[Case], Comparison]) -> Comparison:
        """Return a marginal refusal if it is seen again on other draws, or if too many calls had none; else a pass (`on_other_draws`)."""
        comparison = on_other_draws(self.judge, refused, case, which, called)
        if comparison.check:
            return comparison
        if (case, which) not in self.met:
            self.met.append((case, which))
        if len(self.met) > MOST:
            return _again(refused, f"{len(self.met)} {self.calls} were off by as little")
        return comparison


def on_other_draws(judge: Judge, refused: Comparison, case: Case, which: int, called: Callable[[Case], Comparison]) -> Comparison:
    """Return a pass where a program errs on other draws of a case, in the same state, no more than it may; else the marginal refusal.

    `called` makes a call on a case and judges its answer, with its shares. A pass has the errors of the refusal: they are the nearest to what is
    allowed.
    """
    began, made, beyond, squares = time.monotonic(), 0, 0, Counter[str]()
    for other in judge.others(case, which, DRAWS):
        comparison = called(other)
        if comparison.check and not is_marginal(comparison, other):
            return comparison if comparison.check != "values" else _again(refused, f"on another draw of the inputs: {comparison.reason}")
        beyond += bool(comparison.check)
        if beyond >= REFUSED:
            return _again(refused, f"on two other draws of the inputs: {comparison.reason}")
        if not comparison.shares:  # no memory to look closer: this draw says nothing
            continue
        squares.update({name: share * share for name, share in comparison.shares.items()})
        made += 1
        if made >= FEWEST and time.monotonic() - began > SECONDS:
            break
    if made < FEWEST:
        return refused
    largest = math.sqrt(max(squares.values(), default=0.0) / made)
    if largest > 1:
        return _again(refused, f"on {made} other draws of the inputs its typical error was {largest:.2f} times what the original's allows")
    return replace(refused, check="", reason="")


def _again(refused: Comparison, seen: str) -> Comparison:
    return replace(refused, reason=f"{refused.reason}; {seen}")

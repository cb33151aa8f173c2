"""A refusal that luck may have brought: values that miss their tolerance by less than a factor of two have to miss it on another draw too.

Where few elements make up an error, a program as good as the original errs now and then by more than twice what the original does on any of its
runs: sums of large terms that cancel, added up in another order. A task's honest program was refused so once in some hundred audits, by an error of
1.01 times what is allowed. A program that errs by more than is allowed as a rule does so on the next draws as well, and lower precision errs by
hundreds of times as much: of 145 cheats that are refused for their values, none came nearer to what is allowed than three times it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from warpwright.base import Case
from warpwright.verifier.draw import STRIDED
from warpwright.verifier.judge_client import Comparison, Judge

MARGINAL = 2.0
"""Times what is allowed: from here on one refusal is enough."""

DRAWS, FEWEST, SECONDS = 6, 2, 10.0
"""Other draws at most; fewer where they have taken so long, but so many at least."""


def is_marginal(comparison: Comparison, case: Case) -> bool:
    """Whether an answer is refused for its values alone, by less than luck may bring. At unusual strides digits are not looked at."""
    return comparison.check == "values" and comparison.excess < MARGINAL and case.name != STRIDED


def on_other_draws(judge: Judge, refused: Comparison, case: Case, which: int, called: Callable[[Case], Comparison]) -> Comparison:
    """Return a pass where a marginal refusal is not seen again on other draws of its case, in the same state; else the refusal.

    `called` makes a call on a case and judges its answer. A pass has the errors of the refusal: they are the nearest to what is allowed.
    """
    began, made = time.monotonic(), 0
    for other in judge.others(case, which, DRAWS):
        comparison = called(other)
        if comparison.check == "values":
            return replace(refused, reason=f"{refused.reason}; on another draw of the inputs: {comparison.reason}")
        if comparison.check:
            return comparison
        made += 1
        if made >= FEWEST and time.monotonic() - began > SECONDS:
            break
    return replace(refused, check="", reason="") if made >= FEWEST else refused

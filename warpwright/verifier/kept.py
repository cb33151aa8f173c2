"""An output of a timed call that is held on to while the timing goes on: it has to stay what it was, however many buffers are handed out in turn.

The audit holds one for some hundred calls, and what follows the timing for 16 to 316. Here one is held for as many calls as there are: at each
look at a timed call the one that is held is compared, bit for bit, and the k-th output looked at takes its place with a chance of one in k, so
that each of them is equally likely to be the one that is held to the end. A ring as long as half of the calls of a timing is found more often than
not, one of a quarter in nine timings of ten; a longer one saves the memory of few of its calls.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from typing import Any

from warpwright.verifier.judge_client import Comparison, Judge
from warpwright.verifier.rejections import exported, good
from warpwright.workers.sandbox import Worker
from warpwright.workers.tensors import exchange

LARGEST = 1 << 30
"""Bytes of an output that is held on to: the baselines, which are timed beside, may need the memory. (Rings of what is larger take tens of GB.)"""


class KeptOutput:
    """The output of a program's that is held on to."""

    def __init__(self, judge: Judge, worker: Worker) -> None:
        self._judge, self._worker = judge, worker
        self._random = random.Random(os.urandom(16))
        self._mark: Any = None
        self._looks = 0

    def look(self, export: Mapping[str, Any]) -> Comparison:
        """Compare what is held; then hold on to the last call's output, `export`, in its place, by chance.

        Not where the original's outputs lie in its state or its inputs, which change.
        """
        if any(self._judge.facts["aliases"]) or sum(map(exchange.told_bytes, exchange.descriptors(export["tree"]))) > LARGEST:
            return Comparison("")
        self._looks += 1
        taken = self._random.random() * self._looks < 1
        mark = self._judge.digest(export) if taken else None  # before another export lets go of this one
        if self._mark is not None and self._judge.digest(exported(self._worker, "kept")) != self._mark:
            return Comparison("output_reuse", "an output that an earlier timed call had returned was changed by a later one")
        if taken:
            good(self._worker.request("keep"), "resources")
            self._worker.memory.keep()
            self._mark = mark
        return Comparison("")

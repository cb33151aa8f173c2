"""Recover what HPCTransEval does not store: the buffer of each kernel's parameters, and the grid of each launch.

Kernels run in the order of their suffixes. `footprint` recovers what they touch, `loop_nests` reads a wiring off the reference, `dataflow` searches
for others, and `trial` runs them: a wiring counts only if the translated kernels give the reference's answers; the item says what is missing
otherwise.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from dataclasses import replace
from random import Random

from warpwright.errors import WarpwrightError
from warpwright.translation import translators
from warpwright.translation.errors import NotWired, one_line
from warpwright.translation.items import Item
from warpwright.translation.judge.judge import judge
from warpwright.translation.judge.prepare import Prepared
from warpwright.translation.wiring import loop_nests
from warpwright.translation.wiring.dataflow import Search
from warpwright.translation.wiring.footprint import Footprints
from warpwright.translation.wiring.kernels import kernels_of
from warpwright.translation.wiring.trial import Trial

SEARCH_SECONDS = 240.0
"""Limit for trying wirings of one item."""

MOST_TRIED = 5000
FEW_KERNELS = 4
"""With at most so many, the first wiring is judged at once: it is nearly always right, and building a Trial would cost more."""


def wire(prepared: Prepared) -> Item:
    """Return the item with the first wiring whose translated kernels give the reference's answers, or with the reason why there is none."""
    item = prepared.item
    try:
        kernels = kernels_of(item.cuda)
        bare = next((k for k in kernels if not k.stores or not k.block), None)
        if not kernels or bare is not None:
            lacks = "" if bare is None else "has no __launch_bounds__" if bare.stores else "stores to no parameter"
            raise NotWired(f"{bare.name} {lacks}" if bare is not None else "the CUDA text has no kernel")
        with Footprints(kernels, 4 * max(b.size for b in item.buffers) + 4096) as footprints:
            search, likeliest = Search(item, kernels, footprints.launches), loop_nests.wiring(item, kernels, footprints)
            wirings = itertools.chain([] if isinstance(likeliest, str) else [likeliest], search.wirings())
            result = _first_right(prepared, wirings, len(kernels))
    except WarpwrightError as error:
        return replace(item, unwired=one_line(error))
    if isinstance(result, str):
        return replace(item, unwired=search.why or result or "no wiring fits the buffers' names and sizes")
    return result


def _first_right(prepared: Prepared, wirings: Iterable[Item], kernels: int) -> Item | str:
    """Return the first wiring with the reference's answers, or what was wrong with the likeliest; empty where there was none to try."""
    why, likeliest, deadline, trial = "", "", time.monotonic() + SEARCH_SECONDS, None
    try:
        for count, wired in enumerate(wirings):
            if count or kernels > FEW_KERNELS:
                trial = trial or Trial(prepared)
                why = trial.fault(wired)
            if not why or (not count and kernels <= FEW_KERNELS):
                row = judge(prepared, translators.compile_item(wired), 0.0, Random(0))
                if row.status == "ok":
                    return wired
                why = f"{row.status}, {row.reason}"
            likeliest = likeliest or why
            if count >= MOST_TRIED or time.monotonic() > deadline:
                break
    finally:
        if trial is not None:
            trial.close()
    return f"none of {count + 1} inferred wirings gives the reference's answers; of the likeliest {likeliest}" if likeliest else ""

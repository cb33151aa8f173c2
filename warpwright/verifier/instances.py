"""Two modules of a candidate's class beside one another: what one keeps of its parameters is not the other's.

A cache that belongs to the class or to the file, under a key that two modules share (a shape, version counters), is right as long as there is one. So
two are made that have been through the same, and are given different states; a call of one, of the other, and of the first again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from warpwright.base import Case
from warpwright.verifier import luck
from warpwright.verifier.judge_client import TIMED_STATE, Judge
from warpwright.verifier.rejections import Rejected, as_rejections, exported, good, load_state, prepare_call, rejection
from warpwright.workers.sandbox import Worker

LARGEST_STATE = 1 << 24
"""Elements: of a larger one two more copies might not fit."""

QUICK_CALL = 1.0
"""Seconds that a warm-up call takes at most: each module of a program that compiles in one would compile again."""


def beside_one_another(judge: Judge, worker: Worker, entry: str, case: Case) -> None:
    """Make two modules, and a call of each; raise Rejected where one answers wrongly. Not where calls change the state.

    A state has to be loaded afterwards: until then outputs are held against the memory of modules that are gone.
    """
    facts = judge.facts
    changing = facts["stateful"] or facts["mutated_state"]
    if worker.role != "candidate" or not facts["state_tensors"] or changing or worker.slowest_warm_up > QUICK_CALL:
        return
    states = {f"{entry} {which}": which for which in (1, TIMED_STATE)}
    sound = {which: judge.sound(case, which) for which in states.values()}
    if _elements(judge.state(1)) > LARGEST_STATE or not all(sound.values()):
        return
    shared: set[str] = set()
    with as_rejections(case.name):
        for other, which in states.items():
            about = {"entry": entry, "other": other, "init": facts["init"], "training": facts["training"], "apart": facts["apart"]}
            twin = good(worker.with_tensors("twin", worker.limits.build_seconds, **about), "raised")
            if twin.get("none"):
                break
            shared.update(map(str, twin.get("shared", ())))
            load_state(judge, worker, other, which)
        else:
            _expect_as_the_originals(judge, shared, case)
            for other, which in [*states.items(), *states.items()][:3]:
                if shared:  # the other one's state lies there
                    load_state(judge, worker, other, which)
                _expect_right(judge, worker, other, sound[which] or case, which)
        good(worker.request("part", others=list(states)), "raised")


def _expect_as_the_originals(judge: Judge, shared: set[str], case: Case) -> None:
    """Two modules share what the original's do, such as a tensor of its file, and nothing else."""
    if shared and (extra := sorted(shared - judge.shared_by_modules())):
        text = f"two modules of its class share the memory of {', '.join(extra[:5])}; the original's do not: what is loaded into one is in the other"
        raise Rejected(rejection("stale_state", text, case.name))


def _expect_right(judge: Judge, worker: Worker, entry: str, case: Case, which: int) -> None:
    prepare_call(worker, entry, judge.ship(case), slot="new")
    worker.go()
    comparison = judge.compare(exported(worker), case, which)
    if comparison.check and not luck.is_marginal(comparison, case):
        text = f"of two modules of its class with other parameters one answered wrongly: what it keeps is not its own ({comparison.reason})"
        raise Rejected(rejection("stale_state", text, case.name, comparison))


def _elements(state: Mapping[str, Any]) -> int:
    return sum(math.prod(tensor["shape"]) for tensor in state.values())

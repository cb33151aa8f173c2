"""Taking rounds: warm-up, passes, the checks between them, and the baselines that are timed no further."""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpwright.base import Verdict
from warpwright.errors import WarpwrightError
from warpwright.timing.interleaved.block import CANDIDATE, Block
from warpwright.timing.interleaved.looks import BAND, pair_bound, pairs_of
from warpwright.timing.sequential import FIRST_LOOK, LOOK_ERROR, median

WARM_UP_SHARE = 0.15
"""Share of the time that warm-up may take before the programs count as stationary anyway."""

CHECK_TIME_SHARE = 0.3
"""Checks are left out while they have taken more than this share of the time (after the first three)."""

HOPELESS = 1.5
"""Over three passes and more."""

EXPOSED = 5e-3
"""Seconds. A call that is so much longer than the program's quickest one is disturbed more often for its length alone."""


class WrongDuringTiming(WarpwrightError):
    """A timed call's outputs did not pass."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"the outputs of a timed call did not pass: {verdict.reason}", "a program must be right whenever it is timed")
        self.verdict = verdict


def warm_up(block: Block, seconds: float) -> None:
    """Take rounds, and forget them, until no program gets faster any more (clocks, caches, allocators, compilers)."""
    block.active = list(block.programs)
    block.raw = {name: [] for name in block.programs}
    take_pass(block, block.active)
    block.began, block.check_seconds = block.clock(), 0.0
    block.raw = {name: [] for name in block.programs}
    sound, block.sound = block.sound, None
    while True:
        take_round(block)
        block.warm_up += 1
        if block.warm_up >= 2 and (_stationary(block) or block.clock() - block.began > WARM_UP_SHARE * seconds):
            break
    block.raw, block.sound = {name: [] for name in block.programs}, sound


def _stationary(block: Block) -> bool:
    """Whether no program's last round was more than 10 % faster than the round before."""
    return all(min(times[-2:]) > 0.9 * min(times[-4:-2]) for times in block.raw.values())


def take_round(block: Block) -> None:
    """Take a pass in random order and one in the reverse of that order; now and then a call on hidden inputs."""
    order = block.rng.sample(block.active, len(block.active))
    take_pass(block, order)
    take_pass(block, order[::-1])
    if block.began and block.rng.random() < block.check_share and _time_for_checks(block, block.hidden_checks):
        hidden_check(block)


def take_pass(block: Block, order: Sequence[str]) -> None:
    """Call every program of `order` once on the same fresh inputs and from the same core; check the candidate's outputs now and then.

    Where something disturbs it, it ends at once, and counts for none of them; but for one in which the candidate took far longer than it may."""
    inputs, place, kept = block.fresh_inputs(), block.rng.random(), len(block.raw[CANDIDATE])
    for number, name in enumerate(order):
        program = block.programs[name]
        program.prepare(inputs, place)
        block.raw[name].append(program.go())
        sound = block.sound is None or not block.began or block.sound()
        if name == CANDIDATE and _to_be_checked(block):
            check(block)
        if not sound and block.disturbed < kept and not _exposed(block.raw[CANDIDATE], kept):
            block.disturbed += 1
            for called in order[: number + 1]:
                block.raw[called].pop()
            return


def _exposed(times: Sequence[float], kept: int) -> bool:
    """Whether the program's call in this pass, after those of the passes that are kept, was so long that leaving it out would hide what it took."""
    return len(times) > kept and times[-1] > min(times) + EXPOSED


def _to_be_checked(block: Block) -> bool:
    """Decide, after the call and out of the program's sight, whether to look at its outputs."""
    return block.rng.random() < block.check_share and _time_for_checks(block, block.checks)


def _time_for_checks(block: Block, done: int) -> bool:
    spent = block.clock() - block.began if block.began else math.inf
    return done < 3 or block.check_seconds < CHECK_TIME_SHARE * spent


def hidden_check(block: Block) -> None:
    """Call the candidate on inputs of a hidden distribution, as if it were timed, and check the answer."""
    if block.hidden_inputs is None:
        return
    began = block.clock()
    program = block.programs[CANDIDATE]
    program.prepare(block.hidden_inputs(), block.rng.random())
    program.go()
    block.check_seconds += block.clock() - began
    block.hidden_checks += 1
    check(block)


def check(block: Block) -> None:
    """Have the outputs of the candidate's last call checked. Raises WrongDuringTiming."""
    began = block.clock()
    verdict = block.programs[CANDIDATE].check()
    block.checks += 1
    block.check_seconds += block.clock() - began
    if verdict is not None and not verdict.ok:
        raise WrongDuringTiming(verdict)


def retire(block: Block) -> None:
    """Stop timing the baselines that the headline cannot need: proven 5 % slower than another, or not eligible, or of which enough is known."""
    for name in [name for name in block.enough if name in block.eligible]:
        above, below = (pair_bound(block, name, LOOK_ERROR / 2, upper) for upper in (False, True))
        if (above > block.enough[name] or below < 1 / BAND) and _stands_in(block, name):
            block.eligible -= {name}
    limit = 1.05 * min(pair_bound(block, name, LOOK_ERROR / 2, upper=True) for name in block.eligible)
    for name in [name for name in block.active if name not in (CANDIDATE, block.kept)]:
        if name not in block.eligible or pair_bound(block, name, LOOK_ERROR / 2, upper=False) > limit:
            block.active.remove(name)


def _stands_in(block: Block, name: str) -> bool:
    """Whether a baseline that is timed on is as quick as this one: else all that this one was quicker than would pass for the best without it."""
    over = {one: median(pairs_of(block, one, block.overhead)) for one in block.eligible if one == name or one in block.active}
    return any(one != name and pairs <= over[name] + math.log(BAND) for one, pairs in over.items())


def retire_hopeless(block: Block) -> None:
    """Before the first look, which comes late for slow programs: drop a baseline that was far slower than another one in each pass."""
    if not 3 <= len(block.raw[CANDIDATE]) < FIRST_LOOK:
        return
    active = [name for name in block.eligible if name in block.active]
    block.active = [name for name in block.active if name in (CANDIDATE, block.kept) or not any(_far_above(block, name, other) for other in active)]


def hopeless(block: Block) -> list[str]:
    """Return the baselines that were dropped as hopeless: a second run has nothing to ask of them, and may have no time for their warm-up."""
    return [name for name in block.eligible if name not in block.active and len(block.raw[name]) < FIRST_LOOK]


def _far_above(block: Block, name: str, other: str) -> bool:
    """Whether a program took HOPELESS times as long as another one in every pass: what slows a pass down hits both."""
    return all(one > HOPELESS * two for one, two in zip(block.raw[name], block.raw[other], strict=True))

"""What an answer is paid. Everything follows from the evaluator's verdict and speed-up; a program that did not pass is paid the least there is.

    log          log2 of the speed-up, clipped: one jackpot cannot rule a step     (CUDA-L1 clips after dividing by the deviation, to the same end)
    raw          the speed-up as it is                                             (ablation)
    milestones   how many of MILESTONES the speed-up has reached, as a share
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from warpwright.learn.policy.config import Contrastive

MILESTONES = (0.5, 0.9, 1.05, 1.5, 2.0, 4.0, 8.0, 16.0)


def log(speedup: float, most: float) -> float:
    """Return log2 of a speed-up, clipped to `most` either way; the least for a failure."""
    return max(-most, min(most, math.log2(speedup))) if speedup > 0 else -most


def raw(speedup: float, most: float) -> float:
    """Return the speed-up."""
    return speedup


def milestones(speedup: float, most: float) -> float:
    """Return the share of milestones that are reached."""
    return sum(speedup >= one for one in MILESTONES) / len(MILESTONES)


REWARDS: Mapping[str, Callable[[float, float], float]] = {"log": log, "raw": raw, "milestones": milestones}


def of(settings: Contrastive) -> Callable[[float], float]:
    """Return the reward of a speed-up under some settings."""
    kind = REWARDS[settings.reward]
    return lambda speedup: kind(speedup, settings.most)

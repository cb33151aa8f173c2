"""What a baseline took in earlier answers of the same evaluator: a speed-up is not claimed for a host that is slower than it was.

Where the best baseline waits for the host and the program for the GPU, their ratio is one of the seconds in which they were timed: on an H200
torch.compile's program took 46 us in one answer of a server and 61 in another, the program 58 in both, and the two intervals did not meet
(benchmarks/results/narrow_h200). No count of pairs within one answer shows that; the other answers do.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace

from warpwright.base import Measurement
from warpwright.timing.measure import BAND

FEWEST, MOST = 4, 40
"""Answers that have to be known, and the latest that count."""

USUAL = 1.05
"""Times the lower quartile of the earlier ones: as much do two quiet answers differ."""


class Earlier:
    """The medians of each baseline in the answers so far, by regime."""

    def __init__(self) -> None:
        self._medians: defaultdict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=MOST))

    def beside(self, measurement: Measurement) -> Measurement:
        """Return a measurement that says where its best baseline was slower than in a quarter of the earlier answers, and is no longer FASTER where
        it would not be beside that one; take it down as one of them."""
        regime, name = str(measurement.conditions.get("regime", "single")), measurement.best_baseline
        known, now = self._medians[regime, name], measurement.baselines[name].median
        usual = sorted(known)[len(known) // 4] if len(known) >= FEWEST else now
        known.append(now)
        return measurement if now <= USUAL * usual else _slower(measurement, name, now, usual, len(known) - 1)


def _slower(measurement: Measurement, name: str, now: float, usual: float, answers: int) -> Measurement:
    said = f"{name} took {1e6 * now:.4g} us, and {1e6 * usual:.4g} in a quarter of the {answers} answers before: the interval is this one's alone"
    note = "; ".join(filter(None, [str(measurement.conditions.get("note", "")), said]))
    found = replace(measurement, conditions={**measurement.conditions, "note": note, "slower_than_before": now / usual})
    if found.verdict != "FASTER" or found.interval[0] * usual / now > BAND:
        return found
    regime = str(found.conditions.get("regime", "single"))
    regimes = {one: replace(other, verdict="UNSURE") if one == regime else other for one, other in found.regimes.items()}
    return replace(found, verdict="UNSURE", regimes=regimes)

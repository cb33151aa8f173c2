"""An evaluator for tests without a GPU: the simulator's cycles, with a judgement that is as exact."""

from __future__ import annotations

from warpwright.base import Candidate
from warpwright.domains.sass import script
from warpwright.domains.sass.model.simulator import cycles
from warpwright.targets.cubin.judging import Interval, Judgement
from warpwright.targets.cubin.simulated import WARPS, SimulatedEvaluator


class Measured(SimulatedEvaluator):
    """Bears out what the simulator says."""

    differ = 0
    cold: Interval = (1.0, 0.999, 1.001)

    def judge(self, candidate: Candidate, stress: float = 0.0) -> Judgement:
        """Return what the schedule is worth in the simulator."""
        taken = cycles(script.read(candidate.source.text, self.kernel), WARPS)
        speedup = self.original / taken
        times = self.original * 1e-3, taken * 1e-3
        return Judgement(speedup, (speedup, speedup), 1.0, (1.0, 1.0), self.cold, *times, 20, self.differ)


class Wrong(Measured):
    """Sees other words in the long look."""

    differ = 3


class SlowerWhenCold(Measured):
    """Sees every schedule lose on cold caches."""

    cold = (0.99, 0.985, 0.995)

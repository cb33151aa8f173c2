"""An evaluator for tests without a GPU: the simulator's cycles, with a final measurement that is as exact."""

from __future__ import annotations

from warpwright.base import Candidate
from warpwright.domains.sass import script
from warpwright.domains.sass.simulator import cycles
from warpwright.targets.cubin.evaluator import Final
from warpwright.targets.cubin.simulated import WARPS, SimulatedEvaluator


class Measured(SimulatedEvaluator):
    """Bears out what the simulator says."""

    differ = 0

    def confirm(self, candidate: Candidate, stress: float = 0.0) -> Final:
        """Return what the schedule is worth in the simulator."""
        taken = cycles(script.read(candidate.source.text, self.kernel), WARPS)
        speedup = self.original / taken
        return Final(speedup, (speedup, speedup), 1.0, (1.0, 1.0), self.original * 1e-3, taken * 1e-3, 20, self.differ)


class Wrong(Measured):
    """Sees other words in the long look."""

    differ = 3

"""How far a float32 value may be from its float64 answer: the rule by which pairs are verified and candidates judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

EPSILON = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Tolerance:
    """A value passes where |value - exact| <= absolute + relative |exact|. Both are 0 for integers."""

    absolute: float
    relative: float

    def allows(self, error: NDArray[Any], exact: NDArray[Any]) -> NDArray[np.bool_]:
        """Return the elements that pass, given |value - exact|; an error of NaN never does."""
        return error <= self.absolute + self.relative * np.abs(exact)

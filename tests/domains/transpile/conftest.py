"""How many random kernels these tests try."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def many(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """Return how many of so many random kernels are tried: one in four, and all with --as-shipped, as `make test-slow` runs them."""
    return lambda count: count if request.config.getoption("--as-shipped") else count // 4

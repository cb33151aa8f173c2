"""Kernels are compiled with -O1 here: these tests ask what they compute, and -O3 takes up to three times as long. --as-shipped keeps -O3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from warpwright import native


@pytest.fixture(autouse=True, scope="module")
def quick_builds(request: pytest.FixtureRequest) -> Iterator[None]:
    build = native.build

    def quick(text: str, defines: Sequence[str] = (), flags: Sequence[str] = native.FLAGS) -> Path:
        return build(text, defines, ["-O1" if flag == "-O3" else flag for flag in flags])

    with pytest.MonkeyPatch.context() as patch:
        if not request.config.getoption("--as-shipped"):
            patch.setattr(native, "build", quick)
        yield


@pytest.fixture
def many(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """Return how many of so many random kernels are tried: two in five, and all with --as-shipped, as `make test-slow` runs them."""
    return lambda count: count if request.config.getoption("--as-shipped") else count * 2 // 5

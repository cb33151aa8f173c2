"""These tests ask what programs compute, not how fast they are: all are compiled quickly."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def compiled_quickly(quick_builds: None) -> None:
    pass

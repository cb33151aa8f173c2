"""Tests that run Triton kernels by its interpreter, which needs no GPU."""

from __future__ import annotations

import importlib.util

import pytest

INTERPRETER = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed: pip install triton (its interpreter needs no GPU)"
)

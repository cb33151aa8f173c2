"""Every program that a test of this folder writes defines each name that it reads."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.undefined_names import undefined_names
from warpwright.domains.graph import lower

OF_THE_TASK = {"get_inputs", "get_init_inputs"}
"""What the self-test at a file's end takes from the task's own text, which is cut short in most tests."""


@pytest.fixture(autouse=True)
def every_name_is_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look through each text as it is written: most are of kernels for a GPU, which nothing else here would run into a NameError."""
    write = lower._file

    def checked(*arguments: Any) -> str:
        text = write(*arguments)
        found = _undefined(text) - OF_THE_TASK
        assert not found, f"the program reads {sorted(found)}, which nothing defines"
        return text

    monkeypatch.setattr(lower, "_file", checked)


@functools.lru_cache(maxsize=256)
def _undefined(text: str) -> frozenset[str]:
    return frozenset(undefined_names(text))

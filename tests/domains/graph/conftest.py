"""Every program that a test of this folder writes defines each name that it reads."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import pytest

from tests.helpers.undefined_names import undefined_names
from warpwright.base import Source
from warpwright.domains.graph import lower, template
from warpwright.domains.graph.text import parts

OF_THE_TASK = {"get_inputs", "get_init_inputs"}
"""What the self-test at a file's end takes from the task's own text, which is cut short in most tests."""


@pytest.fixture(autouse=True)
def every_name_is_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look through each text as it is written: most are of kernels for a GPU, which nothing else here would run into a NameError."""

    def checked(language: str, files: Sequence[tuple[str, str]], *rest: str) -> Source:
        for _, text in files:
            found = _undefined(text)
            assert not found, f"the program reads {sorted(found)}, which nothing defines"
        return Source(language, tuple(files), *rest)

    for module in (lower, parts):
        monkeypatch.setattr(module, "Source", checked)


@functools.lru_cache(maxsize=256)
def _undefined(text: str) -> frozenset[str]:
    original = text.partition(template.RULER)[0]
    return frozenset(undefined_names(text) - undefined_names(original) - OF_THE_TASK)

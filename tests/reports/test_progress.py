"""What a run says while it runs: lines that are added where none can be written over, one line that is written over in a notebook."""

from __future__ import annotations

import io
import sys
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from warpwright.reports import progress
from warpwright.reports.progress import Progress


class Shown:
    """What a notebook's front end was told."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.lines = 0

    def display(self, *values: Any, raw: bool = False, display_id: bool = False, **_: Any) -> Shown:
        if display_id:
            self.lines += 1
            self.texts.append(values[0]["text/plain"])
        return self

    def update(self, value: dict[str, str], raw: bool) -> None:
        self.texts.append(value["text/plain"])


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    package, module, seen = ModuleType("IPython"), ModuleType("IPython.display"), Shown()
    module.display = seen.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return seen


def test_a_notebook_has_one_line_that_is_written_over(shown: Shown) -> None:
    with Progress(Console(file=io.StringIO(), force_jupyter=True), 60.0, task="net") as said:
        for phase in ("reading the program", "verifying"):
            said.tell(phase)
    assert shown.lines == 1 and [text.split(", ")[0] for text in shown.texts] == [
        "net: starting", "net: reading the program", "net: verifying", "net: done",
    ]  # fmt: skip
    assert all(text.endswith("s left") for text in shown.texts)


def test_a_notebook_is_told_nothing_where_nothing_is_wanted(shown: Shown) -> None:
    with Progress(Console(file=io.StringIO(), force_jupyter=True, quiet=True), 60.0) as said:
        said.tell("reading")
    assert not shown.texts


def test_a_front_end_that_fails_ends_no_search(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "update", lambda *_, **__: 1 / 0)
    with Progress(Console(file=io.StringIO(), force_jupyter=True), None) as said:
        said.tell("reading")


def test_a_log_has_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    with Progress(Console(file=file), 60.0, task="net") as said:
        said.tell("reading")
        assert file.getvalue() == ""
        monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
        said.tell("verifying")
    assert "net: verifying" in file.getvalue()

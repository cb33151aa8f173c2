"""What a worker's reply says of an error: the user's frames, not ours."""

from __future__ import annotations

from typing import Any

import pytest

from warpwright.workers.inside.channel import _answer, short_traceback


def fails() -> dict[str, Any]:
    raise KeyError("weight")


def test_frames_of_the_workers_are_left_out() -> None:
    text = _answer({"build": fails}, "build", {})["error"]
    assert "warpwright/workers" not in text
    assert "test_channel.py" in text and text.startswith("KeyError: 'weight'\n")


def test_frames_of_libraries_are_left_out() -> None:
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def forward(self) -> None:
            fails()

    text = _answer({"build": Model()}, "build", {})["error"]
    assert "site-packages" not in text and text.startswith("KeyError") and "in forward" in text


def test_an_error_of_the_parser_is_named_first() -> None:
    text = _answer({"build": lambda: compile("def f(:", "candidate.py", "exec")}, "build", {})["error"]
    assert text.startswith("SyntaxError: ") and "candidate.py" in text


def test_an_error_of_our_own_is_shown_whole() -> None:
    text = _answer({}, "no such operation", {})["error"]
    assert "warpwright/workers" in text and "KeyError" in text


def test_an_error_that_cannot_be_printed() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise SystemExit(0)

    assert "Mute" in short_traceback(Mute())

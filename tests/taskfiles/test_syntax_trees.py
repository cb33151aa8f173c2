"""Texts are parsed beside other threads that parse: what Python 3.11 says of those is no answer about the text."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from warpwright.tasks import sources

MISMATCH = "AST constructor recursion depth mismatch (before=42, after=172)"


@pytest.mark.parametrize("failures", [0, 1, sources.TRIES - 1])
def test_what_another_thread_brought_about_is_tried_again(failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parse, left = ast.parse, [SystemError(MISMATCH)] * failures

    def parsed(*arguments: Any) -> Any:
        if left:
            raise left.pop()
        return parse(*arguments)

    monkeypatch.setattr(ast, "parse", parsed)
    assert len(sources.syntax_tree("a = 1\nb = 2\n").body) == 2 and not left


def test_what_never_ends_well_is_raised_and_a_wrong_text_is_wrong_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SyntaxError, match="invalid syntax"):
        sources.syntax_tree("a = = 1")

    def parsed(*arguments: Any) -> Any:
        raise SystemError(MISMATCH)

    monkeypatch.setattr(ast, "parse", parsed)
    with pytest.raises(SystemError, match="mismatch"):
        sources.syntax_tree("a = 1")

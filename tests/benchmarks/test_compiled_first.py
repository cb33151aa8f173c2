"""The programs of a benchmark that are compiled first, each by one of several processes."""

from __future__ import annotations

import argparse
from contextlib import contextmanager
from types import SimpleNamespace

from benchmarks.kernels.beside import call_once


def test_each_program_is_called_by_one_part_and_a_failure_ends_none() -> None:
    seen: list[object] = []

    def called(name: str, baseline: bool) -> SimpleNamespace:
        if name == "broken":
            raise RuntimeError(name)
        return SimpleNamespace(ours=lambda way: seen.append((name, way)), baselines=lambda: {"compile": lambda: seen.append((name, "compile"))})

    @contextmanager
    def within(name: str):  # type: ignore[no-untyped-def]
        seen.append(f"in {name}")
        yield
        seen.append(f"out of {name}")

    todo = [("a", 1, False), ("broken", 1, False), ("b", None, True), ("b", 2, False)]
    call_once(todo, argparse.Namespace(compile_part="0/2"), called, within)
    assert seen == ["in a", ("a", 1), "out of a", "in b", ("b", "compile"), "out of b"]
    call_once(todo, argparse.Namespace(compile_part="1/2"), called)
    assert seen[6:] == [("b", 2)]

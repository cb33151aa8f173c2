"""Test files are compiled once where several processes run them: each compiles its share, before all of them read all of them.

In a fresh clone every process of pytest-xdist rewrites the assertions of all 380 files, at the same time as the others: 21 of the 43 s of the
processor's time that each takes to collect the tests. A share is written where pytest itself looks for it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def test_files(arguments: Sequence[str]) -> list[Path]:
    """Return the test files that these arguments of pytest name, sorted."""
    paths = [Path(argument.partition("::")[0]) for argument in arguments]
    return sorted(file for path in paths for file in (path.rglob("test_*.py") if path.is_dir() else [path]))


def my_share(files: Sequence[Path]) -> Sequence[Path]:
    """Return the files that this process compiles: none, where no other process reads them."""
    number, count = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw"), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    if not number.isdigit() or sys.dont_write_bytecode:
        return []
    return files[int(number) :: int(count)]


def compile_share(config: pytest.Config) -> None:
    """Compile the test files of this process's share that are not compiled yet. Whatever pytest has changed of this makes it slower, not wrong."""
    with contextlib.suppress(AttributeError, KeyError, TypeError, OSError):
        state = config.stash[rewrite.assertstate_key]
        for path in my_share(test_files(config.args)):
            folder = rewrite.get_cache_dir(path)
            compiled = folder / (path.stem + rewrite.PYC_TAIL)
            folder.mkdir(exist_ok=True)
            if rewrite._read_pyc(path, compiled) is None:
                source, code = rewrite._rewrite_test(path, config)
                rewrite._write_pyc(state, code, source, compiled)


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Look for no cycles while tests are collected, and afterwards in none of what was made: 3 s of 20, and 0.7 s for each later look."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()

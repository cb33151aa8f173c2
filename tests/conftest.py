"""What all tests share: golden texts, commands in this process, notes of what this machine measured, threads that sleep while they wait."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import first_reading
import pytest

if "slow" not in sys.argv:  # those judge a quiet machine as users have it, one process after the other
    # OpenMP threads spin for some milliseconds after each call, and with more processes than cores nearly all of the time goes there (29 honest
    # candidates: 161 s of the processor's time, 35 s with this; 78 tests of techniques and a policy in one process on a busy machine: 28 and 11).
    # libgomp reads it when it is loaded, here and in every process that is started.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads spin too (test_verify.py of unlearnable: 50 s of it, then 9 s)

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of these tests."""
    parser.addoption("--update-golden", action="store_true", help="write the golden texts instead of comparing with them")
    parser.addoption("--seed", type=int, default=0, help="where what tests draw begins, and what their files draw when they are read")
    parser.addoption("--as-shipped", action="store_true", help="compile kernels with the flags that users get, which takes long")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with tests/golden/NAME, or write it there under --update-golden."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        assert path.exists(), f"no golden text {name}; write it with --update-golden and read it"
        assert text == path.read_text(), f"{name} changed; read the difference, then run with --update-golden"

    return compare


@pytest.fixture
def command(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, dict[str, Any], str]]:
    """Run a command in a folder of the test's own; return its exit code, its JSON and its standard error.

    In this process: its fork server serves every command, where a process each time costs three imports of torch, 6 s of CPU time. No search ends
    because a program is near the peaks of this machine, which other tests may have kept busy when they were measured.
    """
    from warpwright import cli
    from warpwright.cli import programs
    from warpwright.loop import running

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(programs, "TIMING_SECONDS", 0.3)  # no test rests on how narrow an interval is
    monkeypatch.setattr(running, "NO_HEADROOM", math.inf)

    def run(*arguments: str) -> tuple[int, dict[str, Any], str]:
        code = cli.main([*arguments, "--json"])
        out, err = capfd.readouterr()
        assert out, err
        return code, json.loads(out), err

    return run


@pytest.fixture(autouse=True, scope="session")
def locks_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep no test waiting for the timing of another process's tests, or of whoever else uses this machine: none rests on how fast something is.

    Commands in processes of their own use the common lock.
    """
    from warpwright.timing import device_lock

    folder = tmp_path_factory.mktemp("locks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_lock, "common_folder", lambda: folder)
        yield


@pytest.fixture(scope="module")
def quick_builds(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile kernels with -O1: most tests ask what they compute, and -O3 takes up to four times as long. --as-shipped keeps -O3.

    Gold, where there is one, links a small library in 0.02 s of the processor's time, and GNU's linker in 0.1 s.
    """
    from warpwright import native
    from warpwright.native import standalone

    build, syntax_errors = native.build, native.syntax_errors
    linker = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []

    def quick(flags: Sequence[str]) -> list[str]:
        if "-fvisibility=hidden" in flags:  # the core of the mpi domain, 20 s: workers build it as users do, and this process takes theirs
            return list(flags)
        return [*("-O1" if flag == "-O3" else flag for flag in flags), *linker]

    def quick_build(text: str, defines: Sequence[str] = (), flags: Sequence[str] = native.FLAGS) -> Path:
        return build(text, defines, quick(flags))

    def quick_syntax_errors(text: str, name: str, flags: Sequence[str] = native.FLAGS) -> str:
        return syntax_errors(text, name, quick(flags))  # the same flags: the precompiled header is the same

    with pytest.MonkeyPatch.context() as patch:
        if not request.config.getoption("--as-shipped"):
            patch.setattr(native, "build", quick_build)
            patch.setattr(native, "syntax_errors", quick_syntax_errors)
            assert '"-O3"' in standalone._TEXT
            patch.setattr(standalone, "_TEXT", standalone._TEXT.replace('"-O3"', '"-O1"'))  # what generated files build themselves
        yield


@pytest.fixture
def note(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Print a line after the tests: a figure of this machine that no assertion may rest on."""
    return partial(record_property, "note")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile this process's share of the test files."""
    first_reading.compile_share(session.config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collect without looking for cycles."""
    with first_reading.without_collector():
        return (yield)


def seed(config: pytest.Config) -> None:
    """Begin all that tests draw at --seed. Unseeded, torch begins elsewhere in each process."""
    import numpy as np
    import torch

    number = config.getoption("--seed")
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[object]:
    """Seed what a test file draws while it is read, the weights of its modules above all: a bound once met them in some runs and not in others."""
    if isinstance(collector, pytest.Module):
        seed(collector.config)
    return (yield)


BY_ONE_JUDGE = ("test_cheat_is_rejected", "test_honest_candidate_passes")
"""Tests of test_cheats.py whose programs are judged by a judge of their task, which takes up to 3 s of the processor's time to come up."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have the programs of one task follow one another, cheats and honest ones."""
    places = [at for at, item in enumerate(items) if getattr(item, "originalname", "") in BY_ONE_JUDGE]
    judged = sorted((items[at] for at in places), key=lambda item: (item.callspec.params["program"].task, item.name))  # type: ignore[attr-defined]
    for at, item in zip(places, judged, strict=True):
        items[at] = item


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Seed what a test draws, whichever tests its process ran before; skip what needs a GPU where there is none."""
    seed(item.config)
    if item.get_closest_marker("cuda"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs an NVIDIA GPU")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the notes, of every process that ran tests."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports if getattr(report, "when", "") == "call"]
    notes = [text for report in reports for name, text in report.user_properties if name == "note"]
    if notes:
        terminalreporter.section("measured on this machine")
        for text in notes:
            terminalreporter.line(text)

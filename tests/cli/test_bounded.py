"""A command with a budget is ended by the process that waits for it, whatever it does then; what it leaves behind is ended with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from warpwright.cli import bounded
from warpwright.reports import report

SLEEPS = 120
"""Seconds that a command which is not ended would take."""

COMMAND = """
import os, signal, subprocess, sys, time
from warpwright.cli import command, outline

def main(arguments, bound):
    {body}

command.main = main
sys.argv = ["warpwright", "optimize", "task.py"]
sys.exit(outline.main())
"""

DEAF = f"""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    child = subprocess.Popen(["sleep", "{SLEEPS}"], start_new_session=True)
    print("started", os.getpid(), child.pid, file=sys.stderr, flush=True)
"""


def started(body: str) -> subprocess.Popen[str]:
    """Start a command that does as `body` says."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    text = COMMAND.format(body=body.strip())
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def ended(*pids: int) -> bool:
    """Have these processes ended within half a minute?"""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        living = []
        for pid in pids:
            with suppress(OSError):
                living.append(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X"))
        if not any(living):
            return True
        time.sleep(0.02)
    return False


def pids_of(process: subprocess.Popen[str]) -> list[int]:
    """Return the process ids that the command says on its first line."""
    assert process.stderr is not None
    return [int(word) for word in process.stderr.readline().split()[1:]]


@pytest.mark.parametrize("as_json", [True, False])
def test_a_command_that_hears_nothing_is_ended_with_all_that_it_started(as_json: bool) -> None:
    began = time.monotonic()
    process = started(f"bound.begin('slow', 1.0, {as_json}); bound.doing('sleeping'){DEAF}    time.sleep({SLEEPS})")
    out, err = process.communicate(timeout=60)
    assert process.returncode == bounded.NOT_PASSED and time.monotonic() - began < SLEEPS / 2
    assert ended(*map(int, err.splitlines()[0].split()[1:])), "the command, and what it started in a session of its own"
    assert "the budget of 1 s was spent at: sleeping" in err and "longer --budget" in err
    assert json.loads(out)["reason"] == "the budget of 1 s was spent at: sleeping" if as_json else not out


def test_a_command_without_seconds_is_waited_for() -> None:
    process = started("bound.begin('slow', None, True); time.sleep(0.3); print('done'); return 7")
    assert process.communicate(timeout=60)[0] == "done\n" and process.returncode == 7


def test_what_comes_behind_a_budget_is_waited_for() -> None:
    process = started("bound.begin('slow', 0.2, True, after=30.0); time.sleep(1.0); print('judged'); return 0")
    assert process.communicate(timeout=60)[0] == "judged\n" and process.returncode == 0


def test_it_is_seen_to_end_where_whoever_started_it_ignores_that() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        process = started("bound.begin('slow', 100.0, True); return 7")
    finally:
        signal.signal(signal.SIGCHLD, before)
    began = time.monotonic()
    _, err = process.communicate(timeout=90)
    assert process.returncode == 7 and time.monotonic() - began < 60, err


def test_one_that_has_written_all_keeps_its_code() -> None:
    process = started(f"bound.begin('slow', 0.5, True); print('all', flush=True); bound.done(0){DEAF}    time.sleep({SLEEPS})")
    out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == ("all\n", 0) and "spent" not in err


def test_the_signal_that_ended_it_is_passed_on() -> None:
    process = started("os.kill(os.getpid(), signal.SIGSEGV)")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGSEGV


def test_an_interruption_reaches_it_once() -> None:
    count = "    caught = []\n    signal.signal(signal.SIGINT, lambda *_: caught.append(1))\n"
    process = started(f"pass\n{count}    print('started', os.getpid(), file=sys.stderr, flush=True)\n    time.sleep(1)\n    return 40 + len(caught)")
    pids_of(process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 41


def test_it_ends_with_the_process_that_waits_for_it() -> None:
    process = started(f"print('started', os.getpid(), file=sys.stderr, flush=True)\n    time.sleep({SLEEPS})")
    pids = pids_of(process)
    process.kill()
    process.communicate(timeout=60)
    assert ended(*pids)


def test_its_line_is_that_of_a_run_without_records() -> None:
    written = {**report.line("task", (), reason="why"), "status": "timeout", "left_out": ["what came after: reading"]}
    assert bounded.line("task", "why", "reading") == written


def test_folders_of_a_fork_server_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "exchange"
    folder.mkdir()
    server = f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep({SLEEPS})', 'warpwright.workers.zygote', '3', {str(folder)!r}])"
    process = started(f"bound.begin('slow', 1.0, False)\n    {server}\n    time.sleep({SLEEPS})")
    process.communicate(timeout=60)
    assert process.returncode == bounded.NOT_PASSED and not folder.exists()


def test_what_is_told_is_read_whole_or_not_at_all() -> None:
    bound = bounded.Bound(0.0)
    assert bound.end == 0.0 and bound.told["doing"] == "the start"
    bound.begin("task", 10.0, True)
    bound.doing("x" * 10_000)
    assert bound.end == pytest.approx(10.1) and bound.code is None and bound.told["doing"] == "x" * 200
    bound.doing("done")
    bound.done(3)
    assert (bound.told["doing"], bound.code, bound.end) == ("done", 3, pytest.approx(10.1))
    bound.begin("task", 10.0, True, after=60.0)
    assert bound.end == pytest.approx(70.1)

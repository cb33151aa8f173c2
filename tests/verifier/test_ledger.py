"""What counts as work hidden outside the calls, and what is noise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.verifier.ledger import MOST_WRITTEN, Ledger, hidden_work, left_to_the_kernel, still_more
from warpwright.workers.procfs import written_bytes


def ledger(device: str, preparing: list[float]) -> Ledger:
    worker: Any = SimpleNamespace(device=device, cpu_clock=lambda: 0.0)
    return Ledger(worker, preparing)


def test_work_before_every_call_is_found() -> None:
    usual = ledger("cpu", [0.001] * 20)
    assert "before each timed call" in hidden_work(ledger("cpu", [0.011] * 20), [usual], 0.010)
    assert hidden_work(ledger("cpu", [0.0012] * 20), [usual], 0.010) == ""


def test_a_gpu_that_another_process_used_last_is_no_work() -> None:
    # five baselines share a process: few of their turns follow another's, and those take as long as the candidate's
    baselines = [ledger("cuda", [0.006, 0.008]) for _ in range(5)]
    assert hidden_work(ledger("cuda", [0.008] * 20), baselines, 0.004) == ""
    assert hidden_work(ledger("cuda", [0.020] * 20), baselines, 0.004)


def test_some_slow_turns_on_a_gpu_are_noise_and_most_are_not() -> None:
    baselines = [ledger("cuda", [0.002] * 20)]
    assert hidden_work(ledger("cuda", [0.002, 0.002, 0.030] * 10), baselines, 0.004) == ""
    assert hidden_work(ledger("cuda", [0.002, *[0.030] * 6] * 6), baselines, 0.004)


def test_only_a_turn_after_another_process_counts_on_a_gpu() -> None:
    book = ledger("cuda", [])
    for switched in (True, False, True):
        book.before_preparing(switched)
        book.after_preparing()
    assert len(book.preparing) == 2


def test_an_alarm_holds_only_where_preparations_that_take_turns_differ() -> None:
    noisy = [0.010, 0.030, 0.012, 0.025, 0.011, 0.028, 0.015, 0.013, 0.027, 0.012, 0.026, 0.014]
    assert not still_more(noisy, noisy[::-1], 0.004)
    assert still_more([one + 0.040 for one in noisy], noisy[::-1], 0.004)
    assert not still_more([one + 0.040 for one in noisy], noisy[::-1], 0.004, spare=0.060)


def test_bytes_written_to_a_disk_are_work_for_the_kernel(tmp_path: Path) -> None:
    """Memory that lies in files (/dev/shm) is none: nobody writes it out."""
    assert left_to_the_kernel(MOST_WRITTEN) == "" and "puts on the disk" in left_to_the_kernel(MOST_WRITTEN + 1)
    text = f"import sys; f = open({str(tmp_path / 'f')!r}, 'wb'); f.write(bytes(1 << 22)); f.flush(); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        seen = written_bytes(process.pid)
        process.stdin.close()
        process.wait(20)
    if os.path.exists("/proc/self/io") and seen == 0:
        pytest.skip("the folder of tests is no disk, or the kernel does not count")
    assert seen >= 1 << 22

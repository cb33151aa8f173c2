"""configs/plain_cuda_h200.jsonl is what the H200's recorded results say."""

from __future__ import annotations

from benchmarks.policy.recording import plain_rows
from warpwright.learn.policy import rows
from warpwright.learn.policy.recorded import tasks_of


def test_the_file_is_made_from_the_recorded_results() -> None:
    assert list(plain_rows.made()) == rows.read(plain_rows.OUT)


def test_it_holds_twenty_kernels_whose_best_are_those_of_the_results() -> None:
    tasks = tasks_of(rows.read(plain_rows.OUT))
    best = {task.name: round(task.best, 1) for task in tasks}
    assert len(tasks) == 20 and best["matmul"] == 5.7 and best["saxpy"] == 1.2 and best["histogram"] == 122.8

"""Random datatypes of all constructors: MPI_Pack and MPI_Unpack through the shim, the library behind it and an independent expansion agree."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from interpreters import HERE, KERNELS, environment, fake_driver, last_line

pytestmark = pytest.mark.compiler


def judged(python: str, types: int, seed: int, fake: str | None = None, timeout: int = 250) -> dict[str, Any]:
    """Return what the oracle says of so many random types."""
    command = [python, str(HERE / "oracle.py"), "--types", str(types), "--seed", str(seed)]
    return last_line(subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment(fake)))


def test_host_buffers_are_packed_byte_for_byte(python: str) -> None:
    told = judged(python, 1000, seed=1)
    assert told["failed"] == 0, told["failures"]
    assert len(told["kinds"]) == 12 and told["counts"]["MPI_Pack"]["served"] > 500, told
    assert sum(told["refused"].values()) <= 20 and told["compared"] > 700, told


def test_every_pair_of_memories_is_packed_byte_for_byte(python: str, fake_cuda: str) -> None:
    told = judged(python, 40, seed=2, fake=fake_cuda)
    assert told["failed"] == 0, told["failures"]
    assert told["launches"] > 300, told


def test_a_kernel_that_is_wrong_in_one_place_is_noticed(python: str, tmp_path: Path) -> None:
    right = "i64 at = (i64)(word - index * nest.block.by) * width;"
    text = KERNELS.read_text()
    assert right in text
    wrong = tmp_path / "kernels.cu"
    wrong.write_text(text.replace(right, "i64 at = 0;"))
    assert judged(python, 40, seed=2, fake=fake_driver(wrong))["failed"] > 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_types(python: str) -> None:
    told = judged(python, 100_000, seed=3, timeout=3600)
    assert told["failed"] == 0, told["failures"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_thousand_types_on_the_fake_gpu(python: str, fake_cuda: str) -> None:
    told = judged(python, 2000, seed=4, fake=fake_cuda, timeout=1800)
    assert told["failed"] == 0, told["failures"]

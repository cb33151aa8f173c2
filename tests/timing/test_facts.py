"""Tests of device facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright.errors import UsageError
from warpwright.timing import facts


def test_cpu_facts() -> None:
    found = facts.device_facts("cpu")
    assert found["name"] and int(found["cores"]) >= 1 and int(found["llc_bytes"]) > 1 << 18
    assert str(found["torch"])[0] == "2" and found["isa"]
    assert facts.machine_name("cpu").startswith(str(found["name"]))


def cache_file(root: Path, cpu: int, index: int, size: str, level: int, shared: str, kind: str = "Unified") -> None:
    folder = root / f"cpu{cpu}" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, text in (("size", size), ("level", str(level)), ("shared_cpu_list", shared), ("type", kind)):
        (folder / name).write_text(text + "\n")


def test_last_level_caches_are_added_up(tmp_path: Path) -> None:
    for cpu in range(4):
        cache_file(tmp_path, cpu, 0, "32K", 1, str(cpu), "Data")
        cache_file(tmp_path, cpu, 1, "32K", 1, str(cpu), "Instruction")
        cache_file(tmp_path, cpu, 2, "16M", 3, "0-1" if cpu < 2 else "2-3")
    assert facts.last_level_cache_bytes(tmp_path) == 32 << 20


def test_a_system_that_hides_its_caches(tmp_path: Path) -> None:
    assert facts.last_level_cache_bytes(tmp_path) == 32 << 20


def test_no_gpu_is_one_clear_error() -> None:
    with pytest.raises(UsageError, match="NVIDIA GPU as cuda:99"):
        facts.device_facts("cuda:99")

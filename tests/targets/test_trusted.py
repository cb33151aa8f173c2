"""What is kept for baselines from one run to the next, and that candidates get none of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.base import Candidate, Source
from warpwright.targets import trusted
from warpwright.workers import sandbox


def test_a_build_that_a_cache_made_short_is_remembered_as_long(tmp_path: Path) -> None:
    bench: Any = SimpleNamespace(folder=tmp_path)
    slow, other = (Candidate(Source("python", (("a.py", text),)), "cpu") for text in ("1", "2"))
    assert [trusted._longest_build(bench, slow, seconds) for seconds in (15.0, 0.5, 20.0, 1.0)] == [15.0, 15.0, 20.0, 20.0]
    assert trusted._longest_build(bench, other, 0.5) == 0.5


def test_a_folder_that_keeps_nothing_is_no_failure() -> None:
    bench: Any = SimpleNamespace(folder=Path("/proc/nothing"))
    assert trusted._longest_build(bench, Candidate(Source("python", (("a.py", ""),)), "cpu"), 2.0) == 2.0


@pytest.mark.parametrize(("is_trusted", "apart", "kept"), [(True, True, True), (True, False, False), (False, True, False), (False, False, False)])
def test_only_trusted_workers_beside_other_users_share_compile_caches(
    is_trusted: bool, apart: bool, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path / "cache"))
    for name in sandbox.SHARED_CACHES:
        monkeypatch.delenv(name, raising=False)
    found = sandbox._environment("/work-folder", is_trusted, apart)
    assert [value.startswith(str(tmp_path / "cache")) for name, value in found.items() if name in sandbox.SHARED_CACHES] == [kept] * 2
    assert all(value.startswith("/work-folder") for name, value in found.items() if name in ("HOME", "TMPDIR", "CUDA_CACHE_PATH"))

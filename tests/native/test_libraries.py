"""The package's own cache: what another user may have written there is not loaded, and one error says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warpwright import native
from warpwright.errors import UsageError
from warpwright.reports import doctor

TEXT = 'extern "C" int cached_answer() { return 7; }\n'


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(folder))
    return folder


@pytest.mark.parametrize("mode", [0o777, 0o1777], ids=["open", "sticky"])  # in /tmp anybody puts a file of that name before us
def test_a_cache_that_anybody_may_write_to_is_refused(mode: int, cache: Path) -> None:
    cache.mkdir()
    cache.chmod(mode)
    with pytest.raises(UsageError, match=rf"written by nobody else.* saw {cache} of user \d+, group \d+, mode {mode:o}; set WARPWRIGHT_CACHE"):
        native.cache_folder()
    finding = doctor._openmp()
    assert finding.level == "FAIL" and "WARPWRIGHT_CACHE" in finding.advice


@pytest.mark.compiler
def test_a_library_that_anybody_may_have_written_is_refused(cache: Path) -> None:
    library = native.build(TEXT)
    assert native.build(TEXT) == library
    library.chmod(0o666)
    with pytest.raises(UsageError, match=rf"written by nobody else.* saw {library} .* mode 666; remove it"):
        native.build(TEXT)
    library.unlink()
    assert native.build(TEXT) == library


def test_a_cache_that_is_made_is_ones_own_under_any_umask(cache: Path) -> None:
    before = os.umask(0)
    try:
        assert native.cache_folder() == cache and not cache.stat().st_mode & 0o022
    finally:
        os.umask(before)

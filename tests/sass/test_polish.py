"""The last polish of a kernel: a schedule is kept only where the final measurement bears it out, and what is in the way is a reason in words."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sass_cubins import kernel, task_path

from tests.sass.simulated_measurement import Measured, SlowerWhenCold, Wrong
from warpwright.domains.sass import script
from warpwright.domains.sass.code import disassembly
from warpwright.domains.sass.domain import checker_of
from warpwright.domains.sass.model.checker import complaints
from warpwright.errors import WarpwrightError
from warpwright.sass.polish import polish

HARNESS = """from warpwright.domains.sass.harness import Launch


def launch():
    return Launch("rmsnorm", (1, 1, 1), (256, 1, 1), ())
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setattr(disassembly, "is_available", lambda: True)  # the fixtures' listings are at hand
    harness = tmp_path / "harness.py"
    harness.write_text(HARNESS)
    return task_path("rmsnorm_90", tmp_path), harness


def test_a_schedule_that_is_borne_out_is_kept(files: tuple[Path, Path]) -> None:
    name = kernel("rmsnorm_90").name
    polished = polish(*files, name, 900.0, evaluator=Measured, proposals=30)
    assert polished.kept and polished.interval[0] > 1.0 and polished.failed == 0, polished
    schedule = script.read(polished.schedule, kernel("rmsnorm_90"))
    assert complaints(schedule, checker_of(schedule.kernel)) == []
    assert str(polished).startswith(f"{name}: +")


def test_one_that_is_not_borne_out_is_not_kept(files: tuple[Path, Path]) -> None:
    polished = polish(*files, kernel("rmsnorm_90").name, 900.0, evaluator=Wrong, proposals=30)
    assert not polished.kept and not polished.schedule
    assert "nothing was proven faster" in polished.reason and "3 other words" in polished.reason


def test_one_that_loses_on_cold_caches_is_not_kept(files: tuple[Path, Path]) -> None:
    polished = polish(*files, kernel("rmsnorm_90").name, 900.0, evaluator=SlowerWhenCold, proposals=30)
    assert not polished.kept and not polished.schedule
    assert "-1.00 % (-1.50 % to -0.50 %) on cold caches" in polished.reason


def test_what_is_in_the_way_is_said(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    cubin, harness = files
    assert "saw rmsnorm" in polish(cubin, harness, "other", 900.0, evaluator=Measured).reason

    def none(*_: Any) -> Any:
        raise AssertionError("nothing is measured without a disassembler")

    monkeypatch.setattr(disassembly, "is_available", lambda: False)
    assert "no nvdisasm" in polish(cubin, harness, "rmsnorm", 1.0, evaluator=none).reason


def test_what_comes_before_a_search_takes_none_of_its_seconds(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Building the edits' C++ and opening the evaluator took a search of ten seconds all but one candidate."""
    module = importlib.import_module("warpwright.sass.polish")
    now, done = [0.0], []

    def slow(name: str, seconds: float) -> None:
        done.append(name)
        now[0] += seconds

    def opened(*arguments: Any) -> Measured:
        slow("open", 3.0)
        return Measured(*arguments)

    def seen(*arguments: Any, **_: Any) -> Any:
        raise WarpwrightError(f"searched for {arguments[4].seconds:g} s after {done}")

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(module, "build", lambda: slow("build", 15.0))
    monkeypatch.setattr(module, "optimize", seen)
    for seconds, searched in ((9.0, "6"), (30.0, "26")):
        done.clear()
        reason = polish(*files, kernel("rmsnorm_90").name, seconds, evaluator=opened).reason
        assert f"searched for {searched} s after ['build', 'open']" in reason

"""What begins beside the judging of candidates, and that it ends with the trusted processes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.base import Candidate, Source
from warpwright.targets import ahead, building, trusted


class Beside:
    """A compilation or a count in another process."""

    def __init__(self, *_: object) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("place", "cores", "known", "compiles"),
    [("cuda:0", 16, False, True), ("cuda:0", 16, True, False), ("cuda:0", 2, False, False), ("cpu", 16, False, False)],
)
def test_baselines_are_compiled_beside_candidates_where_there_are_cores_to_spare(
    place: str, cores: int, known: bool, compiles: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "Precompiling", Beside)
    monkeypatch.setattr(building, "Counting", Beside)
    monkeypatch.setattr(ahead.os, "cpu_count", lambda: cores)
    baseline = Candidate(Source("python", (("baseline.py", "torch.compile(Model.forward)"),)), "cuda")
    if known:
        (tmp_path / "builds").mkdir()
        (tmp_path / "builds" / baseline.key).write_text("3.0")
    bench: Any = SimpleNamespace(place=place, folder=tmp_path, task=SimpleNamespace(option=lambda name: ""))
    judge: Any = Beside()
    made = trusted.Trusted(judge, {})
    ahead.join(bench, made, [baseline])
    assert (made.compiling is not None) == compiles
    assert (made.counting is not None) == (place != "cpu" and cores >= ahead.SPARE_CORES)
    compiling: Any = made.compiling
    made.close()
    assert judge.closed == 1 and (compiling is None or compiling.closed == 1)

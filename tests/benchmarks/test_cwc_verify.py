"""The script that trains `verify`'s networks side by side: what it keeps, and that a stopped run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cwc import verify as script
from warpwright.domains.unlearnable.verification import verify as verification
from warpwright.domains.unlearnable.verification.store import OutcomeStore
from warpwright.domains.unlearnable.verification.training.recipe import Outcome

pytest.importorskip("sklearn")


def test_a_stopped_run_goes_on_and_a_whole_one_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    store, page = tmp_path / "store.jsonl", tmp_path / "page.html"
    shown = ["--set", "digits", "--seeds", "1", "--epochs", "1", "--store", str(store), "--report", str(page)]
    planned = [run.key for run in verification.runs(script.data("digits", "gentle"), script.Settings(seeds=1, epochs=1, attacks="full"))]
    monkeypatch.setattr(script, "workers", lambda options, settings: _Pool(settings))
    monkeypatch.setattr(script.multiprocessing, "TimeoutError", StopIteration)
    _Pool.most = 20
    script.main(shown)
    assert "12 trainings are missing" in capsys.readouterr().out
    assert list(OutcomeStore(store)) == planned[:20]
    script.main(shown)
    assert "20 of them done before" in (said := capsys.readouterr().out)
    assert "missing" not in said and "random displacement" in page.read_text()
    assert OutcomeStore(store)[planned[0]] == Outcome({"clean": 50.0}, 90.0, 0, ((90.0, 50.0),))


class _Pool:
    """Answers at once, as often as it is allowed to."""

    most = 0

    def __init__(self, settings: object) -> None:
        self.settings = settings

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def terminate(self) -> None:
        pass

    def imap_unordered(self, _: object, keys: list[str]) -> _Pool:
        self.coming = iter(keys[: self.most])
        return self

    def next(self, timeout: float) -> tuple[str, Outcome]:
        assert timeout > 0
        return next(self.coming), Outcome({"clean": 50.0}, 90.0, 0, ((90.0, 50.0),))

"""A judge that runs out of GPU memory: what others only cache is given back, and the request is made once more."""

from __future__ import annotations

from typing import Any

import pytest
from corpus import task

from warpwright.verifier.judge import Judge, JudgeFailed

OUT = {"error": "... CUDA out of memory", "kind": "OutOfMemoryError", "message": "CUDA out of memory"}


class Neighbour:
    """A worker that holds memory on the same GPU."""

    trimmed = 0

    def trim(self) -> None:
        self.trimmed += 1


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_out_of_memory(failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    neighbour, left = Neighbour(), [OUT] * failures
    with Judge(task("relu"), "cpu") as judge:
        ask = judge.worker.request
        monkeypatch.setattr(judge.worker, "request", lambda *given, **named: left.pop() if left else ask(*given, **named))
        judge.probe(neighbour)  # type: ignore[arg-type]
        if failures < 2:
            assert judge.viable(judge.warm_up, 0)
        else:
            with pytest.raises(JudgeFailed, match="out of memory"):
                judge.viable(judge.warm_up, 0)
        assert neighbour.trimmed == (failures > 0)


def test_a_judge_that_let_go_of_its_answers_makes_them_again() -> None:
    with Judge(task("relu"), "cpu") as judge:
        assert judge.viable(judge.warm_up, 0)
        reply: dict[str, Any] = judge.worker.request("trim")
        assert "error" not in reply and judge.viable(judge.warm_up, 0)

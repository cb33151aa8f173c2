"""Two calls on the same inputs: no output lies where the last one does, unless the original's does too."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import corpus
import pytest

from warpwright.base import Case, to_json
from warpwright.verifier import verify
from warpwright.verifier.rejections import Rejected
from warpwright.workers.tensors.answer import KEPT

pytest.importorskip("torch")

from warpwright.verifier.judge.judge_worker import JudgeWorker

CASE = Case("nominal", 3)


@pytest.mark.parametrize(("task", "again"), [("mask_given_out", [1]), ("row_statistics", [])])
def test_a_judge_knows_which_outputs_the_original_hands_out_again(task: str, again: list[int], tmp_path: Path) -> None:
    judging = JudgeWorker({"device": "cpu", "exchange": str(tmp_path), "isolation": {}})
    judging.open(to_json(corpus.task(task)), "5", False)
    assert judging.hands_out_again(to_json(CASE)) == {"numbers": again}


@pytest.mark.parametrize(("shared", "original", "refused"), [([], {0}, ""), ([1], {1}, ""), ([1], set(), "1"), ([0, 1], {1}, "0"), ([0], {1}, "0")])
def test_no_other_output_may_lie_where_the_last_one_does(shared: list[int], original: set[int], refused: str) -> None:
    asked: deque[Case] = deque()
    worker = SimpleNamespace(go=lambda hold: None)

    def hands_out_again(case: Case) -> set[int]:
        asked.append(case)
        return original

    checked = SimpleNamespace(
        judge=SimpleNamespace(facts={"aliases": []}, hands_out_again=hands_out_again), repeatable=True, worker=worker, keep=lambda: None,
        export=lambda: {"aliases": [["input 0"] + [KEPT] * (number in shared) for number in range(2)]},
    )  # fmt: skip
    look: Callable[[Any, Case], None] = verify._Verification.memory_of_its_own
    if refused:
        with pytest.raises(Rejected, match=f"output {refused} lies in the memory of") as seen:
            look(cast(Any, checked), CASE)
        assert seen.value.verdict.check == "output_reuse"
    else:
        look(cast(Any, checked), CASE)
    assert len(asked) == bool(shared), "an original is called for nothing else"

"""What a worker's answer that holds an error is called."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from warpwright.base import Case
from warpwright.tasks import taskfile
from warpwright.verifier.checks import CHECKS, DISTRIBUTIONS
from warpwright.verifier.judge_client import Comparison
from warpwright.verifier.rejections import Rejected, census, good, rejection

pytest.importorskip("torch")

import torch

from warpwright.verifier.judge.judgement import judge_leaf
from warpwright.verifier.judge.oracle import scale_of
from warpwright.verifier.judge.original.reference import Original


@pytest.mark.parametrize(
    ("error", "check", "status"),
    [
        ("KeyError: 'weight'", "state_names", "wrong"),
        ("Traceback ...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB.", "resources", "crashed"),
    ],
)
def test_want_of_memory_is_not_a_wrong_state(error: str, check: str, status: str) -> None:
    with pytest.raises(Rejected) as caught:
        good({"error": error}, "state_names")
    assert (caught.value.verdict.check, caught.value.verdict.status) == (check, status)


def test_an_answer_without_an_error_is_passed_on() -> None:
    assert good({"found": 1}, "state_names") == {"found": 1}


def test_a_reason_gives_no_orders_to_a_terminal() -> None:
    """A program's words come out as what they are: no screen is cleared, no line is written over."""
    reason = rejection("raised", "the call raised: \x1b[2J\rstatus: ok \udcff\n\té").reason
    assert reason.startswith("the call raised: \\x1b[2J\\rstatus: ok \\udcff\n\té")


@pytest.mark.parametrize(
    "message", ["CUDA out of memory. Tried to allocate 2.00 GiB.", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"]
)
def test_memory_that_ran_out_is_said_so_by_whichever_library(message: str) -> None:
    with pytest.raises(Rejected) as caught:
        good({"error": f"RuntimeError: {message}", "kind": "RuntimeError", "message": f"RuntimeError: {message}", "device": ""}, "raised")
    assert caught.value.verdict.check == "resources" and caught.value.verdict.status == "crashed"


def test_findings_come_first_and_what_to_do_last() -> None:
    comparison = Comparison("values", "out: RMS error 1.0e-02 of the output's RMS, 3e+03 times what is allowed (...)")
    lines = rejection("values", comparison.reason, "edited", comparison).reason.splitlines()
    assert lines[0] == comparison.reason and lines[1] == f"The inputs (edited): {DISTRIBUTIONS['edited']}" and lines[2].startswith("What to do: ")
    assert "The inputs" not in rejection("values", comparison.reason, "nominal", comparison).reason
    assert "The inputs" not in rejection("raised", "the call raised: ...", "edited").reason


@pytest.mark.parametrize(("check", "said"), [("patched", "replaced or changed: torch.relu"), ("background", "a thread")])
def test_what_the_watch_found_is_a_sentence(check: str, said: str) -> None:
    found = {check: [said.rpartition(": ")[2]]}
    worker = cast(Any, SimpleNamespace(request=lambda op: {"found": found, "facts": {}}))
    with pytest.raises(Rejected) as caught:
        census(worker)
    assert caught.value.verdict.reason.startswith(f"{said}. The rule: {CHECKS[check].meaning}")


def test_values_say_what_is_wrong_before_the_figures(tmp_path: Path) -> None:
    path = tmp_path / "task.py"
    path.write_text(
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x.tanh()\n"
        "def get_inputs():\n    return [torch.randn(6, 50)]\ndef get_init_inputs():\n    return []\n"
    )
    original = Original(taskfile.describe(path), "cpu", 5, 1 << 30)
    leaf = original.answer(Case("nominal", 3), 0).leaves[0]
    right = leaf.exact.float()
    assert judge_leaf(right, leaf)["check"] == ""
    assert re.match(r"out: RMS error \S+ of the output's RMS, \S+ times what is allowed \(error max", judge_leaf(right * 1.1, leaf)["reason"])
    bad = right.clone()
    bad[0, :3] = float("nan")
    assert judge_leaf(bad, leaf)["reason"] == "out: Inf or NaN in 3 of 300 elements, where the original has finite numbers"
    endless = replace(leaf, exact=leaf.exact.index_fill(1, torch.tensor([4]), float("-inf")))
    endless = replace(endless, own=endless.exact.float(), scale=scale_of(endless.exact))
    reason = judge_leaf(endless.exact.float() * 1.1, endless)["reason"]
    assert reason.startswith("out: RMS error "), "where the original is infinite too nothing is said of it"

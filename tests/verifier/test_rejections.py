"""What a worker's answer that holds an error is called."""

from __future__ import annotations

import pytest

from warpwright.verifier.rejections import Rejected, good, rejection


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

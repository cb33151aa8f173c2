"""Inputs that a judge keeps: within their bytes, and as they were made."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from warpwright.verifier.judge.held import Held  # noqa: E402


def made(number: float) -> list[object]:
    return [{"x": torch.full((64,), number)}, 3]


def test_the_latest_within_the_bytes_stay() -> None:
    held = Held(2 * 256)
    held.put("a", made(1.0))
    held.put("b", made(2.0))
    assert held.get("a") is not None  # so that it is later than b
    held.put("c", made(3.0))
    assert held.get("b") is None and held.get("a") is not None and held.get("c") is not None and len(held) == 2


@pytest.mark.parametrize("budget", [0, 100])
def test_the_latest_one_stays_however_large_it_is(budget: int) -> None:
    held = Held(budget)
    held.put("a", made(1.0))
    held.put("b", made(2.0))
    assert held.get("a") is None and held.get("b") is not None
    held.make_room()
    assert len(held) == (1 if budget else 0)


def test_what_was_written_to_is_made_again() -> None:
    held, inputs = Held(1 << 20), made(1.0)
    held.put("a", inputs)
    assert held.get("a") is inputs
    inputs[0]["x"].clamp_(max=0.5)  # type: ignore[index]
    assert held.get("a") is None and not held
    held.put("b", [inputs])
    inputs.append(torch.zeros(1))  # a list of the caller's
    assert held.get("b") is None


def test_inputs_of_every_kind_can_be_handed_over() -> None:
    """Inference tensors count no writes, and are made again; sparse ones have no bytes of their own: who takes no such inputs says so later."""
    held = Held(1 << 20)
    with torch.inference_mode():
        counted_by_nobody = torch.ones(3)
    held.put("a", [counted_by_nobody])
    held.put("b", [torch.eye(3).to_sparse()])
    assert held.get("a") is None and held.get("b") is not None

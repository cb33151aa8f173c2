"""Inputs that a judge keeps: within their bytes, and as they were made."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from warpwright.verifier.judge.original.held import Held, digest_of  # noqa: E402


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


@pytest.mark.parametrize("by_numpy", [False, True])
def test_a_write_that_torch_does_not_count_is_one(by_numpy: bool) -> None:
    held, x = Held(1 << 20), torch.arange(64.0)
    held.put("a", [x])
    if by_numpy:
        x.numpy()[:2] = (1.0, 0.0)  # exchanged: sums do not show it
    else:
        x.data[:2] = torch.tensor([1.0, 0.0])
    assert x._version == 0 and held.get("a") is None


@pytest.mark.parametrize("bit", [0, 31, 32, 63])
def test_a_complement_and_a_bit_are_writes(bit: int) -> None:
    held, x = Held(1 << 20), torch.arange(64, dtype=torch.uint8)
    held.put("a", [x])
    x.numpy()[:] = 255 - x.numpy()  # an image's negative
    assert held.get("a") is None
    words = torch.tensor([0, -1, 3, 1 << 62, -(1 << 63)])
    for at in range(len(words)):
        changed = words.clone()
        changed[at] ^= (1 << bit) - (1 << 64 if bit == 63 else 0)
        assert len({digest_of(words), digest_of(changed), digest_of(~words), digest_of(~changed)}) == 4


def test_inputs_of_every_kind_can_be_handed_over() -> None:
    """Of inference tensors the bytes count, too; sparse ones have none of their own, and are made again: who takes no such inputs says so later."""
    held = Held(1 << 20)
    with torch.inference_mode():
        counted_by_nobody = torch.ones(3)
    held.put("a", [counted_by_nobody])
    held.put("b", [torch.eye(3).to_sparse()])
    held.put("c", [torch.ones(3, dtype=torch.complex64).conj()])
    held.put("d", [torch.ones(3, 1).expand(3, 5), torch.empty(0, 3)])
    assert [held.get(key) is not None for key in "abcd"] == [True, False, False, True]

"""An output that is memory nobody wrote is called that, also where the memory happens to hold an earlier answer."""

from __future__ import annotations

import corpus
import pytest

from warpwright.base import Source
from warpwright.verifier import verify
from warpwright.workers.limits import Limits

torch = pytest.importorskip("torch")

from warpwright.verifier.judge.original import held  # noqa: E402
from warpwright.verifier.judge.original.held import digest_of  # noqa: E402

WRITES_FIVE_TIMES = """import torch
from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, a, b):
        self.calls += 1
        out = torch.empty(a.shape[0], b.shape[1])
        return torch.mm(a, b, out=out) if self.calls <= 5 else out
"""


def test_recycled_memory_is_unwritten_and_no_kept_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "FILLS", (0,))  # memory is left as it was, so that the allocator gives out old answers
    limits = Limits(build_seconds=120, call_seconds=20, memory_bytes=3 << 30)
    verdict = verify.audit(corpus.task("matmul"), Source("python", (("candidate.py", WRITES_FIVE_TIMES),)), "cpu", limits)[1]
    assert (verdict.check, verdict.status) == ("uninitialised", "wrong"), verdict


def test_a_digest_tells_constant_memory_and_places_apart() -> None:
    one, other = (torch.full((1024,), byte, dtype=torch.uint8) for byte in (0x11, 0x66))
    assert digest_of(one) != digest_of(other)
    one, other = (torch.full((1 << 21,), value) for value in (1.0, 4.0))  # whose low bits are zero
    assert digest_of(one) != digest_of(other)
    numbers = torch.arange(1000, dtype=torch.float32)
    assert digest_of(numbers) == digest_of(numbers.clone())
    assert digest_of(numbers) != digest_of(numbers.flip(0))
    assert digest_of(torch.empty(0)) == "0"
    assert digest_of(numbers[1:]) == digest_of(numbers[1:].clone())  # off the start of a word
    assert digest_of(torch.ones(3, dtype=torch.uint8)) != digest_of(torch.ones(4, dtype=torch.uint8))


def test_a_digest_of_several_parts_tells_them_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpwright.verifier.judge.original.held.DIGEST_BYTES", 64)
    numbers = torch.arange(64, dtype=torch.float32)
    assert digest_of(numbers) != digest_of(numbers.roll(16))


@pytest.mark.parametrize("begins", [0, 1, 2, 5])
def test_a_digest_is_of_all_bytes_and_leaves_them_as_they_are(begins: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its definition, number by number: parts that lie well are read where they are, and weights are kept."""
    monkeypatch.setattr(held, "DIGEST_BYTES", 64)
    block = torch.randint(256, (345,), generator=torch.Generator().manual_seed(begins)).to(torch.uint8)
    before, tensor = block.clone(), block[begins : begins + 333]
    total, every = 0, 2**64 - 1
    for at in range(0, 333, 64):
        part = bytes(tensor[at : at + 64].tolist())
        for place, first in enumerate(range(0, len(part), 8)):
            word = int.from_bytes(part[first : first + 8], "little")
            word = (word ^ (word >> 29)) * held.MIX & every
            total += (word ^ (word >> 32)) * (2 * place + 1) * (2 * (at // 64) + 1)
    assert digest_of(tensor) == digest_of(tensor) == str(total & every) and torch.equal(block, before)

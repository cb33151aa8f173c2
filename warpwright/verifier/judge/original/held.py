"""The inputs of cases that were made lately, and the states: shipping a case, and answering it in one state after another, need the same ones.

To draw 2^20 normal numbers takes 10 ms, and a program meets each of some 25 cases once or more, the first of them ten times.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from warpwright.workers.tensors import exchange

DIGEST_BYTES = 16 << 20
"""At a time, of which what stands between stays in a GPU's cache: the weights of the places take as much memory again."""

MIX = -0x61C8864680B583EB
"""Odd, so that a product with it is one to one modulo 2^64: 2^64 by the golden ratio."""


State = Mapping[str, torch.Tensor]

MOST = 4
"""States 0, 1 and 2, and one that differs from 1 in a tensor, which shares the others with it."""


class Held:
    """Inputs by case, the latest within so many bytes; the latest one in any case. 0 bytes: that one alone."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._kept: OrderedDict[Hashable, tuple[list[Any], list[str], int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> list[Any] | None:
        """Return the inputs of a case, unless they are not here, or were written to since: some programs do so on some values alone."""
        if key not in self._kept:
            return None
        inputs, marks, _ = self._kept[key]
        if _marks(inputs) != marks:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return inputs

    def put(self, key: Hashable, inputs: list[Any]) -> None:
        """Keep the inputs of a case. Not those whose bytes do not say whether they were written to."""
        self._kept.pop(key, None)
        tensors = _tensors(inputs)
        if not all(_is_plain(tensor) for tensor in tensors):
            return
        self._kept[key] = inputs, _marks(inputs), sum(tensor.nbytes for tensor in tensors if tensor.layout is torch.strided)
        total = sum(size for _, _, size in self._kept.values())
        while len(self._kept) > 1 and total > self.budget:
            total -= self._kept.popitem(last=False)[1][2]

    def make_room(self) -> None:
        """Let go of what is there, before other inputs are made, where the latest alone are kept."""
        if not self.budget:
            self._kept.clear()

    def clear(self) -> None:
        """Let go of all."""
        self._kept.clear()


class HeldStates:
    """States by what they follow from, the latest MOST within so many bytes. Nobody may write to their tensors, or lend them to others who could.

    To draw a state asks each of its tensors what it holds, and each answer is waited for: of ResNet18's 122 tensors it took 1,732 operators and 328
    waits, before a run of 110 operators and none. Where calls change the state it is given anew before every run.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._kept: OrderedDict[Hashable, State] = OrderedDict()

    def of(self, key: Hashable, draw: Callable[[], State]) -> State:
        """Return the state of a key, drawn now if it is not here."""
        if key not in self._kept:
            state = draw()  # which may ask for others
            self._kept[key] = state
            while self._kept and (len(self._kept) > MOST or self._bytes() > self.budget):
                self._kept.popitem(last=False)
            return state
        self._kept.move_to_end(key)
        return self._kept[key]

    def _bytes(self) -> int:
        tensors = {id(tensor): tensor.nbytes for state in self._kept.values() for tensor in state.values()}
        return sum(tensors.values())

    def clear(self) -> None:
        """Let go of all."""
        self._kept.clear()


def _tensors(inputs: list[Any]) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether its elements lie in memory one by one, as they are."""
    return tensor.layout is torch.strided and not (tensor.is_nested or tensor.is_quantized or tensor.is_conj() or tensor.is_neg())


def _marks(inputs: list[Any]) -> list[str]:
    """Return a number of each tensor's bytes: torch's count of writes leaves out those through `.data`, of NumPy and of native code."""
    return [digest_of(tensor) for tensor in _tensors(inputs)]


def digest_of(tensor: torch.Tensor) -> str:
    """Return a number of a dense tensor's bytes, each weighted by its place: torch.hash_tensor's is 0 for any even count of equal words.

    A device is waited for once. (Inputs are marked whenever they are drawn, and looked at whenever they are asked for: some 480 times a verdict, at 5
    ms a GB on an H200, with twelve kernels and a wait for each 32 MB.)
    """
    parts = exchange.flat_bytes(tensor).split(DIGEST_BYTES)
    sums = torch.stack([_mixed(_words(part)).sum() for part in parts]).tolist()
    return str(sum(one * (2 * at + 1) for at, one in enumerate(sums)) % 2**64)


def _words(part: torch.Tensor) -> torch.Tensor:
    """Return bytes eight by eight, zeros behind the last ones: without a copy where they lie so."""
    if part.numel() % 8 == part.storage_offset() % 8 == part.data_ptr() % 8 == 0:
        return part.view(torch.int64)
    return torch.cat([part, part.new_zeros(-part.numel() % 8)]).view(torch.int64)


def _mixed(words: torch.Tensor) -> torch.Tensor:
    """Return words of which each bit says something of all, weighted by their places."""
    mixed = (words ^ _shifted(words, 29)).mul_(MIX)  # one to one: sums of a constant alone would lose its high bits
    return mixed.bitwise_xor_(_shifted(mixed, 32)).mul_(_weights(len(words), words.device))


@functools.lru_cache(maxsize=2)
def _weights(count: int, device: torch.device) -> torch.Tensor:
    """Return the weights of so many places: a tensor's parts all have the same, but for its last."""
    return 2 * torch.arange(count, device=device) + 1


def _shifted(words: torch.Tensor, by: int) -> torch.Tensor:
    """Return words shifted to the right, zeros from the left: with copies of the sign a number and its complement would look alike."""
    return (words >> by).bitwise_and_((1 << (64 - by)) - 1)

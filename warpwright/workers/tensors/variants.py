"""Variants of a case's inputs, one for each call of a turn: the judge and the runner make the same ones from a seed.

A turn calls a program many times between two looks at the clock. If its calls had the same inputs, a program could keep its answer; fresh inputs
for each would take the judge longer than the calls. So each call has a variant of one case: in every floating-point tensor all values move along by
a random distance, some are replaced by others of the same tensor, and nearly all get other bits, another pattern in each call, that stay within an
eighth of their power of two: were they the same numbers elsewhere, a program could move its last answer along and be right in less time than an
expensive function takes (3.8 times FASTER of 131,072 values of igamma), and so could a convolution. One whose values rise stays as it is, if there is
another. Where there is no such tensor, integers that are in no order take their part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

REPLACED = 64
"""Values of a tensor that are replaced, at most a quarter of it."""

MOST_AT_ONCE = 1 << 24
"""Elements: larger copies are no quicker together."""

KEPT_BITS = (3, 5, 8, 12)
"""Upper bits of the mantissa that stay, the first of these with which half or more of the values that are not round may move: in one eighth
of a power of two lie all values of a tensor that are near one another. None leaves the range that they have."""

ROUND_BITS = {"torch.float64": (52, 24), "torch.float32": (23, 8), "torch.float16": (10, 4), "torch.bfloat16": (7, 2)}
"""Bits of the mantissa by type, and of how many low ones all are zero in a number that stays: in float32 whole numbers up to 32,768, and halves and
quarters of smaller ones, may stand for something. So may zeros and infinities."""

PART, SAMPLE = 1 << 15, 1 << 16
"""Elements that are worked on at once on a CPU, and those that decide how many bits stay. (16 million floats in four slots: 582 ms whole, in parts
230; copies alone take 33.)"""

FEWEST_OF_TWICE = 16
"""Targets: for so many the source is laid out twice in a row on a GPU, so that what each gets is one piece of it. The inputs of a turn are limited
(`streamed.TURN_BYTES`), and so is one of many."""

WORDS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
"""Types by their bytes: as these, elements of any type can be copied by index and together."""


def like(inputs: Any) -> Any:
    """Return inputs of the same form in memory of their own, not yet filled; what is no tensor stays as it is."""
    import torch
    from torch.utils._pytree import tree_map

    def own(value: Any) -> Any:
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device) if isinstance(value, torch.Tensor) else value

    return tree_map(own, inputs)


def is_dense(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether a tensor's elements fill its memory, each at a place of its own: only of such inputs are there variants."""
    expected = 1
    for step, size in sorted(zip(stride, shape, strict=True)):
        if size > 1 and step != expected:
            return False
        expected *= size if size > 1 else 1
    return True


def vary(inputs: Any, seed: int, into: Any) -> Any:
    """Write variant `seed` of `inputs` into `into`, which has their form, and return it."""
    vary_all(inputs, [seed], [into])
    return into


def vary_all(inputs: Any, seeds: Sequence[int], into: Sequence[Any]) -> None:
    """Write a variant of `inputs` for each of `seeds` into the slots of `into`, which have their form."""
    Slots(into).write(inputs, seeds)


class Slots:
    """Slots that are written to turn by turn: looking for their tensors each time took as long as the copies."""

    def __init__(self, slots: Sequence[Any]) -> None:
        self._tensors = [list(_tensors(slot)) for slot in slots]
        self._known: list[tuple[int, int]] = []
        """Where each tensor begins, and its elements, when it was looked at: a program may have given one memory of its own since."""
        self._flat: list[list[torch.Tensor]] = []

    def flat(self) -> list[list[torch.Tensor]]:
        """Return the tensors of each slot in the order of memory (`_flat`), as they are now."""
        known = [(tensor.data_ptr(), tensor.numel()) for tensors in self._tensors for tensor in tensors]
        if known != self._known:
            self._known, self._flat = known, [list(map(_flat, tensors)) for tensors in self._tensors]
        return self._flat

    def write(self, inputs: Any, seeds: Sequence[int]) -> None:
        """Write a variant of `inputs`, which have the form of the slots, for each of `seeds`.

        All slots of a tensor are written at once: on a GPU a launch costs more than the kernel.
        """
        sources, slots = list(_tensors(inputs)), self.flat()
        moved = _moved(sources)
        for at, source in enumerate(sources):
            targets = [slot[at] for slot in slots]
            if at in moved and source.numel() > 1:
                _move(_flat(source), targets, _draws(seeds, at, source.numel()), _movable(source))
            else:
                _copy(targets, [_flat(source)] * len(targets))


Draws = tuple[list[int], "torch.Tensor", "torch.Tensor", list[int]]


def _draws(seeds: Sequence[int], at: int, count: int) -> Draws:
    """Return for each seed how far the values of tensor `at`, which has `count`, move along, and the places of those that are replaced, with what
    stands there then; and a word of random bits.

    A hash of seed, tensor and number makes them for all calls of a turn in a few operations: 128 generators of torch took 0.9 ms.
    """
    import torch

    replaced = min(REPLACED, count // 4)
    stream = _mixed(_mixed(torch.tensor(seeds)) + at * STEP % (1 << 62))
    drawn = (_mixed(stream[:, None] + torch.arange(replaced + 3) * STEP) >> 1) & MOST_DRAWN
    ways, places = drawn[:, :2] % (count - 1) + 1, drawn[:, 2:-1] % count
    return ways[:, 0].tolist(), places, (places + ways[:, 1:]) % count, drawn[:, -1].tolist()


STEP = -7046029254386353131
MIXERS = ((30, -4658895280553007687), (27, -7723592293110705685), (31, 1))
"""Of splitmix64, as signed numbers of 64 bits: the step between two draws, and the shifts and factors that mix one."""

MOST_DRAWN = (1 << 62) - 1


def _mixed(words: torch.Tensor) -> torch.Tensor:
    """Return words of 64 bits, mixed."""
    words = words + STEP
    for shift, factor in MIXERS:
        words = (words ^ ((words >> shift) & ((1 << (64 - shift)) - 1))) * factor
    return words


def _moved(sources: Sequence[torch.Tensor]) -> set[int]:
    """Return which tensors vary, by number."""
    real = {at for at, source in enumerate(sources) if source.is_floating_point() or source.is_complex()}
    chosen = {at for at in real if not _rises(sources[at])} or real
    return chosen or {at for at, source in enumerate(sources) if _in_no_order(source)}


def _movable(source: torch.Tensor) -> torch.Tensor | None:
    """Return, in the order of memory, the bits of each value that may be others in a variant, as words like those of `_flat`; None where none may."""
    import torch

    real = torch.view_as_real(source) if source.is_complex() else source
    if str(real.dtype) not in ROUND_BITS or source.element_size() not in WORDS:
        return None
    mantissa, low = ROUND_BITS[str(real.dtype)]
    flat, least, most = _flat(source), *real.aminmax()
    if not bool((most - least).isfinite()):
        finite = real[real.isfinite()]
        least, most = (finite.min(), finite.max()) if finite.numel() else (least, most)
    words = flat.view(getattr(torch, WORDS[real.element_size()]))
    ends = (torch.stack([least, most]) + 0.0).view(words.dtype).tolist()  # not -0.0, which may be found for 0.0 by other numbers of threads
    sample = words[:: max(1, words.numel() // SAMPLE)]
    uneven = int(((sample & ((1 << low) - 1)) != 0).sum())
    for bits in (mantissa - kept for kept in KEPT_BITS if kept < mantissa):
        if 2 * int((_moving(sample, bits, ends, low) != 0).sum()) >= uneven > 0:
            movable = torch.empty_like(words)
            for part, out in _in_parts(words, movable):
                out.copy_(_moving(part, bits, ends, low))
            return movable.view(flat.dtype)
    return None


def _moving(words: torch.Tensor, bits: int, ends: Sequence[int], low: int) -> torch.Tensor:
    """Return which of the lower `bits` of each word may be others: all, or none of a round number and of those beside the least and the largest."""
    upper = words >> bits
    moves = (upper != ends[0] >> bits).logical_and_(upper != ends[1] >> bits).logical_and_((words & ((1 << low) - 1)) != 0)
    return moves.to(words.dtype).mul_((1 << bits) - 1)


def _in_parts(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield tensors of one size part by part, as views: what is worked out on the way lies in a CPU's caches, and takes little of a GPU's memory."""
    return zip(*(tensor.split(MOST_AT_ONCE if tensor.device.type != "cpu" else PART) for tensor in tensors), strict=True)


def _cut(pattern: int, words: torch.Tensor) -> int:
    """Return as much of a random word as words of this type hold, without their sign."""
    return pattern & ((1 << (8 * words.element_size() - 1)) - 1)


def _move(source: torch.Tensor, targets: Sequence[torch.Tensor], draws: Draws, movable: torch.Tensor | None) -> None:
    """Write into each target the source moved along by a random distance, with others of its `movable` bits; then, at random places, what lies
    another distance away."""
    distances, places, origins, patterns = draws
    twice = source.device.type != "cpu" and len(targets) >= FEWEST_OF_TWICE
    _copy(*_moved_along(source, targets, distances, twice))
    if movable is not None:
        ends, moved = _moved_along(movable, targets, distances, twice)
        pieces = len(ends) // len(targets)
        for number, (end, its) in enumerate(zip(ends, moved, strict=True)):
            for part, bits in _in_parts(end, its):
                part.bitwise_xor_(bits & _cut(patterns[number // pieces], movable))
    if places.shape[1]:
        places, values = places.to(source.device), source[origins.to(source.device)]  # two of one place write one value
        for target, there, value in zip(targets, places.unbind(), values.unbind(), strict=True):
            target.index_copy_(0, there, value)


def _moved_along(
    source: torch.Tensor, targets: Sequence[torch.Tensor], distances: Sequence[int], twice: bool
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return pieces of the targets, and those of the source that belong there once it is moved along by a distance for each.

    `twice`: it is laid out twice in a row, so that there is one piece for each target and not two.
    """
    import torch

    count = source.numel()
    if twice:
        laid_out = torch.cat([source, source])
        return list(targets), [laid_out.narrow(0, count - far, count) for far in distances]
    ends = [piece for target, far in zip(targets, distances, strict=True) for piece in (target[far:], target[:far])]
    return ends, [piece for far in distances for piece in (source[: count - far], source[count - far :])]


def _copy(targets: Sequence[torch.Tensor], sources: Sequence[torch.Tensor]) -> None:
    """Copy each of `sources` into its target."""
    import torch

    if not targets:
        return
    if sources[0].device.type == "cpu" or max(map(torch.numel, sources)) > MOST_AT_ONCE:
        for target, source in zip(targets, sources, strict=True):
            target.copy_(source)
        return
    torch._foreach_copy_(list(targets), list(sources))


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """Return a dense tensor's elements in the order of memory, as plain words; its version counter stays as it is."""
    import torch

    flat = tensor.data.as_strided((tensor.numel(),), (1,), tensor.storage_offset())
    words = WORDS.get(tensor.element_size())
    return flat if words is None else flat.view(getattr(torch, words))


def _rises(tensor: torch.Tensor) -> bool:
    """Whether its values rise along its one dimension, as edges of buckets do, which mean nothing out of order."""
    if tensor.dim() != 1 or tensor.numel() <= 2 or tensor.is_complex() or tensor.element_size() == 1:  # torch subtracts no floats of 8 bits
        return False
    return bool((tensor.diff() > 0).all())


def _in_no_order(tensor: torch.Tensor) -> bool:
    import torch

    if tensor.dtype is torch.bool or tensor.numel() < 2:
        return False
    return bool((tensor.flatten().diff() < 0).any())


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    import torch
    from torch.utils._pytree import tree_leaves

    return (leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))

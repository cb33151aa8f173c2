"""Hidden values for a task's inputs and state: same shapes and dtypes, other numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import torch

from warpwright.verifier.checks import DISTRIBUTIONS
from warpwright.verifier.draw import UNEVEN, UNEVEN_TURNS

SPIKE_SHARE = 1 / 256
SPIKE_SIZE = 50.0
MASKED_SHARE = 1 / 64
LONE_SIZE = 100.0
"""Of single large values among the task's own, times standard normal: exp of most overflows float32. A softmax that subtracted no maximum where one
element in 61 showed none above 80 was accepted, and so might any be that looks at a sample of its inputs' sizes."""

EDITED_SHARE, EDITED_AT_LEAST = 2**-16, 8  # more edits than that would meet a fingerprint of 64 samples too often


def _random(tensor: torch.Tensor, generator: torch.Generator, normal: bool = True) -> torch.Tensor:
    drawn = torch.empty_like(tensor)
    return drawn.normal_(generator=generator) if normal else drawn.uniform_(generator=generator)


def _spikes(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Sparse large values: an answer that skips any part of its input misses some of them."""
    share = max(SPIKE_SHARE, min(0.5, 4 / max(1, tensor.numel())))
    places = _random(tensor, generator, normal=False) < share
    return _random(tensor, generator, normal=False).mul_(2 * SPIKE_SIZE).sub_(SPIKE_SIZE).mul_(places)


def _with(tensor: torch.Tensor, generator: torch.Generator, values: tuple[float, ...]) -> torch.Tensor:
    flat = tensor.clone(memory_format=torch.contiguous_format).view(-1)
    for value in values:
        places = torch.randint(flat.numel(), (max(1, flat.numel() // 4096),), generator=generator, device=flat.device)
        flat[places] = value
    return torch.empty_like(tensor).copy_(flat.view(tensor.shape))


def _masked(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.where(_random(tensor, generator, normal=False) < MASKED_SHARE, -math.inf, tensor)


def _padded(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The first or the last part of every second row or so at minus infinity, never all of one."""
    if tensor.dim() == 0:
        return tensor
    size, rows = tensor.shape[-1], torch.empty_like(tensor[..., :1])
    lengths = (_random(rows, generator, normal=False) * size).floor().clamp_(max=size - 1)
    places = torch.arange(size, device=tensor.device, dtype=tensor.dtype)
    from_end = _random(rows, generator, normal=False) < 0.5
    covered = torch.where(from_end, places >= size - lengths, places < lengths) & (_random(rows, generator, normal=False) < 0.5)
    return torch.where(covered, -math.inf, tensor)


def _coarse(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Even multiples of a power of two within the values' own range, a few of them odd; a number alone becomes a power of two.

    The largest of each row and column is 254 times it, or (odd seeds) the largest and the least lie 510 times apart: where a program quantises to 8
    bits by the largest value, or by the range, the quotients of the odd ones are exact ties. Were all of them odd or even, sums of squares would be
    rounded to one side, since an odd square is 1 modulo 8: an honest norm was 22 units in the last place off.
    """
    least, most = float(tensor.min()), float(tensor.max())
    largest, width = max(abs(least), abs(most)), most - least
    if not 0 < largest < math.inf:
        return tensor
    if width == 0:
        step = 2.0 ** math.floor(math.log2(largest))
        return torch.round(tensor / step) * step
    by_range = generator.initial_seed() % 2 == 1
    step = 2.0 ** math.floor(math.log2(width / (RANGE + 1) if by_range else largest / LARGEST))
    low, high = math.ceil(least / step), math.floor(most / step)
    coarse = (tensor / (2 * step)).round_().mul_(2)  # in place: an input of 17 GB and four results at a time filled a GPU
    odd = _random(tensor, generator, normal=False) < max(ODD_SHARE, min(1 / 4, ODD_LEAST / tensor.numel()))
    coarse[odd] += 1
    coarse = coarse.clamp_(low, high) if low <= high else coarse
    places = _one_in_each(tensor)
    if by_range:
        coarse.clamp_(low, low + RANGE).masked_fill_(places, low + RANGE)
        return coarse.masked_fill_(places.roll(1, -1).logical_and_(~places), low).mul_(step)
    if float(((coarse > LARGEST) | (coarse < -LARGEST)).sum()) > MOST_CUT * coarse.numel():  # all of them are about as large
        return coarse.mul_(step)
    return coarse.clamp_(-LARGEST, LARGEST).masked_fill_(places, LARGEST if most >= -least else -LARGEST).mul_(step)


ODD_SHARE = 1 / 64
"""Of the values: each is a tie where they are quantised."""

ODD_LEAST = 12
"""Of a small tensor, on average: with 4 a vector of 300 had one tie or none in 5 of 100 draws."""

LARGEST, RANGE = 254.0, 510.0
"""Twice 127 and twice 255, the steps of eight bits."""

MOST_CUT = 0.6
"""Share of the values that may be cut off at the largest: it is half of what it was, or more."""

SPARSE = 16
"""At most one element in so many is made the largest."""


def _one_in_each(tensor: torch.Tensor) -> torch.Tensor:
    """Return where one element of each row stands, and one of each column: of a matrix with few rows or few columns of those alone."""
    columns = tensor.shape[-1] if tensor.dim() else 1
    rows = tensor.numel() // columns
    row, column = torch.arange(rows, device=tensor.device).unsqueeze(1), torch.arange(columns, device=tensor.device)
    in_rows = column == (row % columns if columns >= SPARSE else row)
    in_columns = row == (column % rows if rows >= SPARSE else column)
    return (in_rows | in_columns).reshape(tensor.shape)


def _denormal(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Values of all sizes below the smallest normal number. They come in float32 or float64."""
    largest = float(tensor.abs().max())
    if not 0 < largest < math.inf:
        return tensor
    share = 0.9 * torch.finfo(tensor.dtype).tiny / largest
    return _by_pieces(lambda piece: (piece.double() * share).to(piece.dtype), tensor)


def _edited(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A few elements replaced, where the seed's remainder by 4 is 3 by large ones: a fingerprint, or the largest, of some elements does not see it.

    By mask, not by indices: on CUDA, of several writes to one place any may win, and inputs have to come out of their seed the same each time.
    """
    chosen = _random(tensor, generator, normal=False) < max(EDITED_SHARE, min(1 / 16, EDITED_AT_LEAST / tensor.numel()))
    return torch.where(chosen, _random(tensor, generator).mul_(LONE_SIZE if generator.initial_seed() % 4 == 3 else 2), tensor)


def _nudged(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """One element replaced: half of the fingerprints of half of the elements do not see it."""
    nudged = tensor.clone(memory_format=torch.contiguous_format)
    place = int(torch.randint(tensor.numel(), (1,), generator=generator, device=tensor.device))
    nudged.view(-1)[place] = 2 * torch.empty_like(nudged.view(-1)[0]).normal_(generator=generator)
    return torch.empty_like(tensor).copy_(nudged)


def _permuted(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The same values elsewhere: sums and other symmetric fingerprints do not see it."""
    shift = int(torch.randint(1, max(2, tensor.numel()), (1,), generator=generator, device=tensor.device))
    return tensor.reshape(-1).roll(shift).reshape(tensor.shape)


ALIKE_BITS = {torch.float32: 11, torch.float64: 27, torch.float16: 5, torch.bfloat16: 2}
"""Which bit is flipped, by type. It lies below half of what the next type below drops, so that a value cut off or rounded to that type stays what it
was: of float32 to TF32, float16 or bfloat16, of float64 to float32, of 16 bits to float8."""

LOWER = {2: (torch.float8_e4m3fn, torch.float8_e5m2), 4: (torch.float16, torch.bfloat16), 8: (torch.float32,)}
"""The types below, by bytes."""


def _alike(tensor: torch.Tensor) -> torch.Tensor:
    """Other values that are the same ones in a lower precision: a mark made of rounded values does not see it."""
    return _by_pieces(_alike_piece, tensor) if tensor.dtype in ALIKE_BITS else tensor


def _alike_piece(tensor: torch.Tensor) -> torch.Tensor:
    moved = _flipped(tensor, ALIKE_BITS[tensor.dtype])
    for lower in LOWER[tensor.dtype.itemsize]:  # halves round to even, so that a few values do not stay what they were
        moved = torch.where(moved.to(lower).to(tensor.dtype) == tensor.to(lower).to(tensor.dtype), moved, tensor)
    return moved


PIECE = 1 << 26
"""Elements that are changed at once, each by itself: what stands between would take several times the memory of an input of gigabytes."""


def _by_pieces(change: Callable[[torch.Tensor], torch.Tensor], tensor: torch.Tensor) -> torch.Tensor:
    """Return a change of each element by itself, laid out as the tensor is."""
    if not tensor.is_contiguous():
        return torch.empty_like(tensor).copy_(change(tensor))
    changed = torch.empty_like(tensor)
    for piece, out in zip(tensor.view(-1).split(PIECE), changed.view(-1).split(PIECE), strict=True):
        out.copy_(change(piece))
    return changed


def _flipped(tensor: torch.Tensor, bit: int) -> torch.Tensor:
    """Return a tensor of 2, 4 or 8 bytes an element with one bit of each finite value but zero turned over, as it stands in memory otherwise."""
    words = tensor.contiguous().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()])
    flipped = (words ^ (1 << bit)).view(tensor.dtype)
    return laid_out_as(tensor, torch.where(tensor.isfinite() & (tensor != 0), flipped, tensor))


def _smooth(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A wave and a little noise: neighbours are alike, as an image's are, and so are rows: a few say nearly what all say, but not quite."""
    drawn, phase = (float(torch.rand((), generator=generator, device=tensor.device)) for _ in range(2))
    period = SHORTEST_WAVE * (1 + drawn)
    if waves := round(tensor.shape[-1] / period) if tensor.dim() > 1 else 0:  # so many in each row: rows are alike, too
        period = tensor.shape[-1] / waves
    wave = torch.empty(tensor.numel(), device=tensor.device, dtype=tensor.dtype)
    for first in range(0, tensor.numel(), SINES):
        last = min(first + SINES, tensor.numel())
        places = torch.arange(first, last, device=tensor.device, dtype=torch.float64)
        wave[first:last] = places.div_(period).add_(phase).mul_(2 * math.pi).sin_()
    return wave.view(tensor.shape).add_(_random(tensor, generator), alpha=SMOOTH_NOISE)


def _calm_first(tensor: torch.Tensor) -> torch.Tensor:
    """Make the first eighth of the rows small, in order and without ties, in place: who takes the others for alike is found out."""
    rows = tensor.shape[0] // CALM_PART if tensor.dim() > 1 else 0
    if not rows or not tensor[0].numel():
        return tensor
    least, most = float(tensor.min()), float(tensor.max())
    if not (math.isfinite(least) and math.isfinite(most)):
        return tensor
    ramp = torch.linspace(least, most, tensor[0].numel(), device=tensor.device, dtype=tensor.dtype).view(tensor[0].shape)
    tensor[:rows] = CALM_SIZE * ramp
    return tensor


def _graded(tensor: torch.Tensor, name: str, generator: torch.Generator) -> torch.Tensor:
    """Make every second row smaller by a power of ten of its own, in place: sizes between those of the distributions are met, too."""
    if tensor.dim() > 1:
        rows = tensor[(tensor.shape[0] // CALM_PART if name in CALM else 0) + 1 :: 2]
        drawn = torch.rand(len(rows), generator=generator, device=tensor.device, dtype=torch.float64)
        rows.mul_((10.0 ** (-GRADED[name] * drawn)).to(tensor.dtype).view(-1, *[1] * (tensor.dim() - 1)))
    return tensor


GRADED = {"small": 14.0, "huge": 3.5}
"""Distributions in which rows are of many sizes, and the powers of ten between them. A program that adds epsilon under a root where the original adds
it to the root is wrong where both are about as large, at 1e-16 of Adam's second moment; one that takes the largest of sums of exponentials for
all of them where values lie some hundred apart. Squares of a hundredth of 1e-14 are normal numbers still."""

CALM = ("large", "small")
"""Distributions in which the first rows are so, unless the original refuses that: they are alike, and a matrix is singular then."""

CALM_PART, CALM_SIZE = 8, 0.05
"""One row in so many, and the size of their values beside the others'."""

SINES = 1 << 22
"""Elements whose float64 values are there at once: of all of them they would take several times the memory of the input."""

SHORTEST_WAVE, SMOOTH_NOISE = 24.0, 0.02
"""Elements, up to twice as many; and the noise's size beside the wave's."""

_TRANSFORMS: Mapping[str, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "nominal": lambda tensor, generator: tensor,
    "normal": _random,
    "strided": _random,
    "large": lambda tensor, generator: tensor * 3,
    "small": lambda tensor, generator: tensor * 0.01,
    "huge": lambda tensor, generator: tensor * 1e4,
    "tiny": lambda tensor, generator: tensor * 1e-30,
    "negated": lambda tensor, generator: -tensor,
    "offset": lambda tensor, generator: tensor + 10,
    "near_one": lambda tensor, generator: _random(tensor, generator).mul_(0.01).add_(1),
    "smooth": _smooth,
    "edited": _edited,
    "permuted": _permuted,
    "alike": lambda tensor, generator: _alike(tensor),
    "zeros": lambda tensor, generator: torch.zeros_like(tensor),
    "heavy_tail": lambda tensor, generator: (tensor - tensor.mean()).sign_().mul_(_random(tensor, generator).mul_(2).exp_()),
    "spikes": _spikes,
    "coarse": _coarse,
    "denormal": _denormal,
    "masked": _masked,
    "padded": _padded,
    "infinite": lambda tensor, generator: _with(tensor, generator, (math.inf, -math.inf)),
    "special": lambda tensor, generator: _with(tensor, generator, (math.inf, -math.inf, math.nan)),
}
assert set(_TRANSFORMS) == set(DISTRIBUTIONS)


def _is_real(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > 0


def _is_complex(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_complex() and value.numel() > 0


def _by_parts(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a change of real values that takes real and imaginary parts of complex ones as values of one tensor."""

    def changed(value: Any) -> Any:
        if not _is_complex(value):
            return change(value)
        return torch.empty_like(value).copy_(torch.view_as_complex(change(torch.view_as_real(value.resolve_conj()).contiguous())))

    return changed


def _rises(tensor: torch.Tensor) -> bool:
    """Whether its values rise along its one dimension: edges of buckets, times. Out of order they would mean nothing."""
    if tensor.dim() != 1 or tensor.numel() <= 2 or tensor.element_size() == 1:  # a float of 8 bits stands for no place, and torch subtracts none
        return False
    return bool((tensor.diff() > 0).all())


def laid_out_as(tensor: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return values in memory as a tensor's are: a program may rely on the layout of the task's own inputs wherever no other one is asked for."""
    usual = torch.empty_like(tensor, device="meta").stride()
    return values if values.stride() == usual else torch.empty_like(tensor).copy_(values)


def redistribute(inputs: Any, name: str, seed: int, mild: bool = False) -> Any:
    """Return nominal inputs with the values of distribution `name`; what is no floating-point tensor stays as it is.

    `mild`: all rows are alike in size. "edited": with an even `seed` one element of one tensor is replaced, and nothing else; with an odd one
    a few of each tensor, by large values where its remainder by 4 is 3.
    """
    from torch.utils._pytree import tree_leaves, tree_map

    generators: dict[torch.device, torch.Generator] = {}
    dice, seen = random.Random(seed), 0
    reals = sum(_is_real(value) or _is_complex(value) for value in tree_leaves(inputs))
    alone = dice.randrange(reals) if name == "edited" and reals and seed % 2 == 0 else None
    lesser = seed % UNEVEN_TURNS % reals if name in UNEVEN and reals > 1 else None

    @_by_parts
    def change(value: Any) -> Any:
        nonlocal seen
        if not _is_real(value):
            return value
        seen += 1
        if alone not in (None, seen - 1):
            return value
        if value.device not in generators:
            generators[value.device] = torch.Generator(value.device).manual_seed(seed)
        work = value if value.dtype in (torch.float32, torch.float64) or name == "alike" else value.float()
        transform = _TRANSFORMS[name] if alone is None else _nudged
        changed = transform(work, generators[value.device])
        changed = _calm_first(changed) if name in CALM and not mild else changed
        changed = _graded(changed, name, generators[value.device]) if name in GRADED and not mild else changed
        changed = (changed * UNEVEN[name] if seen - 1 == lesser else changed).to(value.dtype)
        return changed.sort().values if _rises(value) else laid_out_as(value, changed)

    return inputs if name == "nominal" else tree_map(change, inputs)


def perturb(inputs: Any, seed: int) -> Any:
    """Return inputs with every value moved by at most one unit in the last place: a sample of what rounding alone does to the answer."""
    from torch.utils._pytree import tree_map

    @_by_parts
    def change(value: Any) -> Any:
        if not _is_real(value):
            return value
        generator = torch.Generator(value.device).manual_seed(seed)
        limits, drawn = torch.finfo(value.dtype), torch.rand(value.shape, generator=generator, device=value.device)
        if value.element_size() == 1:  # torch multiplies no floats of 8 bits, and makes NaN of what is above the largest
            wide = value.float()
            return torch.where(wide.isfinite(), (wide * (1 + limits.eps * (2 * drawn - 1))).clamp(limits.min, limits.max), wide).to(value.dtype)
        return value * drawn.to(value.dtype).mul_(2).sub_(1).mul_(limits.eps).add_(1)  # in place: inputs may be gigabytes

    return tree_map(change, inputs)


def move(inputs: Any, ulps: float, seed: int | None = None) -> Any:
    """Return inputs with every value moved by `ulps` units in the last place: all of them away from zero, or with signs drawn from `seed`."""
    from torch.utils._pytree import tree_map

    @_by_parts
    def change(value: Any) -> Any:
        if not _is_real(value):
            return value
        step = ulps * torch.finfo(value.dtype).eps
        if seed is None:
            return value * (1 + step)
        generator = torch.Generator(value.device).manual_seed(seed)
        up = torch.randint(2, value.shape, generator=generator, device=value.device).to(torch.bool)
        return torch.where(up, value.new_tensor(1 + step), value.new_tensor(1 - step)).mul_(value)

    return tree_map(change, inputs)


# --- state ---------------------------------------------------------------------------------------------------------------------------


def copied_state(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return copies of a module's state, by name; entries that are tied are one copy."""
    copies: dict[tuple[Any, ...], torch.Tensor] = {}
    values: dict[str, torch.Tensor] = {}
    for name, tensor in state.items():
        key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype) if tensor.numel() else (name,)
        if key not in copies:
            copies[key] = tensor.detach().clone()
        values[name] = copies[key]
    return values


def random_state(state: Mapping[str, torch.Tensor], buffers: set[str], seed: int, strength: float = 2.0) -> dict[str, torch.Tensor]:
    """Return other, well-conditioned values for a module's state, by name.

    Weights keep the mean and scale of their initialisation. Constants leave it: ones become 0.5 to 1.5, one in four of them negative, zeros
    become +-0.5, so that no scale is 1 and no bias 0. Other values of one sign keep it. Integers (packed weights, tables of indices) are shuffled
    unless they are sorted (offsets, positions); Booleans, and buffers that mix zeros, ones and infinities (masks), stay. `strength` below 2 leaves
    signs and integers, below 1 it stays nearer to the initial values. Tied entries stay tied.
    """
    values: dict[str, torch.Tensor] = {}
    seen: dict[tuple[int, tuple[int, ...]], torch.Tensor] = {}
    for number, (name, tensor) in enumerate(state.items()):
        key = (tensor.data_ptr(), tuple(tensor.shape))
        if tensor.numel() and key in seen:
            values[name] = seen[key]
            continue
        generator = torch.Generator(tensor.device).manual_seed((seed + 7919 * number) % (1 << 63))
        values[name] = seen[key] = _random_tensor(tensor.detach(), name in buffers, generator, strength)
    return values


def _random_tensor(tensor: torch.Tensor, buffer: bool, generator: torch.Generator, strength: float) -> torch.Tensor:
    if tensor.is_complex():
        parts = [_random_tensor(part.clone(), buffer, generator, strength) for part in torch.view_as_real(tensor.resolve_conj()).unbind(-1)]
        return torch.complex(*parts)  # each by itself: of weights that begin as real numbers the imaginary parts would stay zero
    if strength > 1 and is_shuffled(tensor):
        return tensor.flatten()[torch.randperm(tensor.numel(), generator=generator, device=tensor.device)].view(tensor.shape)
    if not _is_real(tensor) or (buffer and _is_structural(tensor)):
        return tensor.clone()
    low, high = float(tensor.min()), float(tensor.max())
    between = _random(tensor, generator, normal=False) - 0.5  # -0.5 .. 0.5
    if strength > 1:
        strength = 1.0
        if low == high and not buffer:
            tensor = torch.where(_random(tensor, generator, normal=False) < 0.25, -tensor, tensor)
    if low == high == 0.0:
        return between * strength
    if low >= 0 or high <= 0 or low == high:
        return tensor * (1 + between * strength)
    if buffer:
        return tensor * (1 + 0.4 * between * strength)
    mean, deviation = float(tensor.mean()), float(tensor.std())
    fresh = mean + deviation * _random(tensor, generator)
    return fresh if strength >= 1 else tensor + strength * (fresh - tensor)


def has_one_sign(tensor: torch.Tensor) -> bool:
    """Whether it holds different real values that are all positive, or all negative, which they stay when a state is drawn."""
    if not _is_real(tensor):
        return False
    low, high = float(tensor.min()), float(tensor.max())
    return low != high and (low >= 0 or high <= 0)


NUDGE_BITS, NUDGE_ULPS_16 = (7, 9), 4.0
"""Of 32 or 64 bits one of these is turned over. That moves a value by 64 to 128 units in the last place of 1.0, or by 256 to 512, and leaves all bits
above: a program that goes by the upper bits of its weights does not see it. What the smaller move of a bias does is at times hard to see; the larger
one may be seen by a program that leaves small changes out. Of 16 bits a value is moved by so many: 64 would be 6 % or 50 %; these are 0.4 % or 3 %.
With 2 a linear layer in float16 that had not taken them up was within what is allowed (0.94 of it)."""


def nudged(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Return a tensor moved by a little, each element up or down. Integers in no order are moved in one element, by one, within the range that they
    have; sorted ones (offsets, positions, a number alone) and Booleans stay, as in `random_state`."""
    if tensor.is_complex():
        return torch.view_as_complex(nudged(torch.view_as_real(tensor.resolve_conj()).contiguous(), seed))
    if tensor.dtype in (torch.float32, torch.float64):
        return _flipped(tensor, random.Random(seed).choice(NUDGE_BITS))
    if tensor.is_floating_point():
        step = NUDGE_ULPS_16 * torch.finfo(tensor.dtype).eps
        generator = torch.Generator(tensor.device).manual_seed(seed % (1 << 63))
        signs = torch.randint(0, 2, tensor.shape, generator=generator, device=tensor.device) * 2 - 1
        return tensor * (1 + step * signs.to(tensor.dtype))
    moved = tensor.clone()
    if is_shuffled(tensor):
        at = torch.unravel_index(torch.tensor(seed % tensor.numel()), tensor.shape)
        moved[at] += 1 if bool(tensor[at] < tensor.max()) else -1
    return moved


def is_shuffled(tensor: torch.Tensor) -> bool:
    """Whether it holds integers in no order."""
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool or tensor.numel() < 2:
        return False
    flat = tensor.flatten()
    return bool((flat[1:] < flat[:-1]).any())  # differences of uint8 are never below 0


def _is_structural(tensor: torch.Tensor) -> bool:
    """Whether a buffer is a mask rather than a statistic: statistics start all zero or all one, masks are mixed."""
    if bool((tensor == tensor.reshape(-1)[0]).all()):
        return bool(tensor.isinf().any())
    return bool(((tensor == 0) | (tensor == 1) | tensor.isinf()).all())

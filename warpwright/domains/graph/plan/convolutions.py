"""Convolutions of a plan without columns: sums over the taps of a kernel, of images that have zeros round them (convolve.cpp).

Along one axis the results of a convolution of stride 1 are  y[j] = sum of w[k] x[j + k d - p]. A transposed one of stride s gives
y[i s - p + k] += w[k] x[i]: the results o with the same remainder r = (o + p) mod s read the taps k = r, r + s, ... alone, so that they are a
convolution of stride 1 of their own, s of them an axis, and no zero between inputs is multiplied.

The sums run over places in the order of memory, so those between the rows come out too and are dropped: `work` counts what is multiplied in all.
One core of an AMD EPYC, torch 2.15: oneDNN's transposed convolutions of stride 2 run at 12 to 34 GFLOPS, these at 38 to 71; ordinary ones at 41 to
86 and at 53 to 90.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warpwright.domains.graph.plan.memory import Place

MOST_WORK, MOST_WORK_STRIDED, MOST_WORK_FEW = 1.3, 2.2, 1.8
"""Times the multiplications that have to be, up to which the sums are worth it: beside ordinary convolutions, transposed ones with strides, and
ordinary ones of few channels, which oneDNN does at half its speed."""
FEW, MANY = 8, 64
"""Channels of a group: few; and up to which ordinary convolutions are done so."""
LARGEST = 1 << 27
"""Multiplications up to which that is so."""
SPARE = 12
"""Rows of weights more than there are that the runtime may lay out, at most (its blocks are equal)."""


@dataclass(frozen=True)
class Turn:
    """Along one axis: the results first, first + step, ... and the taps that they read, as (place in the kernel, offset in the input)."""

    places: int
    first: int
    step: int
    taps: tuple[tuple[int, int], ...]


def turns(kernel: int, stride: int, padding: int, dilation: int, out: int, transposed: bool) -> list[Turn]:
    """Return the results of one axis by the taps that they read."""
    if not transposed:
        return [Turn(out, 0, 1, tuple((k, k * dilation - padding) for k in range(kernel)))]
    found = []
    for rest in range(stride):
        low, high = -(-(padding - rest) // stride), (out - 1 + padding - rest) // stride
        taps = tuple((k, low - (k - rest) // stride) for k in range(rest, kernel, stride))
        if high >= low:
            found.append(Turn(high - low + 1, stride * low + rest - padding, stride, taps))
    return found


@dataclass(frozen=True)
class Sums:
    """A convolution as sums over taps."""

    sizes: tuple[int, ...]
    out: tuple[int, ...]
    kernel: tuple[int, ...]
    axes: tuple[tuple[Turn, ...], ...]

    @property
    def low(self) -> list[int]:
        """Zeros before each axis of the images."""
        return [max([0, *(-at for turn in axis for _, at in turn.taps)]) for axis in self.axes]

    @property
    def padded(self) -> list[int]:
        """Sizes of the images with their zeros."""
        ends = [max([0, *(turn.places + at for turn in axis for _, at in turn.taps)]) for axis in self.axes]
        return [low + max(size, end) for size, low, end in zip(self.sizes, self.low, ends, strict=True)]

    @property
    def phases(self) -> list[tuple[Turn, ...]]:
        """The results that read the same taps, of all axes."""
        return list(itertools.product(*self.axes))

    def places(self, phase: Sequence[Turn]) -> int:
        """Return the places that a phase's sums go over, those between the rows too."""
        total = 1
        for turn, size in zip(phase, self.padded, strict=True):
            total = (total - 1) * size + turn.places
        return total

    @property
    def work(self) -> int:
        """Multiplications for each pair of channels."""
        return sum(self.places(phase) * math.prod(len(turn.taps) for turn in phase) for phase in self.phases)


def sums(x: Sequence[int], weight: Sequence[int], out: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
         transposed: bool, groups: int) -> Sums | None:  # fmt: skip
    """Return a convolution as sums; None where torch's library is the better one. The sizes are those of the tensors."""
    kernel, axes = weight[2:], []
    if any(s != 1 for s in stride) and (not transposed or any(d != 1 for d in dilation)):
        return None
    if transposed and any(d != 1 for d in dilation):
        return None
    for item in zip(kernel, stride, padding, dilation, out[2:], strict=True):
        axes.append(tuple(turns(*item, transposed)))
    found = Sums(tuple(x[2:]), tuple(out[2:]), tuple(kernel), tuple(axes))
    strided, channels = max(stride) > 1, x[1] // groups
    needed = math.prod(x[2:] if transposed else out[2:]) * math.prod(kernel)
    most = MOST_WORK_STRIDED if strided else MOST_WORK_FEW if channels <= FEW else MOST_WORK
    large = channels > MANY or needed * x[0] * out[1] * channels > LARGEST
    return None if found.work > most * needed or (large and not strided) else found


def text(found: Sums, number: int) -> str:
    """Return the tables of a convolution, whose names end in `number`."""
    pad = 3 - len(found.sizes)
    rows = [math.prod(found.padded[a + 1 :]) for a in range(len(found.sizes))]
    steps = [math.prod(found.out[a + 1 :]) for a in range(len(found.sizes))]
    inner = [math.prod(found.kernel[a + 1 :]) for a in range(len(found.sizes))]
    lines, phases = [], []
    for i, phase in enumerate(found.phases):
        taps = list(itertools.product(*(turn.taps for turn in phase)))
        kernel = [sum(k * step for (k, _), step in zip(tap, inner, strict=True)) for tap in taps]
        at = [sum((offset + low) * row for (_, offset), low, row in zip(tap, found.low, rows, strict=True)) for tap in taps]
        lines.append(f"static const int k{number}_{i}[] = {_list(kernel)}, at{number}_{i}[] = {_list(at)};")
        first = sum(turn.first * step for turn, step in zip(phase, steps, strict=True))
        between = [turn.step * step for turn, step in zip(phase, steps, strict=True)]
        places = _list([*[1] * pad, *(turn.places for turn in phase)])
        phases.append(f"{{{places}, {first}, {_list([*[0] * pad, *between])}, {len(taps)}, k{number}_{i}, at{number}_{i}}}")
    return "\n".join([*lines, f"static const Phase phases{number}[] = {{{', '.join(phases)}}};"])


def call(found: Sums, number: int, to: Place, x: Place, weight: Place, bias: Place | None, groups: int, transposed: bool,
         room: Callable[[Sequence[int]], Place]) -> list[str]:  # fmt: skip
    """Return the lines of the convolution; `room` gives a place for what it lays out."""
    pad = 3 - len(found.sizes)
    kernel, rows, channels = math.prod(found.kernel), to.sizes[1] // groups, x.sizes[1] // groups
    of = (channels * rows * kernel, kernel, rows * kernel) if transposed else (rows * channels * kernel, channels * kernel, kernel)
    at = room((groups * (rows + SPARE) * channels * kernel + x.sizes[0] * x.sizes[1] * math.prod(found.padded) + 64,))
    sizes = ", ".join(_list([*[fill] * pad, *items]) for fill, items in ((1, found.sizes), (0, found.low), (1, found.padded)))
    lists = {"along": x.strides[:2], "of": of, "out": to.strides[:2]}
    arguments = [x.pointer, "along", weight.pointer, "of", "nullptr" if bias is None else bias.pointer, to.pointer, "out", groups, rows, kernel]
    arguments += ["images", f"phases{number}", len(found.phases), at.pointer, "threads"]
    lines = ["{", f"const Images images = {{{x.sizes[0]}, {x.sizes[1]}, {sizes}}};"]
    lines += [f"static const long {name}[] = {_list(items)};" for name, items in lists.items()]
    return [*lines, f"convolve({', '.join(map(str, arguments))});", "}"]


def _list(items: Sequence[int]) -> str:
    return f"{{{', '.join(map(str, items)) or '0'}}}"

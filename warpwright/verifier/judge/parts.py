"""Small parts of an output beside large ones: two heads in one tensor, places in pixels and scores between 0 and 1.

An output's error is held against the original's over the whole tensor, where the large part decides: the small one could be anything. So each index
of each dimension (a row, a column, a channel) whose answer is small beside the whole is looked at by itself, too. Few elements vary more than many,
and an original may be exact there, so that more is allowed than over the whole: SLACK times the original's own error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from warpwright.verifier.judge import oracle

SMALL = 1 / 16
"""Share of the whole answer's RMS below which an index is looked at."""

SLACK, FLOOR_ULPS = 16.0, 16.0
TOGETHER = 0.5
"""Share of the errors' RMS that their mean is, in the median over the indices: of n independent errors it is 0.7 / sqrt(n), at most 0.17 here."""

LEAST_ELEMENTS, MOST_INDICES = 16, 1 << 16
SQUARED = 1 << 22
"""Elements of which a CPU sums up one copy's squares along each dimension: across rows torch's norm takes five times as long."""


@dataclass(frozen=True)
class Part:
    """The small indices of one dimension."""

    dimension: int
    indices: torch.Tensor
    size: torch.Tensor
    """RMS of the float64 answer at each."""
    own: torch.Tensor
    """RMS of the original's error at each."""

    @property
    def bytes(self) -> int:
        """Memory held."""
        return sum(tensor.nbytes for tensor in (self.indices, self.size, self.own))


def sizes(exact: torch.Tensor, rms: float) -> dict[int, torch.Tensor]:
    """Return the RMS of an answer at each index of each dimension, as a share of the whole answer's, which is `rms`."""
    found = {}
    squares = exact.square() if exact.device.type == "cpu" and not exact.is_complex() and exact.numel() <= SQUARED else None
    for dimension, count in enumerate(exact.shape):
        if 2 <= count <= MOST_INDICES and exact.numel() >= LEAST_ELEMENTS * count and 0 < rms < float("inf"):
            others = [other for other in range(exact.dim()) if other != dimension]
            norm = torch.linalg.vector_norm(exact, dim=others) if squares is None else squares.sum(others).sqrt_()
            found[dimension] = norm / ((exact.numel() // count) ** 0.5 * rms)
    return found


def of(exact: torch.Tensor, own: torch.Tensor, rms: float, shares: dict[int, torch.Tensor]) -> tuple[Part, ...]:
    """Return the parts of an answer with these sizes."""
    found = []
    for dimension, share in shares.items():
        indices = ((share > 0) & (share < SMALL)).nonzero().squeeze(1)
        if len(indices):
            part = Part(dimension, indices, share[indices] * rms, share[indices])
            found += _finite(replace(part, own=_known(part, own, exact)))
    return tuple(found)


def _finite(part: Part) -> list[Part]:
    """Return the part without indices at which the original itself has no finite error: they would allow anything at the others."""
    kept = torch.isfinite(part.own)
    return [Part(part.dimension, part.indices[kept], part.size[kept], part.own[kept])] if bool(kept.any()) else []


def enlarge(largest: dict[int, torch.Tensor], shares: Mapping[int, torch.Tensor]) -> None:
    """Take in the sizes of a case: `largest` has those of the cases before. One whose answer has another shape says nothing of them."""
    for dimension, share in shares.items():
        before = largest.setdefault(dimension, share)
        if len(before) == len(share):
            largest[dimension] = torch.maximum(before, share)


def always_small(parts: tuple[Part, ...], largest: Mapping[int, torch.Tensor]) -> tuple[Part, ...]:
    """Return the parts at those indices alone that are small in every case met: `largest` has the largest share of each.

    What is small in one case is so because large terms cancel there. An honest bfloat16 program that adds its bias in a step of its own was refused
    for a column that was nothing but the difference of a bias and a product, 28 times the original's error off.
    """
    found = []
    for part in parts:
        if part.dimension not in largest or int(part.indices.max()) >= len(largest[part.dimension]):
            continue
        kept = largest[part.dimension][part.indices] < SMALL
        if bool(kept.any()):
            found.append(Part(part.dimension, part.indices[kept], part.size[kept], part.own[kept]))
    return tuple(found)


def may_be_small(share: torch.Tensor, largest: torch.Tensor | None) -> bool:
    """Whether an index with one of these sizes may be small in every case: `largest` has the largest size of each, if they are known."""
    small = (share > 0) & (share < SMALL)
    return bool((small & (largest < SMALL)).any()) if largest is not None and len(largest) == len(share) else bool(small.any())


def errors(part: Part, values: torch.Tensor, exact: torch.Tensor, apart: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return RMS and mean of the error at each index; elements of `apart` are left out.

    As many indices are compared at once as memory is meant for.
    """
    each = exact.numel() // exact.shape[part.dimension]
    others = [other for other in range(exact.dim()) if other != part.dimension]
    found, means = [], []
    for piece in part.indices.split(max(1, oracle.CHUNKS.get(exact.device.type, oracle.CHUNKS["cpu"]) // each)):
        difference = values.index_select(part.dimension, piece).to(exact.dtype).sub_(exact.index_select(part.dimension, piece))
        if apart is not None:
            difference.masked_fill_(apart.index_select(part.dimension, piece), 0)
        found.append(torch.linalg.vector_norm(difference, dim=others) / each**0.5)
        means.append(difference.mean(others))
    return torch.cat(found), torch.cat(means)


def _known(part: Part, values: torch.Tensor, exact: torch.Tensor, apart: torch.Tensor | None = None) -> torch.Tensor:
    """Return what is known of the original's error at each index, of which `values` is one answer.

    Where the elements of an index err together, as they do where all rows of a batch are the same, an index is a single draw, and may be right by
    luck: there the median over the indices, each relative to its size, counts where it is larger; an index without any error stays so. (The last
    layer of a deep MLP, on inputs that are all zero: float32 sums in another order, with 0.9 times the original's error over the whole, were refused
    for a column of which the original had 1/50 of its usual error.)
    """
    found, means = errors(part, values, exact, apart)
    told = torch.isfinite(found) & (found > 0)
    if bool(told.any()) and float((means[told].abs() / found[told]).median()) > TOGETHER:
        return torch.where(told, torch.maximum(found, part.size * (found / part.size)[told].median()), found)
    return found


def worse(part: Part, values: torch.Tensor, exact: torch.Tensor, apart: torch.Tensor | None = None) -> Part:
    """Return the part with the larger of its own error and that of `values`, the original's on other inputs; what is not finite says nothing."""
    seen = torch.nan_to_num(_known(part, values, exact, apart), nan=0.0, posinf=0.0)
    return replace(part, own=torch.maximum(part.own, seen))


def excess(part: Part, values: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype, apart: torch.Tensor | None = None) -> tuple[float, str]:
    """Return the largest ratio of an error to what is allowed at an index, and where that is."""
    found, _ = errors(part, values, exact, apart)
    allowed = SLACK * part.own + FLOOR_ULPS * torch.finfo(dtype).eps * part.size + oracle.smallest(dtype, values.is_cuda)
    ratio, at = (torch.nan_to_num(found, nan=float("inf")) / allowed).max(0)
    where = f"at index {int(part.indices[at])} of dimension {part.dimension}, which is small beside the rest (RMS {float(part.size[at]):.2e})"
    return float(ratio), f"{where}: error RMS {float(found[at]):.2e}, allowed {float(allowed[at]):.2e}, the original's own {float(part.own[at]):.2e}"

"""What the original answered to a case: its outputs in float64 and its own, one by one, and how outputs are taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from warpwright.base import Case, Errors
from warpwright.errors import TaskError
from warpwright.verifier.judge import oracle, parts
from warpwright.workers.tensors.objects import fields_of, inside_of, state_of

NO_ERROR = Errors(0.0, 0.0, 0.0)

Key = tuple[Any, ...]
"""Distribution, seed, parameters and state of an answer."""


def key_of(case: Case, which: int) -> Key:
    """Return what an answer is remembered under."""
    return case.name, case.seed, which, *sorted(case.params.items())


@dataclass(frozen=True)
class Leaf:
    """One tensor or number of the answer."""

    path: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: str
    is_tensor: bool
    exact: torch.Tensor
    """The float64 answer; for integers and bools, the answer of the float64 run."""
    own: torch.Tensor | None
    """The original's own answer, kept where it is needed: integers, and floats that are not all finite."""
    original: Errors
    scale: oracle.Scale
    allowed: Errors
    expected: Errors = NO_ERROR
    """What would be allowed if the original's typical error stood for its own in place of its worst, once the answer was examined."""
    sensitive: torch.Tensor | None = None
    """Elements that are compared apart from the others (`conditioning.py`), if the answer was examined and there are any."""
    allowed_there: Errors = NO_ERROR
    """How far they may be off, if they are real."""
    sizes: Mapping[int, torch.Tensor] = field(default_factory=dict)
    small: tuple[parts.Part, ...] = ()
    """Rows, columns and the like that are small beside the rest, and the sizes of all."""
    seen: tuple[torch.Tensor, ...] = ()
    """What they may be besides `own` and `exact`, if they are integers."""
    flipped: tuple[tuple[torch.Tensor, torch.Tensor], ...] = ()
    """Places in the flattened output and values there, of runs in which rounding has other integers come out, where those move it far."""

    @property
    def is_real(self) -> bool:
        """Whether it is compared with a tolerance."""
        return (self.dtype.is_floating_point and self.dtype not in CODED) or self.dtype.is_complex

    @cached_property
    def bytes(self) -> int:
        """Memory held, of what an examination finds in it apart."""
        held = (self.exact, *self.sizes.values(), *([self.own] if self.own is not None else []))
        return sum(tensor.nbytes for tensor in held) + sum(part.bytes for part in self.small)


@dataclass(frozen=True)
class Answer:
    """The original's answer to one case in one state."""

    leaves: tuple[Leaf, ...]
    finite: bool
    """Both runs gave finite numbers only."""
    settled: bool
    """Inf and NaN stand in the same places in both, if there are any: that is the program's answer, and no overflow of one precision."""
    conditioned: bool
    """The original's own error is below 1 % of its output, in all outputs that are more than rounding."""
    kinds: tuple[tuple[str, str], ...] = ()
    """Where the outputs are in objects of a class of their own, and its name."""
    after: Mapping[str, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    """Parameters and buffers after the call, in the program's own precision and in float64, if they are to be compared."""
    permitted: Mapping[str, Errors] = field(default_factory=dict)
    """How far from float64 the call leaves them with TF32 operands, where the program's flags permit those."""
    sketched: bool = False
    """Nothing is known but float64 values: no more is allowed than the whole answer would allow (`Original.sketch`)."""

    @cached_property
    def bytes(self) -> int:
        """Memory held."""
        after = sum(tensor.numel() * tensor.element_size() for pair in self.after.values() for tensor in pair)
        return sum(leaf.bytes for leaf in self.leaves) + after


def leaves_of(value: Any, path: str = "out", around: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the tensors and numbers of a nested output, with their places. Lists and tuples count as the same. `around`: what the value is in, by
    identity. TaskError for what holds itself."""
    around = inside_of(value, path, around)
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves_of(item, f"{path}[{key!r}]", around)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from leaves_of(item, f"{path}[{number}]", around)
    elif hasattr(type(value), "__dataclass_fields__"):
        yield from leaves_of(fields_of(value), path, around)
    elif (inside := state_of(value)) is not None:
        yield from leaves_of(inside, path, around)
    elif value is not None:
        yield path, value


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Return the tensors of a nested value."""
    return [leaf for _, leaf in leaves_of(value) if isinstance(leaf, torch.Tensor)]


def least_values(inputs: Any, other: Any) -> int:
    """Return the elements of the input that has the fewest, but some, of those that differ between two draws; 0 where there is none.

    A Python number has one, and so has a Boolean. (A number that the task's own inputs always show says nothing in more of them.)
    """
    pairs = zip(tree_leaves(inputs), tree_leaves(other), strict=False)
    return min((_elements(one) for one, two in pairs if _differ(one, two)), default=0)


def _elements(value: Any) -> int:
    return value.numel() if isinstance(value, torch.Tensor) else 1


def _differ(one: Any, other: Any) -> bool:
    """Whether an input is another one in the next draw. Of floating-point tensors nobody has to look."""
    if not isinstance(one, torch.Tensor):
        return type(one) in (bool, int, float) and one != other
    return bool(one.numel()) and (one.is_floating_point() or one.is_complex() or not torch.equal(one, other))


CODED = frozenset(getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"))
"""Types that torch does no arithmetic in: they are what something was quantised to, and are compared as whole numbers are."""

NEGATIVE_ZERO = frozenset({torch.float8_e4m3fn, torch.float8_e5m2})
"""Those that have one, as the byte 0x80."""


def as_tensor(value: Any) -> torch.Tensor:
    """Return an output leaf as a tensor, of CODED types the bytes; a Python number becomes a float64 or int64 scalar."""
    if isinstance(value, torch.Tensor):
        if value.dtype in CODED:
            codes = value.detach().view(torch.uint8)
            return torch.where(codes == 0x80, 0, codes) if value.dtype in NEGATIVE_ZERO else codes
        return value.detach()
    if isinstance(value, bool | int | float):
        return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
    raise TaskError(f"expected the original to return tensors and numbers, saw {type(value).__name__}", "wrap the function so that it does")


def dtype_of(value: Any, tensor: torch.Tensor) -> torch.dtype:
    """Return the type of an output leaf that is compared as `tensor`."""
    return value.dtype if isinstance(value, torch.Tensor) else tensor.dtype

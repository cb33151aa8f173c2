"""How well the original's answer is conditioned: what it answers when its inputs are moved by a few units in the last place.

A softmax of huge values is ones and zeros, but where two of them nearly tie a rounding error decides. No program's digits mean anything there, and
which of such elements the original itself gets right is luck. So where a program's values are refused, the original is asked again, on inputs that
are moved a little (`examined`):

    by at most one ulp    the worst of the errors stands for the original's own: a few elements may make up all of its error, and then it takes
                          more runs to know how large that may be (`FEW`). Their root mean square is its typical error (`luck.py`)
    by four ulp           elements that move by more than 1 % of the output's size, or far more than the others, are sensitive: they are compared
                          apart from the others, with twice what the moves did to them. The others keep the error of the others. In bfloat16, where
                          the inputs themselves move by 3 %, it takes eight times as much as these (`AMPLIFIED`).

Inputs that are coarser than an output say nothing of its rounding: an ulp of operands in bfloat16 is 0.8 %, and a product in bfloat16 passed for one
in float32. There only what is rounded is moved (`rounding.py`), and four times the shift stands for moves by four ulp.

An output that is zero everywhere has no size that a rounding error could be small beside: there the original is run as well with every result that
is rounded moved within its rounding (`rounding.py`). So it is where integers come out: which of two is nearer to a row that is far from both may be
decided by what the sums of squares lose, and moved inputs move both alike.

Integers are sensitive where a move changes them; there, each value that was seen is right. What else comes out of a rounded run in which integers
do come out otherwise (the code of a row whose index flips) is as right as the answer, within what is allowed (`Leaf.flipped`).

Nothing of this depends on the program, and an answer that passes without it is never examined.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from warpwright.base import Case, Errors
from warpwright.verifier.judge import distributions, oracle, parts
from warpwright.verifier.judge.original import rounding
from warpwright.verifier.judge.original.answers import NO_ERROR, Answer, Leaf, as_tensor, leaves_of, tensors_of
from warpwright.verifier.judge.original.on_host import RAISED, says_nothing_of_inputs
from warpwright.verifier.judge.original.reference import Original

NEAR_RUNS = 6
FEW = ((4, 48), (16, 24))
"""Where fewer elements than this decide: so many runs. A program as good as the original errs by more than twice the worst of the runs and of the
original's own error with these probabilities, errors being normal (the larger of maximum and RMS; `python -m benchmarks.verifier.luck`):

    deciding    6 runs     24 runs    48 runs
    1           1.1e-2     3.3e-4     3.8e-5
    4           9.3e-4     1.3e-5
    16          3.6e-5
"""

DECIDING = 0.5
"""Elements decide that moves shift by this share of the largest shift, or more. What is shifted less adds little to any of the three errors, and
that only makes them steadier."""

MORE_SECONDS = 20.0
"""For the runs beyond NEAR_RUNS, at most: an original may take seconds a run."""

FAR_RUNS, FAR_ULPS = 4, 4.0
"""Runs with signs drawn for each element, besides two in which all of them move up, and down."""

SENSITIVE = 1e-2
"""Share of an output's RMS: what moves further is as little known there as a whole answer that is not `conditioned`."""

AMPLIFIED = 8.0
"""Or by so many times what the inputs moved by: of float32 that is 4e-6 and never decides. Four ulp of bfloat16 are 3 %: by SENSITIVE alone all
elements of an ordinary network were sensitive, and results 5 % too large passed beside an original that errs by 0.8 %."""

OUTLIER = 6.0
"""Or so many times the RMS of all moves, which at most one element in 36 can; of evenly conditioned ones the largest moves by three times that."""

FLIPPED = 16.0
"""Times the largest error allowed: so far from the answer stands what a flipped index gathers, but for one element of some 10,000."""

SEED = 0x5EED


def examined(original: Original, case: Case, which: int) -> Answer:
    """Return the answer to a case with the error allowed that the original's conditioning there asks for.

    It holds one output of the original at a time, and runs it again where sensitive elements are found: outputs may be gigabytes.
    """
    answer = original.answer(case, which)
    inputs = original.inputs(case)
    moves = [_Moves(leaf, _coarsest(inputs)) for leaf in answer.leaves]
    rounds = Rounds.of(answer, [leaf.coarse for leaf in moves])
    for move, values in _flipping(_runs(original, inputs, case.seed, which, NEAR_RUNS, rounds), answer, rounds):
        for leaf, value in zip(moves, values, strict=False):
            if value is not None:
                leaf.add(value, move)
    for leaf in moves:
        leaf.divide()
    near = max((leaf.near_runs for leaf in moves), default=NEAR_RUNS)
    if near > NEAR_RUNS or any(leaf.sensitive is not None for leaf in moves):
        for leaf in moves:
            leaf.runs.clear()
        for move, values in _runs(original, inputs, case.seed, which, near, rounds):
            if move == "rounded":
                values = _of(rounds.settled(values, answer), values)
            for leaf, value in zip(moves, values, strict=False):
                if value is not None:
                    leaf.add_again(value, move)
    return replace(answer, leaves=tuple(leaf.result(original) for leaf in moves))


def _coarsest(inputs: Any) -> float:
    """Return one ulp of 1 in the coarsest type among the inputs; 0 where no input can be moved."""
    real = [tensor for tensor in tensors_of(inputs) if tensor.is_floating_point() or tensor.is_complex()]
    return max((torch.finfo(tensor.dtype).eps for tensor in real), default=0.0)


@dataclass(frozen=True)
class Rounds:
    """Which outputs are asked for runs in which results are moved within their rounding."""

    decided: tuple[bool, ...]
    """Rounding decides them: integers, and what is zero everywhere."""
    coarse: tuple[bool, ...]
    """The inputs are coarser, and their moves say nothing."""

    @classmethod
    def of(cls, answer: Answer, coarse: Sequence[bool]) -> Rounds:
        """Return those of an answer."""
        decided = ((leaf.scale.max == 0 or not leaf.is_real) and leaf.exact.numel() > 0 for leaf in answer.leaves)
        return cls(tuple(decided), tuple(coarse))

    def settled(self, values: Sequence[torch.Tensor | None], answer: Answer) -> list[bool]:
        """Return the outputs of which a rounded run says how far rounding moves them: the decided alone, if integers came out otherwise in it."""
        flips = any(_differs(value, leaf) for value, leaf in zip(values, answer.leaves, strict=False))
        return [one or (other and not flips) for one, other in zip(self.decided, self.coarse, strict=True)]

    def count(self, near: int) -> int:
        """Return how many such runs are made beside so many by moved inputs."""
        return near if any(self.coarse) else rounding.RUNS if any(self.decided) else 0


Move = Literal["own", "near", "rounded", "flipped", "far"]
"""Of nothing, of the inputs by an ulp at most, of what operators return (and integers came out otherwise), of the inputs by FAR_ULPS."""

Moved = tuple[Move, Sequence[torch.Tensor | None]]


def _of(wanted: Sequence[bool], values: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    return [value if here else None for value, here in zip(values, wanted, strict=False)]


def _flipping(runs: Iterator[Moved], answer: Answer, rounds: Rounds) -> Iterator[Moved]:
    """Yield the runs; of a rounded one the outputs that it settles, and the others apart, if integers came out otherwise in it."""
    for move, values in runs:
        if move != "rounded":
            yield move, values
            continue
        yield move, _of(rounds.settled(values, answer), values)
        if any(_differs(value, leaf) for value, leaf in zip(values, answer.leaves, strict=False)):
            yield "flipped", _of([not here for here in rounds.decided], values)


def _differs(value: torch.Tensor | None, leaf: Leaf) -> bool:
    return not leaf.is_real and value is not None and leaf.own is not None and value.shape == leaf.own.shape and bool((value != leaf.own).any())


def _runs(original: Original, inputs: Any, seed: int, which: int, near: int, rounds: Rounds) -> Iterator[Moved]:
    """Yield a move, and the original's outputs under it. What operators return is moved where outputs ask for it."""
    began = time.monotonic()
    yield "own", _run(original, inputs, which)
    for run in range(near):
        if run >= NEAR_RUNS and time.monotonic() - began > MORE_SECONDS:
            break
        yield "near", _run(original, distributions.perturb(inputs, seed + 31 * (run + 1)), which)
    permitted, _ = original.permitted(inputs, which)
    if permitted:
        yield "own", permitted
    for run in range(rounds.count(near)):
        if run >= NEAR_RUNS and time.monotonic() - began > 2 * MORE_SECONDS:
            break
        with rounding.Rounded(seed + run, original.device):
            moved = _run(original, inputs, which)
        yield "rounded", moved
    for direction in (1.0, -1.0):
        yield "far", _run(original, distributions.move(inputs, direction * FAR_ULPS), which)
    for run in range(FAR_RUNS):
        yield "far", _run(original, distributions.move(inputs, FAR_ULPS, (seed ^ SEED) + run), which)


def _run(original: Original, inputs: Any, which: int) -> list[torch.Tensor]:
    """Return the original's outputs; none where it does not take moved inputs: a share of 1 that became more."""
    try:
        return _answers(original, inputs, which)
    except RAISED as error:
        if says_nothing_of_inputs(error):
            raise
        original.current = None
        return []


def _answers(original: Original, inputs: Any, which: int) -> list[torch.Tensor]:
    return [as_tensor(value) for _, value in leaves_of(original.run_own(inputs, which))]


class _Moves:
    """What moves do to one output."""

    def __init__(self, leaf: Leaf, coarsest: float) -> None:
        self.leaf = leaf
        self.coarse = leaf.is_real and coarsest > torch.finfo(leaf.dtype).eps
        """The inputs are coarser than the output: what moving them does is left out."""
        self.limit = SENSITIVE if self.coarse else max(SENSITIVE, AMPLIFIED * FAR_ULPS * coarsest)
        """Share of the output's RMS beyond which an element is sensitive."""
        self.error = leaf.original
        self.spread = torch.zeros(leaf.exact.numel(), dtype=torch.float32, device=leaf.exact.device) if leaf.is_real else None
        self.sensitive: torch.Tensor | None = None
        self.rest = self.apart = NO_ERROR
        self.seen: list[torch.Tensor] = []
        self.small = leaf.small
        self.flipped: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.runs: list[Errors] = []
        """Errors of the runs that moved little, of the elements that are not sensitive."""
        self.near_runs = NEAR_RUNS
        """That the second round is to make."""

    def add(self, value: torch.Tensor, move: Move) -> None:
        """Take in an output of the first round."""
        leaf = self.leaf
        if value.shape != leaf.exact.shape or (self.coarse and move in ("near", "far")):
            return
        if self.spread is None:
            assert leaf.own is not None
            differs = value.to(leaf.own.dtype) != leaf.own
            self.sensitive = differs if self.sensitive is None else self.sensitive | differs
            return
        if move == "flipped":
            far = (value.to(leaf.exact.dtype) - leaf.exact).abs() > FLIPPED * oracle.tolerance(NO_ERROR, leaf.scale, leaf.dtype).max
            self.flipped.append((far.reshape(-1).nonzero().flatten(), value[far]))
            return
        if move != "far":
            self.error = oracle.worst(self.error, self._met(oracle.errors_of(value, leaf.exact)))
            self.small = tuple(parts.worse(part, value, leaf.exact) for part in self.small)
        if move == "rounded" and not self.coarse:
            return
        exact, values, times = leaf.exact.reshape(-1), value.reshape(-1), FAR_ULPS if move == "rounded" else 1.0
        for piece in oracle.pieces(exact):
            shift = (values[piece].to(exact.dtype) - exact[piece]).abs().float() * times
            torch.maximum(self.spread[piece], torch.nan_to_num(shift, nan=0.0, posinf=0.0), out=self.spread[piece])

    def divide(self) -> None:
        """Find the sensitive elements, if there are any, and how many runs the others need."""
        if self.spread is not None and len(self.spread):
            limit = min(self.limit * self.leaf.scale.rms, OUTLIER * float(self.spread.square().mean().sqrt()))
            above = self.spread > limit
            self.sensitive = above.reshape(self.leaf.exact.shape)
            self.near_runs = runs_for(self.spread[~above])
            self.spread = self.spread[:0]
        if self.sensitive is not None and not bool(self.sensitive.any()):
            self.sensitive = None
        if self.sensitive is not None:  # what the near ties among them did to a small part says nothing of its other elements
            self.small = tuple(replace(part, own=torch.zeros_like(part.own)) for part in self.small)

    def add_again(self, value: torch.Tensor, move: Move) -> None:
        """Take in an output of the second round."""
        leaf, sensitive = self.leaf, self.sensitive
        if value.shape != leaf.exact.shape or (self.coarse and move in ("near", "far")):
            return
        if sensitive is None:
            if leaf.is_real and move != "far":
                self.error = oracle.worst(self.error, self._met(oracle.errors_of(value, leaf.exact)))
                self.small = tuple(parts.worse(part, value, leaf.exact) for part in self.small)
            return
        if not leaf.is_real:
            assert leaf.own is not None
            self.seen.append(value.to(leaf.own.dtype)[sensitive])
            return
        rest, apart = oracle.errors_apart(value, leaf.exact, sensitive)
        self.apart = oracle.worst(self.apart, _finite(apart))
        if move != "far":
            self.rest = oracle.worst(self.rest, self._met(rest))
            self.small = tuple(parts.worse(part, value, leaf.exact, sensitive) for part in self.small)

    def _met(self, error: Errors) -> Errors:
        """Keep the error of a run, and return it."""
        self.runs.append(_finite(error))
        return self.runs[-1]

    def _far(self, allowed: Errors) -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
        """Return what flipped, where that is far from the answer beside what is allowed."""
        exact = self.leaf.exact.reshape(-1)
        far = [(places, seen, (seen.to(exact.dtype) - exact[places]).abs() > FLIPPED * allowed.max) for places, seen in self.flipped]
        return tuple((places[there], seen[there]) for places, seen, there in far if bool(there.any()))

    def result(self, original: Original) -> Leaf:
        """Return the leaf with what is allowed."""
        leaf, sensitive = self.leaf, self.sensitive
        if not leaf.is_real:
            return leaf if sensitive is None else replace(leaf, sensitive=sensitive, seen=tuple(self.seen))
        scale = leaf.scale if sensitive is None else oracle.scale_of(leaf.exact[~sensitive])
        typical = oracle.worst(oracle.root_mean_square(self.runs), leaf.original if original.may_use_tf32 else NO_ERROR)
        expected = original.allowed(leaf.path, typical, scale, leaf.dtype)
        error = self.error if sensitive is None else self.rest
        allowed = original.allowed(leaf.path, error, scale, leaf.dtype)
        leaf = replace(leaf, original=error, scale=scale, allowed=allowed, expected=expected, small=self.small, flipped=self._far(allowed))
        if sensitive is None:
            return leaf
        return replace(
            leaf, sensitive=sensitive, allowed_there=oracle.tolerance(self.apart, oracle.scale_of(leaf.exact[sensitive]), leaf.dtype),
        )  # fmt: skip


def runs_for(spread: torch.Tensor) -> int:
    """Return how many runs it takes to know the error of elements that moves shift so far: more where few of them decide."""
    deciding = int((spread >= DECIDING * spread.max()).sum()) if len(spread) else 0
    return next((runs for fewer, runs in FEW if 0 < deciding < fewer), NEAR_RUNS)


def _finite(error: Errors) -> Errors:
    """Leave a run out that overflowed: that it did allows nobody anything."""
    return error if error.max < float("inf") else NO_ERROR

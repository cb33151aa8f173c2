"""Is an output right? Compares values with the original's answer to a case, leaf by leaf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import torch

from warpwright.base import Case, Errors
from warpwright.errors import is_full
from warpwright.verifier.judge import parts
from warpwright.verifier.judge.left_behind import is_excused, states_of_moves
from warpwright.verifier.judge.oracle import (
    all_finite,
    describe,
    errors_apart,
    errors_of,
    excess,
    judged_at_once,
    same_non_finite,
    scale_of,
    shares,
    tolerance,
    worst,
)
from warpwright.verifier.judge.original.answers import NO_ERROR, Answer, Leaf, as_tensor, dtype_of, key_of
from warpwright.verifier.judge.original.conditioning import examined
from warpwright.verifier.judge.original.precisions import widen
from warpwright.verifier.judge.original.reference import Original
from warpwright.workers.tensors import exchange

COARSE_SLACK = 16.0
"""On inputs with other strides wrong elements are looked for, not digits: torch's own functions add up in a plainer order there. Their values are
those of the case `normal`, which has them in the usual order."""

EXAMINED_KEPT = 4

APART, APART_ELEMENTS = 100.0, 64
"""By so many times what is allowed, or in so many elements of integers, right answers to two calls differ where one that stands in the other's place
was kept, not miscomputed: a distillation loss of two cases was the same within its tolerance."""


class Judgement:
    """Judges outputs of one original's task."""

    def __init__(self, original: Original) -> None:
        self.original = original

    def judge(self, values: Sequence[Any], case: Case, which: int, typical: bool = False) -> dict[str, Any]:
        """Return check ("" for a pass), reason, excess and errors of output leaves, which have the structure of the original's.

        `typical`: and `shares`, unless their form is wrong or no memory is left to look closer: each error of the elements that are not sensitive, as
        a share of what the original's typical one would allow.
        """
        first = self._judge(values, self.original.answer(case, which), case)
        result = {**first, "shares": {}}
        if first["check"] != "values" and (first["check"] or not typical):
            return result
        try:
            closer = self._judge(values, self._examine(case, which), case)
        except Exception as error:
            if not is_full(error):
                raise
            self.original.current = None
            return result  # there is no room for a second look: the first one stands
        return {**(closer if first["check"] else first), "shares": closer["shares"] if typical else {}}

    def by(self, values: Sequence[Any], answer: Answer, case: Case) -> dict[str, Any]:
        """Return what the first look at output leaves says, by an answer that the caller has."""
        return {**self._judge(values, answer, case), "shares": {}}

    def judge_state(self, seen: Mapping[str, torch.Tensor], case: Case, which: int) -> dict[str, Any]:
        """Return check and reason for parameters and buffers as one call on `case` from state `which` left them."""
        answer = self.original.answer(case, which)
        changed, permitted = answer.after, answer.permitted
        after = changed or {name: (tensor, tensor) for name, tensor in self.original.state(which).items()}
        for name, (own, _) in after.items():
            if name not in seen or seen[name].shape != own.shape:
                return {"check": "state_names", "reason": f"after a call the state has no {name!r} of shape {tuple(own.shape)}"}
        rules = {name: partial(within, besides=permitted.get(name, NO_ERROR)) for name in after}
        changed_here = differing({name: (seen[name], own) for name, (own, _) in after.items()})
        told = _within_at_once({name: (seen[name], *after[name]) for name in changed_here}, permitted) if self.original.device != "cpu" else {}
        others = [name for name in changed_here if not (told[name] if name in told else rules[name](seen[name], *after[name]))]
        moves = states_of_moves(self.original, case, which, others) if others and changed else {}
        for name in others:
            if not is_excused(seen[name], *after[name], moves.get(name, []), rules[name]):
                own = after[name][0]
                return {"check": "buffers", "reason": f"after one call {name!r} differs from the original's: {_difference(seen[name], own)}"}
        return {"check": ""}

    def accepts(self, values: Sequence[Any], case: Case, which: int) -> bool:
        """Whether output leaves are right at the first look, without any allowance for the original's conditioning."""
        answer = self.original.answer(case, which)
        return len(values) == len(answer.leaves) and not self._judge(values, answer, case)["check"]

    def far_apart(self, case: Case, which: int, earlier: Case, state: int) -> bool:
        """Whether the right answers to two calls differ by far more than is allowed, in an output at least."""
        here, there = self.original.examined.get(key_of(case, which)) or self.original.answer(case, which), self.original.answer(earlier, state)
        return any(_far_apart(one, other) for one, other in zip(here.leaves, there.leaves, strict=False))

    def check(self, values: Sequence[Any], case: Case, which: int) -> str:
        """Return the check that rejects output leaves, or ""."""
        if len(values) != len(self.original.answer(case, which).leaves):
            return "structure"
        return str(self.judge(values, case, which)["check"])

    def _judge(self, values: Sequence[Any], answer: Answer, case: Case) -> dict[str, Any]:
        results = [judge_leaf(value, leaf, case.name == "strided") for value, leaf in zip(values, answer.leaves, strict=True)]
        result = max(results, key=lambda item: item["excess"], default={"check": "", "excess": 0.0})
        found = next((item for item in results if item["check"] not in ("", "values")), result)
        return {**found, "shares": {name: share for item in results for name, share in item.get("shares", {}).items()}}

    def _examine(self, case: Case, which: int) -> Answer:
        key, known = key_of(case, which), self.original.examined
        if key not in known:
            known[key] = examined(self.original, case, which)
            while len(known) > EXAMINED_KEPT:
                known.popitem(last=False)
        return known[key]

    def forget(self) -> None:
        """Let go of answers that can be made again."""
        self.original.examined.clear()


def judge_leaf(value: Any, leaf: Leaf, strided: bool = False) -> dict[str, Any]:
    """Compare one output with the original's answer. `strided`: its inputs lie in memory in an unusual way, which outputs may follow."""
    tensor = as_tensor(value)
    problem = _form_problem(value, tensor, leaf)
    if strided and problem is not None and problem[0] == "layout":
        problem = None
    base = {"excess": float("inf"), "errors": None, "original": asdict(leaf.original), "leaf": leaf.path}
    if problem:
        return {**base, "check": problem[0], "reason": f"{leaf.path}: {problem[1]}"}
    if not leaf.is_real:
        return {**base, **_exact(tensor, leaf)}
    if leaf.own is not None and not same_non_finite(tensor, leaf.own, leaf.exact):
        return {**base, "check": "non_finite", "reason": f"{leaf.path}: Inf and NaN do not stand where the original has them"}
    tensor = _unflipped(tensor, leaf)
    ratio, errors, rest = _ratio(tensor, leaf)
    apart = _apart(leaf) if leaf.small else None
    small = max((parts.excess(part, tensor, leaf.exact, leaf.dtype, apart) for part in leaf.small), default=(0.0, ""))
    slack, reason = COARSE_SLACK if strided else 1.0, ""
    ratio, in_part = max(ratio, small[0]) / slack, small[0] > ratio
    if ratio > 1 and in_part:
        reason = f"{leaf.path}: {small[1]}"
    elif ratio > 1:
        reason = f"{leaf.path}: {_finding(tensor, errors, ratio, leaf)}"
    typical = {f"{leaf.path} {kind}": min(share, 1e150) for kind, share in shares(rest, leaf.expected).items()} if rest else {}
    judged = {"excess": min(ratio, 1e300), "errors": _finite(asdict(errors)), "check": "values" if ratio > 1 else "", "reason": reason}
    return {**base, **judged, "shares": typical}


def _apart(leaf: Leaf) -> torch.Tensor | None:
    """Return the elements of a leaf whose small parts are judged without them: those that are sensitive, or not finite."""
    if leaf.own is None:
        return leaf.sensitive
    nowhere = ~leaf.exact.isfinite()
    return nowhere if leaf.sensitive is None else nowhere | leaf.sensitive


def _unflipped(tensor: torch.Tensor, leaf: Leaf) -> torch.Tensor:
    """Return an output with the answer in place of what is as right: what stands there, within what is allowed, when rounding has an index flip."""
    if not leaf.flipped:
        return tensor
    values, exact = tensor.reshape(-1).clone(), leaf.exact.reshape(-1)
    for places, seen in leaf.flipped:
        there = places[(values[places].to(exact.dtype) - seen.to(exact.dtype)).abs() <= leaf.allowed.max]
        values[there] = exact[there].to(values.dtype)
    return values.view(tensor.shape)


def _ratio(tensor: torch.Tensor, leaf: Leaf) -> tuple[float, Errors, Errors | None]:
    """Return the largest ratio of an error to what is allowed, with the errors that it is of, and those of all elements that are not sensitive.

    Sensitive elements are compared apart. Where all are (a scalar, say), there are no errors of others: none is not an error of zero.
    """
    if leaf.sensitive is None:
        errors = errors_of(tensor, leaf.exact)
        return excess(errors, leaf.allowed), errors, errors
    rest, there = errors_apart(tensor, leaf.exact, leaf.sensitive)
    ratio, errors = max((excess(rest, leaf.allowed), rest), (excess(there, leaf.allowed_there), there), key=lambda pair: pair[0])
    return ratio, errors, None if bool(leaf.sensitive.all()) else rest


def _far_apart(one: Leaf, other: Leaf) -> bool:
    """Whether an answer differs from an earlier one, `other`, so much that nobody gives that one by chance."""
    if one.shape != other.shape:
        return True
    if not one.is_real:  # all bits set, say, is what a wrong program may answer without having kept anything
        differ = int((one.exact != other.exact).sum())
        return differ >= APART_ELEMENTS and bool((other.exact != other.exact.flatten()[0]).any())
    return min(_ratio(one.exact, other)[0], _ratio(other.exact, one)[0]) >= APART and not _is_plain(other)


def _is_plain(leaf: Leaf) -> bool:
    """Whether an answer is about one number throughout, or a single 0: a program that leaves a term out gives it where the rest is nothing."""
    middle = leaf.exact[leaf.exact.isfinite()].mean() if leaf.exact.numel() > 1 else leaf.exact.new_zeros(())
    return _ratio(torch.where(leaf.exact.isfinite(), middle, leaf.exact), leaf)[0] < APART


def _finite(numbers: dict[str, float]) -> dict[str, float]:
    return {name: min(value, 1e300) for name, value in numbers.items()}


def _finding(tensor: torch.Tensor, errors: Errors, ratio: float, leaf: Leaf) -> str:
    """Say what is wrong with an output's values, and then by how much."""
    if bad := int((~torch.isfinite(tensor) & torch.isfinite(leaf.exact)).sum()):
        return f"Inf or NaN in {bad} of {tensor.numel()} elements, where the original has finite numbers"
    limits = f"error {_show(errors)}; allowed {_show(leaf.allowed)}; the original's own {_show(leaf.original)}"
    return f"{describe(errors, leaf.scale)}, {ratio:.3g} times what is allowed ({limits})"


def _show(errors: Errors) -> str:
    return f"max {errors.max:.2e}, RMS {errors.rms:.2e}, centred {errors.centred:.2e}"


def _difference(seen: torch.Tensor, own: torch.Tensor) -> str:
    if seen.dtype != own.dtype:
        return f"expected dtype {own.dtype}, saw {seen.dtype}"
    at = int((seen != own).flatten().to(torch.uint8).argmax())
    return f"expected {own.flatten()[at].item():.9g} at element {at}, saw {seen.flatten()[at].item():.9g}"


def _form_problem(value: Any, tensor: torch.Tensor, leaf: Leaf) -> tuple[str, str] | None:
    """Return the check and the words for an output of another form than the original's."""
    if isinstance(value, torch.Tensor) != leaf.is_tensor:
        return "structure", f"expected a {'tensor' if leaf.is_tensor else 'number'}, saw a {type(value).__name__}"
    if tuple(tensor.shape) != leaf.shape:
        return "shape", f"expected shape {leaf.shape}, saw {tuple(tensor.shape)}"
    if (seen := dtype_of(value, tensor)) != leaf.dtype:
        return "dtype", f"expected dtype {leaf.dtype}, saw {seen}"
    if leaf.is_tensor and not tensor.is_contiguous() and not _same_strides(tensor, leaf):
        return "layout", f"expected contiguous memory or the original's strides {leaf.stride}, saw strides {tuple(tensor.stride())}"
    return None


def _same_strides(tensor: torch.Tensor, leaf: Leaf) -> bool:
    return all(one == other for one, other, size in zip(tensor.stride(), leaf.stride, leaf.shape, strict=True) if size > 1)


def _exact(tensor: torch.Tensor, leaf: Leaf) -> dict[str, Any]:
    """Integers and bools: each element as in the original's own answer, or (a tie within rounding) as in the float64 run or a moved one."""
    assert leaf.own is not None
    exact = leaf.exact.to(tensor.dtype)
    differs = (tensor != leaf.own) & (tensor != exact)
    if leaf.sensitive is not None:
        there = torch.stack([tensor[leaf.sensitive] == value for value in leaf.seen]).any(0)
        differs[leaf.sensitive] &= ~there
    wrong = int(differs.sum())
    reason = f"{leaf.path}: {wrong} of {tensor.numel()} elements differ; {leaf.dtype} outputs are compared exactly" if wrong else ""
    return {"check": "values" if wrong else "", "reason": reason, "excess": float(wrong) if wrong == 0 else 1e300}


def identical(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same bit for bit, so that NaN equals NaN."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return torch.equal(exchange.flat_bytes(one.contiguous()), exchange.flat_bytes(other.contiguous()))


def differing(pairs: Mapping[str, tuple[torch.Tensor, torch.Tensor]]) -> list[str]:
    """Return the names of the pairs of tensors that are not `identical`, with one wait for the device."""
    flags = {}
    for name, (one, other) in pairs.items():
        alike = one.shape == other.shape and one.dtype == other.dtype
        flags[name] = (exchange.flat_bytes(one.contiguous()) != exchange.flat_bytes(other.contiguous())).any() if alike else None
    found = [flag for flag in flags.values() if flag is not None]
    told = iter(torch.stack(found).tolist() if found else ())
    return [name for name, flag in flags.items() if flag is None or next(told)]


def within(seen: torch.Tensor, own: torch.Tensor, exact: torch.Tensor, besides: Errors = NO_ERROR) -> bool:
    """Whether a tensor is as near to `exact` as the rule for outputs asks, given the original's own, and `besides` an error that its flags permit.

    Inf and NaN stand where the original's own has them, and say nothing of what is allowed elsewhere. Where it alone overflowed, `exact` may stand
    within rounding; where it alone did not, it stands in for `exact`.
    """
    if not (own.is_floating_point() or own.is_complex()) or seen.dtype != own.dtype or seen.shape != own.shape:
        return False
    if own.is_complex():
        seen, own, exact = (torch.view_as_real(tensor.resolve_conj()) for tensor in (seen, own, exact.to(torch.complex128)))
    wide = exact.double()
    if all_finite(own) and all_finite(wide):
        return _as_near(seen, wide, worst(errors_of(own, wide), besides))
    if not same_non_finite(seen, own, wide):
        return False
    known = own.isfinite()
    wide = torch.where(known & ~wide.isfinite(), own.double(), wide)
    alone = ~known & seen.isfinite()
    return _as_near(seen[known], wide[known], errors_of(own[known], wide[known])) and _as_near(seen[alone], wide[alone], NO_ERROR)


def _within_at_once(triples: Mapping[str, tuple[torch.Tensor, torch.Tensor, torch.Tensor]], besides: Mapping[str, Errors]) -> dict[str, bool]:
    """Return whether tensors on a GPU are `within`, with one wait for all: those whose sums say so, which are real and finite."""
    real = {
        name: (seen, own, exact.double())
        for name, (seen, own, exact) in triples.items()
        if own.is_floating_point() and seen.dtype == own.dtype and seen.shape == own.shape
    }
    told = {}
    for (name, (seen, _, _)), judged in zip(real.items(), judged_at_once(list(real.values())), strict=True):
        if judged is not None:
            error, own_error, scale = judged
            told[name] = excess(error, tolerance(worst(own_error, besides.get(name, NO_ERROR)), scale, seen.dtype)) <= 1
    return told


def _as_near(seen: torch.Tensor, wide: torch.Tensor, own: Errors) -> bool:
    return excess(errors_of(seen, wide), tolerance(own, scale_of(wide), seen.dtype)) <= 1


def near(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same but for rounding."""
    if identical(one, other):
        return True
    return one.shape == other.shape and one.dtype == other.dtype and within(one, other, widen(other))

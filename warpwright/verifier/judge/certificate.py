"""The sensitivity certificate: would the check notice a wrong answer to this task? Computed from the original alone.

Decisive: if the check accepts one of these on every case, the task is unscored, because no verdict on it would mean anything.

    itself           the original's second run on the same input must be ACCEPTED (dropout and other randomness are not)
    zeros            all outputs zero
    mean             every output replaced by its mean: the answer is a constant
    other input      the original's answer to another input: the answer does not depend on the input
    other state      the answer under other parameters, where the model has any: the answer does not depend on them

The mean is left out for an output of one element, which is its own mean. Advisory: further mutants (one element off, one element of the
output's tail, shifted, scaled by 1.01, sign flipped, rounded to bf16, one parameter tensor zeroed or left at its initial value, the batch
rolled). One that is accepted is listed, not held against the task: a bias before a BatchNorm is honestly dead, an output symmetric under
rolling exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_map

from warpwright.base import Case
from warpwright.verifier.checks import Certificate
from warpwright.verifier.judge.original.answers import CODED, as_tensor, leaves_of
from warpwright.verifier.judge.original.on_host import RAISED, is_lost, says_nothing_of_inputs
from warpwright.verifier.judge.original.precisions import clone
from warpwright.verifier.judge.original.reference import Original

PARAMETER_MUTANTS = 6
ADVISORY_BYTES = 1 << 30  # beyond this size of output only the decisive mutants are tried

Check = Callable[[list[Any], Case, int], str]
"""Judges output leaves against the answer to a case in a state: "" if accepted, else the name of the check that rejected."""


def certify(original: Original, cases: tuple[Case, ...], check: Check, advisory: bool = True) -> Certificate:
    """Try the mutants on `cases` (first the nominal one) in state 0; a mutant counts as rejected if any case rejects it.

    `advisory`: those too that decide nothing. Of a run nobody reads them, and the whole took 12 and 33 s for two networks of level 3 on an H200.
    """
    first = cases[0]
    own = _leaves(original, first, 0)
    if not any(as_tensor(leaf).numel() for leaf in own):
        return Certificate(False, "the original returns nothing, or empty tensors alone, and programs are judged by what they return", (), ())
    if original.random:
        inside = f"it draws random numbers inside {', '.join(sorted(set(original.draws.hidden)))}, which float64 cannot repeat"
        return Certificate(False, f"{inside}, and other draws give another answer (randomness)", (), ())
    if not (answer := original.answer(first, 0)).finite and not (original.infinite or original.task.special_values):
        where = "though in another precision they are finite numbers, or stand elsewhere" if not answer.settled else "on inputs of the task's own"
        return Certificate(False, f"the original answers with Inf or NaN {where}: nobody knows what is right there", (), ())
    if check(own, first, 0):
        return Certificate(False, "the original differs from itself: two runs on the same input and state do not agree (randomness)", (), ())
    rejected: list[str] = []
    for name, make in _decisive(original, cases).items():
        if not any(_rejects(check, original, make, case) for case in cases):
            return Certificate(False, f"the check accepts {_MEANING[name]}, on every case{_advice(original)}", tuple(rejected), (name,))
        rejected.append(name)
    accepted: list[str] = []
    if advisory and original.answer(first, 0).bytes <= ADVISORY_BYTES:
        for name, output in _advisory(original, first, own):
            (rejected if check(output, first, 0) else accepted).append(name)
    return Certificate(True, "", tuple(rejected), tuple(accepted))


def _rejects(check: Check, original: Original, make: Callable[[Case], list[Any]], case: Case) -> bool:
    """Whether the check rejects a mutant on a case; where the original raises on the mutant's input, the case says nothing."""
    try:
        return bool(check(make(case), case, 0))
    except RAISED as error:
        if says_nothing_of_inputs(error):
            raise
        original.current = None
        return False


_MEANING = {
    "zeros": "an output of zeros",
    "mean": "a constant output (the mean)",
    "other input": "the answer to another input: the output does not depend on the input",
    "other state": "the answer under other parameters: the output does not depend on them",
}


def _advice(original: Original) -> str:
    """Say what to do about a network whose answers are alike, where its parameters may be why."""
    if original.task.option("calibrate") or not any(True for _ in original.model.parameters()):
        return ""
    return "; if the network was never trained: load trained weights, or give --calibrate"


def _leaves(original: Original, case: Case, state: int) -> list[Any]:
    return [value for _, value in leaves_of(original.run_own(original.inputs(case), state))]


def _each(leaves: list[Any], change: Callable[[torch.Tensor], torch.Tensor]) -> list[Any]:
    return [_changed(leaf, change) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def _changed(leaf: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return a changed tensor; one that is compared as whole numbers is changed as these are, and stays of its type."""
    changed = change(as_tensor(leaf))
    return changed.contiguous().view(leaf.dtype) if leaf.dtype in CODED else changed


def _mean(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.numel() < 2:
        return tensor + 1
    if not tensor.is_floating_point():
        return torch.full_like(tensor, int(tensor.double().mean().round()))
    if not (known := tensor.isfinite()).all():  # else it is refused for these alone
        return torch.where(known, float(tensor[known].double().mean()), tensor)
    return torch.full_like(tensor, float(tensor.double().mean()))


def _zeros(tensor: torch.Tensor) -> torch.Tensor:
    """Return zeros; where Inf and NaN stand, these: a wrong answer is not to be found out by them alone."""
    return torch.where(tensor.isfinite(), 0, tensor) if tensor.is_floating_point() else torch.zeros_like(tensor)


def _decisive(original: Original, cases: tuple[Case, ...]) -> dict[str, Callable[[Case], list[Any]]]:
    def other(case: Case) -> Case:
        return replace(case, seed=case.seed + 1_000_003)

    mutants: dict[str, Callable[[Case], list[Any]]] = {
        "zeros": lambda case: _each(_leaves(original, case, 0), _zeros),
        "mean": lambda case: _each(_leaves(original, case, 0), _mean),
    }
    if _has_tensor(original.inputs(cases[0])):
        mutants["other input"] = lambda case: _leaves(original, other(case), 0)
    if any(True for _ in original.model.parameters()):
        mutants["other state"] = lambda case: _leaves(original, case, 1)
    return mutants


def _has_tensor(inputs: Any) -> bool:
    tensors_seen: list[bool] = []
    tree_map(lambda item: tensors_seen.append(isinstance(item, torch.Tensor)), inputs)
    return any(tensors_seen)


def _advisory(original: Original, case: Case, own: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield wrong answers of the kinds that faulty programs give."""

    def element(place: Callable[[int], int]) -> Callable[[torch.Tensor], torch.Tensor]:
        def change(tensor: torch.Tensor) -> torch.Tensor:
            flat = tensor.clone().reshape(-1)
            if flat.numel():
                at = place(flat.numel())
                flat[at] = ~flat[at] if flat.dtype is torch.bool else flat[at] + (flat.abs().max() * 0.1 + 1).to(flat.dtype)
            return flat.reshape(tensor.shape)

        return change

    real = lambda change: lambda tensor: change(tensor) if tensor.is_floating_point() else tensor  # noqa: E731
    changes: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "first element off": element(lambda size: 0),
        "last element off": element(lambda size: size - 1),
        "shifted": lambda tensor: tensor.reshape(-1).roll(1).reshape(tensor.shape),
        "rows rolled": lambda tensor: tensor.roll(1, 0) if tensor.dim() else tensor,
        "scaled by 1.01": real(lambda tensor: tensor * 1.01),
        "scaled by 1.0001": real(lambda tensor: tensor * 1.0001),
        "sign flipped": real(torch.neg),
        "absolute value": real(torch.abs),
        "offset by 0.1 % of the maximum": real(lambda tensor: tensor + 1e-3 * tensor.abs().max() if tensor.numel() else tensor),
        "rounded to bf16": real(lambda tensor: tensor.bfloat16().to(tensor.dtype)),
        "rounded to fp16": real(lambda tensor: tensor.half().to(tensor.dtype)),
        "second half zero": lambda tensor: tensor.clone().reshape(-1).index_fill(0, _half(tensor), 0).reshape(tensor.shape),
    }
    for name, change in changes.items():
        yield name, _each(own, change)
    inputs = original.inputs(case)
    others: dict[str, Callable[[Any], Any]] = {
        "input scaled by 1.01": lambda x: x * 1.01 if _is_real(x) else x,
        "batch rolled": lambda x: x.roll(1, 0) if isinstance(x, torch.Tensor) and x.dim() else x,
        "input half zero": lambda x: _half_zero(x) if _is_real(x) else x,
    }
    for name, change in others.items():
        try:
            answer = _run(original, tree_map(change, inputs))
        except RAISED as error:
            if is_lost(error):
                raise
            original.current = None
            continue
        yield name, answer
    yield from _parameter_mutants(original, case)


def _half(tensor: torch.Tensor) -> torch.Tensor:
    return torch.arange(tensor.numel() // 2, tensor.numel(), device=tensor.device)


def _half_zero(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone().reshape(-1).index_fill(0, _half(tensor), 0).reshape(tensor.shape)


def _is_real(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _run(original: Original, inputs: Any) -> list[Any]:
    return [value for _, value in leaves_of(original.run_own(inputs, 0))]


def _parameter_mutants(original: Original, case: Case) -> Iterator[tuple[str, list[Any]]]:
    """Yield answers with one parameter tensor zeroed, or left as the constructor made it."""
    names = [name for name, _ in original.model.named_parameters()]
    chosen = names if len(names) <= PARAMETER_MUTANTS else [names[at * len(names) // PARAMETER_MUTANTS] for at in range(PARAMETER_MUTANTS)]
    inputs = original.inputs(case)
    for name in chosen:
        for label, value in ((f"{name} zeroed", None), (f"{name} as constructed", original.initial[name])):
            original.set_state(0)
            parameter = original.model.get_parameter(name)
            kept = parameter.detach().clone()
            try:
                parameter.data.copy_(torch.zeros_like(kept) if value is None else value)
                with torch.no_grad():
                    yield label, [leaf for _, leaf in leaves_of(original.model(*clone(inputs)))]
            finally:
                parameter.data.copy_(kept)
                original.current = None

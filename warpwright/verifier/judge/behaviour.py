"""How the original behaves: what a call changes, shares and draws, found out by calling it, with states weakened until it answers soundly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from warpwright.base import Case
from warpwright.errors import TaskError, WarpwrightError
from warpwright.tasks.mode import Mode
from warpwright.verifier.draw import Draw, with_draw
from warpwright.verifier.judge import counters
from warpwright.verifier.judge.judgement import identical, near
from warpwright.verifier.judge.original.answers import Answer, least_values, tensors_of
from warpwright.verifier.judge.original.device_memory import Memory
from warpwright.verifier.judge.original.on_host import says_nothing_of_inputs
from warpwright.verifier.judge.original.precisions import clone
from warpwright.verifier.judge.original.reference import Original
from warpwright.verifier.judge.readable import expect_readable, lazy_outputs
from warpwright.workers.inside import generators

STATES, DRAWN_STATES = (0, 1, 2), 4
"""The states that a program meets, and how often they are drawn before its integers are left in order."""

WEAKER = (1.0, 0.2, 0.0)
"""Strengths of states that are tried where it takes none of full strength; the last one leaves the initial state."""

OURS = (MemoryError, *(getattr(torch, name) for name in ("OutOfMemoryError", "AcceleratorError") if hasattr(torch, name)))
"""Errors of an original's call that may be no fault of its own: AcceleratorError since torch 2.8."""

Form = list[tuple[str, tuple[int, ...], torch.dtype]]
"""Path, shape and dtype of each output."""


@dataclass(frozen=True)
class Behaviour:
    """What was found out."""

    facts: dict[str, Any]
    """What a runner needs to know."""
    form: Form
    """Of the outputs on nominal inputs."""
    multiplies: bool
    """It adds up products."""


def behaviour_of(original: Original, memory: Memory) -> Behaviour:
    """Run the original in state 0 and see what it changes and shares; weaken the state if it gives no finite numbers."""
    case = Case("nominal", original.secret % (1 << 31))
    _redraw(original, case)
    before = {name: tensor.clone() for name, tensor in original.state(0).items()}
    original.set_state(0)
    inputs = original.inputs(case)
    few = least_values(inputs, original.reference.make_inputs(case.seed + 1, original.device))
    with torch.no_grad():
        output = first_output(original, memory, inputs)
        expect_readable(inputs, output)
        lazy = lazy_outputs(output)
        after = original.model.state_dict()
        mutated = [name for name in before if not identical(before[name], after[name])]
        counting = tuple(name for name in mutated if counters.is_counter(before[name]))
        form = counters.form_of(output) if counting else []
        aliases = _aliases(tensors_of(output), tensors_of(inputs), original.model.state_dict(keep_vars=True))
        fresh = original.inputs(case)
        changed = [not identical(new, old) for new, old in zip(tensors_of(inputs), tensors_of(fresh), strict=True)]
        original.mutates_state, original.mutates_inputs, original.current = bool(mutated), any(changed), None
        original.changing = tuple(mutated)
        stateful = _differs_again(original, case, output) if mutated else False
        _see_draws(original, case, output)
    original.counters = counters.movable(original, counting, fresh, form) if counting else ()
    del inputs, fresh, output
    seen = _operators(original, case)
    original.writes_by_index, original.reads_values = seen.writing, seen.reading
    answer = _sound_answer(original, case)
    facts = {
        "mutated_state": mutated, "mutated_inputs": changed, "aliases": aliases, "stateful": stateful,
        "random": original.draws.found, "draws_matter": original.draws.matter, "draws_elsewhere": original.draws.elsewhere,
        "switches": not getattr(original.model, "has_one_mode", False),
        "parameters": sum(1 for _ in original.model.parameters()), "state_tensors": len(before), "strength": original.strength,
        "one_sign": original.of_one_sign, "lazy": lazy, "least_values": few,
        "wide_problem": original.wide_problem, "outputs": [[leaf.path, list(leaf.shape), str(leaf.dtype)] for leaf in answer.leaves],
    }  # fmt: skip
    return Behaviour(facts, form_of(answer), seen.multiplying)


def form_of(answer: Answer) -> Form:
    """Return path, shape and dtype of each output."""
    return [(leaf.path, leaf.shape, leaf.dtype) for leaf in answer.leaves]


def first_output(original: Original, memory: Memory, inputs: Any) -> Any:
    """Return the original's output; raise TaskError where it raises: there is no product of int32 on CUDA. Memory and a lost device are ours."""
    try:
        with memory.watched(), original.draws.beginning():
            return original.model(*inputs)
    except (WarpwrightError, *OURS):
        raise
    except Exception as error:  # whatever a program raises
        raise TaskError(f"the original raises on {original.device}: {type(error).__name__}: {str(error)[:500]}") from error


def _differs_again(original: Original, case: Case, output: Any) -> bool:
    """Whether a second call on the same input, in the state that the first one left, gives another answer."""
    inputs = original.inputs(case)
    with original.draws.beginning():
        return _differ(original.model(*inputs), output)


def _differ(one: Any, other: Any) -> bool:
    return any(not near(new, old) for new, old in zip(tensors_of(one), tensors_of(other), strict=True))


def _see_draws(original: Original, case: Case, output: Any) -> None:
    """Find out whether other draws give another answer, and if so, whether what is drawn can be repeated in float64."""
    if not original.draws.found:
        return
    with original.draws.recorded():
        original.run_own(original.inputs(case), 0)
    otherwise = with_draw(case, replace(Draw.of_case(case), drawn=1))
    original.current = None
    original.draws.matter = _differ(original.run_own(original.inputs(otherwise), 0), output)
    original.current = None
    original.random = original.draws.matter and bool(original.draws.hidden)


def _run(original: Original, case: Case, which: int) -> None:
    """Run the original once, in whatever state; note whether that drew from torch's generators."""
    original.current = None
    inputs = original.inputs(case)
    before, elsewhere = generators.states(), generators.states_of_python()
    original.run_own(inputs, which)
    now = generators.states_of_python()
    original.draws.elsewhere |= any(now[name] != state for name, state in elsewhere.items())
    if not original.draws.found:  # else they are put back
        original.draws.found = generators.states() != before


def _redraw(original: Original, case: Case) -> None:
    """Draw the states anew until the program takes them: shuffled integers may be no table any more. Where it takes none, weaken them."""
    for original.drawn in range(DRAWN_STATES):
        for which in STATES if original.has_shuffled else STATES[:1]:
            try:
                _run(original, case, which)
            except Exception as error:  # whatever a program raises
                if says_nothing_of_inputs(error):
                    raise
                break
        else:
            break
    else:
        original.drawn = 0
        for original.strength in WEAKER:
            try:
                _run(original, case, 0)
            except Exception as error:  # whatever a program raises
                if says_nothing_of_inputs(error):
                    raise
                continue
            break
    original.current = None


def _sound_answer(original: Original, case: Case) -> Answer:
    """Return the answer to a case, with the state weakened until the original's own error on it is small.

    Where no state makes its numbers finite, Inf and NaN are its answer by design (a masked softmax's logarithm), if float64 has them in the same
    places: then the strongest state in which that is so is taken.
    """
    settled: list[float] = []
    for strength in (strength for strength in (2.0, *WEAKER) if strength <= original.strength):
        _weaken(original, strength)
        try:
            answer = original.answer(case, 0)
        except (RuntimeError, IndexError, ValueError, TaskError) as error:
            if strength > 1 and not says_nothing_of_inputs(error):  # shuffled integers may be no table any more
                continue
            raise
        if answer.settled and answer.conditioned:
            settled.append(strength)
        if (answer.finite and answer.conditioned) or original.random or not original.initial:
            break
    if answer.finite or not settled:
        return answer
    original.infinite = True
    _weaken(original, settled[0])
    _forget(original)
    return original.answer(case, 0)


def _weaken(original: Original, strength: float) -> None:
    if original.strength != strength:
        original.strength, original.current = strength, None
        _forget(original)


def _forget(original: Original) -> None:
    """Have answers worked out anew: of another strength, or as those of a program whose Inf and NaN are meant."""
    original.answers.clear()
    original.worked_out.clear()


PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "int_mm", "convolution", "scaled_dot_product", "mkldnn", "cudnn")
"""Beginnings of the names of operators that add up products. Infinity times nothing is NaN in them, and how a faster one splits its operands decides
where that comes up."""

WRITES = ("index_put", "index_copy", "scatter", "masked_scatter", "put", "index_fill")


READS = frozenset({"tolist", "numpy", "__array__", "__dlpack__"})
"""What hands a tensor's values to Python without an operator that says so."""


class _Reads(TorchFunctionMode):
    """Notes whether Python is handed a tensor's values."""

    reading = False

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        self.reading |= getattr(function, "__name__", "") in READS
        return function(*arguments, **(keywords or {}))


class _Operators(Mode):
    """Notes the names of the operators that run, and whether one tells Python a value."""

    def __init__(self) -> None:
        super().__init__()
        self.writing = self.multiplying = self.reading = False

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        name, keywords = function.overloadpacket.__name__.strip("_"), keywords or {}
        accumulates = name.startswith("index_put") and True in (*arguments[3:4], keywords.get("accumulate"))
        adds = name.startswith(("scatter_add", "scatter_reduce")) or accumulates
        self.writing |= name.startswith(WRITES) and not adds and not _writes_one_value(function, name, arguments)
        self.multiplying |= name.startswith(PRODUCTS)
        self.reading |= torch.Tag.data_dependent_output in function.tags
        return function(*arguments, **keywords)


def _writes_one_value(function: Any, name: str, arguments: Any) -> bool:
    """Whether all that an operator puts at places is one value, a number or a tensor of one: the same wherever a place comes twice."""
    if "value" in function._schema.overload_name or "Scalar" in function._schema.overload_name:  # scatter.value, index_fill.int_Scalar
        return True
    value = arguments[2] if name.startswith("index_put") and len(arguments) > 2 else None
    return isinstance(value, torch.Tensor) and value.numel() == 1


def _operators(original: Original, case: Case) -> _Operators:
    """Return what the original does: does it put values at places that a tensor names, without adding, and does it add up products? Does its Python
    look at values? (What never looks at any cannot go by them, on whatever inputs.)"""
    inputs = clone(original.inputs(case))
    original.set_state(0)
    with torch.no_grad(), _Reads() as reads, _Operators() as seen:
        original.model(*inputs)
    seen.reading |= reads.reading
    original.current = None
    return seen


def _aliases(outputs: list[torch.Tensor], inputs: list[torch.Tensor], state: dict[str, Any]) -> list[list[str]]:
    """Return, for each output of the original, what it shares memory with, named as the runner names it."""
    held = [(f"input {number}", tensor) for number, tensor in enumerate(inputs)] + list(state.items())
    aliases = []
    for number, output in enumerate(outputs):
        others = [(f"output {other}", tensor) for other, tensor in enumerate(outputs) if other < number]
        aliases.append([name for name, tensor in held + others if shares(output, tensor)])
    return aliases


def shares(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.numel() > 0 and other.numel() > 0 and one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()

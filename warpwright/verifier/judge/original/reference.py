"""The original program at work inside the judge: its answers in float64 and in its own precision, case by case, state by state."""

from __future__ import annotations

import contextlib
import random
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from warpwright.base import Case, Errors, Task
from warpwright.errors import TaskError, is_full
from warpwright.tasks import taskfile
from warpwright.tasks.modules.copying import copied
from warpwright.tasks.modules.padding import padded_as_on_devices
from warpwright.verifier.draw import CHANGES, LEFT_OTHERWISE, MIXED, STRIDED, TAKEN, Draw
from warpwright.verifier.judge import discrete, distributions, oracle, parts
from warpwright.verifier.judge.original import tf32
from warpwright.verifier.judge.original.answers import NO_ERROR, Answer, Key, Leaf, as_tensor, dtype_of, key_of, leaves_of, tensors_of
from warpwright.verifier.judge.original.compensated import Compensated
from warpwright.verifier.judge.original.draws import Draws, Tape
from warpwright.verifier.judge.original.exchanging import exchange_two
from warpwright.verifier.judge.original.held import Held, HeldStates
from warpwright.verifier.judge.original.precisions import Widening, clone, own_precision, widen
from warpwright.verifier.judge.original.products import WideProducts
from warpwright.workers.inside.state import versioned
from warpwright.workers.tensors import variants
from warpwright.workers.tensors.objects import kinds_of

ILL_CONDITIONED = 1e-2  # an original that is itself off by 1 % (RMS) on a hidden input says nothing about candidates


MOST_COUNTED = 1000
"""Calls that a program may have made before the state that it gets: a mean over all calls is one over many."""

REDRAWN_STRENGTHS = (2.0, 2.0, 1.0, 0.2)
"""Of a state that was drawn anew so many times, at most."""

KNOWN_BYTES = 64 << 20
"""Of answers whose float64 values were forgotten. The sizes of rows and columns take up to 0.5 MB for each dimension of an output, and each of
hundreds of timed calls has a case of its own, which is never asked for again."""

EXAMINED_SHARE = 4
"""Of the memory for answers: so much may examined ones keep, which are needed again where a program is refused by little. (One of the certificate's,
and a sketch, stayed for as long as the judge: 26 of the 59 GB that one held between requests for KernelBench's L1-19, whose answers take 13.)"""

HELD_SHARE = 8
"""Of the memory for answers: so much may inputs take on a CPU. A GPU draws them in no time, and its memory is others' too."""


def load(model: torch.nn.Module, state: Mapping[str, torch.Tensor], extra: Mapping[str, torch.Tensor]) -> None:
    """Give a model a state, and these values to the buffers that its state leaves out. It may keep what it is given: that is a copy."""
    model.load_state_dict(versioned(model, distributions.copied_state(state)))
    for name, buffer in model.named_buffers():
        if name in extra:
            buffer.copy_(extra[name])


class Original:
    """The task's program with its states and its answers. `secret` seeds everything hidden."""

    def __init__(self, task: Task, device: str, secret: int, budget_bytes: int) -> None:
        self.task, self.device, self.secret, self.budget = task, device, secret, budget_bytes
        self.reference = taskfile.load(task)
        torch.manual_seed(secret)
        self.model = self.reference.make_judged_model(secret % (1 << 31), device).requires_grad_(False)
        self.wide_problem = ""
        self.wide: torch.nn.Module | None = self._widened()
        self.buffers = {name for name, _ in self.model.named_buffers()}
        initial = self.model.state_dict()
        self.initial = distributions.copied_state(initial)
        self.strength = 2.0
        self.taken: dict[str, torch.Tensor] = {}
        self.redrawn: Counter[int] = Counter()
        """How often single states were drawn anew, because the program gave no sound answer in them."""
        self.drawn = 0
        """How often the states were drawn anew, because the program did not take them."""
        self.draws = Draws(secret)
        self.states = HeldStates(budget_bytes // HELD_SHARE)
        self.held = Held(budget_bytes // HELD_SHARE if torch.device(device).type == "cpu" else 0)
        self.current: int | None = None
        self.extra = {name: buffer.clone() for name, buffer in self.model.named_buffers() if name not in initial}
        self.answers: dict[Key, Answer] = {}
        self.worked_out: dict[Key, Answer] = {}
        """All that is known of answers that were worked out once, but for their float64 values: those asked for most often, within KNOWN_BYTES."""
        self.asked: Counter[Key] = Counter()
        """How often each answer was asked for."""
        self.found: Counter[Key] = Counter()
        """How often each answer was asked for and there."""
        self.plain: Answer | None = None
        """The form of an answer to nominal inputs, its values left out."""
        self.last_sketch: tuple[Key, Answer] | None = None
        self.examined: OrderedDict[Key, Answer] = OrderedDict()
        """The latest that were examined (`conditioning.py`), within a share of the budget once another answer is worked out."""
        self.may_use_tf32 = device.startswith("cuda") and bool(tf32.permitted())
        """The program's flags permit TF32 in an operator, and its device has the unit. Found out to be idle at the first answer, if it is."""
        self.largest: dict[str, dict[int, torch.Tensor]] = {}
        """The largest size of each row, column and the like over the cases met, by output."""
        self.usual: dict[str, dict[Key, Errors]] = {}
        """Relative errors of the original, by output and case: one for each case met, however often it is forgotten and worked out again."""

    def _widened(self) -> torch.nn.Module | None:
        try:
            return copied(self.model).double()
        except (RuntimeError, TypeError) as error:
            self.wide_problem = f"the model cannot be copied to float64: {error}"
            return None

    # -- states

    @property
    def of_one_sign(self) -> list[str]:
        """The names of parameters whose elements all have one sign, which they may have by chance alone, and which training may change."""
        return [name for name, tensor in self.initial.items() if name not in self.buffers and distributions.has_one_sign(tensor)]

    @property
    def has_shuffled(self) -> bool:
        """Whether its state has integers that are shuffled: the program may not take them in every order."""
        return any(distributions.is_shuffled(tensor) for tensor in self.initial.values())

    def state(self, which: int) -> Mapping[str, torch.Tensor]:
        """Return state number `which` by name, for nobody to write to; -1 is the initial one."""
        if which < 0:
            return self.initial
        if which == TAKEN:
            return self.taken
        follows_from = (which, self.drawn, self.strength, self.counters, self.changing, *sorted(self.redrawn.items()))
        return self.states.of(follows_from, lambda: self._drawn_state(which))

    def _drawn_state(self, which: int) -> Mapping[str, torch.Tensor]:
        if which == LEFT_OTHERWISE:
            other = self.state(1)
            return {**self.state(2), **{name: other[name] for name in self.changing}}
        if which >= MIXED:
            return self._mixed(*divmod(which - MIXED, len(CHANGES)))
        seed = self.secret + 104729 * (which + 1) + 15485863 * self.drawn + 32452843 * self.redrawn[which]
        state = distributions.random_state(self.initial, self.buffers, seed, min(self.strength, REDRAWN_STRENGTHS[self.redrawn[which]]))
        counts = {name: state[name] + random.Random(f"{self.secret} {which} {name}").randrange(MOST_COUNTED) for name in self.counters}
        return state | counts if self.strength > 1 else state

    def redraw(self, which: int) -> None:
        """Draw one of the states anew, nearer to the initial one if it was drawn anew before."""
        self.redrawn[which] += 1
        self.current = None
        for kept in (self.answers, self.worked_out, *self.usual.values()):
            for key in [key for key in kept if key[2] == which or key[2] >= LEFT_OTHERWISE]:  # type: ignore[attr-defined]
                del kept[key]  # type: ignore[attr-defined]

    def take(self, left: Mapping[str, torch.Tensor], names: Sequence[str], seed: int) -> str:
        """Make state TAKEN of what a call left, with two elements of one of these tensors exchanged; return its name, or "" where none can be."""
        remembered: list[dict[Key, Any]] = [self.answers, self.worked_out, self.asked, self.found, *self.usual.values()]
        for kept in remembered:
            for key in [key for key in kept if key[2] == TAKEN]:
                del kept[key]
        if any(name not in left or left[name].shape != tensor.shape for name, tensor in self.initial.items()):
            return ""
        copies = {id(tensor): left[name].to(tensor.dtype, copy=True) for name, tensor in self.initial.items()}
        self.taken = {name: copies[id(tensor)] for name, tensor in self.initial.items()}  # tied entries stay tied
        self.current = None
        for name in random.Random(seed).sample(names, len(names)):
            if exchange_two(self.taken[name], in_row=bool(seed % 2), ends=False, seed=seed):
                return name
        return ""

    def _mixed(self, number: int, change: int) -> dict[str, torch.Tensor]:
        """Return state 1 with one tensor, counted around the names, changed in one way (`CHANGES`)."""
        state = dict(self.state(1))
        name = list(state)[number % len(state)]
        tied = [other for other, tensor in state.items() if tensor is state[name]]
        line, _, ends = CHANGES[change].partition(" ")
        if line == "tensor":
            return state | dict.fromkeys(tied, self.state(2)[name])
        if line == "nudge":
            return state | dict.fromkeys(tied, distributions.nudged(state[name], self.secret + 7919 * number))
        changed = state[name].clone()
        if line == "minus":
            changed[torch.unravel_index(torch.tensor((self.secret + 7919 * number) % changed.numel()), changed.shape)] *= -1
            return state | dict.fromkeys(tied, changed)
        if line in ("row", "column") and exchange_two(changed, line == "row", bool(ends), self.secret + 7919 * number):
            return state | dict.fromkeys(tied, changed)
        if (changed.is_floating_point() or changed.is_complex()) and changed.numel():
            at = (self.secret + 7919 * number) % changed.numel()
            changed[torch.unravel_index(torch.tensor(at), changed.shape)] += (4 * changed.abs().max() + 0.1) * (1 + 1j if changed.is_complex() else 1)
        return state | dict.fromkeys(tied, changed)

    def set_state(self, which: int, only: torch.nn.Module | None = None) -> None:
        """Give both models state number `which`; where calls change it, `only` the one that is about to run, which needs it before each run."""
        if self.current == which and not self.mutates_state:
            return
        state, self.current = self.state(which), None  # not both have one where memory ends in between
        for model in (self.model, self.wide) if only is None or not self.mutates_state else (only,):
            if model is not None:
                load(model, state, self.extra)
        self.current = which

    mutates_state = True
    """Whether a call changes buffers; until that is known (`Judge.open`), states are set before every run."""

    changing: tuple[str, ...] = ()
    """The tensors of the state that calls change."""

    mutates_inputs = True
    """Whether a call writes to its inputs; until that is known they are copied first."""
    counters: tuple[str, ...] = ()
    """Single integers of the state that a call changes, how often it was called as a rule, if they may begin elsewhere (`counters.movable`)."""

    writes_by_index = False
    """It puts values at places that an input names, without adding: of two for one place, either may win."""

    random = False
    """Two calls differ because the program draws random numbers that cannot be repeated."""

    infinite = False
    """Its answers hold Inf or NaN by design: in every state, also the initial one, on inputs as the task's own input function draws them."""

    reads_values = True
    """Python of the program's looks at values, so that what form its outputs have may depend on them; until that is known it is so."""

    # -- inputs

    def inputs(self, case: Case) -> list[Any]:
        """Return the inputs of a case, on which every run until the next case's draws what is drawn on this one. The latest are kept (shipping and
        answering a case need the same), unless calls write to them."""
        self.draws.begin(case)
        key = key_of(case, 0)
        if (held := self.held.get(key)) is not None:
            return held
        self.held.make_room()
        draw = Draw.of_case(case)
        nominal = self.reference.make_inputs(case.seed if draw.of is None else draw.of, self.device)
        inputs: list[Any] = distributions.redistribute(nominal, case.name, case.seed + 1, bool(draw.mild))
        if case.name == STRIDED:
            layout = case.seed if draw.layout is None else draw.layout
            inputs = discrete.restride(inputs, layout + 3, draw.turned or 0, bool(draw.fixed), bool(draw.mild))
        elif case.name != "nominal" and not draw.fixed:
            inputs = discrete.vary(inputs, case.name, case.seed + 2, self.writes_by_index, bool(draw.mild))
        if draw.variant is not None:
            inputs = variants.vary(inputs, draw.variant, variants.like(inputs))
        if not self.mutates_inputs:
            self.held.put(key, inputs)
        return inputs

    # -- runs

    refusal: Callable[[Any, int], str] | None = None
    """Says why inputs are not taken in a state, or "": asked before each run, once a device was lost (`on_host.py`)."""

    def _expect_taken(self, inputs: Any, which: int) -> None:
        """Raise ValueError where it is known that a run would raise, or leave the device in error."""
        if self.refusal is not None and (refused := self.refusal(inputs, which)):
            raise ValueError(refused)

    def run_own(self, inputs: Any, which: int) -> Any:
        """Return the original's output in its own precision, from state `which`."""
        self._expect_taken(inputs, which)
        self.set_state(which, self.model)
        context, change = own_precision(self.task.precision, self.device)
        with torch.no_grad(), context, self.draws.beginning():
            return self.model(*change(clone(inputs) if self.mutates_inputs else inputs))

    def _drawn(self, inputs: Any, which: int) -> Tape:
        """Return what a call draws, in its own precision."""
        if not self.draws.found:
            return []
        with self.draws.recorded() as tape:
            self.run_own(inputs, which)
        return tape

    def run_wide(self, inputs: Any, which: int, rounding: tf32.RoundedOperands | None = None, left: list[Any] | None = None) -> Any:
        """Return the output in float64; where the program cannot run in float64, in its own precision (`wide_problem` says why).

        `left` takes in what a float64 call leaves of its inputs.
        """
        self._expect_taken(inputs, which)
        if self.wide is not None and not self.wide_problem:
            tape = self._drawn(inputs, which)
            self.set_state(which, self.wide)
            try:
                return self._widely(inputs, tape, rounding, left)
            except Exception as error:  # whatever a program raises
                self.current = None
                if not is_full(error):  # else what the failed run held is let go of at the end of this block
                    own = self.run_own(inputs, which)  # raises where it is the input that the program does not take
                    self.wide_problem = f"the original does not run in float64: {str(error)[:300]}"
                    self.worked_out.clear()
                    return own
            self.current = None
            return self._widely_in_less_memory(inputs, which, tape, rounding, left)
        return self.run_own(inputs, which)

    def inputs_after(self, case: Case, which: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return what a call leaves of each tensor of its inputs, in the program's own precision and in float64 (or once more, if it has none)."""
        inputs = self.inputs(case)
        context, change = own_precision(self.task.precision, self.device)
        given = change(clone(inputs))
        self.set_state(which)
        with torch.no_grad(), context, self.draws.beginning():
            self.model(*given)
        own = tensors_of(given)
        if self.task.precision == "bf16":  # what the call did not write is as it came, not rounded
            each = zip(own, tensors_of(change(inputs)), tensors_of(inputs), strict=True)
            own = [torch.where(after == rounded, came, after) for after, rounded, came in each]
        self.current = None
        left: list[Any] = []
        self.run_wide(inputs, which, left=left)
        self.current = None
        return list(zip(own, own if self.wide is None or self.wide_problem else tensors_of(left), strict=True))

    def _widely(self, inputs: Any, tape: Tape, rounding: tf32.RoundedOperands | None, left: list[Any] | None = None) -> Any:
        """Return the float64 output; of copies of the inputs, where calls write to them: `left` takes those in. `tape`: what is drawn."""
        assert self.wide is not None
        arithmetic = Compensated() if self.is_double(inputs) else WideProducts() if self.device.startswith("cuda") else contextlib.nullcontext()
        default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            with (
                torch.no_grad(), padded_as_on_devices(), Widening(), arithmetic, rounding or contextlib.nullcontext(), self.draws.repeated(tape),
            ):  # fmt: skip
                given = widen(clone(inputs) if self.mutates_inputs else inputs)
                answer = self.wide(*given)
                if left is not None:
                    left[:] = given
                return answer
        finally:
            torch.set_default_dtype(default)

    def is_double(self, inputs: Any) -> bool:
        """Whether float64 is the task's own type: then the oracle has to be wider."""
        return any(isinstance(item, torch.Tensor) and item.dtype is torch.float64 for item in (*self.initial.values(), *tree_leaves(inputs)))

    def _widely_in_less_memory(
        self, inputs: Any, which: int, tape: Tape, rounding: tf32.RoundedOperands | None, left: list[Any] | None
    ) -> Any:
        """Return the float64 output without cuDNN, whose float64 convolutions take workspaces of many times their operands."""
        self.forget()
        torch.cuda.empty_cache()
        self.set_state(which, self.wide)
        with torch.backends.cudnn.flags(enabled=False):
            return self._widely(inputs, tape, rounding, left)

    # -- answers

    def answer(self, case: Case, which: int) -> Answer:
        """Return the original's answer to a case in a state, from memory if it is there."""
        key = key_of(case, which)
        self.asked[key] += 1
        if key in self.answers:
            self.found[key] += 1
            return self._with_usual_error(self.answers[key])
        self._make_room(max((answer.bytes for answer in self.answers.values()), default=0))  # the next is about as large
        computed = self._answer_again(case, which) if key in self.worked_out else self._answer_anew(case, which)
        self._make_room(computed.bytes)
        self.answers[key] = computed
        return self._with_usual_error(computed)

    def _answer_anew(self, case: Case, which: int) -> Answer:
        """Return an answer that is worked out for the first time, its error among the usual ones."""
        computed, key = self._answer(self.inputs(case), which), key_of(case, which)
        for leaf in computed.leaves:
            telling = computed.finite or (computed.settled and self.infinite)
            if leaf.is_real and telling and computed.conditioned and leaf.scale.rms > 0 and not oracle.is_noise(leaf.original, leaf.scale):
                self.usual.setdefault(leaf.path, {})[key] = oracle.relative(leaf.original, leaf.scale)
                parts.enlarge(self.largest.setdefault(leaf.path, {}), leaf.sizes)
        if not computed.after and all(leaf.own is None for leaf in computed.leaves):
            if case.name == "nominal" and all(_lies_densely(leaf) for leaf in computed.leaves):
                self.plain = replace(computed, leaves=tuple(_form_of(leaf) for leaf in computed.leaves))
            bare = tuple(replace(leaf, exact=leaf.exact.new_empty(0)) for leaf in computed.leaves)
            self.worked_out[key] = replace(computed, leaves=bare)
            _forget(self.worked_out, KNOWN_BYTES, self.asked)
        return computed

    def sketch(self, case: Case, which: int) -> Answer | None:
        """Return the float64 values of a nominal answer that nobody has asked for, with no more allowed than the whole answer would allow; None where
        that is there, or is needed.

        What is right by it is right by the whole answer, which takes three runs of the original and more passes over memory in place of one. Its own
        error on the case, which could allow more, is taken for none, among its usual ones too. What is not right is judged by the whole answer.
        (Some thirty outputs of timed calls are looked at for a program on a GPU, each of a case of its own.)
        """
        key, form = key_of(case, which), self.plain
        known = key in self.answers or key in self.worked_out
        if known or case.name != "nominal" or form is None or self.mutates_state or self.random or self.reads_values:
            return None
        if self.last_sketch is not None and self.last_sketch[0] == key:
            return self.last_sketch[1]
        self._make_room(max((answer.bytes for answer in self.answers.values()), default=0))
        inputs = self.inputs(case)
        if self.is_double(inputs):
            return None
        exact = self._exact(self.run_wide(inputs, which))
        if self.wide_problem or [path for path, _ in exact] != [leaf.path for leaf in form.leaves]:
            return None
        leaves = [self._sketched(leaf, value) for leaf, (_, value) in zip(form.leaves, exact, strict=True)]
        if None in leaves:
            return None
        answer = replace(form, leaves=tuple(leaf for leaf in leaves if leaf is not None), sketched=True)
        self.last_sketch = key, answer
        return answer

    def _sketched(self, leaf: Leaf, exact: torch.Tensor) -> Leaf | None:
        """Return a leaf of this form with these values, allowed what the original's usual errors allow if its own is none; None where a part of it is
        small, or is not finite: what is allowed there the whole answer says."""
        seen = self.usual.get(leaf.path)
        if not leaf.is_real or (tuple(exact.shape), exact.dtype) != (leaf.shape, leaf.exact.dtype) or not seen or not oracle.all_finite(exact):
            return None
        scale = oracle.scale_of(exact)
        sizes, largest = parts.sizes(exact, scale.rms), self.largest.get(leaf.path, {})
        if not scale.rms or any(parts.may_be_small(share, largest.get(dimension)) for dimension, share in sizes.items()):
            return None
        usual = oracle.absolute(oracle.median([*seen.values(), NO_ERROR]), scale)
        return replace(leaf, exact=exact, original=usual, scale=scale, allowed=oracle.tolerance(usual, scale, leaf.dtype), sizes=sizes)

    def forget(self) -> None:
        """Let go of answers that can be made again."""
        self.answers.clear()
        self.examined.clear()
        self.states.clear()
        self.last_sketch = None

    def _answer_again(self, case: Case, which: int) -> Answer:
        """Return an answer that was forgotten: its float64 values are made again, and what its errors were is known."""
        known = self.worked_out[key_of(case, which)]
        exact = self._exact(self.run_wide(self.inputs(case), which))
        if key_of(case, which) not in self.worked_out:  # it does not run in float64 after all
            return self._answer_anew(case, which)
        return replace(known, leaves=tuple(replace(leaf, exact=value) for leaf, (_, value) in zip(known.leaves, exact, strict=True)))

    def _make_room(self, wanted: int) -> None:
        """Forget answers until as many bytes as `wanted` are within the budget, or none is left: the newest of those found least often.

        Every program goes through the same cases, in an order of its own, and some calls have a case of their own. Who forgets what is oldest finds
        little of a round there the next time if the round does not fit; who forgets the newest finds as many answers as fit.

        What stays besides is not asked for once another answer is: a sketch, and examined answers that take much.
        """
        self.last_sketch = None
        while self.examined and sum(answer.bytes for answer in self.examined.values()) > self.budget // EXAMINED_SHARE:
            self.examined.popitem(last=False)
        _forget(self.answers, self.budget - wanted, self.found)

    def _with_usual_error(self, answer: Answer) -> Answer:
        """Take the original's usual relative error where it was more exact than usual on this case: that was luck, not a claim.

        (One output that is a sum of 8,192 terms may be off by 0.1 ulp on one input and by 20 on the next. The median over the cases keeps one
        ill-conditioned case from loosening the others.)
        """

        def usual(leaf: Leaf) -> Leaf:
            if not leaf.is_real:
                return leaf
            small = parts.always_small(leaf.small, self.largest.get(leaf.path, leaf.sizes))
            return replace(leaf, allowed=self.allowed(leaf.path, leaf.original, leaf.scale, leaf.dtype), small=small)

        return replace(answer, leaves=tuple(usual(leaf) for leaf in answer.leaves))

    def allowed(self, path: str, original: Errors, scale: oracle.Scale, dtype: torch.dtype) -> Errors:
        """Return the error allowed to an output where the original's own is this: its usual one, if that is larger."""
        seen = self.usual.get(path)
        expected = oracle.worst(original, oracle.absolute(oracle.median(list(seen.values())), scale)) if seen and scale.rms > 0 else original
        return oracle.tolerance(expected, scale, dtype)

    def _answer(self, inputs: Any, which: int) -> Answer:
        exact = self._exact(self.run_wide(inputs, which))
        wide_after = self._state_now(self.wide if self.wide is not None and not self.wide_problem else None)
        own_value = self.run_own(inputs, which)
        own_after = self._state_now(self.model)
        own = [(path, value) for path, value in leaves_of(own_value)]
        if [path for path, _ in exact] != [path for path, _ in own]:
            raise TaskError("the original returns other outputs in float64 than in its own precision", "it cannot be checked")
        leaves = [self._leaf(path, value, wide) for (path, value), (_, wide) in zip(own, exact, strict=True)]
        kinds = tuple(kinds_of(own_value))
        del own_value, own
        permitted, permitted_after = self.permitted(inputs, which)
        for number, value in enumerate(permitted):
            leaf = leaves[number]
            if leaf.is_real:
                original = oracle.worst(leaf.original, oracle.errors_of(value, leaf.exact))
                small = tuple(parts.worse(part, value, leaf.exact) for part in leaf.small)
                leaves[number] = replace(leaf, original=original, allowed=oracle.tolerance(original, leaf.scale, leaf.dtype), small=small)
        finite = all(leaf.own is None or not leaf.is_real for leaf in leaves)
        settled = finite or all(leaf.own is None or not leaf.is_real or oracle.same_places(leaf.own, leaf.exact) for leaf in leaves)
        real = [leaf for leaf in leaves if leaf.is_real]
        telling = [leaf for leaf in real if not oracle.is_noise(leaf.original, leaf.scale)]
        some = bool(telling) or not any(leaf.scale.rms > 0 for leaf in real)
        conditioned = some and all(leaf.original.rms <= ILL_CONDITIONED * leaf.scale.rms for leaf in telling)
        after = {name: (tensor, wide_after.get(name, tensor)) for name, tensor in own_after.items()}
        besides = {name: oracle.errors_of(tensor, after[name][1]) for name, tensor in permitted_after.items() if _is_finite(tensor)}
        return Answer(tuple(leaves), finite, settled, conditioned, kinds, after, besides)

    def _exact(self, output: Any) -> list[tuple[str, torch.Tensor]]:
        """Return the paths and values of an output, copied where they are a part of the state: the next state would be written over them."""
        models = [model for model in (self.model, self.wide) if model is not None]
        held = {_place(tensor) for model in models for tensor in (*model.parameters(), *model.buffers())} - {0}
        found = [(path, as_tensor(value)) for path, value in leaves_of(output)]
        return [(path, value.clone() if _place(value) in held else value) for path, value in found]

    def _state_now(self, model: torch.nn.Module | None) -> dict[str, torch.Tensor]:
        """Return copies of parameters and buffers, if calls change some."""
        return {name: tensor.clone() for name, tensor in model.state_dict().items()} if model is not None and self.mutates_state else {}

    def _leaf(self, path: str, value: Any, wide: torch.Tensor) -> Leaf:
        own = as_tensor(value)
        real = own.dtype.is_floating_point or own.dtype.is_complex
        scale = oracle.scale_of(wide) if real else oracle.Scale(0.0, 0.0, 0.0, own.numel())
        original = oracle.errors_of(own, wide) if real else NO_ERROR
        keep = not real or not (oracle.all_finite(own) and oracle.all_finite(wide))
        allowed = oracle.tolerance(original, scale, own.dtype) if real else NO_ERROR
        known, ours = (_finite_part(wide), _finite_part(own)) if real and keep else (wide, own)
        sizes = parts.sizes(known, scale.rms) if real else {}
        return Leaf(
            path, tuple(own.shape), tuple(own.stride()), dtype_of(value, own), str(own.device), isinstance(value, torch.Tensor),
            wide, own.clone() if keep else None, original, scale, allowed, sizes=sizes, small=parts.of(known, ours, scale.rms, sizes),
        )  # fmt: skip

    def permitted(self, inputs: Any, which: int) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
        """Return the outputs with TF32 operands, and the state after, where the program's flags permit those and it has such operators; else none."""
        if not self.may_use_tf32 or self.wide_problem or self.is_double(inputs):
            return [], {}
        rounding = tf32.RoundedOperands(tf32.permitted())
        values = [as_tensor(value) for _, value in leaves_of(self.run_wide(inputs, which, rounding))]
        self.may_use_tf32 = rounding.count > 0
        return (values, self._state_now(self.wide if not self.wide_problem else None)) if rounding.count else ([], {})


def _is_finite(tensor: torch.Tensor) -> bool:
    """Whether a tensor is real and finite: an error that is infinite because an operand overflowed would allow anything."""
    return tensor.is_floating_point() and oracle.all_finite(tensor)


def _finite_part(tensor: torch.Tensor) -> torch.Tensor:
    """Return values with nothing in place of Inf and NaN."""
    return torch.where(tensor.isfinite(), tensor, 0)


def _place(tensor: torch.Tensor) -> int:
    """Return the address of the memory that a tensor lies in, 0 where it has none of its own."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0


def _lies_densely(leaf: Leaf) -> bool:
    """Whether an output lies in memory in the order of its elements: so it is known how another one of its form has to lie."""
    return leaf.stride == tuple(torch.empty(leaf.shape, device="meta").stride())


def _form_of(leaf: Leaf) -> Leaf:
    """Return a leaf without values and without what is known of its errors."""
    return replace(leaf, exact=leaf.exact.new_empty(0), original=NO_ERROR, allowed=NO_ERROR, sizes={}, small=())


def _forget(answers: dict[Key, Answer], budget: int, counted: Counter[Key]) -> None:
    """Drop answers until they are within `budget` bytes or none is left: the newest of those counted least often (`_make_room` says why)."""
    held = sum(answer.bytes for answer in answers.values())
    while answers and held > budget:
        held -= answers.pop(min(reversed(answers), key=lambda key: counted[key])).bytes

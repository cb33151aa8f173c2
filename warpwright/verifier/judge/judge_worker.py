"""What runs inside the judge worker: it loads the task, makes inputs and states, and says whether an output is right.

It never imports a candidate. The seeds of hidden values come from the parent, once, and leave this process only as tensors.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import asdict, replace
from typing import Any

import torch

from warpwright.base import Case, Task, from_json
from warpwright.errors import is_full
from warpwright.tasks.modules.part_modes import apart
from warpwright.verifier.checks import INFINITE
from warpwright.verifier.draw import LEFT_OTHERWISE, MIXED, STRIDED, TAKEN, Draw, with_draw
from warpwright.verifier.judge import discrete, distributions
from warpwright.verifier.judge.behaviour import Form, behaviour_of, form_of, shares
from warpwright.verifier.judge.certificate import certify
from warpwright.verifier.judge.judgement import Judgement, identical, within
from warpwright.verifier.judge.original.answers import Answer, Key, key_of, leaves_of, tensors_of
from warpwright.verifier.judge.original.device_memory import Memory
from warpwright.verifier.judge.original.freed import keep_freed_memory
from warpwright.verifier.judge.original.held import digest_of
from warpwright.verifier.judge.original.on_host import OnHost, is_lost, lost_for
from warpwright.verifier.judge.original.reference import REDRAWN_STRENGTHS, Original
from warpwright.workers.inside import team
from warpwright.workers.inside.channel import serve_requests
from warpwright.workers.tensors import exchange, packing
from warpwright.workers.tensors.objects import kinds_of

DRAWN = (
    "The original draws random numbers from torch's generators: a program has to draw the same ones, by the same calls of torch in the same order"
)  # fmt: skip

MISREAD = ("structure", "shape", "values", "non_finite")
"""Checks that say so of the original's own answer."""

FRESH_KEPT, LARGE_BYTES = 3, 1 << 30
"""Shipments of inputs that stay available; of larger ones the latest only."""

ASIDE_SECONDS = 30.0
"""For all of them together, if each takes as long as the last answer that had to be worked out: others are judged at once."""

MOST_ASIDE, ASIDE_SHARE = 24, 3
"""Outputs that wait to be judged at most, and of the bytes for answers the share that they may take. (What is checked beyond is judged at once, in
the time that checks may take.)"""


def serve(request_fd: int, reply_fd: int, order: dict[str, Any]) -> None:
    """Serve requests until the parent closes the pipe."""
    if order["device"] == "cpu":
        keep_freed_memory()
    judge = JudgeWorker(order)
    names = (
        "hello", "open", "certify", "state", "ship", "compare", "compare_inputs", "compare_state", "unchanged", "probe", "viable", "forget",
        "trim", "host_only", "digest", "count", "take_state", "settle", "hands_out_again", "shared_by_modules", "drawn", "set_aside",
        "drop_aside",
    )  # fmt: skip
    operations = {name: _tidy(getattr(judge, name), order["device"]) for name in names}
    serve_requests(request_fd, reply_fd, operations, broken=lost_for)


SPARE_BYTES = 2 << 30
"""Cached but unused GPU memory that a judge may sit on between requests: other processes time and build on the same GPU."""


def _tidy(operation: Any, device: str) -> Any:
    """Return the operation, followed on CUDA by giving cached memory back to the driver."""
    if not device.startswith("cuda"):
        return operation

    def run(**arguments: Any) -> Any:
        try:
            return operation(**arguments)
        finally:
            if torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device) > SPARE_BYTES:
                torch.cuda.empty_cache()

    return run


class JudgeWorker:
    """The judge's state: the original, what it shipped, and the last output that it looked at."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order, self.device = order, order["device"]
        self.shelf = exchange.Shelf(order["exchange"], private=self.device == "cpu")
        self.memory = Memory(self.device)
        self.original: Original | None = None
        self.last: list[Any] = []
        self.aside: dict[int, Any] = {}
        """Outputs that are judged later, by number."""
        self.numbers = itertools.count()
        self.answer_seconds = 0.0
        """What it took this thread last, waiting for a GPU included but not for a core, to find a nominal output right by an answer that had to be
        worked out: how long each of those that wait will take."""
        self.shipped: dict[str, int] = {}
        """The bytes of inputs that can be taken, by owner, the latest last."""
        self.states: dict[int, dict[str, Any]] = {}
        self.layouts: dict[Key, bool] = {}
        """Whether the original misreads inputs at other strides, by case and state."""
        self.multiplies = self.asks_host = False
        self.full = False
        """Whether memory ran out since it was asked for a sound answer."""
        self.form: Form = []
        """Of the original's outputs on nominal inputs."""

    @property
    def _original(self) -> Original:
        if self.original is None:
            raise RuntimeError("the judge was asked before `open`")
        return self.original

    def hello(self) -> dict[str, Any]:
        """Answer, so that the parent knows that the process runs."""
        return {"isolation": self.order["isolation"]}

    def open(self, task: dict[str, Any], secret: str, host_only: bool, on_host: bool = False) -> dict[str, Any]:
        """Load the task and find out how the original behaves; return the facts a runner needs. What an earlier secret left is let go of.

        `on_host`: the CPU is asked first whether the original takes a state.
        """
        self.shelf.release_all()
        self.last, self.shipped, self.form = [], {}, []
        self.aside.clear()
        self.states.clear()
        self.layouts.clear()
        self.shelf.host_only = host_only
        original, facts = self._opened(from_json(Task, task), int(secret, 16) % (1 << 62), on_host)
        if self.device == "cpu":
            team.settle(lambda: original.run_wide(original.inputs(Case("nominal", original.secret % (1 << 31))), 0))
            original.current = None
        init = exchange.encode(original.reference.init_inputs, lambda tensor: self.shelf.put(tensor, "init"), trusted=True)
        modes = {"training": bool(original.model.training), "apart": apart(original.model)}
        return {"init": init, **modes, "source": original.reference.source_text, **facts}

    def _opened(self, task: Task, secret: int, on_host: bool) -> tuple[Original, dict[str, Any]]:
        """Return the original and how it behaves, within a share of a GPU's memory: the smallest one, if it takes little of that."""
        memory = self.memory
        for large in (False, True):
            memory.limit(task if large else None)
            try:
                original = self.original = Original(task, self.device, secret, _budget_bytes(self.device))
                self.judgement, self.on_host, self.asks_host = Judgement(original), OnHost(original), False
                if on_host:
                    self._ask_host_first()
                found = behaviour_of(original, self.memory)
            except Exception as error:
                if large or not memory.limited or not is_full(error):
                    raise
            else:
                if large or not memory.ran_out:
                    break
            self.original = self.judgement = self.on_host = original = None  # type: ignore[assignment]
            memory.free()
        if not large and memory.took_much:
            memory.limit(task)
        self.form, self.multiplies = found.form, found.multiplies
        return original, found.facts

    def _ask_host_first(self) -> None:
        """Have the CPU say, before each run from here on, whether the original takes its inputs."""
        self.asks_host, self._original.refusal = True, self.on_host.refusal

    def hands_out_again(self, case: dict[str, Any]) -> dict[str, Any]:
        """Return the numbers of the outputs that the original gives in the same memory in two calls: what it keeps, such as a table, is its own."""
        original = self._original
        inputs = original.inputs(from_json(Case, case))
        one, other = (tensors_of(original.run_own(inputs, 0)) for _ in range(2))
        return {"numbers": [number for number, (first, second) in enumerate(zip(one, other, strict=True)) if shares(first, second)]}

    def drawn(self, case: dict[str, Any], which: int) -> dict[str, Any]:
        """Return where the original's call on a case leaves torch's generators."""
        original = self._original
        original.run_own(original.inputs(from_json(Case, case)), which)
        original.current = None
        return {"left": original.draws.left}

    def shared_by_modules(self) -> dict[str, Any]:
        """Return the names of parameters and buffers that lie in the same memory in any two of its modules, as a tensor of its file does."""
        one, other = (self._original.reference.make_model().to(self.device).state_dict() for _ in range(2))
        return {"names": [name for name, tensor in one.items() if shares(tensor, other[name])]}

    # -- what goes to the workers

    def state(self, which: int) -> dict[str, Any]:
        """Ship a state by name. Of those that differ from another in one tensor, the latest stays, until the next of these."""
        for old in [old for old in self.states if old >= MIXED and which >= MIXED and old != which]:
            self.shelf.release(f"state{old}")
            del self.states[old]
        if which not in self.states:
            owner = f"state{which}"
            copies = packing.inlined(self._original.state(which))  # who takes them could write to what lies there: the original is given it too
            self.states[which] = {name: self.shelf.put(tensor, owner) for name, tensor in copies.items()}
        return {"state": self.states[which]}

    def settle(self, which: int, case: dict[str, Any]) -> dict[str, Any]:
        """Draw a state anew while the original is sound on a case in state 0 but not there. Whoever asks for it from now on is shipped the new one.

        (Baselines are given the timed state while they are built, which may be before. What was shipped stays: another thread's may be reading it.)
        """
        drawn, self.full = from_json(Case, case), False
        while self._unsound_there(drawn, which) and self._original.redrawn[which] < len(REDRAWN_STRENGTHS) - 1:
            self._original.redraw(which)
            self.states = {old: shipped for old, shipped in self.states.items() if old != which and old < LEFT_OTHERWISE}  # others follow from it
            self.layouts.clear()
            self.judgement.forget()
        return {"redrawn": self._original.redrawn[which], "full": self.full}

    def _unsound_there(self, drawn: Case, which: int) -> bool:
        """Whether the original is sound on a case in state 0 but not in this one. Where memory ran out nobody knows."""
        unsound = bool(self._problem(drawn, which)) and not self._problem(drawn, 0)
        return unsound and not self.full

    def ship(self, case: dict[str, Any], to: int = 0) -> dict[str, Any]:
        """Ship a case's inputs. Only the latest few shipments to one that asks (`to`) stay available."""
        drawn = from_json(Case, case)
        owner = f"case{abs(hash(key_of(drawn, 0)))}-{to}"
        before = [one for one in self.shipped if one.endswith(f"-{to}")]
        for old in before:
            if old == owner or self.shipped[old] > LARGE_BYTES:  # before others are drawn, which replace them
                self._let_go(old)
        inputs = self._original.inputs(drawn)
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors_of(inputs))
        kept = [old for old in before if old in self.shipped]
        for old in kept if size > LARGE_BYTES else kept[: len(kept) + 1 - FRESH_KEPT]:
            self._let_go(old)
        self.shipped[owner] = size
        shipped = exchange.encode(inputs, lambda tensor: self.shelf.put(tensor, owner), trusted=True)
        return {"inputs": shipped, "draws": self._original.draws.seed_of(drawn)}

    def _let_go(self, owner: str) -> None:
        del self.shipped[owner]
        self.shelf.release(owner)

    def forget(self) -> dict[str, Any]:
        """Let go of the shipped inputs and of the last output."""
        for owner in list(self.shipped):
            self._let_go(owner)
        self.last = []
        self._original.held.clear()
        return {}

    def count(self) -> dict[str, Any]:
        """Count the bytes and operations of the task, without values; or say why they cannot be counted."""
        from warpwright.timing import counting

        try:
            return {"work": asdict(counting.count(self._original.task))}
        except Exception as error:  # whatever the program does on the meta device
            return {"problem": f"{type(error).__name__}: {str(error)[:200]}"}

    def trim(self) -> dict[str, Any]:
        """Let go of answers that can be made again, and of cached memory."""
        self._original.forget()
        self._original.held.clear()
        self.judgement.forget()
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        return {}

    def viable(self, case: dict[str, Any], which: int, on_host: bool = False) -> dict[str, Any]:
        """Say why a hidden case cannot be used, or ""; and with which of its parameters it can: what varies is left out where it must be.

        And how long that took this thread, waiting for the GPU included, but not for a core. `on_host`: the CPU is asked first. "full": memory
        ran out, which may be no fault of the case: it is asked about once more when others have given back what they only cache.
        """
        if on_host and not self.asks_host:
            self._ask_host_first()
        drawn, which, began, self.full = from_json(Case, case), self._telling(which), time.thread_time(), False
        if drawn.name in INFINITE and self.multiplies:
            return {"problem": "infinities in sums of products mean nothing", "params": dict(drawn.params)}
        problem, draw = self._problem(drawn, which), Draw.of_case(drawn)
        for milder in (replace(draw, mild=1) if drawn.name in (*discrete.LEVEL, *distributions.CALM) else draw, replace(draw, fixed=1)):
            if problem and milder != draw and not draw.fixed:
                drawn = with_draw(drawn, milder)
                problem = self._problem(drawn, which)
        return {"problem": problem, "params": dict(drawn.params), "seconds": time.thread_time() - began, "full": self.full}

    def _telling(self, which: int) -> int:
        """Return the number of a state, 0 where the original has none: its answers are the same then, whichever is asked for. (So were nine of 81
        that a search of two proposals had worked out for KernelBench's L1-19.)"""
        return which if self._original.initial else 0

    def _problem(self, drawn: Case, which: int) -> str:
        if self.asks_host and (refused := self.on_host.problem(drawn, which)):
            return refused
        try:
            answer = self._original.answer(drawn, which)
        except Exception as error:  # whatever a program raises: many assert what they are given
            if is_lost(error):  # no call is answered any more
                raise
            if is_full(error):
                self.full = True
            return f"the original raises on it: {str(error)[:200]}"
        if self.form and not self._of_the_same_form(answer, drawn):
            return "the original answers in another shape"
        by_design = self._original.infinite and answer.settled
        if not answer.finite and (drawn.name in INFINITE or not (self._original.task.special_values or by_design)):
            elsewhere = self._original.infinite and not answer.settled
            return f"the original gives Inf or NaN on it{', in other places than float64' if elsewhere else ''}"
        if not answer.conditioned and drawn.name != "special":
            return "the original is itself off by more than 1 % on it"
        return self._misread(drawn, which) if drawn.name == STRIDED else ""

    def _misread(self, drawn: Case, which: int) -> str:
        """Say that the original's answer to inputs at other strides is not its answer to the same values without gaps, or "".

        (torch's product with a sparse matrix on CUDA reads some strided inputs as if they were dense. What is right there nobody knows.)
        """
        key = key_of(drawn, which)
        if key not in self.layouts:
            plain = with_draw(drawn, replace(Draw.of_case(drawn), turned=discrete.PLAIN))
            own = [value for _, value in leaves_of(self._original.run_own(self._original.inputs(plain), which))]
            if self.judgement.accepts(own, drawn, which):
                self.layouts[key] = False
            else:  # near ties may do that: what moved inputs answer is asked where all lies as it should
                own = [value for _, value in leaves_of(self._original.run_own(self._original.inputs(drawn), which))]
                self.layouts[key] = self.judgement.check(own, plain, which) in MISREAD
        return "the original answers otherwise than to the same values without gaps" if self.layouts[key] else ""

    def _of_the_same_form(self, answer: Answer, drawn: Case) -> bool:
        """Whether an answer has the outputs, dtypes and sizes of the nominal one.

        Other sizes are the original's own where real values alone were drawn: how many rows are above a threshold, say. Where integers, Booleans or
        numbers vary they may come of those, which say what a task's shapes are.
        """
        form = form_of(answer)
        if drawn.name != "nominal" and not Draw.of_case(drawn).fixed:
            return form == self.form
        return [(path, len(shape), dtype) for path, shape, dtype in form] == [(path, len(shape), dtype) for path, shape, dtype in self.form]

    def probe(self) -> dict[str, Any]:
        """Ship a small tensor, to see whether the exchange works."""
        return {"tensor": self.shelf.put(torch.arange(4096, dtype=torch.float32, device=self.device), "probe"), "sum": 4096 * 4095 / 2}

    def host_only(self) -> None:
        """Send CUDA tensors through files from here on."""
        self.shelf.host_only = True
        self.states.clear()

    # -- verdicts

    def certify(self, cases: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the sensitivity certificate, by cases that can be used."""
        certificate = certify(self._original, tuple(from_json(Case, case) for case in cases), self.judgement.check, advisory=False)
        self._original.answers.clear()  # no program meets these cases
        self.judgement.forget()
        return asdict(certificate)

    def set_aside(self, tree: Any, folder: str) -> dict[str, Any]:
        """Copy an exported output, to be compared later; return its number, none where it is no tensors, or so many wait that memory is short."""
        if exchange.foreign(tree) or len(self.aside) >= MOST_ASIDE or len(self.aside) * self.answer_seconds > ASIDE_SECONDS:
            return {}
        wanted = sum(exchange.told_bytes(item) for item in exchange.descriptors(tree))
        waiting = sum(tensor.untyped_storage().nbytes() for value in self.aside.values() for tensor in tensors_of(value))  # gaps included
        if waiting + wanted > self._original.budget // ASIDE_SHARE:
            return {}
        number = next(self.numbers)
        try:
            self.aside[number] = self._outputs(tree, folder)
        except Exception as error:
            if not is_full(error):
                raise
            return {}
        return {"number": number}

    def drop_aside(self) -> None:
        """Let go of outputs that nobody will ask about."""
        self.aside.clear()

    def compare(
        self, tree: Any, case: dict[str, Any], which: int, folder: str, previous: list[list[Any]], typical: bool = False, aside: int = -1
    ) -> dict[str, Any]:  # fmt: skip
        """Judge an exported output against the original's answer to `case` in state `which`.

        `previous`: (case, state) pairs this worker has seen earlier, to tell a cached answer from a merely wrong one. `typical`: say as well how
        large its errors are beside the original's typical ones. `aside`: the number under which it was set aside.
        """
        bad = exchange.foreign(tree)
        if bad:
            return {"check": "output_type", "reason": f"expected plain torch.Tensor outputs, saw {bad}"}
        drawn, which, began = from_json(Case, case), self._telling(which), time.thread_time()
        known = key_of(drawn, which) in self._original.answers
        self.last = []
        answer = (None if typical else self._original.sketch(drawn, which)) or self._original.answer(drawn, which)
        value = self.aside[aside] if aside >= 0 else self._outputs(tree, folder)
        result, sketched = self._judged(tree, value, answer, drawn, which, typical), answer.sketched
        del answer  # its values and those of another answer may not fit beside one another
        if sketched and result["check"]:  # only the whole answer refuses
            result = self._judged(tree, value, self._original.answer(drawn, which), drawn, which, typical)
        if result["check"] == "values":
            earlier = self._earlier(drawn, which, previous)
            if earlier:
                result = {**result, "check": "cached", "reason": f"the output is the right answer to an earlier call ({earlier}), not to this one"}
            elif self._original.draws.matter:
                result = {**result, "reason": f"{result['reason']}. {DRAWN}"}
        if not known and drawn.name == "nominal" and not result["check"]:
            self.answer_seconds = time.thread_time() - began
        self.aside.pop(aside, None)  # at the end: where memory is short the same is asked once more
        return result

    def _judged(self, tree: Any, value: Any, answer: Answer, drawn: Case, which: int, typical: bool) -> dict[str, Any]:
        """Judge an output's form and values by an answer: the whole one, or a sketch."""
        leaves = list(leaves_of(value))
        self.last = [leaf for _, leaf in leaves]
        wanted = [leaf.path for leaf in answer.leaves]
        if [path for path, _ in leaves] != wanted:
            return {"check": "structure", "reason": f"expected outputs {wanted}, saw {[path for path, _ in leaves]}"}
        kinds = tuple(kinds_of(value))
        if kinds != answer.kinds:
            return {"check": "structure", "reason": f"expected results {_named(answer.kinds)}, saw {_named(kinds)}"}
        elsewhere = self._elsewhere(tree, answer)
        if elsewhere:
            return {"check": "device", "reason": elsewhere}
        return self.judgement.by(self.last, answer, drawn) if answer.sketched else self.judgement.judge(self.last, drawn, which, typical)

    def _outputs(self, tree: Any, folder: str) -> Any:
        """Return exported outputs, each on the kind of device that it lay on: the original's are judged where the original leaves them."""
        return exchange.decode(tree, lambda item: exchange.take_where_it_lay(item, self.device, folder))

    def _elsewhere(self, tree: Any, answer: Answer) -> str:
        """Say which output is not on the device that the original leaves it on, or ""."""
        shipped = [str(item.get("device", "cpu")) for item in exchange.descriptors(tree)]
        wanted = [leaf for value, leaf in zip(self.last, answer.leaves, strict=True) if isinstance(value, torch.Tensor)]
        for device, leaf in zip(shipped, wanted, strict=False):
            if leaf.is_tensor and device.partition(":")[0] != leaf.device.partition(":")[0]:
                return f"{leaf.path}: expected it on {leaf.device}, as the original leaves it, saw it on {device}"
        return ""

    def _earlier(self, case: Case, which: int, previous: list[list[Any]]) -> str:
        """Return which earlier case the last output answers, or ""."""
        for data, state in previous:
            old, state = from_json(Case, data), self._telling(state)
            key = key_of(old, state)
            if key == key_of(case, which) or old.name == "zeros":
                continue
            if self.judgement.accepts(self.last, old, state) and self.judgement.far_apart(case, which, old, state):
                return f"{old.name} inputs" + ("" if state == which else ", under earlier parameters")
        return ""

    def unchanged(self, tree: Any, folder: str) -> dict[str, Any]:
        """Say whether an export is bit for bit the last output that was compared."""
        value = self._outputs(tree, folder)
        leaves = [leaf for _, leaf in leaves_of(value)]
        same = len(leaves) == len(self.last) and all(
            (identical(new, old) if isinstance(new, torch.Tensor) else new == old) for new, old in zip(leaves, self.last, strict=True)
        )
        return {"same": same}

    def digest(self, tree: Any, folder: str) -> dict[str, Any]:
        """Return a number that two exports share if they are bit for bit the same."""
        value = self._outputs(tree, folder)
        return {"digest": [digest_of(leaf.contiguous()) if isinstance(leaf, torch.Tensor) else str(leaf) for _, leaf in leaves_of(value)]}

    def compare_inputs(self, tree: Any, case: dict[str, Any], which: int, folder: str) -> dict[str, Any]:
        """Judge whether a worker's inputs are, after a call, what the original would have left."""
        original, drawn = self._original, from_json(Case, case)
        writes = original.mutates_inputs
        left = original.inputs_after(drawn, which) if writes else [(tensor, tensor) for tensor in tensors_of(original.inputs(drawn))]
        after = tensors_of(exchange.decode(tree, lambda item: exchange.take(item, self.device, folder=folder)))
        if len(after) != len(left):
            seen = f"after the call its inputs held {len(after)} tensors, before it {len(left)}: a list or dictionary of the caller's was changed"
            return {"check": "input_mutated", "reason": seen}
        for number, (new, (own, wide)) in enumerate(zip(after, left, strict=True)):
            if not (identical(new, own) or (writes and within(new, own, wide))):
                does = "is not what the original's call leaves of it" if writes else "was changed by the call, the original leaves it alone"
                return {"check": "input_mutated", "reason": f"input {number} {does}"}
        return {"check": ""}

    def compare_state(self, tree: Any, case: dict[str, Any], which: int, folder: str) -> dict[str, Any]:
        """Judge a worker's state after one call on `case` from state `which`."""
        seen = packing.unpacked(tree, lambda item: exchange.take(item, self.device, folder=folder))
        return self.judgement.judge_state(seen, from_json(Case, case), which)

    def take_state(self, tree: Any, names: list[str], seed: int, folder: str) -> dict[str, Any]:
        """Make a state of what a program's call left, with two elements of a tensor that calls change exchanged; return that tensor's name, or ""."""
        left = packing.unpacked(tree, lambda item: exchange.take(item, self.device, folder=folder))
        self.shelf.release(f"state{TAKEN}")
        self.states.pop(TAKEN, None)
        self.judgement.forget()
        return {"name": self._original.take(left, names, seed)}


def _named(kinds: tuple[tuple[str, str], ...]) -> str:
    """Say of which classes an output's parts are."""
    return ", ".join(f"{path}: {kind}" for path, kind in kinds) or "in no class of their own"


def _budget_bytes(device: str) -> int:
    """Return how much memory the float64 answers may take together: on CUDA a twelfth, since several judges may share a GPU."""
    if device.startswith("cuda"):
        return int(torch.cuda.get_device_properties(device).total_memory) // 12
    import os

    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 8

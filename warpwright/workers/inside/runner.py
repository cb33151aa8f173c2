"""What runs inside a candidate or baseline worker: build an entry, load state, take inputs, make one call, hand the outputs over.

It is told neither seeds nor case names nor whether a call will be checked. Checked and timed calls are the same three requests:
prepare, go, and perhaps export.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import inspect
import os
import struct
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from warpwright.workers import isolation
from warpwright.workers.inside import waiting
from warpwright.workers.inside.channel import serve_requests, short_traceback
from warpwright.workers.inside.construction import Program, generators_kept, imported, weights_left_out, written
from warpwright.workers.inside.device import device_failure
from warpwright.workers.inside.generators import begin_at, marks, of_process, seed_anew
from warpwright.workers.inside.graphs import Graph
from warpwright.workers.inside.integrity import Watch
from warpwright.workers.inside.memory import cache_bytes, malloc_options, poison_cuda
from warpwright.workers.inside.outputs import copies_of, lies, overlap, problem_of, views_of
from warpwright.workers.inside.state import held_state, restored, set_mode, state_of, state_places, versioned
from warpwright.workers.tensors import exchange, packing, variants
from warpwright.workers.tensors.answer import KEPT, describer, worked_out

FLUSH_LIMIT = 1 << 30
TWIN_SECONDS = 1.0
"""A class that takes longer to construct is constructed once."""
COLLECT_EVERY = 64


def serve(request_fd: int, reply_fd: int, order: dict[str, Any]) -> None:
    """Serve requests until the parent closes the pipe."""
    runner = Runner(order)
    operations = {
        name: getattr(runner, name)
        for name in (
            "hello", "build", "load_state", "restore_state", "set_state", "prepare",
            "export", "keep", "census", "lock", "device_facts", "receive", "host_only",
            "release_memory", "trim", "drawn", "line_up", "switch_mode", "load", "twin", "part", "waited", "launches",
        )
    }
    stops = bool(order.get("stops"))
    serve_requests(request_fd, reply_fd, operations, runner.call, lambda: runner.patience, stops, lambda: device_failure(runner.synchronize))


class Runner:
    """The worker's state: its programs, the inputs in their slot, the outputs of the last call."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.device = order["device"]
        self.folder = order["folder"]
        self.shelf = exchange.Shelf(order["exchange"])
        self.programs: dict[str, Program] = {}
        self.classes: dict[str, tuple[type, float]] = {}
        """Of the entries that are one, with the seconds that it took to construct."""
        self.program: Program | None = None
        self.inputs: list[Any] = []
        self.slot_form: Any = None
        self.line: list[list[Any]] = []
        """The inputs of each call of a turn."""
        self.graphs: dict[str, Graph] = {}
        """The captured turns of the entries that can be captured, on `line`."""
        self.graph: Graph | None = None
        """The one that the next call launches."""
        self.turn = False
        """Whether the next call is a turn of all of `line`."""
        self.patience = 0.0
        self.wait = self.own_seconds = 0.0
        """Of a call of nothing: for how long the device is to be at work, and for how long the last one took."""
        self.outputs: Any = None
        self.kept: Any = None
        self.held: dict[int, torch.Tensor] = {}
        """Copies of the last outputs by their id, made before the call answered, until they are handed over."""
        self.calls = 0
        self.flush_buffer: torch.Tensor | None = None
        self.synchronize = waiting.synchronizer(self.device)
        self.describe = describer() if self.device == "cpu" else None
        self.probe = ctypes.create_string_buffer(os.urandom(8), 8)
        torch.set_grad_enabled(False)
        gc.enable()  # as a user's program has it, which may turn it off for a while in a call, and on again
        gc.set_threshold(0)  # by itself it never runs: a collection inside a timed call would be noise; `prepare` collects instead
        self.malloc_options = malloc_options()
        self.watch: Watch | None = None
        self.zygotes_notes = self.device == "cpu"
        """Do the notes hold that were taken before the fork? CUDA's initialisation replaces functions of torch.cuda."""
        self.generators: list[torch.Generator] = []
        """What programs draw from, noted before there is one."""

    # -- requests

    def hello(self) -> dict[str, Any]:
        """Say what the isolation of this process reached."""
        where = [ctypes.addressof(self.probe), self.probe.raw.hex()]
        return {"isolation": self.order["isolation"], "pid": os.getpid(), "threads": torch.get_num_threads(), "probe": where}

    def load(self, modules: list[str]) -> dict[str, Any]:
        """Import what a program will need, ours or the original's packages, before there is one; what cannot be imported is left to it."""
        self.zygotes_notes &= all(name in sys.modules for name in modules)  # a package may replace functions of torch
        for name in modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        return {}

    def build(
        self, entry: str, files: list[list[str]], class_name: str, init: Any, training: bool | None, stateful: bool, lazy: Sequence[int] = (),
        apart: Sequence[str] = (), as_eager_draws: bool = False, tf32: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Write the files, import the first, construct its class with the task's own arguments.

        `stateful`: a call changes parameters or buffers, and answers with where they lie. `lazy`: numbers of the outputs that the original leaves
        conjugated or negated by a mark. `apart`: parts of the original, by path, that are not in its mode of training. `as_eager_draws`:
        torch.compile is to draw the random numbers that eager draws. `tf32`: the task permits TF32, and torch's flags in this process do.
        """
        if tf32:  # before the settings are noted
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        if self.watch is None:
            folders, own = (self.folder + os.sep, self.order["exchange"] + os.sep), {"the runner": self, "the runner's shelf": self.shelf}
            self.generators = of_process(self.device)
            self.watch = Watch(folders, use_prepared=self.zygotes_notes, own=own)
        start = time.perf_counter()
        if as_eager_draws:
            config: Any = importlib.import_module("torch._inductor.config")
            config.fallback_random = True
        for name in [name for name in sys.modules if name.split(".")[0] == "warpwright"]:
            del sys.modules[name]  # a candidate that imports the harness gets a fresh copy, not the one at work
        path = written(Path(self.folder, "source", entry), files)
        self._hold(entry, self._construct(path, entry, class_name, init), (training, apart), stateful, lazy)
        return {"seconds": time.perf_counter() - start}

    def _hold(self, entry: str, instance: Any, mode: tuple[bool | None, Sequence[str]], stateful: bool = False, lazy: Sequence[int] = ()) -> None:
        module = instance if isinstance(instance, torch.nn.Module) else None
        if module is not None:
            torch.nn.Module.to(module, self.device)
            set_mode(module, *mode)
        self.programs[entry] = Program(instance, module, stateful, frozenset(lazy))

    def twin(self, entry: str, other: str, init: Any, training: bool | None, apart: Sequence[str] = ()) -> dict[str, Any]:
        """Construct another instance of an entry's class; {"none"} where it is no module, or takes long to construct, or there cannot be two.

        {"shared"}: names of its parameters and buffers that lie in the memory of another program's.
        """
        kind, seconds = self.classes.get(entry, (None, 0.0))
        if kind is None or seconds > TWIN_SECONDS or self.programs[entry].module is None:
            return {"none": True}
        try:
            with generators_kept(self.device):
                instance = kind(*exchange.decode(init, lambda item: exchange.take(item, self.device), trusted=True))
            self._hold(other, instance, (training, apart), lazy=tuple(self.programs[entry].lazy))
        except Exception:  # whatever a constructor raises that was not made for it: a program may be the only one of its kind
            return {"none": True}
        return {"shared": self._shared(other)}

    def _shared(self, entry: str) -> list[str]:
        """Return the names of an entry's parameters and buffers that lie in the memory of another one's."""
        modules = {name: program.module for name, program in self.programs.items() if program.module is not None}
        states = {name: {path: tensor for path, tensor in state_of(module).items() if lies(tensor)} for name, module in modules.items()}
        others = [tensor for name, state in states.items() if name != entry for tensor in state.values()]
        return [path for path, tensor in states.get(entry, {}).items() if any(overlap(tensor, one) for one in others)]

    def part(self, others: list[str]) -> dict[str, Any]:
        """Let go of twins."""
        self.program, self.outputs = None, None
        for other in others:
            self.programs.pop(other, None)
        return {}

    def _construct(self, path: str, entry: str, class_name: str, init: Any) -> Any:
        value = imported(path, f"candidate_{entry}", class_name)
        if not inspect.isclass(value):
            return value
        torch.manual_seed(0)
        began = time.perf_counter()
        with weights_left_out() if self.order.get("role") == "baseline" else contextlib.nullcontext():
            instance = value(*exchange.decode(init, lambda item: exchange.take(item, self.device), trusted=True))
        self.classes[entry] = value, time.perf_counter() - began
        return instance

    def load_state(self, entry: str, state: dict[str, Any]) -> dict[str, Any]:
        """Load parameters and buffers by name with `load_state_dict`, strictly."""
        program = self.programs[entry]
        tensors = packing.taken(state, self.device)
        if program.module is None:
            return {"mismatch": f"the entry is no torch.nn.Module, and the original has {len(tensors)} parameters"} if tensors else {}
        if program.stateful:
            program.loaded = {name: tensor.clone() for name, tensor in tensors.items()}
        return self._loaded(program.module, tensors)

    def restore_state(self, entry: str, state: dict[str, Any]) -> dict[str, Any]:
        """Write those tensors of the state that are not what was loaded last, or what `state` has in its place: the others count as unchanged, by
        their versions too, as they are after a user's call. Where one is missing or of another kind, the whole is loaded."""
        program = self.programs[entry]
        if program.module is None:
            return {}
        tensors = program.loaded | packing.taken(state, self.device)
        if restored(program.module, tensors):
            return {"places": state_places(program.module)}
        return self._loaded(program.module, {name: tensor.clone() for name, tensor in tensors.items()})  # a module may keep what it is given

    @staticmethod
    def _loaded(module: torch.nn.Module, tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
        try:
            module.load_state_dict(versioned(module, tensors), strict=True)
        except RuntimeError as error:
            return {"mismatch": str(error)[-2000:]}
        return {"places": state_places(module)}

    def set_state(self, entry: str, state: dict[str, Any], hidden: bool = False) -> dict[str, Any]:
        """Change parameters and buffers in place, as an optimizer would: load_state_dict's hooks do not run.

        `hidden`: through `.data`, which torch's version counters do not show; a program that has a method `refresh` is told by it.
        """
        module = self.programs[entry].module
        if module is None:
            return {}
        own = {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}
        for name, tensor in packing.taken(state, self.device).items():
            if name not in own:
                return {"mismatch": f"no parameter or buffer {name!r}"}
            (own[name].data if hidden else own[name]).copy_(tensor)
        refresh = getattr(module, "refresh", None)
        if hidden and callable(refresh):
            refresh()
        return {"places": state_places(module)}

    def switch_mode(self, entry: str) -> dict[str, Any]:
        """Put a module into the other mode of training and evaluation, and back."""
        module = self.programs[entry].module
        if module is not None:
            before = [(part, part.training) for part in module.modules() if hasattr(part, "training")]
            module.train(not module.training)
            module.train(not module.training)
            for part, training in before:
                part.training = training
        return {}

    def prepare(
        self, entry: str | None, inputs: Any, slot: str = "new", flush: bool = False, poison: int = 0, warm: bool = False, spin: float = 0.0,
        wait: float = 0.0, draws: int | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Take the inputs in, at new addresses (`new`) or over the last call's (`same`); let go of the last outputs; flush the cache.

        Of inputs that come without values the addresses are answered, and the parent puts the values there while this process is stopped.

        `poison`: nonzero byte that fresh memory is filled with, on CUDA the allocator's free cached blocks. `warm`: the program is
        called on the last inputs first, so that its host code is in the CPU's caches. `spin`: seconds for which to wait busily for the next request.
        `wait`: without an entry, on CUDA, about so many seconds is the device kept at work by nothing; `waited` says how many those were.
        `draws`: where torch's generators begin in the call, all of them.
        """
        if warm and entry is not None and self.program is self.programs[entry] and self.inputs:
            self.outputs = self.program.call(*self.inputs)
            self.synchronize()
        self._end_turn(spin)
        if entry is None:
            self.program, self.wait = None, wait
            if flush:  # a call of nothing is as cold as any other
                self._flush()
                self.synchronize()
            return {}
        self.program = self.programs[entry]
        self.inputs = self._place(inputs, slot)
        if self.device.startswith("cuda"):
            if poison:
                poison_cuda(self.device, poison)
        else:
            self.malloc_options(poison)
        if flush:
            self._flush()
        if draws is not None:
            begin_at(draws, self.generators)
        self.synchronize()
        placed: list[torch.Tensor] = []
        exchange.encode(self.inputs, placed.append)
        return {"places": [tensor.data_ptr() for tensor in placed]} if self.device == "cpu" else {}

    def _end_turn(self, spin: float) -> None:
        """Let go of the last outputs, and collect garbage now and then."""
        self.outputs, self.held, self.graph, self.turn, self.patience = None, {}, None, False, spin
        self.calls += 1
        if self.calls % COLLECT_EVERY == 0:
            gc.collect()
            if self.order.get("role") == "baseline":  # a compiler's modules, some 0.1 s to look through, while passes take 0.05
                gc.freeze()

    def line_up(self, entry: str | None, inputs: Any, seeds: list[int], graph: bool = False, spin: float = 0.0) -> dict[str, Any]:
        """Lay out a turn of one call for each of `seeds`, on variants of `inputs`, each in memory of its own (`variants.py`).

        Turns of one form keep their memory. On a CPU the addresses are answered, for inputs that come without values. `graph`: the calls are captured
        as one CUDA graph, which the turn launches; {"refused"} says why they cannot be. Without an entry, the turn is one of nothing.
        """
        self._end_turn(spin)
        if entry is None:
            self.program = None
            return {}
        self.turn, self.program = True, self.programs[entry]
        if not self.device.startswith("cuda"):
            self.malloc_options(0)  # as before a single timed call: memory is not filled
        empty = not any(kind in item for item in exchange.descriptors(inputs) for kind in ("data", "file", "cuda"))
        self._fill_line(inputs, seeds, filled=not empty)
        if graph:
            try:
                self.graph = self.graphs.get(entry) or Graph.of(self.program, self.line)
            except Exception as error:  # whatever a program does that a capture does not permit
                self.turn = False
                return {"refused": short_traceback(error, 4)}
            self.graphs[entry] = self.graph
            self.graph.poison()
        self.synchronize()
        placed: list[torch.Tensor] = []
        if self.device == "cpu":
            exchange.encode(self.line, placed.append)
        return {"places": [tensor.data_ptr() for tensor in placed]}

    def _fill_line(self, inputs: Any, seeds: list[int], filled: bool = True) -> None:
        """Write the variants of the inputs over those of the last turn, if they have the same form. `filled`: the inputs come with values."""
        base = self._place(inputs, "same")
        form = [self.slot_form, len(seeds)]
        if form != self.line_form:
            self.line, self.graphs = [], {}
            self.line = [variants.like(base) for _ in seeds]
            self.line_form, self.slots = form, variants.Slots(self.line)
        if filled:
            self.slots.write(base, seeds)

    line_form: Any = None
    slots = variants.Slots(())

    def _place(self, inputs: Any, slot: str) -> list[Any]:
        """Return the inputs in memory of this process. `same` keeps tensor objects, addresses and version counters, and changes values."""
        old: list[torch.Tensor] = []
        exchange.encode(self.inputs, old.append)
        forms: list[Any] = []
        exchange.decode(inputs, lambda item: forms.append((item["dtype"], item["shape"], item["stride"], item.get("lead"))), trusted=True)
        there = len(old) == len(forms)  # not after `release_memory` and a turn, whose calls have inputs of their own
        reuse = iter(old) if slot == "same" and there and forms == self.slot_form else None
        self.slot_form = forms
        placed = exchange.decode(inputs, lambda item: exchange.receive(item, self.device, into=next(reuse) if reuse else None), trusted=True)
        del old
        return list(placed)

    def call(self, hold: bool = False) -> bytes:
        """The timed call: one forward, then wait for the whole device. Returns what came out and where it lies in memory, for the parent.

        `hold`: copy what came out, and look whether the device works on. What is launched when the call is over is not in the copy, unless quick,
        and is seen at work, unless it is short; for it to be both, which of the two is done first is left to chance.
        """
        self.patience = 0.0  # what was asked for is over with the wait for this call: after it the process has to be idle
        program = self.program
        if program is None and self.wait:
            return self._wait_for_the_device()
        outputs = self.outputs = self._outputs_of(program) if program is not None else None
        self.synchronize()
        waited = b""
        if hold:
            waited = WAITED.pack(self._held(outputs) if program is not None else waiting.longest(self.synchronize))
        if self.describe is None or program is None:
            return waited
        state = b"n" if not program.stateful or program.module is None else self.describe(held_state(program.module))
        return PAIR + self.describe(outputs) + state

    def _wait_for_the_device(self) -> bytes:
        """Keep the device at work for a while, and wait for it, by a clock of this process's own."""
        self.own_seconds = waiting.kept_at_work(self.wait, self.synchronize)
        return b""

    def waited(self) -> dict[str, Any]:
        """Return the seconds of the last call of nothing that kept the device at work, by this process's clock."""
        return {"seconds": self.own_seconds}

    def launches(self, count: int, loops: int) -> dict[str, Any]:
        """Return the seconds in which this thread sends `count` kernels that do next to nothing to the device, `loops` times: how quick its core is
        at what a program that waits for the host does. Asked of trusted processes."""
        return {"seconds": waiting.launches(count, loops, self.device, self.synchronize)}

    def _outputs_of(self, program: Program) -> Any:
        """Make the call, or the calls of a turn."""
        if self.graph is not None and self.turn:
            return self.graph.launch()
        call = program.call
        if program.lazy:
            return [worked_out(call(*inputs), program.lazy) for inputs in self.line] if self.turn else worked_out(call(*self.inputs), program.lazy)
        return [call(*inputs) for inputs in self.line] if self.turn else call(*self.inputs)

    def _held(self, outputs: Any) -> float:
        """Copy what came out; return the longest wait for the device, before that or after it."""
        looked_first = os.urandom(1)[0] & 1
        waited = waiting.longest(self.synchronize) if looked_first else 0.0
        self.held = copies_of(outputs)
        self.synchronize()
        return waited if looked_first else waiting.longest(self.synchronize)

    def export(self, what: str = "outputs", at: int | None = None) -> dict[str, Any]:
        """Hand over the last outputs, the kept ones, the inputs as they are now, or the state; of a turn, those of its call number `at`.

        Of outputs that were held the copies are handed over, once: what is exported next are the outputs as they are then.
        """
        owner = f"{what}-{self.calls}"
        for old in [old for old in self.shelf._alive if old != owner]:
            self.shelf.release(old)
        if what == "state":
            assert self.program is not None
            state = state_of(self.program.module) if self.program.module is not None else {}
            return {"tree": packing.packed(state, lambda tensor: self.shelf.put(tensor, owner))}
        inputs = self.inputs if at is None else self.line[at]
        value = {"outputs": self.outputs if at is None else self.outputs[at], "kept": self.kept, "inputs": inputs}[what]
        tensors: list[torch.Tensor] = []
        held, self.held = (self.held, {}) if what == "outputs" and at is None else ({}, self.held)

        def put(tensor: torch.Tensor) -> dict[str, Any]:
            problem = problem_of(tensor)
            if problem:
                return {"not_plain": problem}
            tensors.append(tensor)
            return self.shelf.put(held.get(id(tensor), tensor), owner)

        tree = exchange.encode(value, put)
        return {"tree": tree, "aliases": self._aliases(tensors, inputs) if what == "outputs" else []}

    def _aliases(self, outputs: list[torch.Tensor], arguments: list[Any]) -> list[list[str]]:
        """Return, for each output, what it shares memory with."""
        held: list[tuple[str, torch.Tensor]] = []
        inputs: list[torch.Tensor] = []
        exchange.encode(arguments, inputs.append)
        held += [(f"input {number}", tensor) for number, tensor in enumerate(inputs)]
        if self.program is not None and self.program.module is not None:
            held += list(state_of(self.program.module).items())
        kept: list[torch.Tensor] = []
        exchange.encode(self.kept, kept.append)
        held += [(KEPT, tensor) for tensor in kept]
        aliases = []
        for number, output in enumerate(outputs):
            others = [(f"output {other}", tensor) for other, tensor in enumerate(outputs) if other < number]
            aliases.append([name for name, tensor in held + others if overlap(output, tensor)])
        return aliases

    def keep(self) -> dict[str, Any]:
        """Hold on to the memory of the last outputs while further calls are made. The objects are let go of, as by who keeps a view of each."""
        self.kept = views_of(self.outputs)
        return {}

    def drawn(self) -> dict[str, Any]:
        """Return where the last call has left torch's generators."""
        return {"left": marks(self.generators)}

    def release_memory(self) -> dict[str, Any]:
        """Let go of inputs, outputs and cached memory: other processes need the device's memory meanwhile."""
        self.inputs, self.outputs, self.held, self.kept, self.slot_form = [], None, {}, None, None
        self.line, self.line_form, self.graphs, self.graph, self.turn = [], None, {}, None, False
        self.slots = variants.Slots(())
        self.shelf.release_all()
        gc.collect()
        return self.trim()

    def trim(self) -> dict[str, Any]:
        """Give memory that is cached but not used back to the device. Nothing is collected: a candidate's finalisers may not run between
        its call and the look at its answer."""
        if self.device.startswith("cuda"):
            _give_back_cache()
        return {}

    def census(self) -> dict[str, Any]:
        """Report what the watch found. Where the device is in error nothing is: settings and generators cannot be read then."""
        assert self.watch is not None
        self.synchronize()
        report = self.watch.report()
        if self.watched != "none":
            report["global_flags"] += self.watch.changed_generators(self.watched == "others")
        facts: dict[str, Any] = {}
        if self.device.startswith("cuda"):
            facts["peak_bytes"] = torch.cuda.max_memory_allocated(self.device)
        return {"found": report, "facts": facts}

    watched = "none"

    def lock(self, filtered: bool, random: str) -> dict[str, Any]:
        """The build is over: from here on no process, no program, no connection, no file outside the work folder.

        `random`: which random generators a call leaves alone: "all", "others" than torch's, from which the original draws, or "none".
        """
        assert self.watch is not None
        seed_anew()  # a program that seeds one again is seen by the next census
        self.watch.changed_generators()
        self.watched = random
        self.watch.lock()
        problem = isolation.lock(placed=self.device != "cpu") if filtered else "not asked for"
        return {"filter": problem}

    def receive(self, tensor: dict[str, Any]) -> dict[str, Any]:
        """Take one tensor and say its sum: whether the exchange works between the judge and here."""
        return {"sum": float(exchange.take(tensor, self.device).double().sum())}

    def host_only(self) -> None:
        """Send CUDA tensors through files from here on."""
        self.shelf.host_only = True

    def device_facts(self) -> dict[str, Any]:
        """Return the cache size that a flush covers."""
        return {"cache_bytes": cache_bytes(self.device), "flush_bytes": self._flush_bytes()}

    # -- cold cache

    def _flush_bytes(self) -> int:
        return min(2 * cache_bytes(self.device), FLUSH_LIMIT)

    def _flush(self) -> None:
        """Evict the last-level cache by changing twice its size."""
        if self.flush_buffer is None:
            self.flush_buffer = torch.zeros(self._flush_bytes() // 4, dtype=torch.int32, device=self.device)
        self.flush_buffer.add_(1)


_give_back_cache: Callable[[], None] = getattr(torch._C, "_cuda_emptyCache", lambda: None)
"""Taken before any candidate is imported."""

PAIR = b"(" + struct.pack("=I", 2)

WAITED = struct.Struct("=d")
"""Seconds of a wait for the device, in the answer of a call that was held."""

"""A native plan while it is built: memory, steps, and the C++ text that comes of them. Views are strides."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.generate import function
from warpwright.domains.graph.cpp.kernel import Kernel, head
from warpwright.domains.graph.cpp.program import Unsupported
from warpwright.domains.graph.ir import is_tensor, value
from warpwright.domains.graph.plan import loops, shim
from warpwright.domains.graph.plan.memory import Memory, Place, arrange, row_major

MOST_ARENA = 256 << 20
"""Bytes that a thread keeps between calls."""
MOST_LITERAL = 4096
"""Elements up to which what depends on no input is written out."""


@dataclass(frozen=True)
class Plan:
    """A plan's source, and what a caller has to know of it."""

    source: str
    results: tuple[tuple[tuple[int, ...], tuple[int, ...], torch.dtype], ...]
    """Sizes, strides and type of each result, which the caller makes."""
    symbols: tuple[str, ...]
    """Functions of torch's shim that it is given, in order."""


@dataclass
class Builder:
    """A plan being built. `parameters` are the tensors that it is called with, in order."""

    graph: fx.Graph
    parameters: Sequence[fx.Node]
    literals: Mapping[str, torch.Tensor]
    results: Sequence[fx.Node]
    wanted: Sequence[tuple[int, ...]]
    """Strides of each result."""
    places: dict[fx.Node, Any] = field(default_factory=dict)
    memories: list[Memory] = field(default_factory=list)
    steps: list[list[str]] = field(default_factory=list)
    kernels: dict[str, str] = field(default_factory=dict)
    """Text of each kernel, without its name -> its name."""
    forms: dict[tuple[Any, ...], int] = field(default_factory=dict)
    slots: dict[tuple[Any, ...], int] = field(default_factory=dict)
    constants: list[str] = field(default_factory=list)
    symbols: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Function pointer -> symbol and parameters."""
    copies: list[Place] = field(default_factory=list)
    """Those made for the present call."""
    calls_torch: bool = False

    # --- memory ---

    def memory(self, kind: Any, number: int = 0, bytes: int = 0) -> Memory:
        """Return a new piece of memory, written by the present step."""
        memory = Memory(kind, f"m{len(self.memories)}", number, bytes, len(self.steps), len(self.steps))
        self.memories.append(memory)
        return memory

    def fresh(self, val: torch.Tensor, final: bool = True) -> Place:
        """Return the place of a tensor that the present step writes: a result's own where it lies as the caller wants it."""
        sizes, strides = tuple(val.shape), tuple(val.stride())
        room = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) if val.numel() else 0
        number = self._result_of(val, room) if final else None
        kind = "arena" if number is None else "result"
        return Place(self.memory(kind, number or 0, room * val.element_size()), 0, sizes, strides, val.dtype)

    def _result_of(self, val: torch.Tensor, room: int) -> int | None:
        for number, node in enumerate(self.results):
            own = value(node)
            same = own.untyped_storage()._cdata == val.untyped_storage()._cdata and own.storage_offset() == val.storage_offset() == 0
            if same and own.stride() == self.wanted[number] and own.numel() == room == val.numel():
                return number
        return None

    def temporary(self, sizes: Sequence[int], dtype: torch.dtype) -> Place:
        """Return a place in the arena for something of the present step."""
        return self.fresh(torch.empty(tuple(sizes), dtype=dtype, device="meta"), final=False)

    def literal(self, tensor: torch.Tensor) -> Place:
        """Return the place of a tensor that is written out, row-major."""
        memory = self.memory("literal", len(self.constants))
        place = Place(memory, 0, tuple(tensor.shape), row_major(tensor.shape), tensor.dtype)
        items = ", ".join(loops.number(item, place.type) for item in tensor.contiguous().flatten().tolist())
        self.constants.append(f"alignas(64) static const {place.type} literal_{memory.number}[] = {{{items}}};")
        return place

    def used(self, *places: Place) -> None:
        """Note that the present step reads (or writes) these places."""
        for place in places:
            place.memory.last = max(place.memory.last, len(self.steps))

    def place(self, node: Any) -> Place:
        """Return where a node's tensor lies."""
        place = self.places.get(node)
        if not isinstance(place, Place):
            raise Unsupported(f"{node}, which is no tensor of the plan")
        return place

    def step(self, lines: Iterable[str], *places: Place) -> None:
        """Add a step that reads and writes `places`."""
        self.used(*places)
        self.steps.append([line.replace("@STEP", str(len(self.steps) + 1)) for line in lines])

    @property
    def now(self) -> int:
        """The present step as plan_run returns it."""
        return len(self.steps) + 1

    def contiguous(self, place: Place) -> Place:
        """Return a contiguous copy."""
        to = self.temporary(place.sizes, place.dtype)
        self.step(loops.copy(to, place), to, place)
        self.copies.append(to)
        return to

    # --- torch's library ---

    def form(self, place: Place) -> int:
        """Return the number of a tensor's form."""
        return self.forms.setdefault((place.sizes, place.strides, place.dtype), len(self.forms))

    def handle(self, place: Place) -> str:
        """Return the C++ expression of a tensor as torch's library takes it."""
        self.calls_torch = True
        self.used(place)
        form = self.form(place)
        slot = self.slots.setdefault((place.memory.name, place.offset, form), len(self.slots))
        return f"tensor(slots[{slot}], {place.pointer}, form{form}, @STEP)"

    def torch_call(self, node: fx.Node) -> None:
        """Add a call of any operator that the shim has."""
        prefix = f"t{len(self.steps)}"
        if not all(is_tensor(arg) for arg in node.all_input_nodes):
            raise Unsupported(f"{node.target} of several results of another call")
        call = shim.call(node, lambda arg: self.handle(self.place(arg)), prefix)
        vals = node.meta["val"]
        vals = [vals] if isinstance(vals, torch.Tensor) else list(vals)
        pointer = "f_" + call.symbol.removeprefix(shim.PREFIX)
        self.symbols[pointer] = (call.symbol, ", ".join([*call.parameters, *["AtenTensorHandle*"] * len(vals)]))
        places, lines = [], [*call.before]
        for val in vals:
            memory = self.memory("made")
            place = Place(memory, 0, tuple(val.shape), tuple(val.stride()), val.dtype)
            self.form(place)
            places.append(place)
            lines.append(f"Made h{memory.name};")
        arguments = [*call.arguments, *(f"&h{place.memory.name}.handle" for place in places)]
        lines.append(f"if ({pointer}({', '.join(arguments)})) throw Failure{{@STEP}};")
        lines += [f"char* const {p.memory.name} = h{p.memory.name}.data(form{self.form(p)}, @STEP);" for p in places]
        self.step(lines, *places)
        self.places[node] = places[0] if isinstance(node.meta["val"], torch.Tensor) else places

    # --- the graph ---

    def settle(self) -> None:
        """Let the copies that were made for a call live as long as it takes."""
        for place in self.copies:
            place.memory.last = max(place.memory.last, len(self.steps) - 1)
        self.copies.clear()

    def views(self, node: fx.Node) -> bool:
        """Take down where a call's result lies that is a view, or views, of its arguments; False for another call."""
        val = node.meta["val"]
        shared_places = [self._shares(node, one) if isinstance(one, torch.Tensor) else None for one in ([val] if is_tensor(node) else val)]
        if any(place is None for place in shared_places):
            return False
        self.places[node] = shared_places[0] if is_tensor(node) else shared_places
        return True

    def _shares(self, node: fx.Node, val: torch.Tensor) -> Place | None:
        """Return the place of a value that is a view of an argument."""
        for arg in node.all_input_nodes:
            if not is_tensor(arg) or not isinstance(self.places.get(arg), Place):
                continue
            own, base = value(arg), self.place(arg)
            if own.untyped_storage()._cdata == val.untyped_storage()._cdata and own.dtype == val.dtype:
                return base.viewed(tuple(val.shape), tuple(val.stride()), int(val.storage_offset()) - int(own.storage_offset()))
        return None

    def kernel(self, node: fx.Node, kernel: Kernel) -> None:
        """Add a fused kernel, on its operands as they lie where it can be written so."""
        places = [self.place(arg) for arg in node.args]
        operands = [places[i] for i in kernel.operands]
        text = self._kernel_text(kernel, operands)
        if text is None:
            operands = [place if place.contiguous else self.contiguous(place) for place in operands]
            text = self._kernel_text(kernel, operands)
        if text is None:
            raise Unsupported(f"{kernel.__name__} in the layouts of its operands")
        name = self.kernels.setdefault(text, f"kernel_{len(self.kernels)}")
        vals = node.meta["val"]
        outputs = [self.fresh(val) for val in ([vals] if isinstance(vals, torch.Tensor) else vals)]
        arguments = [place.pointer for place in (*operands, *outputs)]
        self.step([f"{name}({', '.join([*arguments, 'threads'])});"], *operands, *outputs)
        self.places[node] = outputs[0] if isinstance(vals, torch.Tensor) else outputs

    def _kernel_text(self, kernel: Kernel, operands: Sequence[Place]) -> str | None:
        try:
            return function(kernel.program, "@NAME", [place.strides for place in operands])
        except Unsupported:
            return None

    # --- the end ---

    def finish(self) -> Plan:
        """Return the plan after its last call."""
        for number, node in enumerate(self.results):
            source = self.place(node)
            if source.memory.kind == "result" and source.memory.number == number:
                continue
            to = Place(self.memory("result", number), 0, source.sizes, self.wanted[number], source.dtype)
            self.step(loops.copy(to, source), to, source)
        arena = arrange([memory for memory in self.memories if memory.kind == "arena"])
        if arena > MOST_ARENA:
            raise Unsupported(f"{arena >> 20} MB between its calls")
        forms = [(value(node), self.wanted[number]) for number, node in enumerate(self.results)]
        results = tuple((tuple(val.shape), tuple(strides), val.dtype) for val, strides in forms)
        symbols = {**{name: (symbol, "") for name, symbol in shim.BASE.items()}, **self._products(), **self.symbols}
        return Plan(self._source(arena, symbols), results, tuple(symbol for symbol, _ in symbols.values()))

    def _products(self) -> dict[str, tuple[str, str]]:
        text = "\n".join(line for lines in self.steps for line in lines)
        return {name: (shim.PREFIX + own, parameters) for name, (own, parameters) in shim.FIXED.items() if f"{name}(" in text}

    def _source(self, arena: int, symbols: Mapping[str, tuple[str, str]]) -> str:
        text = "\n".join(line for lines in self.steps for line in lines)
        more = [file for call, file in (("convolve(", "convolve.cpp"), ("pool<", "pool.cpp"), ("join_bags<", "bags.cpp")) if call in text]
        parts = [head(), runtime("runtime.cpp"), *map(runtime, more), *self.constants]
        parts += [f"static AOTITorchError (*{name})({parameters});" for name, (_, parameters) in symbols.items() if name not in shim.BASE]
        parts += [text.replace("@NAME", name).replace('extern "C" void', "static void") for text, name in self.kernels.items()]
        parts += [_form_text(number, *form) for form, number in self.forms.items()]
        parts += [_bind_text(symbols), *self._run_text(arena)]
        return "\n".join(parts) + "\n"

    def _run_text(self, arena: int) -> list[str]:
        number = len(self.parameters)
        lines = [f"static thread_local Slots<{len(self.slots)}> kept[2];  // outside and inside of inference mode"] if self.slots else []
        lines += ["static thread_local Arena arena;"] if arena else []
        lines += ["", "static void run(char* const* args, int threads, int inference) {"]
        body = ["(void)threads, (void)inference;"]
        body += ["Slot* const slots = kept[inference].slots;"] if self.slots else []
        body += ["const NoGrad no_grad;"] if self.calls_torch else []
        body += [f"char* const room = arena.reach({arena});"] if arena else []
        for memory in self.memories:
            if memory.kind in ("argument", "result"):
                body.append(f"char* const {memory.name} = args[{memory.number + (number if memory.kind == 'result' else 0)}];")
            elif memory.kind == "arena":
                body.append(f"char* const {memory.name} = room + {memory.offset};")
            elif memory.kind == "literal":
                body.append(f"const char* const {memory.name} = (const char*)literal_{memory.number};")
        temporaries = [memory for memory in self.memories if memory.kind == "made"]
        for at, step in enumerate(self.steps):
            body += step
            body += [f"h{memory.name}.drop();" for memory in temporaries if memory.last == at and memory.first < at]
        lines += [f"    {line}" for line in body] + ["}", ""]
        lines += ['extern "C" int plan_run(char* const* args, int flags) {  // 0, or the number of the step that failed']
        lines += ["    try {", "        run(args, flags >> 1, flags & 1);", "        return 0;"]
        return [*lines, "    } catch (const Failure& failure) {", "        return failure.step;", "    }", "}"]


def _form_text(number: int, sizes: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> str:
    lists = [f"static const int64_t {name}{number}[] = {{{', '.join(map(str, items)) or '0'}}};" for name, items in (("n", sizes), ("s", strides))]
    return f"{' '.join(lists)} static const Form form{number} = {{{len(sizes)}, n{number}, s{number}, {TORCH_TYPES[dtype]}}};"


TORCH_TYPES = {torch.uint8: 0, torch.int32: 3, torch.int64: 4, torch.float32: 6, torch.float64: 7, torch.bool: 11}
"""Numbers of c10::ScalarType."""


def _bind_text(symbols: Mapping[str, tuple[str, str]]) -> str:
    lines = ['\nextern "C" int plan_bind(void* const* table, int) {']
    lines += [f"    {name} = (decltype({name}))table[{number}];" for number, name in enumerate(symbols)]
    return "\n".join([*lines, "    return 0;", "}", ""])


@functools.cache
def runtime(name: str) -> str:
    """Return a text that follows the head of a plan."""
    return Path(__file__).with_name(name).read_text()

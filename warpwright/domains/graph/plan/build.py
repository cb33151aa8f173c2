"""From the graph to the C++ text of a native plan: one call after the other, views as strides."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.generate import function
from warpwright.domains.graph.cpp.kernel import Kernel, head
from warpwright.domains.graph.cpp.program import Unsupported
from warpwright.domains.graph.ir import argument, aten, is_op, is_random, is_tensor, shape, value
from warpwright.domains.graph.meta import on_device
from warpwright.domains.graph.plan import loops, products, shim
from warpwright.domains.graph.plan.memory import Memory, Place, arrange, row_major

MOST_LITERAL = 4096
"""Elements up to which what depends on no input is written out."""
MOST_ARENA = 256 << 20
"""Bytes that a thread keeps between calls."""


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
        made = Memory(kind, f"m{len(self.memories)}", number, bytes, len(self.steps), len(self.steps))
        self.memories.append(made)
        return made

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

    def used(self, *places: Place) -> None:
        """Note that the present step reads (or writes) these places."""
        for place in places:
            place.memory.last = max(place.memory.last, len(self.steps))

    def place(self, node: Any) -> Place:
        """Return where a node's tensor lies."""
        found = self.places.get(node)
        if not isinstance(found, Place):
            raise Unsupported(f"{node}, which is no tensor of the plan")
        return found

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
        made = shim.call(node, lambda arg: self.handle(self.place(arg)), prefix)
        vals = node.meta["val"]
        vals = [vals] if isinstance(vals, torch.Tensor) else list(vals)
        pointer = "f_" + made.symbol.removeprefix(shim.PREFIX)
        self.symbols[pointer] = (made.symbol, ", ".join([*made.parameters, *["AtenTensorHandle*"] * len(vals)]))
        places, lines = [], [*made.before]
        for val in vals:
            memory = self.memory("made")
            place = Place(memory, 0, tuple(val.shape), tuple(val.stride()), val.dtype)
            self.form(place)
            places.append(place)
            lines.append(f"Made h{memory.name};")
        arguments = [*made.arguments, *(f"&h{place.memory.name}.handle" for place in places)]
        lines.append(f"if ({pointer}({', '.join(arguments)})) throw Failure{{@STEP}};")
        lines += [f"char* const {p.memory.name} = h{p.memory.name}.data(form{self.form(p)}, @STEP);" for p in places]
        self.step(lines, *places)
        self.places[node] = places[0] if isinstance(node.meta["val"], torch.Tensor) else places

    # --- the graph ---

    def add(self, node: fx.Node) -> None:
        """Add one call; raise Unsupported with the reason where a plan cannot hold it."""
        val = node.meta["val"]
        tensors = [val] if isinstance(val, torch.Tensor) else [v for v in val if isinstance(v, torch.Tensor)]
        if any(v.numel() == 0 for v in tensors):
            raise Unsupported("a tensor without elements")
        if node.target is operator.getitem:
            self.places[node] = self.places[node.args[0]][node.args[1]]  # type: ignore[index]
        elif isinstance(node.target, Kernel):
            self._kernel(node, node.target)
        elif (isinstance(val, torch.Tensor) and self._view(node, val)) or (isinstance(val, list | tuple) and self._views(node, val)):
            pass
        else:
            packet = getattr(node.target, "overloadpacket", None)
            write = CALLS.get(packet)
            if (write is None or not write(self, node)) and not _elementwise(self, node):
                self.torch_call(node)

    def settle(self) -> None:
        """Let the copies that were made for a call live as long as it takes."""
        for place in self.copies:
            place.memory.last = max(place.memory.last, len(self.steps) - 1)
        self.copies.clear()

    def _view(self, node: fx.Node, val: torch.Tensor) -> bool:
        base = self._shares(node, val)
        if base is None:
            return False
        self.places[node] = base
        return True

    def _views(self, node: fx.Node, vals: Sequence[Any]) -> bool:
        found = [self._shares(node, val) if isinstance(val, torch.Tensor) else None for val in vals]
        if any(place is None for place in found):
            return False
        self.places[node] = found
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

    def _kernel(self, node: fx.Node, kernel: Kernel) -> None:
        given = [self.place(arg) for arg in node.args]
        operands = [given[i] for i in kernel.operands]
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
        parts = [head(), runtime(), *self.constants]
        parts += [f"static AOTITorchError (*{name})({given});" for name, (_, given) in symbols.items() if name not in shim.BASE]
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
        made = [memory for memory in self.memories if memory.kind == "made"]
        for at, step in enumerate(self.steps):
            body += step
            body += [f"h{memory.name}.drop();" for memory in made if memory.last == at and memory.first < at]
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
def runtime() -> str:
    """Return the text that follows the head of every plan."""
    return Path(__file__).with_name("runtime.cpp").read_text()


# --- calls ---------------------------------------------------------------------------------------------------------------


def _linear(b: Builder, node: fx.Node) -> bool:
    x, weight, bias = (argument(node, name) for name in ("input", "weight", "bias"))
    if len(shape(weight)) != 2:
        return False
    w = b.place(weight)
    return _product(b, node, b.place(x), w.viewed(w.sizes[::-1], w.strides[::-1]), b.place(bias) if bias is not None else None)


def _product(b: Builder, node: fx.Node, x: Place, w: Place, bias: Place | None) -> bool:
    """Add x w + bias, where x has any number of leading dimensions."""
    x = products.as_matrix(x, b.contiguous)
    out = b.fresh(value(node))
    to = products.as_matrix(out, b.contiguous)
    if to.memory is not out.memory:
        raise Unsupported("a product whose result is no matrix")
    lines, _ = products.product(to, x, w, bias, b.handle)
    b.step(lines, to, x, w, *([bias] if bias is not None else []))
    b.places[node] = out
    return True


def _mm(b: Builder, node: fx.Node) -> bool:
    return _product(b, node, b.place(node.args[0]), b.place(node.args[1]), None)


def _addmm(b: Builder, node: fx.Node) -> bool:
    c = b.place(node.args[0])
    row = c.viewed(c.sizes[-1:], c.strides[-1:])
    return _product(b, node, b.place(node.args[1]), b.place(node.args[2]), row)


def _matmul(b: Builder, node: fx.Node) -> bool:
    x, y = b.place(node.args[0]), b.place(node.args[1])
    out = value(node)
    if len(x.sizes) >= 2 and len(y.sizes) == 2:
        return _product(b, node, x, y, None)
    if len(y.sizes) == 1 and len(x.sizes) >= 2:
        y = y.viewed((*y.sizes, 1), (*y.strides, 1))
        to = b.fresh(out)
        matrix, flat = products.as_matrix(x, b.contiguous), to.viewed((to.count, 1), (1, 1))
        b.step(products.product(flat, matrix, y, None, b.handle)[0], to, matrix, y)
        b.places[node] = to
        return True
    if len(x.sizes) < 2 or len(y.sizes) < 2:
        return False
    to = b.fresh(out)
    lines, _ = products.batched(to, x, y, b.contiguous, b.handle)
    b.step(lines, to, x, y)
    b.places[node] = to
    return True


def _attention(b: Builder, node: fx.Node) -> bool:
    q, k, v, mask = (argument(node, name) for name in ("query", "key", "value", "attn_mask"))
    queries, keys, values = (b.place(x) for x in (q, k, v))
    seen = b.place(mask) if mask is not None else None
    scale = argument(node, "scale")
    scale = 1 / math.sqrt(shape(q)[-1]) if scale is None else scale
    if argument(node, "enable_gqa") and shape(q)[-3] != shape(k)[-3]:
        return False
    to = b.fresh(value(node))
    lines = products.attention(to, queries, keys, values, seen, bool(argument(node, "is_causal")), float(scale), b.contiguous)
    if lines is None:
        raise Unsupported("attention of many keys or wide heads")
    b.step(lines, to, queries, keys, values, *([seen] if seen is not None else []))
    b.places[node] = to
    return True


def _convolution(b: Builder, node: fx.Node) -> bool:
    x, weight, bias = (argument(node, name) for name in ("input", "weight", "bias"))
    if argument(node, "transposed") or value(node).dtype != torch.float32:
        return False
    places = [b.place(item) for item in (x, weight, bias) if item is not None]
    work = value(node).numel() * math.prod(shape(weight)[1:])
    fits = math.prod(shape(weight)[1:]) <= products.DEEPEST and work <= products.SMALL_CONVOLUTION
    if not fits or not places[0].contiguous or not places[1].contiguous or not value(node).is_contiguous():
        return False
    groups = int(argument(node, "groups"))
    if groups > 1 and shape(weight)[0] // groups < products.LEAST_ROWS:
        return False
    to = b.fresh(value(node))
    lists = [list(argument(node, name)) for name in ("stride", "padding", "dilation")]
    filters = places[2] if bias is not None else None
    made: list[Place] = []

    def room(sizes: Sequence[int]) -> Place:
        made.append(b.temporary(sizes, torch.float32))
        return made[0]

    lines = products.convolution(to, places[0], places[1], filters, lists[0], lists[1], lists[2], groups, room)
    b.step(lines, to, *places, *made)
    b.places[node] = to
    return True


def _copy(b: Builder, node: fx.Node) -> bool:
    """A call that gives the same elements in the same order: reshape, contiguous, clone, and conversions."""
    source, to = b.place(node.args[0]), b.fresh(value(node))
    b.step(loops.copy(to, source), to, source)
    b.places[node] = to
    return True


def _cat(b: Builder, node: fx.Node) -> bool:
    parts: Any = [arg for arg in node.args[0] if shape(arg) != (0,)]  # type: ignore[union-attr, arg-type]
    rank, stacked = len(shape(node)), is_op(node, aten.stack)
    dim = argument(node, "dim") % rank
    to, at, lines, read = b.fresh(value(node)), 0, [], []
    for part in parts:
        source = b.place(part)
        sizes = [*source.sizes[:dim], 1, *source.sizes[dim:]] if stacked else list(source.sizes)
        steps = [*source.strides[:dim], 0, *source.strides[dim:]] if stacked else list(source.strides)
        lines += loops.copy(to.viewed(sizes, to.strides, at * to.strides[dim]), source.viewed(sizes, steps))
        at += sizes[dim]
        read.append(source)
    b.step(lines, to, *read)
    b.places[node] = to
    return True


def _embedding(b: Builder, node: fx.Node) -> bool:
    table, indices = b.place(node.args[0]), b.place(node.args[1])
    to = b.fresh(value(node))
    b.step(loops.rows_of(to, table, indices, b.now), to, table, indices)
    b.places[node] = to
    return True


def _index(b: Builder, node: fx.Node) -> bool:
    source = b.place(node.args[0])
    indices = [b.place(item) if item is not None else None for item in node.args[1]]  # type: ignore[union-attr]
    to = b.fresh(value(node))
    b.step(loops.indexed(to, source, indices, b.now), to, source, *(place for place in indices if place is not None))
    b.places[node] = to
    return True


def _index_select(b: Builder, node: fx.Node) -> bool:
    source, dim, index = b.place(node.args[0]), argument(node, "dim") % len(shape(node)), b.place(node.args[2])
    to = b.fresh(value(node))
    b.step(loops.indexed(to, source, [None] * dim + [index], b.now), to, source, index)
    b.places[node] = to
    return True


def _gather(b: Builder, node: fx.Node) -> bool:
    source, index = b.place(node.args[0]), b.place(node.args[2])
    to = b.fresh(value(node))
    b.step(loops.gathered(to, source, argument(node, "dim") % len(shape(node)), index, b.now), to, source, index)
    b.places[node] = to
    return True


def _where(b: Builder, node: fx.Node) -> bool:
    if is_op(node, aten.masked_fill):
        source, condition, other = node.args
        condition, yes, no = condition, other, source
    else:
        condition, yes, no = node.args
    items: list[Any] = [b.place(item) if is_tensor(item) else item for item in (condition, yes, no)]
    to = b.fresh(value(node))
    b.step(loops.pick(to, *items), to, *(item for item in items if isinstance(item, Place)))
    b.places[node] = to
    return True


def _pad(b: Builder, node: fx.Node) -> bool:
    amounts: Any = argument(node, "pad")
    if is_op(node, aten.pad) and argument(node, "mode") != "constant":
        return False
    source, filler = b.place(node.args[0]), argument(node, "value") or 0
    to = b.fresh(value(node))
    rank = len(to.sizes)
    before = [0] * rank
    for i in range(len(amounts) // 2):
        before[rank - 1 - i] = amounts[2 * i]
    kept = [min(size, out - max(ahead, 0)) + min(ahead, 0) for size, out, ahead in zip(source.sizes, to.sizes, before, strict=True)]
    if min(amounts) < 0:
        raise Unsupported("padding that takes away")
    inner = to.viewed(kept, to.strides, sum(ahead * step for ahead, step in zip(before, to.strides, strict=True)))
    b.step([*loops.over(to.sizes, [to], f"{{0}} = {loops.number(filler, to.type)};"), *loops.copy(inner, source)], to, source)
    b.places[node] = to
    return True


def _elementwise(b: Builder, node: fx.Node) -> bool:
    """Add a call of numbers, integers or masks that joined no kernel."""
    name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
    if name not in loops.EXPRESSIONS or not is_tensor(node) or "rounding_mode" in node.kwargs:
        return False
    arguments = list(node.args)
    alpha = node.kwargs.get("alpha", 1)
    if alpha != 1 or not all(is_tensor(a) or isinstance(a, bool | int | float) for a in arguments):
        return False
    given = [b.place(a) if is_tensor(a) else a for a in arguments]
    computed = value(node).dtype
    if name in loops.COMPARISONS:
        vals: list[Any] = [value(a) if isinstance(a, fx.Node) else a for a in arguments]
        computed = functools.reduce(torch.promote_types, [torch.result_type(vals[0], x) for x in vals[1:]] or [vals[0].dtype])
    to = b.fresh(value(node))
    b.step(loops.elementwise(name, to, given, computed), to, *(item for item in given if isinstance(item, Place)))
    b.places[node] = to
    return True


CALLS: Mapping[Any, Callable[[Builder, fx.Node], bool]] = {
    aten.linear: _linear, aten.mm: _mm, aten.addmm: _addmm, aten.matmul: _matmul, aten.bmm: _matmul, aten.scaled_dot_product_attention: _attention,
    aten.convolution: _convolution,
    **dict.fromkeys((aten.reshape, aten.contiguous, aten.clone, aten.flatten, aten.to, aten.view, aten._unsafe_view, aten._to_copy), _copy),
    aten.cat: _cat, aten.concat: _cat, aten.stack: _cat, aten.embedding: _embedding, aten.index: _index, aten.index_select: _index_select,
    aten.gather: _gather, aten.where: _where, aten.masked_fill: _where, aten.pad: _pad, aten.constant_pad_nd: _pad,
}  # fmt: skip
"""Operators with a text of their own; any other is a loop over elements, or a call of torch's library."""


# --- literals ------------------------------------------------------------------------------------------------------------


def _literals(graph: fx.Graph, given: Mapping[str, torch.Tensor]) -> dict[fx.Node, Any]:
    """Return the values of all that depends on no input and no state."""
    found: dict[fx.Node, Any] = {}
    for node in graph.nodes:
        if node.name in given:
            found[node] = given[node.name]
        elif node.op == "call_function" and all(arg in found for arg in node.all_input_nodes) and not is_random(node) and not _unwritten(node):
            val = node.meta["val"]
            if isinstance(val, torch.Tensor) and val.numel() <= MOST_LITERAL and not isinstance(node.target, Kernel):
                args, kwargs = fx.map_arg((node.args, node.kwargs), found.__getitem__)
                cpu = torch.device("cpu")
                with torch.no_grad(), cpu:
                    target: Any = node.target
                    found[node] = target(*on_device(args, cpu), **on_device(kwargs, cpu))
    return found


def _unwritten(node: fx.Node) -> bool:
    return is_op(node, aten.empty, aten.empty_like, aten.empty_strided, aten.new_empty)


def _literal_text(name: str, tensor: torch.Tensor, type_: str) -> str:
    items = [loops.number(item, type_) for item in tensor.contiguous().flatten().tolist()]
    return f"alignas(64) static const {type_} {name}[] = {{{', '.join(items)}}};"


def build(
    graph: fx.Graph, calls: Sequence[fx.Node], parameters: Sequence[fx.Node], literals: Mapping[str, torch.Tensor], results: Sequence[fx.Node],
    wanted: Sequence[tuple[int, ...]],
) -> Plan:  # fmt: skip
    """Return the plan of some calls of a graph; raise Unsupported with the reason where there is none."""
    b = Builder(graph, parameters, literals, results, wanted)
    for number, node in enumerate(parameters):
        val = value(node)
        b.places[node] = Place(b.memory("argument", number), 0, tuple(val.shape), tuple(val.stride()), val.dtype)
    known = _literals(graph, literals)
    read = {arg for node in calls if node not in known for arg in node.all_input_nodes} | set(results)
    for node, tensor in known.items():
        if node in read:
            place = Place(b.memory("literal", len(b.constants)), 0, tuple(tensor.shape), row_major(tensor.shape), tensor.dtype)
            b.constants.append(_literal_text(f"literal_{len(b.constants)}", tensor, place.type))
            b.places[node] = place
    for node in calls:
        if node not in known:
            b.add(node)
            b.settle()
    return b.finish()

"""Several kernels of ours, and views between them, as one native call: a table of launches, memory by liveness, results of their own.

    y = kernel_0(x)                     o0 = CUDA_KERNELS.fresh(...)
    z, s = kernel_1(y, w)       ->      arena = CUDA_KERNELS.fresh(...)
    out = kernel_2(z.t(), s)            LAUNCHES_0.launch(table, x.data_ptr(), w.data_ptr(), o0.data_ptr(), arena.data_ptr())

What only these kernels read lies in one piece of memory that is asked for in each call, so that it belongs to the call's stream; what others read
is a tensor of its own. In a small plan a result takes the memory of an operand that nobody reads after it, where each element is read by the thread
that writes there: a piece of memory less to ask for, a microsecond of the host. A call that the table does not hold for (another device, an address
that is no multiple of 16) goes kernel by kernel. Small kernels begin before the one before has ended, where a GPU knows how (cuda/dependent.py).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.kernel import interpret, subgraph
from warpwright.domains.graph.cpp.program import Unsupported
from warpwright.domains.graph.cuda import dependent
from warpwright.domains.graph.cuda.kernel import DETERMINISTIC, CudaKernel
from warpwright.domains.graph.ir import is_tensor, role, value
from warpwright.domains.graph.plan.memory import Memory, arrange, row_major
from warpwright.domains.graph.text.calls import expression
from warpwright.native.launch_plan import MOST_POINTERS

SMALL_BYTES = 1 << 24
"""Up to which one kernel alone is a CUDA graph: 4 us of an H200, so that the host decides, which the native call took 2.7 us for a graph of three
kernels and 4.9 for one kernel by itself (results/launch_plan_h200, the fourth run); between two graphs a GPU rests about 1 us longer."""
ALIGNED = 256
"""Bytes: as torch's allocator gives memory out."""


@dataclass(frozen=True)
class _Slot:
    """A pointer that a call is given: of a source laid with some strides, or of a result."""

    kind: str
    number: int = 0


@dataclass
class _Step:
    """A launch, or where there is no kernel, memory that is set to zero."""

    kernel: str
    bytes: int
    pointers: list[tuple[Memory | _Slot, int]] = field(default_factory=list)


class Forms:
    """How what kernels make lies: of each result and view the result whose memory it is, and a meta tensor that begins and strides as it does."""

    def __init__(self) -> None:
        self.of: dict[Any, tuple[Any, torch.Tensor]] = {}

    def add(self, node: fx.Node) -> None:
        """Take in a kernel, a selection of its results, or a view; Unsupported where a table cannot hold it."""
        if isinstance(node.target, CudaKernel):
            self._kernel(node, node.target)
        elif node.target is not operator.getitem:
            root, base = self.of[key(node.args[0])]
            form = node.target(base, *node.args[1:], **node.kwargs)  # type: ignore[operator]
            if form.untyped_storage()._cdata != base.untyped_storage()._cdata or form.dtype != base.dtype:
                raise Unsupported(f"{node.name}, which is no view as the kernels lay their results")
            self.of[node] = root, form

    def _kernel(self, node: fx.Node, kernel: CudaKernel) -> None:
        if kernel.bases:
            raise Unsupported("a sum that is added to a copy")
        if kernel.shape[0] > MOST_POINTERS:
            raise Unsupported(f"a kernel of {kernel.shape[0]} tensors")
        tight = aligned(kernel)
        for i, arg in enumerate(node.args):
            _, form = self.of.get(key(arg), (None, None))
            if form is None:
                continue
            if not _lies(form, kernel.expected.get(i)) or (i in tight and form.storage_offset() * form.element_size() % 16):
                raise Unsupported(f"{arg}, which does not lie as the next kernel reads it")
        for i, (sizes, kind) in enumerate(kernel.outputs):
            own = (node, i) if len(kernel.outputs) > 1 else node
            strides = kernel.laid.get(i) or row_major(sizes)
            self.of[own] = own, torch.empty_strided(sizes, strides, dtype=kind, device="meta")


def key(node: Any) -> Any:
    """Return what a tensor is known by: a node, or one of a kernel's several results."""
    return (node.args[0], node.args[1]) if isinstance(node, fx.Node) and node.target is operator.getitem else node


def aligned(kernel: CudaKernel) -> set[int]:
    """Return the sources whose addresses have to be multiples of 16."""
    return {source for t, source in enumerate(kernel.operands) if t not in kernel.generated.loose} if kernel.generated.vector > 1 else set()


class Launches:
    """Kernels in one native call. `nodes`: their calls, selections of their results and views, in graph order; `fresh`: what others read."""

    compilable = False

    def __init__(self, name: str, nodes: Sequence[fx.Node], fresh: Sequence[fx.Node]) -> None:
        """Raise Unsupported, with the reason, where there is no table for them."""
        self.__name__ = name
        self.kernels: list[CudaKernel] = list(dict.fromkeys(node.target for node in nodes if isinstance(node.target, CudaKernel)))
        inside = set(nodes)
        self.sources = tuple(dict.fromkeys(arg for node in nodes for arg in node.all_input_nodes if arg not in inside))
        self.calls = subgraph(nodes, self.sources, fresh)
        self.count = sum(isinstance(node.target, CudaKernel) for node in nodes)
        self.small = sum(moved(node) for node in nodes if isinstance(node.target, CudaKernel)) <= SMALL_BYTES
        self.placed = Forms()
        self._memory: dict[Any, Memory | _Slot] = {}
        self._laid: list[tuple[int, tuple[int, ...] | None, bool, bool]] = []
        """Of each slot of a source: which, the strides that are expected, whether they have to be looked at, and whether the address has to be a
        multiple of 16."""
        self._steps: list[_Step] = []
        self._last: dict[Any, int] = {}
        """The last node that reads what lies in a memory."""
        self._given_up: set[Memory] = set()
        self.said: list[dependent.Part] = []
        """What the kernels have to say in the text of the program."""
        self.arena = self._plan(nodes, [key(node) for node in fresh])
        """Bytes."""
        self.early = self._overlapped()
        """Steps that begin while the one before still runs."""
        self.forms = [self.placed.of[key(node)][1] for node in fresh]
        """Of the results: meta tensors that lie as they do. The nodes themselves leave the graph."""

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self, *inputs: torch.Tensor) -> Any:
        """Return what the kernels compute."""
        if inputs[0].is_meta:
            made = [torch.empty_strided(form.shape, form.stride(), dtype=form.dtype, device="meta") for form in self.forms]
        else:
            made = interpret(self.calls, inputs)
        return made[0] if len(made) == 1 else tuple(made)

    # --- the table ---------------------------------------------------------------------------------------------------

    def _plan(self, nodes: Sequence[fx.Node], fresh: Sequence[Any]) -> int:
        """Write the steps; return the bytes of the arena."""
        memories = []
        flags = sum(node.target.generated.flags for node in nodes if isinstance(node.target, CudaKernel))
        zeros = Memory("arena", "flags", bytes=4 * flags, last=len(nodes))
        if flags:  # all of them are set to zero at once, before the first launch
            memories.append(zeros)
            self._steps.append(_Step("", zeros.bytes, [(zeros, 0)]))
        used = 0
        for number, node in enumerate(nodes):
            self.placed.add(node)
            for arg in node.all_input_nodes if isinstance(node.target, CudaKernel) else ():
                self._last |= {self.placed.of[key(arg)][0]: number} if key(arg) in self.placed.of else {}
        for number, node in enumerate(nodes):
            if isinstance(node.target, CudaKernel):
                memories += self._launch(number, node, node.target, (zeros, 4 * used), fresh)
                used += node.target.generated.flags
        return arrange([memory for memory in memories if memory not in self._given_up])

    def _overlapped(self) -> tuple[int, ...]:
        """Return which steps may begin early, kernels behind a kernel, and note what these have to say. Memory is set to zero in turn."""
        of = {kernel.__name__: kernel for kernel in self.kernels}
        steps = [of.get(step.kernel) for step in self._steps]
        early = [bool(kernel and before and dependent.begins_early(before, kernel)) for before, kernel in zip([None, *steps], steps, strict=False)]
        self.said += dependent.parts(steps, early)
        return tuple(number for number, one in enumerate(early) if one)

    def _launch(self, number: int, node: fx.Node, kernel: CudaKernel, flags: tuple[Memory, int], fresh: Sequence[Any]) -> list[Memory]:
        """Add the launch of a kernel; return what it needs of the arena."""
        tight, made, step = aligned(kernel), [], _Step(kernel.__name__, 0)
        taken = [self._taken(number, arg, kernel.expected.get(i), i in tight) for i, arg in enumerate(node.args)]
        step.pointers += [taken[source] for source in kernel.operands]
        for i, (result, _) in enumerate(kernel.program.outputs):
            own = (node, i) if len(kernel.outputs) > 1 else node
            size = self._bytes(own)
            memory = _Slot("result", fresh.index(own)) if own in fresh else Memory("arena", f"made_{number}_{i}", 0, _up(size), number, number)
            replaced = self._replaced(number, node, kernel, i)
            if isinstance(memory, _Slot):
                self._give_up(replaced, memory, step)
            elif replaced is not None:
                memory = replaced
            else:
                made.append(memory)
            self._memory[own] = memory
            step.pointers.append((memory, 0))
            if result in kernel.program.sums:
                self._steps.append(_Step("", size, [(memory, 0)]))
        if kernel.generated.workspace:
            made.append(Memory("arena", f"partial_{number}", 0, _up(8 * kernel.generated.workspace), number, number))
            step.pointers += [(made[-1], 0), flags]
        self._steps.append(step)
        return made

    def _bytes(self, own: Any) -> int:
        return self.placed.of[own][1].untyped_storage().nbytes()

    def _replaced(self, number: int, node: fx.Node, kernel: CudaKernel, result: int) -> Memory | None:
        """Return the memory of an argument that a result may take, which nobody reads any more and no other pointer of the launch points to."""
        own = (node, result) if len(kernel.outputs) > 1 else node
        if not self.small:
            return None
        for t in (t for t, i in sorted(kernel.generated.replaces) if i == result):
            root, form = self.placed.of.get(key(node.args[kernel.operands[t]]), (None, None))
            memory = self._memory.get(root)
            if form is None or not isinstance(memory, Memory) or self._last[root] > number or form.storage_offset():
                continue
            roots = [self.placed.of.get(key(node.args[source]), (None,))[0] for source in kernel.operands]
            taken = [self._memory.get((node, i) if len(kernel.outputs) > 1 else node) for i in range(result)]
            if roots.count(root) == 1 and memory not in taken and memory not in self._given_up and self._bytes(root) == self._bytes(own):
                self.said.append(dependent.Part(kernel.__name__, replaces=True))
                return memory
        return None

    def _give_up(self, memory: Memory | None, slot: _Slot, step: _Step) -> None:
        """Have what lay in a piece of the arena lie in the result that replaces it, if one does."""
        if memory is None:
            return
        self._given_up.add(memory)
        for one in [*self._steps, step]:
            one.pointers = [(slot, offset) if place is memory else (place, offset) for place, offset in one.pointers]
        self._memory = {own: slot if place is memory else place for own, place in self._memory.items()}

    def _taken(self, number: int, arg: Any, wanted: tuple[int, ...] | None, tight: bool) -> tuple[Memory | _Slot, int]:
        """Return where a kernel reads a source, and from which byte on."""
        if key(arg) not in self.placed.of:
            return self._given(arg, wanted, tight), 0
        root, form = self.placed.of[key(arg)]
        memory = self._memory[root]
        if isinstance(memory, Memory):
            memory.last = max(memory.last, number)
        return memory, int(form.storage_offset() * form.element_size())

    def _given(self, arg: fx.Node, wanted: tuple[int, ...] | None, tight: bool) -> _Slot:
        """Return the slot of a source from outside. An input or parameter was looked at by whoever calls; what torch computed may lie in another way
        than its meta tensor says."""
        number = self.sources.index(arg)
        looked = role(arg) not in ("input", "state") or not _lies(value(arg), wanted)
        for i, (source, strides, _, other) in enumerate(self._laid):
            if source == number and strides == wanted:
                self._laid[i] = (source, strides, looked, tight or other)
                return _Slot("source", i)
        self._laid.append((number, wanted, looked, tight))
        return _Slot("source", len(self._laid) - 1)

    # --- the text ----------------------------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """What is launched."""
        return f"{self.count} kernel{'s' if self.count > 1 else ''} by one native call"

    def table(self) -> list[tuple[str, int, tuple[tuple[int, int], ...]]]:
        """Return the steps: a kernel's name or "", the bytes to set to zero, and its pointers as (slot, offset in bytes)."""
        slots = {_Slot("source", i): i for i in range(len(self._laid))}
        slots |= {_Slot("result", i): len(self._laid) + i for i in range(len(self.forms))}
        last = len(slots)

        def pointer(memory: Memory | _Slot, offset: int) -> tuple[int, int]:
            return (last, memory.offset + offset) if isinstance(memory, Memory) else (slots[memory], offset)

        return [(step.kernel, step.bytes, tuple(pointer(*one) for one in step.pointers)) for step in self._steps]

    @property
    def pointers(self) -> int:
        """How many pointers a call gives."""
        return len(self._laid) + len(self.forms) + bool(self.arena)

    def python_text(self) -> str:
        """Return the table, the function that makes the call, and the one that goes kernel by kernel."""
        names = [f"a{i}" for i in range(len(self.sources))]
        return "\n\n\n".join([self._apart(names), self._table_text(), self._together(names)])

    def _table_text(self) -> str:
        steps = [f"    {step!r}," for step in self.table()]
        options = ", small=True" * self.small + f", early={self.early}" * bool(self.early)
        return "\n".join([f"{self.__name__}_table = _LaunchPlan(CUDA_KERNELS, {self.pointers}, (", *steps, f"){options})"])

    def _together(self, names: Sequence[str]) -> str:
        lines = [f"def {self.__name__}({', '.join(names)}):", f'    """{self.summary}."""']
        lines += [f"    table = {self.__name__}_table.of({names[0]})"]
        pointed = []
        for i, (source, strides, looked, _) in enumerate(self._laid):
            name = names[source]
            if looked:
                given, name = name, f"s{i}"
                lines.append(f"    {name} = {given}.contiguous()" if strides is None else f"    {name} = CUDA_KERNELS.laid({given}, {strides})")
            pointed.append(f"{name}.data_ptr()")
        places = [f"p{i}" for i in range(len(self._laid))]
        lines.append(f"    {', '.join(places)} = {', '.join(pointed)}")
        tight = [places[i] for i, (*_, aligned) in enumerate(self._laid) if aligned]
        doubt = f"table is None or ({' | '.join(tight)}) % 16" if tight else "table is None"
        doubt += f" or {DETERMINISTIC}" * any(kernel.in_any_order for kernel in self.kernels)
        lines += [f"    if {doubt}:", f"        return {self.__name__}_apart({', '.join(names)})"]
        made = [f"o{i}" for i in range(len(self.forms))]
        for name, form in zip(made, self.forms, strict=True):
            lines.append(f"    {name} = CUDA_KERNELS.fresh({tuple(form.shape)}, {tuple(form.stride())}, {form.dtype})")
        if self.arena:
            lines.append(f"    arena = CUDA_KERNELS.fresh(({self.arena},), (1,), torch.uint8)")
        pointers = [*places, *(f"{name}.data_ptr()" for name in [*made, *(["arena"] if self.arena else [])])]
        lines.append(f"    {self.__name__}_table.launch(table, {', '.join(pointers)})")
        return "\n".join([*lines, f"    return {made[0] if len(made) == 1 else '(' + ', '.join(made) + ')'}"])

    def _apart(self, names: Sequence[str]) -> str:
        lines = [f"def {self.__name__}_apart({', '.join(names)}):", '    """The same, kernel by kernel."""']
        shown = {node: node.name if node.op == "placeholder" else f"v{i}" for i, node in enumerate(self.calls.nodes)}
        for node in self.calls.nodes:
            if node.op == "call_function":
                lines.append(f"    {shown[node]} = {expression(node, shown.__getitem__, 'a0.device')}")
        results: Any = self.calls.output_node().args[0]
        returned = [shown[node] for node in results]
        return "\n".join([*lines, f"    return {returned[0] if len(returned) == 1 else '(' + ', '.join(returned) + ')'}"])


def kernels_of(called: Iterable[Any]) -> list[CudaKernel]:
    """Return the kernels among what a program calls, those of its plans too, each once, with the text that the program has to hold."""
    called = list(called)
    every = [target for one in called for target in (*getattr(one, "kernels", ()), one) if isinstance(target, CudaKernel)]
    said = [part for one in called if isinstance(one, Launches) for part in one.said]
    return dependent.written(list({kernel.__name__: kernel for kernel in every}.values()), said)


def _up(size: int) -> int:
    """Return whole units of the arena."""
    return -(-size // ALIGNED) * ALIGNED


def _lies(form: torch.Tensor, wanted: tuple[int, ...] | None) -> bool:
    """Does a tensor lie with these strides (None: in order)?"""
    return form.is_contiguous() if wanted is None else tuple(form.stride()) == tuple(wanted)


def moved(node: fx.Node) -> float:
    """Return the bytes that a kernel's call moves at least."""
    parts = node.meta.get("val")
    made = [part for part in (parts if isinstance(parts, tuple | list) else [parts]) if isinstance(part, torch.Tensor)]
    read = [value(arg) for arg in node.all_input_nodes if is_tensor(arg)]
    return float(sum(math.prod(t.shape) * t.element_size() for t in (*made, *read)))

"""A layer compiled: from a traced function to ordered programs for forward and backward, and one autograd function that runs them."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import torch

from warpwright.domains.rgnn.derive import GRADIENT, differentiate
from warpwright.domains.rgnn.emit.cpu import SMALLEST, TYPES, Native, available
from warpwright.domains.rgnn.emit.dense import outer, product
from warpwright.domains.rgnn.emit.doubles import NONE, Doubles, doubles
from warpwright.domains.rgnn.emit.eager import Eager
from warpwright.domains.rgnn.emit.gpu import Rows
from warpwright.domains.rgnn.emit.launch import Runner as Launches
from warpwright.domains.rgnn.emit.places import is_exponential
from warpwright.domains.rgnn.emit.riding import riding
from warpwright.domains.rgnn.emit.rows import lower, multiplies_sums
from warpwright.domains.rgnn.emit.triton.tuning import DEFAULT, Tuning
from warpwright.domains.rgnn.front import Sym, trace
from warpwright.domains.rgnn.index import Index, uncompiled
from warpwright.domains.rgnn.ir import Builder, Program, Shape, narrow
from warpwright.domains.rgnn.lattice import PAIRS, Domain
from warpwright.domains.rgnn.order import CPU, GPU, SCATTER, TORCH, Machine, Ordering, flatten, through_pairs
from warpwright.errors import NotApplicable

Inputs = tuple[tuple[str, Domain, Shape], ...]

Runner = Callable[[Index, Mapping[str, torch.Tensor]], list[torch.Tensor]]

Emitter = tuple[str, Tuning, tuple[bool | None, bool], tuple[str, ...]]
"""Its name, the schedule of its kernels, whether those of the forward and of the backward are fused (None: where edges' rows are summed
and nothing else), and the inputs that it may write."""


@dataclass(frozen=True)
class Options:
    """What a plan may be compiled without, to measure what it gains."""

    reorder: bool = True
    compact: bool = True
    fuse: bool | None = None
    """Off: sums of rows over edges and the products with them are kernels of their own, on: one. None: as the graph's edges per pair suggest."""
    scatter: float = SCATTER
    """What adding to a row in memory costs beside a write: a high one makes layers compute each source's message first, a low one aggregate first."""
    emitter: str = "auto"
    """auto, eager, gpu or cpu."""
    tuning: Tuning = DEFAULT
    pairs: bool = True
    """Off: numbers of a destination's edges are summed by a loop of the destination's own (to measure what sums by way of its pairs gain)."""
    over_edges: bool = True
    """Off: a sum over pairs of a number that is a sum over their edges stays as it is (to measure what one sum over the edges gains)."""
    replay: bool = False
    """On: calls on small graphs that stay are replayed as CUDA graphs (docs/rgnn.md says what a model must not do then)."""
    attend: bool | None = None
    """HGT's and RGAT's attention on a GPU by the kernels of attention/, where scores, softmax and sum are one pass over a node's edges. None: on a
    large graph that has no more (source, relation) pairs than (destination, relation) pairs."""
    text: str = field(init=False, repr=False, compare=False, default="")
    """The same as JSON. Constants of a graph of torch.compile are numbers and strings: torch 2.11 refuses dataclasses."""

    def __post_init__(self) -> None:
        shown = {name: value for name, value in asdict(self).items() if name != "text"}
        object.__setattr__(self, "text", json.dumps(shown))

    @staticmethod
    def parse(text: str) -> Options:
        """Return the options whose `text` this is."""
        shown = json.loads(text)
        return Options(**shown | {"tuning": Tuning(**shown["tuning"])})


STANDARD = Options()


@dataclass(frozen=True, eq=False)
class Plan:
    """Ordered programs of one layer. `forward` returns the result, then what `backward` takes as the inputs `saved0`, `saved1`, ..."""

    infer: Program
    forward: Program
    backward: Program | None
    wanted: tuple[str, ...]
    """The inputs whose gradients `backward` returns."""
    runners: dict[Any, Any] = field(default_factory=dict)
    """What runs its programs, by the name of the program and the emitter."""

    def runner(self, name: str, emitter: Emitter) -> Runner:
        """Return what runs the program `infer`, `forward` or `backward`."""
        if (name, emitter) not in self.runners:
            raw = read_at_edges(self.backward) if name == "forward" and self.backward is not None else frozenset()
            self.runners[name, emitter] = _runner(getattr(self, name), emitter, name == "backward", raw, self._doubles(name, emitter))
        runner: Runner = self.runners[name, emitter]
        return runner

    def _doubles(self, name: str, emitter: Emitter) -> Doubles:
        """Return what a forward of Triton's kernels keeps in float64: nothing where other kernels would read it."""
        if name == "backward" or emitter[0] != "gpu" or not emitter[1].doubles:
            return NONE
        if name == "infer" or self.backward is None:
            return doubles(getattr(self, name), None)
        return doubles(self.forward, self.backward) if isinstance(self.runner("backward", (*emitter[:3], ())), Rows) else NONE

    def runner_onto(self, wanted: str, emitter: Emitter) -> Runner | None:
        """Return what runs `backward` with an input STARTED, in whose memory the gradient `wanted` is made; None where it would only be added."""
        assert self.backward is not None
        if ("onto", wanted, emitter) not in self.runners:
            program = onto(self.backward, self.wanted.index(wanted))
            runner = _runner(program, (*emitter[:3], (STARTED,)), True)
            self.runners["onto", wanted, emitter] = runner if isinstance(runner, Launches) and runner.sums.seeds else None
        kept: Runner | None = self.runners["onto", wanted, emitter]
        return kept


STARTED = "started"


def onto(program: Program, output: int) -> Program:
    """Return the program with an input STARTED that is added to an output."""
    builder = Builder()
    builder.ops = list(program.ops)
    result = program.ops[program.outputs[output]]
    start = builder.input(STARTED, result.domain, result.shape)
    outputs = list(program.outputs)
    outputs[output] = builder.map("add", outputs[output], start)
    return builder.program(outputs)


def read_at_edges(backward: Program) -> frozenset[int]:
    """Return the numbers of the forward's outputs that the backward reads for edges alone, so that rows without edges may hold anything.

    By elementwise functions alone, which kernels mask: a product would be of minus infinity and zero.
    """
    number = {position: int(name.removeprefix("saved")) + 1 for name, position in backward.names().items() if name.startswith("saved")}
    same = {position: position for position in number}
    beyond: set[int] = set(backward.outputs)
    for position, op in enumerate(backward.ops):
        of = [same[value] for value in op.inputs if value in same]
        if op.kind == "view" or (op.kind == "map" and op.function == "detach"):
            same.update((position, value) for value in of)
        elif op.kind != "map" or op.domain is not Domain.EDGE:
            beyond |= set(of)
    return frozenset(number[position] for position in number if not any(value in beyond for value, first in same.items() if first == position))


def _runner(program: Program, emitter: Emitter, backward: bool, raw: frozenset[int] = frozenset(), kept: Doubles = NONE) -> Runner:
    fuse = emitter[2][backward]
    try:
        if fuse is None:
            fuse = multiplies_sums(lower(program, True, again=bool(emitter[1].again)))
        if emitter[0] == "gpu":
            again, beside = bool(emitter[1].again), emitter[1].gradients == "beside"
            ride = emitter[1].ride and fuse and not again
            return Rows(lower(riding(program) if ride else program, fuse, again=again, beside=beside, ride=ride), emitter[1], emitter[3], raw, kept)
        if emitter[0] in NATIVE:
            return Native(lower(program, fuse, general=True), NATIVE[emitter[0]], emitter[3])
    except NotApplicable:
        pass
    return Eager(program)


NATIVE = {f"cpu {dtype}": dtype for dtype in TYPES}


Layer = Callable[..., Sym]


def plan(
    layer: Layer, inputs: Inputs, wanted: tuple[str, ...], rows: Mapping[Domain, int], options: Options = STANDARD, machine: Machine = GPU
) -> Plan:
    """Compile `layer` for gradients of `wanted` on graphs of about these `rows`, in the order that is best on `machine`."""
    traced = trace(layer, {name: (domain, shape) for name, domain, shape in inputs})
    traced = flatten(traced) if options.reorder else traced
    over_edges = options.over_edges and rows[Domain.EDGE] >= STORED  # two launches more
    ordering = Ordering(rows, reorder=options.reorder, compact=options.compact, over_edges=over_edges, scatter=options.scatter, machine=machine)
    last = through_pairs if machine.pairs and options.pairs else lambda program: program
    infer = ordering.run(traced)
    if not wanted:
        return Plan(last(infer), last(infer), None, ())
    ordering.forward = len(ordering.builder.ops)
    joint = ordering.run(differentiate(traced, wanted))
    forward, backward = split(last(joint), machine.pairs and rows[Domain.EDGE] >= STORED)
    return Plan(last(infer), forward, backward, wanted)


def split(joint: Program, exponentials: bool = False) -> tuple[Program, Program]:
    """Return forward and backward of a program whose first output needs no gradient; what the backward reads of the forward's values is saved.

    `exponentials`: a softmax's of edges too, which kernels store on large graphs, though they are few numbers made of few.
    """
    late = {joint.names()[GRADIENT]}
    for position, op in enumerate(joint.ops):
        if any(value in late for value in op.inputs):
            late.add(position)
    early = _needed(joint, joint.outputs[:1])
    builder = Builder()
    place: dict[int, int] = {}
    saved: list[int] = []

    def moved(position: int) -> int:
        if position in place:
            return place[position]
        op = joint.ops[position]
        if op.kind == "input" or (op.kind in {"view", "reshape", "count"} and _cheap(joint, position)):
            place[position] = builder.copy(op, [moved(i) for i in op.inputs])
        elif position not in late and position in early and ((exponentials and is_exponential(op)) or not _again(joint, position)):
            saved.append(position)
            place[position] = builder.input(f"saved{len(saved) - 1}", op.domain, op.shape)
        else:
            place[position] = builder.copy(op, [moved(i) for i in op.inputs])
        return place[position]

    outputs = [moved(position) for position in joint.outputs[1:]]
    forward = Builder()
    forward.ops = list(joint.ops)
    return forward.program([joint.outputs[0], *saved]), builder.program(outputs)


def _cheap(program: Program, position: int) -> bool:
    op = program.ops[position]
    return op.kind in {"input", "count"} or (op.kind in {"view", "reshape"} and _cheap(program, op.inputs[0]))


def _again(program: Program, position: int) -> bool:
    """Is the value computed again rather than saved?

    So are few numbers of an edge that come from few numbers, a node's number from others, and a pair's row times a number: the row is saved.
    """
    op = program.ops[position]
    if op.kind == "contract" and op.domain in PAIRS and not op.sums and len(op.subscripts) == 3 and "" in op.subscripts[:-1] and op.shape:
        return True
    number = op.kind in {"map", "contract"} and not op.sums and op.domain in {Domain.SRC, Domain.DST, Domain.NODE} and not op.shape
    of_counts = all(program.ops[i].kind == "count" for i in op.inputs)
    return narrow(program, op) or (number and not of_counts and not any(program.ops[i].shape for i in op.inputs))


def _needed(program: Program, outputs: Sequence[int]) -> set[int]:
    needed, stack = set(outputs), list(outputs)
    while stack:
        for value in program.ops[stack.pop()].inputs:
            if value not in needed:
                needed.add(value)
                stack.append(value)
    return needed


MACHINES = {"gpu": GPU} | dict.fromkeys(NATIVE, CPU)
"""By emitters; all others call torch."""


@functools.lru_cache(maxsize=256)
def _cached(layer: Layer, inputs: Inputs, wanted: tuple[str, ...], rows: tuple[int, ...], options: str, emitter: str) -> Plan:
    """Return the plan for so many rows of the domains, in their order. Options as their text: a string keeps its hash."""
    return plan(layer, inputs, wanted, dict(zip(Domain, rows, strict=True)), Options.parse(options), MACHINES.get(emitter, TORCH))


@functools.lru_cache(maxsize=256)
def _tuned(tuning: Tuning, again: bool) -> Tuning:
    return tuning if tuning.again is not None else replace(tuning, again=again)


@functools.lru_cache(maxsize=4096)
def _about(rows: int) -> int:
    """Return a number of rows to within a fifth, so that batches of like size share a plan."""
    return round(2 ** (math.ceil(4 * math.log2(rows)) / 4)) if rows > 1 else 1


def emitter_for(device: torch.device, dtype: torch.dtype, options: Options, edges: int = 1 << 30) -> str:
    """Return the name of the emitter that runs on `device`: Triton's for float32 on a GPU, C++ on a CPU; torch's where sums are in a fixed order."""
    if options.emitter == "cpu":
        return f"cpu {dtype}"
    if options.emitter != "auto":
        return options.emitter
    if device.type == "cpu" and dtype in TYPES and edges >= SMALLEST and not torch.are_deterministic_algorithms_enabled() and available():
        return f"cpu {dtype}"
    fits = device.type == "cuda" and dtype is torch.float32 and not torch.are_deterministic_algorithms_enabled()
    return "gpu" if fits and find_spec("triton") is not None else "eager"


Tensors = Mapping[str, tuple[Domain, torch.Tensor]]


def _compiled(
    layer: Layer, index: Index, tensors: Tensors, wanted: tuple[str, ...], options: Options, donated: tuple[str, ...]
) -> tuple[Plan, Emitter]:
    """Return the plan of a call and who runs it, kept beside the graph."""
    signature = tuple((name, domain, x.shape, x.dtype, x.device) for name, (domain, x) in tensors.items())
    key = (layer, signature, wanted, options.text, donated, torch.are_deterministic_algorithms_enabled())
    return index.keep(key, lambda: _chosen(layer, index, tensors, wanted, options, donated))


def _chosen(
    layer: Layer, index: Index, tensors: Tensors, wanted: tuple[str, ...], options: Options, donated: tuple[str, ...]
) -> tuple[Plan, Emitter]:
    inputs = tuple((name, domain, tuple(x.shape[domain is not Domain.ONE :])) for name, (domain, x) in tensors.items())
    sizes = index.keep("sizes", lambda: tuple(_about(index.rows[domain]) for domain in Domain))
    first = next(iter(tensors.values()))[1]
    name = emitter_for(first.device, first.dtype, options, index.edges)
    if name in NATIVE and any(x.dtype is not first.dtype or x.device != first.device for _, x in tensors.values()):
        name = "eager"  # kernels have one type of numbers; torch promotes, or says what does not fit
    fuse = (options.fuse, options.fuse) if options.fuse is not None else (True, True) if name in NATIVE else fused(index)
    again = few(index, options.tuning.many) if name == "gpu" else index.edges < STORED
    return _cached(layer, inputs, wanted, sizes, options.text, name), (name, _tuned(options.tuning, again), fuse, donated)


STORED = 1_000_000
"""Edges from which numbers of edges are stored for sums by source; below, a launch costs more than reading what they are computed from."""


def few(index: Index, many: int) -> bool:
    """Are the edges so few that kernels are joined to save launches?

    Not with enough pairs for the CUDA kernels, which take numbers that are stored, and weight gradients alone. In a recorded step of RGAT on fb15k's
    graph, of 195,000 pairs, the joined kernel of sums by source, products and weight gradients took 430 of 1,180 us of an H200.
    """
    return index.edges < STORED and max(index.rows[pairs] for pairs in PAIRS) < many


APART, APART_BACKWARD, LARGE = 7, 4, 200_000
"""Edges of a (destination, relation) pair from which a GPU sums rows in a kernel of its own, and another has the product with the weight; and for the
backward of graphs of at least LARGE sources, whose rows are more than the second cache has.

On an H200 biokg, with 7.1 edges a pair and 94,000 nodes, took 0.56 ms so and 0.50 ms in one kernel (RGCN, forward), 1.05 and 1.13 ms (RGAT), 1.8 and
2.4 ms (HGT); wikikg2, with 4.4, 3.0 and 2.3 ms, 5.2 and 5.1 ms, 8.6 and 8.1 ms, and HGT's training 28.5 and 29.2 ms; am, with 1.7, 2.3 and 1.6 ms
(RGCN), 11.9 and 11.0 ms (RGAT, training).
"""


def fused(index: Index) -> tuple[bool | None, bool]:
    """Are sums of rows over edges and products of them in one kernel on a GPU, forward and backward?

    A forward that sums rows and nothing else is, whatever its rows' length (None): on an H200 mag's took 2.0 ms in one kernel and 2.4 in two (RGCN).
    """
    length = index.edges / max(1, index.rows[Domain.PAIR_DST])
    forward = True if length < APART else None if index.edges >= STORED else False
    return forward, length < (APART if index.rows[Domain.SRC] < LARGE else APART_BACKWARD)


def run_now(layer: Layer, index: Index, tensors: Tensors, options: Options = STANDARD, donated: tuple[str, ...] = ()) -> torch.Tensor:
    """Return the layer's result on a graph, with gradients for the tensors that want them.

    The tensors `donated` are only added to the result, and may be written: the result may be made in their memory.
    """
    grown = torch.is_grad_enabled()
    wanted = tuple(name for name, (_, x) in tensors.items() if grown and x.requires_grad)
    compiled, emitter = _compiled(layer, index, tensors, wanted, options, donated)
    values = [x for _, x in tensors.values()]
    if not wanted:
        return compiled.runner("infer", emitter)(index, dict(zip(tensors, values, strict=True)))[0]
    result: torch.Tensor = _Layer.apply(compiled, index, emitter, tuple(tensors), *values)
    return result


run = uncompiled(run_now)


def run_based(
    layer: Layer, indexed: Callable[[Callable[[], None]], Index], tensors: Tensors, target: torch.Tensor, root: torch.Tensor | None,
    bias: torch.Tensor | None, options: Options,
) -> torch.Tensor:  # fmt: skip
    """Return the result of a layer that adds `base`, here target @ root + bias (None: without), in whose memory it is made. All is one node."""
    made: list[torch.Tensor] = []

    def start() -> None:
        if not made:
            with torch.no_grad():
                made.append(based_on(target, root, bias))

    index = indexed(start)  # of a new graph: the host makes the base while the GPU sorts the edges
    start()
    (base,) = made
    tensors = {**tensors, "base": (Domain.DST, base)}
    if not torch.is_grad_enabled() or not any(x is not None and x.requires_grad for x in (target, root, bias, *(x for _, x in tensors.values()))):
        return run_now(layer, index, tensors, options, ("base",))
    wanted = tuple(name for name, (_, x) in tensors.items() if x.requires_grad)
    compiled, emitter = _compiled(layer, index, tensors, wanted, options, ("base",))
    names, values = tuple(tensors)[:-1], [x for _, x in tensors.values()][:-1]
    shared = next((name for name in wanted if tensors[name][1] is target), "")
    # in a list, the base is no input of the node: its memory becomes the result's, which may then be written in place
    result: torch.Tensor = _Based.apply(compiled, index, emitter, names, shared, [base], target, root, bias, *values)
    return result


def based_on(target: torch.Tensor, root: torch.Tensor | None, bias: torch.Tensor | None) -> torch.Tensor:
    """Return target @ root + bias [N, out], new memory; root or bias may be None, but not both."""
    if root is None:
        assert bias is not None
        return bias.repeat(target.shape[0], 1)  # expand and contiguous would be the bias itself for one target
    return product(target, root, bias)


def gradients(
    layer: Layer, index: Index, tensors: Tensors, wanted: tuple[str, ...], gradient: torch.Tensor, options: Options = STANDARD
) -> list[torch.Tensor]:
    """Return the gradients of the tensors `wanted`, given that of the result; what the backward reads of the forward is computed here."""
    compiled, emitter = _compiled(layer, index, tensors, wanted, options, ())
    assert compiled.backward is not None
    values = {name: x.detach() for name, (_, x) in tensors.items()}
    _, *saved = compiled.runner("forward", emitter)(index, values)
    values |= {f"saved{i}": x for i, x in enumerate(saved)} | {GRADIENT: gradient.contiguous()}
    return compiled.runner("backward", emitter)(index, _used(compiled.backward, values))


class _Layer(torch.autograd.Function):
    """The plan as one node of autograd."""

    @staticmethod
    def forward(ctx: Any, compiled: Plan, index: Index, emitter: Emitter, names: tuple[str, ...], *values: torch.Tensor) -> torch.Tensor:
        values_by_name = dict(zip(names, (x.detach() for x in values), strict=True))
        result, *saved = compiled.runner("forward", emitter)(index, values_by_name)
        read = compiled.backward.names() if compiled.backward is not None else {}
        ctx.save_for_backward(*(x if name in read else None for name, x in zip(names, values, strict=True)), *saved)
        ctx.compiled, ctx.index, ctx.emitter, ctx.names = compiled, index, emitter, names
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        tensors = ctx.saved_tensors
        values = dict(zip(ctx.names, tensors, strict=False))
        values |= {f"saved{i}": x for i, x in enumerate(tensors[len(ctx.names) :])}
        values[GRADIENT] = gradient.contiguous()
        program = ctx.compiled.backward
        run_it = ctx.compiled.runner("backward", (*ctx.emitter[:3], ()))
        gradients = dict(zip(ctx.compiled.wanted, run_it(ctx.index, _used(program, values)), strict=True))
        return (None, None, None, None, *(gradients.get(name) for name in ctx.names))


class _Based(torch.autograd.Function):
    """The plan and its base as one node: the base's share of an input's gradient is added where the plan's is."""

    @staticmethod
    def forward(
        ctx: Any, compiled: Plan, index: Index, emitter: Emitter, names: tuple[str, ...], shared: str, base: list[torch.Tensor],
        target: torch.Tensor, root: torch.Tensor | None, bias: torch.Tensor | None, *values: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        tensors = {**dict(zip(names, (x.detach() for x in values), strict=True)), "base": base[0]}
        result, *saved = compiled.runner("forward", emitter)(index, tensors)
        read = compiled.backward.names() if compiled.backward is not None else {}
        ctx.save_for_backward(None if root is None else target, root, *(x if n in read else None for n, x in zip(names, values, strict=True)), *saved)
        ctx.compiled, ctx.index, ctx.emitter, ctx.names, ctx.shared = compiled, index, emitter, names, shared
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        target, root, *tensors = ctx.saved_tensors
        gradient = gradient.contiguous()
        values = {**dict(zip(ctx.names, tensors, strict=False)), GRADIENT: gradient}
        values |= {f"saved{i}": x for i, x in enumerate(tensors[len(ctx.names) :])}
        program, gradients, own = ctx.compiled.backward, {}, None
        of_target, of_root, of_bias = ctx.needs_input_grad[6:9]
        of_target = of_target and root is not None
        onto = ctx.compiled.runner_onto(ctx.shared, ctx.emitter) if of_target and ctx.shared else None
        if program is not None:
            if onto is not None:
                values[STARTED] = product(gradient, root.t())
            run_it = onto or ctx.compiled.runner("backward", (*ctx.emitter[:3], ()))
            gradients = dict(zip(ctx.compiled.wanted, run_it(ctx.index, _used(program, values)), strict=True))
        if of_target and onto is None and ctx.shared:
            gradients[ctx.shared] = gradients[ctx.shared].addmm_(gradient, root.t())
        elif of_target and onto is None:
            own = product(gradient, root.t())
        matrix, total = None, None
        if of_root:
            matrix, total = outer(target, gradient)
        elif of_bias:
            total = gradient.sum(0)
        return (None, None, None, None, None, None, own, matrix, total if of_bias else None, *(gradients.get(name) for name in ctx.names))


def _used(program: Program, values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return what a program reads, and what its result is added to."""
    names = program.names()
    return {name: x for name, x in values.items() if name in names or name == STARTED}


__all__ = ["Inputs", "Layer", "Options", "Plan", "plan", "run", "split"]

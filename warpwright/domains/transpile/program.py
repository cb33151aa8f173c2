"""Translate a CUDA source: `compile_text(text)` gives a `Program`, whose kernels can be launched from Python."""

from __future__ import annotations

import contextlib
import functools
import gc
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from warpwright.domains.transpile import choices, ir, launch, pipeline
from warpwright.domains.transpile.analysis import callees, classes
from warpwright.domains.transpile.analysis.arrays import volatile
from warpwright.domains.transpile.analysis.divergence import refuse_divergent
from warpwright.domains.transpile.analysis.lockstep import marked
from warpwright.domains.transpile.choices import Choices
from warpwright.domains.transpile.emit.inlined import inlined_edits
from warpwright.domains.transpile.emit.program_text import KernelInfo as KernelInfo
from warpwright.domains.transpile.emit.program_text import assemble
from warpwright.domains.transpile.errors import DoesNotApply, Refusal
from warpwright.domains.transpile.fibers import lockstep as stepping
from warpwright.domains.transpile.fibers import rewrite, together, waiting
from warpwright.domains.transpile.fibers import sanitize as sanitize_functions
from warpwright.domains.transpile.frontend import exports, parse, refusals
from warpwright.domains.transpile.frontend import source as reading
from warpwright.domains.transpile.frontend.scan import Kernel
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text import aliases, host_code, instantiations, own_variables
from warpwright.domains.transpile.frontend.text import edits as text_edits
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import Function, Shape
from warpwright.domains.transpile.passes import stepped
from warpwright.errors import UsageError

TIERS = ("fibers", "loops", "vectors")
"""From the slowest, which takes everything, to the fastest."""


@dataclass(frozen=True)
class Program:
    """A translated program."""

    name: str
    source: str
    """C++ that needs a compiler and OpenMP only."""
    kernels: Mapping[str, KernelInfo]
    exports: Mapping[str, int] = field(default_factory=dict)
    """Kernel or template instance -> number of its entry in the library."""

    has_cuda: bool = True
    """Whether the source, or a header of its own, has any CUDA in it."""
    marked: Callable[[], str] | None = field(default=None, repr=False, compare=False)
    """Makes the same with `#line` in front of each declaration, so that a compiler names places of the CUDA source."""

    def check(self) -> None:
        """Raise a Refusal, with the place in the CUDA source, for the first error that the C++ compiler sees in the output."""
        if errors := self.errors():
            raise errors[0]

    def errors(self) -> list[Refusal]:
        """Return a Refusal, with the place in the CUDA source, for each error that the C++ compiler sees in the output."""
        remark = "this is the C++ compiler's word on the translated source"
        errors = launch.errors(self.marked()) if self.marked is not None else []
        return [Refusal(file, line, "compiler", reason, remark, column) for file, line, column, reason in errors]

    def build(self, flags: Sequence[str] = launch.FLAGS) -> Path:
        """Build (cached) a shared library of the kernels and return where it is."""
        return launch.built(self.source, flags)

    def load(self, flags: Sequence[str] = launch.FLAGS) -> dict[str, launch.LoadedKernel]:
        """Build (cached) and return the kernels: `loaded["saxpy"][grid, block, shared_bytes](n, a, x, y)`."""
        return launch.load(self.source, self.exports, flags)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Keep Python from looking for cycles, a seventh of the time of a long kernel: little is in one (functions inside others that call themselves),
    and that is found afterwards."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_without_collector()
def compile_text(
    text: str,
    name: str = "input.cu",
    defines: Sequence[str] = (),
    tier: str | None = None,
    instances: Sequence[str] = (),
    folders: Sequence[Path] = (),
    host: bool = False,
    blocks: Mapping[str, Shape] = MappingProxyType({}),
    sanitize: bool = False,
    lockstep: bool = False,
    broken: Sequence[Refusal] = (),
) -> Program:
    """Translate CUDA `text`.

    tier: the fastest tier to use (of TIERS); None for the best that applies to each kernel.
    instances: template kernels to export, as `scale<float, 256>`; those that the text launches are found by themselves.
    sanitize: check every access when it runs (`LoadedKernel.findings`).
    lockstep: the code counts on warps that run in lockstep and does not say so by `volatile`: all kernels run on fibers, step by step.
    host: keep host functions, for a program with its own main.
    What a comment `warpwright:` in front of a kernel chooses is kept to (`choices.py`).
    blocks: block shape that a kernel is known to be launched with: it gets a version in which the shape is a constant.
    broken: what `Program.errors` said of an earlier translation: the kernels that reach these places are left out.
    """
    if tier is not None and tier not in TIERS:
        raise UsageError(f"expected a tier of {', '.join(TIERS)}, saw {tier!r}")
    source = reading.read(text, name, defines, folders, instances)
    if not source.kernels and not host:
        raise Refusal(name, 1, "front-end", "expected at least one __global__ function, saw none")
    unread = sanitize_functions.unread(source) if sanitize and not host else []
    source, left_out = (source, {}) if host else refusals.reached(source, [*broken, *unread])
    if why := next((left_out[base] for one in instances if (base := one.partition("<")[0].strip()) in left_out), None):
        raise why
    if host:
        refusals.refuse(source)
    wanted = Wanted("fibers" if lockstep else tier, blocks, MappingProxyType({}) if sanitize else choices.of_kernels(text), lockstep)
    translated = _sanitized(source) if sanitize else _translated(source, wanted)
    instances_edits = instantiations.edits(source, host and not sanitize)
    edits = [*translated.edits, *rewrite.launch_edits(source), *instances_edits, *aliases.edits(source)]
    edits += own_variables.edits(source) if host else host_code.host_edits(source)
    body = text_edits.apply(source.text, edits)
    linked = (lambda text: rewrite.with_linkage(text, source) if not sanitize else text) if host else rewrite.with_named_variables
    body = linked(body)
    exported = exports.exported(source, instances)
    parameters = {k.name: tuple((p.name, p.text) for p in k.parameters) for k in source.kernels if k.defined}
    kernels = {kernel: replace(info, parameters=parameters[kernel]) for kernel, info in translated.kernels.items()}
    kernels |= {kernel: KernelInfo(kernel, why.line, "refused", why.reason) for kernel, why in left_out.items()}

    def marked() -> str:
        text = text_edits.apply(source.text, _with_lines(source, edits))
        return assemble(source, kernels, linked(text), exported, translated.runtime, False)

    return Program(name, assemble(source, kernels, body, exported, translated.runtime), kernels, exported, source.has_cuda, marked)


def _with_lines(source: Source, edits: Sequence[Edit]) -> list[Edit]:
    """Return the edits and, in front of each declaration, one that says where it comes from."""
    lines = {start: '\n#line {1} "{0}"\n'.format(*source.place(start)) for start, _, _ in source.pieces}
    moved = [replace(edit, text=lines.pop(edit.start, "") + edit.text) for edit in edits]
    return [*moved, *(Edit(start, start, line) for start, line in lines.items())]


@dataclass(frozen=True)
class Wanted:
    """What the caller asks of the kernels."""

    tier: str | None
    """The fastest tier to use."""
    blocks: Mapping[str, Shape]
    """Kernel -> block shape that it is known to be launched with."""
    chosen: Mapping[str, Choices]
    """Kernel -> what the comment in front of it chooses."""
    lockstep: bool = False


@dataclass(frozen=True)
class Translated:
    """The kernels of a source, and what changes in its text for them."""

    kernels: dict[str, KernelInfo]
    edits: Sequence[Edit]
    runtime: tuple[str, ...] = ()
    """Parts of the runtime that the text needs, but for those that it names."""


def _sanitized(source: Source) -> Translated:
    """Return the kernels on fibers with every access checked."""
    kernels = {k.name: KernelInfo(k.name, source.line(k.start), "fibers", "sanitized") for k in source.kernels if k.defined}
    checked = sanitize_functions.edits(source, parse.parse(source))
    others = [*rewrite.dynamic_shared_edits(source), *rewrite.value_edits(source), *rewrite.friend_edits(source)]  # in classes and in host functions
    outside = (one for one in others if not any(edit.start <= one.start < edit.end and edit.start < one.end for edit in checked))
    return Translated(kernels, [*checked, *outside], ("shadow",))


def _translated(source: Source, wanted: Wanted) -> Translated:
    """Return each kernel in the fastest tier that takes it."""
    read = functools.cache(lambda: marked([volatile.ordered(one) for one in parse.parse(source)]))  # once, and not where everything stays on fibers
    faster = _faster_tiers(source, read, wanted)
    steps = wanted.lockstep or re.search(r"\bvolatile\b|\[\s*\w+\s*\^", source.text) or (faster.read and "__shared__" in source.text)
    functions = read() if steps else []
    edits = [
        *stepping.edits(source, functions, faster.texts.keys(), wanted.lockstep),
        *together.edits(source),
        *waiting.edits(source),
        *rewrite.value_edits(source),
        *rewrite.dynamic_shared_edits(source),
        *rewrite.friend_edits(source),
        *rewrite.device_edits(source, faster.texts),
        *host_code.drop_edits(source, faster.dropped),
        *faster.inlined,
    ]
    return Translated(faster.kernels, edits)


@dataclass(frozen=True)
class Faster:
    """What became of the kernels in the tiers above fibers."""

    kernels: dict[str, KernelInfo]
    texts: dict[int, str] = field(default_factory=dict)
    """Offset of a kernel that left tier fibers -> its text."""
    dropped: frozenset[int] = frozenset()
    """Offsets of device functions that are no longer needed."""
    inlined: tuple[Edit, ...] = ()
    """Edits of the device functions that the loops of tier vectors inline."""
    read: bool = False
    """Whether the source was parsed."""


def _faster_tiers(source: Source, read: Callable[[], Sequence[Function]], wanted: Wanted) -> Faster:
    """Return what became of each kernel. `read` parses the source."""
    defined = [k for k in source.kernels if k.defined]
    if wanted.tier == "fibers":
        return Faster({k.name: KernelInfo(k.name, source.line(k.start), "fibers", "asked for") for k in defined})
    if re.search(r"\bcurandState", source.text):  # each call moves a state through a pointer: it can neither be recomputed nor left out
        return Faster({k.name: KernelInfo(k.name, source.line(k.start), "fibers", "random numbers that a state makes") for k in defined})
    if "_carry<" in source.text:  # the same of the carry that inline PTX leaves
        return Faster({k.name: KernelInfo(k.name, source.line(k.start), "fibers", "sums of inline PTX that leave a carry") for k in defined})
    functions = [stepped.with_barriers(f, any(k.start <= f.start < k.end for k in defined)) for f in read()]
    device = callees.device([f for f in functions if not any(k.start <= f.start < k.end for k in defined)], classes.stateful(source))
    methods = classes.Methods.of(source, device.functions, device.known.impure.union(device.syncing))
    kernels: dict[str, KernelInfo] = {}
    texts: dict[int, str] = {}
    specialised = instantiations.specialised(source)
    for kernel in defined:
        line = source.line(kernel.start)
        try:
            if kernel.name in specialised:
                raise DoesNotApply(line, "it has an explicit specialisation, which only the function itself knows")
            written = _in_loops(kernel, source, functions, device, methods, wanted)
        except DoesNotApply as error:
            kernels[kernel.name] = KernelInfo(kernel.name, line, "fibers", str(error))
            continue
        texts[kernel.start] = written.text
        kernels[kernel.name] = KernelInfo(kernel.name, line, written.tier, written.reason)
    all_left_fibers = texts.keys() == {k.start for k in defined}
    syncing = [f for named in device.syncing.values() for f in named]
    dropped = _unused(source, syncing, texts) if all_left_fibers and not any(f.problem for f in syncing) else set()
    inlined = inlined_edits(source, device) if any(k.tier == "vectors" for k in kernels.values()) else []
    return Faster(kernels, texts, frozenset(dropped), tuple(inlined), True)


def _unused(source: Source, syncing: Sequence[Function], texts: Mapping[int, str]) -> set[int]:
    """Return the offsets of the functions that nothing mentions once the kernels are replaced by `texts`."""
    replaced = [(k.start, k.end) for k in source.kernels if k.start in texts]
    pieces = [(start, end) for start, _, end in source.pieces if not any(low < end and start < high for low, high in replaced)]
    of = {f.start: next(((start, end) for start, end in pieces if start <= f.start < end), None) for f in syncing}
    candidates = {f.start: f.name for f in syncing}
    if not candidates:
        return set()
    while True:
        gone = {of[at] for at in candidates}
        outside = [source.text[start:end] for start, end in pieces if (start, end) not in gone]
        words = set(re.findall(r"\w+", " ".join([*outside, *texts.values()])))
        kept = {at for at, name in candidates.items() if name in words}
        if not kept:
            return set(candidates)
        candidates = {at: name for at, name in candidates.items() if at not in kept}


_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_THREAD = re.compile(r"\b(threadIdx|blockIdx)\b")


def _in_loops(
    kernel: Kernel, source: Source, functions: Sequence[Function], device: callees.Device, methods: classes.Methods, wanted: Wanted
) -> pipeline.Written:
    """Return a kernel in tier loops or vectors. Raises DoesNotApply, and Refusal for a barrier that provably not all threads reach."""
    line = source.line(kernel.start)
    parsed = next((f for f in functions if kernel.start <= f.start < kernel.end), None)
    if parsed is None:
        raise DoesNotApply(line, "the parser does not show this kernel")
    if waiting.waits(source, kernel):
        raise DoesNotApply(line, "it waits for what another thread writes")
    if thread := methods.used(source.text[kernel.start : kernel.end]):
        raise DoesNotApply(line, f"methods of {thread} ask for the thread or synchronise")
    if taken := methods.taken(kernel, source.text[kernel.head_end : kernel.end], parsed, device.own):
        raise DoesNotApply(line, f"{taken}, of a type that the template takes, may ask for the thread or synchronise")
    if (methods.pointers or methods.lambdas) and (by := classes.pointed(parsed, device.functions, source)):
        raise DoesNotApply(line, f"what {by} points to may ask for the thread or synchronise")
    launched, shapes = exports.block_shapes(source, kernel, wanted.blocks)
    refuse_divergent(parsed, source, launched)
    if classes.alone(parsed):
        raise DoesNotApply(line, "a lambda that captures nothing asks for the thread")
    if asking := methods.by_default(source.text[kernel.start : kernel.end]):
        raise DoesNotApply(line, f"an argument by default of {asking} asks for the thread")
    written = pipeline.write(kernel, parsed, device, line, shapes, wanted.tier != "loops", wanted.chosen.get(kernel.name, choices.BY_RULE))
    if "ww::at_thread" not in written.text and (left := _THREAD.search(_STRING.sub("", ir.plain(written.text)))):
        raise DoesNotApply(line, f"{left[0]} in what the parser does not show")  # in loops it is no thread's
    return written

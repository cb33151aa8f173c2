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

from warpwright.domains.transpile import choices, launch, pipeline, vmath
from warpwright.domains.transpile.analysis import classes
from warpwright.domains.transpile.analysis.divergence import refuse_divergent
from warpwright.domains.transpile.choices import Choices
from warpwright.domains.transpile.errors import DoesNotApply, Refusal
from warpwright.domains.transpile.fibers import lockstep as stepping
from warpwright.domains.transpile.fibers import rewrite
from warpwright.domains.transpile.fibers import sanitize as sanitize_functions
from warpwright.domains.transpile.fibers.lockstep import relies_on_lockstep
from warpwright.domains.transpile.frontend import parse, scan
from warpwright.domains.transpile.frontend import source as reading
from warpwright.domains.transpile.frontend.scan import Kernel, LaunchSite
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.ir import Function
from warpwright.domains.transpile.launch.runtime_text import runtime
from warpwright.errors import UsageError

Shape = tuple[int, int, int]

TIERS = ("fibers", "loops", "vectors")
"""From the slowest, which takes everything, to the fastest."""


@dataclass(frozen=True)
class KernelInfo:
    """What became of one kernel."""

    name: str
    line: int
    tier: str
    """One of TIERS."""
    reason: str
    """Why this tier and not a faster one; empty for the fastest."""


@dataclass(frozen=True)
class Program:
    """A translated program."""

    name: str
    source: str
    """C++ that needs a compiler and OpenMP only."""
    kernels: Mapping[str, KernelInfo]
    exports: Mapping[str, int] = field(default_factory=dict)
    """Kernel or template instance -> number of its entry in the library."""

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
) -> Program:
    """Translate CUDA `text`.

    tier: the fastest tier to use (of TIERS); None for the best that applies to each kernel.
    instances: template kernels to export, as `scale<float, 256>`; those that the text launches are found by themselves.
    sanitize: check every access when it runs (`LoadedKernel.findings`).
    lockstep: the code counts on warps that run in lockstep and does not say so by `volatile`: all kernels run on fibers, step by step.
    host: keep host functions, for a program with its own main.
    What a comment `warpwright:` in front of a kernel chooses is kept to (`choices.py`).
    blocks: block shape that a kernel is known to be launched with: it gets a version in which the shape is a constant.
    """
    if tier is not None and tier not in TIERS:
        raise UsageError(f"expected a tier of {', '.join(TIERS)}, saw {tier!r}")
    source = reading.read(text, name, defines, folders)
    found = scan.tokens(source.text)
    known = scan.kernels(source.text, found)
    if not known and not host:
        raise Refusal(name, 1, "front-end", "expected at least one __global__ function, saw none")
    sites = scan.launches(source.text, found, known)
    refuse(source, sites)
    if sanitize:
        return sanitized(source, known, sites, instances, host)
    read = functools.cache(functools.partial(parse.parse, source))  # once, and not at all where everything stays on fibers
    kernels, better, dropped, inlined = faster_tiers(source, read, known, sites, "fibers" if lockstep else tier, blocks, choices.of_kernels(text))
    functions = read() if lockstep or re.search(r"\bvolatile\b", source.text) else []
    edits = [
        *stepping.edits(source, known, functions, set(better), lockstep),
        *rewrite.launch_edits(source.text, sites, known),
        *rewrite.value_edits(found, known),
        *rewrite.dynamic_shared_edits(source.text, found),
        *rewrite.device_edits(source.text, known, better),
    ]
    if not host:
        edits += host_edits(source.text)
    edits += drop_edits(source.text, dropped)
    edits += inlined
    body = rewrite.apply(source.text, edits)
    body = rewrite.with_linkage(body, source.text, known) if host else body
    exports = exported(known, sites, instances)
    return Program(name, assemble(source, kernels, body, exports, known), kernels, exports)


def sanitized(
    source: Source, known: Sequence[Kernel], sites: Sequence[LaunchSite], instances: Sequence[str], host: bool
) -> Program:
    """Return the program on fibers with every access checked."""
    kernels = {k.name: KernelInfo(k.name, source.line(k.start), "fibers", "sanitized") for k in known if k.defined}
    edits = [*rewrite.launch_edits(source.text, sites, known), *sanitize_functions.edits(source, known, parse.parse(source))]
    edits += [] if host else host_edits(source.text)
    body = rewrite.apply(source.text, edits)
    exports = exported(known, sites, instances)
    return Program(source.name, assemble(source, kernels, body, exports, known, ("shadow",)), kernels, exports)


def faster_tiers(
    source: Source, read: Callable[[], Sequence[Function]], known: Sequence[Kernel], sites: Sequence[LaunchSite], tier: str | None,
    blocks: Mapping[str, Shape], chosen: Mapping[str, Choices],
) -> tuple[dict[str, KernelInfo], dict[int, str], set[int], list[rewrite.Edit]]:  # fmt: skip
    """Return what became of each kernel, the text of those that left tier F (by offset), device functions that are no longer needed, and the edits
    of those that the loops of tier vectors inline. `read` parses the source."""
    defined = [k for k in known if k.defined]
    if tier == "fibers":
        return {k.name: KernelInfo(k.name, source.line(k.start), "fibers", "asked for") for k in defined}, {}, set(), []
    if "curandStatePhilox4_32_10" in source.text:  # each call moves a state behind a pointer: it can neither be recomputed nor left out
        return {k.name: KernelInfo(k.name, source.line(k.start), "fibers", "random numbers that a state makes") for k in defined}, {}, set(), []
    functions = read()
    kernels: dict[str, KernelInfo] = {}
    better: dict[int, str] = {}
    starts = {k.start for k in defined}
    device = [f for f in functions if not any(k.start <= f.start < k.end for k in defined)]
    shared = pipeline.device(device)
    objects = classes.aware(source, shared.known.impure)
    texts = {f.name: source.text[start:end] for start, _, end in scan.pieces(source.text) for f in device if start <= f.start < end}
    for kernel in defined:
        line = source.line(kernel.start)
        parsed = next((f for f in functions if kernel.start <= f.start < kernel.end), None)
        try:
            if parsed is None:
                raise DoesNotApply(line, "the parser does not show this kernel")
            if thread := classes.used(source.text[kernel.start : kernel.end], texts, objects):
                raise DoesNotApply(line, f"methods of {thread} ask for the thread or synchronise")
            shapes = block_shapes(kernel, sites, blocks)
            refuse_divergent(parsed, source, block_shapes(replace(kernel, bounds=""), sites, blocks))  # a bound is the largest shape only
            written = pipeline.write(kernel, parsed, shared, line, shapes, tier != "loops", chosen.get(kernel.name, choices.BY_RULE))
        except DoesNotApply as error:
            kernels[kernel.name] = KernelInfo(kernel.name, line, "fibers", str(error))
            continue
        better[kernel.start] = written.text
        kernels[kernel.name] = KernelInfo(kernel.name, line, written.tier, written.reason)
    syncing = shared.syncing.values()
    dropped = {f.start for f in syncing} if len(better) == len(starts) and not any(f.problem for f in syncing) else set()
    return kernels, better, dropped, inlined_edits(source.text, shared) if any(k.tier == "vectors" for k in kernels.values()) else []


def inlined_edits(text: str, device: pipeline.Device) -> list[rewrite.Edit]:
    """Give the device functions that loops inline the elementary functions without branches."""
    starts = {f.start for f in device.functions if f.name in device.simple and not relies_on_lockstep(f)}
    pieces = [piece for piece in scan.pieces(text) if any(piece[0] <= at < piece[1] for at in starts)]
    inside = [(low, high) for low, brace, high in pieces if not _is_type(text[low:brace]) and "__noinline__" not in text[low:high]]
    return [rewrite.Edit(*edit) for edit in vmath.function_edits(scan.tokens(text), inside, device.functions)]


def block_shapes(kernel: Kernel, sites: Sequence[LaunchSite], blocks: Mapping[str, Shape]) -> tuple[Shape, ...]:
    """Return the block shapes that get a version of their own: as given, as launched with numbers, or the launch bound."""
    found: list[Shape] = [blocks[kernel.name]] if kernel.name in blocks else []
    for site in sites:
        if site.callee.rpartition("::")[2] == kernel.name:
            parts = scan.split_commas(site.configuration)
            numbers = re.fullmatch(r"(?:dim3\s*[({])?\s*(\d+)\s*(?:,\s*(\d+)\s*)?(?:,\s*(\d+)\s*)?[)}]?", parts[1]) if len(parts) > 1 else None
            if numbers:
                found.append((int(numbers[1]), int(numbers[2] or 1), int(numbers[3] or 1)))
    if kernel.bounds.strip().isdigit():
        found.append((int(kernel.bounds), 1, 1))
    return tuple(s for s in dict.fromkeys(found) if 0 < s[0] * s[1] * s[2] <= 1024)[:4]


def drop_edits(text: str, starts: set[int]) -> list[rewrite.Edit]:
    """Leave out the device functions that begin at these offsets (or whose template header ends just before)."""
    edits = []
    for start, _, end in scan.pieces(text):
        if any(start <= at < end for at in starts):
            edits.append(rewrite.Edit(start, end, ""))
    return edits


_REFUSED: Mapping[str, re.Pattern[str]] = {
    "library-call": re.compile(
        r"\b(cub|thrust|cutlass|cute)\s*::|\b(?!curand(_init|_uniform|_uniform4|4)?\s*\(|curandStatePhilox4_32_10(_t)?\b)"
        r"(cublas|cudnn|cufft|curand|cusparse|cusolver)\w*"
    ),
    "tma": re.compile(r"\b(cp_async_bulk\w*|wgmma\w*|mbarrier\w*|CUtensorMap)\b|\bcuda\s*::\s*(barrier|pipeline|ptx)\b"),
    "texture": re.compile(r"\b(tex\dD(Layered|Lod|Grad|gather)\w*|texCubemap\w*|surf\dD\w*|cudaSurfaceObject_t)\b"),
    "cluster": re.compile(r"\b(cluster_group|this_cluster|cluster_dims)\b"),
    "ptx": re.compile(r"\b(asm|__asm__|__asm)\b"),
}
"""What no tier translates, by code, as it looks in device code."""

_WHAT: Mapping[str, str] = {
    "library-call": "device code uses {0!r}, of a library that is not there on a CPU", "tma": "device code uses {0!r}, of Hopper's asynchronous copies",  # noqa: E501
    "texture": "device code uses {0!r}: of textures, plain objects and references in 1 to 3 dimensions are offered",
    "cluster": "device code uses {0!r}: clusters are not offered",
    "ptx": "device code has inline PTX that is not of the common kind",
}  # fmt: skip


def refuse(source: Source, sites: Sequence[LaunchSite]) -> None:
    """Raise for what no tier translates."""
    for site in sites:
        if site.inside_kernel:
            file, line = source.place(site.start)
            raise Refusal(file, line, "dynamic-parallelism", f"a kernel launches {site.callee}", "launch it from the host")
    for start, _, end in scan.pieces(source.text):
        text = re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\\\.|[^\"\\\\])*\"", lambda m: re.sub(r"[^\n]", " ", m[0]), source.text[start:end], flags=re.S)
        if not re.search(r"\b__(global|device)__\b", text):
            continue
        for code, pattern in _REFUSED.items():
            if found := pattern.search(text):
                file, line = source.place(start + found.start())
                raise Refusal(file, line, code, _WHAT[code].format(found[0]), "rewrite that part in CUDA C++")


def host_edits(text: str) -> list[rewrite.Edit]:
    """Drop functions that only the host calls: all but kernels, device functions, constexpr functions and those they need."""
    edits = []
    for start, brace, end in scan.pieces(text):
        head = text[start : brace if brace >= 0 else end]
        bare = re.sub(r"/\*.*?\*/|//[^\n]*", "", head, flags=re.S)
        if "__global__" in bare or "__device__" in bare or "__constant__" in bare or "constexpr" in bare or "__shared__" in bare:
            continue
        if _is_type(bare) or (brace < 0 and not _mentions_framework(text[start:end])):
            continue
        body = text[start:end]
        if "(" in bare and brace >= 0 and not _is_host_only(body):
            continue
        edits.append(rewrite.Edit(start, end, ""))
    edits += [rewrite.Edit(m.start(), m.end(), "") for m in re.finditer(r"\bnamespace\s+\w+\s*=\s*(pybind11|torch|at)\b[^;]*;", text)]
    return edits


_FRAMEWORK = re.compile(
    r"\b(torch|at|c10|py|pybind11)\s*::|\bcuda[A-Z]\w+\(|\bcuda\w+_t\b|\b(cublas|cudnn|cufft|curand)\w*|\bPYBIND11_MODULE\b|\bTORCH_LIBRARY\b|\bpybind11\b|namespace torch\b|\bTensor\b"  # noqa: E501
)
"""Words of host frameworks: what mentions them is host code."""


def _is_type(head: str) -> bool:
    return bool(re.match(r"\s*(template\s*<.*>\s*)?(typedef\b|using\b|struct\b|class\b|union\b|enum\b)[^()]*$", head, re.S))


def _mentions_framework(text: str) -> bool:
    return bool(_FRAMEWORK.search(text))


def _is_host_only(text: str) -> bool:
    return (
        "<<<" in text
        or _mentions_framework(text)
        or bool(re.search(r"\bmain\s*\(|\bstd::cout\b|\bfopen\s*\(|\bmalloc\s*\(|\bPYBIND11_MODULE\b", text))
    )


def exported(known: Sequence[Kernel], sites: Sequence[LaunchSite], instances: Sequence[str]) -> dict[str, int]:
    """Return what can be launched from outside: plain kernels, and instances of template kernels that are asked for or launched."""
    defined = [k for k in known if k.defined]
    plain = {k.name: k for k in defined if not k.template}
    templates = {k.name: k for k in defined if k.template}
    overloaded = {k.name for k in known for other in known if k.name == other.name and len(k.parameters) != len(other.parameters)}
    names = [n for n in plain if sum(k.name == n for k in defined) == 1 and n not in overloaded]
    for site in sites:
        base = site.callee.rpartition("::")[2]
        if base in templates and site.template_arguments and _closed(site.template_arguments):
            names.append(f"{base}<{' '.join(site.template_arguments.split())}>")
    for one in instances:
        base = one.partition("<")[0].strip()
        if base not in templates:
            raise UsageError(f"expected an instance of a template kernel ({', '.join(templates) or 'there is none'}), saw {one!r}")
        names.append(one)
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _closed(arguments: str) -> bool:
    """Say whether template arguments mean the same at file scope: numbers and builtin types."""
    builtin = {
        "float",
        "double",
        "int",
        "unsigned",
        "long",
        "short",
        "char",
        "bool",
        "half",
        "__half",
        "const",
        "true",
        "false",
        "float2",
        "float4",
        "int64_t",
        "int32_t",
        "uint8_t",
    }
    return all(token.kind in ("number", "mark") or token.text in builtin for token in scan.tokens(arguments))


def assemble(
    source: Source, kernels: Mapping[str, KernelInfo], body: str, exports: Mapping[str, int], known: Sequence[Kernel], more: tuple[str, ...] = ()
) -> str:
    """Return the whole output: head, runtime, translated text, entries."""
    body = re.sub(r"(?<!\()\b__noinline__\b", "__attribute__((noinline))", body)  # as a macro it would break the standard library's headers
    body = re.sub(r"\bstatic\s+__shared__|\b__shared__\s+static\b", "__shared__", body)
    head = [
        f"// Written by warpwright transpile from {source.name}. Build with a C++17 compiler: c++ -O3 -march=native -std=c++17 -fopenmp -fno-math-errno -fno-trapping-math -fno-strict-aliasing",  # noqa: E501
        *_ASKED,
    ]
    head += [f"// kernel {k.name} (line {k.line}): tier {k.tier}{f' ({k.reason})' if k.reason else ''}" for k in kernels.values()]
    includes = [f"#include <{name}>" for name in source.includes]
    if {"assert.h", "cassert"} & set(source.includes) and re.search(r"\bassert\s*\(", body):
        includes += _ASSERT
    parts = ("base", "vmath", "half", "atomics", "launch", "fibers", *(p for p in _OPTIONAL if re.search(_OPTIONAL[p], body)), *more)
    return "\n".join([*head, runtime(parts), *includes, f"\n// ---- {source.name} ----", tidy(body), *entries(exports, known), ""])


_ASKED = (
    "#if defined(__GNUC__) && !defined(__clang__)",
    # The last: no memcpy in place of short loops. What it stores in pieces of 16 bytes, a load of 32 has to wait for (layernorm: 3 times as slow).
    '#pragma GCC optimize("no-strict-aliasing", "no-math-errno", "no-trapping-math", "no-tree-loop-distribute-patterns")',
    "#endif",
)
"""Of gcc, whatever its command line. Aliasing: CUDA sources read a float4 as floats, or a uint4 as halves, and nvcc lets them. Mathematics: CUDA has
no errno and no traps, and with either gcc vectorises no loop that has a square root, a floor or a select of floats."""

_ASSERT = (
    "#ifndef NDEBUG",
    "#undef assert",
    "#define assert(...) ((__VA_ARGS__) ? (void)0 : ww::asserted(#__VA_ARGS__, __FILE__, __LINE__))",
    "#endif",
)
"""One that fails in a kernel fails the launch, with cudaErrorAssert; the thread goes on."""

_OPTIONAL = {"vtrig": r"\bww::(any|near)_|\bww::(a?(sin|cos|tan)|atan2|sinpi|cospi|sincos(pi)?|erfc?|normcdf)_f\b", "vcalls": r"\bww::any_",
             "complex": r"\bcu(Float|Double)?Complex\b", "simd": r"\b__v[a-z]+[24]\s*\(|\b__vi(add|b)?(max|min)3?_",
             "lanes": r"\bww::lanes_", "groups": r"\bcooperative_groups\b", "curand": r"\bcurandStatePhilox4_32_10",
             "wmma": r"\bwmma\b", "host": r"\bcuda[A-Z]\w+|\bcuda\w+_t\b|\bmain\s*\(",
             "texture": r"\bcuda(TextureObject_t|Array\w*|MallocArray|ChannelFormatDesc)\b|\btex[123]D(fetch)?\b|\btexture\s*<|\btextureReference\b",
             "texture_reference": r"\btexture\s*<|\btextureReference\b"}  # fmt: skip
"""Parts of the runtime that are written only where the text matches."""


def tidy(text: str) -> str:
    """Return the text without the blank lines that the preprocessor left."""
    return re.sub(r"[ \t]+\n", "\n", re.sub(r"\n(?:[ \t]*\n){2,}", "\n\n", text)).strip("\n")


def entries(exports: Mapping[str, int], known: Sequence[Kernel]) -> list[str]:
    """Return the functions through which Python launches each exported kernel."""
    if not exports:
        return []
    scopes = {k.name: k.scope for k in known}
    lines = ["\n// ---- entries for a foreign caller; weak, since each source of a program has its own ----"]
    outside = 'extern "C" __attribute__((weak))'
    for name, number in exports.items():
        base, angle, arguments = name.partition("<")
        base = base.strip()
        function = f"&{scopes[base]}{base}_launch{angle}{arguments}"
        lines.append(
            f'{outside} int ww_run_{number}(const unsigned* shape, size_t shared, void** a) {{ return ww::enter({function}, shape, shared, a); }}'
        )
        lines.append(f'{outside} const char* ww_signature_{number}() {{ return ww::signature({function}); }}')
    return lines

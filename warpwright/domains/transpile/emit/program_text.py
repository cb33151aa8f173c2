"""The whole output: head, runtime, translated text, and the functions through which Python launches its kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from warpwright.domains.transpile.frontend.refusals import words_of
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text.host_code import function_of
from warpwright.domains.transpile.launch.runtime_text import ALWAYS, runtime
from warpwright.native.headers import MARK

BUILD = "c++ -O3 -march=native -std=c++17 -fopenmp -fno-math-errno -fno-trapping-math -fno-strict-aliasing"
"""How whoever gets the output builds it; gcc is told the last three in the output too."""
WRITTEN = "// Written by warpwright transpile"
"""How an output begins."""


@dataclass(frozen=True)
class KernelInfo:
    """What became of one kernel."""

    name: str
    line: int
    tier: str
    """fibers, loops or vectors."""
    reason: str
    """Why this tier and not a faster one; empty for the fastest."""
    parameters: tuple[tuple[str, str], ...] = ()
    """Name and text of each parameter."""


def assemble(
    source: Source, kernels: Mapping[str, KernelInfo], body: str, exports: Mapping[str, int], more: tuple[str, ...] = (),
    tidied: bool = True,
) -> str:  # fmt: skip
    """Return the whole output: head, runtime, translated text, entries. `tidied`: without the blank lines that the preprocessor left."""
    body = re.sub(r"(?<!\()\b__noinline__\b", "__attribute__((noinline))", body)  # as a macro it would break the standard library's headers
    body = re.sub(r"\bstatic\s+__shared__|\b__shared__\s+static\b", "__shared__", body)
    body = re.sub(r"\b__shared__\s+(alignas\s*\((?:[^()]|\([^()]*\))*\))", r"\1 __shared__", body)  # C++ has it in front of `thread_local`
    body = re.sub(r"\b(cublas[A-Z]\w*)_v2\b", r"\1", body)
    head = [
        f"{WRITTEN} from {source.name}. Build with a C++17 compiler: {BUILD}",
    ]
    head += [f"// kernel {k.name} (line {k.line}): tier {k.tier}{f' ({k.reason})' if k.reason else ''}" for k in kernels.values()]
    includes = [f"#include <{name}>" for name in source.includes]
    if re.search(r"(?<!static_)\bassert\s*\(", body):  # the program's own macro would be expanded by now; NVRTC has it without its header
        includes += _ASSERT
    parts = (*parts_of(body), *more)
    body = tidy(body) if tidied else body
    translated = [f"\n// ---- {source.name} ----", body, *entries(exports, source, tidied), ""]
    apart = _APART if _MEETING.search(body) else ()
    return "\n".join([*head, *_ASKED, runtime(ALWAYS), MARK, runtime(parts), *includes, *apart, *translated])


_ASKED = (
    "#if defined(__GNUC__) && !defined(__clang__)",
    # The last: no memcpy in place of short loops. What it stores in pieces of 16 bytes, a load of 32 has to wait for (layernorm: 3 times as slow).
    '#pragma GCC optimize("no-strict-aliasing", "no-math-errno", "no-trapping-math", "no-tree-loop-distribute-patterns")',
    "#if defined(__AVX512F__)",
    '#pragma GCC target("prefer-vector-width=512")',
    "#endif",
    "#endif",
)
"""Of gcc, whatever its command line. Aliasing: CUDA sources read a float4 as floats, or a uint4 as halves, and nvcc lets them. Mathematics: CUDA has
no errno and no traps, and with either gcc vectorises no loop that has a square root, a floor or a select of floats. Vectors: where a loop stores 32
bytes at a time what the runtime's warps and sums load by 64, each load waits (scan by warps: 6 times as slow, layernorm 2.4 times)."""

_MEETING = re.compile(r"\b(__activemask|__(shfl(_up|_down|_xor)?|ballot|any|all)\s*\(|coalesced_threads)")
"""What asks on fibers which lanes are together."""

_APART = (
    "#if defined(__GNUC__) && !defined(__clang__)",
    '#pragma GCC optimize("no-thread-jumps", "no-unswitch-loops", "no-split-loops", "no-split-paths", "no-peel-loops", "no-crossjumping", '
    '"no-tree-tail-merge", "no-isolate-erroneous-paths-dereference", "no-guess-branch-probability", "reorder-blocks-algorithm=simple")',
    "#endif",
)
"""Lanes are together that wait at the same place of the machine code: none of the text's places may become two, nor two one, nor change their order.
(`if (c) x = 1; m = __activemask(); if (x) ...` had half a warp in each of two copies.)"""

_ASSERT = (
    "#ifndef NDEBUG",
    "#undef assert",
    "#define assert(...) ((__VA_ARGS__) ? (void)0 : ww::asserted(#__VA_ARGS__, __FILE__, __LINE__))",
    "#endif",
)
"""One that fails in a kernel fails the launch, with cudaErrorAssert; the thread goes on."""

_DRIVER = r"\bcu(?!C(add|sub|mul|div|real|imag|abs|onj|fma)f?\s*\(|Complex\w*\s*\()[A-Z]\w+\s*\(|\bCU[a-z]\w+\b"
"""Calls and types of the driver's interface; calls of cuComplex.h look like them."""

_BLAS_LEVELS = (
    r"\bcublas([CZ](?!reate|ompute|ontext|allback)[a-z]\w+|Sc(nrm2|asum)|Dz(nrm2|asum)|I[cz]am\w+"
    r"|[SD](rot\w*|[gst]bmv|s[yp](mv|r|r2)|s[yp]mm|syr2k|syrkx|t[rbp]([ms]v|mm)|dgmm|tpttr|trttp|gemmGrouped\w+)|(Axpy|Scal|Nrm2|Dotc?)Ex)\b"
)
"""Calls of cuBLAS that are loops here, besides the common ones of real numbers."""

_OPTIONAL = {
    "vtrig": r"\bww::(any|near)_|\bww::(a?(sin|cos|tan)|atan2|sinpi|cospi|sincos(pi)?|erfc?|normcdf)_f\b",
    "vcalls": r"\bww::any_",
    "complex": r"\bcu(Float|Double)?Complex\b|" + _BLAS_LEVELS,
    "half_more": r"\b__(?!(int2half|half2int|float2half|bfloat162int|int2bfloat16|float2bfloat16)_rn|half2int_rz|bfloat162int_rz)"
    r"(((u?int|u?short|u?ll|float)2(half|bfloat16)|(half|bfloat16)2(u?int|u?short|u?ll|u?char))_r[nzdu]|double2bfloat16|hb?(eq|ne|gt|ge|lt|le)u2?|hisinf|hb(eq|ne|gt|ge|lt|le)2|hne2|h(add|sub|mul|fma)2?_(sat|rn)|hfma2?_relu|h(max|min)2?_nan|hisnan2|hcmadd"
    r"|h(eq|ne|gt|ge|lt|le)u?2_mask|(low|high)s?2half2|lowhigh2highlow)\b|\bh(exp10|tanh_approx)\b"
    r"|\bh2(exp(2|10)|log(2|10)?|r?sqrt|rcp|sin|cos|tanh(_approx)?|floor|ceil|rint|trunc)\b",
    "device_more": r"\b__(u?(int|ll)2float_r[duz]|u?ll2double_r[duz]|ull2double_rn|funnelshift_[lr]c|rhadd|uhadd|urhadd|dp2a_(lo|hi)|fns|assume"
    r"|cvta_generic_to_global)\b|\b(r?norm4d|erfc?invf?|normcdfinvf?|cyl_bessel_i[01]f?|ullmax|ullmin)\b",
    "directed": r"\b__([fd](add|sub|mul|div|sqrt|rcp)|fmaf|double2float)_r[duz]\b",
    "simd": r"\b__v[a-z]+[24]\s*\(|\b__vi(add|b)?(max|min)3?_",
    "carry": r"\bww::(add|sub|mad)_carry\b",
    "lanes": r"\bww::(lanes|tree)_",
    "trees": r"\bww::tree_",
    "doubles": r"\bww::(doubles|widened|narrowed)\b",
    "masked": r"\bww::(?:u?ints|most_of|least_of)\b",
    "counts": r"\bww::counts_of\b",
    "inside": r"\bww::(each_inside|Range)\b",
    "nested": r"\bww::from_device\b",
    "values": r"\bww::(launch_any|value_of|go)\b|\bcudaLaunch(Cooperative)?Kernel|\bcudaGraph\w+",
    "launch_calls": r"\bcudaLaunch(Cooperative)?Kernel",
    "cooperative": r"\bcudaLaunchCooperativeKernel",
    "fp8": r"\b__nv_(cvt_\w*fp8\w*|fp8\w*)\b",
    "cublas": r"\bcublas\w+|\bCUBLAS_|\bCUDA_[RC]_\d",
    "cublas_solve": r"\bcublas\w(getr[fsi]Batched|trsm(Batched)?|syrk)\b",
    "cublas_levels": _BLAS_LEVELS,
    "cublas_lt": r"\bcublasLt(Matmul|Matrix|Epilogue)\w*|\bCUBLASLT_\w+",
    "cub": r"\bcub\s*::|\bnamespace\s+cub\b",
    "cub_device": r"\bcub\s*::\s*(Device\w+|CachingDeviceAllocator|DoubleBuffer)\b|\busing\s+namespace\s+cub\b",
    "libcudacxx": r"\bcuda\s*::\s*(std\s*::|atomic\w*|memory_order\w*)",
    "curand_host": r"\bcurand(Create|Generate|Status_t|Generator_t)",
    "thrust": r"\bthrust\s*::|\bnamespace\s+thrust\b|\bTHRUST_\w+",
    "nvtx": r"\bnvtx\w+",
    "demangle": r"\b__cu_demangle\b",
    "grid": r"\bcooperative_groups\b|\bcudaLaunchCooperativeKernel|\bww::run_together\b",
    "groups": r"\bcooperative_groups\b",
    "barriers": r"\bcuda\s*::\s*(barrier|pipeline|make_pipeline|memcpy_async|aligned_size_t|thread_scope\w*|atomic\w*)\b|\bnamespace\s+cuda\b",
    "pipeline_primitives": r"\b__pipeline_\w+",
    "curand": r"\bcurandState\w*|\bcurand(Create|Generate|Status_t|Generator_t)",
    "sobol": r"\bcurandStateSobol|\bcurandDirectionVectors|\bcurand(Create|Generate|Status_t|Generator_t)",
    "wmma": r"\b(wmma|nvcuda)\b",
    "host": r"\bcuda[A-Z]\w+|\bcuda\w+_t\b|\bmain\s*\(|\bcublas\w+|\bcurand(Create|Generate|Status_t|Generator_t)|" + _DRIVER,
    "host_more": r"\bcuda[A-Z]\w+|\bCUDART_CB\b|" + _DRIVER,
    "driver": r"\bcu(Ctx|Mem|Stream|Event|DevicePrimaryCtx|DeviceGetUuid|Module|Launch|Func|Array|Tex)\w*\s*\("
    r"|\bCU(module|function|array|texObject)\b|\bCUDA_MEMCPY2D\b|\bnvrtcProgram\b",
    "driver_memory": r"\bcuMem(AddressReserve|Create|Map|Unmap|SetAccess|Release|GetAllocation\w+)\b|\bCUmem(Allocation|Access|Generic)\w*",
    "driver_modules": r"\bcu(Module|LaunchKernel|Func)\w*\s*\(|\bCU(module|function)\b|\bnvrtcProgram\b",
    "driver_textures": r"\bCUarray\b|\bCUtexObject\b|\bCUDA_MEMCPY2D\b",
    "nvrtc": r"\bnvrtc\w+",
    "graphs": r"\bcudaGraph\w+|\bcudaStream(BeginCapture|IsCapturing)\w*",
    "texture": r"\bcuda(Graph\w+|Memcpy3D\w*|TextureObject_t|Array\w*|MallocArray|ChannelFormatDesc)\b"
    r"|\btex([123]D|Cubemap)\w*|\btexture\s*<|\btextureReference\b|\bcudaSurfaceObject_t\b"
    r"|\bCUarray\b|\bCUtexObject\b|\bCUDA_MEMCPY2D\b",
    "surface": r"\bcudaSurfaceObject_t\b|\bsurf([123]D|Cubemap)\w*",
    "texture_reference": r"\btexture\s*<|\btextureReference\b",
}  # fmt: skip
"""Parts of the runtime that are written only where the text matches."""


_OWN_INVERSE = re.compile(r"\b(double|float|T)\s+(r?norm4d|erfc?invf?|normcdfinvf?|cyl_bessel_i[01]f?|ullmax|ullmin)\s*\([^;(){}]*\)\s*\{")
"""A function of the program's own that is called as one of device_more.hpp, as sources for the host may have it."""
_BEGINNINGS = re.compile(r"ww::|cu|CU|__|h2|hexp10|htanh_|nv|tex|surf|wmma|main|thrust|THRUST_|namespace|cooperative_groups|r?norm|erf|cyl_|ull")
"""What each of these patterns begins with, or has on the same line."""

_CONTINUED = re.compile(r"(?<=::)[ \t]*\n\s*|\n\s*(?=\(|::|<|(namespace|cub|cuda|thrust)\b)")


def parts_of(body: str) -> list[str]:
    """Return the parts of the runtime that a text asks for, by the lines that may ask: 40 searches through three megabytes take 2.5 s."""
    lines = "\n".join([line for line in _CONTINUED.sub(" ", body).split("\n") if _BEGINNINGS.search(line)])
    found = [part for part, pattern in _OPTIONAL.items() if re.search(pattern, lines)]
    own = "device_more" in found and _OWN_INVERSE.search(body)
    return [part for part in found if not (own and part == "device_more")]


def tidy(text: str) -> str:
    """Return the text without the blank lines that the preprocessor left."""
    return re.sub(r"[ \t]+\n", "\n", re.sub(r"\n(?:[ \t]*\n){2,}", "\n\n", text)).strip("\n")


def _wait_for_grid(source: Source) -> set[str]:
    """Return the kernels that reach a group of the whole grid, by themselves or through functions."""
    if not re.search(r"\b(this_grid|grid_group)\b", source.text):
        return set()
    bodies = {k.name: words_of(source.text[k.start : k.end]) for k in source.kernels if k.defined}
    heads = [(source.text[start:brace], source.text[start:end]) for start, brace, end in source.pieces if brace >= 0]
    named = {name: words_of(text) for head, text in heads if "__device__" in head and (name := function_of(head))}
    reach = {"this_grid", "grid_group"}
    while more := {name for name, words in named.items() if name not in reach and words & reach}:
        reach |= more
    return {name for name, words in bodies.items() if words & reach}


def entries(exports: Mapping[str, int], source: Source, final: bool = True) -> list[str]:
    """Return the functions through which Python launches each exported kernel. Unless the text is final, an instance is a file of its own to the C++
    compiler, so that its errors name it."""
    if not exports:
        return []
    scopes = {k.name: k.scope for k in source.kernels}
    waiting = _wait_for_grid(source)
    lines = ["\n// ---- entries for a foreign caller; weak, since each source of a program has its own ----"]
    outside = 'extern "C" __attribute__((weak))'
    named = "".join(f'"{name}\\n"' for name in exports)
    lines.append(f"{outside} const char* ww_kernels() {{ return {named}; }}  // in the order of their numbers")
    for name, number in exports.items():
        base, angle, arguments = source.spelled.get(name, name).partition("<")
        base = base.strip()
        if angle and not final:
            lines.append(f'#line 1 "instance {name.replace("::", ".")}"')
        function = f"&{scopes[base]}{base}_launch{angle}{arguments}"
        lines.append(
            f'{outside} int ww_run_{number}(const unsigned* shape, size_t shared, void** a) '
            f'{{ return ww::enter{"_together" if base in waiting else ""}({function}, shape, shared, a); }}'
        )
        lines.append(f'{outside} const char* ww_signature_{number}() {{ return ww::signature({function}); }}')
        lines.append(f'{outside} const char* ww_layout_{number}() {{ return ww::layout({function}); }}')
    return lines

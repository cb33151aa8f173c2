"""C texts made complete: headers, the float64 oracle of a float32 reference, and the compiler's output behind the same prototype."""

from __future__ import annotations

import re

from warpwright.translation.items import C_NAMES, Item

HEAD = """#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <float.h>
"""
MINMAX = """#ifndef max
#define max(a, b) ((a) > (b) ? (a) : (b))
#endif
#ifndef min
#define min(a, b) ((a) < (b) ? (a) : (b))
#endif
"""
C_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-fopenmp", "-x", "c", "-std=gnu11", "-w")
"""Of every C program, the reference and the candidates alike. No -ffast-math."""

CPP_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-fopenmp", "-std=gnu++17", "-w")
"""Of a candidate that is C++ and not C, and of the compiler's output."""

AROUND = 1 << 14
"""Elements added before and behind an array of the reference, to see whether it reads beyond it."""

_FLOAT_MATH = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "cbrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "pow",
    "fmod",
    "hypot",
    "fabs",
    "floor",
    "ceil",
    "round",
    "rint",
    "nearbyint",
    "trunc",
    "fmin",
    "fmax",
    "fma",
    "copysign",
]


def complete(c: str) -> str:
    """Return a C text with the headers that HPCTransEval's texts leave out."""
    return HEAD + MINMAX + c


def in_double(c: str) -> str:
    """Return the text computed in float64: the oracle. Empty where the text looks at the bits of a float, which double does not have."""
    if re.search(r"\(\s*(u?int\d*_t|int|unsigned|float)\s*\*\s*\)|\bunion\b|memcpy|as_float|__builtin", c):
        return ""
    macros = "".join(f"#define {name}f {name}\n" for name in _FLOAT_MATH)
    return f"{HEAD}{macros}#define float double\n{MINMAX}{c}"


def with_other_memory(c: str) -> str:
    """Return the text with 1e30 in its own arrays before they are written, and around them; in every other call -1e30. Empty where it has none.

    An answer that differs between two calls comes of memory that the reference never wrote, which some do read.
    """
    changed, count = re.subn(
        r"^ {2}float (\w+)\[(\d+)\];",
        rf"  static float around_\1[\2 + {2 * AROUND}]; float* \1 = around_\1 + {AROUND};"
        rf" for (long i_ = 0; i_ < \2 + {2 * AROUND}; ++i_) around_\1[i_] = turn_ ? 1e30f : -1e30f;",
        c, flags=re.M,
    )  # fmt: skip
    first = re.sub(r"(void \w+\([^)]*\) \{)", r"\1 static int turn_ = 0; turn_ = !turn_;", changed, count=1)
    return complete(first) if count else ""


def as_cpp(c: str) -> str:
    """Return a candidate's text as C++ with C linkage; its own includes come first."""
    includes = "\n".join(re.findall(r"^\s*#\s*include[^\n]*", c, re.M))
    rest = re.sub(r"^\s*#\s*include[^\n]*", "", c, flags=re.M)
    rest = re.sub(r'extern\s+"C"\s*(?=[^{\s])', "", rest)
    headers = "#include <cmath>\n#include <cstdint>\n#include <cstdlib>\n#include <cstring>\n#include <algorithm>\n"
    return f'{headers}{includes}\n#define restrict __restrict__\nusing std::max;\nusing std::min;\nextern "C" {{\n{rest}\n}}\n'


def behind_prototype(item: Item, source: str, exports: dict[str, int]) -> str:
    """Return the compiler's C++ with a function of the item's prototype that makes its launches."""
    arguments = item.prototype.replace("restrict ", "__restrict__ ").replace("int32_t", "int")
    lines = ["", "#include <cstdlib>", "#include <cstring>", f'extern "C" {arguments} {{']
    lines += [_allocated(name, dtype, size) for name, (dtype, size) in item.temporaries.items()]
    padded = [buffer for buffer in item.buffers if buffer.name in item.padded]
    for buffer in padded:
        lines.append(_allocated(f"padded_{buffer.name}", buffer.dtype, item.padded[buffer.name]))
        lines.append(f"  memcpy(padded_{buffer.name}, {buffer.name}, {buffer.size} * sizeof *{buffer.name});")
    for launch in item.launches:
        shape = ", ".join(map(str, (*launch.grid, *launch.block)))
        values = ", ".join(f"(void*)&{'padded_' * (name in item.padded)}{name}" for name in launch.args)
        lines.append(f"  {{ unsigned shape[6] = {{{shape}}}; void* values[] = {{{values}}}; ")
        lines.append(f"    if (ww_run_{exports[launch.kernel]}(shape, {launch.shared}, values)) abort(); }}")
    lines += [f"  memcpy({b.name}, padded_{b.name}, {b.size} * sizeof *{b.name});" for b in padded if b.role == "output"]
    return source + "\n".join([*lines, "}", ""])


def _allocated(name: str, dtype: str, size: int) -> str:
    kind, rounded = C_NAMES[dtype], f"({size} * sizeof({C_NAMES[dtype]}) + 63) / 64 * 64"
    return f"  static {kind}* {name} = ({kind}*)memset(aligned_alloc(64, {rounded}), 0, {rounded});"


def one_line(error: Exception) -> str:
    """Return the first 300 characters of an error's message, on one line."""
    return " ".join(str(error).split())[:300]

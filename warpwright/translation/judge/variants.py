"""Variants of a C text that the judge builds: complete with headers, in float64, with other values in its memory, as C++."""

from __future__ import annotations

import re

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
"""Flags of every C program, reference and candidates alike. No -ffast-math."""

CPP_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-fopenmp", "-std=gnu++17", "-w")
"""Flags of a candidate that is C++ and not C, and of the compiler's output."""

ROUNDINGS = (("-ffp-contract=off",), ("-ffp-contract=fast", "-fexpensive-optimizations", "-mtune=haswell"))
"""Flags by which a reference rounds otherwise: products before they are added, and not. Which of them -march=native does depends on the machine:
gcc 12 joins no sums that depend on one another for an AMD EPYC, and does for an Intel Xeon; at -O1 it joins none without the second flag."""

AROUND = 1 << 14
"""Elements added before and after each array of the reference, to detect reads outside it."""

_FLOAT_MATH = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "pow", "fmod", "hypot", "fabs", "floor", "ceil", "round", "rint", "nearbyint", "trunc",
    "fmin", "fmax", "fma", "copysign",
]  # fmt: skip


def complete(c: str) -> str:
    """Return the text with the headers and macros that HPCTransEval's texts leave out."""
    return HEAD + MINMAX + c


def in_double(c: str) -> str:
    """Return the text computing in float64: the oracle. Empty where the text reads the bits of a float."""
    if re.search(r"\(\s*(u?int\d*_t|int|unsigned|float)\s*\*\s*\)|\bunion\b|memcpy|as_float|__builtin", c):
        return ""
    macros = "".join(f"#define {name}f {name}\n" for name in _FLOAT_MATH)
    return f"{HEAD}{macros}#define float double\n{MINMAX}{c}"


def with_other_memory(c: str) -> str:
    """Return the text with its own arrays, and room around them, filled with 1e30 or -1e30 in turn at each call. Empty where it has none.

    An answer that differs between two calls depends on memory that the reference never wrote; some references read such memory.
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

"""Which calls of elementary functions tier vectors inlines, and by what: runtime/math has them without branches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.ir import Expr, Function

_OFFERED = (
    "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "pow", "cbrt", "rcbrt",
    "hypot", "rhypot", "fdim", "fmod", "sin", "cos", "tan", "sinpi", "cospi", "atan", "atan2", "asin", "acos", "erf", "erfc", "normcdf",
)  # fmt: skip
_FAST = {f"__{name}f": f"ww::near_{name}_f" for name in ("sin", "cos", "tan", "sincos")}
_FAST |= {f"__{name}f": f"ww::{name}_f" for name in ("exp", "exp10", "log", "log2", "log10", "pow", "tanh")}

CALLS: Mapping[str, str] = {
    "fmaxf": "ww::fmax_f", "fminf": "ww::fmin_f", "sincosf": "ww::sincos_f", "sincospif": "ww::sincospi_f", **_FAST,
    **{f"{name}f": f"ww::{name}_f" for name in _OFFERED}, **{name: f"ww::any_{name}" for name in _OFFERED},
}  # fmt: skip
"""Library function -> what tier vectors calls instead. `any_exp` is exp_f where its argument is a float."""

_OF_TWO = frozenset(["pow", "hypot", "rhypot", "fdim", "fmod", "atan2"])
BY_LANES: Mapping[str, str] = {
    **{name: name for name in ("sqrtf", "rsqrtf", "fabsf", "floorf", "ceilf")},
    **{name: instead for name, instead in _FAST.items() if name not in ("__powf", "__sincosf")},
    **{f"{name}f": f"ww::{name}_f" for name in _OFFERED if name not in _OF_TWO},
}
"""Functions of one float, and what computes them for each lane of an explicit vector."""

CHOICES: Mapping[str, str] = {"fmaxf": "ww::most_of", "max": "ww::most_of", "fminf": "ww::least_of", "min": "ww::least_of"}
"""Functions that choose one of two numbers, and the same of two explicit vectors."""

NATIVE = frozenset(
    ["ceilf", "copysign", "copysignf", "floorf", "nearbyint", "nearbyintf", "rint", "rintf", "round", "roundf", "trunc", "truncf", "isnan", "isinf",
     "isfinite", "signbit", "__fdiv_rn", "__fadd_rn", "__fsub_rn", "__fmul_rn", "__frsqrt_rn", "__frcp_rn", "__fsqrt_rn", "fdividef", "rsqrt",
     "__saturatef", "ww::chosen"]
)  # fmt: skip
"""Functions that compilers vectorise by themselves."""

_SIGN = re.compile(r"[-+*/%<>=!&|^~]+")


def inlined(expr: Expr) -> bool:
    """Say whether a call becomes code without branches: of a function above, or an operator that the parser shows as a call where types are open."""
    if not expr.name:
        return any(child.kind == "other" and _SIGN.fullmatch(ir.text_of(child).strip()) for child in expr.children)
    return expr.name in NATIVE or (expr.name in CALLS and expr.type != "double")


def calls(functions: Sequence[Function]) -> Mapping[str, str]:
    """Return CALLS without the names that the program defines itself."""
    own = {function.name for function in functions}
    return {name: instead for name, instead in CALLS.items() if name not in own}


def instead(expr: Expr, known: Mapping[str, str]) -> str | None:
    """Return what to call instead, of the functions that are known; None for doubles, members, and a program's own expf of float4."""
    if expr.type == "double" or re.search(r"\d$", expr.type) or not expr.children or expr.children[0].kind == "member":
        return None
    return known.get(expr.name)

"""Scalar functions: how each is written in C, CUDA and numpy, its domain and its range.

`{0}`, `{1}` stand for the arguments. Domains are closed intervals well inside the mathematical domain, so that float32 stays accurate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

Interval = tuple[float, float]
EVERYWHERE: Interval = (-math.inf, math.inf)


@dataclass(frozen=True)
class Function:
    """One scalar function of float32 arguments."""

    name: str
    c: str
    numpy: str
    arity: int = 1
    domain: Interval = EVERYWHERE
    """Of the first argument, and of all others unless `domain2` is set."""
    domain2: Interval | None = None
    range: Callable[[Interval], Interval] = lambda interval: interval
    """Interval of the first argument -> interval of the values."""
    exact: bool = True
    """Whether the function is continuous, so that close arguments give close values. False (floor, sign): exact arguments only."""
    cuda: str = ""
    """The spelling in CUDA where it differs from C."""

    @property
    def device(self) -> str:
        """The CUDA text."""
        return self.cuda or self.c


def _ends(function: Callable[[float], float]) -> Callable[[Interval], Interval]:
    """Return the range of a monotone function."""
    return lambda interval: (min(map(function, interval)), max(map(function, interval)))


def _within(low: float, high: float) -> Callable[[Interval], Interval]:
    return lambda _: (low, high)


def _absolute(interval: Interval) -> Interval:
    most = max(map(abs, interval))
    return (0.0 if interval[0] <= 0 <= interval[1] else min(map(abs, interval)), most)


def _symmetric(function: Callable[[float], float]) -> Callable[[Interval], Interval]:
    """Return the range of an even function that grows away from 0."""
    return lambda interval: _ends(function)(_absolute(interval))


def _near(margin: float) -> Callable[[Interval], Interval]:
    """Return the range of an activation that stays within `margin` of 0 or of its argument."""
    return lambda interval: (min(-margin, interval[0]), max(margin, interval[1]))


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


_F = Function
_SMALL: Interval = (-4.0, 4.0)

UNARY: tuple[Function, ...] = (
    _F("abs", "fabsf({0})", "np.abs({0})", range=_absolute),
    _F("neg", "(-{0})", "(-{0})", range=lambda i: (-i[1], -i[0])),
    _F("relu", "fmaxf({0}, 0.0f)", "np.maximum({0}, 0)", range=lambda i: (max(i[0], 0.0), max(i[1], 0.0))),
    _F("leaky_relu", "({0} > 0.0f ? {0} : 0.01f * {0})", "np.where({0} > 0, {0}, 0.01 * {0})"),
    _F("sigmoid", "(1.0f / (1.0f + expf(-{0})))", "(1 / (1 + np.exp(-{0})))", domain=(-20, 20), range=_ends(_sigmoid)),
    _F("tanh", "tanhf({0})", "np.tanh({0})", range=_ends(math.tanh)),
    _F("exp", "expf({0})", "np.exp({0})", domain=(-10, 8), range=_ends(math.exp)),
    _F("exp2", "exp2f({0})", "np.exp2({0})", domain=(-12, 10), range=_ends(lambda x: 2.0**x)),
    _F("expm1", "expm1f({0})", "np.expm1({0})", domain=(-8, 8), range=_ends(math.expm1)),
    _F("log", "logf({0})", "np.log({0})", domain=(0.01, 1e6), range=_ends(math.log)),
    _F("log2", "log2f({0})", "np.log2({0})", domain=(0.01, 1e6), range=_ends(math.log2)),
    _F("log10", "log10f({0})", "np.log10({0})", domain=(0.01, 1e6), range=_ends(math.log10)),
    _F("log1p", "log1pf({0})", "np.log1p({0})", domain=(-0.9, 1e6), range=_ends(math.log1p)),
    _F("sqrt", "sqrtf({0})", "np.sqrt({0})", domain=(0.0, 1e6), range=_ends(math.sqrt)),
    _F("rsqrt", "(1.0f / sqrtf({0}))", "(1 / np.sqrt({0}))", domain=(0.01, 1e6), range=_ends(lambda x: x**-0.5), cuda="rsqrtf({0})"),
    _F("cbrt", "cbrtf({0})", "np.cbrt({0})", domain=(-1e6, 1e6), range=_ends(lambda x: math.copysign(abs(x) ** (1 / 3), x))),
    _F("square", "({0} * {0})", "({0} * {0})", domain=(-1e3, 1e3), range=_symmetric(lambda x: x * x)),
    _F("cube", "({0} * {0} * {0})", "({0} * {0} * {0})", domain=(-100, 100), range=_ends(lambda x: x**3)),
    _F("reciprocal", "(1.0f / {0})", "(1 / {0})", domain=(0.05, 1e6), range=_ends(lambda x: 1 / x)),
    _F("sin", "sinf({0})", "np.sin({0})", domain=(-100, 100), range=_within(-1, 1)),
    _F("cos", "cosf({0})", "np.cos({0})", domain=(-100, 100), range=_within(-1, 1)),
    _F("tan", "tanf({0})", "np.tan({0})", domain=(-1.4, 1.4), range=_ends(math.tan)),
    _F("asin", "asinf({0})", "np.arcsin({0})", domain=(-0.99, 0.99), range=_ends(math.asin)),
    _F("acos", "acosf({0})", "np.arccos({0})", domain=(-0.99, 0.99), range=_ends(math.acos)),
    _F("atan", "atanf({0})", "np.arctan({0})", range=_within(-1.5708, 1.5708)),
    _F("sinh", "sinhf({0})", "np.sinh({0})", domain=(-8, 8), range=_ends(math.sinh)),
    _F("cosh", "coshf({0})", "np.cosh({0})", domain=(-8, 8), range=_symmetric(math.cosh)),
    _F("asinh", "asinhf({0})", "np.arcsinh({0})", domain=(-1e6, 1e6), range=_ends(math.asinh)),
    _F("acosh", "acoshf({0})", "np.arccosh({0})", domain=(1.05, 1e6), range=_ends(math.acosh)),
    _F("atanh", "atanhf({0})", "np.arctanh({0})", domain=(-0.95, 0.95), range=_ends(math.atanh)),
    _F("erf", "erff({0})", "erf({0})", domain=(-1e3, 1e3), range=_within(-1, 1)),
    _F("erfc", "erfcf({0})", "(1 - erf({0}))", domain=(-2, 2), range=_within(0, 2)),
    _F("floor", "floorf({0})", "np.floor({0})", exact=False, range=_ends(math.floor)),
    _F("ceil", "ceilf({0})", "np.ceil({0})", exact=False, domain=(-1e6, 1e6), range=_ends(math.ceil)),
    _F("round", "rintf({0})", "np.rint({0})", exact=False, domain=(-1e6, 1e6), range=_ends(round)),
    _F("trunc", "truncf({0})", "np.trunc({0})", exact=False, domain=(-1e6, 1e6), range=_ends(math.trunc)),
    _F("frac", "({0} - floorf({0}))", "({0} - np.floor({0}))", exact=False, domain=(-1e3, 1e3), range=_within(0, 1)),
    _F("sign", "(({0} > 0.0f) - ({0} < 0.0f))", "np.sign({0})", exact=False, range=_within(-1, 1)),
    _F("gelu", "(0.5f * {0} * (1.0f + erff({0} * 0.70710678f)))",
       "(0.5 * {0} * (1 + erf({0} * 0.7071067811865476)))", domain=(-1e3, 1e3), range=_near(0.2)),
    _F("gelu_tanh", "(0.5f * {0} * (1.0f + tanhf(0.79788456f * ({0} + 0.044715f * {0} * {0} * {0}))))",
       "(0.5 * {0} * (1 + np.tanh(0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0}))))", domain=(-100, 100), range=_near(0.2)),
    _F("silu", "({0} / (1.0f + expf(-{0})))", "({0} / (1 + np.exp(-{0})))", domain=(-20, 60), range=_near(0.3)),
    _F("mish", "({0} * tanhf(log1pf(expf({0}))))", "({0} * np.tanh(np.log1p(np.exp({0}))))", domain=(-20, 20), range=_near(0.4)),
    _F("softplus", "log1pf(expf({0}))", "np.log1p(np.exp({0}))", domain=(-20, 20), range=_ends(lambda x: math.log1p(math.exp(x)))),
    _F("elu", "({0} > 0.0f ? {0} : expm1f({0}))", "np.where({0} > 0, {0}, np.expm1(np.minimum({0}, 0)))", range=_near(1)),
    _F("selu", "(1.050701f * ({0} > 0.0f ? {0} : 1.6732632f * expm1f({0})))",
       "(1.050701 * np.where({0} > 0, {0}, 1.6732632 * np.expm1(np.minimum({0}, 0))))",
       range=lambda i: (min(-1.76, 1.06 * i[0]), max(1.76, 1.06 * i[1]))),
    _F("celu", "(fmaxf({0}, 0.0f) + fminf(0.0f, 0.5f * expm1f({0} * 2.0f)))",
       "(np.maximum({0}, 0) + np.minimum(0, 0.5 * np.expm1(np.minimum({0}, 0) * 2)))", domain=(-1e3, 40), range=_near(0.5)),
    _F("relu6", "fminf(fmaxf({0}, 0.0f), 6.0f)", "np.minimum(np.maximum({0}, 0), 6)", range=_within(0, 6)),
    _F("hardtanh", "fminf(fmaxf({0}, -1.0f), 1.0f)", "np.clip({0}, -1, 1)", range=_within(-1, 1)),
    _F("hardsigmoid", "fminf(fmaxf({0} / 6.0f + 0.5f, 0.0f), 1.0f)", "np.clip({0} / 6 + 0.5, 0, 1)", range=_within(0, 1)),
    _F("hardswish", "({0} * fminf(fmaxf({0} + 3.0f, 0.0f), 6.0f) / 6.0f)", "({0} * np.clip({0} + 3, 0, 6) / 6)", range=_near(0.4)),
    _F("softsign", "({0} / (1.0f + fabsf({0})))", "({0} / (1 + np.abs({0})))", range=_within(-1, 1)),
    _F("logsigmoid", "(-log1pf(expf(-{0})))", "(-np.log1p(np.exp(-{0})))", domain=(-20, 20), range=_near(0.7)),
    _F("tanhshrink", "({0} - tanhf({0}))", "({0} - np.tanh({0}))"),
    _F("softshrink", "({0} > 0.5f ? {0} - 0.5f : ({0} < -0.5f ? {0} + 0.5f : 0.0f))",
       "np.sign({0}) * np.maximum(np.abs({0}) - 0.5, 0)"),
    _F("hardshrink", "(fabsf({0}) > 0.5f ? {0} : 0.0f)", "np.where(np.abs({0}) > 0.5, {0}, 0)", exact=False),
    _F("threshold", "({0} > 0.1f ? {0} : 20.0f)", "np.where({0} > 0.1, {0}, 20)", exact=False, range=lambda i: (min(0.1, i[0]), max(20.0, i[1]))),
    _F("half_angle", "sqrtf(0.5f * (1.0f + cosf({0})))", "np.sqrt(0.5 * (1 + np.cos({0})))", domain=(-2, 2), range=_within(0, 1)),
)  # fmt: skip

BINARY: tuple[Function, ...] = (
    _F("add", "({0} + {1})", "({0} + {1})", 2, domain=(-1e6, 1e6)),
    _F("subtract", "({0} - {1})", "({0} - {1})", 2, domain=(-1e6, 1e6)),
    _F("multiply", "({0} * {1})", "({0} * {1})", 2, domain=(-1e3, 1e3)),
    _F("divide", "({0} / {1})", "({0} / {1})", 2, domain=(-1e3, 1e3), domain2=(0.2, 1e3)),
    _F("maximum", "fmaxf({0}, {1})", "np.maximum({0}, {1})", 2),
    _F("minimum", "fminf({0}, {1})", "np.minimum({0}, {1})", 2),
    _F("power", "powf({0}, {1})", "np.power({0}, {1})", 2, domain=(0.1, 3), domain2=(-3, 3)),
    _F("mod", "fmodf({0}, {1})", "np.fmod({0}, {1})", 2, domain=(0, 1e2), domain2=(0.5, 8), exact=False),
    _F("hypot", "hypotf({0}, {1})", "np.hypot({0}, {1})", 2, domain=(-1e3, 1e3)),
    _F("atan2", "atan2f({0}, {1})", "np.arctan2({0}, {1})", 2, domain=(0.1, 1e3), domain2=(-1e3, 1e3)),
    _F("copysign", "copysignf({0}, {1})", "np.copysign({0}, {1})", 2, exact=False),
    _F("squared_difference", "(({0} - {1}) * ({0} - {1}))", "(({0} - {1}) ** 2)", 2, domain=(-1e3, 1e3)),
    _F("abs_difference", "fabsf({0} - {1})", "np.abs({0} - {1})", 2, domain=(-1e6, 1e6)),
    _F("average", "(0.5f * ({0} + {1}))", "(0.5 * ({0} + {1}))", 2, domain=(-1e6, 1e6)),
    _F("logaddexp", "(fmaxf({0}, {1}) + log1pf(expf(-fabsf({0} - {1}))))", "np.logaddexp({0}, {1})", 2, domain=(-50, 50)),
    _F("greater", "({0} > {1} ? 1.0f : 0.0f)", "({0} > {1}).astype(real)", 2, exact=False),
    _F("less_equal", "({0} <= {1} ? 1.0f : 0.0f)", "({0} <= {1}).astype(real)", 2, exact=False),
    _F("relu_gate", "({0} * fmaxf({1}, 0.0f))", "({0} * np.maximum({1}, 0))", 2, domain=(-1e3, 1e3)),
    _F("sigmoid_gate", "({0} / (1.0f + expf(-{1})))", "({0} / (1 + np.exp(-{1})))", 2, domain=(-1e3, 1e3), domain2=(-20, 20)),
    _F("huber", "(fabsf({0} - {1}) < 1.0f ? 0.5f * ({0} - {1}) * ({0} - {1}) : fabsf({0} - {1}) - 0.5f)",
       "np.where(np.abs({0} - {1}) < 1, 0.5 * ({0} - {1}) ** 2, np.abs({0} - {1}) - 0.5)", 2, domain=(-1e3, 1e3)),
)  # fmt: skip

TERNARY: tuple[Function, ...] = (
    _F("fma", "fmaf({0}, {1}, {2})", "({0} * {1} + {2})", 3, domain=(-1e3, 1e3)),
    _F("lerp", "({0} + {2} * ({1} - {0}))", "({0} + {2} * ({1} - {0}))", 3, domain=(-1e3, 1e3)),
    _F("addcmul", "({0} + 0.5f * {1} * {2})", "({0} + 0.5 * {1} * {2})", 3, domain=(-1e3, 1e3)),
    _F("addcdiv", "({0} + 0.5f * {1} / {2})", "({0} + 0.5 * {1} / {2})", 3, domain=(-1e3, 1e3), domain2=(0.3, 1e3)),
    _F("where_positive", "({0} > 0.0f ? {1} : {2})", "np.where({0} > 0, {1}, {2})", 3, exact=False),
    _F("median3", "fmaxf(fminf({0}, {1}), fminf(fmaxf({0}, {1}), {2}))",
       "np.maximum(np.minimum({0}, {1}), np.minimum(np.maximum({0}, {1}), {2}))", 3),
)  # fmt: skip

INTEGER_AND_LOGIC: tuple[Function, ...] = (
    _F("iadd", "({0} + {1})", "({0} + {1})", 2),
    _F("isub", "({0} - {1})", "({0} - {1})", 2),
    _F("imul", "({0} * {1})", "({0} * {1})", 2),
    _F("idiv", "({0} / {1})", "({0} // {1})", 2),
    _F("imod", "({0} % {1})", "({0} % {1})", 2),
    _F("imin", "({0} < {1} ? {0} : {1})", "np.minimum({0}, {1})", 2),
    _F("imax", "({0} > {1} ? {0} : {1})", "np.maximum({0}, {1})", 2),
    _F("lt", "({0} < {1})", "({0} < {1})", 2),
    _F("le", "({0} <= {1})", "({0} <= {1})", 2),
    _F("eq", "({0} == {1})", "({0} == {1})", 2),
    _F("and", "({0} && {1})", "({0} & {1})", 2),
    _F("or", "({0} || {1})", "({0} | {1})", 2),
    _F("select", "({0} ? {1} : {2})", "np.where({0}, {1}, {2})", 3),
    _F("to_float", "((float){0})", "np.asarray({0}).astype(real)"),
    _F("to_int", "((int){0})", "np.asarray({0}).astype(np.int64)"),
    _F("clamp_int8", "((signed char)fminf(fmaxf({0}, -128.0f), 127.0f))", "np.clip({0}, -128, 127)"),
)  # fmt: skip

FUNCTIONS: dict[str, Function] = {f.name: f for f in (*UNARY, *BINARY, *TERNARY, *INTEGER_AND_LOGIC)}

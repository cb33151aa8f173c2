"""Single PTX instructions as C++ expressions: comparisons, shifts and fields of bits, permutations of bytes, shuffles and votes of a warp."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.integers import RANK

TYPES = {
    "u16": "unsigned short", "s16": "short", "b16": "unsigned short", "u32": "unsigned int", "s32": "int", "b32": "unsigned int",
    "u64": "unsigned long long", "s64": "long long", "b64": "unsigned long long", "f32": "float", "f64": "double", "u8": "unsigned char",
    "s8": "signed char", "b8": "unsigned char",
}  # fmt: skip

THREAD = RANK

COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}


def highest(kind: str, value: str) -> str:
    """Return the place of the highest bit that is set, all ones where none is."""
    if kind not in ("u32", "u64"):
        raise DoesNotApply(0, "bfind")
    return f"({bits_of(kind) - 1}u - (unsigned)__clz{'ll' if kind == 'u64' else ''}({value}))"


def bits_of(kind: str) -> int:
    return int(kind[1:])


def shifted(value: str, count: str, last: str, kind: str) -> str:
    """Return a shift to the right; a count beyond the width leaves the sign, or nothing."""
    return f"({value} >> ({count} > {last} ? {last} : {count}))" if kind[0] == "s" else f"({count} > {last} ? 0 : {value} >> {count})"


def compared(plain: Sequence[str], floating: bool, a: Sequence[str]) -> str:
    """Return a comparison; those of numbers are false where one is NaN, also `ne`."""
    sign = comparison(plain)
    return f"({a[0]} < {a[1]} || {a[0]} > {a[1]})" if floating and sign == "!=" else f"({a[0]} {sign} {a[1]})"


def predicate(operation: str, values: Sequence[str]) -> str:
    """Return logic of predicates."""
    if operation == "not":
        return f"(!{values[0]})"
    return f"({values[0]} {({'and': '&&', 'or': '||', 'xor': '!='})[operation]} {values[1]})"


def number_in(text: str) -> int:
    """Return the number that an operand is, its cast left out."""
    digits = re.fullmatch(r"(?:\([\w ]+\))?\(?(\d+|0[xX][0-9a-fA-F]+)\)?", text)
    if digits is None:
        raise DoesNotApply(0, "a register where a number is understood")
    return int(digits[1], 0)


def inserted(kind: str, a: Sequence[str], values: Sequence[str]) -> str:
    """Return bits of the first operand put into the second, from a place on."""
    if kind != "b32":
        raise DoesNotApply(0, "bfi")
    first, width = f"({values[2]} & 255u)", f"({values[3]} & 255u)"
    mask = f"(({width} > 31u ? ~0u : (1u << {width}) - 1u) << {first})"
    return f"({first} > 31u ? {a[1]} : ({a[1]} & ~{mask}) | ({a[0]} << {first} & {mask}))"


def permuted(a: Sequence[str]) -> str:
    """Return a permutation of bytes; a selector's fourth bit replicates the byte's sign."""
    try:
        plain = not number_in(a[2]) & 0x8888
    except DoesNotApply:
        plain = False
    return f"{'__byte_perm' if plain else 'ww_permuted'}({', '.join(a)})"


def clamped(target: str, value: str) -> str:
    """Return a conversion to an integer: what is too large or too small becomes the last one, NaN 0."""
    limits = {"s32": ("-2147483648.0", "2147483648.0", "(-2147483647 - 1)", "2147483647"), "u32": ("0.0", "4294967296.0", "0u", "4294967295u")}
    low, high, least, most = limits[target]
    return f"({value} != {value} ? 0 : {value} <= {low} ? {least} : {value} >= {high} ? {most} : ({TYPES[target]})({value}))"


def comparison(plain: Sequence[str]) -> str:
    comparisons = [COMPARISONS[modifier] for modifier in plain if modifier in COMPARISONS]
    if len(comparisons) != 1:
        raise DoesNotApply(0, "setp")
    return comparisons[0]


def lookup(a: Sequence[str]) -> str:
    """Return any function of three bits, from its table: bit (4a + 2b + c) of the last operand."""
    table = number_in(a[3])
    terms = [
        "(" + " & ".join(value if bit else f"~{value}" for bit, value in zip(bits, a[:3], strict=True)) + ")"
        for bits in itertools.product((0, 1), repeat=3)
        if table >> (4 * bits[0] + 2 * bits[1] + bits[2]) & 1
    ]
    return "(" + " | ".join(terms) + ")" if terms else "0u"


def shuffle(plain: Sequence[str], values: Sequence[str]) -> str:
    """Return a shuffle among the lanes of a warp or of a part of it; without a mask it is of before Volta."""
    function = {"idx": "__shfl", "up": "__shfl_up", "down": "__shfl_down", "bfly": "__shfl_xor"}
    mode = next((modifier for modifier in plain if modifier in function), "")
    if not mode or len(values) not in (3, 4):
        raise DoesNotApply(0, "shfl")
    width, by = width_of(mode, values[2]), lane_of(values[1])
    several = "" if width == "32" else f", {width}"
    if len(values) == 3:
        return f"{function[mode]}({values[0]}, {by}{several})"
    return f"{function[mode]}_sync({values[3]}, {values[0]}, {by}{several})"


def lane_of(operand: str) -> str:
    """Return the lane, or the distance, that a shuffle reads from an operand: its lowest five bits."""
    try:
        return str(number_in(operand) & 31)
    except DoesNotApply:
        return f"(({operand}) & 31)"


def width_of(mode: str, operand: str) -> str:
    """Return how many lanes exchange values: the last operand has the lanes' common bits from bit 8, and the last lane, or the first going up."""
    up = "true" if mode == "up" else "false"
    try:
        number = number_in(operand)
    except DoesNotApply:
        return f"ww_shuffle_width({operand}, {up})"  # looks at it when it runs
    width = 32 - (number >> 8 & 31)
    if width & (width - 1) or (number & 31 if mode == "up" else number & (width - 1) != width - 1):
        raise DoesNotApply(0, "shfl")
    return str(width)


def is_inside(modifiers: Sequence[str], values: Sequence[str]) -> str:
    """Return whether a shuffle finds the lane that it asks for."""
    mode = next((modifier for modifier in modifiers if modifier in ("idx", "up", "down", "bfly")), "")
    width, lane, by = f"(unsigned){width_of(mode, values[2])}", f"({THREAD} & 31u)", f"(unsigned){lane_of(values[1])}"
    return {
        "up": f"({lane} & ({width} - 1u)) >= {by}", "down": f"({lane} & ({width} - 1u)) + {by} < {width}",
        "bfly": f"({lane} ^ {by}) <= ({lane} | ({width} - 1u))", "idx": "true",
    }[mode]  # fmt: skip


def vote(plain: Sequence[str], values: Sequence[str]) -> str:
    function = {"ballot": "__ballot_sync", "all": "__all_sync", "any": "__any_sync"}
    mode = next((modifier for modifier in plain if modifier in function), "")
    if not mode or len(values) != 2:
        raise DoesNotApply(0, "vote")
    return f"{function[mode]}({values[1]}, {values[0]})"

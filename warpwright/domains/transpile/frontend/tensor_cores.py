"""Tensor-core PTX as device functions: mma.sync as sums over fragments, ldmatrix as loads through exchanged addresses, movmatrix as a transposition,
cp.async as copies.

A fragment lies across the lanes of a warp as the PTX ISA lays it out (8.5, "Matrix fragments for mma.m16n8k16" and its kin): lane 4 g + t
has row g and
columns from t on. So lane (g, t) takes row g of A from the four lanes of its group and column 2 t + j of B from those of group 2 t + j, by
shuffles, and
adds up its elements of D. The functions synchronise, and are inlined in every tier as others that do. Sums are of floats, in the order of k; tensor
cores keep products exact and cut sums off, so that last bits differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.integers import RANK

FILE = "warpwright/tensor_cores.cuh"
"""Where the functions stand, in errors."""

_LANE = f"const unsigned lane = {RANK} & 31u;"

_HELPERS = """
__device__ inline float ww_as_f16(unsigned x, int e) { return __half2float(__ushort_as_half((unsigned short)(x >> (16 * e)))); }
__device__ inline float ww_as_bf16(unsigned x, int e) { return __uint_as_float(e ? x & 0xffff0000u : x << 16); }
__device__ inline float ww_as_tf32(unsigned x, int e) { return __uint_as_float(x & 0xffffe000u); }
__device__ inline int ww_as_s8(unsigned x, int e) { return (int)(signed char)(x >> (8 * e)); }
__device__ inline int ww_as_u8(unsigned x, int e) { return (int)(unsigned char)(x >> (8 * e)); }
__device__ inline unsigned ww_as_halves(float low, float high) {
  return (unsigned)__half_as_ushort(__float2half(low)) | (unsigned)__half_as_ushort(__float2half(high)) << 16;
}
"""

_ELEMENTS = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4}
"""Type -> elements in a register."""


def call(operation: str, modifiers: Sequence[str], operands: Sequence[str], types: Mapping[str, str]) -> str | None:
    """Return the call that an instruction becomes; None for one that is not of tensor cores. Raises DoesNotApply for one that is not offered.

    types: register -> its C++ type. Sums of floats may be given as words of 32 bits ("=r" for .f32): the function is another one.
    """
    words = [word.partition("::")[0] for word in modifiers]
    registers = [register.strip() for operand in operands for register in operand.strip("{}[] ").split(",")]
    if operation == "mma":
        words = ["b32" if word == "f32" and types.get(registers[0], "float") != "float" else word for word in words]
        return f"ww_{_shape_name(words)}({', '.join(registers)})"
    if operation == "ldmatrix":
        count = next((word for word in words if word in ("x1", "x2", "x4")), "")
        if not count or "m8n8" not in words or "b16" not in words:
            raise DoesNotApply(0, operation)
        return f"ww_ldmatrix_{count}{'_trans' if 'trans' in words else ''}({', '.join(registers)})"
    if operation == "movmatrix":
        if "m8n8" not in words or "trans" not in words or "b16" not in words:
            raise DoesNotApply(0, operation)
        return f"ww_movmatrix({', '.join(registers)})"
    if operation == "cp" and words[:1] == ["async"]:
        return _copy(words, registers)
    return None


def _copy(words: Sequence[str], registers: Sequence[str]) -> str:
    if words[1:2] and words[1] in ("commit_group", "wait_group", "wait_all"):
        return "(void)0"  # every copy is done when it is asked for
    if len(words) < 4 or words[1] not in ("ca", "cg") or words[2:4] != ["shared", "global"] or len(registers) not in (3, 4):
        raise DoesNotApply(0, "cp.async")
    return f"ww_cp_async({', '.join(registers)}{', ' + registers[2] if len(registers) == 3 else ''})"


def _shape_name(words: Sequence[str]) -> str:
    shape = next((word for word in words if re.fullmatch(r"m\d+n\d+k\d+", word)), "")
    types = [word for word in words if word in (*_ELEMENTS, "f32", "b32", "s32")]
    name = "_".join(["mma", shape, *types])
    _function(name)
    return name


def with_functions(text: str, name: str) -> str:
    """Return a source with the functions that it calls in front."""
    names = sorted(set(re.findall(r"\bww_((?:mma_m\d|ldmatrix_x|movmatrix|cp_async)\w*)\(", text)))
    if not names:
        return text
    functions = "".join(_whole(one) for one in names)
    body = re.sub(r"\s*\n\s*", " ", _HELPERS + functions).strip()
    return f'# 1 "{FILE}"\n{body}\n{text if text.startswith("# ") else f"# 1 {chr(34)}{name}{chr(34)}{chr(10)}{text}"}'


_COPY = """
__device__ inline void ww_cp_async(unsigned to, unsigned long long from, int size, int read) {
  char* const bytes = (char*)ww::shared_at(to);
  for (int i = 0; i < size; ++i) bytes[i] = i < read ? ((const char*)from)[i] : 0;
}
"""


_TRANSPOSITION = f"""
__device__ inline void ww_movmatrix(unsigned& to, unsigned from) {{
  {_LANE}
  const unsigned at = 8 * (lane & 3u) + (lane >> 3), low = __shfl_sync(0xffffffffu, from, at), high = __shfl_sync(0xffffffffu, from, at + 4);
  to = lane & 4u ? low >> 16 | (high & 0xffff0000u) : (low & 0xffffu) | high << 16;
}}
"""
"""Lane 4 g + t has columns 2 t and 2 t + 1 of row g; it gets those rows of column g."""


def _whole(name: str) -> str:
    """Return one function, by its name."""
    if name.startswith("mma"):
        return _function(name)
    if name.startswith("ldmatrix"):
        return _load(name)
    return _TRANSPOSITION if name == "movmatrix" else _COPY


def _load(name: str) -> str:
    count, trans = int(name.split("_")[1][1:]), name.endswith("trans")
    parameters = ", ".join([*(f"unsigned& r{i}" for i in range(count)), "unsigned at"])
    lines = [_LANE]
    for i in range(count):
        if trans:
            for j, part in enumerate(("low", "high")):
                lines.append(f"const unsigned {part}{i} = __shfl_sync(0xffffffffu, at, {i * 8 + j} + 2 * (lane & 3u));")
            half = "(unsigned)*(const unsigned short*)((const char*)ww::shared_at({0}) + 2 * (lane >> 2))"
            lines.append(f"r{i} = {half.format(f'low{i}')} | {half.format(f'high{i}')} << 16;")
        else:
            lines.append(f"const unsigned row{i} = __shfl_sync(0xffffffffu, at, {i * 8} + (lane >> 2));")
            lines.append(f"r{i} = *(const unsigned*)((const char*)ww::shared_at(row{i}) + 4 * (lane & 3u));")
    return f"__device__ inline void ww_{name}({parameters}) {{ {' '.join(lines)} }}\n"


def _function(name: str) -> str:
    """Return the function of one shape: mma_m16n8k16_f32_f16_f16_f32."""
    parts = name.split("_")
    shape = re.fullmatch(r"m(\d+)n8k(\d+)", parts[1])
    if shape is None or len(parts) != 6 or parts[3] not in _ELEMENTS or parts[4] not in _ELEMENTS or parts[2] != parts[5]:
        raise DoesNotApply(0, name)
    rows, depth, result, left, right = int(shape[1]) // 8, int(shape[2]), parts[2], parts[3], parts[4]
    width = 4 * _ELEMENTS[left]
    whole = result == "s32"
    if rows not in (1, 2) or depth % width or _ELEMENTS[left] != _ELEMENTS[right] or whole != (left in ("s8", "u8")) or (rows == 1 and not whole):
        raise DoesNotApply(0, name)
    blocks = depth // width
    kind = "int" if whole else "float"
    packed, bits = result == "f16", result == "b32"
    held = rows if packed else 2 * rows
    held_kind = "unsigned" if packed or bits else kind
    parameters = [*(f"{held_kind}& d{i}" for i in range(held)), *(f"unsigned a{i}" for i in range(rows * blocks)), *(f"unsigned b{i}" for i in
    range(blocks)),
                  *(f"{held_kind} c{i}" for i in range(held))]  # fmt: skip
    lines = [_LANE, "const unsigned group = lane & 28u, column = (lane & 3u) * 8u;"]
    for row in range(rows):
        for j in (0, 1):
            start = f"ww_as_f16(c{row}, {j})" if packed else f"__uint_as_float(c{2 * row + j})" if bits else f"c{2 * row + j}"
            lines.append(f"{kind} s{row}{j} = {start};")
    for block in range(blocks):
        for other in range(4):
            step = f"{block}{other}"
            lines += [f"const unsigned x{row}_{step} = __shfl_sync(0xffffffffu, a{rows * block + row}, group + {other}u);" for row in range(rows)]
            lines += [f"const unsigned y{j}_{step} = __shfl_sync(0xffffffffu, b{block}, column + {4 * j + other}u);" for j in (0, 1)]
            lines += [
                f"s{row}{j} += ww_as_{left}(x{row}_{step}, {e}) * ww_as_{right}(y{j}_{step}, {e});"
                for row in range(rows)
                for j in (0, 1)
                for e in range(_ELEMENTS[left])
            ]
    for row in range(rows):
        sums = [f"__float_as_uint(s{row}{j})" if bits else f"s{row}{j}" for j in (0, 1)]
        lines += [f"d{row} = ww_as_halves({', '.join(sums)});"] if packed else [f"d{2 * row + j} = {sums[j]};" for j in (0, 1)]
    function = f"__device__ inline void ww_{name}({', '.join(parameters)}) {{ {' '.join(lines)} }}\n"
    return function + (_of_words(name, parameters) if whole else "")


def _of_words(name: str, parameters: Sequence[str]) -> str:
    """Return the same function for sums that the program holds as unsigned words, as in a template whose type is not known yet."""
    names = [parameter.split()[-1] for parameter in parameters]
    sums = [one for one in names if one.startswith("d")]
    words = ", ".join(f"unsigned{'&' if one in sums else ''} {one}" for one in names)
    given = ", ".join(f"s{one}" if one in sums else f"(int){one}" if one.startswith("c") else one for one in names)
    declared, back = " ".join(f"int s{one};" for one in sums), " ".join(f"{one} = (unsigned)s{one};" for one in sums)
    return f"__device__ inline void ww_{name}({words}) {{ {declared} ww_{name}({given}); {back} }}\n"

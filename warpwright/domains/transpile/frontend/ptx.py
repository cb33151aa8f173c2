"""Inline PTX of the common kind, as C++: arithmetic, bits, approximations, special registers, comparisons, global loads and stores, warps.

    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));   ->   { float p0; ... p0 = fmaf(p1, p2, p3); d = p0; }

An `asm` with an instruction that is not here is left as it stands, and is refused later if it is in device code. Source: PTX ISA 8.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.frontend import scan, tensor_cores
from warpwright.domains.transpile.frontend.ptx_forms import (
    COMPARISONS,
    THREAD,
    TYPES,
    bits_of,
    clamped,
    compared,
    highest,
    inserted,
    is_inside,
    lookup,
    permuted,
    predicate,
    shifted,
    shuffle,
    vote,
)

OPERANDS = {"r": "unsigned int", "l": "unsigned long long", "h": "unsigned short", "f": "float", "d": "double", "n": "int"}
"""Constraint letter -> type of the value."""


_PLACES = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}
REGISTERS = {
    **{f"%{ptx}.{axis}": f"{cuda}.{axis}" for ptx, cuda in _PLACES.items() for axis in "xyz"},
    "%laneid": f"({THREAD} & 31u)", "%warpid": f"({THREAD} >> 5)", "%smid": "0u", "%nsmid": "1u", "%clock": "(unsigned)clock64()",
    "%clock64": "(unsigned long long)clock64()", "%globaltimer": "(unsigned long long)clock64()",
    "%lanemask_eq": f"(1u << ({THREAD} & 31u))", "%lanemask_lt": f"((1u << ({THREAD} & 31u)) - 1u)",
    "%lanemask_le": f"((2u << ({THREAD} & 31u)) - 1u)", "%lanemask_gt": f"(~((2u << ({THREAD} & 31u)) - 1u))",
    "%lanemask_ge": f"(~((1u << ({THREAD} & 31u)) - 1u))", "WARP_SZ": "32u",
}  # fmt: skip

IGNORED = frozenset(
    ["rn", "rz", "rm", "rp", "ftz", "sat", "approx", "full", "volatile", "relaxed", "gpu", "cta", "sys", "nc", "ca", "cg", "cs", "lu", "cv", "wb",
     "wt", "global", "aligned", "sync", "sc", "acquire", "release", "weak", "L1", "no_allocate", "evict_first", "evict_last", "L2", "128B", "256B"]
)  # fmt: skip
"""Modifiers that say how, not what; rounding other than to nearest is refused for what rounds (`_DIRECTED`)."""

_DIRECTED = frozenset({"rz", "rm", "rp", "sat"})

BINARY = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "rem": "%"}
APPROXIMATIONS = {
    "ex2": "exp2f({0})", "lg2": "log2f({0})", "rcp": "(1.0f / {0})", "rsqrt": "rsqrtf({0})", "sqrt": "sqrtf({0})", "sin": "sinf({0})",
    "cos": "cosf({0})", "tanh": "tanhf({0})",
}  # fmt: skip
DOUBLE = {"rcp": "(1.0 / {0})", "rsqrt": "rsqrt({0})", "sqrt": "sqrt({0})"}
FENCES = {"membar.gl": "__threadfence()", "membar.cta": "__threadfence_block()", "membar.sys": "__threadfence_system()"}


_MEANT = {
    "mul": {"lo", "hi", "wide"}, "mad": {"lo", "hi", "wide"}, "setp": {*COMPARISONS}, "shfl": {"idx", "up", "down", "bfly"},
    "vote": {"ballot", "all", "any"}, "cvt": {"rni", "rzi", "rmi", "rpi"},
    **{operation: {"pred"} for operation in ("not", "and", "or", "xor")},
}  # fmt: skip
"""Modifiers, besides types, that an operation is understood with; `sync` and the like are left out before."""


def translate(text: str) -> str:
    """Return `text` with each inline PTX statement that is understood as C++ in its place, on as many lines."""
    if "asm" not in text:
        return text
    pieces: list[str] = []
    at = 0
    for number, match in enumerate(re.finditer(r"\b(?:asm|__asm__|__asm)\b(?:\s+(?:volatile|__volatile__))?\s*\(", text)):
        if match.start() < at or _quoted(text, match.start()):
            continue
        end = scan.closing(text, match.end() - 1)
        stop = re.compile(r"\s*;").match(text, end)
        if stop is None:
            continue
        try:
            translated = _Statement(text[match.end() : end - 1], number, (text, match.start())).text()
        except (DoesNotApply, KeyError, IndexError):
            continue
        pieces += [text[at : match.start()], translated, "\n" * (text.count("\n", match.start(), stop.end()) - translated.count("\n"))]
        at = stop.end()
    return "".join(pieces) + text[at:]


def _quoted(text: str, at: int) -> bool:
    """Whether an offset lies in a string or a comment of its line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    bare = re.sub(r'"(?:\\.|[^"\\])*"|/\*.*?\*/', "", line)
    return '"' in bare or "//" in bare


@dataclass
class _Statement:
    """One asm statement: its template and its operands."""

    inside: str
    number: int
    place: tuple[str, int]
    """The source, and where the statement stands in it."""
    types: dict[str, str] = field(default_factory=dict)
    """Name of a register in the template, or of an operand -> its C++ type."""

    def text(self) -> str:
        parts = _sections(self.inside)
        strings = re.findall(r'"((?:\\.|[^"\\])*)"', parts[0])
        template = "".join(strings).replace("\\n", "\n").replace("\\t", " ")
        outputs, inputs = (self._operands(parts[place]) if len(parts) > place else [] for place in (1, 2))
        names = [f"_ptx{self.number}_{index}" for index in range(len(outputs) + len(inputs))]
        before, after = [], []
        for name, (constraint, value) in zip(names, [*outputs, *inputs], strict=True):
            kind = OPERANDS.get(constraint[-1])
            if kind is None:
                raise DoesNotApply(0, constraint)
            self.types[name] = kind
            read = not constraint.startswith("=")
            before.append(f"{kind} {name} = ({kind})({value});" if read else f"{kind} {name};")
            if constraint[0] in "=+":
                after.append(f"{value} = {self._pointer(value) if constraint[-1] == 'l' else ''}{name};")
        filled = re.sub(r"%(\d+)", lambda m: names[int(m[1])], template.replace("%%", "%"))
        instructions = _instructions(filled)
        if not instructions:
            raise DoesNotApply(0, "an empty template is there for the compiler")
        body = [translated for instruction in instructions if (translated := self._instruction(instruction))]
        return "{ " + " ".join([*before, *body, *after]) + " }"

    def _pointer(self, value: str) -> str:
        """Return the cast that an address needs which a register of 64 bits leaves in a local pointer; empty for another variable."""
        declared = rf"[;{{}}]\s*(?:const\s+)?([A-Za-z_][\w:]*(?:\s*\*)+)\s*{re.escape(value)}\s*[=;]"
        found = re.compile(declared).findall(self.place[0], 0, self.place[1]) if re.fullmatch(r"\w+", value) else []
        return f"({found[-1]})" if found else ""

    def _operands(self, text: str) -> list[tuple[str, str]]:
        text = re.sub(r'"\s+"', "", text)  # "=" "r" is "=r"
        constraints = re.findall(r'(?:\[\w+\]\s*)?"([=+&]*[a-z])"\s*(\()', text)
        operands, at = [], 0
        for constraint, _ in constraints:
            opening = text.index("(", text.index(f'"{constraint}"', at))
            end = scan.closing(text, opening)
            operands.append((constraint.replace("&", ""), text[opening + 1 : end - 1].strip()))
            at = end
        if len(operands) != len([part for part in scan.split_commas(text) if part.strip()]):
            raise DoesNotApply(0, text)
        return operands

    def _instruction(self, text: str) -> str:
        """Return the C++ statement of one instruction."""
        declared = re.fullmatch(r"\.reg\s+\.(\w+)\s+(.+)", text)
        if declared:
            kind = "bool" if declared[1] == "pred" else TYPES.get(declared[1])
            if kind is None or "<" in declared[2]:
                raise DoesNotApply(0, text)
            names = [name.strip() for name in declared[2].split(",")]
            if any(self._local(name) in self.types for name in names):
                raise DoesNotApply(0, "a register that is declared twice")
            self.types |= {self._local(name): kind for name in names}
            return f"{kind} {', '.join(map(self._local, names))};"
        guard = re.match(r"@(!?)(%?\w+)\s+", text)
        if guard:
            inner = self._instruction(text[guard.end() :])
            return f"if ({guard[1]}{self._value(guard[2])}) {{ {inner} }}"
        name, _, rest = text.partition(" ")
        operation, *modifiers = name.split(".")
        if operation == "shfl" and (both := re.match(r"\s*(%?\w+)\s*\|\s*(%?\w+)\s*,", rest)):
            # `r|p`: p says whether the lane that was asked for is there
            operands = [self._value(operand) for operand in (both[1], *scan.split_commas(rest[both.end() :]))]
            kind = next(one for one in modifiers if one in TYPES)
            values = [self._typed(operands[1], kind), *operands[2:]]
            inside = f"{self._value(both[2])} = {is_inside(modifiers, values)}; "  # first: the result may be what is shuffled or the distance
            return inside + self._translated(operation, [*modifiers], operands) + ";"
        operands = [self._value(operand) for operand in scan.split_commas(rest)]
        return self._translated(operation, [*modifiers], operands) + ";"

    def _local(self, name: str) -> str:
        return f"_ptx{self.number}_{re.sub(r'[^0-9A-Za-z_]', '', name)}"

    def _value(self, operand: str) -> str:
        operand = operand.strip()
        if operand in REGISTERS:
            return REGISTERS[operand]
        if operand.startswith("_ptx") or re.fullmatch(r"-?\d+|0[xX][0-9a-fA-F]+[uU]?|-?\d+\.\d+", operand):
            return operand
        if hexadecimal := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", operand):
            return f"__uint_as_float(0x{hexadecimal[1]}u)"
        if operand[:1] in "[{":
            inside = [self._value(part) for part in scan.split_commas(operand[1:-1])]
            return operand[0] + ", ".join(inside) + operand[-1]
        if address := re.fullmatch(r"(%?\w+)\s*\+\s*(-?\d+)", operand):
            return f"{self._value(address[1])} + {address[2]}"
        if self._local(operand) in self.types:
            return self._local(operand)
        raise DoesNotApply(0, operand)

    # -- instructions

    def _translated(self, operation: str, modifiers: Sequence[str], operands: Sequence[str]) -> str:
        plain = [modifier for modifier in modifiers if modifier not in IGNORED]
        kinds = [modifier for modifier in plain if modifier in TYPES]
        kind = kinds[-1] if kinds else ""
        full = ".".join([operation, *(m for m in modifiers if m in ("gl", "cta", "sys"))])
        if full in FENCES:
            return FENCES[full]
        if operation == "fence":
            return "__threadfence()"
        if (operation == "bar" and operands == ["0"]) or (operation == "barrier" and operands[:1] == ["0"] and len(operands) == 1):
            return "__syncwarp()" if "warp" in plain else "__syncthreads()"
        if operation == "bar" and "warp" in plain:
            return f"__syncwarp({operands[0]})"
        if operation == "trap":
            return "__trap()"
        if operation == "nanosleep":
            return "(void)0"
        if operation == "vabsdiff4" and plain in (["u32"] * 3, ["u32"] * 3 + ["add"]) and len(operands) == 4:
            sums, apart = f"__vsadu4({operands[1]}, {operands[2]}) + {operands[3]}", f"__vabsdiffu4({operands[1]}, {operands[2]})"
            return f"{operands[0]} = {sums if plain[-1] == 'add' else apart}"
        if (called := tensor_cores.call(operation, modifiers, operands, self.types)) is not None:
            return called
        if operation in ("ld", "st", "ldu"):
            return self._memory("ld" if operation == "ldu" else operation, modifiers, plain, kind, operands)
        if operation == "mov" and kind in ("b64", "b32") and [operand[0] for operand in operands].count("{") == 1:
            return self._halves(kind, operands)
        if any(operand[0] in "{[" for operand in operands) or not operands:
            raise DoesNotApply(0, operation)
        if "cc" in modifiers or operation in ("addc", "subc", "madc"):
            return self._carried(operation, modifiers, kind, operands)
        if {*plain} - {*TYPES} - _MEANT.get(operation, set()) or "sat" in modifiers:
            raise DoesNotApply(0, ".".join([operation, *modifiers]))
        if "pred" in plain:
            return f"{operands[0]} = {predicate(operation, operands[1:])}"
        if not kind and operation != "activemask":
            raise DoesNotApply(0, operation)
        value = self._computed(operation, modifiers, plain, kind, operands[1:])
        result = {"setp": "", "cvt": kinds[0] if kinds else "", "bfind": "u32"}.get(operation, kind)
        return f"{operands[0]} = {self._fitting(operands[0], value, result)}"

    def _carried(self, operation: str, modifiers: Sequence[str], kind: str, operands: Sequence[str]) -> str:
        """Return a sum that takes or leaves the carry. Of a high half the sign would matter."""
        base = operation.removesuffix("c")
        half = [modifier for modifier in modifiers if modifier in ("lo", "hi")]
        known = {"cc", *half} if base == "mad" else {"cc"}
        if base not in ("add", "sub", "mad") or kind not in ("u32", "s32", "b32", "u64", "s64", "b64") or {*modifiers} - known - {kind}:
            raise DoesNotApply(0, operation)
        if (base == "mad") != (len(half) == 1) or len(operands) != (4 if base == "mad" else 3) or (half == ["hi"] and kind[0] == "s"):
            raise DoesNotApply(0, operation)
        unsigned = f"u{kind[1:]}"
        flags = [half == ["hi"]] if base == "mad" else []
        flags += [operation != base, "cc" in modifiers]
        values = ", ".join(f"({TYPES[unsigned]})({self._typed(operand, unsigned)})" for operand in operands[1:])
        called = f"ww::{base}_carry<{TYPES[unsigned]}, {', '.join(str(flag).lower() for flag in flags)}>({values})"
        return f"{operands[0]} = {self._fitting(operands[0], called, unsigned)}"

    def _halves(self, kind: str, operands: Sequence[str]) -> str:
        """Return a move between a register and its two halves, `{low, high}`."""
        bits = bits_of(kind) // 2
        whole, half = TYPES[kind], TYPES[f"b{bits}"]
        pair = next(operand for operand in operands if operand[0] == "{")
        parts = [part.strip() for part in pair.strip("{}").split(",")]
        other = operands[0] if pair == operands[1] else operands[1]
        held = self.types.get(other, "")
        real = {"double": ("__double_as_longlong", "__longlong_as_double"), "float": ("__float_as_uint", "__uint_as_float")}
        if len(parts) != 2 or (held, bits) not in (("double", 32), ("float", 16), (whole, bits), (whole.replace("unsigned ", ""), bits)):
            raise DoesNotApply(0, "mov")
        to_bits, from_bits = real.get(held, ("", ""))
        if pair == operands[0]:
            kept = f"_ptx{self.number}_whole"
            low, high = self._fitting(parts[0], f"({half}){kept}", f"b{bits}"), self._fitting(parts[1], f"({half})({kept} >> {bits})", f"b{bits}")
            return f"{{ const {whole} {kept} = {to_bits}({other}); {parts[0]} = {low}; {parts[1]} = {high}; }}"
        low, high = (f"({whole})({half})({self._typed(part, f'b{bits}')})" for part in parts)
        return f"{other} = {from_bits}({low} | ({high} << {bits}))"

    def _fitting(self, target: str, value: str, kind: str) -> str:
        """Return a value of PTX type `kind` for a target: bits that change their C++ type are reinterpreted."""
        held = self.types.get(target, "")
        if kind in ("b32", "u32", "s32") and held == "float":
            return f"__uint_as_float((unsigned)({value}))"
        if kind == "f32" and held == "unsigned int":
            return f"__float_as_uint({value})"
        if (held == "double") != (kind == "f64") and kind:
            raise DoesNotApply(0, "the bits of a double in another register")
        return value

    def _computed(self, operation: str, modifiers: Sequence[str], plain: Sequence[str], kind: str, values: Sequence[str]) -> str:
        """Return the value of an instruction."""
        if any(modifier in _DIRECTED for modifier in modifiers) and operation not in ("cvt", "mov") and kind.startswith("f"):
            raise DoesNotApply(0, operation)
        modular = operation in ("add", "sub") or (operation in ("mul", "mad") and "lo" in plain)
        a = [self._typed(value, kind.replace("s", "u") if modular else kind) for value in values]
        floating, suffix, longer = kind.startswith("f"), "f" if kind == "f32" else "", "ll" if kind == "b64" else ""
        last = f"{bits_of(kind) - 1}u" if kind in TYPES else ""
        if operation == "mov":
            return a[0]
        if operation in BINARY and len(a) == 2:
            return f"({a[0]} {BINARY[operation]} {a[1]})"
        if operation == "mul":
            return self._product(plain, kind, a)
        if operation in ("mad", "fma"):
            if floating:
                return f"{'fmaf' if kind == 'f32' else 'fma'}({a[0]}, {a[1]}, {a[2]})"
            addend = values[2] if "wide" in plain else a[2]
            return f"({self._product(plain, kind, a[:2])} + {addend})"
        if operation == "div":
            return f"({a[0]} / {a[1]})"
        if operation in ("min", "max"):
            sign = "<" if operation == "min" else ">"
            return f"f{operation}{suffix}({a[0]}, {a[1]})" if floating else f"({a[0]} {sign} {a[1]} ? {a[0]} : {a[1]})"
        simple: Mapping[str, Callable[[], str]] = {
            "neg": lambda: f"(-{a[0]})", "not": lambda: f"(~{a[0]})", "abs": lambda: f"{'fabs' + suffix if floating else 'abs'}({a[0]})",
            "shl": lambda: f"({values[1]} > {last} ? 0 : {a[0]} << {values[1]})", "shr": lambda: shifted(a[0], values[1], last, kind),
            "popc": lambda: f"__popc{longer}({a[0]})", "clz": lambda: f"__clz{longer}({a[0]})", "brev": lambda: f"__brev{longer}({a[0]})",
            "bfind": lambda: highest(kind, a[0]),
            "prmt": lambda: permuted(a), "bfi": lambda: inserted(kind, a, values),
            "bfe": lambda: self._field(kind, a, values), "lop3": lambda: lookup(a), "selp": lambda: f"({values[2]} ? {a[0]} : {a[1]})",
            "setp": lambda: compared(plain, floating, a), "cvt": lambda: self._converted(modifiers, plain, values[0]),
            "activemask": lambda: "__activemask()", "shfl": lambda: shuffle(plain, [a[0], *values[1:]]), "vote": lambda: vote(plain, values),
        }  # fmt: skip
        if operation in APPROXIMATIONS:
            return (APPROXIMATIONS if kind == "f32" else DOUBLE)[operation].format(a[0])
        if operation not in simple:
            raise DoesNotApply(0, operation)
        return simple[operation]()

    def _typed(self, value: str, kind: str) -> str:
        """Return an operand as PTX type `kind` sees it."""
        held = self.types.get(value, "")
        if kind in ("b32", "u32", "s32") and value.startswith("__uint_as_float("):
            return value.removeprefix("__uint_as_float(").removesuffix(")")  # a literal's bits
        if kind in ("b32", "u32", "s32") and held == "float":
            value = f"__float_as_uint({value})"
        if kind == "f32" and held == "unsigned int":
            return f"__uint_as_float({value})"
        if held and (held == "double") != (kind == "f64"):
            raise DoesNotApply(0, "the bits of a double in another register")
        return f"({TYPES[kind]})({value})" if kind in TYPES and (kind[0] == "s" or held != TYPES[kind]) else value

    def _product(self, plain: Sequence[str], kind: str, a: Sequence[str]) -> str:
        if kind.startswith("f") or "lo" in plain:
            return f"({a[0]} * {a[1]})"
        if "wide" in plain:
            wide = "long long" if kind.startswith("s") else "unsigned long long"
            return f"(({wide})({a[0]}) * ({wide})({a[1]}))"
        if "hi" in plain and kind in ("u32", "s32"):
            return f"{'__umulhi' if kind == 'u32' else '__mulhi'}({a[0]}, {a[1]})"
        if "hi" in plain and kind in ("u64", "s64"):
            return f"{'__umul64hi' if kind == 'u64' else '__mul64hi'}({a[0]}, {a[1]})"
        raise DoesNotApply(0, "mul")

    def _field(self, kind: str, a: Sequence[str], values: Sequence[str]) -> str:
        if kind != "u32":
            raise DoesNotApply(0, "bfe")
        first, width = f"({values[1]} & 255u)", f"({values[2]} & 255u)"
        return f"({first} > 31u ? 0u : {width} > 31u ? {a[0]} >> {first} : ({a[0]} >> {first}) & ((1u << {width}) - 1u))"

    def _converted(self, modifiers: Sequence[str], plain: Sequence[str], value: str) -> str:
        kinds = [modifier for modifier in plain if modifier in TYPES]
        if len(kinds) != 2:
            raise DoesNotApply(0, "cvt")
        target, origin = kinds
        read = self._typed(value, origin)
        rounding = next((modifier for modifier in plain if modifier in ("rni", "rzi", "rmi", "rpi")), "")
        if rounding:
            function = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[rounding]
            read = f"{function}{'f' if origin == 'f32' else ''}({read})"
        elif any(modifier in ("rz", "rm", "rp") for modifier in modifiers):
            raise DoesNotApply(0, "cvt")
        if origin[0] == "f" and target[0] != "f":
            return clamped(target, read)
        return f"({TYPES[target]})({read})"

    def _memory(self, operation: str, modifiers: Sequence[str], plain: Sequence[str], kind: str, operands: Sequence[str]) -> str:
        """Return loads and stores through generic and global addresses; shared ones are 32-bit offsets that a CPU does not have."""
        if {*plain} - {kind, "v2", "v4"} or kind not in TYPES or {"acquire", "release"} & {*modifiers}:
            raise DoesNotApply(0, operation)
        seen = "volatile " if {"volatile", "relaxed"} & {*modifiers} else ""
        values, address = (operands[0], operands[1]) if operation == "ld" else (operands[1], operands[0])
        base = address.strip("[]")
        parts = [part.strip() for part in values.strip("{}").split(",")]
        base, _, offset = base.partition(" + ")
        place = f"_ptx{self.number}_at"
        what = f"{'const ' if operation == 'ld' else ''}{seen}{TYPES[kind]}*"
        begin = f"{{ {what} {place} = ({what})({base}{f' + {offset}' if offset else ''})"  # first: a part may be the base's own register
        steps = [f"{part} = {self._fitting(part, f'{place}[{index}]', kind)}" for index, part in enumerate(parts)]
        if operation == "st":
            steps = [f"{place}[{index}] = {self._typed(part, kind)}" for index, part in enumerate(parts)]
        return "; ".join([begin, *steps]) + "; }"


def _instructions(template: str) -> list[str]:
    """Return the instructions of a template. A brace that begins or follows one is a scope; those inside are vectors."""
    instructions, current = [], ""
    for character in re.sub(r"//[^\n]*|/\*.*?\*/", " ", template, flags=re.S):
        if character == ";":
            instructions.append(" ".join(current.split()))
            current = ""
        elif current.strip() or character not in "{}":
            current += character
    return [piece for piece in [*instructions, " ".join(current.split())] if piece]


def _sections(text: str) -> list[str]:
    """Return the parts of an asm statement: its colons that stand outside brackets and strings part them."""
    parts, depth, at = [], 0, 0
    for piece in re.finditer(r'"(?:\\.|[^"\\])*"|[()\[\]{}:]', text):
        depth += (piece[0] in "([{") - (piece[0] in ")]}")
        if piece[0] == ":" and depth == 0:
            parts.append(text[at : piece.start()])
            at = piece.end()
    return [*parts, text[at:]]

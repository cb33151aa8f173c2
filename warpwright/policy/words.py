"""Words: a program, an action, a place and a speed as the policy reads and writes them. A model of a small vocabulary serves every domain so.

    cooperate(row_sum_kernel, threads=128)   ->   cooperate @0 threads 128 ;

Names of one program mean nothing in another: a place is the number of its first mention (@0), an identifier of a text becomes v0, v1 ...
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from warpwright.base import Action, Scalar
from warpwright.space import Space

PLACES = 24
"""Places and identifiers that are told apart; later ones share the last word."""

LONGEST = 120
"""Words of a program that are read."""

NUMBERS = frozenset([*range(33), 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096])
"""Whole numbers that are a word each. Others are spelt in digits."""

SPEEDS = 12
"""A speed-up's word counts half powers of two, from -SPEEDS to SPEEDS."""

STOP = ";"
"""Ends an action."""

_C_WORDS = (
    "if else for while do return break continue switch unsigned int float double half bool char long struct const void static inline template "
    "restrict __global__ __device__ __shared__ __restrict__ __syncthreads __syncwarp __shfl_down_sync __shfl_xor_sync __ldg warpSize "
    "threadIdx.x threadIdx.y threadIdx.z blockIdx.x blockIdx.y blockIdx.z blockDim.x blockDim.y blockDim.z gridDim.x gridDim.y gridDim.z "
    "atomicAdd atomicMax atomicMin atomicCAS fmaxf fminf max min expf exp logf log sqrtf sqrt rsqrtf rsqrt tanhf tanh fabsf fabs powf erff "
    "cudaMemset cudaMemcpy float2 float4 int4 INFINITY"
)
C_WORDS = frozenset(_C_WORDS.split())
"""Identifiers of CUDA and C that mean the same in every program."""

_SILENT = frozenset([*';,(){}.*&"', "float", "int", "const", "void", "extern", "C"])
"""Pieces of a text that say little and would make it twice as long."""

_PIECES = re.compile(
    r"//[^\n]*|/\*.*?\*/|<<<|>>>|<<=|>>=|[-+*/%<>=!&|^]=|<<|>>|&&|\|\||\+\+|--"
    r"|(?:threadIdx|blockIdx|blockDim|gridDim)\.[xyz]|[A-Za-z_]\w*|\d+\.?\d*(?:[eE][-+]?\d+)?[fFuUlL]*|\S",
    re.S,
)


class Places:
    """Numbers the places of one program by their first mention, and reads the numbers back."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def word(self, name: str) -> str:
        """Return the word of a place, which counts as mentioned from now on."""
        if name not in self.names:
            self.names.append(name)
        return f"@{min(self.names.index(name), PLACES - 1)}"

    def action(self, action: Action) -> tuple[str, ...]:
        """Return an action's words, STOP included."""
        at = (self.word(action.at),) if action.at else ()
        return (action.technique, *at, *(word for name, value in action.params for word in (name, *value_words(value))), STOP)

    def recipe(self, recipe: Iterable[Action]) -> tuple[str, ...]:
        """Return a recipe's words."""
        return tuple(word for action in recipe for word in self.action(action))

    def program(self, raw: Sequence[str]) -> tuple[str, ...]:
        """Return a program's words with its places numbered; names after an @ that no action uses are left out."""
        kept = [word for word in raw if not word.startswith("@") or word[1:] in self.names]
        return tuple(self.word(word[1:]) if word.startswith("@") else word for word in kept)[:LONGEST]


def value_words(value: Scalar) -> tuple[str, ...]:
    """Return the words of a parameter's value."""
    if isinstance(value, bool):
        return (str(value).lower(),)
    if isinstance(value, int) and value in NUMBERS:
        return (str(value),)
    if isinstance(value, int | float):
        return tuple(f"'{letter}" for letter in f"{value:g}")
    return tuple(re.findall(r"\w+", value)) or ("''",)


def text_words(text: str, places: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the words of a C or CUDA text: what means the same everywhere, sizes, `places` after an @, and v0, v1 ... for other names."""
    kept, names, words = frozenset(places), list[str](), list[str]()
    for piece in _PIECES.findall(text):
        if piece in _SILENT or piece.startswith(("//", "/*")):
            continue
        if piece[0].isdigit():
            words.append(size_word(float(piece.rstrip("fFuUlL"))))
        elif piece in kept:
            words.append(f"@{piece}")
        elif not (piece[0].isalpha() or piece[0] == "_") or "." in piece or piece in C_WORDS:
            words.append(piece)
        else:
            if piece not in names:
                names.append(piece)
            words.append(f"v{min(names.index(piece), PLACES - 1)}")
    return tuple(words)


def size_word(value: float) -> str:
    """Return the word of a size: small whole numbers as they are, others by the power of two below."""
    if value == int(value) and 0 <= value <= 32:
        return str(int(value))
    return f"e{int(math.log2(abs(value)))}" if abs(value) >= 1 else "tiny"


def speed_word(speedup: float) -> str:
    """Return the word of a speed-up; `failed` for a program that did not pass."""
    return f"x{speed_step(speedup):+d}" if speedup > 0 else "failed"


def speed_step(speedup: float) -> int:
    """Return a speed-up in half powers of two."""
    return max(-SPEEDS, min(SPEEDS, round(2 * math.log2(speedup))))


def roof_word(share: float | None) -> str:
    """Return the word of the original's place under the roof: how often the share of the bandwidth that it needs can be doubled."""
    return "roof?" if not share else f"roof{max(0, min(10, round(-math.log2(share))))}"


def program_words(space: Space[Any], actions: Iterable[Action]) -> tuple[str, ...]:
    """Return what a space says of its program, else its text, else which techniques are legal. Places have their names, after an @."""
    if space.words is not None:
        return space.words(space.start)
    if space.writing is not None and space.writing.source:
        return text_words(space.writing.source, {action.at for action in actions if action.at})
    return tuple(dict.fromkeys(action.technique for action in actions))


def fixed_words() -> list[str]:
    """Return the words that every vocabulary has."""
    numbers = [*map(str, sorted(NUMBERS)), *(f"e{power}" for power in range(41)), "tiny", *(f"'{letter}" for letter in "0123456789.-e+"), "''"]
    names = [f"{letter}{number}" for letter in "@v" for number in range(PLACES)]
    signs = [*"+-*/%<>=!&|^?:[]~#", "<<<", ">>>", "+=", "-=", "*=", "/=", "<=", ">=", "==", "!=", "&&", "||", "++", "--", "<<", ">>"]
    measures = ["failed", *(f"x{step:+d}" for step in range(-SPEEDS, SPEEDS + 1)), "roof?", *(f"roof{doublings}" for doublings in range(11))]
    return ["program", "try", "write", STOP, "true", "false", *numbers, *names, *signs, *measures, *sorted(C_WORDS)]

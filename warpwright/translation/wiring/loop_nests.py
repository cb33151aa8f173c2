"""Read the wiring off the reference: where C has one loop nest for each CUDA kernel, both run the same operators in the same order and memory.

The arrays of each nest are then the kernel's parameters. Stored, updated and read ones are paired by name without the number, then in the order in
which the two texts mention them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from warpwright.translation.c_source import base_of, mentions, stored_to
from warpwright.translation.items import Item
from warpwright.translation.launch import Launch
from warpwright.translation.wiring.footprint import Footprints
from warpwright.translation.wiring.grids import Coverage
from warpwright.translation.wiring.kernels import Kernel


@dataclass(frozen=True)
class LoopNest:
    """One outer loop nest of the reference: the arrays that it stores to and those that it only reads, in the order of mention."""

    stores: tuple[str, ...]
    reads: tuple[str, ...]


def loop_nests_of(item: Item) -> list[LoopNest]:
    """Return the outer loop nests of the reference."""
    body = item.c[item.c.find("{", item.c.find(item.entry)) + 1 : item.c.rfind("}")]
    arrays = [b.name for b in item.buffers] + re.findall(r"^ {0,4}\w+ (\w+)\[\d+\];", body, re.M)
    nests = []
    for text in _nest_texts(body):
        names = _mentioned(text, arrays)
        stores = stored_to(text, names)
        nests.append(LoopNest(tuple(n for n in names if n in stores), tuple(n for n in names if n not in stores)))
    return nests


def _nest_texts(body: str) -> list[str]:
    texts, depth, start = [], 0, 0
    for brace in re.finditer(r"[{}]", body):
        if brace[0] == "{":
            start = body.rfind("for", 0, brace.start()) if depth == 0 else start
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                texts.append(body[start : brace.end()])
    return texts


def _mentioned(text: str, names: Sequence[str]) -> list[str]:
    """Return those of the names that are indexed in the text, in the order of their first mention."""
    first = {name: places[0].start() for name in names if (places := mentions(text, name))}
    return sorted(first, key=lambda name: first[name])


def bindings(item: Item, kernels: Sequence[Kernel]) -> list[dict[str, str]] | None:
    """Return, for each kernel, parameter -> array of the reference; None where the two do not match."""
    nests = loop_nests_of(item)
    if len(nests) != len(kernels):
        return None
    bound = []
    for kernel, nest in zip(kernels, nests, strict=True):
        body = kernel.text.partition("{")[2]
        order = _mentioned(body, [name for name, _ in kernel.parameters])
        stored = _paired([n for n in order if n in kernel.stores], nest.stores)
        read = _paired([n for n in order if n not in kernel.stores], nest.reads)
        if stored is None or read is None or len(order) != len(kernel.parameters):
            return None
        bound.append({**stored, **read})
    return bound


def _paired(parameters: Sequence[str], arrays: Sequence[str]) -> dict[str, str] | None:
    """Pair parameters with arrays of the same name apart from its number, and the rest in order; None where the numbers differ."""
    if len(parameters) != len(arrays):
        return None
    left, pairs = list(arrays), dict[str, str]()
    for name in parameters:
        namesake = next((array for array in left if base_of(array) == base_of(name)), None)
        if namesake is not None:
            pairs[name] = namesake
            left.remove(namesake)
    return {**pairs, **dict(zip((n for n in parameters if n not in pairs), left, strict=True))}


def wiring(item: Item, kernels: Sequence[Kernel], footprints: Footprints) -> Item | str:
    """Return the item with launches, or why the reference does not give them. Grids cover what later kernels read.

    A kernel may cover less than that, where the reference reads what an earlier operator left in the same memory.
    """
    bound = bindings(item, kernels)
    if bound is None:
        return "the reference has not one loop nest for each kernel"
    own = {b.name: b.size for b in item.buffers}
    needed: dict[str, int] = {b.name: b.size for b in item.buffers if b.role == "output"}
    touched: dict[str, int] = {}
    kinds: dict[str, str] = {}
    backwards: list[Launch] = []
    for number, (kernel, binding) in reversed(list(enumerate(zip(kernels, bound, strict=True)))):
        coverage = _coverage(number, kernel, binding, needed, footprints)
        if isinstance(coverage, str):
            return coverage
        left = {name for name in kernel.stores - kernel.updates if coverage.extents[name] < needed.get(binding[name], 0)}
        for name, dtype in kernel.parameters:
            array = binding[name]
            touched[array] = max(touched.get(array, 1), coverage.extents[name])
            kinds[array] = dtype
            if name in kernel.stores - kernel.updates - left:
                needed.pop(array, None)
        for name, _ in kernel.parameters:
            if name in kernel.updates or name not in kernel.stores:
                needed[binding[name]] = max(needed.get(binding[name], 0), coverage.extents[name])
        backwards.append(Launch(kernel.name, coverage.grid, coverage.block, tuple(binding[name] for name, _ in kernel.parameters)))
    temporaries = {f"own_{name}": (kinds[name], size) for name, size in touched.items() if name not in own}
    padded = {name: size for name, size in touched.items() if size > own.get(name, size)}
    launches = [replace(one, args=tuple(name if name in own else f"own_{name}" for name in one.args)) for one in reversed(backwards)]
    return replace(item, launches=tuple(launches), temporaries=temporaries, padded=padded)


def _coverage(number: int, kernel: Kernel, binding: Mapping[str, str], needed: Mapping[str, int], footprints: Footprints) -> Coverage | str:
    stored = [name for name, _ in kernel.parameters if name in kernel.stores and needed.get(binding[name])]
    if not stored:
        return f"nothing reads what {kernel.name} stores"
    target = min(stored, key=lambda name: name in kernel.updates)
    coverages = footprints.launches(number, target, needed[binding[target]])
    most = footprints.covers.get((number, target), 0)
    if isinstance(coverages, str) and 0 < most < needed[binding[target]]:
        coverages = footprints.launches(number, target, most)
    return coverages if isinstance(coverages, str) else coverages[0]

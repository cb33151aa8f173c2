"""Recover what HPCTransEval does not store: which buffer each kernel's parameter is, and the grid of each launch.

Kernels run in the order of their suffixes. A parameter that has the name of a parameter of the C function is that buffer; other names are
local to a kernel and tell only which operator made the buffer (`compute_1` is a `compute`). Values that no later kernel reads are the
outputs, in the order in which they are made. Sizes of temporaries come from what their readers read, grids from what has to be covered
(`probe`). A wiring counts only when the translated kernels give the reference's answers; the item says what was missing otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from warpwright.bench_transpile import candidates, grids, judge
from warpwright.bench_transpile.items import ELEMENTS, Item, written
from warpwright.bench_transpile.judge import Prepared
from warpwright.bench_transpile.probe import WARP, kernel_grid
from warpwright.pairs.print_cuda import Launch

_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\((\d+)[^)]*\)\s*)?(\w+)\s*\(([^)]*)\)\s*\{')
POLICIES = (("newest", "named"), ("oldest", "named"), ("newest", "unread"), ("oldest", "unread"))
"""Which value a local name stands for, when several operators of that kind made one: the newest not yet read, or the oldest. And which input a
name of an input: the one of that name, or the first not yet read, since each kernel names its parameters anew."""

SCRATCH = "atomic_add_return"
"""TVM's name of the buffer that takes what an atomicAdd returns, which nobody reads."""


@dataclass(frozen=True)
class Kernel:
    """One kernel of an item's text."""

    name: str
    text: str
    block: int
    parameters: tuple[tuple[str, str], ...]
    stores: frozenset[str]
    updates: frozenset[str]
    """Parameters that are read before they are stored to: changed in place."""


class Unwired(Exception):
    """The wiring could not be found; the message says why."""


def kernels_of(cuda: str) -> list[Kernel]:
    """Return the kernels of a text in the order in which they run."""
    found = []
    for match in _KERNEL.finditer(cuda):
        end = _closing(cuda, match.end() - 1)
        text = cuda[match.start() : end + 1]
        listed = tuple(_parameter(one) for one in match[3].split(","))
        names = [name for name, _ in listed]
        body = text[match.end() - match.start() :]
        stores = frozenset(written(body, names))
        block = int(match[1] or "threadIdx" not in body)  # TVM binds no thread where a block has one only
        found.append(Kernel(match[2], text, block, listed, stores, frozenset(n for n in stores if _in_place(body, n))))
    return sorted(found, key=lambda k: int(k.name.rpartition("_")[2]) if k.name.rpartition("_")[2].isdigit() else 0)


def _closing(text: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return at
    raise Unwired("a kernel's text does not end")


def _parameter(text: str) -> tuple[str, str]:
    kind, _, name = re.sub(r"\b(const|__restrict__|__restrict)\b", " ", text).partition("*")
    element = ELEMENTS.get(" ".join(kind.split()))
    if element is None or not name.strip():
        raise Unwired(f"a kernel has the parameter {text.strip()!r}, which is no pointer to a known type")
    return name.strip(), element


def _in_place(body: str, name: str) -> bool:
    """Whether the first statement that mentions the name reads it: it stands on the right of its own first assignment, or of another's."""
    first = re.search(rf"(?<![\w.]){re.escape(name)}\s*\[", body)
    if first is None:
        return False
    line = body[first.start() :].split(";", 1)[0]
    before = body[: first.start()].rpartition("\n")[2]
    return "=" in before.replace("==", "").replace("<=", "") or len(re.findall(rf"(?<![\w.]){re.escape(name)}\s*\[", line)) > 1


def base_of(name: str) -> str:
    """Return a name without its number."""
    return re.sub(r"_\d+$", "", name)


# --- which buffer is which -------------------------------------------------------------------------------------------------------------


def bind(item: Item, kernels: Sequence[Kernel], policy: tuple[str, str]) -> list[dict[str, str]]:
    """Return, for each kernel, parameter -> buffer of the item or temporary."""
    inputs = [b.name for b in item.buffers if b.role == "input"]
    made: list[tuple[str, str]] = []
    read: set[str] = set()
    bound: list[dict[str, str]] = []
    for number, kernel in enumerate(kernels):
        binding: dict[str, str] = {}
        for name, _ in kernel.parameters:
            if name in kernel.stores and name not in kernel.updates:
                continue
            binding[name] = _source(name, inputs, made, read, set(binding.values()), policy)
        read |= {value for name, value in binding.items() if name not in kernel.updates}
        for name in (n for n, _ in kernel.parameters if n in kernel.stores and n not in kernel.updates):
            value = f"value{number}_{name}"
            made.append((value, base_of(name)))
            binding[name] = value
        bound.append(binding)
    names = _outputs(item, made, read)
    return [{parameter: names.get(value, value) for parameter, value in binding.items()} for binding in bound]


def _source(name: str, inputs: Sequence[str], made: Sequence[tuple[str, str]], read: set[str], taken: set[str], policy: tuple[str, str]) -> str:
    values = [value for value, base in made if base == base_of(name) and value not in taken]
    fresh = [value for value in values if value not in read]
    if values:
        chosen = fresh or values
        return chosen[-1] if policy[0] == "newest" else chosen[0]
    if name in inputs and (policy[1] == "named" or (name not in read and name not in taken)):
        return name
    alike = [one for one in inputs if base_of(one) == base_of(name) and one not in taken]
    rest = [one for one in alike if one not in read] or [one for one in alike if one == name] or alike
    if rest:
        return rest[0]
    left = [one for one in inputs if one not in read and one not in taken]
    if len(left) == 1:
        return left[0]
    raise Unwired(f"nothing that could be the parameter {name}: no input and no earlier kernel's output has that name")


def _outputs(item: Item, made: Sequence[tuple[str, str]], read: set[str]) -> dict[str, str]:
    """Return value -> output of the item, for the values that no kernel reads."""
    outputs = [b.name for b in item.buffers if b.role == "output"]
    leaves = [(value, base) for value, base in made if value not in read and base != SCRATCH]
    names: dict[str, str] = {}
    for value, base in leaves:
        same = [o for o in outputs if base_of(o) == base and o not in names.values()]
        if same:
            names[value] = same[0]
    left, free = [v for v, _ in leaves if v not in names], [o for o in outputs if o not in names.values()]
    if len(left) != len(free):
        raise Unwired(f"{len(leaves)} buffers are written and not read again, but there are {len(outputs)} outputs")
    return {**names, **dict(zip(left, free, strict=True))}


# --- sizes and grids -------------------------------------------------------------------------------------------------------------------


def launches(item: Item, kernels: Sequence[Kernel], bound: Sequence[Mapping[str, str]], choice: int = 0) -> Item:
    """Return the item with launches and temporaries; where several launches of a kernel fit, the one of number `choice`. Raises Unwired."""
    sizes = {b.name: b.size for b in item.buffers}
    needed: dict[str, int] = {}
    touched: dict[str, int] = {}
    kinds: dict[str, str] = {}
    made: list[Launch] = []
    capacity = 4 * max(sizes.values()) + 4096
    for kernel, binding in reversed(list(zip(kernels, bound, strict=True))):
        targets = [name for name, _ in kernel.parameters if name in kernel.stores]
        if not targets or not kernel.block:
            raise Unwired(f"{kernel.name} has no __launch_bounds__" if targets else f"{kernel.name} stores to no parameter")
        targets.sort(key=lambda name: binding[name] not in sizes)
        size = sizes.get(binding[targets[0]], needed.get(binding[targets[0]], 0))
        if not size:
            raise Unwired(f"nothing reads {targets[0]}, which {kernel.name} stores to")
        grid, block, tops = _launch(kernel, targets[0], size, capacity, choice)
        for name, dtype in kernel.parameters:
            value = binding[name]
            touched[value] = max(touched.get(value, 0), tops[name])
            if value not in sizes:
                needed[value], kinds[value] = max(needed.get(value, 0), tops[name]), dtype
        made.append(Launch(kernel.name, grid, block, tuple(binding[name] for name, _ in kernel.parameters)))
    temporaries = {value: (kinds[value], size) for value, size in needed.items()}
    padded = {value: touched[value] for value, size in sizes.items() if touched.get(value, 0) > size}
    return replace(item, launches=tuple(reversed(made)), temporaries=temporaries, padded=padded)


def _launch(kernel: Kernel, target: str, size: int, capacity: int, choice: int) -> grids.Launch:
    """Return grid, block and largest indices of a kernel. Raises Unwired."""
    probed = (kernel.text, kernel.name, kernel.parameters, kernel.block, target, size, capacity)
    several = re.search(r"(block|thread)Idx\.[yz]", kernel.text) and not re.search(WARP, kernel.text)
    found = grids.launches_along_axes(*probed) if several else kernel_grid(*probed)
    if isinstance(found, str):
        raise Unwired(f"no grid for {kernel.name}: {found}")
    return found[min(choice, len(found) - 1)] if isinstance(found, list) else ((found[0], 1, 1), (kernel.block, 1, 1), found[1])


def attempts(item: Item) -> Iterator[Item | str]:
    """Yield wired items, one for each policy that gives another wiring, or why there is none."""
    try:
        kernels = kernels_of(item.cuda)
        if not kernels:
            raise Unwired("the CUDA text has no kernel")
    except Unwired as error:
        yield str(error)
        return
    seen: list[Item] = []
    for choice in range(grids.MOST):
        for policy in POLICIES:
            try:
                wired = launches(item, kernels, bind(item, kernels, policy), choice)
            except Unwired as error:
                yield str(error)
                continue
            if wired not in seen:
                seen.append(wired)
                yield wired


def wire(prepared: Prepared) -> Item:
    """Return the item with the first wiring whose translated kernels give the reference's answers, or with the reason why there is none."""
    why = ""
    for attempt in attempts(prepared.item):
        if isinstance(attempt, str):
            why = why or attempt
            continue
        answer = candidates.compile_item(attempt)
        row = judge.judge(prepared, answer, 0.0, Random(0))
        if row.status == "ok":
            return attempt
        why = f"the inferred wiring does not give the reference's answers: {row.status}, {row.reason}"
    return replace(prepared.item, unwired=why or "no wiring was found")

"""Which buffer each kernel's parameter is, where the text says only the name of the operator that the memory was first made for.

A search from the last kernel back to the first. Open values are those that a later kernel reads, or outputs, and that no kernel has been found to
write yet; how much is read of them gives the grid of the kernel that writes them, and that in turn what it reads. A parameter that is stored to is an
open value of its name; one that is read is an open value too (a later kernel reads it as well) or a new one. Every value is written once before it
is read, updated in place or not; a branch that cannot end so is left. The likeliest choice comes first everywhere; wirings are named in the order of
how often they depart from it (limited discrepancy search).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from warpwright.translation.items import Item
from warpwright.translation.pairs.printers.print_cuda import Launch
from warpwright.translation.wiring import grids
from warpwright.translation.wiring.kernels import Kernel, base_of

SCRATCH = "atomic_add_return"
"""TVM's name of the buffer that takes what an atomicAdd returns, which nobody reads."""

MOST_DEPARTURES = 12
MOST_STEPS = 200_000
"""Of the search at one number of departures."""


@dataclass(frozen=True)
class Value:
    """Memory that is live between two kernels: its number, the name in the text without its own number, and how much of it is read later."""

    number: int
    base: str
    dtype: str
    extent: int
    output: str = ""
    """Name of the item's buffer; empty for a temporary."""


@dataclass(frozen=True)
class Step:
    """One kernel's part of a wiring. `bound`: parameter to number of a value, -1 for an input of the item."""

    kernel: int
    launch: grids.Launch
    bound: Mapping[str, int]


Footprint = Callable[[int, str, int], "list[grids.Launch] | str"]
"""Kernel, parameter, elements of it to be covered -> launches, or why there is none."""


class Search:
    """Wirings of one item, the likeliest first. `why` says what the first failure was."""

    def __init__(self, item: Item, kernels: Sequence[Kernel], footprint: Footprint) -> None:
        self.item, self.kernels, self.footprint = item, tuple(kernels), footprint
        self.inputs = [b for b in item.buffers if b.role == "input"]
        self.input_bases = {base_of(b.name) for b in self.inputs}
        self.written = {base_of(name) for kernel in kernels for name in kernel.stores}
        self.why, self.count, self.steps = "", 0, 0

    def wirings(self) -> Iterator[Item]:
        """Yield wired items."""
        seen: list[Item] = []
        outputs = [Value(-2 - at, base_of(b.name), b.dtype, b.size, b.name) for at, b in enumerate(self.item.buffers) if b.role == "output"]
        before = 0
        for departures in range(MOST_DEPARTURES):
            self.steps = 0
            for steps in self._back(len(self.kernels) - 1, outputs, departures):
                for given in ("named", "unread", "listed"):
                    wired = self._item(steps, outputs, given)
                    if wired is not None and wired not in seen:
                        seen.append(wired)
                        yield wired
            if self.steps == before:  # no choice is left to depart from
                return
            before = self.steps

    # -- from the last kernel to the first

    def _back(self, at: int, live: Sequence[Value], left: int) -> Iterator[list[Step]]:
        """Yield the steps of kernels 0..at that leave these values live, with exactly `left` departures from the likeliest choice."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            return
        if at < 0:
            if not live and left == 0:
                yield []
            return
        kernel = self.kernels[at]
        chosen = list(self._targets(kernel, live, left))
        if not chosen:
            self.why = self.why or f"nothing that later kernels read, and no output, could be what {kernel.name} stores"
        for targets, spent in chosen:
            for number, (launch, rest) in enumerate(self._launched(at, kernel, targets, live)):
                if number > left - spent:
                    break
                for bound, before, used in self._sources(at, kernel, kernel.reads, launch, targets, rest, left - spent - number):
                    step = Step(at, launch, bound)
                    yield from ([*steps, step] for steps in self._back(at - 1, before, left - spent - number - used))

    def _targets(self, kernel: Kernel, live: Sequence[Value], left: int) -> Iterator[tuple[dict[str, Value], int]]:
        """Yield which live values the stored parameters are, and the departures that it costs."""
        stored = [(name, dtype) for name, dtype in kernel.parameters if name in kernel.stores]

        def choose(place: int, taken: dict[str, Value], spent: int) -> Iterator[tuple[dict[str, Value], int]]:
            if place == len(stored):
                if any(value.number != 0 for value in taken.values()):
                    yield dict(taken), spent
                return
            name, dtype = stored[place]
            if base_of(name) == SCRATCH:
                yield from choose(place + 1, {**taken, name: Value(0, SCRATCH, dtype, 1)}, spent)
                return
            fitting = [v for v in reversed(live) if v.dtype == dtype and v not in taken.values()]
            options = [v for v in fitting if v.base == base_of(name)] or [v for v in fitting if v.output and v.base not in self.written]
            for cost, value in enumerate(options[: left - spent + 1]):
                yield from choose(place + 1, {**taken, name: value}, spent + cost)

        yield from choose(0, {}, 0)

    def _launched(self, at: int, kernel: Kernel, targets: Mapping[str, Value], live: Sequence[Value]) -> Iterator[tuple[grids.Launch, list[Value]]]:
        """Yield launches that write what is live of the targets, each with the values that are live before, apart from what it reads."""
        name = next((n for n in targets if n not in kernel.updates and targets[n].number), "") or next(n for n in targets if targets[n].number)
        found = self.footprint(at, name, targets[name].extent)
        if isinstance(found, str) and name in kernel.updates:  # what is changed in place need not be covered; inputs of the item are read whole
            sizes = sorted({self._extent(b.name) for b in self.inputs}, reverse=True)
            tries = [(read, size) for size in sizes for read in kernel.reads if base_of(read) in self.input_bases]
            found = next((other for read, size in tries if not isinstance(other := self.footprint(at, read, size), str)), found)
        if isinstance(found, str):
            self.why = self.why or found
            return
        gone = {value.number for n, value in targets.items() if n not in kernel.updates}
        for launch in found:
            wide = {value.number: max(value.extent, launch[2][n]) for n, value in targets.items() if n in kernel.updates}
            yield launch, [replace(v, extent=wide.get(v.number, v.extent)) for v in live if v.number not in gone]

    def _sources(
        self, at: int, kernel: Kernel, reads: Sequence[str], launch: grids.Launch, targets: Mapping[str, Value], live: list[Value], left: int
    ) -> Iterator[tuple[dict[str, int], list[Value], int]]:
        """Yield which values the parameters that are only read are, the values live before, and the departures that it costs."""
        kinds = dict(kernel.parameters)
        start = {name: value.number for name, value in targets.items()}

        def choose(place: int, bound: dict[str, int], now: list[Value], spent: int) -> Iterator[tuple[dict[str, int], list[Value], int]]:
            if place == len(reads):
                if all(sum(v.base == base for v in now) <= self._writers(at, base) for base in {v.base for v in now} & self.written):
                    yield bound, now, spent
                return
            name = reads[place]
            for cost, (number, after) in enumerate(self._options(at, name, kinds[name], launch[2][name], bound, now)):
                if cost > left - spent:
                    break
                yield from choose(place + 1, {**bound, name: number}, after, spent + cost)

        yield from choose(0, start, live, 0)

    def _options(self, at: int, name: str, dtype: str, extent: int, bound: Mapping[str, int], now: list[Value]) -> list[tuple[int, list[Value]]]:
        """Return what a parameter that is only read can be, the likeliest first: value number, and the values live before."""
        base = base_of(name)
        taken = set(bound.values())
        alike = [v for v in reversed(now) if v.base == base and v.dtype == dtype and v.number not in taken]
        shared = [(v.number, [replace(w, extent=max(w.extent, extent)) if w.number == v.number else w for w in now]) for v in alike]
        same = [one for one, v in zip(shared, alike, strict=True) if v.extent == extent]
        other = [one for one, v in zip(shared, alike, strict=True) if v.extent != extent]
        made = []
        if self._writers(at, base) > sum(v.base == base for v in now):
            self.count += 1
            made = [(self.count, [*now, Value(self.count, base, dtype, extent)])]
        given = [(-1, now)] if base in self.input_bases or base not in self.written else []
        if not self._writers(at, base):
            return [*given, *same, *other]
        return [*same, *made, *other, *given]

    def _writers(self, at: int, base: str) -> int:
        """How many kernels before this one write a value of that name anew."""
        return sum(base_of(name) == base for kernel in self.kernels[:at] for name in kernel.stores - kernel.updates)

    # -- the item's inputs, from the first kernel to the last

    def _extent(self, name: str) -> int:
        """How much of an input the reference reads."""
        return self.item.extents.get(name, 0) or next(b.size for b in self.inputs if b.name == name)

    def _order(self, given: str) -> list[str]:
        names = [b.name for b in self.inputs]
        if given == "listed":
            return names
        body = self.item.c.partition("{")[2]

        def first(name: str) -> int:
            found = re.search(rf"(?<![\w.]){re.escape(name)}\s*\[", body)
            return found.start() if found else len(body)

        return sorted(names, key=first)

    def _inputs(self, steps: Sequence[Step], given: str) -> dict[tuple[int, str], str] | None:
        """Return (kernel, parameter) -> input. `given`: by name where it fits, or the first not yet read of those of which as much is read."""
        order, read = self._order(given), set[str]()
        kinds = {b.name: b.dtype for b in self.inputs}
        chosen: dict[tuple[int, str], str] = {}
        for step in steps:
            kernel = self.kernels[step.kernel]
            here: set[str] = set()
            for name, dtype in kernel.parameters:
                if step.bound[name] != -1:
                    continue
                extent = step.launch[2][name]
                fitting = [n for n in order if kinds[n] == dtype and n not in here and self._extent(n) >= extent] or [
                    n for n in order if kinds[n] == dtype and n not in here
                ]  # a kernel without a guard reads on in its last block
                exact = [n for n in fitting if self._extent(n) == extent]
                ranked = [[n for n in fitting if n == name]] if given == "named" else []
                ranked += [[n for n in exact if n not in read], exact, [n for n in fitting if n not in read], fitting]
                best = next((group[0] for group in ranked if group), None)
                if best is None:
                    self.why = self.why or f"nothing that could be the parameter {name}: no input and no earlier kernel's output has that name"
                    return None
                here.add(best)
                chosen[step.kernel, name] = best
            read |= here
        return chosen

    def _item(self, steps: Sequence[Step], outputs: Sequence[Value], given: str) -> Item | None:
        """Return the item with these launches."""
        inputs = self._inputs(steps, given)
        if inputs is None:
            return None
        own = {value.number: value.output for value in outputs}
        touched: dict[str, int] = {}
        kinds: dict[str, str] = {}
        made: list[Launch] = []
        for step in steps:
            kernel = self.kernels[step.kernel]
            names = []
            for name, dtype in kernel.parameters:
                number = step.bound[name]
                value = inputs[step.kernel, name] if number == -1 else own.setdefault(number, f"value{len(own)}_{base_of(name)}")
                touched[value] = max(touched.get(value, 1), step.launch[2][name])
                kinds[value] = dtype
                names.append(value)
            made.append(Launch(kernel.name, step.launch[0], step.launch[1], tuple(names)))
        sizes = {b.name: b.size for b in self.item.buffers}
        temporaries = {value: (kinds[value], size) for value, size in touched.items() if value not in sizes}
        padded = {value: size for value, size in touched.items() if size > sizes.get(value, size)}
        return replace(self.item, launches=tuple(made), temporaries=temporaries, padded=padded)

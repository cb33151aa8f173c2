"""Search for the buffers behind each kernel's parameters, where the text says only which operator the memory was first used for.

The search goes from the last kernel back to the first. A value is live if a later kernel reads it, or if it is an output, and the kernel that
writes it has not been reached yet. How much is read of a live value gives the grid of the kernel that writes it, and the grid gives what that
kernel reads in turn. A parameter that is stored to is a live value of its name; one that is read is a live value too (a later kernel reads it as
well) or a new one. Every value is written once before it is read, then possibly updated in place; a branch that cannot end so is abandoned. The
likeliest choice comes first everywhere, and wirings come in the order of how often they depart from it (limited discrepancy search).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from warpwright.translation.c_source import base_of, mentions
from warpwright.translation.items import Item
from warpwright.translation.launch import Launch
from warpwright.translation.wiring.grids import Coverage
from warpwright.translation.wiring.kernels import Kernel

SCRATCH = "atomic_add_return"
"""TVM's name of the buffer for the return value of atomicAdd, which nobody reads."""

MOST_DEPARTURES = 12
MOST_STEPS = 200_000
"""Limit of the search at one number of departures."""


@dataclass(frozen=True)
class Value:
    """Memory that is live between two kernels. `base`: its name in the text without the number; `extent`: how much of it is read later."""

    number: int
    base: str
    dtype: str
    extent: int
    output: str = ""
    """Name of the item's buffer; empty for a temporary."""


@dataclass(frozen=True)
class Step:
    """One kernel's part of a wiring. `bound`: parameter -> number of a value, -1 for an input of the item."""

    kernel: int
    coverage: Coverage
    bound: Mapping[str, int]


Probe = Callable[[int, str, int], list[Coverage] | str]
"""Kernel, parameter, elements of it to cover -> grids that do, or why there is none."""


class Search:
    """Wirings of one item, the likeliest first. `why` is the first failure."""

    def __init__(self, item: Item, kernels: Sequence[Kernel], probe: Probe) -> None:
        self.item, self.kernels, self.probe = item, tuple(kernels), probe
        self.inputs = [b for b in item.buffers if b.role == "input"]
        self.input_bases = {base_of(b.name) for b in self.inputs}
        self.written = {base_of(name) for kernel in kernels for name in kernel.stores}
        self.why, self.count, self.steps = "", 0, 0

    def wirings(self) -> Iterator[Item]:
        """Yield wired items."""
        yielded: list[Item] = []
        outputs = [Value(-2 - at, base_of(b.name), b.dtype, b.size, b.name) for at, b in enumerate(self.item.buffers) if b.role == "output"]
        before = 0
        for departures in range(MOST_DEPARTURES):
            self.steps = 0
            for steps in self._back(len(self.kernels) - 1, outputs, departures):
                for order in ("named", "unread", "listed"):
                    wired = self._item(steps, outputs, order)
                    if wired is not None and wired not in yielded:
                        yielded.append(wired)
                        yield wired
            if self.steps == before:  # no choices are left to depart from
                return
            before = self.steps

    # -- from the last kernel to the first

    def _back(self, at: int, live: Sequence[Value], left: int) -> Iterator[list[Step]]:
        """Yield the steps of kernels 0..at after which these values are live, with exactly `left` departures from the likeliest choice."""
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
            for number, (coverage, rest) in enumerate(self._covered(at, kernel, targets, live)):
                if number > left - spent:
                    break
                for bound, before, used in self._sources(at, kernel, coverage, targets, rest, left - spent - number):
                    step = Step(at, coverage, bound)
                    yield from ([*steps, step] for steps in self._back(at - 1, before, left - spent - number - used))

    def _targets(self, kernel: Kernel, live: Sequence[Value], left: int) -> Iterator[tuple[dict[str, Value], int]]:
        """Yield the live values that the stored parameters may be, and the departures that each choice costs."""
        stored = [(name, dtype) for name, dtype in kernel.parameters if name in kernel.stores]

        def choose(position: int, taken: dict[str, Value], spent: int) -> Iterator[tuple[dict[str, Value], int]]:
            if position == len(stored):
                if any(value.number != 0 for value in taken.values()):
                    yield dict(taken), spent
                return
            name, dtype = stored[position]
            if base_of(name) == SCRATCH:
                yield from choose(position + 1, {**taken, name: Value(0, SCRATCH, dtype, 1)}, spent)
                return
            fitting = [v for v in reversed(live) if v.dtype == dtype and v not in taken.values()]
            options = [v for v in fitting if v.base == base_of(name)] or [v for v in fitting if v.output and v.base not in self.written]
            for cost, value in enumerate(options[: left - spent + 1]):
                yield from choose(position + 1, {**taken, name: value}, spent + cost)

        yield from choose(0, {}, 0)

    def _covered(self, at: int, kernel: Kernel, targets: Mapping[str, Value], live: Sequence[Value]) -> Iterator[tuple[Coverage, list[Value]]]:
        """Yield grids that write the live part of the targets, each with the values that are live before the kernel, apart from what it reads."""
        name = next((n for n in targets if n not in kernel.updates and targets[n].number), "") or next(n for n in targets if targets[n].number)
        coverages = self.probe(at, name, targets[name].extent)
        if isinstance(coverages, str) and name in kernel.updates:  # an update in place need not cover its buffer; the item's inputs are read whole
            sizes = sorted({self._extent(b.name) for b in self.inputs}, reverse=True)
            tries = [(read, size) for size in sizes for read in kernel.reads if base_of(read) in self.input_bases]
            coverages = next((other for read, size in tries if not isinstance(other := self.probe(at, read, size), str)), coverages)
        if isinstance(coverages, str):
            self.why = self.why or coverages
            return
        written = {value.number for n, value in targets.items() if n not in kernel.updates}
        for coverage in coverages:
            updated = {value.number: max(value.extent, coverage.extents[n]) for n, value in targets.items() if n in kernel.updates}
            yield coverage, [replace(v, extent=updated.get(v.number, v.extent)) for v in live if v.number not in written]

    def _sources(
        self, at: int, kernel: Kernel, coverage: Coverage, targets: Mapping[str, Value], live: list[Value], left: int
    ) -> Iterator[tuple[dict[str, int], list[Value], int]]:
        """Yield the values that the read-only parameters may be, the values live before the kernel, and the departures that each choice costs."""
        reads, kinds = kernel.reads, dict(kernel.parameters)
        start = {name: value.number for name, value in targets.items()}

        def choose(position: int, bound: dict[str, int], now: list[Value], spent: int) -> Iterator[tuple[dict[str, int], list[Value], int]]:
            if position == len(reads):
                if all(sum(v.base == base for v in now) <= self._writers(at, base) for base in {v.base for v in now} & self.written):
                    yield bound, now, spent
                return
            name = reads[position]
            for cost, (number, after) in enumerate(self._options(at, name, kinds[name], coverage.extents[name], bound, now)):
                if cost > left - spent:
                    break
                yield from choose(position + 1, {**bound, name: number}, after, spent + cost)

        yield from choose(0, start, live, 0)

    def _options(self, at: int, name: str, dtype: str, extent: int, bound: Mapping[str, int], now: list[Value]) -> list[tuple[int, list[Value]]]:
        """Return what a read-only parameter can be, the likeliest first: number of the value, and the values live before the kernel."""
        base = base_of(name)
        taken = set(bound.values())
        candidates = [v for v in reversed(now) if v.base == base and v.dtype == dtype and v.number not in taken]
        shared = [(v.number, [replace(w, extent=max(w.extent, extent)) if w.number == v.number else w for w in now]) for v in candidates]
        same = [one for one, v in zip(shared, candidates, strict=True) if v.extent == extent]
        other = [one for one, v in zip(shared, candidates, strict=True) if v.extent != extent]
        new = []
        if self._writers(at, base) > sum(v.base == base for v in now):
            self.count += 1
            new = [(self.count, [*now, Value(self.count, base, dtype, extent)])]
        inputs = [(-1, now)] if base in self.input_bases or base not in self.written else []
        if not self._writers(at, base):
            return [*inputs, *same, *other]
        return [*same, *new, *other, *inputs]

    def _writers(self, at: int, base: str) -> int:
        """Return how many kernels before this one write a new value of that name."""
        return sum(base_of(name) == base for kernel in self.kernels[:at] for name in kernel.stores - kernel.updates)

    # -- the item's inputs, from the first kernel to the last

    def _extent(self, name: str) -> int:
        """Return how much of an input the reference reads."""
        return self.item.extents.get(name, 0) or next(b.size for b in self.inputs if b.name == name)

    def _order(self, order: str) -> list[str]:
        names = [b.name for b in self.inputs]
        if order == "listed":
            return names
        body = self.item.c.partition("{")[2]

        def first(name: str) -> int:
            places = mentions(body, name)
            return places[0].start() if places else len(body)

        return sorted(names, key=first)

    def _inputs(self, steps: Sequence[Step], order: str) -> dict[tuple[int, str], str] | None:
        """Return (kernel, parameter) -> input. `order`: "named" prefers the parameter's own name; all prefer unread inputs of the extent read."""
        ranking, read = self._order(order), set[str]()
        kinds = {b.name: b.dtype for b in self.inputs}
        chosen: dict[tuple[int, str], str] = {}
        for step in steps:
            kernel = self.kernels[step.kernel]
            here: set[str] = set()
            for name, dtype in kernel.parameters:
                if step.bound[name] != -1:
                    continue
                extent = step.coverage.extents[name]
                fitting = [n for n in ranking if kinds[n] == dtype and n not in here and self._extent(n) >= extent] or [
                    n for n in ranking if kinds[n] == dtype and n not in here
                ]  # the last block of a kernel without a guard reads past the end
                exact = [n for n in fitting if self._extent(n) == extent]
                ranked = [[n for n in fitting if n == name]] if order == "named" else []
                ranked += [[n for n in exact if n not in read], exact, [n for n in fitting if n not in read], fitting]
                best = next((group[0] for group in ranked if group), None)
                if best is None:
                    self.why = self.why or f"nothing that could be the parameter {name}: no input and no earlier kernel's output has that name"
                    return None
                here.add(best)
                chosen[step.kernel, name] = best
            read |= here
        return chosen

    def _item(self, steps: Sequence[Step], outputs: Sequence[Value], order: str) -> Item | None:
        """Return the item with the launches of these steps; None where its inputs cannot be assigned."""
        inputs = self._inputs(steps, order)
        if inputs is None:
            return None
        own = {value.number: value.output for value in outputs}
        touched: dict[str, int] = {}
        kinds: dict[str, str] = {}
        launches: list[Launch] = []
        for step in steps:
            kernel = self.kernels[step.kernel]
            names = []
            for name, dtype in kernel.parameters:
                number = step.bound[name]
                value = inputs[step.kernel, name] if number == -1 else own.setdefault(number, f"value{len(own)}_{base_of(name)}")
                touched[value] = max(touched.get(value, 1), step.coverage.extents[name])
                kinds[value] = dtype
                names.append(value)
            launches.append(Launch(kernel.name, step.coverage.grid, step.coverage.block, tuple(names)))
        sizes = {b.name: b.size for b in self.item.buffers}
        temporaries = {value: (kinds[value], size) for value, size in touched.items() if value not in sizes}
        padded = {value: size for value, size in touched.items() if size > sizes.get(value, size)}
        return replace(self.item, launches=tuple(launches), temporaries=temporaries, padded=padded)

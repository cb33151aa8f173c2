"""What is done with the elements of a generated CUDA kernel: how a vector of them is read, computed and written."""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpwright.domains.graph.cpp.program import FLOAT, MASK, PLACE, Move, Value
from warpwright.domains.graph.cuda.addresses import Addresses
from warpwright.domains.graph.cuda.exponentials import Power
from warpwright.domains.graph.cuda.joins import added
from warpwright.domains.graph.cuda.plan import TYPES
from warpwright.domains.graph.ir import value

KINDS = {FLOAT: "float", MASK: "bool", PLACE: "int"}
"""Type of a value -> that of its variable."""
JOINS = {"add": "atomicAdd", "max": "atomic_max", "min": "atomic_min", "mul": "atomic_mul", "put": "put"}
"""How a result at places that indices choose is joined to what is there -> the function that does."""
BANKS = 32
"""Of shared memory, each four bytes wide."""


def _double(number: float) -> str:
    return {math.inf: "(double)INF", -math.inf: "-(double)INF"}.get(number, "(double)NAN" if number != number else repr(number))


class Elements(Addresses):
    """The part of a kernel's writer that goes over one vector."""

    topped: set[Value]
    """Sums of exponentials whose thread's maximum is known before."""
    powers: dict[Value, Power]
    """Of those the ones whose exponentials stay in registers."""

    def _op(self, v: Value) -> str:
        kind = KINDS[v.type]
        if v.kind == "place":
            [dim] = [dim for dim in v.axes if dim]
            return f"const {kind} v{v.number} = {v.text.format(self._index_of(dim, 'e'))};"
        if v.kind == "part" and v.args[0].text in ("Online", "First"):
            return f"const {kind} v{v.number} = r{v.args[0].number}_{int(v.text != 'top')};"
        if v.kind == "part":
            return f"const float v{v.number} = m{v.args[0].number}.{v.text};"
        shared = v.text == "{0} / {1}" and v.type == FLOAT and self.of_elements(v) and not self.of_elements(v.args[1])
        text = "quotient({0}, {1})" if shared else v.text  # what is made of the divisor alone is worked out once for all elements
        text = text.format(*(f"({a.text})" if a.kind == "const" else f"v{a.number}" for a in v.args))
        return f"const {kind} v{v.number} = {text};"

    def _scalars(self, phase: int) -> list[str]:
        """Return the values on the level of rows that become known before the elements of `phase`."""
        lines = []
        for v in self.program.values:
            if v not in self.used or v.kind == "const" or v.phase != phase or self.of_elements(v):
                continue
            if v.kind == "load":
                test = self._inside(v.operand)
                lines.append(f"const float v{v.number} = {f'{test} ? ' if test else ''}number(*p{v.operand}){' : 0.f' if test else ''};")
            elif v.kind == "reduce" and v.text in ("Online", "First"):
                continue
            elif v.kind == "reduce" and v.text == "Moments":
                lines.append(f"const Moments m{v.number} = moments(r{v.number}_0, r{v.number}_1, {self.plan.length}.0);")
            elif v.kind == "reduce":
                lines.append(f"const float v{v.number} = (float)r{v.number}_0;")
            else:
                lines.append(self._op(v))
        known = [r for r in self.powers if r.args[0].phase + 1 == phase]
        return lines + [f"const float z{r.number} = vexp(g{r.number} - r{r.number}_0);" for r in known]

    def _step(self, phase: int, width: int, kept: Sequence[Value]) -> list[str]:
        """Return the lines of one vector of a phase; `q` points at its first element."""
        dropped = {v for power in self.powers.values() if power.phase == phase for v in power.dropped}
        values = [v for v in self.elements_in(phase, kept) if v not in dropped]
        loads = [v for v in values if v.kind == "load" and not self.is_kept(v, phase, kept)]
        results = [v for v in self.results if v.phase == phase and self.of_elements(v)]
        reductions = [r for r in self.reductions if r.args[0].phase == phase]
        lines = [line for v in loads for line in self._load(v, width)]
        lines += [f"{'bool' if v.type == MASK else 'float'} y{self.tensor(v)}[{width}];" for v in results]
        sums = [r for r in reductions if r.text == "Sum"] if width > 1 else []
        packs = [r for r in reductions if r.text == "Online" and r not in self.topped]
        lines += [f"float t{r.number} = 0.f;" for r in sums] + [f"float t{r.number}[{width}];" for r in packs]
        inner = [self._element(v, phase, kept) for v in values]
        place = "k + e" if width > 1 else "k"
        for r in reductions:
            text = self._name(r.args[0])
            if r in self.topped:
                power = f"vexp({text} - h{r.number})"
                if r in self.powers:
                    inner.append(f"c{self.powers[r].carrier.number}[i][e] = {power};")
                    power = f"c{self.powers[r].carrier.number}[i][e]"
                inner.append(f"r{r.number}_1 += {power};")
                continue
            inner.append(f"t{r.number} += {text};" if r in sums else f"t{r.number}[e] = {text};" if r in packs else added(r, text, place))
        inner += [f"y{self.tensor(v)}[e] = v{v.number};" for v in results]
        lines += ["#pragma unroll", f"for (int e = 0; e < {width}; ++e) {{", *(f"    {line}" for line in inner), "}"]
        lines += [f"r{r.number}_0 += (double)t{r.number};" for r in sums]
        lines += [f"join(r{r.number}_0, r{r.number}_1, t{r.number}, {width});" for r in packs]
        return [*lines, *(line for v in results for line in self._store(v, width))]

    @staticmethod
    def _name(v: Value) -> str:
        return f"({v.text})" if v.kind == "const" else f"v{v.number}"

    def _load(self, v: Value, width: int) -> list[str]:
        t = v.operand
        kind = TYPES[value(self.program.operands[t][0]).dtype]
        if t in self.layout.crossed:
            return self._turned(v, t, width)
        test = self._inside(t)
        if (bag := self._bag_of(t)) is not None:
            joined = self._bags(v, t, bag, width)
            return [f"float x{v.number}[{width}] = {{}};", *([f"if ({test}) {{", *joined, "}"] if test else ["{", *joined, "}"])]
        if not self._moves(t):
            return [f"const float x{v.number} = {f'{test} ? ' if test else ''}number(*q{t}){' : 0.f' if test else ''};"]
        if width > 1 and kind in ("float", "bf16", "f16") and t not in self.plan.loose:
            if any(move.kind == "window" and self.layout.vector.axis in move.axes for move in self.program.moves.get(t, ())):
                # threads of a warp differ: all read, those outside the operand's beginning, and no load waits for another
                return [f"float x{v.number}[{width}];", f"load<{width}>(x{v.number}, {test} ? q{t} : a{t});"]
            if test:  # what lies outside is not picked
                return [f"float x{v.number}[{width}] = {{}};", f"if ({test}) load<{width}>(x{v.number}, q{t});"]
            return [f"float x{v.number}[{width}];", f"load<{width}>(x{v.number}, q{t});"]
        return [f"const float x{v.number}[{width}] = {{{', '.join(self._single(t, i) for i in range(width))}}};"]

    def _bags(self, v: Value, t: int, move: Move, width: int) -> list[str]:
        """Return the lines that join the rows of bags to a vector: all of one bag, or where bags are what runs in vectors each of its own."""
        along = self.layout.vector.axis in move.axes
        bag = self._index_of(move.axes) if self._long(move.axes) else "0"
        start = next((window.start for window in self.program.moves[t] if window.kind == "window" and window.axes == move.axes), 0)
        bag = f"({bag} - {start})" if start else bag
        if not along:
            return self._bag(t, move, f"x{v.number}", bag, width, t not in self.plan.loose)
        lines = []
        for i in range(width):
            lines += ["{", "float one[1];", *self._bag(t, move, "one", f"({bag} + {i})", 1, False), f"x{v.number}[{i}] = one[0];", "}"]
        return lines

    def _long(self, axes: Sequence[int]) -> bool:
        return any(self.program.sizes[axis] != 1 for axis in axes)

    def _bag(self, t: int, move: Move, to: str, bag: str, width: int, aligned: bool) -> list[str]:
        """Return the lines that join the rows of one bag to `width` neighbours."""
        form = move.bag
        assert form is not None
        if form.offsets >= 0:
            at, step = f"a{form.offsets}", self._steps(form.offsets)[0]
            lines = [f"const long long from = bag_begin({at}, {step}ll, {bag}, {form.total}ll, {str(form.index < 0).lower()});"]
            last = str(form.last).lower()
            lines += [f"const long long to = bag_end({at}, {step}ll, {bag}, {form.count}ll, {form.total}ll, {last}, from);"]
            lines += [f"if ({at}[{form.count * step}ll] != {form.total}) __trap();"] if form.whole else []
        else:
            lines = [f"const long long from = 0, to = {form.length};"]
        arguments = []
        for operand in (form.index, form.weights):
            if operand < 0:
                arguments += ["(const float*)0", "0"]
                continue
            steps = self._steps(operand)
            first = f" + (long long){bag} * {steps[0]}" if form.offsets < 0 else ""
            arguments += [f"a{operand}{first}", f"{steps[-1]}ll"]
        options = [f"BAG_{form.how.upper()}", *(str(one).lower() for one in (form.index >= 0, form.weights >= 0, aligned and width > 1)), str(width)]
        numbers = [f"{form.padding}ll", *(_double(one) for one in (form.begin, form.empty))]
        given = [to, f"q{t}", f"{self._steps(t)[0]}ll", f"{move.size}ll", *arguments, "from", "to", *numbers]
        return [*lines, f"joined_bag<{', '.join(options)}>({', '.join(given)});"]

    @property
    def _swapped(self) -> bool:
        """Do the rows of a tile lie without gaps, their fours swapped, so that four are read at once and no bank is asked twice?"""
        return self.plan.written > 1 and self.plan.wide >= BANKS

    def _in_tile(self, p: str, more: str = "") -> str:
        """Return the place in a tile of the element of row c (`more`: or of one that was read with it) at `p`, or of the first of four."""
        wide, width, row = self.plan.wide, self.plan.vector, f"(c + {more})" if more else "c"
        if not self._swapped:
            return f"{row} * {wide + 1} + {p}"
        group = max(4, BANKS // (self.plan.tile // wide // width))  # a warp writes so many neighbours of each of the rows that it writes at once
        return f"{row} * {wide} + (({p}) ^ (c / {width} % {BANKS // group} * {group}))"

    def _turned(self, v: Value, t: int, width: int) -> list[str]:
        """Return the lines that read a vector of a crossed operand out of its tile."""
        places = [self._in_tile(f"p + {i}" if i else "p") for i in range(width)]
        if not self._swapped:
            return [f"const float x{v.number}[{width}] = {{{', '.join(f's{t}[{place}]' for place in places)}}};"]
        if width <= 4:
            return [f"float x{v.number}[{width}];", f"load<{width}>(x{v.number}, s{t} + {places[0]});"]
        lines = [f"float x{v.number}[{width}];"]
        for i in range(0, width, 4):
            four = f"f{v.number}_{i}"
            lines += [f"float {four}[4];", f"load<4>({four}, s{t} + {places[i]});", "#pragma unroll"]
            lines += [f"for (int e = 0; e < 4; ++e) x{v.number}[{i} + e] = {four}[e];"]
        return lines

    def _single(self, t: int, i: int) -> str:
        """Return element `i` of a vector that is not read as one."""
        along, place = self.layout.vector, str(i) if self.layout.vector.strides[t] else "0"
        for move in self.program.moves.get(t, ()):
            if move.kind == "roll" and along.axis in move.axes and t in self.plan.loose:
                place = f"turned({self._loop_index(along.axis)} + {i}, {move.start}, {move.size})"
            if move.kind == "sample" and along.axis in move.axes:
                place = move.text.format(f"({self._loop_index(along.axis)} + {i})")
        place = " + ".join([place, *self._gathers(t, str(i))])
        test = self._inside(t, str(i))
        return f"{f'{test} ? ' if test else ''}number(q{t}[{place}]){' : 0.f' if test else ''}"

    def _element(self, v: Value, phase: int, kept: Sequence[Value]) -> str:
        for r, power in self.powers.items():
            if v is power.value and phase == power.phase:
                return f"const float v{v.number} = c{power.carrier.number}[i][e] * z{r.number};"
        if self.is_kept(v, phase, kept):
            return f"const float v{v.number} = c{v.number}[i][e];"
        line = self._op(v) if v.kind != "load" else f"const float v{v.number} = x{v.number}{'[e]' if self._moves(v.operand) else ''};"
        return f"{line} c{v.number}[i][e] = v{v.number};" if v in kept else line

    def _store(self, v: Value, width: int) -> list[str]:
        t = self.tensor(v)
        if self.program.outputs[t - self.inputs][0] in self.program.sums:
            step = self.layout.vector.strides[t]
            places = [" + ".join([str(i) if step else "0", *self._gathers(t, str(i))]) for i in range(width)]
            join = JOINS[self.program.sums[self.program.outputs[t - self.inputs][0]].how]
            return [f"{join}(&q{t}[{place}], y{t}[{i}]);" for i, place in enumerate(places)]
        past = self.plan.parts > 1 and v.type != MASK  # such a result must not drive what is read again out of L2
        if v.type == MASK:
            return [f"q{t}[{i}] = y{t}[{i}];" for i in range(width)]
        return [f"{'store_past' if past else 'store'}<{width}>(q{t}, y{t});"]

    def _touched(self, phase: int, kept: Sequence[Value]) -> list[int]:
        read = {v.operand for v in self.elements_in(phase, kept) if v.kind == "load" and not self.is_kept(v, phase, kept)}
        return sorted(read | {self.tensor(v) for v in self.results if v.phase == phase and self.of_elements(v)})

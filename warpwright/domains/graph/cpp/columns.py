"""The text of a kernel whose vectors run across columns: reduced axes one after the other, a tile of lanes at a time."""

from __future__ import annotations

from warpwright.domains.graph.cpp.program import MASK, Unsupported, Value
from warpwright.domains.graph.cpp.writer import Writer

_EMPTY = {"Sum": "0.f", "Max": "-INF", "Min": "INF"}
_STEP = {"Max": "vmax({0}, {1})", "Min": "vmin({0}, {1})"}
_LEVEL = 64
"""Elements that are summed before the sum moves to a second level: the error grows with the square root of 64 plus that of the levels."""
_JOINED = f"c == 0 || c == 3 || c == 15 || c % {_LEVEL} == {_LEVEL - 1}"
"""When the moments of some elements join those of the elements before, whose mean is then what differences are taken from. Each part is at most three
times what came before it, so that the squares of its differences are at most five times what the sum of squares about the mean grows by: nothing
cancels, wherever the mean lies. (A running mean in float, as it was, stood still once an element moved it by less than its last bit: with a mean of
10^6 and a deviation of 1 after 32 elements.)"""


def write(w: Writer) -> str:
    """Return the function's text."""
    if any(v.type == MASK and not w.of_elements(v) for v in w.used):
        raise Unsupported("a mask on the level of rows, across columns")
    lanes = w.layout.lanes
    assert lanes is not None
    kept = max(len(w.buffered), 1)
    tile = max(64, min(1024, lanes.size, (32 << 10) // (w.layout.length * kept) // 64 * 64))
    tiles = -(-lanes.size // tile)
    lines = w.preamble()
    lines.append("#pragma omp parallel for schedule(static) num_threads(threads)")
    lines.append(f"    for (long item = 0; item < {w.layout.rows * tiles}L; ++item) {{")
    body = [f"const long row = item / {tiles}, lane = item % {tiles} * {tile};"]
    body += [f"const long L = lane + {tile} < {lanes.size} ? {tile} : {lanes.size} - lane;", "(void)row;"]
    body += w.row_indices(w.layout.outer) + _pointers(w)
    body += [f"alignas(64) float b{b}[{w.layout.length * tile} + W];  // v{v.number}" for b, v in enumerate(w.buffered)]
    body += _level(w, 0, tile)
    for phase in range(w.last + 1):
        body += _phase(w, phase, tile)
        body += _level(w, phase + 1, tile)
    rows = [v for v in w.results if not w.of_elements(v)]
    for v in rows:
        body.append(f"along(0, L, [&](long j, int, auto n) {{ store(p{w.tensor(v)} + j, load(w{v.number} + j, n), n); }}, [] {{}});")
    lines += [f"        {line}" for line in body]
    return "\n".join([*lines, "    }", *(["    fence();"] if w.streams() else []), "}"]) + "\n"


def _pointers(w: Writer) -> list[str]:
    lanes = w.layout.lanes
    assert lanes is not None
    lines = []
    for t in range(w.inputs + len(w.results)):
        name = f"a{t}" if t < w.inputs else f"o{t - w.inputs}"
        terms = [f"i{d} * {loop.strides[t]}L" for d, loop in enumerate(w.layout.outer) if loop.strides[t]]
        lines.append(f"const auto p{t} = {' + '.join([name, *terms, *(['lane'] if lanes.strides[t] else [])])};")
    return lines


def _phase(w: Writer, phase: int, tile: int) -> list[str]:
    """Return the loops of one phase."""
    values = w.elements_in(phase, w.buffered)
    reductions = [r for r in w.reductions if r.args[0].phase == phase]
    if not values:
        return []
    lines = []
    for r in reductions:
        for name in _arrays(r):
            lines.append(f"alignas(64) float {name}[{tile} + W];")
            lines.append(f"for (long j = 0; j < {tile}; ++j) {name}[j] = {_EMPTY.get(r.text, '0.f')};")
    moments = [r for r in reductions if r.text == "Moments"]
    for r in moments:
        lines.append(f"double mean{r.number}[{tile}], m2{r.number}[{tile}];")
    loops = w.layout.inner
    lines += ["long c = 0;"] if phase == 0 else ["c = 0;"]
    lines += ["long joined = 0;"] if moments else []
    for d, loop in enumerate(loops):
        count = ", ++c" if d == len(loops) - 1 else ""
        lines.append(f"for (long k{d} = 0; k{d} < {loop.size}; ++k{d}{count}) {{")
    lines += w.offsets("k", loops, w.touched(values, phase), "q", "p")
    lines += [f"const long f = c * {tile};"] if w.buffered else []
    step = [_row_levels(w, v) for v in _row_values_read(w, values)]
    step += [_value(w, v, phase) for v in values]
    step += [_accumulate(w, r) for r in reductions]
    step += [w.write(v, f"q{w.tensor(v)} + j") for v in w.results if v.phase == phase and w.of_elements(v)]
    lines += ["along(0, L, [&](long j, int, auto n) {", *(f"    {line}" for line in step), "}, [] {});"]
    sums = [r for r in reductions if r.text == "Sum"]
    if sums:
        moves = " ".join(f"r{r.number}[j] += l{r.number}[j]; l{r.number}[j] = 0.f;" for r in sums)
        lines.append(f"if (c % {_LEVEL} == {_LEVEL - 1}) for (long j = 0; j < {tile}; ++j) {{ {moves} }}")
    if moments:
        lines.append(f"if ({_JOINED}) {{ {_joined(moments, 'c + 1', tile)} joined = c + 1; }}")
    lines += ["}"] * len(loops)
    if moments:
        lines.append(f"if (c > joined) {{ {_joined(moments, 'c', tile)} }}")
    for r in moments:
        pivot, _, squares = _arrays(r)
        lines.append(f"for (long j = 0; j < {tile}; ++j) {{ {pivot}[j] = (float)mean{r.number}[j]; {squares}[j] = (float)m2{r.number}[j]; }}")
    if sums:
        lines.append(f"for (long j = 0; j < {tile}; ++j) {{ {' '.join(f'r{r.number}[j] += l{r.number}[j];' for r in sums)} }}")
    return lines


def _joined(moments: list[Value], seen: str, tile: int) -> str:
    """Return the calls that add what the elements since `joined` gave to the moments of those before."""
    return " ".join(f"join({tile}, joined, {seen} - joined, {', '.join(_arrays(r))}, mean{r.number}, m2{r.number});" for r in moments)


def _arrays(r: Value) -> list[str]:
    """Return the arrays of floats that a reduction keeps for its lanes. Of moments those end as the mean (the first) and as m2 (the last)."""
    moments = [f"pivot{r.number}", f"apart{r.number}", f"squares{r.number}"]
    return {"Sum": [f"r{r.number}", f"l{r.number}"], "Moments": moments}.get(r.text, [f"r{r.number}"])


def _accumulate(w: Writer, r: Value) -> str:
    v = w.vector(r.args[0])
    if r.text == "Sum":
        return f"store(l{r.number} + j, load(l{r.number} + j, n) + {v}, n);"
    if r.text == "Moments":
        pivot, apart, squares = _arrays(r)
        return (
            f"if (c == 0) store({pivot} + j, {v}, n); const vf d{r.number} = {v} - load({pivot} + j, n); "
            f"store({apart} + j, load({apart} + j, n) + d{r.number}, n); store({squares} + j, load({squares} + j, n) + d{r.number} * d{r.number}, n);"
        )
    return f"store(r{r.number} + j, {_STEP[r.text].format(f'load(r{r.number} + j, n)', v)}, n);"


def _value(w: Writer, v: Value, phase: int) -> str:
    lanes = w.layout.lanes
    assert lanes is not None
    if w.is_kept(v, phase, w.buffered):
        return f"const vf v{v.number} = load(b{w.buffered.index(v)} + f + j, n);"
    if v.kind == "load":
        return f"const vf v{v.number} = " + (f"load(q{v.operand} + j, n);" if lanes.strides[v.operand] else f"splat((float)*q{v.operand});")
    line = w.op(v)
    if v in w.buffered and any(v in w.elements_alone(p) for p in range(phase + 1, w.last + 1)):
        line += f" store(b{w.buffered.index(v)} + f + j, v{v.number}, n);"
    return line


def _row_values_read(w: Writer, values: list[Value]) -> list[Value]:
    """Return the values on the level of rows that a step reads, each once."""
    return sorted({a for v in values for a in v.args if a.kind != "const" and not w.of_elements(a)}, key=lambda a: a.number)


def _row_levels(w: Writer, v: Value) -> str:
    return f"const vf v{v.number} = load(w{v.number} + j, n);"


def _level(w: Writer, phase: int, tile: int) -> list[str]:
    """Return the lines that compute, for all lanes, what becomes known on the level of rows before the loop of `phase`."""
    lanes = w.layout.lanes
    assert lanes is not None
    lines = []
    for v in w.program.values:
        if v not in w.used or v.kind == "const" or v.phase != phase or w.of_elements(v) or (v.kind == "reduce" and v.text == "Moments"):
            continue
        if v.kind == "load":
            text = f"const vf v{v.number} = " + (f"load(p{v.operand} + j, n);" if lanes.strides[v.operand] else f"splat((float)*p{v.operand});")
        elif v.kind == "reduce":
            text = f"const vf v{v.number} = load(r{v.number} + j, n);"
        elif v.kind == "part":
            pivot, _, squares = _arrays(v.args[0])
            text = f"const vf v{v.number} = load({pivot if v.text == 'mean' else squares} + j, n);"
        else:
            levels = [_row_levels(w, a) for a in dict.fromkeys(v.args) if a.kind != "const"]
            text = " ".join([*levels, w.op(v)])
        lines.append(f"alignas(64) float w{v.number}[{tile} + W];")
        lines.append(f"along(0, L, [&](long j, int, auto n) {{ {text} store(w{v.number} + j, v{v.number}, n); }}, [] {{}});")
    return lines

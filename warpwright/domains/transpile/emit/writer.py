"""Write a planned kernel as C++: the loops over threads, and the control around them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import regions, vectorise
from warpwright.domains.transpile.analysis.bounds import Bounds, bounds, whole_block
from warpwright.domains.transpile.analysis.regions import Branch, Gather, Leave, Loop, Masked, MaskedLoop, Node, Plan, Region, Single, Sync, WarpGroup
from warpwright.domains.transpile.choices import BY_RULE, Choices
from warpwright.domains.transpile.emit import control, segment_loops, warps
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, Raw, Stmt, Var
from warpwright.domains.transpile.passes import (  # fmt: skip
    block_fusion,
    if_conversion,
    index_set_splitting,
    reductions,
    registers,
    rows,
    segments,
    warp_invariant,
)
from warpwright.domains.transpile.printing import INDENT, Printer, declarator

Shape = tuple[int, int, int]

_JOINS = {
    "ballot": ("0", "{r} |= (unsigned)(({o}) != 0) << lane_index"), "or": ("0", "{r} |= ({o}) != 0"), "and": ("1", "{r} &= ({o}) != 0"),
    "count": ("0", "{r} += ({o}) != 0"), "add": ("0", "{r} += {o}"), "bits_and": ("~0", "{r} &= {o}"), "bits_or": ("0", "{r} |= {o}"), "bits_xor": ("0", "{r} ^= {o}"),  # noqa: E501
    "min": ("", "if (first_{r} || {o} < {r}) {r} = {o}; first_{r} = false"), "max": ("", "if (first_{r} || {o} > {r}) {r} = {o}; first_{r} = false"),
}  # fmt: skip
"""Operation -> its neutral element and one step, of `r` the result and `o` what a thread offers."""


@dataclass
class Options:
    """How to write a kernel."""

    blocks: tuple[Shape, ...] = ()
    """Block shapes with a version of their own, in which the shape is a constant."""
    vectors: bool = True
    """Mark loops that are safe to vectorise."""
    impure: frozenset[str] = frozenset()
    """Device functions that read the thread's index: it is set before they are called."""
    simple: frozenset[str] = frozenset()
    """Device functions without loops and jumps, which the compiler inlines."""
    one_row: str | None = None
    """Size of the blocks that may run as one row of threads (`flatten_blocks.block_size`)."""
    beginning: block_fusion.Beginning | None = None
    """What neighbouring blocks go through together (`block_fusion.py`)."""
    choices: Choices = BY_RULE
    own: frozenset[str] = frozenset()
    """Device functions of the program: one that is called `round` is not the library's."""


class Writer:
    """Writes one kernel."""

    def __init__(self, plan: Plan, options: Options, calls: Mapping[str, str]) -> None:
        self.plan = plan
        self.options = options
        self.printer = Printer(plan.variables, plan.arrays | plan.lane_arrays, calls, times=options.choices.unroll)
        self.lines: list[str] = []
        self.depth = 1
        self.masks: list[Expr] = []
        self.ending: set[int] = set()
        self.in_warps = False
        self.lanes: warps.Lanes | None = None
        self.same: set[int] = set()
        """Keys of arrays that have the same value in all threads here, where 32 divides the block's width."""
        self.vectorised = 0
        self.scalar: list[str] = []
        self.labels = iter(range(1, 1_000_000))
        self.row = "row_x" if options.one_row else rows.WIDTH
        self.joined = ""

    def line(self, text: str) -> None:
        self.lines.append(INDENT * self.depth + text if text else "")

    def open(self, text: str) -> None:
        self.line(f"{text} {{".strip())
        self.depth += 1

    def otherwise(self, condition: str = "") -> None:
        self.depth -= 1
        self.line(f"}} else if ({condition}) {{" if condition else "} else {")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.line("}")

    # --- nodes --------------------------------------------------------------------------------------------------------------------

    def block(self) -> list[str]:
        """Return the lines of the block function's body, behind the shape's constants."""
        beginning = self.options.beginning
        for stmt in self.plan.hoisted:
            if beginning is None or not isinstance(stmt, Declare) or stmt.var.key not in beginning.shared:
                self.hoisted(stmt)
        for var in self.in_order(self.plan.arrays - (beginning.arrays if beginning is not None else set())):
            self.line(f"alignas(64) {declarator(var, f'{var.name}_t', '[threads_max]')};")
        self.ending = {id(node) for node in regions.endings(list(self.plan.nodes))}
        if beginning is None:
            self.nodes(self.plan.nodes)
        else:
            block_fusion.write(self, beginning)
        return self.lines

    def in_order(self, keys: Iterable[int]) -> list[Var]:
        """Return the variables in the order of their declaration."""
        return [self.plan.variables[key] for key in sorted(keys, key=lambda k: self.plan.order.get(k, 0))]

    def hoisted(self, stmt: Stmt) -> None:
        if isinstance(stmt, Raw):
            self.line(self.printer.expr(stmt.expr))
            return
        assert isinstance(stmt, Declare)
        var = stmt.var
        if var.space == "dynamic":
            self.line(f"{var.type}* const {var.name} = ({var.type}*)ww::dynamic_shared();  // line {stmt.line}")
        elif var.space == "shared":
            self.line(f"alignas(64) {declarator(var)};  // shared, line {stmt.line}")
        else:
            word = "constexpr" if stmt.init is not None and not var.dims and var.space != "constant" else ("static const" if var.const else "static")
            init = f"{'' if stmt.direct else ' = '}{self.printer.expr(stmt.init)}" if stmt.init is not None else ""
            self.line(f"{'const' if word == 'constexpr' else word} {declarator(var)}{init};")

    def nodes(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.node(node)

    def node(self, node: Node) -> None:
        if isinstance(node, Region) and warp_invariant.once(self, node):
            return
        kept = self.same - warp_invariant.changed(node, self)
        self.same = set(kept)
        self.one_node(node)
        self.same = kept | (self.same if isinstance(node, WarpGroup) else set())

    def one_node(self, node: Node) -> None:
        if isinstance(node, Region):
            self.region(node)
        elif isinstance(node, Single):
            self.lines += self.printer.statement(node.stmt, self.depth)
        elif isinstance(node, Sync):
            self.line(f"// {'__syncthreads()' if node.scope == 'block' else 'the warp meets'}, line {node.line}")
        elif isinstance(node, Gather):
            self.gather(node)
        elif isinstance(node, Branch):
            self.open(f"if {'constexpr ' if node.stmt.constexpr else ''}({self.printer.expr(node.cond)})")
            self.nodes(node.then)
            if node.other:
                self.otherwise()
                self.nodes(node.other)
            self.close()
        elif isinstance(node, Loop):
            control.steps(self, node)
            self.nodes(node.body)
            self.close()
        elif isinstance(node, Masked):
            control.masked(self, node)
        elif isinstance(node, MaskedLoop):
            control.masked_loop(self, node)
        elif isinstance(node, WarpGroup):
            warps.group(self, node)
        elif isinstance(node, Leave):
            self.line(f"{node.word};")

    def warps(self, node: WarpGroup) -> None:
        """Write the loop over warps, whose lanes run one after another."""
        self.open("for (int warp_index = 0; warp_index < warps; ++warp_index)")
        self.line("const int lanes = threads - warp_index * 32 < 32 ? threads - warp_index * 32 : 32;")
        self.lane_places(node)
        self.in_warps = True
        self.nodes(node.body)
        self.in_warps = False
        self.close()

    def lane_places(self, node: WarpGroup) -> None:
        """Declare the arrays with a place for each lane of the warp."""
        inside = {k for n, _ in regions.walk(node.body) for k in regions.used(regions.node_stmts(n))}
        for var in self.in_order(self.plan.lane_arrays & inside):
            self.line(f"alignas(64) {declarator(var, f'{var.name}_l', '[32]')};")

    def gather(self, node: Gather) -> None:
        stmt = node.stmt
        neutral, step = _JOINS[stmt.operation]
        start = f"({stmt.var.type}){neutral}" if neutral else f"{stmt.var.type}()"
        self.line(f"{stmt.var.type} {stmt.var.name} = {start};  // line {stmt.line}")
        if not neutral:
            self.line(f"bool first_{stmt.var.name} = true;")
        offered = f"{stmt.offered.name}{'_l[lane_index]' if stmt.offered.key in self.plan.lane_arrays else ''}"
        self.loop_head([Evaluate(ir.name_of(stmt.offered)), *[Evaluate(m) for m in self.masks]], False)
        self.line(step.format(r=stmt.var.name, o=offered) + ";")
        self.loop_tail()

    # --- regions ------------------------------------------------------------------------------------------------------------------

    def region(self, region: Region) -> None:
        """Write the loop over threads; where `c ? a : b` guards memory and c holds for a whole block, without the guard: the block's interior."""
        inside = self.interior(region.stmts) if self.options.vectors and not self.in_warps and not self.masks else None
        if inside is None:
            self.loops(region)
            return
        condition, stmts = inside
        self.open(f"if ({condition})")
        self.loops(Region(stmts))
        self.otherwise()
        self.loops(region)
        self.close()

    def interior(self, stmts: Sequence[Stmt]) -> tuple[str, list[Stmt]] | None:
        """Return when all guards in expressions hold for a whole block, and the statements without them."""
        texts: dict[str, None] = {}

        def unguarded(expr: Expr) -> Expr | None:
            if expr.kind != "conditional" or len(expr.children) != 3 or not any(n.kind == "index" for n in expr.children[1].walk()):
                return None
            text = whole_block(expr.children[0], self.plan, self.printer, self.row)
            if text is None:
                return None
            texts[text] = None
            return Expr("paren", ("(", expr.children[1], ")"), expr.line, "", None, expr.type)

        if any(isinstance(s, ir.For | ir.If) for s in ir.walk(tuple(stmts))) or any(regions.changed(s) & self.plan.recomputed for s in stmts):
            return None
        made = [ir.map_expressions(s, unguarded) for s in stmts]
        return (" && ".join(texts), made) if texts else None

    def loops(self, region: Region) -> None:
        kept = self.plan.arrays | self.plan.lane_arrays
        stmts = [s for s in region.stmts if not (isinstance(s, Declare) and s.init is None and s.var.key in kept)]
        if not stmts:
            return
        if self.lanes is not None:
            warps.region(self, stmts)
            return
        parts = index_set_splitting.apart(stmts, self.plan, self.printer) if self.options.vectors and not self.in_warps and not self.masks else None
        if parts is not None:
            for part in parts:
                self.loops(Region(part))
            return
        alone = reductions.vectorised(stmts, self.plan) if self.options.vectors and not self.in_warps and not self.masks else None
        if alone is not None:
            self.vectorised += 1
            self.loop_head(alone, False)
            self.lines += self.statements(alone)
            self.store(alone)
            self.loop_tail()
            return
        first = next((s.line for s in stmts if s.line), 0)
        if first:
            self.line(f"// line {first}")
            self.printer.last_line = first
        guards = list(self.masks)
        inner = stmts
        if self.options.vectors and not self.in_warps:
            inner, own = _peel(if_conversion.guards_apart(stmts, self.plan), self.plan)
            guards += own
        limits = bounds(guards, self.plan, self.printer) if self.options.vectors and not self.in_warps else Bounds(rest=guards)
        declared = {s.var.key for s in inner if isinstance(s, Declare)}
        limits.rest = [index_set_splitting.opened(guard, declared, self.plan) for guard in limits.rest]
        if any(e.var in declared for guard in limits.rest for e in guard.walk()):  # a guard that needs the region's own values stays inside
            inner, limits = stmts, bounds(self.masks, self.plan, self.printer)
        if self.options.vectors and not self.in_warps:
            inner = if_conversion.without_branches(inner, self.plan)
        cut = segments.split(inner, limits.rest, self.plan, self.printer, self.row) if self.options.vectors and not self.in_warps else None
        simd = self.options.vectors and not self.in_warps and self.vectorisable(cut.stmts if cut is not None else stmts)
        loop = registers.suits(inner, self.plan) if simd and not guards and self.options.blocks else None
        if loop is not None:
            self.in_registers(loop, stmts)
        masks: list[Stmt] = [Evaluate(m) for m in limits.rest]
        if simd and loop is None and self.row == rows.WIDTH:
            self.joined = rows.width([*stmts, *(Evaluate(m) for m in self.masks)], self.plan, self.options.impure) or ""
        cut = cut if loop is None and simd else None
        if cut is not None:
            segment_loops.write(self, cut, limits)
        if cut is None or cut.only_if:
            self.loop_head([*inner, *masks], simd, limits)
            self.lines += self.statements(inner, simd)
            self.store(inner)
            self.loop_tail(limits)
        self.joined = ""
        if loop is not None or (cut is not None and cut.only_if):
            self.close()

    def in_registers(self, loop: ir.For, stmts: Sequence[Stmt]) -> None:
        """Write the region with its sums in registers, for blocks whose shape is known to fit; the general form follows as `else`."""
        before = self.lines
        self.lines = []
        self.values(stmts, regions.used(stmts) - self.plan.arrays)
        values, self.lines = [line.strip() for line in self.lines], before
        values += [
            f"const {self.printer.declaration(s)};".replace("const const", "const") for s in stmts if isinstance(s, Declare) and s.init is not None
        ]
        self.open("if constexpr (BX && ww::fits_registers(BX))")
        for text in registers.lines(loop, self.plan, self.printer, values, self.options.choices):
            self.lines.append(text if text.strip().startswith("#") else INDENT * self.depth + text)
        self.otherwise()

    def statements(self, stmts: Sequence[Stmt], simd: bool = False) -> list[str]:
        label = next(self.labels)
        self.printer.leave, self.printer.returned, self.printer.unroll = f"goto thread_done_{label}", False, simd
        lines: list[str] = []
        for stmt in stmts:
            if isinstance(stmt, Declare) and stmt.var.key in (self.plan.arrays | self.plan.lane_arrays) and stmt.var.dims:
                lines += self.array_init(stmt)
            elif (
                isinstance(stmt, Declare) and stmt.var.key in (self.plan.arrays | self.plan.lane_arrays) and stmt.var.key in self.plan.facts.addressed
            ):
                lines += [f"{INDENT * self.depth}{stmt.var.name} = {self.printer.expr(stmt.init)};"] if stmt.init is not None else []
            else:
                lines += self.printer.statement(stmt, self.depth)
        if self.printer.returned:
            pad = INDENT * self.depth
            return [pad + "{", *lines, pad + "}", f"{pad}thread_done_{label}:;"]
        return lines

    def array_init(self, stmt: Declare) -> list[str]:
        if stmt.init is None:
            return []
        pad, var = INDENT * self.depth, stmt.var
        init = f"{declarator(var, f'{var.name}_init')}{'' if stmt.direct else ' = '}{self.printer.expr(stmt.init)}"
        return [f"{pad}{init};", f"{pad}std::memcpy({var.name}, {var.name}_init, sizeof {var.name});"]

    def loop_head(self, stmts: Sequence[Stmt], simd: bool | str, limits: Bounds | None = None) -> None:
        """Open the loop over threads (or lanes) and give the statements' variables their values."""
        limits = limits if limits is not None else Bounds(rest=list(self.masks))
        keys = regions.used(stmts)
        if self.in_warps:
            self.simd(simd)
            self.open("for (int lane_index = 0; lane_index < lanes; ++lane_index)")
            self.line("[[maybe_unused]] const int thread = warp_index * 32 + lane_index, thread_x = one_row ? thread : thread % dim_x,")
            self.line("    thread_y = one_row ? 0 : thread / dim_x % dim_y, thread_z = one_row ? 0 : thread / (dim_x * dim_y);")
        else:
            self.rows(limits)
            self.thread_head(stmts, simd, limits.rest, *self.row_ends(limits))
            return
        self.values(stmts, keys)
        self.guard(limits.rest)

    def thread_head(self, stmts: Sequence[Stmt], simd: bool | str, guards: Sequence[Expr], low: str, high: str, inner: bool = False) -> None:
        """Open the loop over the threads of a row, or of a stretch of it; `inner`: what asks for vectors stands outside."""
        self.simd(simd and not inner)
        keys = regions.used(stmts)
        self.printer.vector = bool(simd)
        self.open(f"for (int thread_x = {low}; thread_x < {high}; ++thread_x)")
        if keys & self.plan.arrays or self.closure(keys) & self.plan.arrays:
            self.line("const int thread = (thread_z * dim_y + thread_y) * dim_x + thread_x;")
        self.values(stmts, keys)
        self.guard(guards)

    def simd(self, wanted: bool | str) -> None:
        """Ask for the next loop to be vectorised, if that is wanted; a text says how its results are joined."""
        if wanted:
            lanes = f" simdlen({self.options.choices.lanes})" if self.options.choices.lanes > 0 else ""
            self.lines.append(f"#pragma omp simd{lanes}{' ' + wanted if isinstance(wanted, str) else ''}")

    def guard(self, guards: Sequence[Expr]) -> None:
        if guards:
            self.open(f"if ({' && '.join(f'({self.printer.expr(m)})' for m in guards)})")

    def row_ends(self, limits: Bounds) -> tuple[str, str]:
        """Return the first thread of a row, and the one behind its last."""
        return "first_x" if limits.low else "0", "last_x" if limits.high else self.row_length()

    def row_length(self) -> str:
        if not self.joined:
            return self.row
        return "dim_x * dim_y" if self.joined == rows.WIDTH else f"(dim_x == {self.joined} ? dim_x * dim_y : dim_x)"

    def rows(self, limits: Bounds) -> None:
        """Open the loops over thread_z and thread_y, with what a row of threads shares."""
        self.line("for (int thread_z = 0; thread_z < dim_z; ++thread_z)")
        count = "dim_y" if not self.joined else "1" if self.joined == rows.WIDTH else f"(dim_x == {self.joined} ? 1 : dim_y)"
        if not (limits.low or limits.high or limits.rows):
            self.line(f"for (int thread_y = 0; thread_y < {count}; ++thread_y)")
            return
        self.open(f"for (int thread_y = 0; thread_y < {count}; ++thread_y)")
        if limits.rows:
            self.line(f"if (!({' && '.join(f'({row})' for row in limits.rows)})) continue;")
        if limits.low:
            self.line(f"const int first_x = (int)ww::largest<long>({{0, {', '.join(limits.low)}}});")
        if limits.high:
            self.line(f"const int last_x = (int)ww::smallest<long>({{{self.row_length()}, {', '.join(limits.high)}}});")

    def loop_tail(self, limits: Bounds | None = None) -> None:
        self.printer.vector = False
        limits = limits if limits is not None else Bounds(rest=list(self.masks))
        if limits.rest:
            self.close()
        self.close()
        self.rows_end(limits)

    def rows_end(self, limits: Bounds) -> None:
        if limits.low or limits.high or limits.rows:
            self.close()

    def closure(self, keys: set[int]) -> set[int]:
        """Return the keys with those that their recomputed values need."""
        found, todo = set(keys), list(keys)
        while todo:
            key = todo.pop()
            declaration = self.plan.facts.declared.get(key)
            if key in self.plan.recomputed and declaration is not None and declaration.init is not None:
                new = regions.used([Evaluate(declaration.init)]) - found
                found |= new
                todo += new
        return found

    def values(self, stmts: Sequence[Stmt], keys: set[int]) -> None:
        """Load what lives in arrays and recompute what is cheap, in the order of declaration."""
        declared_here = {s.var.key for s in ir.walk(tuple(stmts)) if isinstance(s, Declare)}
        needed = self.closure(keys - (declared_here - self.plan.arrays - self.plan.lane_arrays))
        needed |= self.closure({k for k in keys if k in self.plan.arrays or k in self.plan.lane_arrays})
        ready = warps.values(self, needed | keys)
        for key in sorted(needed - ready, key=lambda k: self.plan.order.get(k, 0)):
            var = self.plan.variables.get(key)
            if var is None:
                continue
            if key in self.plan.arrays or key in self.plan.lane_arrays:
                place = f"{var.name}_t[thread]" if key in self.plan.arrays else f"{var.name}_l[lane_index]"
                self.load(var, place, stmts, key in declared_here)
            elif key in self.plan.recomputed and key not in declared_here:
                self.line(f"{self.printer.declaration(self.plan.facts.declared[key], const=True)};")
        if self.options.impure & {e.name for e in ir.expressions(tuple(stmts)) if e.kind == "call"}:
            self.line("ww::at_thread(launch, index, thread_x, thread_y, thread_z);")

    def load(self, var: Var, place: str, stmts: Sequence[Stmt], declared: bool) -> None:
        if var.space == "lanes" and not declared:
            return  # other lanes read it; this lane's own value is not needed
        if var.dims or var.key in self.plan.facts.addressed:
            self.line(f"auto& {var.name} = {place};")
        elif not declared:
            self.line(f"{declarator(var)} = {place};")

    def store(self, stmts: Sequence[Stmt]) -> None:
        """Put back what the region changed of the variables that live in arrays."""
        changed = {k for s in stmts for k in regions.changed(s)} | self.by_reference(stmts)
        for key in sorted(changed, key=lambda k: self.plan.order.get(k, 0)):
            var = self.plan.variables.get(key)
            if var is None or var.dims or key in self.plan.facts.addressed:
                continue
            if key in self.plan.arrays:
                self.line(f"{var.name}_t[thread] = {var.name};")
            elif key in self.plan.lane_arrays:
                self.line(f"{var.name}_l[lane_index] = {var.name};")

    def by_reference(self, stmts: Sequence[Stmt]) -> set[int]:
        """Return keys that a call in the statements may change."""
        return {key for s in ir.walk(tuple(stmts)) for key in self.assigned_by.get(id(s), ())}

    @functools.cached_property
    def assigned_by(self) -> Mapping[int, Sequence[int]]:
        """Identity of a statement -> the keys that the analysis saw it assign."""
        found: dict[int, list[int]] = {}
        for key, changes in self.plan.facts.assigned.items():
            for stmt in changes:
                found.setdefault(id(stmt), []).append(key)
        return found

    def vectorisable(self, stmts: Sequence[Stmt]) -> bool:
        """Say whether the threads of a region may run side by side, and the compiler has a chance to do so."""
        reason = vectorise.unvectorisable(stmts, self.plan, self.options.simple, self.options.own)
        if reason:
            self.scalar.append(reason)
            return False
        self.vectorised += 1
        return True


def _peel(stmts: list[Stmt], plan: Plan) -> tuple[list[Stmt], list[Expr]]:
    """Return `declarations; if (c) { body }` as the declarations with the body, and its guards; other statements, and exchanges, as they are."""
    *head, last = stmts
    kept = plan.arrays | plan.lane_arrays
    if (
        not isinstance(last, ir.If)
        or last.other
        or last.constexpr
        or not all(isinstance(s, Declare) and s.var.key not in kept and s.init is not None and ir.is_quiet(s.init) for s in head)
        or if_conversion.is_exchange(last, plan)
    ):
        return stmts, []
    inner, guards = _peel(list(last.then), plan) if last.then else ([], [])
    return [*head, *inner], [last.cond, *guards]

"""The lines of one kernel as they are written, and the loops over its threads and lanes."""

from __future__ import annotations

from collections.abc import Sequence, Set

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis import regions
from warpwright.domains.transpile.analysis.bounds import Bounds
from warpwright.domains.transpile.analysis.lanes import Lanes
from warpwright.domains.transpile.analysis.settings import Settings
from warpwright.domains.transpile.ir import Declare, Expr, Stmt, Var
from warpwright.domains.transpile.passes.loops import rows
from warpwright.domains.transpile.passes.techniques import Lowered
from warpwright.domains.transpile.printing import INDENT, Printer, declarator

IN_ROWS, IN_COLUMNS = "(thread_z * dim_y + thread_y) * dim_x + thread_x", "(thread_z * dim_x + thread_x) * dim_y + thread_y"
"""A thread's number in its block, and where the axes are exchanged."""


def _is_same_in_rows(text: str) -> bool:
    """Say whether what is written is the same for all rows of a block."""
    return "thread_y" not in text and "thread_z" not in text


class Writer:
    """Writes one kernel."""

    def __init__(self, lowered: Lowered, settings: Settings) -> None:
        self.lowered = lowered
        self.plan = lowered.plan
        self.settings = settings
        self.names = {v.name for v in self.plan.variables.values()}
        self.printer = Printer(self.plan.variables, settings.calls, times=settings.choices.unroll)
        self.lines: list[str] = []
        self.depth = 1
        self.masks: list[Expr] = []
        """Conditions under which a thread gets to what is being written."""
        self.in_warps = False
        self.lanes: Lanes | None = None
        """What the warp shares, where its lanes run side by side."""
        self.lane_arrays = set(self.plan.lane_arrays)
        self.vectorised = 0
        self.scalar: list[str] = []
        """Why loops were left scalar."""
        self.labels = iter(range(1, 1_000_000))
        self.joined = ""
        """The width of the rows that run as one in the loop at hand."""
        self.whole_values = False
        """Threads have values of several numbers in the loop at hand."""
        self.number = IN_ROWS
        """A thread's number in its block."""
        self.height = "BY"
        """How many rows of threads the compiler knows of, as the output writes it; 0 where it does not."""
        self.ready: frozenset[int] = frozenset()
        """Keys of values that stand in front of the loop at hand."""
        self.joined_tiles: frozenset[int] = frozenset()
        """Keys of the threads' tiles whose rows lie beside those of neighbours in the loop at hand, for blocks for which that fits."""
        self.kept: frozenset[int] = frozenset()
        """Keys of the thread's arrays that are copied in the loop at hand."""

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

    # --- loops over threads -------------------------------------------------------------------------------------------------------

    def statements(self, stmts: Sequence[Stmt], simd: bool = False) -> list[str]:
        label = next(self.labels)
        self.printer.leave, self.printer.returned, self.printer.unroll = f"goto thread_done_{label}", False, simd
        lines: list[str] = []
        for stmt in stmts:
            if isinstance(stmt, Declare) and stmt.var.key in (self.plan.arrays | self.lane_arrays) and stmt.var.dims:
                lines += self.array_init(stmt)
            elif (
                isinstance(stmt, Declare) and stmt.var.key in (self.plan.arrays | self.lane_arrays) and stmt.var.key in self.plan.facts.addressed
            ):
                lines += [f"{INDENT * self.depth}{self.made_again(stmt)}"] if stmt.init is not None or self.plan.is_object(stmt.var) else []
            else:
                lines += self.printer.statement(stmt, self.depth)
        if self.printer.returned:
            pad = INDENT * self.depth
            return [pad + "{", *lines, pad + "}", f"{pad}thread_done_{label}:;"]
        return lines

    def made_again(self, stmt: Declare) -> str:
        """Return what a declaration means to an object that is there already, in its thread's place of an array: `Range r(0, 4);`, `Sum s;`."""
        name = stmt.var.name
        if stmt.init is None:
            return f"ww::made_again({name});"
        kind = f"std::decay_t<decltype({name})>" if stmt.direct else ""
        return f"{name} = {kind}{self.printer.expr(stmt.init)};"

    def array_init(self, stmt: Declare) -> list[str]:
        if stmt.init is None:
            return [f"{INDENT * self.depth}{self.made_again(stmt)}"] if self.plan.is_object(stmt.var) else []
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
            self.thread_head(stmts, simd, limits.rest, *self.row_ends(limits), every=limits.every, one=limits.one)
            return
        self.values(stmts, keys)
        self.guard(limits.rest)

    def thread_head(self, stmts: Sequence[Stmt], simd: bool | str, guards: Sequence[Expr], low: str, high: str, inner: bool = False,
                    every: tuple[str, str] | None = None, one: bool = False) -> None:  # fmt: skip
        """Open the loop over the threads of a row, or of a stretch of it; `inner`: what asks for vectors stands outside; `one`: it is one at most."""
        self.simd(simd and not inner and not one)
        keys = regions.used(stmts)
        self.printer.vector = bool(simd)
        if one and every is None:
            self.open(f"if (const int thread_x = {low}; thread_x < {high})")
        elif every is None:
            self.open(f"for (int thread_x = {low}; thread_x < {high}; ++thread_x)")
        else:
            base, size = every
            self.open(f"for (int thread_x = ww::multiple({low}, {base}, {size}); thread_x < {high}; thread_x += (int)({size}))")
        if keys & self.plan.arrays or self.plan.closure(keys) & self.plan.arrays:
            self.line(f"const int thread = {self.number};")
        self.values(stmts, keys)
        self.guard(guards)

    def simd(self, wanted: bool | str) -> None:
        """Ask for the next loop to be vectorised, if that is wanted; a text says how its results are joined."""
        if wanted:
            lanes = f" simdlen({self.settings.choices.lanes})" if self.settings.choices.lanes > 0 else ""
            self.lines.append("#pragma GCC ivdep" if self.whole_values else f"#pragma omp simd{lanes}{' ' + wanted if isinstance(wanted, str) else ''}")  # noqa: E501

    def guard(self, guards: Sequence[Expr]) -> None:
        if guards:
            self.open(f"if ({' && '.join(f'({self.printer.expr(m)})' for m in guards)})")

    def row_ends(self, limits: Bounds) -> tuple[str, str]:
        """Return the first thread of a row, and the one after its last."""
        return "first_x" if limits.low else "0", "last_x" if limits.high else self.row_length()

    def ends(self, limits: Bounds) -> list[str]:
        """Return the declarations of the first thread of a row, and of the one after its last, where there are bounds."""
        ends = []
        if limits.low:
            ends.append(f"const int first_x = (int)ww::largest<long>({{0, {', '.join(limits.low)}}});")
        if limits.high:
            ends.append(f"const int last_x = (int)ww::smallest<long>({{{self.row_length()}, {', '.join(limits.high)}}});")
        return ends

    def same_in_rows(self, limits: Bounds) -> bool:
        """Say whether all rows of threads begin and end alike."""
        return all(map(_is_same_in_rows, self.ends(limits)))

    def row_length(self) -> str:
        if not self.joined:
            return self.lowered.row
        return "dim_x * dim_y" if self.joined == rows.WIDTH else f"(dim_x == {self.joined} ? dim_x * dim_y : dim_x)"

    def rows(self, limits: Bounds) -> None:
        """Open the loops over thread_z and thread_y, with what a row of threads shares."""
        count = "dim_y" if not self.joined else "1" if self.joined == rows.WIDTH else f"(dim_x == {self.joined} ? 1 : dim_y)"
        if not (limits.low or limits.high or limits.rows):
            self.line("for (int thread_z = 0; thread_z < dim_z; ++thread_z)")
            self.line(f"for (int thread_y = 0; thread_y < {count}; ++thread_y)")
            return
        ends = self.ends(limits)
        once = all(_is_same_in_rows(end) for end in ends)  # compilers do not always see that
        if once and ends:
            self.open("")
            for end in ends:
                self.line(end)
            self.line("for (int thread_z = 0; thread_z < dim_z; ++thread_z)")
        else:
            self.line("for (int thread_z = 0; thread_z < dim_z; ++thread_z)")
        in_bounds = count == "dim_y" and bool(limits.low_y or limits.high_y)
        first = f"(int)ww::largest<long>({{0, {', '.join(limits.low_y)}}})" if in_bounds and limits.low_y else "0"
        last = f"(int)ww::smallest<long>({{{count}, {', '.join(limits.high_y)}}})" if in_bounds and limits.high_y else ""
        self.open(f"for (int thread_y = {first}{f', last_y = {last}' if last else ''}; thread_y < {'last_y' if last else count}; ++thread_y)")
        apart = limits.rows_apart if in_bounds else limits.rows
        if apart:
            self.line(f"if (!({' && '.join(f'({row})' for row in apart)})) continue;")
        if not once:
            for end in ends:
                self.line(end)

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
        if (limits.low or limits.high) and all(map(_is_same_in_rows, (*limits.low, *limits.high))):
            self.close()

    def values(self, stmts: Sequence[Stmt], keys: set[int]) -> None:
        """Load what lives in arrays and recompute what is cheap, in the order of declaration."""
        declared_here = {s.var.key for s in ir.walk(tuple(stmts)) if isinstance(s, Declare)}
        needed = self.plan.closure(keys - (declared_here - self.plan.arrays - self.lane_arrays))
        needed |= self.plan.closure({k for k in keys if k in self.plan.arrays or k in self.lane_arrays})
        ready = self.lane_values(needed | keys) | self.ready
        for key in sorted(needed - ready, key=lambda k: self.plan.order.get(k, 0)):
            var = self.plan.variables.get(key)
            if var is None:
                continue
            if key in self.plan.arrays or key in self.lane_arrays:
                place = f"{var.name}_t[thread]" if key in self.plan.arrays else f"{var.name}_l[lane_index]"
                self.load(var, place, stmts, key in declared_here)
            elif key in self.plan.recomputed and key not in declared_here:
                self.line(f"{self.printer.declaration(self.plan.facts.declared[key], const=True)};")
        if self.settings.impure & {e.name for e in ir.expressions(tuple(stmts)) if e.kind == "call"}:
            self.line("ww::at_thread(launch, index, thread_x, thread_y, thread_z);")

    def load(self, var: Var, place: str, stmts: Sequence[Stmt], declared: bool) -> None:
        if var.space == "lanes" and not declared:
            return  # other lanes read it; this lane's own value is not needed
        if var.key in self.kept:
            self.line(f"{declarator(var)};")
            self.line(f"std::memcpy({var.name}, {place}, sizeof {var.name});")
        elif var.dims or var.key in self.plan.facts.addressed:
            self.line(f"auto& {var.name} = {place};")
        elif not declared:
            self.line(f"{declarator(var)} = {place};")

    def store(self, stmts: Sequence[Stmt]) -> None:
        """Put back what the region changed of the variables that live in arrays."""
        changed = {k for s in stmts for k in regions.changed(s)} | self.plan.by_reference(stmts)
        for key in sorted(changed, key=lambda k: self.plan.order.get(k, 0)):
            var = self.plan.variables.get(key)
            if var is not None and key in self.kept:
                self.line(f"std::memcpy({var.name}_t[thread], {var.name}, sizeof {var.name});")
            if var is None or var.dims or key in self.plan.facts.addressed:
                continue
            if key in self.plan.arrays:
                self.line(f"{var.name}_t[thread] = {var.name};")
            elif key in self.lane_arrays:
                self.line(f"{var.name}_l[lane_index] = {var.name};")

    def lane_values(self, keys: Set[int]) -> Set[int]:
        """Give those of the keys their value in a lane that move from lane to lane; return which keys have their value already."""
        if self.lanes is None:
            return set()
        for var in self.plan.in_order(self.lanes.linear & keys):
            self.line(f"const {var.type} {var.name} = {self.of_warp(var)} + lane_index;")
        return self.lanes.shared | self.lanes.linear

    def of_warp(self, var: Var) -> str:
        """Return a name for what stands for the variable in the whole warp."""
        return next(name for more in ("", *map(str, range(2, 10_000))) if (name := f"{var.name}_of_warp{more}") not in self.names)

"""Explicit vectors: a loop in which each thread adds up products keeps its sums in registers, for several rows of threads at once.

`for (k...) acc += As[ty][k] * Bs[k][tx]` loads each row of Bs once for four rows of threads. What differs between neighbouring threads has to be
consecutive in memory, what does not is read once. Compilers alone leave these sums in memory: 2 to 4 times the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.bounds import coefficient, linear, mentions_x
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.choices import BY_RULE, Choices
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.ir import Declare, Evaluate, Expr, For, Stmt
from warpwright.domains.transpile.printing import Printer


def suits(stmts: Sequence[Stmt], plan: Plan) -> For | None:
    """Return the loop of a region that is nothing but one loop on float sums that live in per-thread arrays; else None."""
    *head, last = stmts
    if not isinstance(last, For) or any(not isinstance(s, Declare) or s.var.key in plan.arrays for s in head) or not last.body:
        return None
    if len(last.init) != 1 or not isinstance(last.init[0], Declare) or last.cond is None or last.step is None:
        return None
    counter = last.init[0].var.key
    exprs = [last.cond, last.step, *ir.own_expressions(last.init[0])]
    if any(
        n.kind in ("index", "call") or (n.var in plan.facts.varying and n.var != counter) or n.name == "threadIdx" for e in exprs for n in e.walk()
    ):
        return None
    try:
        sums = {_sum(stmt, plan) for stmt in last.body}
        for stmt in last.body:
            _Vector(plan, counter, sums - {0}).statement(stmt)
    except DoesNotApply:
        return None
    return last if sums - {0} else None


def _sum(stmt: Stmt, plan: Plan) -> int:
    """Return the key of the sum that a statement changes; 0 for a declaration."""
    if isinstance(stmt, Declare):
        return 0
    if isinstance(stmt, Evaluate) and stmt.expr.kind == "assign" and stmt.expr.name in ("=", "+=", "-=", "*="):
        name = stmt.expr.children[0]
        if name.kind == "name" and name.var in plan.arrays and plan.variables[name.var].type == "float" and not plan.variables[name.var].dims:
            return name.var
    raise DoesNotApply


class _Vector:
    """Prints statements for the threads of one register."""

    def __init__(self, plan: Plan, counter: int, sums: set[int], printer: Printer | None = None) -> None:
        self.plan = plan
        self.counter = counter
        self.sums = sums
        self.own: set[int] = set()
        self.printer = printer or Printer(plan.variables)

    def statement(self, stmt: Stmt) -> str:
        if isinstance(stmt, Declare):
            if stmt.var.type != "float" or stmt.var.dims or stmt.init is None or stmt.direct or self.plan.facts.assigned.get(stmt.var.key):
                raise DoesNotApply
            text = f"const auto {stmt.var.name} = {self.value(stmt.init)};"
            self.own.add(stmt.var.key)
            return text
        assert isinstance(stmt, Evaluate)
        target, value = stmt.expr.children
        text = self.value(value)
        return f"{self.plan.variables[target.var or 0].name}_r[nth_row][nth_vector] {stmt.expr.name} {text};"

    def value(self, expr: Expr) -> str:
        if expr.kind == "paren":
            return f"({self.value(expr.children[0])})"
        if expr.kind == "binary" and expr.name in ("+", "-", "*") and len(expr.children) == 2:
            return f"{self.value(expr.children[0])} {expr.name} {self.value(expr.children[1])}"
        if expr.kind == "literal" and ir.text_of(expr).endswith(("f", "F")):
            return ir.text_of(expr)
        if expr.kind == "name" and expr.var is not None:
            return self.name(expr.var)
        if expr.kind == "index" and expr.type.removeprefix("const ") == "float":
            return self.element(expr)
        raise DoesNotApply

    def name(self, key: int) -> str:
        var = self.plan.variables.get(key)
        if var is None:
            raise DoesNotApply
        if key in self.sums:
            return f"{var.name}_r[nth_row][nth_vector]"
        fixed = var.type == "float" and not var.dims and (var.space == "parameter" or key in self.plan.scalars)
        if key in self.own or fixed:
            return var.name
        raise DoesNotApply

    def element(self, expr: Expr) -> str:
        """Return an array element: one for all threads of the register, or as many as it holds."""
        base, index = expr.children
        whole = self.linear(index)
        while base.kind == "index":
            if mentions_x(self.linear(base.children[1])):
                raise DoesNotApply
            base = base.children[0]
        if (
            base.kind != "name"
            or base.var not in self.plan.variables
            or self.plan.variables[base.var].space not in ("shared", "parameter", "dynamic")
        ):
            raise DoesNotApply
        if not mentions_x(whole):
            return self.printer.expr(expr)
        if coefficient(whole) != 1:
            raise DoesNotApply
        return f"ww::load(&{self.printer.expr(expr)})"

    def linear(self, index: Expr) -> Expr:
        """Return an index with local values replaced; the loop's counter stays."""
        return linear(index, self.plan, {self.counter})


def lines(
    loop: For, plan: Plan, printer: Printer, values: Sequence[str], choices: Choices = BY_RULE, known: tuple[str, str] = ("BX", "BY"), number: str = ""  # noqa: E501
) -> list[str]:
    """Return the loop in registers.

    values: declarations of what is recomputed for each thread; known: the block's width and height; number: a thread's number in it.
    """
    assert isinstance(loop.init[0], Declare)
    sums = {_sum(s, plan) for s in loop.body} - {0}
    names = [plan.variables[k].name for k in sorted(sums, key=lambda k: plan.order.get(k, 0))]
    vector = _Vector(plan, loop.init[0].var.key, sums, printer)
    width, height = known
    row, lane = "(first_row + nth_row)", "(first_lane + nth_vector * ww::width)"
    place = f"[{number.replace('thread_x', lane).replace('thread_y', row)}]"
    loads = " ".join(f"{n}_r[nth_row][nth_vector] = ww::load(&{n}_t{place});" for n in names)
    stores = " ".join(f"ww::store(&{n}_t{place}, {n}_r[nth_row][nth_vector]);" for n in names)
    each = [
        "#pragma GCC unroll 16",
        "for (int nth_row = 0; nth_row < rows_at_once; ++nth_row)",
        "#pragma GCC unroll 16",
        "for (int nth_vector = 0; nth_vector < vectors_at_once; ++nth_vector)",
    ]
    return [
        f"// line {loop.line}: the sums of several rows of threads in registers",
        f"constexpr int vectors_at_once = {_at_once(f'{width} / ww::width', choices.vectors, f'ww::vectors_of({width})')};",
        f"constexpr int rows_at_once = {_at_once(height, choices.rows, f'ww::rows_of({width}, {height})')};",
        "for (int thread_z = 0; thread_z < dim_z; ++thread_z)",
        "for (int first_row = 0; first_row < dim_y; first_row += rows_at_once)",
        "for (int first_lane = 0; first_lane < dim_x; first_lane += vectors_at_once * ww::width) {",
        *(f"  ww::floats {name}_r[rows_at_once][vectors_at_once];" for name in names),
        *(f"  {line}" for line in each),
        f"    {{ {loads} }}",
        f"  {printer.loop_head(loop)} {{",
        *(f"    {line}" for line in each),
        "    {",
        "      [[maybe_unused]] const int thread_y = first_row + nth_row, thread_x = first_lane + nth_vector * ww::width;",
        *(f"      {value}" for value in values),
        *(f"      {vector.statement(s)}" for s in loop.body),
        "    }",
        "  }",
        *(f"  {line}" for line in each),
        f"    {{ {stores} }}",
        "}",
    ]


def _at_once(all_of_them: str, chosen: int, rule: str) -> str:
    return rule if chosen < 0 else f"{all_of_them} % {chosen} == 0 ? {chosen} : {rule}"

"""Bring a kernel into the form that fission works on.

- device functions that synchronise are inlined;
- each warp or block operation stands in a statement of its own: the value is offered, the threads meet, the answer is read;
- returns become branches (`early_returns.py`);
- parameters that the kernel changes, whole or in part, become variables;
- loops that count with a variable from outside get one of their own (`counted.py`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from types import MappingProxyType

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.synchronisation import BLOCK_VOTES, REDUCTIONS, SHUFFLES, SYNC_CALLS, VOTES
from warpwright.domains.transpile.errors import DoesNotApply
from warpwright.domains.transpile.ir import Barrier, Block, Collective, Declare, Evaluate, Expr, For, Function, If, Jump, Raw, Return, Stmt, Var
from warpwright.domains.transpile.passes import arguments as places
from warpwright.domains.transpile.passes import early_returns
from warpwright.domains.transpile.passes.variables import counted


def normalise(
    kernel: Function,
    syncing: Mapping[str, tuple[Function, ...]],
    others: Mapping[str, tuple[Function, ...]] | None = None,
    references: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    stateful: Set[str] = frozenset(),
) -> tuple[tuple[Stmt, ...], dict[int, Var]]:
    """Return the kernel's body in normal form, and its variables by key.

    syncing: the device functions that synchronise. others: those that may be inlined too, where they take arrays of a thread: in the kernel's own
    text
    these may be in registers. references, stateful: as `places.own` takes them.
    """
    kernel = _uncovered(kernel, places.reached(kernel, syncing, others or {}))
    worker = _Normaliser(kernel, syncing, others or {})
    body = worker.parameters(kernel, places.own(kernel, references, stateful)) + worker.block(kernel.body)
    body = counted.loops(body, worker.vars, lambda var: worker.fresh(var.name, var.type, var.line), _with_another)
    return early_returns.without(body, worker.fresh, _not), worker.vars


def _uncovered(kernel: Function, functions: Sequence[Function]) -> Function:
    """Return the kernel with other names for its variables that would hide what functions name, once these stand in its text."""
    free = {name for function in functions for name in places.free_names(function)}
    variables, fixed = kernel.variables or {}, {p.key for p in kernel.parameters}
    taken = {v.name for v in variables.values()} | free | places.free_names(kernel)
    new: dict[int, Var | Expr] = {}
    for key, var in variables.items():
        if var.name in free and key not in fixed:
            name = next(n for i in itertools.count(2) if (n := f"{var.name}_{i}") not in taken)
            taken.add(name)
            new[key] = replace(var, name=name)
    if not new:
        return kernel
    change = renamer(new, {})
    apart = {key: one for key, one in new.items() if isinstance(one, Var)}
    return replace(kernel, body=tuple(rename(stmt, change, new) for stmt in kernel.body), variables={**variables, **apart})


_PLAIN_VALUE = re.compile(r"((un)?signed )?(bool|char|short|int|long|long long|float|double)|unsigned|u?int\d+_t|size_t|(float|double|u?int)[2-4]")
"""Types of which a variable needs no first value."""


class _Normaliser:
    def __init__(self, kernel: Function, syncing: Mapping[str, tuple[Function, ...]], others: Mapping[str, tuple[Function, ...]]) -> None:
        self.vars: dict[int, Var] = dict(kernel.variables or {})
        functions = places.reached(kernel, syncing, others)
        self.names = {v.name for v in self.vars.values()}.union(kernel.template, *map(places.free_names, (kernel, *functions)))
        self.hiding = {p.name for p in kernel.parameters} | set(kernel.template)
        """Names of the kernel that stay."""
        self.shared: dict[tuple[str, int, tuple[tuple[str, str], ...]], Var] = {}
        """Shared arrays of functions, by function, key and template arguments: all calls have the same."""
        self.syncing = syncing
        self.others = others
        self.keys = itertools.count(-1, -1)
        self.depth = 0
        self.renamed: dict[int, Var] = {}

    def fresh(
        self, name: str, kind: str, line: int, space: str = "local", dims: tuple[str, ...] = (), reference: bool = False, const: bool = False
    ) -> Var:
        unique, number = name, 2
        while unique in self.names:
            unique, number = f"{name}_{number}", number + 1
        self.names.add(unique)
        var = Var(next(self.keys), unique, kind, dims, space, line, reference, const)
        self.vars[var.key] = var
        return var

    def parameters(self, kernel: Function, changed: Set[int]) -> tuple[Stmt, ...]:
        """Give each parameter that the kernel changes a variable of its own."""
        declared: list[Stmt] = []
        for parameter in kernel.parameters:
            if parameter.key in changed:
                own = self.fresh(parameter.name, parameter.type, kernel.line)
                declared.append(Declare(own, ir.name_of(parameter), False, kernel.line))
                self.renamed[parameter.key] = own
        return tuple(declared)

    # --- statements ---------------------------------------------------------------------------------------------------------------

    def block(self, stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(normal for stmt in stmts for normal in self.statement(stmt))

    def statement(self, stmt: Stmt) -> list[Stmt]:
        before: list[Stmt] = []
        if isinstance(stmt, Declare):
            init = self.take(stmt.init, before) if stmt.init is not None else None
            return [*before, replace(stmt, init=init)]
        if isinstance(stmt, Evaluate) and len(parts := _commas(stmt.expr)) > 1 and self.in_expression(stmt.expr):
            return list(self.block([replace(stmt, expr=part) for part in parts]))
        if isinstance(stmt, Evaluate):
            expr = self.take(stmt.expr, before, statement=True)
            return [*before, replace(stmt, expr=expr)] if expr.parts else before
        if isinstance(stmt, Block):
            return [replace(stmt, body=self.block(stmt.body))]
        if isinstance(stmt, If):
            cond = self.take(stmt.cond, before)
            return [*before, replace(stmt, cond=cond, then=self.block(stmt.then), other=self.block(stmt.other))]
        if isinstance(stmt, For):
            return self.loop(stmt)
        if isinstance(stmt, Return):
            value = self.take(stmt.value, before) if stmt.value is not None else None
            return [*before, replace(stmt, value=value)]
        if isinstance(stmt, ir.DoWhile):
            cond = self.take(stmt.cond, before)
            if before or any(self.syncs(s) for s in stmt.body):
                return self.do_while(stmt, cond, before)
            return [replace(stmt, body=self.block(stmt.body), cond=cond)]
        if isinstance(stmt, Raw):
            if self.in_expression(stmt.expr):
                raise DoesNotApply(stmt.line, "a synchronisation inside a switch or another statement that is kept as text")
            return [replace(stmt, expr=self.take(stmt.expr, before))]
        return [stmt]

    def loop(self, stmt: For) -> list[Stmt]:
        if any(self.syncs(s) for s in stmt.init) and not any(isinstance(s, Declare) for s in stmt.init):
            return [*self.block(stmt.init), *self.loop(replace(stmt, init=()))]
        if stmt.step is not None and len(steps := _commas(stmt.step)) > 1 and self.in_expression(stmt.step) and not _continues(stmt):
            return self.loop(replace(stmt, step=None, body=(*stmt.body, *(Evaluate(e, stmt.line) for e in steps))))
        in_head: list[Stmt] = []
        cond = self.take(stmt.cond, in_head) if stmt.cond is not None else None
        in_step: list[Stmt] = []
        step = self.take(stmt.step, in_step) if stmt.step is not None else None
        init, body = self.block(stmt.init), self.block(stmt.body)
        if not in_head and not in_step:
            return [replace(stmt, init=init, cond=cond, step=step, body=body)]
        if _continues(stmt) or cond is None:
            raise DoesNotApply(stmt.line, "a synchronisation in the head of a loop with `continue`")
        leave = If(_not(cond), (Jump("break", stmt.line),), line=stmt.line)
        tail = (*in_step, *((Evaluate(step, stmt.line),) if step is not None else ()))
        return [replace(stmt, init=init, cond=None, step=None, body=(*in_head, leave, *body, *tail))]

    def do_while(self, stmt: ir.DoWhile, cond: Expr, before: Sequence[Stmt]) -> list[Stmt]:
        if _continues(stmt):
            raise DoesNotApply(stmt.line, "a synchronisation in a do-while loop with `continue`")
        leave = If(_not(cond), (Jump("break", stmt.line),), line=stmt.line)
        return [For((), None, None, (*self.block(stmt.body), *before, leave), stmt.line, stmt.comment)]

    def syncs(self, stmt: Stmt) -> bool:
        return any(self.in_expression(e) for s in ir.walk((stmt,)) for e in ir.own_expressions(s))

    def in_expression(self, expr: Expr) -> bool:
        return any(e.kind == "call" and (e.name in SYNC_CALLS or e.name in self.syncing) for e in expr.walk())

    # --- expressions --------------------------------------------------------------------------------------------------------------

    def take(self, expr: Expr, before: list[Stmt], statement: bool = False) -> Expr:
        """Return the expression with what synchronises moved into statements `before`; empty parts when nothing is left."""
        if expr.kind == "name" and expr.var in self.renamed:
            return ir.name_of(self.renamed[expr.var], expr.line)
        if expr.kind == "name" and expr.var is None and expr.name in self.syncing:
            raise DoesNotApply(expr.line, f"{expr.name}, which synchronises, is handed to a function")
        if not any(isinstance(p, Expr) for p in expr.parts) and expr.kind != "call":
            return expr
        if expr.kind == "lambda" and self.in_expression(expr):
            raise DoesNotApply(expr.line, "a synchronisation inside a lambda")
        if expr.kind == "conditional" or (expr.kind == "binary" and expr.name in ("&&", "||")):  # noqa: SIM102
            if any(self.in_expression(c) for c in expr.children[1:]):
                raise DoesNotApply(expr.line, "a synchronisation in one branch of an expression")
        if expr.kind == "call" and (expr.name in SYNC_CALLS or expr.name in self.syncing):
            return self.call(expr, before, statement)
        if expr.kind == "call" and expr.children and set(re.findall(r"\w+", ir.text_of(expr.children[0]))) & self.syncing.keys():
            raise DoesNotApply(expr.line, f"a call through `{ir.text_of(expr.children[0])}`, which synchronises")
        if statement and expr.kind == "call" and (handed := self.takes_arrays(expr)) is not None:
            return self.inline(expr, handed, [self.take(c, before) for c in expr.children[1:]], before, statement)
        taken = [self.take(c, before) for c in expr.children]
        return expr.with_children(taken)

    def takes_arrays(self, expr: Expr) -> Function | None:
        """Return the function that a statement calls with arrays of the thread, if it may be inlined."""
        named = self.others.get(expr.name, ())
        if len(named) != 1 or len(named[0].parameters) != len(expr.children) - 1 or self.depth:
            return None
        function, arrays = named[0], [c for c in expr.children[1:] if self.own_array(c) is not None]
        if (
            not arrays
            or function.problem
            or self.hiding & places.free_names(function)
            or any(isinstance(s, Return | Raw | Barrier) for s in ir.walk(function.body))
        ):
            return None
        try:
            self.bindings(expr, function, expr.children[1:], expr.line)
        except DoesNotApply:
            return None
        return function

    def own_array(self, expr: Expr) -> Var | None:
        inner = ir.bare(expr)
        var = self.vars.get(inner.var) if inner.kind == "name" and inner.var is not None else None
        return var if var is not None and var.space == "local" and var.dims and not var.reference else None

    def call(self, expr: Expr, before: list[Stmt], statement: bool) -> Expr:
        arguments = [self.take(c, before) for c in expr.children[1:]]
        name, line = expr.name, expr.line
        empty = Expr("other", (), line)
        if name == "__syncthreads":
            before.append(Barrier("block", line))
            return empty
        if name == "__syncwarp":
            before.append(Barrier("warp", line))
            return empty
        if name in self.syncing:
            return self.inline(expr, self.overload(expr, arguments), arguments, before, statement)
        if name in BLOCK_VOTES:
            return self.vote(arguments[0], BLOCK_VOTES[name], "block", line, before)
        plain = name.removesuffix("_sync")
        arguments = arguments[1:] if name.endswith("_sync") else arguments
        if plain in SHUFFLES:
            return self.shuffle(expr, arguments, SHUFFLES[plain], before)
        if plain in VOTES:
            return self.vote(arguments[0], VOTES[plain], "warp", line, before)
        if name in REDUCTIONS:
            return self.vote(arguments[0], REDUCTIONS[name], "warp", line, before, _type(arguments[0], line, self.vars))
        if name == "__activemask":
            return self.vote(Expr("literal", ("1",), line), "ballot", "warp", line, before)
        raise DoesNotApply(line, f"{name} is not offered in this tier")

    def shuffle(self, expr: Expr, arguments: Sequence[Expr], way: str, before: list[Stmt]) -> Expr:
        line = expr.line
        kind = _type(arguments[0], line, self.vars)
        offered = self.fresh("offered", kind, line, "lanes")
        width = arguments[2] if len(arguments) > 2 else Expr("literal", ("32",), line)
        read = Expr("lane", (f"ww::lane_{way}(lane_index, ", arguments[1], ", ", width, ")"), line, "", offered.key, kind)
        taken = self.fresh("taken", kind, line)
        before += [Declare(offered, arguments[0], False, line), Barrier("warp", line), Declare(taken, read, False, line)]
        return ir.name_of(taken, line)

    def vote(self, value: Expr, operation: str, scope: str, line: int, before: list[Stmt], kind: str = "int") -> Expr:
        offered = self.fresh("offered", kind, line, "lanes" if scope == "warp" else "local")
        result = self.fresh("joined", "unsigned" if operation == "ballot" else kind, line, scope)
        before += [Declare(offered, value, False, line), Barrier(scope, line), Collective(result, operation, offered, scope, line)]
        if scope == "block":
            return ir.name_of(result, line)
        own = self.fresh("answer", result.type, line)
        before.append(Declare(own, ir.name_of(result, line), False, line))
        return ir.name_of(own, line)

    def overload(self, expr: Expr, arguments: Sequence[Expr]) -> Function:
        """Return which of the functions of one name is called, by the number of arguments."""
        named = self.syncing[expr.name]
        fitting = [function for function in named if len(function.parameters) == len(arguments)] if len(named) > 1 else named
        if len(fitting) != 1:
            raise DoesNotApply(expr.line, f"{expr.name} synchronises, and {len(fitting)} functions of this name take {len(arguments)} arguments")
        return fitting[0]

    def inline(self, expr: Expr, function: Function, arguments: Sequence[Expr], before: list[Stmt], statement: bool) -> Expr:
        """Put the body of a device function in place of its call."""
        line = expr.line
        self.expect_inlinable(function, line)
        *body, last = function.body or (Return(None, line),)
        returns = [s for s in ir.walk(function.body) if isinstance(s, Return)]
        several = len(returns) > 1 or (bool(returns) and returns[0] is not last)
        if not returns or several:
            body.append(last)
        types = self.bindings(expr, function, arguments, line)
        names = self.named_parameters(function, arguments, types, before, line)
        again = self.named_locals(function, body, types, names)
        change = renamer(names, types)
        renamed = places.shared_once([rename(stmt, change, names) for stmt in body], again)
        result = self.result(function, types, line) if several and returns[0].value is not None else None
        if several:
            before += [Declare(result, None, False, line)] if result is not None else []
            renamed = list(early_returns.of_function(renamed, self.fresh, _not, result))
        self.depth += 1
        for stmt in renamed:
            before += self.statement(stmt)
        self.depth -= 1
        if result is not None:
            return Expr("other", (), line) if statement else ir.name_of(result, line)
        if several or not returns or returns[0].value is None:
            return Expr("other", (), line)
        value = self.take(returns[0].value.map(change), before)
        if statement:
            return Expr("other", (), line)
        result = self.fresh(f"{function.name}_value", _substitute(function.returns, types), line)
        before.append(Declare(result, value, False, line))
        return ir.name_of(result, line)

    def expect_inlinable(self, function: Function, line: int) -> None:
        """Raise DoesNotApply for a function that cannot be put in the place of its call."""
        if function.problem:
            raise DoesNotApply(line, f"{function.name} synchronises and could not be read ({function.problem})")
        if self.depth > 8:
            raise DoesNotApply(line, f"{function.name} calls itself and synchronises")
        if hidden := self.hiding & places.free_names(function):
            raise DoesNotApply(line, f"{function.name} synchronises, and the kernel has a {min(hidden)} of its own")

    def named_parameters(
        self, function: Function, arguments: Sequence[Expr], types: Mapping[str, str], before: list[Stmt], line: int
    ) -> dict[int, Var | Expr]:  # fmt: skip
        """Return what stands for each parameter in the body: the place that was given, or a variable with its value, declared in `before`."""
        names: dict[int, Var | Expr] = {}
        moved = {to.var for e in ir.expressions(function.body) if (to := ir.assigned(e)) is not None and to.kind == "name"}
        changed = places.changeable(function.parameters, arguments)
        for parameter, argument in itertools.zip_longest(function.parameters, arguments):
            if argument is None or parameter is None:
                raise DoesNotApply(line, f"{function.name} synchronises and is called with default arguments")
            kind = _substitute(parameter.type, types)
            if parameter.reference:
                kind = re.sub(r"\s*&\s*$", "", kind).removeprefix("const ")
                if not parameter.type.startswith("const") or not places.is_copied(parameter, argument, kind, self.given(argument)):
                    names[parameter.key] = places.same_place(argument, changed, self.vars, lambda at: self.hold(at, before))
                    continue
            elif (array := self.own_array(argument)) is not None and parameter.key not in moved:
                names[parameter.key] = array
                continue
            own = self.fresh(parameter.name, kind, line)
            before.append(Declare(own, argument, False, line))
            names[parameter.key] = own
        return names

    def named_locals(self, function: Function, body: Sequence[Stmt], types: Mapping[str, str], names: dict[int, Var | Expr]) -> set[int]:
        """Add to `names` a variable for each that the body declares; return the keys of shared ones that an earlier call has declared."""
        again: set[int] = set()
        for stmt in ir.walk(tuple(body)):
            if not isinstance(stmt, Declare):
                continue
            old = stmt.var
            place = (function.name, old.key, tuple(sorted(types.items())))
            if old.space == "shared" and place in self.shared:
                names[old.key] = self.shared[place]
                again.add(self.shared[place].key)
                continue
            dims = tuple(_substitute(d, types) for d in old.dims)
            names[old.key] = own = self.fresh(old.name, _substitute(old.type, types), old.line, old.space, dims, old.reference, old.const)
            if old.space == "shared":
                self.shared[place] = own
        return again

    def hold(self, at: Expr, before: list[Stmt]) -> Expr:
        """Return a variable with the value that a subscript has before a call."""
        held = self.fresh("at", "long long", at.line)
        before.append(Declare(held, at, False, at.line))
        return ir.name_of(held, at.line)

    def given(self, argument: Expr) -> str:
        """Return the type of an argument, or nothing where it is not known."""
        try:
            return _type(argument, argument.line, self.vars)
        except DoesNotApply:
            return ""

    def result(self, function: Function, types: Mapping[str, str], line: int) -> Var:
        """Return the variable for what a function with several returns gives."""
        kind = _substitute(function.returns, types)
        if not _PLAIN_VALUE.fullmatch(kind):
            raise DoesNotApply(line, f"{function.name} synchronises and returns a {kind} from more than one place")
        return self.fresh(f"{function.name}_value", kind, line)

    def bindings(self, expr: Expr, function: Function, arguments: Sequence[Expr], line: int) -> dict[str, str]:
        """Return what the template parameters of an inlined function stand for."""
        if not function.template:
            return {}
        callee = ir.text_of(expr.children[0])
        arguments_of_template: list[str] = []
        if "<" in callee:
            from warpwright.domains.transpile.frontend.scan import split_commas

            arguments_of_template = split_commas(callee[callee.index("<") + 1 : callee.rindex(">")])
        plain_names = [re.sub(r"^\((\w+)\)$", r"\1", argument.strip()) for argument in arguments_of_template]
        bound = dict(zip(function.template, plain_names, strict=False))
        for parameter, argument in zip(function.parameters, arguments, strict=False):
            core = re.sub(r"\bconst\b|\bvolatile\b|\b__restrict(__)?\b|[*&\s]", "", parameter.type)
            if core in function.template and core not in bound:
                kind = _type(argument, line, self.vars)
                bound[core] = re.sub(r"\bconst\b|\bvolatile\b|\b__restrict(__)?\b|[*&]|\[.*\]", "", kind).strip()
        missing = [n for n in function.template if n not in bound]
        if missing:
            raise DoesNotApply(line, f"{function.name} synchronises and its template parameter {missing[0]} could not be told")
        return bound


def _commas(expr: Expr) -> list[Expr]:
    """Return the parts of `a, b, c` in order; of another expression, itself."""
    if expr.kind == "binary" and expr.name == ",":
        return [*_commas(expr.children[0]), *_commas(expr.children[1])]
    return [expr]


def _continues(stmt: For | ir.DoWhile) -> bool:
    kept = (ir.text_of(s.expr) for s in ir.walk(stmt.body) if isinstance(s, Raw))
    return any(isinstance(s, Jump) and s.word == "continue" for s in ir.walk(stmt.body)) or any(re.search(r"\bcontinue\b", text) for text in kept)


def _not(cond: Expr) -> Expr:
    """Return the negation; a comparison of integers is turned around, which reads better and needs no NaN."""
    inner = ir.bare(cond)
    turned = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
    whole = all("float" not in c.type and "double" not in c.type and "half" not in c.type and c.type for c in inner.children)
    if inner.kind == "binary" and inner.name in turned and whole and len(inner.children) == 2:
        return replace(inner, parts=(inner.children[0], f" {turned[inner.name]} ", inner.children[1]), name=turned[inner.name])
    if inner.kind == "binary" and inner.name == "||" and len(inner.children) == 2:
        parts = tuple(_wrap(_not(c)) for c in inner.children)
        return replace(inner, parts=(parts[0], " && ", parts[1]), name="&&")
    return Expr("unary", ("!", _wrap(cond)), cond.line, "!", None, "bool")


def _wrap(expr: Expr) -> Expr:
    """Return the expression as one that binds tightest.

    `a < b` of classes or open types is a call to the parser, without a name or with the operator's."""
    if expr.kind == "call" and (not expr.name or expr.name.startswith("operator")):
        return ir.paren(expr)
    if expr.kind in ("name", "call", "paren", "member", "index", "literal"):
        return expr
    return ir.paren(expr)


def _type(expr: Expr, line: int, variables: Mapping[int, Var]) -> str:
    """Return the type of an expression's value as text."""
    if expr.kind == "name" and expr.var is not None and expr.var in variables and not variables[expr.var].dims:
        return re.sub(r"\s*&$", "", variables[expr.var].type)
    if expr.kind == "paren":
        return _type(expr.children[0], line, variables)
    if expr.type and "dependent" not in expr.type and expr.type not in ("auto", "T"):
        return re.sub(r"\bconst\b\s*", "", expr.type).replace("&", "").strip()
    kinds = (
        {_type(c, line, variables) for c in expr.children if c.kind in ("name", "index", "member", "paren", "binary", "call")}
        if expr.kind == "binary"
        else set()
    )
    if len(kinds) == 1:
        return kinds.pop()
    if expr.kind == "index":
        return (
            re.sub(r"\s*(\*\s*(__restrict(__)?)?|\[.*\])$", "", _type_of_array(expr.children[0], variables))
            .removeprefix("const ")
            .removeprefix("volatile ")
        )
    raise DoesNotApply(line, f"the type of `{ir.text_of(expr)}` depends on template parameters")


def _type_of_array(expr: Expr, variables: Mapping[int, Var]) -> str:
    root = ir.target(expr)
    if root is not None and root.var is not None and root.var in variables:
        return variables[root.var].type
    raise DoesNotApply(expr.line, f"the type of `{ir.text_of(expr)}` depends on template parameters")


def _substitute(text: str, types: Mapping[str, str]) -> str:
    return re.sub(r"(?<![\w.])(?<!->)[A-Za-z_]\w*\b", lambda m: types.get(m[0], m[0]), text) if types else text


def _with_another(stmts: Sequence[Stmt], old: Var, new: Var) -> tuple[Stmt, ...]:
    """Return statements with another variable in place of one."""
    names: dict[int, Var | Expr] = {old.key: new}
    change = renamer(names, {})
    return tuple(rename(stmt, change, names) for stmt in stmts)


def renamer(names: Mapping[int, Var | Expr], types: Mapping[str, str]):  # type: ignore[no-untyped-def]
    def change(expr: Expr) -> Expr | None:
        if expr.kind == "name" and expr.var is not None and expr.var in names:
            new = names[expr.var]
            return _wrap(new) if isinstance(new, Expr) else ir.name_of(new, expr.line)
        if expr.kind == "name" and expr.name in types and expr.var is None:
            return replace(expr, parts=(f"({types[expr.name]})",), name="", kind="literal")
        if types and any(isinstance(p, str) for p in expr.parts):
            name = types.get(expr.name, expr.name) if expr.kind == "call" else expr.name  # a function that a template takes
            parts = tuple(_substitute(p, types) if isinstance(p, str) else p.map(change) for p in expr.parts)
            return replace(expr, parts=parts, name=name, type=_substitute(expr.type, types))
        return None

    return change


def rename(stmt: Stmt, change, names: Mapping[int, Var | Expr]) -> Stmt:  # type: ignore[no-untyped-def]
    renamed = ir.map_expressions(stmt, change)

    def declared(one: Stmt) -> Stmt:
        if isinstance(one, Declare):
            new = names.get(one.var.key)
            return replace(one, var=new) if isinstance(new, Var) else one
        if isinstance(one, Block | ir.DoWhile):
            return replace(one, body=tuple(declared(s) for s in one.body))
        if isinstance(one, If):
            return replace(one, then=tuple(declared(s) for s in one.then), other=tuple(declared(s) for s in one.other))
        if isinstance(one, For):
            return replace(one, init=tuple(declared(s) for s in one.init), body=tuple(declared(s) for s in one.body))
        return one

    return declared(renamed)

"""`--sanitize`: kernels on fibers in which every access to memory is checked (runtime/run/shadow.hpp), with its line of the CUDA source.

Found are races between threads of a block and between blocks, accesses out of bounds (buffers of known size, arrays), shared memory that is
read before it is written, and barriers that not all threads reach.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from warpwright.domains.transpile.errors import Refusal
from warpwright.domains.transpile.fibers import rewrite
from warpwright.domains.transpile.frontend import parse
from warpwright.domains.transpile.frontend.parse import RESERVED
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.ir import Declare, Expr, Function, Stmt, Var
from warpwright.domains.transpile.printing import INDENT, FunctionPrinter, declarator

_UNEVALUATED = re.compile(r"(sizeof|alignof|_Alignof|__alignof__|decltype|noexcept)\b")
"""What reads nothing of what it names."""

_BARRIERS = {"__syncthreads": "", "__syncthreads_or": ".any", "__syncthreads_and": ".all", "__syncthreads_count": ".count"}
"""A barrier of the block -> what it returns of the votes."""


class _Checked(FunctionPrinter):
    """Prints a function with its accesses checked."""

    references: Mapping[str, frozenset[int]] = MappingProxyType({})
    """Function of the source -> the places of the arguments that it takes by reference: it reads and writes them where it names them."""

    def expr(self, expr: Expr, exact: bool = False) -> str:
        return self.checked(expr, "ww::reads")

    def checked(self, expr: Expr, how: str) -> str:
        """Return the text of an expression that is read, written or (how empty) only named."""
        if expr.parts and isinstance(expr.parts[0], str) and _UNEVALUATED.match(expr.parts[0].lstrip()):
            return FunctionPrinter(self.variables).parts(expr, False)
        if self.is_place(expr):
            place = self.place(expr)
            return f"ww::touch({place}, {expr.line}, {how})" if how else place
        if expr.kind == "name":
            return self.variables[expr.var].name if expr.var is not None and expr.var in self.variables else self.parts(expr, False)
        if expr.kind == "assign":
            target, value = expr.children[0], expr.children[1:]
            done = "ww::writes" if expr.name == "=" else "ww::updates"
            return f"{self.checked(target, done)} {expr.name} {' '.join(self.expr(v) for v in value)}"
        if expr.kind == "unary" and expr.name in ("++", "--"):
            return self.around(expr, self.checked(expr.children[0], "ww::updates"))
        if expr.kind == "unary" and expr.name == "&":
            return self.around(expr, self.checked(expr.children[0], ""))
        if expr.kind == "call":
            return self.checked_call(expr)
        if _moves_pointer(expr):
            base, by = expr.children
            return f"ww::moved({self.expr(base)}, {'-(long long)' if expr.name == '-' else ''}({self.expr(by)}))"
        return self.parts(expr, False)

    def around(self, expr: Expr, inner: str) -> str:
        return "".join(p if isinstance(p, str) else inner for p in expr.parts)

    def is_place(self, expr: Expr) -> bool:
        """Say whether an expression names a place in memory: by index, `*` or `->`, a shared variable or a reference, perhaps a member of it."""
        if expr.kind == "index":
            return len(expr.children) == 2
        if expr.kind == "unary":
            return expr.name == "*"
        if expr.kind == "name":
            var = self.variables.get(expr.var) if expr.var is not None else None
            return var is not None and (var.space == "shared" or var.reference) and not var.dims
        if expr.kind == "paren" and len(expr.children) == 1:
            return expr.parts[0] == "(" and self.is_place(expr.children[0])  # or it is the amount of a shift
        if expr.kind == "member" and len(expr.children) == 1:
            return expr.children[0].kind != "other" if _arrow(expr) else self.is_place(expr.children[0])
        return False

    def place(self, expr: Expr) -> str:
        """Return the text of a place in memory, with its index checked."""
        if expr.kind == "index":
            base, index = expr.children[0], expr.children[1]
            name = (
                self.place(base) if self.is_place(base) and base.kind in ("index", "member") and _is_array(base) else self.checked(base, "ww::reads")
            )
            return f"ww::at({name}, {self.expr(index)}, {expr.line})"
        if expr.kind == "name":
            return self.variables[expr.var].name if expr.var is not None else expr.name
        if expr.kind == "unary":
            return f"ww::deref({self.expr(expr.children[0])}, {expr.line})"
        if expr.kind == "paren":
            return f"({self.place(expr.children[0])})"
        base = expr.children[0]
        if _arrow(expr):
            return f"ww::deref({self.expr(base)}, {expr.line}).{expr.name}"
        return f"{self.place(base)}.{expr.name}"

    def checked_call(self, expr: Expr) -> str:
        name, line = expr.name, expr.line
        arguments = [self.expr(c) for c in expr.children[1:]]
        if name in _BARRIERS:
            return f"ww::checked_barrier({line}{''.join(f', ({a}) != 0' for a in arguments)}){_BARRIERS[name]}"
        if name.startswith("__threadfence"):
            return "(ww::shadow().fenced = true, __threadfence())"
        if name.startswith("atomic") and arguments:
            return f"{name}(ww::pointed({arguments[0]}, {line}, ww::updates | ww::atomically), {', '.join(arguments[1:])})"
        if name.startswith("__ld") and len(arguments) == 1:
            return f"(*ww::pointed({arguments[0]}, {line}, ww::reads))"
        if name.startswith("__st") and len(arguments) == 2:
            return f"(*ww::pointed({arguments[0]}, {line}, ww::writes) = {arguments[1]})"
        handed = {id(expr.children[1 + at]) for at in self.references.get(name, ()) if at < len(arguments) and expr.children[0].kind == "name"}
        return "".join([p if isinstance(p, str) else self.checked(p, "") if id(p) in handed else self.callee(p, expr) for p in expr.parts])

    def callee(self, part: Expr, call: Expr) -> str:
        """Return a part of a call; of a method the object alone is a place: `ww::at(stacks, i).push` of `stacks[i].push(v)`."""
        if part is not call.children[0] or part.kind != "member" or len(part.children) != 1 or _arrow(part):
            return self.expr(part)
        base = part.children[0]
        return self.around(part, self.place(base) if self.is_place(base) else self.expr(base))

    def written(self, stmt: Stmt, depth: int) -> list[str]:
        pad = INDENT * depth
        if isinstance(stmt, Declare) and stmt.var.space == "shared":
            return [f"{pad}static thread_local {declarator(stmt.var)}; ww::register_shared({stmt.var.name});"]
        if isinstance(stmt, Declare) and stmt.var.space == "constant":
            return [f"{pad}static {'const ' if stmt.var.const and stmt.var.dims else ''}{self.constant(stmt)};"]
        if isinstance(stmt, Declare) and stmt.var.reference and stmt.init is not None and not stmt.direct:
            return [f"{pad}{declarator(stmt.var)} = {self.checked(stmt.init, '')};"]
        return super().written(stmt, depth)

    def constant(self, stmt: Declare) -> str:
        init = self.parts(stmt.init, False) if stmt.init is not None else ""
        word = "" if stmt.var.dims else "constexpr "
        return f"{word}{declarator(stmt.var)}{'' if stmt.direct or not init else ' = '}{init}"


def _moves_pointer(expr: Expr) -> bool:
    """Say whether an expression is a pointer plus or minus a number: `inp + row * width`."""
    plain = expr.kind == "binary" and expr.name in ("+", "-") and len(expr.children) == 2
    return plain and _is_pointer(expr) and _is_pointer(expr.children[0]) and not _is_pointer(expr.children[1])


def _is_pointer(expr: Expr) -> bool:
    return re.search(r"\*\s*(const|volatile|__restrict(__)?|restrict)?\s*$", expr.type) is not None


def _is_array(expr: Expr) -> bool:
    return expr.type.endswith("]")


def _arrow(expr: Expr) -> bool:
    return any(isinstance(p, str) and "->" in p for p in expr.parts)


def _as_written(var: Var, head: str) -> Var:
    """Return a parameter by the name that it has in the source: the text up to the body is the source's, and the reader names it apart where the
    translation's own output has such a name."""
    spelled = re.sub(r"_\d+$", "", var.name)
    renamed = var.space == "parameter" and spelled in RESERVED and not re.search(rf"\b{re.escape(var.name)}\b", head)
    return replace(var, name=spelled) if renamed else var


def by_reference(functions: Sequence[Function]) -> dict[str, frozenset[int]]:
    """Return which arguments each function takes by a reference that it may write; of functions of one name those that all take so.

    A reference to what is constant may be one to a converted value, which the call reads.
    """
    found: dict[str, frozenset[int]] = {}
    for function in functions:
        own = frozenset(at for at, var in enumerate(function.parameters) if var.reference and "const" not in var.type)
        found[function.name] = found.get(function.name, own) & own
    return found


def function_text(function: Function, head: str, kernel: bool, references: Mapping[str, frozenset[int]]) -> str:
    """Return a device function or kernel with its accesses checked. `head`: its text up to the body. `references`: as `by_reference` gives them."""
    printer = _Checked({key: _as_written(var, head) for key, var in (function.variables or {}).items()})
    printer.references = references
    end = [f"{INDENT}ww::at_end();"] if kernel else []  # not where a `return` leaves it: barriers do not wait for those threads
    start = [f"{INDENT}if (!ww::self) return;"] if kernel else []  # the host calls it as a function: CUDA has no launch of it then either
    return "\n".join([head, "{", *start, *printer.statements(function.body, 1), *end, "}"])


def unread(source: Source) -> list[Refusal]:
    """Return why functions are not checked: what reaches them cannot be either."""
    return [_unread(source, one) for one in parse.parse(source) if one.problem]


def _unread(source: Source, function: Function) -> Refusal:
    wrong = f"{function.name} is not understood: {function.problem}"
    return Refusal(*source.place(function.start), "front-end", wrong, "the sanitizer needs all that a kernel reaches")


def edits(source: Source, functions: Sequence[Function]) -> list[Edit]:
    """Replace each kernel and device function by its checked form."""
    replaced, references = [], by_reference(functions)
    for function in functions:
        kernel = source.kernel_of(function.start)
        if function.problem:
            raise _unread(source, function)
        start, end, head = source.definition(function.name, function.start)
        rewrite.refuse_launches(source, start, end, "--sanitize")
        text = function_text(function, head, kernel is not None, references)
        if kernel is not None:
            text += rewrite.launch_function(kernel).replace("ww::run_fibers", "ww::run_sanitized")
        replaced.append(Edit(start, end, text))
    return [*replaced, *(Edit(k.end, k.end, rewrite.launch_function(k)) for k in source.kernels if not k.defined)]

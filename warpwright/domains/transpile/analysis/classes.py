"""Classes whose methods ask which thread they are, or synchronise: kernels that use one stay on fibers, since methods are not looked into."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.callees import LOOKS_AT_THREAD
from warpwright.domains.transpile.analysis.synchronisation import SYNC_CALLS
from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.scan import Kernel
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.integers import LAUNCH
from warpwright.domains.transpile.ir import Function

_NAME = (
    re.compile(r"\b(?:struct|class|union)\s+(?:\w+\s*\([^()]*\)\s*)*(\w+)[^;{()]*\{"),
    re.compile(r"\busing\s+(\w+)\s*="),
    re.compile(r"\btypedef\b.*\b(\w+)\s*;\s*$", re.S),
    re.compile(r"\b(\w+)\s*(?:<[^;{}()]*>)?\s*::\s*~?\w+\s*\([^;{}]*\)[^;{}]*\{"),
)
"""How a declaration names a class: its definition, another name for it, a method defined outside."""


def words_of(text: str) -> set[str]:
    """Return the words of a text, those of its comments left out."""
    return set(re.findall(r"\w+", ir.plain(text)))


def aware(source: Source, functions: frozenset[str]) -> frozenset[str]:
    """Return the names of classes that depend on the thread, themselves or by what they mention (`functions`: those that do)."""
    named: list[tuple[str, set[str]]] = []
    bases: dict[str, set[str]] = {}
    """What a class is derived from: a method of it may stand behind one of theirs."""
    for start, _, end in source.pieces:
        text = source.text[start:end]
        name = next((match[1] for pattern in _NAME if (match := pattern.search(text))), None)
        if name is not None and not re.search(r"\b__global__\b", text):
            named.append((name, words_of(text)))
            if derived := re.search(rf"\b(?:struct|class)\s+{name}\s*(?:final\s*)?:([^{{;]*)\{{", text):
                bases.setdefault(name, set()).update(words_of(derived[1]))
    names: set[str] = set()
    grew = True
    while grew:
        new = {name for name, words in named if words & (LOOKS_AT_THREAD | SYNC_CALLS | functions | names)}
        behind = {base for name in new for base in bases.get(name, ())}
        new = (new | {name for name, _ in named if name in behind}) - names
        names |= new
        grew = bool(new)
    return frozenset(names)


_MEETING = re.compile(r"\bwmma\b|\bnvcuda\b|\bcuda\s*::\s*(?:barrier|pipeline)\b")
"""What of the runtime's, not parsed, makes threads meet: fragments of tensor cores are a warp's."""


def _addressed(name: str, text: str) -> bool:
    """Say whether a function is named without being called or declared."""
    return re.search(rf"\b{name}\b(?!\s*(?:<[^;{{}}()]*>\s*)?\()", ir.plain(text)) is not None


_LAMBDA = re.compile(r"\]\s*(?:__\w+__\s*|inline\s+|constexpr\s+)*__device__\b")


def _lambdas(text: str) -> list[str]:
    """Return the bodies of the lambdas for the device."""
    bodies = []
    for match in _LAMBDA.finditer(text):
        brace = text.find("{", match.end())
        if brace >= 0:
            bodies.append(text[brace : scan.closing(text, brace, "{}")])
    return bodies


_METHOD = re.compile(r"\b(operator\s*\(\s*\)|[A-Za-z_]\w*)\s*(\((?:[^()]|\([^()]*\))*\))\s*(?:noexcept\s*)?(?:->\s*[\w:<>*&\s]+?)?\{")
_NO_METHOD = frozenset(["if", "for", "while", "switch"])
_DECLARED = re.compile(r"\b(?:const\s+)?[A-Za-z_][\w:<>]*[\s*&]+\w+\s*=(?!=)")
_ASSIGNS = re.compile(r"(?<![=!<>])=(?!=)|<<=|>>=|\+\+|--")


def stateful(source: Source) -> frozenset[str]:
    """Return the names of methods that change their object, themselves or by one that they call: they are not const, and assign to more than
    variables that they declare. `operator()` is also that of a lambda that is `mutable`, `operator[]` one that is not const."""
    bodies: list[tuple[str, str]] = []
    for start, _, end in source.pieces:
        text = ir.plain(source.text[start:end])
        if not re.search(r"\b(struct|class|union)\b|::", text):
            continue
        for match in _METHOD.finditer(text):
            if (name := re.sub(r"\s", "", match[1])) not in _NO_METHOD:
                bodies.append((name, text[match.end() : scan.closing(text, match.end() - 1, "{}")]))
    names = {name for name, body in bodies if _ASSIGNS.search(_DECLARED.sub("", body))}
    if re.search(r"\)\s*(?:__\w+__\s*)*mutable\b", source.text):
        names.add("operator()")
    if re.search(r"\boperator\s*\[\s*\]\s*\([^()]*\)\s*(?:noexcept\s*)?\{", source.text):
        names.add("operator[]")
    words = [(name, set(re.findall(r"\w+", body))) for name, body in bodies]
    while new := {name for name, mentioned in words if name not in names and mentioned & names}:
        names |= new
    return frozenset(names)


_CAPTURES_ALL = re.compile(r"\[\s*[&=]\s*[\],]")


def alone(kernel: Function) -> bool:
    """Say whether a lambda of a kernel asks for the thread and does not capture what it names: `[](int i) { return i + threadIdx.x; }`."""
    lambdas = (ir.text_of(e) for e in ir.expressions(kernel.body) if e.kind == "lambda")
    return any(words_of(text.partition("]")[2]) & set(LAUNCH) and not _CAPTURES_ALL.match(text) for text in lambdas)


_DEFAULT = re.compile(rf"\b(\w+)\s*\((?:[^()]|\([^()]*\))*=(?:[^(),]|\([^()]*\))*\b(?:{'|'.join(LAUNCH)})\b")


@dataclass(frozen=True)
class Methods:
    """Where kernels meet classes that depend on the thread."""

    texts: Mapping[str, str]
    """Device function -> its text."""
    names: frozenset[str]
    """The classes."""
    lambdas: bool = False
    """Whether a function for the device that the host writes down, `[=] __device__ (int i) { ... }`, depends on the thread."""
    pointers: bool = False
    """Whether a device function that does is used as a value."""
    defaults: frozenset[str] = frozenset()
    """Functions that ask for the thread in an argument by default, `int f(int i = threadIdx.x)`."""

    @classmethod
    def of(cls, source: Source, device: Sequence[Function], impure: frozenset[str]) -> Methods:
        """Return them for a source; `impure`: device functions that depend on the thread or synchronise."""
        texts: dict[str, str] = {}
        for start, _, end in source.pieces:
            for function in device:
                if start <= function.start < end:
                    texts[function.name] = texts.get(function.name, "") + "\n" + source.text[start:end]
        names = aware(source, impure)
        dependent = LOOKS_AT_THREAD | SYNC_CALLS | impure | names
        lambdas = any(words_of(text) & dependent for text in _lambdas(source.text))
        heads = (source.text[start:brace] for start, brace, _ in source.pieces if brace >= 0)
        defaults = {match[1] for head in heads if any(name in head for name in LAUNCH) for match in _DEFAULT.finditer(head)}
        return cls(texts, names, lambdas, any(_addressed(name, source.text) for name in sorted(impure)), frozenset(defaults))

    def taken(self, kernel: Kernel, body: str, parsed: Function, own: Set[str]) -> str:
        """Return what a kernel calls that its template takes, where such a thing may depend on the thread; else nothing.

        An object of a type of the template that is called, asked by a method or handed on to a function of the program (`own`), or the type itself.
        """
        if not (self.names or self.lambdas or self.pointers):
            return ""
        types = {name for name in parsed.template if re.search(rf"\b(?:class|typename)\b[\s.]*\b{name}\b", kernel.template)}
        mention = re.compile(rf"\b(?:{'|'.join(sorted(types))})\b") if types else None
        if mention is None:
            return ""
        text = ir.plain(body)
        if direct := re.search(rf"({mention.pattern})\s*(?:(?:\(\s*\)|\{{\s*\}})\s*\(|::\s*(?:template\s+)?\w+\s*[(<])", text):
            return direct[1]
        objects = {key: var.name for key, var in (parsed.variables or {}).items() if mention.search(var.type)}
        names = {*objects.values(), *(parameter.name for parameter in kernel.parameters if mention.search(parameter.text))}
        for name in sorted(names):
            if re.search(rf"\b{name}\s*(?:\[[^\[\]]*\]\s*)?(?:\(|(?:\.|->)\s*(?:template\s+)?\w+\s*[(<])|\*\s*{name}\s*\)\s*\(", text):
                return name
        values = {key for key in objects if "*" not in (parsed.variables or {})[key].type}
        for call in (expr for expr in ir.expressions(parsed.body) if expr.kind == "call" and expr.name in own):
            if handed := next((objects[one.var] for part in call.children for one in part.walk() if one.var in values and one.var is not None), ""):
                return handed
        return ""

    def by_default(self, text: str) -> str:
        """Return which function that asks in an argument by default a kernel's text reaches, itself or by device functions; else nothing."""
        words, seen = words_of(text) if self.defaults else set(), set[str]()
        while new := (words & self.texts.keys()) - seen:
            seen |= new
            words = words.union(*(words_of(self.texts[name]) for name in new))
        return next(iter(sorted(words & self.defaults)), "")

    def used(self, text: str) -> str:
        """Return which of the classes a kernel's text mentions, itself or in a device function that it mentions; else nothing."""
        seen: set[str] = set()
        todo = [text]
        while todo:
            text = todo.pop()
            words = words_of(text)
            if hit := sorted(words & self.names):
                return hit[0]
            if runtime := _MEETING.search(text):
                return runtime[0]
            new = (words & self.texts.keys()) - seen
            seen |= new
            todo += [self.texts[name] for name in new]
        return ""


def pointed(kernel: Function, device: Sequence[Function], source: Source) -> str:
    """Return what a kernel, or a device function that it reaches, calls by a pointer, as written; nothing where there is no such call."""
    by_name: dict[str, list[Function]] = {}
    for function in device:
        by_name.setdefault(function.name, []).append(function)
    seen, todo = {kernel.name}, [kernel]
    while todo:
        function = todo.pop()
        if by := _pointed(function, source):
            return by
        called = {e.name for e in ir.expressions(function.body) if e.kind == "call" and e.name in by_name} - seen
        seen |= called
        todo += [one for name in called for one in by_name[name]]
    return ""


def _pointed(function: Function, source: Source) -> str:
    """Return what a function calls by a pointer; not its methods and its own lambdas."""
    declared = (s for s in ir.walk(function.body) if isinstance(s, ir.Declare) and s.init is not None)
    own = {s.var.key for s in declared if s.init is not None and any(expr.kind == "lambda" for expr in s.init.walk())}
    for call in ir.expressions(function.body):
        callee = call.parts[0] if call.kind == "call" and call.parts else ""
        if isinstance(callee, str) or not _parenthesis(call):
            continue
        by_variable = callee.kind == "name" and callee.var is not None and call.name != "operator()" and callee.var not in own
        by_member = callee.kind == "member" and callee.name.isidentifier() and re.search(_POINTER.format(callee.name), source.text)
        if by_variable or by_member or callee.kind in ("index", "paren", "unary"):
            return _text(callee)
    return ""


def _parenthesis(call: ir.Expr) -> bool:
    """Say whether a call is written as one: an operator between values of a template's type is a call, too, whose first part is the left one."""
    return "".join(part if isinstance(part, str) else _text(part) for part in call.parts[1:]).lstrip().startswith("(")


_POINTER = r"\(\s*\*\s*{0}\s*\)\s*\(|\b\w[\w:<>]*\s+{0}\s*[;,=]"
"""A declaration of a pointer to a function, or of a value of some type, by its name."""


def _text(expr: ir.Expr) -> str:
    return "".join(part if isinstance(part, str) else _text(part) for part in expr.parts)

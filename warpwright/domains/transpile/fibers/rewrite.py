"""Tier F: the kernel's own text, run by one fiber for each CUDA thread (runtime/run/fibers.hpp).

Little is rewritten: launches become calls, dynamic shared memory becomes a pointer, and each kernel is followed by a function `NAME_launch`
with the kernel's own parameters. Everything else is C++ already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from warpwright.domains.transpile.errors import Refusal
from warpwright.domains.transpile.fibers import waiting
from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.scan import Kernel, LaunchSite, Parameter, Token
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text import instantiations
from warpwright.domains.transpile.frontend.text.edits import Edit


def launch_edits(source: Source) -> list[Edit]:
    """Turn `k<T><<<grid, block>>>(` into `k_launch<T>(ww::Launch(grid, block), `; a callee that is no known kernel runs on fibers."""
    names = {kernel.name for kernel in source.kernels}
    captures = "cudaStreamBeginCapture" in source.text
    edits = []
    for site in source.launches:
        base = site.callee.rpartition("::")[2]
        instance = f"<{site.template_arguments}>" if site.template_arguments else ""
        tail = source.text[site.end + 1 :].lstrip()
        comma = "" if tail.startswith(")") else ", "
        device = on_device(source, site)
        if captures or device:  # kept, with its arguments as they are now: if a stream is being captured; until the block has ended
            function = f"{site.callee}_launch{instance}(ww_launch" if base in names else f"ww::launch_any(ww_launch, {site.callee}{instance}"
            kept = f"[](const ww::Launch& ww_launch, auto&... ww_arguments) {{ {function}, ww_arguments...); }}"
            kept = kept if base in names else kept.replace("[]", "[=]", 1)
            keeper = "ww::from_device" if device else "ww::go"
            edits.append(Edit(site.start, site.end + 1, f"{keeper}({kept}, ww::Launch({site.configuration}){comma}"))
        elif base in names:
            edits.append(Edit(site.start, site.end + 1, f"{site.callee}_launch{instance}(ww::Launch({site.configuration}){comma}"))
        else:
            edits.append(Edit(site.start, site.end + 1, f"ww::launch_any(ww::Launch({site.configuration}), {site.callee}{instance}{comma}"))
    return edits


def on_device(source: Source, site: LaunchSite) -> bool:
    """Say whether a launch stands in a kernel or in a device function."""
    if site.inside_kernel:
        return True
    piece = next((piece for piece in source.pieces if piece.start <= site.start < piece.end), None)
    return piece is not None and piece.brace >= 0 and "__device__" in source.text[piece.start : piece.brace]


def refuse_launches(source: Source, start: int, end: int, what: str) -> None:
    """Raise for a launch in a function that is written anew."""
    for site in source.launches:
        if start <= site.start < end:
            file, line = source.place(site.start)
            why = f"a kernel launches {site.callee}, which {what} does not follow"
            raise Refusal(file, line, "dynamic-parallelism", why, "launch it from the host")


_ABOUT_KERNEL = re.compile(r"cuda(Func|Occupancy)\w+$")


def value_edits(source: Source) -> list[Edit]:
    """Give calls such as `cudaFuncSetAttribute(k, ...)` the kernel's launch function: the kernel itself may not be in the output.

    Where a kernel is a value otherwise, as in `pointer = &k`, it is entered with its launch function."""
    names = {kernel.name for kernel in source.kernels}
    defined = {kernel.name for kernel in source.kernels if kernel.defined}
    tokens, edits, about = source.tokens, [], set()
    for index, token in enumerate(tokens):
        if not _ABOUT_KERNEL.match(token.text):
            continue
        depth, at = 0, index
        while (at := at + 1) < len(tokens) and tokens[at].text != ";":
            depth += (tokens[at].text == "(") - (tokens[at].text == ")")
            if depth <= 0 and tokens[at].text == ")":
                break
            if tokens[at].text in names:
                about.add(tokens[at].start)
                edits.append(Edit(tokens[at].start, tokens[at].end, f"{tokens[at].text}_launch"))
    for first, last in values(source):
        if tokens[last].start not in about and tokens[first + (tokens[first].text == "&")].start not in about:
            start, end = tokens[first].start, tokens[last].end
            name = source.text[start:end].lstrip("& ")
            base, angle, rest = name.partition("<")
            launcher = f"{base.rstrip()}_launch{angle}{rest}"
            here = base.rstrip().rpartition("::")[2] in defined  # another source may have its launcher only
            kernel = name if here else f"(decltype(&{name})){launcher}"
            edits.append(Edit(start, end, f"ww::value_of({kernel}, {launcher})"))
    return edits


_BEFORE_A_VALUE = {"(", ",", "=", "{", "return", "?", ":"}
_AFTER_A_VALUE = {")", ",", ";", "}", ":"}


def values(source: Source) -> list[tuple[int, int]]:
    """Return the first and last token of each place where the host names a kernel as a value (`&copy<float>`), the `&` with it."""
    names = {kernel.name for kernel in source.kernels}
    tokens = source.tokens
    if not any(token.text in names for token in tokens):
        return []
    kernels = [(kernel.start, kernel.end) for kernel in source.kernels]
    spans = []
    for index, token in enumerate(tokens):
        if token.text not in names or any(start <= token.start < end for start, end in kernels):
            continue
        last = index
        if index + 1 < len(tokens) and tokens[index + 1].text == "<":
            last = scan.angles(tokens, index + 1) or index
        first = index
        while first >= 2 and tokens[first - 1].text == "::" and tokens[first - 2].kind == "word":
            first -= 2
        first -= tokens[first - 1].text == "&" and tokens[first - 2].text in {*_BEFORE_A_VALUE, ")"}
        before, after = tokens[first - 1].text, tokens[last + 1].text if last + 1 < len(tokens) else ""
        cast = before == ")" and tokens[first - 2].text == "*"
        if (before in _BEFORE_A_VALUE or cast) and after in _AFTER_A_VALUE and not _declares(source, token):
            spans.append((first, last))
    return spans


def _declares(source: Source, name: Token) -> bool:
    """Say whether a name may be a variable of the function, or a function of a device, that it stands in."""
    piece = next((piece for piece in source.pieces if piece.start <= name.start < piece.end), None)
    if piece is None:
        return True
    text = source.text[piece.start : piece.end]
    head = source.text[piece.start : piece.brace] if piece.brace >= 0 else ""
    if "__device__" in head and "__host__" not in head:
        return True
    return re.search(rf"[\w>](\s+|\s*[*&]+\s*){name.text}\s*[=;,)\[({{]", re.sub(r"\b(return|case|else|throw)\b", "(", text)) is not None


_STATIC_VARIABLE = re.compile(r"\bstatic\s+(?=(?:__constant__|__device__)\b(?:[^(){};=\[]|\[[^\]]*\]|(?:__align__|alignas)\s*\([^()]*\))*[;={])")


def with_named_variables(text: str) -> str:
    """Make static constants and global variables of device code known by name: cuModuleGetGlobal finds them in a GPU's module, too."""
    return _STATIC_VARIABLE.sub("", text)


def with_linkage(text: str, source: Source) -> str:
    """Make the launch functions of kernels that are not static visible to the program's other sources."""
    original = source.text
    instantiated = {one.name for one in instantiations.found(source)} | _only_declared(source)
    for kernel in source.kernels:
        head = original[max(kernel.start, original.rfind("\n", 0, kernel.start)) : kernel.open_parenthesis]
        shared = not kernel.template or kernel.name in instantiated
        if shared and not re.search(r"\b(static|inline|__forceinline__)\b", head):
            text = re.sub(rf"\bstatic (void {kernel.name}_launch\()", r"\1", text)
    return text


def _only_declared(source: Source) -> set[str]:
    """Return the kernels that this source declares and another one defines."""
    return {kernel.name for kernel in source.kernels} - {kernel.name for kernel in source.kernels if kernel.defined}


def dynamic_shared_edits(source: Source) -> list[Edit]:
    """Turn `extern __shared__ T name[];` into a pointer to the launch's dynamic shared memory."""
    text, tokens, edits = source.text, source.tokens, []
    for index, token in enumerate(tokens):
        if token.text != "extern":
            continue
        end = index
        while end < len(tokens) and tokens[end].text not in (";", "{"):
            end += 1
        words = [t.text for t in tokens[index:end]]
        if end == len(tokens) or tokens[end].text != ";" or "__shared__" not in words or words[-1] != "]":
            continue
        opening = min(i for i in range(index, end) if tokens[i].text == "[")
        kind = re.sub(
            r"\bextern\b|\b__shared__\b|\bvolatile\b|(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)|__attribute__\s*\(\(.*?\)\)",
            "",
            text[token.start : tokens[opening - 1].start],
        )
        kind, name = " ".join(kind.split()), tokens[opening - 1].text
        rows = text[tokens[scan.matching(tokens, opening, "[", "]")].end : tokens[end].start].strip()  # of `shared[][72]`
        inside = any(t.text == "{" for t in tokens[:index]) and _depth(tokens, index) > 0
        volatile = "volatile " if "volatile" in words else ""
        pointer = f"{volatile}{kind}*" if not rows else f"{volatile}{kind}(*){rows}"
        if inside and rows:
            edits.append(Edit(token.start, tokens[end].end, f"{volatile}{kind} (*const {name}){rows} = ({pointer})ww::dynamic_shared();"))
        elif inside:
            edits.append(Edit(token.start, tokens[end].end, f"{pointer} const {name} = ({pointer})ww::dynamic_shared();"))
        else:
            definition = f"\n#define {name} (({pointer})ww::dynamic_shared())\n"
            edits += [Edit(token.start, tokens[end].end, definition), *_members_kept(source, name, end, definition)]
    return edits


def _members_kept(source: Source, name: str, after: int, definition: str) -> list[Edit]:
    """Take a macro back for the functions in which its name is a member's alone, as `info.name`."""
    places = [(t.start, source.tokens[at - 1].text in (".", "->")) for at, t in enumerate(source.tokens) if at > after and t.text == name]
    edits: list[Edit] = []
    for start, brace, end in source.pieces:
        kinds = {member for at, member in places if start <= at < end}
        if brace >= 0 and kinds == {True}:
            edits += [Edit(start, start, f"\n#undef {name}\n"), Edit(end, end, definition)]
    return edits


def _depth(tokens: Sequence[Token], index: int) -> int:
    """Return how many braces that are not of a namespace or `extern "C"` are open at the index."""
    stack: list[bool] = []
    function = True
    for at in range(index):
        word = tokens[at].text
        if word == "namespace" or (word == "extern" and tokens[at + 1].kind == "string" and tokens[at + 2].text == "{"):
            function = False
        elif word == "{":
            stack.append(function)
            function = True
        elif word == "}" and stack:
            stack.pop()
        elif word == ";":
            function = True
    return sum(stack)


def friend_edits(source: Source) -> list[Edit]:
    """Make public what is in a class that has a kernel for its friend, since several functions, with names of their own, come of a kernel."""
    tokens, edits = source.tokens, {}
    for friend in source.friends:
        edits[friend.start] = Edit(friend.start, friend.end, "")
        first = next(at for at, token in enumerate(tokens) if token.start >= friend.start)
        opening = _opening(tokens, first)
        edits[tokens[opening].end] = Edit(tokens[opening].end, tokens[opening].end, " public:")
        for at in range(opening, scan.matching(tokens, opening, "{", "}")):
            if tokens[at].text in ("private", "protected") and tokens[at + 1].text == ":" and _opening(tokens, at) == opening:
                edits[tokens[at].start] = Edit(tokens[at].start, tokens[at].end, "public")
    return list(edits.values())


def _opening(tokens: Sequence[Token], at: int) -> int:
    """Return the brace around an index; 0 where there is none."""
    depth = 0
    while at > 0:
        at -= 1
        depth += (tokens[at].text == "}") - (tokens[at].text == "{")
        if depth < 0:
            break
    return at


def launch_head(kernel: Kernel) -> str:
    """Return the head of the function that launches a kernel, up to its body."""
    parameters = ", ".join([f"const ww::Launch& {shape_name(kernel)}", *(p.text for p in _visible(kernel))])
    template = f"{kernel.template} " if kernel.template else ""
    return f"{template}static void {kernel.name}_launch({parameters})"


def shape_name(kernel: Kernel) -> str:
    """Return what a kernel's launch function calls the launch: not as one of the kernel's own parameters is called."""
    return "launch_shape" if any(p.name == "launch" for p in kernel.parameters) else "launch"


def call(kernel: Kernel) -> str:
    """Return the call of a kernel with its own parameters."""
    instance = f"<{', '.join(kernel.template_names)}>" if kernel.template_names else ""
    arguments = ", ".join(p.name + ("..." if p.pack else "") for p in _visible(kernel))
    return f"{kernel.name}{instance}({arguments})"


def _visible(kernel: Kernel) -> list[Parameter]:
    """Return the parameters; one that is called as the kernel, which would hide it from the call, with another name."""
    names = {p.name for p in kernel.parameters}
    other = next(name for name in (f"{kernel.name}{'_' * count}" for count in range(1, 99)) if name not in names)
    return [scan.renamed(p, other) if p.name == kernel.name else p for p in kernel.parameters]


def launch_function(kernel: Kernel, first: str = "") -> str:
    """Return the function that runs a kernel on fibers, and does something `first`; of a declaration, the declaration of it."""
    if not kernel.defined:
        return f"\n{launch_head(kernel)};"
    first = first and f"  {first.format(shape_name(kernel))}\n"
    return f"\n{launch_head(kernel)} {{\n{first}  ww::run_fibers({shape_name(kernel)}, [&] {{ {call(kernel)}; }});\n}}"


def device_edits(source: Source, replaced: Mapping[int, str]) -> list[Edit]:
    """Return the edits that give each kernel its launch function. `replaced`: start of a kernel -> text of a better tier."""
    edits = []
    blocks = scan.c_blocks(source.tokens)
    named = {source.tokens[at].text for span in values(source) for at in range(span[0], span[1] + 1)}
    for kernel in source.kernels:
        better = replaced.get(kernel.start)
        replacement = launch_function(kernel, waiting.TOGETHER if waiting.waits(source, kernel) else "") if better is None else better
        if better is not None and kernel.name in named:  # a pointer to it says which kernel is meant
            replacement = f"{source.text[kernel.start : kernel.head_end]} {{}}\n{better}"
        declared = f"{launch_head(kernel)}; " if better is None and any(kernel.start <= site.start < kernel.end for site in source.launches) else ""
        if any(start < kernel.start < end for start, end in blocks):  # templates have no C linkage
            replacement = f'\nextern "C++" {{\n{replacement}\n}}\n'
            declared = declared and f'extern "C++" {{ {declared}}} '
        if declared and kernel.defined:  # for the kernel that launches itself
            edits.append(Edit(kernel.start, kernel.start, declared))
        if better is not None:
            edits.append(Edit(kernel.start, kernel.end, replacement))
        else:
            edits.append(Edit(kernel.end, kernel.end, replacement))
            edits += _named(kernel)
    return edits


def _named(kernel: Kernel) -> list[Edit]:
    """Rewrite the parameter list where a parameter had no name."""
    if not any(p.name.startswith("unnamed_") for p in kernel.parameters):
        return []
    inside = ", ".join(p.text for p in kernel.parameters)
    return [Edit(kernel.open_parenthesis, kernel.head_end, f"({inside})")]

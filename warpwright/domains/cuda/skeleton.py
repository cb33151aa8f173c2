"""What a user has to write beside a CUDA source, begun for him: a host function where there is none, and a task file. Both are shown in errors."""

from __future__ import annotations

import re

from warpwright.domains.cuda import unit
from warpwright.domains.transpile.frontend import scan

TENSORS = {
    "float": "float32", "double": "float64", "int": "int32", "unsigned": "int32", "unsigned int": "int32", "char": "int8", "signed char": "int8",
    "unsigned char": "uint8", "short": "int16", "long long": "int64", "half": "float16", "__half": "float16", "__nv_bfloat16": "bfloat16",
}  # fmt: skip
"""C type that a pointer leads to -> dtype."""

_POINTER = re.compile(r"\b(const|restrict|__restrict__|__restrict|volatile)\b|\*")


def entry(text: str) -> str:
    """Return a host function that launches the first kernel of a source which has none; "" where there is no plain kernel."""
    tokens = scan.tokens(unit.without_directives(text))
    kernels = [kernel for kernel in scan.kernels(text, tokens) if kernel.defined and not kernel.template and not kernel.scope]
    if not kernels:
        return ""
    [kernel, *_] = kernels
    parameters = ", ".join(parameter.text for parameter in kernel.parameters)
    names = ", ".join(parameter.name for parameter in kernel.parameters)
    count = next((p.name for p in kernel.parameters if _POINTER.search(p.text) is None), "n")
    launch = f"{kernel.name}<<<({count} + 255) / 256, 256>>>({names});  // its own grid and block"
    return f'extern "C" void run({parameters}) {{\n    {launch}\n}}\n'


def task(text: str) -> str:
    """Return a task file for the first host function of a source, to be filled in; "" for a source without one."""
    for piece in scan.pieces(tokens := scan.tokens(unit.without_directives(text))):
        name = next(iter(unit.entries(text)), "")
        words = [t for t in tokens if piece.start <= t.start < piece.brace]
        at = next((i for i, t in enumerate(words) if t.text == name and i + 1 < len(words) and words[i + 1].text == "("), -1)
        if not name or at < 0:
            continue
        inside = text[words[at + 1].end : words[scan.matching(words, at + 1)].start]
        parameters = [scan.parameter(part, index) for index, part in enumerate(scan.split_commas(inside)) if part and part != "void"]
        return _task(name, parameters)
    return ""


def _task(name: str, parameters: list[scan.Parameter]) -> str:
    pointers = [one for one in parameters if _POINTER.sub("", one.text) != one.text and "*" in one.text]
    inputs = [one for one in pointers if re.search(r"\bconst\b", one.text)] or pointers[:-1]
    outputs = [one for one in pointers if one not in inputs]
    tensors = ", ".join(f"torch.randint(0, 100, (N, N){kind})" if "int" in (kind := _dtype(one)) else f"torch.randn(N, N{kind})" for one in inputs)
    arguments = ", ".join(one.name for one in inputs)
    first = inputs[0].name if inputs else "torch.empty(N, N)"
    whole = re.compile(r"\b(int|long|short|unsigned|size_t|u?int\d+_t)\b")
    calls = ", ".join(one.name if one in pointers else f"{first}.shape[0]" if whole.search(one.text) else "1.0" for one in parameters)
    results = ", ".join(one.name for one in outputs) or first
    lines = [
        '"""What the kernel computes, in words."""', "", "import torch", "", "N = 1024", "", "",
        "def get_inputs():", f"    return [{tensors}]", "", "",
        f"def reference({arguments}):", "    return ...  # the same in torch: it says what is right", "", "",
        f"def launch(kernel, {arguments}):",
        *(f"    {one.name} = torch.empty_like({first}{_dtype(one)})" for one in outputs),
        f"    kernel.{name}({calls})", f"    return {results}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _dtype(pointer: scan.Parameter) -> str:
    kind = " ".join(_POINTER.sub(" ", pointer.text.replace("[]", "")).split()[:-1])
    dtype = TENSORS.get(kind, "float32")
    return "" if dtype == "float32" else f", dtype=torch.{dtype}"

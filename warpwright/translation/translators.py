"""The translators that are judged: a chat model, or the deterministic compiler, whose output gets a function of the item's prototype."""

from __future__ import annotations

import re

from warpwright.domains import transpile
from warpwright.errors import ChatError, WarpwrightError
from warpwright.llm.chat import Chat, Message
from warpwright.translation.c_source import C_NAMES
from warpwright.translation.items import Item
from warpwright.translation.judge.build import Translation

SYSTEM = (
    "You translate CUDA kernels into fast C for a CPU with many cores and wide vectors. Answer with one C11 function in one code block. "
    "OpenMP pragmas are welcome. Keep the given prototype."
)


def prompt(item: Item, start: str = "") -> list[Message]:
    """Return the chat messages that ask for a translation; `start` is a right one to improve."""
    buffers = "\n".join(f"- {b.name}: {b.role}, {b.dtype}, {b.size} elements" for b in item.buffers)
    launches = "\n".join(f"- {x.kernel}<<<{x.grid}, {x.block}, {x.shared}>>>({', '.join(x.args)})" for x in item.launches)
    parts = [f"CUDA:\n```cuda\n{item.cuda.strip()}\n```"]
    if launches:
        parts.append(f"Launches, in this order:\n{launches}")
    parts += [f"Prototype:\n```c\n{item.prototype};\n```", f"Buffers:\n{buffers}"]
    if start:
        parts.append(f"A right translation to start from; make it faster:\n```cpp\n{start.strip()}\n```")
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "\n\n".join(parts)}]


def code_of(answer: str, entry: str) -> str:
    """Return the code in an answer: the longest code block that mentions the function, else the longest, else the whole text."""
    blocks = re.findall(r"```[\w+]*\n(.*?)```", answer, re.S)
    fitting = [block for block in blocks if re.search(rf"\b{re.escape(entry)}\s*\(", block)]
    return max(fitting or blocks or [answer], key=len)


def ask(chat: Chat, item: Item, start: str = "") -> Translation:
    """Return a model's translation."""
    source = f"{chat.name}{'+compiler' if start else ''}"
    try:
        code = code_of(chat.ask(prompt(item, start)), item.entry)
    except ChatError as error:
        return Translation(source, "", failure=f"no answer: {error.message}")
    return Translation(source, code)


def compile_item(item: Item) -> Translation:
    """Return the deterministic compiler's translation."""
    if item.unwired:
        return Translation("compiler", "", failure=f"not wired: {item.unwired}")
    try:
        program = transpile.compile_text(item.cuda, f"{item.name}.cu")
    except WarpwrightError as error:
        return Translation("compiler", "", failure=f"refused: {error}")
    missing = [launch.kernel for launch in item.launches if launch.kernel not in program.exports]
    if missing:
        return Translation("compiler", "", failure=f"the compiler exports no kernel {missing[0]}")
    return Translation("compiler", _with_prototype(item, program.source, dict(program.exports)), "cpp")


def _with_prototype(item: Item, source: str, exports: dict[str, int]) -> str:
    """Return the compiler's C++ followed by a function of the item's prototype that makes its launches."""
    arguments = item.prototype.replace("restrict ", "__restrict__ ").replace("int32_t", "int")
    lines = ["", "#include <cstdlib>", "#include <cstring>", f'extern "C" {arguments} {{']
    lines += [_allocated(name, dtype, size) for name, (dtype, size) in item.temporaries.items()]
    padded = [buffer for buffer in item.buffers if buffer.name in item.padded]
    for buffer in padded:
        lines.append(_allocated(f"padded_{buffer.name}", buffer.dtype, item.padded[buffer.name]))
        lines.append(f"  memcpy(padded_{buffer.name}, {buffer.name}, {buffer.size} * sizeof *{buffer.name});")
    for launch in item.launches:
        shape = ", ".join(map(str, (*launch.grid, *launch.block)))
        values = ", ".join(f"(void*)&{'padded_' * (name in item.padded)}{name}" for name in launch.args)
        lines.append(f"  {{ unsigned shape[6] = {{{shape}}}; void* values[] = {{{values}}}; ")
        lines.append(f"    if (ww_run_{exports[launch.kernel]}(shape, {launch.shared}, values)) abort(); }}")
    lines += [f"  memcpy({b.name}, padded_{b.name}, {b.size} * sizeof *{b.name});" for b in padded if b.role == "output"]
    return source + "\n".join([*lines, "}", ""])


def _allocated(name: str, dtype: str, size: int) -> str:
    kind, rounded = C_NAMES[dtype], f"({size} * sizeof({C_NAMES[dtype]}) + 63) / 64 * 64"
    return f"  static {kind}* {name} = ({kind}*)memset(aligned_alloc(64, {rounded}), 0, {rounded});"

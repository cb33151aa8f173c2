"""Where candidates come from: a chat model, or the deterministic compiler, whose output stands behind the same prototype."""

from __future__ import annotations

import re
from collections.abc import Sequence

from warpwright.domains import transpile
from warpwright.errors import WarpwrightError
from warpwright.llm import Chat, ChatError, Message
from warpwright.translation.items import Item
from warpwright.translation.judge.c_text import behind_prototype
from warpwright.translation.judge.judge import Answer

SYSTEM = (
    "You translate CUDA kernels into fast C for a CPU with many cores and wide vectors. Answer with one C11 function in one code block. "
    "OpenMP pragmas are welcome. Keep the given prototype."
)


def prompt(item: Item, start: str = "") -> list[Message]:
    """Return the question for an item; `start` is a right translation to begin from."""
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
    """Return the code of an answer: the code block that defines the function, the longest if several do; else the whole text."""
    blocks = re.findall(r"```[\w+]*\n(.*?)```", answer, re.S)
    fitting = [block for block in blocks if re.search(rf"\b{re.escape(entry)}\s*\(", block)]
    return max(fitting or blocks or [answer], key=len)


def ask(chat: Chat, item: Item, start: str = "") -> Answer:
    """Return a model's candidate."""
    source = f"{chat.name}{'+compiler' if start else ''}"
    try:
        code = code_of(chat.ask(prompt(item, start)), item.entry)
    except ChatError as error:
        return Answer(source, "", failure=f"no answer: {error.message}")
    return Answer(source, code)


def compile_item(item: Item) -> Answer:
    """Return the deterministic compiler's candidate."""
    if item.unwired:
        return Answer("compiler", "", failure=f"not wired: {item.unwired}")
    try:
        program = transpile.compile_text(item.cuda, f"{item.name}.cu")
    except WarpwrightError as error:
        return Answer("compiler", "", failure=f"refused: {error}")
    missing = [launch.kernel for launch in item.launches if launch.kernel not in program.exports]
    if missing:
        return Answer("compiler", "", failure=f"the compiler exports no kernel {missing[0]}")
    return Answer("compiler", behind_prototype(item, program.source, dict(program.exports)), "cpp")


def tiers(item: Item) -> Sequence[str]:
    """Return the tier of every kernel of an item, as the compiler chose; empty where it refuses."""
    try:
        return tuple(info.tier for info in transpile.compile_text(item.cuda, f"{item.name}.cu").kernels.values())
    except WarpwrightError:
        return ()

"""A schedule as text: what differs from the compiler's, so that it can be read, kept in the archive and applied to the same cubin again."""

from __future__ import annotations

import json
from typing import Any

from warpwright.domains.sass import control, hints
from warpwright.domains.sass.edits import unchanged_meaning
from warpwright.domains.sass.kernel import Kernel, Schedule
from warpwright.domains.sass.renaming import renamed_as, with_registers
from warpwright.errors import UsageError

VERSION = 1


def write(schedule: Schedule) -> str:
    """Return the schedule's text."""
    kernel = schedule.kernel
    moved = {place: index for place, index in enumerate(schedule.order) if place != index}
    changed = {index: word for index, word in zip(schedule.order, schedule.words, strict=True) if word != kernel.words[index]}
    controls = {str(index): str(control.decode(word)) for index, word in sorted(changed.items())}
    order = {str(place): index for place, index in moved.items()}
    document = {"version": VERSION, "kernel": kernel.name, "original": kernel.digest, "order": order, "control": controls}
    hinted = {str(index): hint for index, word in sorted(changed.items()) if (hint := _hint(kernel, index, word))}
    if hinted:
        document["hints"] = hinted
    if kernel.compiled is not None:
        pairs = zip(kernel.words, kernel.compiled.words, strict=True)
        words = {str(index): f"{word:032x}" for index, (word, compiled) in enumerate(pairs) if word != compiled}
        document |= {"registers": kernel.registers, "compiled": kernel.compiled.digest, "words": words}
    return json.dumps(document, indent=1) + "\n"


def _hint(kernel: Kernel, index: int, word: int) -> str:
    """Return the hint of a word, "" where it is the compiler's or there is none."""
    instruction, before = kernel.instructions[index], kernel.words[index]
    differs = (word ^ before) & hints.mask(instruction, before, kernel.cubin.arch)
    return str(hints.read(word, instruction)) if differs else ""


def _word(kernel: Kernel, index: int, controls: dict[str, str], hinted: dict[str, str]) -> int:
    """Return an instruction's word with the control fields and the hint that a text gives it."""
    word, name = kernel.words[index], str(index)
    if name in controls:
        word = control.encode(word, control.parse(controls[name]))
    if name in hinted:
        if not hints.mask(kernel.instructions[index], word, kernel.cubin.arch):
            raise ValueError(f"instruction {index} takes no hints")
        word = hints.write(word, kernel.instructions[index], hints.parse(hinted[name]))
    return word


def kernel_of(document: dict[str, Any], compiled: Kernel) -> Kernel:
    """Return the kernel that a schedule's document is of: the compiler's, or that with the registers that it says."""
    if document.get("compiled") != compiled.digest:
        return compiled
    if "words" not in document:
        return with_registers(compiled, int(document["registers"]))
    return renamed_as(compiled, {int(index): int(word, 16) for index, word in document["words"].items()}, int(document["registers"]))


def read(text: str, kernel: Kernel) -> Schedule:
    """Return the schedule that a text describes; raise UsageError for another kernel's text, or one that changes what the code does.

    One of renamed registers is read with the compiler's kernel too: it says which words have others.
    """
    try:
        document = json.loads(text)
        if kernel.compiled is None:
            kernel = kernel_of(document, kernel)
        original, order, controls = document["original"], list(range(len(kernel.words))), dict(document["control"])
        for place, index in document["order"].items():
            order[int(place)] = int(index)
        words = [_word(kernel, index, controls, document.get("hints", {})) for index in order]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UsageError(f"expected the text of a schedule, saw {text[:60]!r}: {error}", "give what `warpwright optimize` wrote") from error
    if original != kernel.digest:
        raise UsageError(f"expected a schedule of {kernel.name} ({kernel.digest}), saw one of {original}", "give the cubin that it was made for")
    schedule = Schedule(kernel, tuple(order), tuple(words))
    if sorted(order) != list(range(len(order))) or not unchanged_meaning(schedule):
        raise UsageError("expected a schedule that permutes the instructions of each block, saw another", "give what `warpwright optimize` wrote")
    return schedule

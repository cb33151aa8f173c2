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
    """Return the schedule's text: JSON, indented by one, written here because a search writes hundreds a second."""
    kernel = schedule.kernel
    changed = sorted((index, word) for index, word in zip(schedule.order, schedule.words, strict=True) if word != kernel.words[index])
    order = [f'"{place}": {index}' for place, index in enumerate(schedule.order) if place != index]
    controls = [f'"{index}": "{control.text_of(word >> control.SHIFT & control.FIELDS)}"' for index, word in changed]
    hinted = [f'"{index}": "{hint}"' for index, word in changed if (hint := _hint(kernel, index, word))]
    fields = [f'"version": {VERSION}', f'"kernel": {json.dumps(kernel.name)}', f'"original": "{kernel.digest}"']
    fields += [f'"order": {_object(order)}', f'"control": {_object(controls)}']
    if hinted:
        fields.append(f'"hints": {_object(hinted)}')
    if kernel.compiled is not None:
        pairs = zip(kernel.words, kernel.compiled.words, strict=True)
        words = [f'"{index}": "{word:032x}"' for index, (word, compiled) in enumerate(pairs) if word != compiled]
        fields += [f'"registers": {kernel.registers}', f'"compiled": "{kernel.compiled.digest}"', f'"words": {_object(words)}']
    return "{\n " + ",\n ".join(fields) + "\n}\n"


def _object(pairs: list[str]) -> str:
    return "{\n  " + ",\n  ".join(pairs) + "\n }" if pairs else "{}"


def _hint(kernel: Kernel, index: int, word: int) -> str:
    """Return the hint of a word, "" where it is the compiler's or there is none."""
    differs = (word ^ kernel.words[index]) & ~control.MASK
    instruction = kernel.instructions[index]
    return str(hints.read(word, instruction)) if differs & hints.mask(instruction, kernel.words[index], kernel.cubin.arch) else ""


def _words(kernel: Kernel, controls: dict[str, str], hinted: dict[str, str]) -> list[int]:
    """Return the instructions' words, in the original order, with the control fields and the hints that a text gives them."""
    words = list(kernel.words)
    for name, fields in controls.items():
        words[int(name)] = control.encode(words[int(name)], control.parse(fields))
    for name, hint in hinted.items():
        index = int(name)
        if not hints.mask(kernel.instructions[index], words[index], kernel.cubin.arch):
            raise ValueError(f"instruction {index} takes no hints")
        words[index] = hints.write(words[index], kernel.instructions[index], hints.parse(hint))
    return words


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
        known = _words(kernel, controls, document.get("hints", {}))
        words = [known[index] for index in order]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UsageError(f"expected the text of a schedule, saw {text[:60]!r}: {error}", "give what `warpwright optimize` wrote") from error
    if original != kernel.digest:
        raise UsageError(f"expected a schedule of {kernel.name} ({kernel.digest}), saw one of {original}", "give the cubin that it was made for")
    schedule = Schedule(kernel, tuple(order), tuple(words))
    if sorted(order) != list(range(len(order))) or not unchanged_meaning(schedule):
        raise UsageError("expected a schedule that permutes the instructions of each block, saw another", "give what `warpwright optimize` wrote")
    return schedule

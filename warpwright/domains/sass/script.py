"""A schedule as text: what differs from the compiler's, so that it can be read, kept in the archive and applied to the same cubin again."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from warpwright.domains.sass.code import control, hints
from warpwright.domains.sass.code.kernel import Kernel, Schedule
from warpwright.domains.sass.editing.edits import unchanged_meaning
from warpwright.domains.sass.editing.renaming import renamed_as, with_registers
from warpwright.errors import UsageError

VERSION = 1


def write(schedule: Schedule) -> str:
    """Return the schedule's text: JSON, indented by one, written here because a search writes hundreds a second."""
    kernel = schedule.kernel
    words = list(kernel.words)
    for index, word in zip(schedule.order, schedule.words, strict=True):
        words[index] = word
    pairs = list(zip(words, kernel.words, strict=True))
    shift, fields_bits, text_of = control.SHIFT, control.FIELDS, control.text_of
    order = [f'"{place}": {index}' for place, index in enumerate(schedule.order) if place != index]
    controls = [f'"{index}": "{text_of(word >> shift & fields_bits)}"' for index, (word, before) in enumerate(pairs) if word != before]
    hinted = [f'"{index}": "{hint}"' for index in _hintable(kernel) if (hint := _hint(kernel, index, words[index]))]
    fields = [f'"version": {VERSION}', f'"kernel": {json.dumps(kernel.name)}', f'"original": "{kernel.digest}"']
    fields += [f'"order": {_object(order)}', f'"control": {_object(controls)}']
    if hinted:
        fields.append(f'"hints": {_object(hinted)}')
    if kernel.compiled is not None:
        fields += [f'"registers": {kernel.registers}', f'"compiled": "{kernel.compiled.digest}"', f'"words": {_renamed(kernel)}']
    return "{\n " + ",\n ".join(fields) + "\n}\n"


def _object(pairs: list[str]) -> str:
    return "{\n  " + ",\n  ".join(pairs) + "\n }" if pairs else "{}"


@lru_cache(2)
def _renamed(kernel: Kernel) -> str:
    """Return the words in which a kernel differs from the compiler's."""
    assert kernel.compiled is not None
    pairs = zip(kernel.words, kernel.compiled.words, strict=True)
    return _object([f'"{index}": "{word:032x}"' for index, (word, compiled) in enumerate(pairs) if word != compiled])


@lru_cache(4)
def _hintable(kernel: Kernel) -> tuple[int, ...]:
    """Return the instructions that have hints to the caches."""
    every = zip(kernel.instructions, kernel.words, strict=True)
    return tuple(one.index for one, word in every if hints.mask(one, word, kernel.cubin.arch))


def _hint(kernel: Kernel, index: int, word: int) -> str:
    """Return the hint of a word, "" where it is the compiler's or there is none."""
    differs, instruction = (word ^ kernel.words[index]) & ~control.MASK, kernel.instructions[index]
    hinted = differs and differs & hints.mask(instruction, kernel.words[index], kernel.cubin.arch)
    return str(hints.read(word, instruction)) if hinted else ""


def _words(kernel: Kernel, controls: dict[str, str], hinted: dict[str, str]) -> list[int]:
    """Return the instructions' words, in the original order, with the control fields and the hints that a text gives them."""
    words = list(kernel.words)
    for name, fields in controls.items():
        words[int(name)] = words[int(name)] & ~control.MASK | control.fields_of(fields)
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

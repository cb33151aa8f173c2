"""A schedule as text: what differs from the compiler's, so that it can be read, kept in the archive and applied to the same cubin again."""

from __future__ import annotations

import json

from warpwright.domains.sass import control
from warpwright.domains.sass.edits import unchanged_meaning
from warpwright.domains.sass.kernel import Kernel, Schedule
from warpwright.domains.sass.renaming import with_registers
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
    if kernel.compiled is not None:
        document |= {"registers": kernel.registers, "compiled": kernel.compiled.digest}
    return json.dumps(document, indent=1) + "\n"


def read(text: str, kernel: Kernel) -> Schedule:
    """Return the schedule that a text describes; raise UsageError for another kernel's text, or one that changes what the code does.

    One of renamed registers is read with the compiler's kernel too: its values are spread again in the same way.
    """
    try:
        document = json.loads(text)
        if kernel.compiled is None and document.get("compiled") == kernel.digest:
            kernel = with_registers(kernel, int(document["registers"]))
        original, order, controls = document["original"], list(range(len(kernel.words))), dict(document["control"])
        for place, index in document["order"].items():
            order[int(place)] = int(index)
        words = [control.encode(kernel.words[i], control.parse(controls[str(i)])) if str(i) in controls else kernel.words[i] for i in order]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UsageError(f"expected the text of a schedule, saw {text[:60]!r}: {error}", "give what `warpwright optimize` wrote") from error
    if original != kernel.digest:
        raise UsageError(f"expected a schedule of {kernel.name} ({kernel.digest}), saw one of {original}", "give the cubin that it was made for")
    schedule = Schedule(kernel, tuple(order), tuple(words))
    if sorted(order) != list(range(len(order))) or not unchanged_meaning(schedule):
        raise UsageError("expected a schedule that permutes the instructions of each block, saw another", "give what `warpwright optimize` wrote")
    return schedule

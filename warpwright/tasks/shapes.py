"""Declared shapes: the sizes of inputs that a program is verified and timed for, each of them a task of its own.

A declaration is a list of entries, which map an input's name to its sizes. A pair in place of a size is a range, which stands for three entries: all
ranges at their lowest, at the example's own size, at their highest.

    [{"x": [1, 128]}, {"x": [32, 128]}]
    [{"x": [[1, 64], 128], "mask": [[1, 64]]}]

Values are drawn from those of the example's inputs, which the declaration does not have to name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from warpwright.base import Task
from warpwright.errors import TaskError, UsageError
from warpwright.tasks.reference import RUN_FIRST

OPTION = "shapes"
"""The option of a task that holds its declaration."""

SIZES = "sizes"
"""The option of a task that is one of the declared: JSON of the entry, and of the end of its ranges."""

ENDS = ("lowest", "nominal", "highest")

MOST = 8
"""Shapes of one task: each has processes of its own."""

_REMEDY = 'as in [{"x": [1, 128]}, {"x": [[1, 64], 128]}]'

TEXT = '''

# --- the inputs in other sizes: values drawn from those above -------------------------------------------------------------------------

_example_inputs = get_inputs


def _undeclarable(text):
    """Return the error of a declaration that does not fit the task's inputs."""
    error = ValueError(text)
    error.remedy = "declare as many sizes as the example's tensor has, of names that forward has"
    return error


def _sizes_of(name, tensor, wanted, end):
    """Return the sizes that an input is wanted in."""
    if not hasattr(tensor, "shape") or len(wanted) != tensor.dim():
        example = f"sizes {list(tensor.shape)}" if hasattr(tensor, "shape") else f"a {type(tensor).__name__}"
        raise _undeclarable(f"expected the sizes of {name}, whose example has {example}, saw {wanted}")
    ends = {"lowest": lambda low, high, own: low, "nominal": lambda low, high, own: min(max(own, low), high), "highest": lambda low, high, own: high}
    return [ends[end](*size, own) if isinstance(size, list) else size for size, own in zip(wanted, tensor.shape)]


def _in_sizes(tensor, sizes):
    """Return a tensor of these sizes whose values are drawn from those of `tensor`, with a gradient where it has one; one that has them as it is."""
    import torch

    if list(tensor.shape) == list(sizes):
        return tensor
    drawn = torch.randint(max(tensor.numel(), 1), sizes).to(tensor.device)
    return tensor.detach().flatten()[drawn].contiguous().requires_grad_(tensor.requires_grad)


def get_inputs():
    import inspect

    given, declared = list(_example_inputs()), @DECLARED
    names = [name for name in inspect.signature(Model.forward).parameters][1:]
    for name, wanted in declared["sizes"].items():
        if name not in names[: len(given)]:
            raise _undeclarable(f"expected shapes of {', '.join(names[: len(given)])}, saw those of {name!r}")
        place = names.index(name)
        given[place] = _in_sizes(given[place], _sizes_of(name, given[place], wanted, declared["end"]))
    return given
'''
"""What the text of a task in KernelBench form is followed by."""


def option(shapes: Sequence[Mapping[str, Sequence[Any]]]) -> str:
    """Return the option's value for a declaration; raise UsageError for one that is none."""
    declared = [{str(name): list(sizes) if isinstance(sizes, Sequence) else sizes for name, sizes in entry.items()} for entry in _checked(shapes)]
    text = json.dumps(declared)
    if len(_entries(text)) > MOST:
        raise UsageError(f"expected at most {MOST} shapes, saw {len(_entries(text))}", "a range counts as three")
    return text


def _checked(shapes: Any) -> Sequence[Mapping[str, Sequence[Any]]]:
    if not isinstance(shapes, list | tuple) or not shapes or not all(isinstance(entry, Mapping) and entry for entry in shapes):
        raise UsageError(f"expected a list of shapes by the inputs' names, saw {shapes!r:.80}", _REMEDY)
    for sizes in (sizes for entry in shapes for sizes in entry.values()):
        if not isinstance(sizes, list | tuple) or not all(_is_size(size) for size in sizes):
            raise UsageError(f"expected sizes above 0, or pairs of them, saw {sizes!r:.80}", _REMEDY)
    checked: Sequence[Mapping[str, Sequence[Any]]] = shapes
    return checked


def _is_size(size: Any) -> bool:
    if isinstance(size, list | tuple):
        return len(size) == 2 and all(type(end) is int for end in size) and 0 < size[0] < size[1]
    return type(size) is int and size > 0


def _entries(text: str) -> list[dict[str, Any]]:
    entries = json.loads(text)
    ranged = [any(isinstance(size, list) for sizes in entry.values() for size in sizes) for entry in entries]
    return [{"end": end, "sizes": entry} for entry, several in zip(entries, ranged, strict=True) for end in (ENDS if several else ENDS[:1])]


def tasks(task: Task) -> tuple[Task, ...]:
    """Return the tasks of the declared shapes; none for a task that declares none."""
    text = str(task.option(OPTION))
    plain = tuple((name, value) for name, value in task.options if name != OPTION)
    return tuple(replace(task, options=(*plain, (SIZES, json.dumps(entry)))) for entry in _entries(text)) if text else ()


def label(task: Task) -> str:
    """Return the name of one of the declared shapes, such as `x 1x128`, or with ranges `x 1..64x128 at its lowest`."""
    entry = json.loads(str(task.option(SIZES)))
    sizes = {name: "x".join("..".join(map(str, size)) if isinstance(size, list) else str(size) for size in sizes)
             for name, sizes in entry["sizes"].items()}  # fmt: skip
    sizes_text = ", ".join(f"{name} {text}" for name, text in sizes.items())
    return f"{sizes_text} {entry['end']}" if any(".." in text for text in sizes.values()) else sizes_text


@contextmanager
def named(task: Task) -> Iterator[None]:
    """Let an error of a task's own code say which of the declared shapes it came in."""
    try:
        yield
    except TaskError as error:
        if not task.option(SIZES):
            raise
        hint = "declare shapes that the program takes" if error.hint == RUN_FIRST else error.hint
        raise TaskError(f"in the shape {label(task)}: {error.message}", hint) from error


def text_of(declared: str) -> str:
    """Return what the text of a task with the option `sizes` ends with."""
    return TEXT.replace("@DECLARED", repr(json.loads(declared)))
